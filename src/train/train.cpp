#include <ein/train.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/data.hpp>
#include <ein/error.hpp>
#include <ein/hardware.hpp>
#include <ein/optim.hpp>
#include <ein/schedule.hpp>
#include "train/log.hpp"
#include "train/model.hpp"
#include "train/step.hpp"

namespace ein {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::value, "train: " + what);
}

void check(const TrainOptions& o) {
  require(!o.out.empty(), "wants a directory for its results");
  require(o.block_size >= 1 && o.batch_size >= 1 && o.grad_accum >= 1,
          "block size, batch size and grad accum must be at least 1");
  require(o.batch_size <= std::numeric_limits<std::int64_t>::max() / o.grad_accum,
          "batch size times grad accum is above 2^63 - 1");
  require(o.max_iters >= 0 && o.warmup_iters >= 0,
          "max iters and warmup iters must not be negative");
  require(o.eval_interval >= 1 && o.eval_iters >= 1,
          "eval interval and eval iters must be at least 1");
  require(std::isfinite(o.weight_decay) && o.weight_decay >= 0,
          "weight decay must be finite and not negative");
  require(std::isfinite(o.learning_rate) && o.learning_rate >= 0 && std::isfinite(o.min_lr) &&
              o.min_lr >= 0,
          "learning rates must be finite and not negative");
  require(o.grad_clip >= 0, "grad clip must not be negative");
  require(o.dtype == DType::f32 || o.dtype == DType::bf16 || o.dtype == DType::f16,
          "dtype must be f32, bf16 or f16");
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file)
    throw Error(ErrorKind::file,
                "train: \"" + path + "\" cannot be opened: " + std::strerror(errno));
  if (file.peek() == std::ifstream::traits_type::eof())
    throw Error(ErrorKind::file, "train: \"" + path + "\" is empty, or cannot be read");
  text << file.rdbuf();
  return text.str();
}

/// Everything that a step changes, and what it is made of.
class Run {
 public:
  explicit Run(const TrainOptions& options)
      : options_(options),
        text_(read_text(options.data)),
        tokenizer_(std::make_unique<CharTokenizer>(text_)),
        split_(split(Tokens(token_tensor()))),
        step_(config(), options),
        sampler_(split_.train, options.batch_size * options.grad_accum, options.block_size,
                 options.seed) {
    if (options.resume && has_checkpoint(options.out)) {
      resume();
    } else if (!options.init_from.empty()) {
      init();
    }
  }

  nn::Transformer& model() { return step_.model; }
  std::int64_t first_step() const { return first_step_; }
  bool is_resumed() const { return is_resumed_; }
  BatchSampler sampler() const { return sampler_; }
  TrainBill bill() const {
    TrainBill bill;
    bill.parameters = step_.model.parameter_count();
    bill.vocabulary = tokenizer_->vocabulary_size();
    bill.train_tokens = split_.train.size();
    bill.validation_tokens = split_.validation.size();
    bill.first_step = first_step_;
    bill.note = note_;
    return bill;
  }

  std::array<Tensor, 2> step(const Tensor& x, const Tensor& y) { return step_(x, y); }
  Tensor loss(const Tensor& x, const Tensor& y) const { return step_.loss(x, y); }

  void set_learning_rate(std::int64_t step) {
    const optim::CosineWithWarmup schedule{.learning_rate = options_.learning_rate,
                                           .min_learning_rate = options_.min_lr,
                                           .warmup_steps = options_.warmup_iters,
                                           .end = options_.max_iters};
    step_.optimizer.set_learning_rate(schedule(step));
  }
  double learning_rate() const { return step_.optimizer.learning_rate(); }

  /// Batches that do not depend on how many were trained on, so that a resumed run sees the same.
  Batch evaluation_batch(bool validation, std::int64_t step, std::int64_t number) const {
    const Tokens& tokens = validation ? split_.validation : split_.train;
    const auto place =
        static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(options_.eval_iters) +
        static_cast<std::uint64_t>(number);
    return get_batch(tokens, options_.batch_size, options_.block_size,
                     options_.seed + (validation ? 1 : 2), place);
  }

