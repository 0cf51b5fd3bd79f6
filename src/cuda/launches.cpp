#include "cuda/launches.hpp"

#include <algorithm>
#include <map>

#include <ein/error.hpp>

#include "codegen/units.hpp"
#include "cuda/settings.hpp"
#include "cuda/tuner.hpp"
#include "tensor/fork.hpp"

namespace ein::gpu {
namespace {

/// Fewer are launched as fast one by one.
constexpr std::size_t least_for_graph = 8;

}  // namespace

/// The launches as a graph, with the arguments that it has.
struct Launches::Replay {
  std::mutex mutex;
  bool is_first = true, fails = false;
  std::unique_ptr<LaunchGraph> graph;
  std::vector<std::vector<std::uint64_t>> words;  // of each kernel
  struct Encoded {
    std::uint64_t address = 0;
    codegen::EncodedTensorMap map{};
  };
  std::map<const codegen::TensorMap*, Encoded> maps{};  // as the last run had them
};

Launches::Launches(const Program& program, Gpu& gpu) : gpu_(gpu) {
  GpuTarget target = gpu.target();
  target.tf32 = settings().tf32;
  codegen::Emission emission;
  if (settings().tunes) {
    emission = [&](const auto&... group) { return Tuner(gpu).emit(group...); };
  }
  codegen::Units units = codegen::emit_units(program, target, codegen::kernels_per_unit, emission);
  modules_ = gpu.load(units.texts);
  for (std::size_t i = 0; i < units.launches.size(); ++i) {
    codegen::KernelSource& source = units.launches[i];
    const Launch launch = modules_[units.unit_of[i]]->launch_of(source);
    workspace_bytes_ = std::max(workspace_bytes_, source.workspace_bytes);
    checks_positions_ |= source.checks_positions;
    kernels_.push_back({launch, std::move(source)});
  }
  if (kernels_.size() >= least_for_graph) replay_ = std::make_unique<Replay>();
}

Launches::~Launches() = default;

Arguments::Memory Launches::memory_of(const engine::Run& run) const {
  return {run.buffers, run.workspace, checks_positions_ ? gpu_.fault() : 0, run.random,
          gpu_.driver().encoder(gpu_.index())};
}

void Launches::run(const engine::Run& run) const {
  if (replay_ && replay(run)) return;
  const Arguments::Memory memory = memory_of(run);
  Arguments arguments;
  for (const Kernel& kernel : kernels_) {
    arguments.set(kernel.source, memory);
    gpu_.stream().launch(kernel.launch, arguments.addresses());
  }
}

void Launches::require_success(std::string_view call) const {
  if (!checks_positions_) return;
  if (const auto fault = gpu_.take_fault())
    throw Error(ErrorKind::value, std::string(call) + ": " + to_string(*fault));
}

/// Starts the graph, made at the second run, with the arguments of this one. Whether it did: what
/// fails here is left to single launches, and to the errors that those meet.
bool Launches::replay(const engine::Run& run) const {
  Replay& replay = *replay_;
  const NoForkLock lock(replay.mutex);
  if (replay.fails) return false;
  if (replay.is_first) {
    replay.is_first = false;
    return false;
  }
  try {
    const bool is_new = !replay.graph;
    if (is_new) {
      replay.graph = std::make_unique<LaunchGraph>(gpu_.driver(), gpu_.index());
      replay.words.resize(kernels_.size());
    }
    Arguments::Memory memory = memory_of(run);
    memory.encode = [&replay, encode = memory.encode](const codegen::TensorMap& map,
                                                      std::uint64_t address) {
      const auto [last, is_new] = replay.maps.try_emplace(&map);
      if (is_new || last->second.address != address) last->second = {address, encode(map, address)};
      return last->second.map;
    };
    Arguments arguments;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      const Kernel& kernel = kernels_[k];
      arguments.set(kernel.source, memory);
      if (is_new) {
        replay.graph->add(kernel.launch, arguments.addresses());
      } else if (replay.words[k] != arguments.words()) {
        replay.graph->set(k, kernel.launch, arguments.addresses());
      }
      replay.words[k] = arguments.words();
    }
    if (is_new) replay.graph->finish();
    gpu_.stream().launch(*replay.graph);
    return true;
  } catch (const Error&) {
    replay.fails = true;
    return false;
  }
}

}  // namespace ein::gpu
