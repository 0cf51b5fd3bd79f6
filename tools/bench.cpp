// ein bench: how long a pattern takes on this machine.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include <ein/cost.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/hardware.hpp>
#include <ein/parallel.hpp>

#include "cost/scope.hpp"
#include "cuda/arguments.hpp"
#include "cuda/cubin_cache.hpp"
#include "cuda/driver.hpp"
#include "io/number.hpp"
#include "kernels.hpp"
#include "passes/complex.hpp"
#include "passes/contraction_order.hpp"
#include "program.hpp"
#include "report.hpp"
#include "runtime/call.hpp"
#include "runtime/complex.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein bench einsum 'b q d, b k d -> b q k' --shape 8,512,64 --shape 8,512,64
  ein bench einsum 'i k, k j -> i j' --shape 4096,4096 --shape 4096,4096 --dtype bf16 --device cuda
  ein bench rearrange 'b s (h d) -> b h s d' --shape 8,1024,1024 --axis h=16 --json

Operands are random numbers of mean 0, or random positions that their axis has. After a call or two
that do not count, calls are timed for a second: on the CPU each whole, results and all; on a GPU the
kernels of many calls between two events. The roofline's time is the least that the device's arithmetic
and memory allow; data that a cache holds can be faster than memory.

Exit code: 0; 2 for a mistake in the call, the pattern or the shapes; 1 for a missing GPU and the
rest.)";

struct BenchWords {
  CallWords call;
  std::string device = "cpu";
  bool json = false;
  bool tf32 = false, alternatives = false;
};

/// Seconds of one call, round by round.
struct Times {
  std::string device;
  std::optional<Hardware> limits;
  std::vector<double> seconds{};
};

struct Operand {
  OperandType type;
  std::optional<std::int64_t> below{};  // positions: the size of the axis that they are along
};

/// The input that the value is, maybe in another dtype or shape; nothing of others.
std::optional<ValueId> input_of(const Graph& graph, ValueId id) {
  for (;; id = graph.op(id).inputs[0]) {
    const Op& op = graph.op(id);
    if (op.kind == OpKind::input) return id;
    const bool is_converted = op.kind == OpKind::map && op.inputs.size() == 1 && op.expr.is_input();
    if (!is_converted && op.kind != OpKind::reindex) return std::nullopt;
  }
}

/// The operands, and which of them are positions along axes.
std::vector<Operand> operands_in(const Graph& graph, std::span<const OperandType> types) {
  std::vector<Operand> operands;
  for (const OperandType& type : types) operands.push_back({type});
  std::vector<std::size_t> number(graph.ops.size());  // of the inputs before each value
  for (std::size_t id = 1; id < number.size(); ++id)
    number[id] = number[id - 1] + (graph.ops[id - 1].kind == OpKind::input);
  for (const Op& op : graph.ops) {
    if (op.kind != OpKind::gather && op.kind != OpKind::scatter) continue;
    const std::optional<ValueId> positions = input_of(graph, op.inputs[1]);
    if (!positions || !is_integral(graph.op(*positions).dtype)) continue;
    const Shape& shape = op.kind == OpKind::gather ? graph.op(op.inputs[0]).shape : op.shape;
    const std::int64_t size = shape[static_cast<std::size_t>(op.dim)];
    Operand& operand = operands[number[static_cast<std::size_t>(*positions)]];
    operand.below = std::min(size, operand.below.value_or(size));
  }
  return operands;
}

/// Positions that the axis has; else numbers of mean 0 that every dtype has.
Tensor draw(const Operand& operand) {
  const auto& [shape, dtype] = operand.type;
  if (operand.below) {
    const int bits = static_cast<int>(8 * size_of(dtype)) - 1;  // that every dtype of this size has
    const double most = std::min(static_cast<double>(*operand.below), std::ldexp(1.0, bits));
    return (rand(shape, DType::f64) * most).to(dtype);
  }
  const Tensor x = randn(shape, DType::f32);
  return (is_floating(dtype) ? x : x * 4).to(dtype);
}

constexpr double seconds_to_spend = 1;

