// ein step: the kernels and the time of a Transformer's training step.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>

#include <ein/compile.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/hardware.hpp>
#include <ein/memory.hpp>
#include <ein/train.hpp>

#include "api/compile.hpp"
#include "call.hpp"
#include "codegen/units.hpp"
#include "cuda/cubin_cache.hpp"
#include "io/file.hpp"
#include "kernels.hpp"
#include "numbers.hpp"
#include "report.hpp"
#include "subcommands.hpp"
#include "train/step.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein step cuda --n-layer 2 -o step.cu
  ein step cubin --dtype bf16 --arch sm_80 -o kernels
  ein step cubin --vocab-size 50257 --block-size 1024 --n-layer 12 --n-head 12 --n-embd 768 \
    --batch-size 16 --dtype bf16
  ein step time --device cuda --dtype bf16
  ein step memory --n-layer 2 -o memory.svg

cuda   the CUDA kernels of the whole step, forward, backward and update, and their launches in order
cubin  what each kernel takes of a GPU, compiled by NVRTC for --arch; with -o the machine code, a
       file for each translation unit, in that directory
time   the median of ten seconds of steps on --device, on random tokens
memory who holds what memory from when to when, as SVG, and what waits for the backward pass, the
       largest first; known before a step runs, for the CPU

cuda, cubin and memory need no GPU. Sizes are those of ein train where nothing else is said.

Exit code: 0; 2 for a mistake in the call; 1 for files, a missing NVRTC or GPU and the rest.)";

