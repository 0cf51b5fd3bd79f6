#include "cuda/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>

#include <ein/error.hpp>

#include "codegen/writer.hpp"
#include "cuda/arguments.hpp"
#include "cuda/cubin_cache.hpp"
#include "graph/at_sizes.hpp"
#include "size/ask.hpp"

namespace ein::gpu {
namespace {

/// A floating dtype's bits of sign and mantissa, and the exponent of numbers from 1/2 to 1.
struct Bits {
  std::uint64_t random, set;
};
Bits bits_of(DType dtype) {
  if (!is_floating(dtype)) return {1, 0};
  const Finfo format = finfo(dtype);
  const int mantissa = -std::ilogb(format.eps), exponent = format.bits - 1 - mantissa;
  const std::uint64_t sign = std::uint64_t{1} << (format.bits - 1);
  const std::uint64_t exponent_of_half = (std::uint64_t{1} << (exponent - 1)) - 2;
  return {sign | ((std::uint64_t{1} << mantissa) - 1), exponent_of_half << mantissa};
}

/// Random numbers: how much power a product takes, and so the clock, depends on the bits.
std::vector<std::byte> random_elements(DType dtype, std::size_t bytes) {
  std::mt19937_64 random(1);
  std::vector<std::byte> elements(bytes);
  const Bits bits = bits_of(dtype);
  for (std::size_t at = 0; at < bytes; at += size_of(dtype)) {
    const std::uint64_t element = (random() & bits.random) | bits.set;
    std::memcpy(elements.data() + at, &element, size_of(dtype));
  }
  return elements;
}

/// Memory as a nest wants it.
class Scratch {
 public:
  Scratch(Gpu& gpu, const LoopNest& nest, std::size_t workspace_bytes) : gpu_(gpu) {
    std::map<int, std::size_t> bytes;
    std::map<int, DType> dtypes;
    const auto add = [&](const LoopNest::Operand& operand) {
      Size end = operand.offset + 1;
      for (std::size_t a = 0; a < nest.axes.size(); ++a)
        end += std::max<Size>(0, operand.strides[a]) * (nest.axes[a].size - 1);
      std::size_t& most = bytes[operand.buffer];
      most = std::max(most, static_cast<std::size_t>(end) * size_of(operand.dtype));
      dtypes[operand.buffer] = operand.dtype;
    };
    add(nest.output);
    for (const LoopNest::Operand& input : nest.inputs) add(input);
    addresses_.resize(static_cast<std::size_t>(bytes.rbegin()->first) + 1, nullptr);
    for (const auto& [buffer, size] : bytes) {
      std::byte* const address = take(size);
      addresses_[static_cast<std::size_t>(buffer)] = address;
      constexpr std::size_t piece = std::size_t{1} << 20;
      const std::vector<std::byte> elements =
          random_elements(dtypes[buffer], std::min(size, piece));
      for (std::size_t at = 0; at < size; at += piece)
        gpu.copy_in(reinterpret_cast<std::uint64_t>(address) + at, elements.data(),
                    std::min(piece, size - at));
    }
    workspace_ = take(std::max<std::size_t>(workspace_bytes, 16));
  }
  ~Scratch() {
    for (auto& [block, bytes] : blocks_) gpu_.memory().give_back(std::move(block), bytes);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Arguments::Memory memory() const {
    return {addresses_, workspace_, 0, {}, gpu_.driver().encoder(gpu_.index())};
  }

 private:
  std::byte* take(std::size_t bytes) {
    blocks_.emplace_back(gpu_.memory().take(bytes), bytes);
    return reinterpret_cast<std::byte*>(blocks_.back().first->address());
  }

  Gpu& gpu_;
  std::vector<std::pair<MemoryPool::Block, std::size_t>> blocks_;
  std::vector<std::byte*> addresses_;
  std::byte* workspace_ = nullptr;
};

/// Seconds of an alternative, the least of a few rounds.
double seconds_of(Gpu& gpu, const codegen::Alternative& alternative,
                  const Arguments::Memory& memory) {
  std::vector<std::string> texts;
  for (const codegen::KernelSource& kernel : alternative.kernels) texts.push_back(kernel.text);
  const std::vector<std::shared_ptr<Module>> modules = gpu.load(texts);
  std::vector<Launch> launches;
  std::vector<Arguments> arguments(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const codegen::KernelSource& kernel = alternative.kernels[i];
    launches.push_back(modules[i]->launch_of(kernel));
    arguments[i].set(kernel, memory);
  }
  Event begin(gpu.driver(), gpu.index()), end(gpu.driver(), gpu.index());
  const auto seconds_of_calls = [&](int calls) {
    gpu.stream().record(begin);
    for (int call = 0; call < calls; ++call) {
      for (std::size_t i = 0; i < launches.size(); ++i)
        gpu.stream().launch(launches[i], arguments[i].addresses());
    }
    gpu.stream().record(end);
    end.wait();
    return end.seconds_since(begin) / calls;
  };
  // Rounds long enough for the events' resolution of half a microsecond.
  constexpr double round_seconds = 1e-3;
  seconds_of_calls(1);
  const double once = seconds_of_calls(1);
  const int calls = static_cast<int>(std::clamp(round_seconds / std::max(once, 1e-7), 1.0, 100.0));
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 3; ++round) least = std::min(least, seconds_of_calls(calls));
  return least;
}

/// What a choice depends on, in the form of the cache's keys.
Source key_of(Gpu& gpu, const std::vector<codegen::Alternative>& alternatives) {
  Source key{.name = "tuned", .text = {}, .options = {}};
  key.options = {gpu.driver().info(gpu.index()).name,
                 "driver " + to_string(gpu.driver().version())};
  for (const codegen::Alternative& alternative : alternatives) {
    key.text += alternative.name + "\n";
    for (const codegen::KernelSource& kernel : alternative.kernels)
      key.text += to_string(kernel.blocks) + "\n" + kernel.text.substr(kernel.kernel_begin);
    for (const codegen::KernelSource& kernel : alternative.kernels) {
      for (Size size : kernel.sizes) key.text += to_string(size) + "\n";
    }
  }
  return key;
}

}  // namespace

std::size_t Tuner::time_all(const LoopNest& nest,
                            const std::vector<codegen::Alternative>& alternatives) {
  std::size_t fastest = 0;
  Size workspace_bytes = 0;
  for (const codegen::Alternative& alternative : alternatives) {
    for (const codegen::KernelSource& kernel : alternative.kernels)
      workspace_bytes = std::max(workspace_bytes, kernel.workspace_bytes);
  }
  const Scratch scratch(gpu_, nest, static_cast<std::size_t>(workspace_bytes));
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const double seconds = seconds_of(gpu_, alternatives[i], scratch.memory());
    if (seconds < least) fastest = i;
    least = std::min(least, seconds);
  }
  return fastest;
}

