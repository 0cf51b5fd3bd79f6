// Scans: a thread for each line, or a block for each long line, but of recurrences, as products of
// factors may overflow where no result does. A running sum is one long chain, whose error grows
// with each step: floats are combined in f64, of which each result is rounded once.
#include "codegen/elements.hpp"
#include "codegen/forms.hpp"
#include "size/ask.hpp"

namespace ein::codegen {

Kernels emit_scan(const LoopNest& nest, const Context& context) {
  const std::size_t axis = ordered_axis(nest);
  const Size size = nest.axes[axis].size;
  const AxisList others = by_stride(other_axes(nest, {axis}), nest.inputs[0]);
  const Size lines = size_of_axes(nest, others);
  // A thread alone reads along its line; neighbours then read side by side if their lines lie so.
  constexpr std::int64_t long_line = 256, many_lines = 8192;
  const bool has_factors = nest.inputs.size() == 2;
  const bool by_blocks = !has_factors && size >= long_line &&
                         (ask_equal(nest.inputs[0].strides[axis], 1) || lines < many_lines);

  const DType sum = is_integral(nest.compute) ? nest.compute : DType::f64;
  const std::string type = element_type(sum), first = identity(*nest.combine, sum);
  const std::string end = count(size), threads = std::to_string(block_threads);
  Writer w(
      (by_blocks ? "scan_lines_" : "scan_") + std::string(name(nest.output.dtype)) + context.suffix,
      block_threads, is_narrow(nest));
  const std::string number = w.unsigned_type();
  declare_inputs(w, nest, false);
  if (has_factors) w.input(nest, 1, element_type(nest.inputs[1].dtype));
  w.output(nest, element_type(nest.output.dtype));
  const auto place = [&] {
    w.line("const " + w.index_type() + " " + axis_name(axis) + " = " +
           (nest.reverse ? count(size - 1) + " - step" : "step") + ";");
  };
  const std::string element =
      converted("x0[" + w.place(nest.inputs[0]) + "]", nest.inputs[0].dtype, sum);
  const auto write = [&](const std::string& value) {
    w.line("y[" + w.place(nest.output) + "] = " + converted(value, sum, nest.output.dtype) + ";");
  };
  if (!by_blocks) {
    w.thread_number("line", block_threads);
    w.line("if (line >= " + count(lines) + ") return;");
    w.indices(nest, others, "line");
    w.line(type + " total = " + first + ";");
    w.open("for (" + number + " step = 0; step < " + end + "; ++step) {");
    place();
    const std::string before = has_factors ? "factor * total" : "total";
    if (has_factors) {
      w.line("const " + type + " factor = " +
             converted("x1[" + w.place(nest.inputs[1]) + "]", nest.inputs[1].dtype, sum) + ";");
    }
    const std::string next = combined(*nest.combine, sum, before, element);
    // The first factor is of no result.
    w.line("total = " + (has_factors ? "step == 0 ? " + element + " : " + next : next) + ";");
    write("total");
    w.close();
    return {w.finish(ceil_div(lines, block_threads))};
  }
  w.line("__shared__ Shared<" + type + "> memory[2][" + threads + "];");
  w.line("const auto combine = " + combining(*nest.combine, sum) + ";");
  w.block_number("line");
  w.indices(nest, others, "line");
  w.line(type + " before = " + first + ";");
  w.open("for (" + number + " first = 0; first < " + end + "; first += " + threads + "u) {");
  w.line("const " + number + " step = first + threadIdx.x;");
  place();
  w.line("const " + type + " value = scan_block(step < " + end + " ? " + element + " : " + first +
         ", memory, combine);");
  w.open("if (step < " + end + ") {");
  write("combine(before, value)");
  w.close();
  w.line("before = combine(before, memory[0][" + std::to_string(block_threads - 1) + "]);");
  w.line("__syncthreads();");
  w.close();
  return {w.finish(lines)};
}

}  // namespace ein::codegen