Times on_cpu(const Graph& graph, std::span<const Operand> drawn) {
  std::vector<Tensor> operands;
  for (const Operand& operand : drawn) operands.push_back(engine::as_real(draw(operand)));
  std::vector<const Tensor*> addresses;
  for (const Tensor& x : operands) addresses.push_back(&x);
  const auto plan = std::make_shared<const engine::Plan>("bench", graph, addresses, OrderOptions());
  Times times{"cpu, " + std::to_string(num_threads()) + " threads", measured_cpu()};
  const auto once = [&] {
    const auto begin = std::chrono::steady_clock::now();
    engine::run(*plan, addresses);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  once();
  once();
  for (double spent = 0; spent < seconds_to_spend && times.seconds.size() < 100'000;
       spent += times.seconds.back())
    times.seconds.push_back(once());
  return times;
}

/// The kernels of a program, loaded and ready.
class OnGpu {
 public:
  /// `alternative`: the number of the way to do the program's one nest; nothing for the usual way.
  OnGpu(int device, const Program& program, std::span<const Operand> operands, bool tf32 = false,
        std::optional<std::size_t> alternative = std::nullopt)
      : device_(device),
        info_(driver_.info(device)),
        stream_(driver_, device),
        begin_(driver_, device),
        end_(driver_, device) {
    gpu::require_supported(device, info_);
    if (const std::string why_not = gpu::why_not_on(driver_.version()); !why_not.empty())
      throw Error(ErrorKind::device, "cuda:" + std::to_string(device) + ": " + why_not);
    const std::string arch =
        "sm_" + std::to_string(10 * info_.major + info_.minor) + (info_.major >= 9 ? "a" : "");
    GpuTarget target = target_of(arch);
    target.sms = info_.sms;
    target.tf32 = tf32;
    if (alternative) {
      std::vector<codegen::Alternative> all = codegen::alternatives(program.nests.at(0), target);
      names_of_alternatives_.clear();
      for (const codegen::Alternative& each : all) names_of_alternatives_.push_back(each.name);
      kernels_ = in_one_unit(std::move(all.at(*alternative).kernels));
    } else {
      kernels_ = kernels_of(program, target);
    }
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Program::Buffer& buffer = program.buffers[b];
      const std::size_t bytes = static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype);
      buffers_.push_back(
          std::make_unique<gpu::DeviceMemory>(driver_, device, std::max<std::size_t>(bytes, 16)));
      addresses_.push_back(reinterpret_cast<std::byte*>(buffers_.back()->address()));
      if (b >= program.input_count) continue;
      const Tensor x = draw(operands[b]);
      stream_.copy_in(buffers_.back()->address(), x.raw_data(), bytes);
      stream_.synchronize();
    }
    std::size_t workspace = sizeof(codegen::KernelSource::Fault);
    for (const codegen::KernelSource& kernel : kernels_.sources)
      workspace = std::max<std::size_t>(workspace, kernel.workspace_bytes);
    workspace_ = std::make_unique<gpu::DeviceMemory>(driver_, device, workspace);
    if (kernels_.sources.empty()) return;
    const auto cache = gpu::CubinCache::of_user();
    const std::vector<gpu::Source> sources{{"kernels.cu", kernels_.text, arch}};
    module_ = std::make_unique<gpu::Module>(
        driver_, device, gpu::compile_all(sources, cache ? &*cache : nullptr).front().cubin);
  }

  /// Of all alternatives, if one was asked for.
  const std::vector<std::string>& names_of_alternatives() const { return names_of_alternatives_; }

  Times time(double seconds_to_spend) {
    Times times{"cuda, " + info_.name, find_hardware(info_.name, info_.sms)};
    double once = seconds_of(1);
    once = seconds_of(3) / 3;
    // Rounds long enough for the events' resolution of half a microsecond.
    const int calls = static_cast<int>(std::clamp(0.002 / std::max(once, 1e-7), 1.0, 1000.0));
    for (double spent = 0; spent < seconds_to_spend && times.seconds.size() < 1000;) {
      const double seconds = seconds_of(calls);
      spent += std::max(seconds, 1e-4);
      times.seconds.push_back(seconds / calls);
    }
    return times;
  }

 private:
  double seconds_of(int calls) {
    stream_.record(begin_);
    for (int i = 0; i < calls; ++i) {
      for (const codegen::KernelSource& kernel : kernels_.sources) launch(kernel);
    }
    stream_.record(end_);
    end_.wait();
    return end_.seconds_since(begin_);
  }

  void launch(const codegen::KernelSource& kernel) {
    arguments_.set(kernel, {addresses_,
                            reinterpret_cast<std::byte*>(workspace_->address()),
                            workspace_->address(),
                            {},
                            driver_.encoder(device_)});
    stream_.launch(module_->launch_of(kernel), arguments_.addresses());
  }

  gpu::Driver& driver_ = gpu::Driver::of_system();
  int device_;
  gpu::DeviceInfo info_;
  gpu::Stream stream_;
  gpu::Event begin_, end_;
  Kernels kernels_;
  std::vector<std::string> names_of_alternatives_;
  std::vector<std::unique_ptr<gpu::DeviceMemory>> buffers_;
  std::vector<std::byte*> addresses_;  // of the buffers
  gpu::Arguments arguments_;
  std::unique_ptr<gpu::DeviceMemory> workspace_;
  std::unique_ptr<gpu::Module> module_;
};

