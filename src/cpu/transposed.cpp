// Maps and reductions some of whose inputs lie across the others: those are first turned, by tiles. Walked as they
// lie, each of their elements would take a cache line of its own.
#include <algorithm>
#include <cstdlib>

#include "cpu/cache.hpp"
#include "cpu/kernel.hpp"
#include "cpu/small_array.hpp"

namespace ein::host {
namespace {

/// Fewer elements stay in the second-level cache however they are walked.
constexpr std::int64_t least_elements = 1 << 15;
constexpr std::int64_t least_size = 16;

/// The axis along which an operand's neighbours lie; none where it has a single element.
std::size_t innermost(const LoopNest& nest, const LoopNest::Operand& operand) {
  std::size_t best = nest.axes.size();
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (operand.strides[a] == 0 || nest.axes[a].size < 2) continue;
    if (best == nest.axes.size() || std::abs(operand.strides[a]) < std::abs(operand.strides[best])) best = a;
  }
  return best;
}

bool is_transposed(const LoopNest& nest, const LoopNest::Operand& input, const LoopNest::Operand& guide) {
  const std::size_t along = innermost(nest, guide), own = innermost(nest, input);
  if (input.is_indirect() || along == nest.axes.size() || own == nest.axes.size() || own == along) return false;
  const auto bytes = static_cast<std::int64_t>(size_of(input.dtype));
  std::int64_t elements = 1;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (input.strides[a] != 0) elements *= nest.axes[a].size;
  }
  return elements >= least_elements && nest.axes[own].size >= least_size && nest.axes[along].size >= least_size &&
         std::abs(input.strides[own]) * bytes < line_bytes && std::abs(input.strides[along]) * bytes >= line_bytes;
}

class TransposedKernel final : public Kernel {
 public:
  TransposedKernel(LoopNest nest, const LoopNest::Operand& guide, const std::vector<std::size_t>& inputs) {
    std::vector<std::size_t> order(nest.axes.size());
    for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return std::abs(guide.strides[a]) > std::abs(guide.strides[b]); });
    // Each operand of the kernel that does the work has a buffer of its own.
    for (std::size_t i = 0; i <= nest.inputs.size(); ++i) {
      LoopNest::Operand& operand = i < nest.inputs.size() ? nest.inputs[i] : nest.output;
      buffers_.push_back(static_cast<std::size_t>(operand.buffer));
      operand.buffer = static_cast<int>(i);
    }
    for (std::size_t i : inputs) {
      LoopNest::Operand& input = nest.inputs[i];
      LoopNest turn;
      turn.compute = nest.compute;
      turn.body = Ex::input(0);
      LoopNest::Operand from = input, to{.buffer = 1, .dtype = input.dtype};
      from.buffer = 0;
      from.strides.clear();
      std::int64_t stride = 1;
      std::vector<std::int64_t> strides(nest.axes.size(), 0);
      for (std::size_t k = order.size(); k-- > 0;) {
        const std::size_t a = order[k];
        if (input.strides[a] == 0) continue;
        strides[a] = stride;
        turn.axes.push_back({nest.axes[a].name, nest.axes[a].size});
        from.strides.push_back(input.strides[a]);
        to.strides.push_back(stride);
        stride *= nest.axes[a].size;
      }
      turn.inputs = {from};
      turn.output = to;
      simplify(turn);
      turns_.push_back({i, aligned_bytes(static_cast<std::size_t>(stride) * size_of(input.dtype)), make_kernel(turn)});
      input = {.buffer = input.buffer, .dtype = input.dtype, .strides = std::move(strides)};
    }
    kernel_ = make_kernel(nest);
  }

  std::size_t workspace_bytes(int threads) const override {
    std::size_t bytes = aligned_bytes(kernel_->workspace_bytes(threads));
    for (const Turn& turn : turns_) bytes += turn.bytes;
    return bytes;
  }

  void run(const Run& run) const override {
    SmallArray<std::byte*, 16> buffers(buffers_.size());
    for (std::size_t o = 0; o < buffers_.size(); ++o) buffers[o] = run.buffers[buffers_[o]];
    std::byte* free = run.workspace;
    for (const Turn& turn : turns_) {
      std::byte* const ends[] = {buffers[turn.operand], free};
      turn.kernel->run({ends});
      buffers[turn.operand] = free;
      free += turn.bytes;
    }
    kernel_->run({buffers, free, run.random, run.threads});
  }

 private:
  struct Turn {
    std::size_t operand;
    std::size_t bytes;  // of the turned copy
    std::unique_ptr<Kernel> kernel;
  };
  std::vector<Turn> turns_;
  std::vector<std::size_t> buffers_;  // of each operand, the output last
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

std::unique_ptr<Kernel> make_transposed_kernel(const LoopNest& nest) {
  const LoopNest::Operand& guide = nest.combine && !nest.inputs.empty() ? nest.inputs[0] : nest.output;
  std::vector<std::size_t> inputs;
  for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
    if (is_transposed(nest, nest.inputs[i], guide)) inputs.push_back(i);
  }
  return inputs.empty() ? nullptr : std::make_unique<TransposedKernel>(nest, guide, inputs);
}

}  // namespace ein::host
