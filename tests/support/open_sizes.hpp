// Nests and programs whose numbers are names, as those that are compiled for any length have them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codegen/emit.hpp"
#include "graph/at_sizes.hpp"
#include "nest/attention.hpp"
#include "nest/nest.hpp"
#include "size/size_scope.hpp"

namespace ein::test {

/// Gives each number but 0 and 1 a name; equal ones have the same.
class NamedNumbers {
 public:
  const SizeValues& values() const { return values_; }

  void open(Size& size) {
    const std::int64_t number = size < 0 ? -size : size;
    if (number < 2) return;
    const Size name = Size::named("n" + std::to_string(number));
    bool is_known = false;
    for (const auto& [known, value] : values_) is_known |= value == number;
    if (!is_known) values_.emplace_back(name, number);
    size = size < 0 ? -name : name;
  }
  void open(LoopNest::Operand& operand) {
    open(operand.offset);
    for (Size& stride : operand.strides) open(stride);
    open(operand.indirection.stride);
    open(operand.indirection.size);
    open(operand.indirection.length);
  }
  void open(LoopNest& nest) {
    for (LoopNest::NestAxis& axis : nest.axes) open(axis.size);
    for (LoopNest::Operand& input : nest.inputs) open(input);
    open(nest.output);
  }
  /// All but the sizes of heads, which kernels are made for.
  void open(Attention& a) {
    for (std::size_t i = 0; i + 2 < a.axes.size(); ++i) open(a.axes[i].size);
    if (a.reach) open(*a.reach);
    for (LoopNest::Operand* operand : {&a.q, &a.k, &a.v, &a.out}) open(*operand);
    if (a.log_sums) open(*a.log_sums);
    if (!a.gradients) return;
    for (LoopNest::Operand* operand : {&a.gradients->dout, &a.gradients->delta}) open(*operand);
    for (auto* operand : {&a.gradients->dq, &a.gradients->dk, &a.gradients->dv}) {
      if (*operand) open(**operand);
    }
  }
  void open(Program& program) {
    for (Program::Buffer& buffer : program.buffers) open(buffer.elements);
    for (LoopNest& nest : program.nests) open(nest);
    for (Program::Group& group : program.groups) {
      if (!group.attention()) continue;
      Attention attention = *group.attention();
      open(attention);
      group.form = std::make_shared<const Attention>(std::move(attention));
    }
  }

 private:
  SizeValues values_;
};

/// Bytes that such a kernel may spill, as each of its sizes takes a register: eight of them.
inline constexpr int spilled_sizes = 32;

/// The kernels that `emit` makes of a nest or program whose numbers are arguments, for these
/// numbers.
template <class T, class Emit>
std::vector<codegen::KernelSource> emitted_open(T of, const Emit& emit) {
  NamedNumbers open;
  open.open(of);
  std::vector<codegen::KernelSource> kernels;
  {
    const SizeScope scope(open.values(), SizeScope::Reading::is_guard);
    kernels = emit(of);
  }
  SizesAt sizes(open.values());
  for (codegen::KernelSource& kernel : kernels) put_sizes(kernel, sizes);
  return kernels;
}

}  // namespace ein::test