std::size_t Tuner::fastest(const LoopNest& nest,
                           const std::vector<codegen::Alternative>& alternatives) {
  const std::optional<CubinCache>& cache = CubinCache::of_process();
  const Source key = key_of(gpu_, alternatives);
  if (const std::optional<Cubin> known = cache ? cache->find(key) : std::nullopt) {
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
      if (alternatives[i].name == known->image) return i;
    }
  }
  std::size_t fastest = 0;
  try {
    fastest = time_all(nest, alternatives);
    if (cache) cache->put(key, {.image = alternatives[fastest].name, .log = {}});
  } catch (const Error&) {
    // Too little memory for a trial, or a full disk: what is known is good enough.
  }
  return fastest;
}

std::vector<codegen::KernelSource> Tuner::emit(const Program& program, const Program::Group& group,
                                               const GpuTarget& target, std::string_view suffix) {
  if (group.count == 1 && !group.repeated()) {
    const LoopNest& nest = program.nests[group.first];
    std::vector<codegen::Alternative> all = codegen::alternatives(nest, target);
    if (all.size() > 1) {
      // For a plan of many lengths those are timed that it is made for.
      SizesAt sizes(SizeScope::active() ? SizeScope::active()->values() : SizeValues{});
      for (codegen::Alternative& alternative : all) {
        for (codegen::KernelSource& kernel : alternative.kernels) put_sizes(kernel, sizes);
      }
      codegen::Alternative chosen = std::move(
          codegen::alternatives(nest, target, suffix)[fastest(at_sizes(nest, sizes), all)]);
      for (codegen::KernelSource& kernel : chosen.kernels)
        codegen::unrestrict_shared(kernel, codegen::memory_of(program));
      return std::move(chosen.kernels);
    }
  }
  return codegen::emit(program, group, target, suffix);
}

}  // namespace ein::gpu
