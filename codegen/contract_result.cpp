// What becomes of a contraction's sums: the epilogue, and the result.
#include <algorithm>

#include "codegen/contract.hpp"
#include "size/ask.hpp"
#include "size/size_arithmetic.hpp"

namespace ein::codegen {
namespace {

/// Reads what the epilogue wants at the indices at hand; the sum is `sum`.
ElementText write_epilogue_loads(Writer& w, const LoopNest& nest, const Pack& pack,
                                 const std::string& sum, const std::string& remaining = "") {
  LoopNest reading = nest;
  reading.body = nest.epilogue;
  std::erase_if(reading.body.steps, [](const ScalarStep& step) {
    return step.op != ScalarOp::input || step.which == 0;
  });
  ElementText at{write_loads(w, reading, pack, false, remaining, "continue")};
  at.inputs[0] = sum;
  at.place = w.place(nest.output);
  return at;
}

/// Columns that a lane stores at once. Of a single axis the last ones may be fewer.
Pack pack_of_columns(const LoopNest& nest, const ContractRoles& roles,
                     const std::vector<const LoopNest::Operand*>& operands) {
  if (roles.columns.empty()) return {};
  const std::size_t axis = roles.columns.back();
  const Size size = nest.axes[axis].size;
  if (roles.columns.size() > 1 || !size.is_number()) return pack_along(nest, axis, operands, false);
  LoopNest rounded = nest;
  rounded.axes[axis].size = round_up(size, 16);
  Pack pack = pack_along(rounded, axis, operands, false);
  pack.is_ragged = !ask_equal(size % pack.width, 0);
  return pack;
}

std::string write_epilogue(Writer& w, const LoopNest& nest, const ElementText& at) {
  if (nest.epilogue.steps.empty()) return at.inputs[0];
  return write_expression(w, nest.epilogue, nest.compute, at);
}

}  // namespace

std::vector<std::size_t> epilogue_inputs(const LoopNest& nest) {
  std::vector<std::size_t> inputs = inputs_of(nest.epilogue);
  std::erase(inputs, std::size_t{0});
  return inputs;
}

std::string write_finished(Writer& w, const LoopNest& nest, const std::string& value) {
  return write_epilogue(w, nest, write_epilogue_loads(w, nest, {}, value));
}

void declare_operands(Writer& w, const LoopNest& nest, const std::vector<std::size_t>& by_address) {
  std::vector<std::size_t> inputs = epilogue_inputs(nest);
  inputs.insert(inputs.end(), by_address.begin(), by_address.end());
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  for (std::size_t i : inputs) w.input(nest, i, element_type(nest.inputs[i].dtype));
  w.output(nest, element_type(nest.output.dtype));
}

void write_element(Writer& w, const LoopNest& nest, const std::string& value) {
  const std::string result = write_finished(w, nest, value);
  w.line("y[" + w.place(nest.output) + "] = " + converted(result, nest.compute, nest.output.dtype) +
         ";");
}

void write_part(Writer& w, const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                std::int64_t columns, const std::string& m, const std::string& n) {
  std::vector<const LoopNest::Operand*> operands{&nest.output};
  for (std::size_t i : epilogue_inputs(nest)) operands.push_back(&nest.inputs[i]);
  Pack pack = pack_of_columns(nest, roles, operands);
  if (pack.width > 1 && !ask_equal(nest.output.strides[pack.axis], 1)) pack = {};

  const std::string type = w.unsigned_type(), width = std::to_string(pack.width);
  w.line("__syncwarp();");
  w.open_unrolled(loop("u32", "t", "lane", count(part_rows * columns / pack.width), "32u"));
  w.line("const u32 row = " + divided("t", columns / pack.width) +
         ", column = " + times(modulo("t", columns / pack.width), pack.width) + ";");
  w.line("const " + type + " m = " + m + " + row, n = " + n + " + column;");
  // Without branches the loads of all turns of this loop begin together.
  const bool fills = always_equal(roles.m % tile.m, 0) && always_equal(roles.n % tile.n, 0);
  if (!fills) w.line("if (m >= " + count(roles.m) + " || n >= " + count(roles.n) + ") continue;");
  w.indices(nest, roles.rows, "m");
  w.indices(nest, roles.columns, "n");
  const std::string from = "out[row * " + count(part_row) + " + column]";
  if (pack.width == 1) {
    w.line("const float sum = " + from + ";");
    write_element(w, nest, "sum");
  } else {
    w.line("float sum[" + width + "];");
    w.line("take(sum, &" + from + ");");
    const std::string remaining = pack.is_ragged ? "i64(" + to_string(roles.n) + ") - i64(n)" : "";
    ElementText at = write_epilogue_loads(w, nest, pack, "sum[j]", remaining);
    if (!nest.epilogue.steps.empty()) {
      w.open_unrolled("for (int j = 0; j < " + width + "; ++j) {");
      at.place += " + j";
      at.moved_axis = pack.axis;
      at.moved_index = axis_name(pack.axis) + " + j";
      w.line("sum[j] = " + write_epilogue(w, nest, at) + ";");
      w.close();
    }
    const bool is_unchanged = nest.epilogue.steps.empty() && pack.width == 4 && !pack.is_ragged &&
                              nest.output.dtype == DType::f32;
    w.line((is_unchanged ? "store_unchanged(" : "store(") + added("y", w.place(nest.output)) +
           ", sum" + (pack.is_ragged ? ", " + remaining : "") + ");");
  }
  w.close();
  w.line("__syncwarp();");
}

}  // namespace ein::codegen