  /// `rows` blocks of the text to validate with from block `first` on, one behind the other.
  Batch validation_blocks(std::int64_t first, std::int64_t rows) const {
    const std::int64_t length = options_.block_size, begin = first * length,
                       end = begin + rows * length;
    const Shape shape{rows, length};
    return {split_.validation.read(begin, end).reshape(shape),
            split_.validation.read(begin + 1, end + 1).reshape(shape)};
  }
  std::int64_t validation_block_count() const {
    return (split_.validation.size() - 1) / options_.block_size;
  }

  void save(std::int64_t step, std::uint64_t position) {
    StateDict tensors;
    training::add_part(tensors, "model.", step_.model.state_dict());
    training::add_part(tensors, "optimizer.", step_.optimizer.state_dict());
    training::add_part(tensors, "scaler.", step_.scaler.state_dict());
    Metadata metadata = training::describe(step_.model.config(), *tokenizer_);
    const RandomState random = random_state();
    metadata["random.seed"] = std::to_string(random.seed);
    metadata["random.streams"] = std::to_string(random.streams);
    metadata["data.position"] = std::to_string(position);
    save_checkpoint(options_.out, step, tensors, metadata);
  }

 private:
  Tensor token_tensor() const { return from_vector(tokenizer_->encode(text_)); }

  /// A system that promises more memory than it has would end the process without a word.
  void require_memory() const {
    const double width = static_cast<double>(options_.n_embd),
                 layers = static_cast<double>(options_.n_layer),
                 rows = static_cast<double>(tokenizer_->vocabulary_size() + options_.block_size);
    constexpr double kept = 4 * sizeof(float);  // weight, gradient, two moments
    const double bytes = kept * (rows * width + layers * 12 * width * width);
    const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<double>(::sysconf(_SC_PAGESIZE));
    if (bytes <= memory) return;
    char text[128];
    std::snprintf(text, sizeof text,
                  "train: the model and its optimizer take %.3g GB, the machine has %.3g GB",
                  bytes / 1e9, memory / 1e9);
    throw Error(ErrorKind::memory, text);
  }

  nn::TransformerConfig config() const {
    require(split_.validation.size() > options_.block_size,
            "the text is too short: its last tenth, " + std::to_string(split_.validation.size()) +
                " characters, must be longer than the block size, " +
                std::to_string(options_.block_size));
    require_memory();
    // The weights' random numbers, and dropout's, follow from the seed.
    manual_seed(options_.seed);
    return training::config_of(options_, tokenizer_->vocabulary_size());
  }

  void init() {
    const Checkpoint checkpoint = load_checkpoint(options_.init_from);
    const StateDict weights = training::part_of(checkpoint.tensors, "model.");
    if (checkpoint.metadata.contains("tokenizer")) require_same(checkpoint);
    step_.model.load_state_dict(weights.empty() ? checkpoint.tensors : weights);
  }

  void require_same(const Checkpoint& checkpoint) const {
    const training::Described described = training::read_description(checkpoint);
    training::require_same_model(described.config, step_.model.config(), checkpoint.path);
    require(described.tokenizer->save() == tokenizer_->save(),
            "\"" + checkpoint.path + "\" is of a text with other characters");
  }

  void resume() {
    const Checkpoint checkpoint = load_checkpoint(options_.out);
    require_same(checkpoint);
    step_.model.load_state_dict(training::part_of(checkpoint.tensors, "model."));
    step_.optimizer.load_state_dict(training::part_of(checkpoint.tensors, "optimizer."));
    step_.scaler.load_state_dict(training::part_of(checkpoint.tensors, "scaler."));
    const auto count = [&](const char* key) {
      return static_cast<std::uint64_t>(training::number(checkpoint, key));
    };
    set_random_state({count("random.seed"), count("random.streams")});
    sampler_.seek(count("data.position"));
    first_step_ = checkpoint.step;
    is_resumed_ = true;
    note_ = checkpoint.note;
  }

