// How much of a training step is its matrix products: the step and these alone, by turns.
//
// usage: ein_step_bench [--model default|gpt2] [--dtype f32|bf16] [--rounds N] [--threads N]
// [--nests]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/parallel.hpp>
#include "../training_step.hpp"
#include "compile/operand.hpp"
#include "cpu/kernel.hpp"
#include "runtime/recording.hpp"

namespace {

using ein::LoopNest;
using ein::Program;
using ein::Tensor;
using Kernel = ein::host::Kernel;

struct Options {
  bool is_gpt2 = false;
  ein::DType dtype = ein::DType::f32;
  int rounds = 21;
  bool prints_nests = false;
};

/// The default model of `ein train` on 12 x 64 tokens, or GPT-2 124M on 4 x 256.
ein::nn::TransformerConfig config_of(const Options& options) {
  if (options.is_gpt2) return {};
  return {.vocab_size = 65, .block_size = 64, .n_layer = 4, .n_head = 4, .n_embd = 128};
}
ein::Shape batch_of(const Options& options) {
  return options.is_gpt2 ? ein::Shape{4, 256} : ein::Shape{12, 64};
}

bool is_product(const LoopNest& nest) {
  if (!nest.sums_products()) return false;
  // What has no rows and columns runs as other reductions do.
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (!nest.axes[a].reduced &&
        (nest.inputs[0].strides[a] == 0) != (nest.inputs[1].strides[a] == 0))
      return true;
  }
  return false;
}

/// What a group is, for the table.
std::string kind_of(const Program& program, const Program::Group& group) {
  const LoopNest& first = program.nests[group.first];
  const auto end = program.nests.begin() + static_cast<std::ptrdiff_t>(group.first + group.count);
  const bool has_product =
      std::any_of(end - static_cast<std::ptrdiff_t>(group.count), end, is_product);
  if (group.attention()) return "attention in tiles";
  if (group.count == 1 && is_product(first))
    return first.epilogue.steps.empty() ? "products" : "products with epilogues";
  if (has_product) return "groups of products and others";
  if (first.phase == ein::Phase::update) return "update";
  if (group.count > 1) return "groups of maps and reductions";
  if (first.is_gather() || first.is_scatter()) return "gathers and scatters";
  if (first.is_copy()) {
    return first.inputs[0].dtype == first.output.dtype ? "copies" : "casts";
  }
  return first.combine ? "reductions" : "maps";
}

/// A compiled training step in pieces: a kernel for each group, and one for each product alone.
class Step {
 public:
  explicit Step(const Options& options)
      : step_(config_of(options), options.dtype),
        arguments_{tokens(options), tokens(options)},
        recording_(recorded()),
        compiled_(recording_->graph, recording_->job()) {
    const Program& program = compiled_.program();
    allocate();
    for (const Program::Group& group : program.groups)
      add(kernels_, ein::host::make_kernel(program, group));
    for (std::size_t g = 0; g < program.groups.size(); ++g) {
      const Program::Group& group = program.groups[g];
      for (std::size_t n = group.first; n < group.first + group.count; ++n) {
        LoopNest nest = program.nests[n];
        if (!is_product(nest)) continue;
        nest.epilogue = {};
        nest.inputs.resize(2);
        simplify(nest);
        add(products_, ein::host::make_kernel(nest));
        group_of_product_.push_back(g);
      }
    }
    workspace_.resize(workspace_bytes_ / 64 + 1);
  }

