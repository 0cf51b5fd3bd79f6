#include "cuda/launches.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <utility>

#include <ein/error.hpp>

#include "codegen/units.hpp"
#include "cuda/collective.hpp"
#include "cuda/settings.hpp"
#include "cuda/tuner.hpp"
#include "graph/at_sizes.hpp"
#include "machine/fork.hpp"
#include "size/ask.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein::gpu {
namespace {

/// Fewer are launched as fast one by one.
constexpr std::size_t least_for_graph = 8;

}  // namespace

/// Launches of a plan that follow each other as a CUDA graph, with the grids and arguments that it
/// has. It is made when the plan runs for the second time; other lengths are other arguments.
struct Replay {
  std::mutex mutex;
  bool is_first = true, fails = false;
  std::unique_ptr<LaunchGraph> graph;
  struct Map {
    codegen::TensorMap of;
    std::uint64_t address = 0;
    codegen::EncodedTensorMap encoded{};
  };
  struct Kernel {
    std::array<unsigned, 3> grid{};
    std::vector<std::uint64_t> words;
    std::vector<Map> maps;
  };
  std::vector<Kernel> kernels;
};

struct LoadedKernels {
  LoadedKernels(const Program& program, Gpu& gpu) : gpu(gpu) {
    GpuTarget target = gpu.target();
    target.tf32 = settings().tf32;
    codegen::Emission emission;
    if (settings().tunes) {
      emission = [&](const auto&... group) { return Tuner(gpu).emit(group...); };
    }
    codegen::Units units =
        codegen::emit_units(program, target, codegen::kernels_per_unit, emission);
    modules = gpu.load(units.texts);
    for (std::size_t i = 0; i < units.launches.size(); ++i) {
      codegen::KernelSource& source = units.launches[i];
      functions.push_back(modules[units.unit_of[i]]->kernel(source.name, source.shared_bytes));
      checks_positions |= source.checks_positions;
      sources.push_back(std::move(source));
    }
    collectives = std::move(units.collectives);
    for (std::size_t i = 0; i <= collectives.size(); ++i) replays.emplace_back();
    for (const codegen::KernelSource& source : sources)
      kept.add(sizeof source + heap_bytes(source));
  }

  Gpu& gpu;
  std::vector<std::shared_ptr<Module>> modules;  // keep the kernels valid
  std::vector<void*> functions;
  std::vector<codegen::KernelSource> sources;  // of each function, with formulas
  bool checks_positions = false;               // whether a kernel does
  std::vector<std::pair<std::size_t, codegen::CollectiveSource>> collectives;
  std::deque<Replay> replays;  // of the kernels before each collective, and after the last
  KeptBytes kept{};
};

LaunchPlan::LaunchPlan(const Program& program, Gpu& gpu)
    : kernels_(std::make_shared<LoadedKernels>(program, gpu)) {}

std::unique_ptr<engine::Kernels> LaunchPlan::at(SizesAt& sizes) const {
  return std::make_unique<Launches>(kernels_, sizes);
}

Launches::Launches(std::shared_ptr<LoadedKernels> kernels, SizesAt& sizes)
    : loaded_(std::move(kernels)) {
  for (std::size_t k = 0; k < loaded_->sources.size(); ++k) {
    codegen::KernelSource source = at_sizes(loaded_->sources[k], sizes);
    workspace_bytes_ = std::max(workspace_bytes_, static_cast<std::size_t>(source.workspace_bytes));
    kept_.add(sizeof source + heap_bytes(source) + sizeof(Launch));
    kernels_.push_back({launch_of(loaded_->functions[k], source), std::move(source)});
  }
  for (const auto& [before, source] : loaded_->collectives)
    collectives_.emplace_back(before, at_sizes(source, sizes));
}

Arguments::Memory Launches::memory_of(const engine::Run& run) const {
  Gpu& gpu = loaded_->gpu;
  return {run.buffers, run.workspace, loaded_->checks_positions ? gpu.fault() : 0, run.random,
          gpu.driver().encoder(gpu.index())};
}

void Launches::run(const engine::Run& run) const {
  std::size_t first = 0;
  for (std::size_t c = 0; c < collectives_.size(); ++c) {
    const auto& [before, source] = collectives_[c];
    this->run(run, first, before, loaded_->replays[c]);
    start_collective(source, run, loaded_->gpu);
    first = before;
  }
  this->run(run, first, kernels_.size(), loaded_->replays.back());
}

void Launches::run(const engine::Run& run, std::size_t first, std::size_t last,
                   Replay& replay) const {
  if (last - first >= least_for_graph && start(replay, run, first, last)) return;
  const Arguments::Memory memory = memory_of(run);
  Arguments arguments;
  for (std::size_t k = first; k < last; ++k) {
    arguments.set(kernels_[k].source, memory);
    loaded_->gpu.stream().launch(kernels_[k].launch, arguments.addresses());
  }
}

void Launches::require_success(std::string_view call) const {
  if (!loaded_->checks_positions) return;
  if (const auto fault = loaded_->gpu.take_fault())
    throw Error(ErrorKind::value, std::string(call) + ": " + to_string(*fault));
}

/// Starts the graph with the lengths and arguments of this run. Whether it did: what fails
/// here is left to single launches, and to the errors that those meet.
bool Launches::start(Replay& replay, const engine::Run& run, std::size_t first,
                     std::size_t last) const {
  Gpu& gpu = loaded_->gpu;
  const NoForkLock lock(replay.mutex);
  if (replay.fails) return false;
  if (replay.is_first) {
    replay.is_first = false;
    return false;
  }
  try {
    const bool is_new = !replay.graph;
    if (is_new) {
      replay.graph = std::make_unique<LaunchGraph>(gpu.driver(), gpu.index());
      replay.kernels.resize(last - first);
    }
    Arguments::Memory memory = memory_of(run);
    std::vector<Replay::Map>* maps = nullptr;  // of the kernel at hand
    std::size_t next = 0;
    memory.encode = [&, encode = memory.encode](const codegen::TensorMap& map,
                                                std::uint64_t address) {
      if (next == maps->size()) maps->emplace_back();
      Replay::Map& last = (*maps)[next++];
      if (last.address != address || !(last.of == map)) last = {map, address, encode(map, address)};
      return last.encoded;
    };
    Arguments arguments;
    for (std::size_t k = 0; k < last - first; ++k) {
      const Kernel& kernel = kernels_[first + k];
      Replay::Kernel& known = replay.kernels[k];
      maps = &known.maps;
      next = 0;
      arguments.set(kernel.source, memory);
      if (is_new) {
        replay.graph->add(kernel.launch, arguments.addresses());
      } else if (known.words != arguments.words() || known.grid != kernel.launch.grid) {
        replay.graph->set(k, kernel.launch, arguments.addresses());
      }
      known.words = arguments.words();
      known.grid = kernel.launch.grid;
    }
    if (is_new) replay.graph->finish();
    gpu.stream().launch(*replay.graph);
    return true;
  } catch (const Error&) {
    replay.fails = true;
    return false;
  }
}

}  // namespace ein::gpu
