// Maps: a thread for each element of the result, or for a few neighbours.
#include <algorithm>

#include "codegen/elements.hpp"
#include "codegen/forms.hpp"
#include "size/ask.hpp"

namespace ein::codegen {

Kernels emit_map(const LoopNest& nest, const Context& context) {
  const bool writes_at_position = nest.writes_at_position();
  const bool moves = only_moves(nest) || nest.is_gather() || writes_at_position;
  const AxisList axes = by_stride(other_axes(nest, {}), nest.output);

  std::vector<const LoopNest::Operand*> operands{&nest.output};
  bool is_indirect = writes_at_position;
  for (std::size_t i : inputs_of(nest.body)) {
    operands.push_back(&nest.inputs[i]);
    is_indirect |= nest.inputs[i].is_indirect();
  }
  Pack pack = pack_along(nest, axes.empty() ? no_axis : axes.back(), operands, true);
  if (pack.width > 1) {
    // Neighbours that are read or written at once share their position, and are not the same
    // element.
    bool splits = !ask_equal(nest.output.strides[pack.axis], 1);
    for (std::size_t i : inputs_of(nest.body)) {
      const int p = nest.inputs[i].indirection.positions;
      splits |=
          p >= 0 && !ask_equal(nest.inputs[static_cast<std::size_t>(p)].strides[pack.axis], 0);
    }
    if (splits) pack = {};
  }

  Writer writer((nest.is_gather()     ? "gather_"
                 : writes_at_position ? "place_"
                 : only_moves(nest)   ? "copy_"
                                      : "map_") +
                    std::string(name(nest.output.dtype)) + context.suffix,
                block_threads, is_narrow(nest));
  const std::string type =
      moves ? moved_type(size_of(nest.output.dtype)) : element_type(nest.output.dtype);
  declare_inputs(writer, nest, moves);
  writer.output(nest, type);
  if (is_indirect) writer.fault();

  const Size elements = size_of_axes(nest, axes);
  writer.thread_number("element", block_threads, pack.width);
  writer.line("if (element >= " + count(elements) + ") return;");
  writer.indices(nest, axes, "element");
  const std::string remaining = count(elements) + " - element";
  ElementText at{write_loads(writer, nest, pack, moves, remaining, "return")};
  // A call with another number, such as a learning rate, finds the kernel of those before it.
  at.has_constants_as_arguments = true;
  at.place = writes_at_position ? moved_place(writer, nest, nest.output, "p", "return")
                                : writer.place(nest.output);
  const std::string place = at.place;
  if (pack.width > 1) {
    const std::string width = std::to_string(pack.width);
    std::string result = "a0";
    if (!moves || at.inputs[0] != "a0[j]") {
      result = "r";
      writer.line((moves ? type : element_type(nest.compute)) + " r[" + width + "];");
      writer.open_unrolled("for (int j = 0; j < " + width + "; ++j) {");
      at.place += " + j";
      at.moved_axis = pack.axis;
      at.moved_index = axis_name(pack.axis) + " + j";
      writer.line("r[j] = " + write_expression(writer, nest.body, nest.compute, at) + ";");
      writer.close();
    }
    writer.line("store(" + added("y", place) + ", " + result +
                (pack.is_ragged ? ", " + remaining : "") + ");");
  } else {
    const std::string value = write_expression(writer, nest.body, nest.compute, at);
    writer.line("y[" + place +
                "] = " + (moves ? value : converted(value, nest.compute, nest.output.dtype)) + ";");
  }
  return {writer.finish(ceil_div(ceil_div(elements, pack.width), block_threads))};
}

}  // namespace ein::codegen