  const TrainOptions& options_;
  std::string text_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Split split_;
  training::Step step_;
  BatchSampler sampler_;
  std::int64_t first_step_ = 0;
  bool is_resumed_ = false;
  std::string note_;
};

void make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw Error(ErrorKind::file,
                "train: the directory \"" + path + "\" cannot be made: " + error.message());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TrainProgress train(const TrainOptions& options, const TrainReport& report) {
  check(options);
  Run run(options);
  make_directory(options.out);
  training::Log log(options.out, run.first_step());

  auto step = compile([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  auto evaluate = compile([&](const Tensor& x, const Tensor& y) { return run.loss(x, y); });
  const auto on_device = [&](const Batch& batch) {
    return Batch{batch.x.to(options.device), batch.y.to(options.device)};
  };
  const auto loss_of = [&](const Batch& on_host) {
    const Batch batch = on_device(on_host);
    const NoGrad no_grad;
    run.model().eval();
    const double loss =
        (options.compile ? evaluate(batch.x, batch.y) : run.loss(batch.x, batch.y)).item();
    run.model().train();
    return loss;
  };
  const auto mean_loss = [&](bool validation, std::int64_t at) {
    double sum = 0;
    for (std::int64_t i = 0; i < options.eval_iters; ++i)
      sum += loss_of(run.evaluation_batch(validation, at, i));
    return sum / static_cast<double>(options.eval_iters);
  };
  const auto whole_validation_loss = [&] {
    const std::int64_t blocks = run.validation_block_count();
    double sum = 0;
    for (std::int64_t first = 0; first < blocks; first += options.batch_size) {
      const std::int64_t rows = std::min(options.batch_size, blocks - first);
      sum += loss_of(run.validation_blocks(first, rows)) * static_cast<double>(rows);
    }
    return sum / static_cast<double>(blocks);
  };

  TrainBill bill = run.bill();
  {
    const Batch like = on_device(run.sampler().next());
    step.prepare(like.x, like.y);
  }
  bill.step = step.cost();
  bill.parts = step.bill();
  bill.memory = step.memory();
  if (const auto hardware = find_hardware(options.device)) {
    // The CPU computes in f32 whatever the dtype is.
    bill.peak_flops = hardware->peak(options.device == cpu ? DType::f32 : options.dtype).value_or(0);
    bill.machine_memory = hardware->memory;
  }
  if (report.begin) report.begin(bill);

  Prefetcher batches(run.sampler());
  TrainProgress progress;
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t at = run.first_step();; ++at) {
    progress.step = at;
    progress.evaluated = at % options.eval_interval == 0 || at >= options.max_iters;
    if (progress.evaluated) {
      progress.train_loss = mean_loss(false, at);
      progress.validation_loss = mean_loss(true, at);
      progress.elapsed = seconds_since(begin);
      if (at >= options.max_iters) progress.whole_validation_loss = whole_validation_loss();
      log.evaluated(progress);
      // What a run was resumed from is saved already.
      if (at > run.first_step() || !run.is_resumed()) run.save(at, batches.position());
    }
    if (report.step && (at > run.first_step() || progress.evaluated)) report.step(progress);
    if (at >= options.max_iters) break;

    const auto start = std::chrono::steady_clock::now();
    const Batch batch = on_device(batches.next());
    run.set_learning_rate(at);
    const std::array<Tensor, 2> results =
        options.compile ? step(batch.x, batch.y) : run.step(batch.x, batch.y);
    progress.loss = results[0].item();
    progress.grad_norm = results[1].item();
    progress.learning_rate = run.learning_rate();
    progress.seconds = seconds_since(start);
    progress.tokens_per_second = static_cast<double>(batch.x.numel()) / progress.seconds;
    progress.mfu = bill.peak_flops > 0
                       ? mfu(bill.step.matmul_only.approximate(), progress.seconds, bill.peak_flops)
                       : 0;
    require(std::isfinite(progress.loss) || options.dtype == DType::f16,
            "the loss is not finite after step " + std::to_string(at + 1) +
                "; a smaller learning rate may help");
    log.stepped(at + 1, progress);
  }
  return progress;
}

}  // namespace ein
