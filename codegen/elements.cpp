#include "codegen/elements.hpp"

#include <algorithm>

#include "size/ask.hpp"

namespace ein::codegen {

void declare_inputs(Writer& writer, const LoopNest& nest, bool moves) {
  const std::vector<std::size_t> evaluated = inputs_of(nest.body);
  std::vector<std::size_t> positions;
  for (std::size_t i : evaluated) {
    if (nest.inputs[i].is_indirect()) {
      positions.push_back(static_cast<std::size_t>(nest.inputs[i].indirection.positions));
    }
  }
  if (nest.writes_at_position())
    positions.push_back(static_cast<std::size_t>(nest.output.indirection.positions));
  for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
    const bool is_value = std::count(evaluated.begin(), evaluated.end(), i) > 0;
    if (!is_value && std::count(positions.begin(), positions.end(), i) == 0) continue;
    writer.input(nest, i,
                 moves && is_value ? moved_type(size_of(nest.inputs[i].dtype))
                                   : element_type(nest.inputs[i].dtype));
  }
}

std::string inside_axis(const std::string& position, const LoopNest::Indirection& axis) {
  return "is_inside(" + position + ", " + text_of(axis.size) + ", fault" +
         (is_one(axis.length) && axis.parts == 1 ? "" : ", " + text_of(axis.length)) +
         (axis.parts == 1 ? "" : ", " + std::to_string(axis.parts)) + ")";
}

std::string moved_place(Writer& writer, const LoopNest& nest, const LoopNest::Operand& operand,
                        const std::string& position, const std::string& otherwise) {
  const auto p = static_cast<std::size_t>(operand.indirection.positions);
  writer.line("const i64 " + position + " = " + input_name(p) + "[" + writer.place(nest.inputs[p]) +
              "];");
  writer.line("if (!" + inside_axis(position, operand.indirection) + ") " + otherwise + ";");
  return added(
      writer.index_type() + "(" + position + ") * " + writer.number(operand.indirection.stride),
      writer.place(operand));
}

std::vector<std::string> write_loads(Writer& writer, const LoopNest& nest, const Pack& pack,
                                     bool moves, const std::string& remaining,
                                     const std::string& otherwise) {
  std::vector<std::string> values(nest.inputs.size());
  for (std::size_t i : inputs_of(nest.body)) {
    const LoopNest::Operand& input = nest.inputs[i];
    const std::string type = moves ? moved_type(size_of(input.dtype)) : element_type(nest.compute);
    const std::string digits = std::to_string(i);
    const std::string place = input.is_indirect()
                                  ? moved_place(writer, nest, input, "p" + digits, otherwise)
                                  : writer.place(input);
    values[i] = "a" + digits;
    if (pack.width > 1 && ask_equal(input.strides[pack.axis], 1)) {
      writer.line(type + " " + values[i] + "[" + std::to_string(pack.width) + "];");
      writer.line("load(" + values[i] + ", " + added(input_name(i), place) +
                  (pack.is_ragged ? ", " + remaining : "") + ");");
      values[i] += "[j]";
      continue;
    }
    const std::string element = input_name(i) + "[" + place + "]";
    writer.line("const " + type + " " + values[i] + " = " +
                (moves ? element : converted(element, input.dtype, nest.compute)) + ";");
  }
  return values;
}

}  // namespace ein::codegen
