// Sorting: the places of a line's values in order. In a short line each value counts those that
// come before it; a long one is sorted by a block, digit by digit.
#include "codegen/elements.hpp"
#include "codegen/forms.hpp"
#include "size/ask.hpp"

namespace ein::codegen {

Kernels emit_sort(const LoopNest& nest, const Context& context) {
  const std::size_t axis = ordered_axis(nest);
  const Size size = nest.axes[axis].size;
  const AxisList others = other_axes(nest, {axis});
  const Size lines = size_of_axes(nest, others);
  const DType dtype = nest.inputs[0].dtype;
  constexpr std::int64_t short_line = 128;
  const bool counts = size <= short_line;
  const bool narrow = is_narrow(nest);

  Writer w((counts ? "argsort_short_" : "argsort_") + std::string(name(dtype)) + context.suffix,
           block_threads, narrow);
  declare_inputs(w, nest, false);
  w.output(nest, "i64");
  const std::string index = axis_name(axis), end = text_of(size);
  const std::string element = "x0[" + w.place(nest.inputs[0]) + "]";
  // As a number whose key is known; short integers, bool and the small floats have none of their
  // own.
  const bool is_wide = size_of(dtype) == 8;
  const DType keyed = is_wide              ? dtype
                      : is_floating(dtype) ? DType::f32
                      : is_unsigned(dtype) ? DType::u32
                                           : DType::i32;
  const std::string key =
      std::string(nest.reverse ? "~" : "") + "key_of(" + converted(element, dtype, keyed) + ")";
  const std::string key_type = is_wide ? "u64" : "u32";
  if (counts) {
    w.thread_number("element", block_threads);
    w.line("if (element >= " + count(lines * size) + ") return;");
    w.line("const u32 own = " + modulo("element", size) + ";");
    w.indices(nest, others, divided("element", size));
    w.line("const auto key_at = [&](" + w.index_type() + " " + index + ") -> " + key_type +
           " { return " + key + "; };");
    w.line("const " + key_type + " key = key_at(own);");
    w.line(w.index_type() + " " + index + " = 0;");
    w.open("for (u32 other = 0; other < " + count(size) + "; ++other) {");
    w.line("const " + key_type + " k = key_at(other);");
    w.line(index + " += k < key || (k == key && other < own);");
    w.close();
    w.line("y[" + w.place(nest.output) + "] = own;");
    return {w.finish(ceil_div(lines * size, block_threads))};
  }
  const std::string place = narrow ? "u32" : "u64",
                    entry = "Entry<" + key_type + ", " + place + ">";
  const std::size_t entry_bytes = is_wide || !narrow ? 16 : 8;
  w.workspace(entry, "memory", 0, 2 * lines * size * entry_bytes);
  const std::string threads = std::to_string(block_threads);
  w.line("__shared__ Shared<" + place + "> counts[16 * " + threads + "], totals[16];");
  w.block_number("line");
  w.indices(nest, others, "line");
  w.line(entry + "* const entries = memory + line * " + w.number(2 * size) + ";");
  w.open("for (" + w.index_type() + " " + index + " = threadIdx.x; " + index + " < " + end + "; " +
         index + " += " + threads + ") {");
  w.line("entries[" + index + "] = {" + key + ", " + place + "(" + index + ")};");
  w.close();
  w.line("__syncthreads();");
  w.line("const " + entry + "* const in_order = sorted<" + threads + ">(entries, entries + " + end +
         ", " + end + ", " + (is_wide ? "64" : "32") + ", counts, totals);");
  w.open("for (" + w.index_type() + " " + index + " = threadIdx.x; " + index + " < " + end + "; " +
         index + " += " + threads + ") {");
  w.line("y[" + w.place(nest.output) + "] = in_order[" + index + "].place;");
  w.close();
  return {w.finish(lines)};
}

}  // namespace ein::codegen
