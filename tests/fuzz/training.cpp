// Any bytes as a checkpoint of a training run: the file, what its metadata say of the model, and
// the state of model, optimizer and scaler. Either an ein::Error, or a description that, written
// again, is read back the same.
#include <algorithm>
#include <cstdint>
#include <optional>

#include <ein/checkpoint_files.hpp>

#include "fuzz/fuzz.hpp"
#include "train/model.hpp"
#include "train/step.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

/// The model of the seeds that are whole.
TrainOptions small_options() {
  TrainOptions options;
  options.block_size = 2, options.n_layer = 1, options.n_head = 1, options.n_embd = 2;
  options.bias = false;
  return options;
}

/// What resuming does.
void load_state(const Checkpoint& checkpoint) {
  static const TrainOptions options = small_options();
  static training::Step step(nn::decoder_config(training::config_of(options, 3)), options);
  try {
    step.model.load_state_dict(training::part_of(checkpoint.tensors, "model."));
    step.optimizer.load_state_dict(training::part_of(checkpoint.tensors, "optimizer."));
    step.scaler.load_state_dict(training::part_of(checkpoint.tensors, "scaler."));
  } catch (const Error& error) {
    require(error.what()[0] != '\0', "an error without words");
  }
}

void check(const Checkpoint& checkpoint) {
  for (const char* key : {"random.seed", "random.streams", "data.position"}) {
    value_or_error(ErrorKind::file, std::uint64_t{0},
                   [&] { return training::number(checkpoint, key); });
  }
  load_state(checkpoint);
  training::Described described;
  try {
    described = training::read_description(checkpoint);
  } catch (const Error& error) {
    // Of kind `value` is what the tokenizer says of its own text.
    require(error.kind() == ErrorKind::file || error.kind() == ErrorKind::value,
            "an error of another kind");
    return;
  }
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) bytes += tensor.nbytes();
  const nn::DecoderConfig& config = described.config;
  const auto width = static_cast<double>(config.width);
  const double weights = width * static_cast<double>(config.vocabulary + config.positions) +
                         12 * width * width * static_cast<double>(config.layers);
  if (described.sizes)
    require(weights <= 3 * static_cast<double>(bytes), "a model far larger than its file");
  const auto metadata_of = [](const training::Described& said) {
    return said.sizes ? training::describe(*said.sizes, *said.tokenizer)
                      : training::describe(said.config, said.tokenizer.get());
  };
  Checkpoint again = checkpoint;
  again.metadata = metadata_of(described);
  require(metadata_of(training::read_description(again)) == again.metadata,
          "another description after a round trip");
}

/// Lines "key value", so that what is wrong is in the values and not in the file's form.
Checkpoint of_lines(std::string_view text) {
  Checkpoint checkpoint;
  checkpoint.path = "fuzz";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t space = line.find(' ');
    if (space != line.npos)
      checkpoint.metadata.emplace(line.substr(0, space), line.substr(space + 1));
  }
  // Tensors as the sizes say, where those are small.
  const auto size = [&](const char* key) {
    const auto number = value_or_error(ErrorKind::file, std::uint64_t{0},
                                       [&] { return training::number(checkpoint, key); });
    return static_cast<std::int64_t>(std::min(number, std::uint64_t{1} << 24));
  };
  const std::int64_t width = size("model.n_embd");
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    if (rows > 300 || columns > 64) return;
    checkpoint.tensors.emplace(
        "model.transformer." + name + ".weight",
        Tensor(Storage::allocate(static_cast<std::size_t>(4 * rows * columns)), DType::f32,
               {rows, columns}, {columns, 1}));
  };
  add("wte", size("model.vocab_size"), width);
  add("wpe", size("model.block_size"), width);
  if (width > 300) return checkpoint;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(size("model.n_layer"), 2); ++i)
    add("h." + std::to_string(i) + ".mlp.c_fc", width, 4 * width);
  return checkpoint;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  if (size > 0 && data[0] == '#') {
    check(of_lines({reinterpret_cast<const char*>(data) + 1, size - 1}));
    return 0;
  }
  file.replace(data, size);
  if (const auto loaded = value_or_error(ErrorKind::file, std::optional<Checkpoint>(), [&] {
        return std::optional(load_checkpoint(file.path(), {.mmap = false}));
      })) {
    check(*loaded);
  }
  return 0;
}