  const Program& program() const { return compiled_.program(); }
  std::size_t products() const { return products_.size(); }
  /// Seconds of each group.
  std::vector<double> run() { return times_of(kernels_); }
  /// Seconds of each group's products alone.
  std::vector<double> run_products() {
    std::vector<double> of_groups(kernels_.size());
    const std::vector<double> times = times_of(products_);
    for (std::size_t i = 0; i < times.size(); ++i) of_groups[group_of_product_[i]] += times[i];
    return of_groups;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  using Kernels = std::vector<std::unique_ptr<Kernel>>;

  static Tensor tokens(const Options& options) {
    return (ein::rand(batch_of(options)) * static_cast<double>(config_of(options).vocab_size))
        .to(ein::DType::i64);
  }

  std::shared_ptr<const ein::engine::Recording> recorded() {
    const auto call = [](const void* step, std::span<const Tensor> x) {
      return std::vector<Tensor>{
          (*static_cast<bench::TrainingStep*>(const_cast<void*>(step)))(x[0], x[1])};
    };
    return std::make_shared<const ein::engine::Recording>(arguments_, nullptr, call, &step_);
  }

  /// Buffers lie as in a run of the compiled function. Those that there have no memory of their own
  /// get some for the products alone.
  void allocate() {
    const Program& program = compiled_.program();
    addresses_.assign(program.buffers.size(), nullptr);
    std::size_t input = 0;
    for (const std::vector<Tensor>* tensors : {&std::as_const(arguments_), &recording_->state}) {
      for (const Tensor& x : *tensors) addresses_[input++] = ein::engine::address_of(x);
    }
    ein::SizesAt sizes;
    const ein::Arena arena = arena_at(compiled_.memory(), sizes);
    std::byte* const memory = allocated(static_cast<std::size_t>(sizes(arena.bytes)));
    for (std::size_t i = 0; i < arena.offsets.size(); ++i) {
      addresses_[compiled_.memory().intermediate[i].buffer] =
          memory + static_cast<std::int64_t>(arena.offsets[i]);
    }
    for (std::size_t b = 0; b < addresses_.size(); ++b) {
      if (!addresses_[b])
        addresses_[b] = allocated(static_cast<std::size_t>(sizes(program.buffers[b].bytes())));
    }
  }
  std::byte* allocated(std::size_t bytes) {
    memory_.emplace_back(bytes / 64 + 1);
    return memory_.back()[0].bytes;
  }

  void add(Kernels& kernels, std::unique_ptr<Kernel> kernel) {
    workspace_bytes_ = std::max(workspace_bytes_, kernel->workspace_bytes(ein::num_threads()));
    kernels.push_back(std::move(kernel));
  }

  std::vector<double> times_of(const Kernels& kernels) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> times;
    for (const auto& kernel : kernels) {
      const auto begin = Clock::now();
      kernel->run({addresses_, workspace_[0].bytes, {}, ein::num_threads()});
      times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return times;
  }

  bench::TrainingStep step_;
  std::vector<Tensor> arguments_;
  std::shared_ptr<const ein::engine::Recording> recording_;
  ein::engine::Compiled compiled_;
  std::vector<std::byte*> addresses_;
  std::vector<std::vector<Line>> memory_;
  std::vector<Line> workspace_;
  std::size_t workspace_bytes_ = 0;
  Kernels kernels_, products_;
  std::vector<std::size_t> group_of_product_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// Times of one thing, a number for each round.
using Rounds = std::vector<double>;

void print_nests(const Program& program, const std::vector<Rounds>& groups,
                 const std::vector<Rounds>& products, double step) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double seconds = median(groups[g]);
    if (seconds < 0.002 * step) continue;
    const Program::Group& group = program.groups[g];
    std::printf("\n%.3f ms, products alone %.3f, group %zu: %s\n", seconds * 1e3,
                median(products[g]) * 1e3, g, kind_of(program, group).c_str());
    for (std::size_t n = group.first; n < group.first + group.count; ++n)
      std::printf("%s", to_string(program.nests[n]).c_str());
  }
}

void measure(const Options& options) {
  ein::manual_seed(1337);
  Step step(options);
  const std::vector<Program::Group>& groups = step.program().groups;
  std::vector<Rounds> of_groups(groups.size()), of_products(groups.size());
  Rounds steps, products, ratios;
  const auto add = [](std::vector<Rounds>& to, const std::vector<double>& times) {
    for (std::size_t g = 0; g < times.size(); ++g) to[g].push_back(times[g]);
    return std::accumulate(times.begin(), times.end(), 0.0);
  };
  step.run();  // the first touches new memory
  step.run_products();
  for (int round = 0; round < options.rounds; ++round) {
    steps.push_back(add(of_groups, step.run()));
    products.push_back(add(of_products, step.run_products()));
    ratios.push_back(steps.back() / products.back());
  }
  const double whole = median(steps);
  std::printf("%s, %s, %d threads, %zu products\n",
              options.is_gpt2 ? "GPT-2 124M, 4 x 256" : "default model, 12 x 64",
              std::string(name(options.dtype)).c_str(), ein::num_threads(), step.products());
  std::printf("step %.3f ms, its products alone %.3f ms, ratio %.3f\n", whole * 1e3,
              median(products) * 1e3, median(ratios));
  struct Kind {
    int groups = 0;
    double seconds = 0, products = 0;
  };
  std::map<std::string, Kind> kinds;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    Kind& kind = kinds[kind_of(step.program(), groups[g])];
    ++kind.groups;
    kind.seconds += median(of_groups[g]);
    kind.products += median(of_products[g]);
  }
  std::printf("   of the step                  products alone\n");
  for (const auto& [name, kind] : kinds) {
    std::printf("  %9.3f ms  %5.1f %%  %9.3f ms  %3d x %s\n", kind.seconds * 1e3,
                kind.seconds / whole * 100, kind.products * 1e3, kind.groups, name.c_str());
  }
  if (options.prints_nests) print_nests(step.program(), of_groups, of_products, whole);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool is_right = true;
  for (int i = 1; i < argc && is_right; ++i) {
    const std::string_view argument = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--nests") {
      options.prints_nests = true;
      continue;
    }
    const int number = std::atoi(std::string(value).c_str());
    const auto dtype = ein::parse_dtype(value);
    if (argument == "--model" && (value == "default" || value == "gpt2"))
      options.is_gpt2 = value == "gpt2";
    else if (argument == "--dtype" && dtype)
      options.dtype = *dtype;
    else if (argument == "--rounds" && number > 0)
      options.rounds = number;
    else if (argument == "--threads" && number > 0)
      ein::set_num_threads(number);
    else
      is_right = false;
    ++i;
  }
  if (!is_right) {
    std::fprintf(stderr,
                 "usage: ein_step_bench [--model default|gpt2] [--dtype f32|bf16] [--rounds N] "
                 "[--threads N] [--nests]\n");
    return 2;
  }
  measure(options);
  return 0;
}