/// The number in "cuda" or "cuda:1"; nothing for "cpu".
std::optional<int> gpu_of(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  if (device == "cuda") return 0;
  if (device.starts_with("cuda:")) {
    const auto number = io::number_of<int>(std::string_view(device).substr(5));
    if (number && *number >= 0) return number;
  }
  throw UsageError("bench: --device '" + device +
                   "' is neither cpu nor cuda nor, of several GPUs, cuda:1");
}

std::string report(Times times, const Cost& cost, DType dtype, bool json) {
  std::sort(times.seconds.begin(), times.seconds.end());
  const double median = times.seconds[times.seconds.size() / 2], fastest = times.seconds.front();
  const double flops = cost.model.approximate() / median,
               bytes = cost.bytes().approximate() / median;
  std::optional<double> share;
  if (times.limits && (cost.model == Count(0) || times.limits->peak(dtype)))
    share = roofline(cost, *times.limits, dtype).seconds / median;
  if (json) {
    Json object;
    object.add("device", times.device);
    object.add("rounds", Count(static_cast<std::int64_t>(times.seconds.size())));
    object.add("median_seconds", median);
    object.add("fastest_seconds", fastest);
    object.add("flops_per_second", flops);
    object.add("bytes_per_second", bytes);
    if (share) object.add("roofline_share", *share);
    return object.text();
  }
  Table table({false, true});
  table.add({"device", times.device});
  table.add({"median", duration(median) + " of " +
                           grouped(Count(static_cast<std::int64_t>(times.seconds.size()))) +
                           " rounds"});
  table.add({"fastest", duration(fastest)});
  table.add({"arithmetic", with_prefix(flops, "FLOP/s")});
  table.add({"memory", with_prefix(bytes, "B/s")});
  table.add({"roofline",
             share ? shown(100 * *share) + " %" : "unknown: no peak is known of this device"});
  return table.text();
}

/// The time of each way to do the program's one nest.
std::string bench_alternatives(int device, const Program& program,
                               std::span<const Operand> operands, const Cost& cost, bool tf32) {
  if (program.nests.size() != 1)
    throw UsageError("bench: --alternatives is for a pattern that runs as one loop nest, not as " +
                     std::to_string(program.nests.size()));
  Table table({false, true, true});
  for (std::size_t i = 0, count = 1; i < count; ++i) {
    OnGpu alternative(device, program, operands, tf32, i);
    count = alternative.names_of_alternatives().size();
    Times times = alternative.time(seconds_to_spend / 5);
    std::sort(times.seconds.begin(), times.seconds.end());
    const double median = times.seconds[times.seconds.size() / 2];
    const std::string& name = alternative.names_of_alternatives()[i];
    table.add({name.empty() ? "the only way" : name, duration(median),
               with_prefix(cost.model.approximate() / median, "FLOP/s")});
  }
  return table.text();
}

std::string bench(const BenchWords& words) {
  const std::optional<int> gpu = gpu_of(words.device);
  const std::vector<OperandType> types = operands_of(words.call);
  if (types.empty()) throw UsageError("bench needs --shape, once for each operand");
  const Computation computation(words.call, types.size());
  if (computation.computes_nothing()) throw UsageError("bench: parse_shape computes nothing");
  const Graph graph = without_complex(computation.graph(types), "bench");
  const Program program = program_of(graph);
  if (program.nests.empty())
    return "nothing to time: the results are empty, or views of the operands\n";
  if (!gpu && (words.tf32 || words.alternatives))
    throw UsageError("bench: --tf32 and --alternatives are for --device cuda");
  const Cost of_graph = cost(order_contractions(graph));
  const std::vector<Operand> operands = operands_in(graph, types);
  if (words.alternatives) return bench_alternatives(*gpu, program, operands, of_graph, words.tf32);
  Times times = gpu ? OnGpu(*gpu, program, operands, words.tf32).time(seconds_to_spend)
                    : on_cpu(graph, operands);
  return report(std::move(times), of_graph, real_dtype(types[0].dtype), words.json);
}

}  // namespace

void add_bench(CLI::App& app, std::string& output) {
  CLI::App* command = app.add_subcommand("bench", "Time a pattern on the CPU or a GPU");
  const auto words = std::make_shared<BenchWords>();
  add_call(*command, words->call);
  add_operands(*command, words->call);
  add_word(*command, "--device", words->device,
           "cpu (the default), cuda, or cuda:1 of several GPUs")
      ->type_name("DEVICE");
  command->add_flag("--json", words->json, "as one JSON object");
  command->add_flag("--tf32", words->tf32,
                    "on a GPU, contractions of f32 by tensor cores, rounded to tf32");
  command->add_flag("--alternatives", words->alternatives,
                    "on a GPU, the times of all ways to do a contraction");
  command->footer(examples);
  command->callback([words, &output] { output = bench(*words); });
}

}  // namespace ein::command