struct StepWords {
  std::string form;
  TrainOptions options;
  std::int64_t vocab_size = 65;  // of Shakespeare's characters
  double seconds = 10;
  Numbers numbers;
  std::string dtype = "f32", device = "cpu", arch = "sm_90a", output;
  bool json = false;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

training::Step step_of(const StepWords& words) {
  const nn::TransformerConfig config = training::config_of(words.options, words.vocab_size);
  training::require_memory("step", config, words.options);
  return {nn::decoder_config(config), words.options};
}

Tensor tokens(const StepWords& words, Device device) {
  const TrainOptions& o = words.options;
  const Shape shape{o.batch_size * o.grad_accum, o.block_size};
  // In f64, as an f32 below 1 times a great size can round up to it.
  return (rand(shape, DType::f64) * static_cast<double>(words.vocab_size))
      .to(DType::i64)
      .to(device);
}

// --- kernels ---

codegen::Units units_of(const StepWords& words, const GpuTarget& target, std::size_t most) {
  training::Step step = step_of(words);
  const Tensor batch[] = {tokens(words, cpu), tokens(words, cpu)};
  const auto function = [&](std::span<const Tensor> x) -> std::vector<Tensor> {
    const auto results = step(x[0], x[1]);
    return {results.begin(), results.end()};
  };
  return codegen::emit_units(engine::lowered(function, batch, cuda), target, most);
}

std::string emit_cuda(const StepWords& words, const GpuTarget& target) {
  codegen::Units units = units_of(words, target, static_cast<std::size_t>(-1));
  std::string text = std::move(units.texts.at(0)) + "\n// The launches, in order:\n";
  for (const codegen::KernelSource& launch : units.launches)
    text += "// " + launch.name + ": " + launch_of(launch).substr(3);
  if (words.output.empty()) return text;
  save(words.output, text);
  return "";
}

std::string emit_cubin(const StepWords& words, const GpuTarget& target) {
  const codegen::Units units = units_of(words, target, codegen::kernels_per_unit);
  std::vector<gpu::Source> sources;
  for (const std::string& text : units.texts) sources.push_back({"kernels.cu", text, words.arch});
  const auto begin = std::chrono::steady_clock::now();
  const auto cache = gpu::CubinCache::of_user();
  const std::vector<gpu::Compiled> compiled = gpu::compile_all(sources, cache ? &*cache : nullptr);
  const double seconds = seconds_since(begin);
  ResourceTable table(true);
  std::int64_t bytes = 0;
  std::size_t cached = 0;
  for (const gpu::Compiled& unit : compiled) {
    table.add(unit.cubin, units.launches);
    bytes += static_cast<std::int64_t>(unit.cubin.image.size());
    cached += unit.was_cached;
  }
  if (!words.output.empty()) {
    io::place_in("step", words.output, io::Missing::make);
    for (std::size_t i = 0; i < compiled.size(); ++i)
      save(words.output + "/" + std::to_string(i) + ".cubin", compiled[i].cubin.image);
  }
  return table.text() + "\n" + std::to_string(units.launches.size()) + " launches of " +
         std::to_string(table.kernels()) + " kernels in " + std::to_string(compiled.size()) +
         " units; " + words.arch + ", NVRTC " + to_string(gpu::nvrtc_version()) + ", " +
         std::to_string(cached) + " units from the cache, the others compiled, in " +
         duration(seconds) + "; " + grouped(bytes) + " bytes" +
         (words.output.empty() ? "" : " in " + printable_line(words.output)) + "\n" +
         ResourceTable::units + "\n";
}

// --- time ---

std::string time(const StepWords& words) {
  const Device device = words.options.device;
  training::Step step = step_of(words);
  const Tensor x = tokens(words, device), y = tokens(words, device);
  auto compiled = compile([&](const Tensor& a, const Tensor& b) { return step(a, b); });
  const auto begin = std::chrono::steady_clock::now();
  compiled.prepare(x, y);
  const double preparing = seconds_since(begin);
  const auto once = [&] {
    const auto start = std::chrono::steady_clock::now();
    const double loss = compiled(x, y)[0].item();
    return std::pair(seconds_since(start), loss);
  };
  double loss = 0;
  for (int i = 0; i < 3; ++i) loss = once().second;
  std::vector<double> times;
  const auto first = std::chrono::steady_clock::now();
  while (times.size() < 5 || (seconds_since(first) < words.seconds && times.size() < 100'000)) {
    const auto [seconds, now] = once();
    times.push_back(seconds);
    loss = now;
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const double per_second = static_cast<double>(x.numel()) / median;
  const double flops = compiled.cost().matmul_only.approximate();
  std::optional<double> peak;
  if (const auto hardware = find_hardware(device)) peak = hardware->peak(words.options.dtype);
  if (words.json) {
    Json object;
    object.add("device", to_string(device));
    object.add("parameters", Count(step.model.parameter_count()));
    object.add("tokens", Count(x.numel()));
    object.add("steps", Count(static_cast<std::int64_t>(times.size())));
    object.add("median_seconds", median);
    object.add("fastest_seconds", times.front());
    object.add("preparing_seconds", preparing);
    object.add("tokens_per_second", per_second);
    object.add("matmul_flops", compiled.cost().matmul_only);
    if (peak) object.add("mfu", mfu(flops, median, *peak));
    object.add("memory", Count(static_cast<std::int64_t>(compiled.memory().peak())));
    object.add("loss", loss);
    return object.text();
  }
  Table table({false, true});
  table.add({"device", to_string(device)});
  table.add({"parameters", grouped(Count(step.model.parameter_count()))});
  table.add({"tokens of a step", grouped(Count(x.numel()))});
  table.add({"prepared in", duration(preparing)});
  table.add({"median", duration(median) + " of " +
                           grouped(Count(static_cast<std::int64_t>(times.size()))) + " steps"});
  table.add({"fastest", duration(times.front())});
  table.add({"tokens/s", shown(per_second)});
  table.add({"contractions", with_prefix(flops / median, "FLOP/s")});
  table.add({"MFU", peak ? shown(100 * mfu(flops, median, *peak)) + " %"
                         : "unknown: no peak is known of this device"});
  table.add({"memory", with_prefix(static_cast<double>(compiled.memory().peak()), "B")});
  table.add({"loss", shown(loss)});
  return table.text();
}

// --- memory ---

std::string memory(const StepWords& words) {
  training::Step step = step_of(words);
  const Tensor x = tokens(words, cpu), y = tokens(words, cpu);
  auto compiled = compile([&](const Tensor& a, const Tensor& b) { return step(a, b); });
  compiled.prepare(x, y);
  const std::string picture = compiled.timeline().svg();
  if (words.output.empty()) return picture;
  save(words.output, picture);
  const StepBill bill = compiled.bill();
  return to_string(bill.kept) + grouped(Count(static_cast<std::int64_t>(bill.activations))) +
         " bytes wait for the backward pass, in " + std::to_string(bill.kept.size()) + " values\n";
}

// --- the command ---

std::string run(StepWords& words) {
  words.numbers.read();
  words.options.dtype = training_dtype(words.dtype);
  const bool emits = words.form == "cuda" || words.form == "cubin";
  if (!emits && words.form != "time" && words.form != "memory") {
    throw UsageError("step: unknown form '" + words.form +
                     "'; it may be cuda, cubin, time or memory");
  }
  const TrainOptions& o = words.options;
  if (std::min({o.batch_size, o.grad_accum, o.block_size, words.vocab_size}) < 1)
    throw UsageError("step: sizes must be at least 1");
  if (o.batch_size > INT64_MAX / o.grad_accum)
    throw UsageError("step: batch size times grad accum is above 2^63 - 1");
  if (emits) {
    const GpuTarget target = target_of(words.arch);
    return words.form == "cuda" ? emit_cuda(words, target) : emit_cubin(words, target);
  }
  if (words.form == "memory") return memory(words);
  if (!words.output.empty())
    throw UsageError("step: -o is for cuda, cubin and memory, not for time");
  words.options.device = device_named(words.device);
  return time(words);
}

}  // namespace

void add_step(CLI::App& app, std::string& output) {
  CLI::App* command = app.add_subcommand(
      "step", "Print the kernels of a Transformer's training step, time it, or draw its memory");
  const auto words = std::make_shared<StepWords>();
  TrainOptions& o = words->options;
  Numbers& numbers = words->numbers;
  add_word(*command, "FORM", words->form, "cuda, cubin, time or memory")->required();
  numbers.add(*command, "--vocab-size", words->vocab_size, "tokens that there are");
  numbers.add(*command, "--block-size", o.block_size, "positions of a sequence");
  numbers.add(*command, "--batch-size", o.batch_size, "sequences in a batch");
  numbers.add(*command, "--n-layer", o.n_layer, "blocks");
  numbers.add(*command, "--n-head", o.n_head, "attention heads");
  numbers.add(*command, "--n-embd", o.n_embd, "width");
  numbers.add(*command, "--grad-clip", o.grad_clip, "the greatest norm of the gradient; 0: any");
  numbers.add(*command, "--dropout", o.dropout, "probability");
  numbers.add(*command, "--grad-accum", o.grad_accum, "batches to a step");
  numbers.add(*command, "--seconds", words->seconds, "time: for how long");
  add_word(*command, "--dtype", words->dtype, "of contractions: f32, bf16, f16")
      ->default_str("f32");
  add_word(*command, "--arch", words->arch, "of cuda and cubin: sm_80, sm_90a, sm_100a ...")
      ->default_str("sm_90a");
  add_word(*command, "--device", words->device, "of time: cpu, cuda, cuda:1 ...")
      ->default_str("cpu");
  add_word(*command, "-o,--output", words->output,
           "of cuda and memory the file, of cubin the directory");
  command->add_flag("--bias,!--no-bias", o.bias, "biases in linear layers and norms (default)");
  command->add_flag("--json", words->json, "time: as one JSON object");
  command->footer(examples);
  command->callback([words, &output] { output = run(*words); });
}

}  // namespace ein::command
