#include "train/run.hpp"

#include <algorithm>

#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/schedule.hpp>
#include "api/on_all.hpp"
#include "io/file.hpp"
#include "tensor/printable.hpp"
#include "train/model.hpp"

namespace ein::training {
namespace {

std::string read_text(const std::string& path) {
  const io::InputFile file("train", path);
  if (file.size() == 0) file.fail("is empty");
  return file.read();
}

}  // namespace

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::value, "train: " + what);
}

Run::Run(const TrainOptions& options)
    : options_(options),
      text_(read_text(options.data)),
      tokenizer_(std::make_unique<CharTokenizer>(text_)),
      split_(split(Tokens(token_tensor()))),
      step_(config(), options),
      sampler_(split_.train, options.batch_size * options.grad_accum, options.block_size,
               options.seed) {
  const auto goes_on = [&] { return options.resume && has_checkpoint(options.out); };
  if (!options.init_from.empty() && !goes_on()) init();
  take_directory();
  if (goes_on())
    resume();
  else if (options.resume)
    note_ = "nothing to resume: \"" + printable_line(options.out) + "\" has no checkpoint";
}

void Run::take_directory() {
  const auto take = [&] {
    if (!is_first()) return true;
    directory_.emplace(options_.out);
    if (!options_.resume && !options_.overwrite) directory_->require_unused();
    return true;
  };
  if (step_.mesh())
    engine::on_all(*step_.mesh()->impl(), take);
  else
    take();
}

std::optional<Log> Run::begin_log() const {
  if (!is_first()) return std::nullopt;
  if (!is_resumed_ && options_.overwrite) directory_->clear();
  return Log(options_.out, first_step_);
}

int Run::largest(int said) const {
  if (!step_.mesh()) return said;
  const std::vector<int> all = engine::on_all(*step_.mesh()->impl(), [&] { return said; });
  return *std::max_element(all.begin(), all.end());
}

TrainBill Run::bill() const {
  TrainBill bill;
  bill.parameters = step_.model.parameter_count();
  bill.vocabulary = tokenizer_->vocabulary_size();
  bill.train_tokens = split_.train.size();
  bill.validation_tokens = split_.validation.size();
  bill.first_step = first_step_;
  bill.note = note_;
  return bill;
}

void Run::set_learning_rate(std::int64_t step) {
  const optim::CosineWithWarmup schedule{.learning_rate = options_.learning_rate,
                                         .min_learning_rate = options_.min_lr,
                                         .warmup_steps = options_.warmup_iters,
                                         .end = options_.max_iters};
  step_.optimizer.set_learning_rate(schedule(step));
}

Batch Run::evaluation_batch(bool validation, std::int64_t step, std::int64_t number) const {
  const Tokens& tokens = validation ? split_.validation : split_.train;
  const auto place =
      static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(options_.eval_iters) +
      static_cast<std::uint64_t>(number);
  return get_batch(tokens, options_.batch_size, options_.block_size,
                   options_.seed + (validation ? 1 : 2), place);
}

Batch Run::validation_blocks(std::int64_t first, std::int64_t rows) const {
  const std::int64_t length = options_.block_size, begin = first * length,
                     end = begin + rows * length;
  const Shape shape{rows, length};
  return {split_.validation.read(begin, end).reshape(shape),
          split_.validation.read(begin + 1, end + 1).reshape(shape)};
}

std::int64_t Run::validation_block_count() const {
  return (split_.validation.size() - 1) / options_.block_size;
}

void Run::save(std::int64_t step, std::uint64_t position) {
  StateDict tensors;
  add_part(tensors, "model.", step_.model.state_dict());
  add_part(tensors, "optimizer.", step_.optimizer.state_dict());
  add_part(tensors, "scaler.", step_.scaler.state_dict());
  Metadata metadata = describe(step_.model.sizes(), *tokenizer_);
  const RandomState random = random_state();
  metadata["random.seed"] = std::to_string(random.seed);
  metadata["random.streams"] = std::to_string(random.streams);
  metadata["data.position"] = std::to_string(position);
  if (const Mesh* const mesh = step_.mesh())
    save_checkpoint(*mesh, options_.out, step, tensors, metadata);
  else
    save_checkpoint(options_.out, step, tensors, metadata);
}

Tensor Run::token_tensor() const { return from_vector(tokenizer_->encode(text_)); }

nn::TransformerConfig Run::config() const {
  require(split_.validation.size() > options_.block_size,
          "the text is too short: its last tenth, " + std::to_string(split_.validation.size()) +
              " characters, must be longer than the block size, " +
              std::to_string(options_.block_size));
  const nn::TransformerConfig config = config_of(options_, tokenizer_->vocabulary_size());
  require_memory("train", config, options_);
  // The weights' random numbers, and dropout's, follow from the seed.
  manual_seed(options_.seed);
  return config;
}

void Run::init() {
  const Checkpoint checkpoint = load_checkpoint(options_.init_from, {.mmap = false});
  const StateDict weights = part_of(checkpoint.tensors, "model.");
  if (checkpoint.metadata.contains("tokenizer")) require_same(checkpoint);
  step_.model.load_state_dict(weights.empty() ? checkpoint.tensors : weights);
}

void Run::require_same(const Checkpoint& checkpoint) const {
  const Described described = read_description(checkpoint);
  require_same_model(described.config, step_.model.sizes(), checkpoint.path);
  require(
      described.tokenizer->save() == tokenizer_->save(),
      "\"" + printable_line(checkpoint.path) + "\" was trained on a text with other characters");
}

void Run::resume() {
  const Checkpoint checkpoint = load_checkpoint(options_.out, {.mmap = false});
  require_same(checkpoint);
  step_.model.load_state_dict(part_of(checkpoint.tensors, "model."));
  step_.optimizer.load_state_dict(part_of(checkpoint.tensors, "optimizer."));
  step_.scaler.load_state_dict(part_of(checkpoint.tensors, "scaler."));
  set_random_state({number(checkpoint, "random.seed"), number(checkpoint, "random.streams")});
  sampler_.seek(number(checkpoint, "data.position"));
  first_step_ = checkpoint.step;
  is_resumed_ = true;
  note_ = checkpoint.note;
}

}  // namespace ein::training
