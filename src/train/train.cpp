#include <ein/train.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/hardware.hpp>
#include "graph/domain.hpp"
#include "machine/memory_limit.hpp"
#include "train/log.hpp"
#include "train/run.hpp"

namespace ein {
namespace {

using training::require;

void check(const TrainOptions& o) {
  require(!o.out.empty(), "wants a directory for its results");
  require(
      !o.resume || !o.overwrite,
      "resume goes on with the run in the directory and overwrite removes it: give one of them");
  require_at_least(o.model || o.resume ? 0 : 1, "train", "block size", o.block_size);
  require_at_least(1, "train", "batch size", o.batch_size);
  require_at_least(1, "train", "grad accum", o.grad_accum);
  require(o.batch_size <= std::numeric_limits<std::int64_t>::max() / o.grad_accum,
          "batch size times grad accum is above 2^63 - 1");
  require_at_least(1, "train", "n layer", o.n_layer);
  require_at_least(1, "train", "n head", o.n_head);
  require_at_least(1, "train", "n embd", o.n_embd);
  require_at_least(0, "train", "max iters", o.max_iters);
  require_at_least(0, "train", "warmup iters", o.warmup_iters);
  require_at_least(1, "train", "eval interval", o.eval_interval);
  require_at_least(1, "train", "eval iters", o.eval_iters);
  require_in(not_negative, "train", "weight decay", o.weight_decay);
  require_in(not_negative, "train", "learning rate", o.learning_rate);
  require_in(not_negative, "train", "min lr", o.min_lr);
  require_in(not_negative, "train", "grad clip", o.grad_clip);
  require_in(below_one, "train", "beta1", o.beta1);
  require_in(below_one, "train", "beta2", o.beta2);
  require_in(below_one, "train", "dropout", o.dropout);
  require_in(below_one, "train", "validation fraction", o.validation_fraction);
  require(o.data.empty() != o.tokens.empty(), "wants a text or a file of ids, one of them");
  const auto has_axis = [&](const std::string& name) {
    return std::any_of(o.mesh.begin(), o.mesh.end(),
                       [&](const MeshAxis& axis) { return axis.name == name; });
  };
  for (const MeshAxis& axis : o.mesh)
    require(axis.name == "data" || axis.name == "model" || axis.name == "seq",
            "the mesh has an axis '" + axis.name + "'; it may have data, model and seq");
  require(o.zero >= 0 && o.zero <= 3,
          "zero is " + std::to_string(o.zero) + "; 0, 1, 2 or 3 is wanted");
  require(o.zero == 0 || has_axis("data"), "zero wants a mesh with an axis data");
  for (const MeshAxis& axis : o.mesh) {
    const auto divides = [&](std::int64_t size, const std::string& what) {
      require(axis.size < 1 || size % axis.size == 0,
              what + " " + std::to_string(size) + " does not divide into " +
                  std::to_string(axis.size) + " equal parts over " + axis.name);
    };
    if (axis.name == "data") divides(o.batch_size, "batch size");
    if (axis.name == "model" && !o.model) divides(o.n_head, "n head");
    if (axis.name == "seq") divides(o.block_size, "block size");
  }
  require(o.dtype == DType::f32 || o.dtype == DType::bf16 || o.dtype == DType::f16,
          "dtype must be f32, bf16 or f16");
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Batch moved(const Batch& batch, Device device) { return {batch.x.to(device), batch.y.to(device)}; }

/// The losses of a run's model as it is.
class Evaluation {
 public:
  Evaluation(training::Run& run, const TrainOptions& options)
      : run_(run), options_(options), compiled_(Loss{run}) {}

  /// Over the batches of an evaluation at step `at`.
  double mean(bool validation, std::int64_t at) {
    double sum = 0;
    for (std::int64_t i = 0; i < options_.eval_iters; ++i)
      sum += loss_of(run_.evaluation_batch(validation, at, i));
    return sum / static_cast<double>(options_.eval_iters);
  }

  /// Over every block of the text to validate with.
  double whole() {
    const std::int64_t blocks = run_.validation_block_count();
    double sum = 0;
    for (std::int64_t first = 0; first < blocks; first += options_.batch_size) {
      const std::int64_t rows = std::min(options_.batch_size, blocks - first);
      sum += loss_of(run_.validation_blocks(first, rows)) * static_cast<double>(rows);
    }
    return sum / static_cast<double>(blocks);
  }

 private:
  struct Loss {
    const training::Run& run;
    Tensor operator()(const Tensor& x, const Tensor& y) const { return run.loss(x, y); }
  };

  double loss_of(const Batch& on_host) {
    const Batch batch = moved(on_host, options_.device);
    const NoGrad no_grad;
    run_.model().eval();
    const double loss =
        (options_.compile ? compiled_(batch.x, batch.y) : run_.loss(batch.x, batch.y)).item();
    run_.model().train();
    return loss;
  }

  training::Run& run_;
  const TrainOptions& options_;
  Compiled<Loss> compiled_;
};

/// What a run costs, for which the step is compiled. Nothing of a step's size is touched for it:
/// the system may have less memory, and then the bill is the last that the run says.
template <class Step>
TrainBill bill_of(const training::Run& run, Step& step, const TrainOptions& options) {
  TrainBill bill = run.bill();
  {
    const Shape shape{options.batch_size * options.grad_accum, options.block_size};
    const Tensor x = empty(shape, DType::i64, options.device),
                 y = empty(shape, DType::i64, options.device);
    step.prepare(x, y);
  }
  bill.step = step.cost();
  bill.parts = step.bill();
  bill.memory = step.memory();
  bill.exchanges = step.exchanges();
  if (const auto hardware = find_hardware(options.device)) {
    bill.peak_flops = hardware->peak(options.dtype).value_or(0);
    bill.machine_memory = hardware->memory;
    bill.peak_source = hardware->source;
  }
  if (options.device == cpu) {
    bill.machine_memory = system::memory_limit().bytes;
    bill.available_memory = std::min(system::available_memory(), bill.machine_memory);
  }
  return bill;
}

/// What a step takes of the host. On a GPU an allocation that does not fit is an Error; call by
/// call, memory is not planned.
void require_memory(const TrainBill& bill, const TrainOptions& options) {
  const bool steps = options.max_iters > bill.first_step;
  if (steps && options.compile && options.device == cpu)
    training::require_memory("train: a step takes", static_cast<double>(bill.memory.peak()));
}

}  // namespace

TrainProgress train(const TrainOptions& given, const TrainReport& report) {
  check(given);
  training::ResolvedOptions resolved = training::resolved(given);
  const TrainOptions& options = resolved.options;
  training::Run run(resolved);
  auto step = compile([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  Evaluation evaluation(run, options);
  const TrainBill bill = bill_of(run, step, options);
  if (report.begin && run.is_first()) report.begin(bill);
  require_memory(bill, options);

  std::optional<training::Log> log = run.begin_log();
  Prefetcher batches(run.sampler());
  TrainProgress progress;
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t at = run.first_step();; ++at) {
    progress.step = at;
    const bool is_saved = run.is_resumed() && at == run.first_step();
    progress.stopped = run.largest(report.stop ? report.stop() : 0);
    if (progress.stopped != 0) {
      if (!is_saved) run.save(at, batches.position());
      break;
    }
    progress.evaluated = at % options.eval_interval == 0 || at >= options.max_iters;
    if (progress.evaluated) {
      progress.train_loss = evaluation.mean(false, at);
      progress.validation_loss = evaluation.mean(true, at);
      progress.elapsed = seconds_since(begin);
      if (at >= options.max_iters) progress.whole_validation_loss = evaluation.whole();
      if (log) log->evaluated(progress);
      if (!is_saved) run.save(at, batches.position());
    }
    if (report.step && run.is_first() && (at > run.first_step() || progress.evaluated))
      report.step(progress);
    if (at >= options.max_iters) break;

    const auto start = std::chrono::steady_clock::now();
    const Batch batch = moved(batches.next(), options.device);
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
    if (log) log->stepped(at + 1, progress);
  }
  return progress;
}

}  // namespace ein
