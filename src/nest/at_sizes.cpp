#include "nest/at_sizes.hpp"

#include "nest/attention.hpp"

namespace ein {

void put_sizes(LoopNest::Operand& operand, SizesAt& sizes) {
  sizes.put(operand.offset);
  for (Size& stride : operand.strides) sizes.put(stride);
  sizes.put(operand.indirection.stride);
  sizes.put(operand.indirection.size);
  sizes.put(operand.indirection.length);
}

void put_sizes(LoopNest& nest, SizesAt& sizes) {
  for (LoopNest::NestAxis& axis : nest.axes) sizes.put(axis.size);
  for (LoopNest::Operand& input : nest.inputs) put_sizes(input, sizes);
  put_sizes(nest.output, sizes);
  put_sizes(nest.body, sizes);
  put_sizes(nest.epilogue, sizes);
}

void put_sizes(Program::Result& result, SizesAt& sizes) {
  put_sizes(result.shape, sizes);
  put_sizes(result.strides, sizes);
  sizes.put(result.offset);
}

namespace {

void put_sizes(Attention& attention, SizesAt& sizes) {
  for (LoopNest::NestAxis& axis : attention.axes) sizes.put(axis.size);
  if (attention.reach) sizes.put(*attention.reach);
  for (auto* operand : {&attention.q, &attention.k, &attention.v, &attention.out})
    ein::put_sizes(*operand, sizes);
  if (attention.log_sums) ein::put_sizes(*attention.log_sums, sizes);
  if (!attention.gradients) return;
  Attention::Gradients& g = *attention.gradients;
  for (auto* operand : {&g.dout, &g.delta}) ein::put_sizes(*operand, sizes);
  for (auto* operand : {&g.dq, &g.dk, &g.dv}) {
    if (*operand) ein::put_sizes(**operand, sizes);
  }
}

}  // namespace

void put_sizes(Program& program, SizesAt& sizes) {
  for (Program::Buffer& buffer : program.buffers) sizes.put(buffer.elements);
  for (LoopNest& nest : program.nests) put_sizes(nest, sizes);
  for (Program::Result& result : program.results) put_sizes(result, sizes);
  for (Program::Group& group : program.groups) {
    sizes.put(group.blocks);
    sizes.put(group.at_once);
    if (!group.attention) continue;
    Attention attention = *group.attention;
    put_sizes(attention, sizes);
    group.attention = std::make_shared<const Attention>(std::move(attention));
  }
}

}  // namespace ein
