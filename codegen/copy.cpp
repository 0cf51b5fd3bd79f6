// Copies. Where neighbours in the source are not neighbours in the result, tiles go through shared
// memory, so that both sides are walked along their neighbours.
#include "codegen/elements.hpp"
#include "codegen/forms.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

/// The axis along which an operand's elements lie closest together.
std::size_t innermost(const LoopNest& nest, const LoopNest::Operand& operand) {
  std::size_t best = no_axis;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (is_one(nest.axes[a].size) || always_equal(operand.strides[a], 0)) continue;
    if (best == no_axis || magnitude(operand.strides[a]) < magnitude(operand.strides[best]))
      best = a;
  }
  return best;
}

Kernels emit_transpose(const LoopNest& nest, const Context& context, std::size_t from_axis,
                       std::size_t to_axis) {
  const std::size_t bytes = size_of(nest.output.dtype);
  const std::int64_t side = bytes <= 2 ? 64 : 32;  // a row of a tile is at least 64 bytes
  const std::string tile = std::to_string(side), step = std::to_string(block_threads / side);
  const std::string from_size = text_of(nest.axes[from_axis].size);
  const std::string to_size = text_of(nest.axes[to_axis].size);
  const Size from_tiles = ceil_div(nest.axes[from_axis].size, side);
  const Size to_tiles = ceil_div(nest.axes[to_axis].size, side);
  const AxisList others = by_stride(other_axes(nest, {from_axis, to_axis}), nest.output);

  Writer writer("transpose_" + std::string(name(nest.output.dtype)) + context.suffix, block_threads,
                is_narrow(nest));
  const std::string& index = writer.index_type();
  writer.input(nest, 0, moved_type(bytes));
  writer.output(nest, moved_type(bytes));
  // A column more keeps the elements of a column in different banks.
  writer.line("__shared__ Shared<" + moved_type(bytes) + "> tile[" + tile + "][" +
              std::to_string(side + 1) + "];");
  writer.line("const int column = threadIdx.x % " + tile + "u, row = threadIdx.x / " + tile + "u;");
  writer.block_number("block");
  writer.line("const " + index + " from_first = " + times(modulo("block", from_tiles), side) + ";");
  writer.line("const " + index +
              " to_first = " + times(modulo(divided("block", from_tiles), to_tiles), side) + ";");
  writer.indices(nest, others, divided("block", from_tiles * to_tiles));
  const auto walk = [&](const std::string& from_index, const std::string& to_index,
                        const std::string& statement) {
    writer.open(loop("int", "k", "row", tile, step));
    writer.line("const " + index + " " + axis_name(from_axis) + " = from_first + " + from_index +
                ";");
    writer.line("const " + index + " " + axis_name(to_axis) + " = to_first + " + to_index + ";");
    writer.line("if (" + axis_name(from_axis) + " < " + from_size + " && " + axis_name(to_axis) +
                " < " + to_size + ") " + statement);
    writer.close();
  };
  walk("column", "k", "tile[k][column] = x0[" + writer.place(nest.inputs[0]) + "];");
  writer.line("__syncthreads();");
  walk("k", "column", "y[" + writer.place(nest.output) + "] = tile[column][k];");
  return {writer.finish(from_tiles * to_tiles * size_of_axes(nest, others))};
}

}  // namespace

Kernels emit_copy(const LoopNest& nest, const Context& context) {
  const std::size_t from_axis = innermost(nest, nest.inputs[0]),
                    to_axis = innermost(nest, nest.output);
  constexpr std::int64_t worth_a_tile = 8;
  const bool is_transpose =
      only_moves(nest) && from_axis != no_axis && to_axis != no_axis && from_axis != to_axis &&
      !ask_equal(nest.inputs[0].strides[to_axis], 0) && nest.axes[from_axis].size >= worth_a_tile &&
      nest.axes[to_axis].size >= worth_a_tile;
  return is_transpose ? emit_transpose(nest, context, from_axis, to_axis) : emit_map(nest, context);
}

}  // namespace ein::codegen
