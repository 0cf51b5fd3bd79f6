// Scatters. Points are first put in the order of their positions; then each sum finds its own, and
// takes them in the order in which the nest has them, so that results do not depend on which thread
// comes first.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "codegen/elements.hpp"
#include "codegen/forms.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein::codegen {
namespace {

/// What elements are combined in. Sums of floats are as on the host (cpu/scatter.cpp): in f64, and
/// those of f64 with what was rounded off.
DType accumulator(Combine combine, DType dtype) {
  return combine == Combine::sum && is_floating(dtype) ? DType::f64 : compute_type(dtype);
}

/// The combination of no elements of `dtype`, as a literal of the type that they are combined in.
std::string nothing(Combine combine, DType dtype, DType compute) {
  return visit(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      if (info(combine).nothing == CombineInfo::lowest)
        return literal(compute, 0, static_cast<std::int64_t>(Limits::min()));
      if (info(combine).nothing == CombineInfo::highest)
        return literal(compute, 0, static_cast<std::int64_t>(Limits::max()));
    }
    return identity(combine, compute);
  });
}

}  // namespace

Kernels emit_scatter(const LoopNest& nest, const Context& context) {
  const LoopNest::Operand& values = nest.inputs[0];
  const auto by = static_cast<std::size_t>(nest.output.indirection.positions);
  const LoopNest::Operand& positions = nest.inputs[by];
  AxisList lines, row, points;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    (nest.axes[a].reduced                  ? points
     : !ask_equal(positions.strides[a], 0) ? lines
                                           : row)
        .push_back(a);
  }
  lines = by_stride(std::move(lines), nest.output);
  row = by_stride(std::move(row), nest.output);
  const auto steps = [&](std::size_t a) {
    return std::pair(values.strides[a], positions.strides[a]);
  };
  std::sort(points.begin(), points.end(),
            [&](std::size_t a, std::size_t b) { return steps(a) > steps(b); });
  const Size line_count = size_of_axes(nest, lines), row_size = size_of_axes(nest, row);
  const Size point_count = size_of_axes(nest, points), size = nest.output.indirection.size;

  const bool narrow = is_narrow(nest);
  const std::string number = narrow ? "u32" : "u64",
                    entry = "Entry<" + number + ", " + number + ">";
  const std::size_t entry_bytes = narrow ? 8 : 16;
  const Size total = line_count * point_count;
  // Positions, and one more for those that are outside.
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(about(size))));
  const bool is_swapped = ceil_div(bits, 4) % 2 == 1;
  const std::string type(name(nest.output.dtype)), points_text = text_of(point_count);
  const std::string threads = std::to_string(block_threads);
  Kernels kernels;
  if (point_count > 0) {
    Writer w("scatter_order_" + type + context.suffix, block_threads, narrow);
    w.input(nest, by, element_type(positions.dtype));
    w.workspace(entry, "memory", 0, 2 * total * entry_bytes);
    w.fault();
    w.line("__shared__ Shared<" + number + "> counts[16 * " + threads + "], totals[16];");
    w.block_number("line");
    w.indices(nest, lines, "line");
    w.line(entry + "* const entries = memory + line * " + w.number(point_count) + ";");
    w.open("for (" + number + " point = threadIdx.x; point < " + count(point_count) +
           "; point += " + threads + "u) {");
    w.indices(nest, points, "point");
    w.line("const i64 position = " + input_name(by) + "[" + w.place(positions) + "];");
    w.line("const bool inside = " + inside_axis("position", nest.output.indirection) + ";");
    w.line("entries[point] = {inside ? " + number + "(position) : " + count(size) + ", point};");
    w.close();
    w.line("__syncthreads();");
    w.line("sorted<" + threads + ">(entries, entries + " + w.number(total) + ", " + points_text +
           ", " + std::to_string(bits) + ", counts, totals);");
    kernels.push_back(w.finish(line_count));
  }
  const Combine combine = *nest.combine;
  const DType sum = accumulator(combine, nest.output.dtype);
  const bool is_long = combine == Combine::sum && nest.output.dtype == DType::f64;
  const std::string verb(combine == Combine::sum ? "add" : name(combine));
  Writer w("scatter_" + verb + "_" + type + context.suffix, block_threads, narrow);
  w.input(nest, 0, element_type(values.dtype));
  w.workspace("const " + entry, "memory", is_swapped ? total * entry_bytes : Size(0), 0);
  w.output(nest, element_type(nest.output.dtype));
  w.thread_number("element", block_threads);
  w.line("if (element >= " + count(line_count * size * row_size) + ") return;");
  w.indices(nest, row, is_one(line_count * size) ? "element" : modulo("element", row_size));
  w.line("const " + number + " position = " + modulo(divided("element", row_size), size) +
         ", line = " + divided("element", row_size * size) + ";");
  w.indices(nest, lines, "line");
  w.line("const " + entry + "* const entries = memory + line * " + w.number(point_count) + ";");
  w.line(element_type(sum) + " sum = " + nothing(combine, nest.output.dtype, sum) + ";");
  if (is_long) w.line("double rest = 0;");
  w.open("for (" + number + " i = first_of(entries, " + number + "(" + points_text +
         "), position); i < " + count(point_count) + " && entries[i].key == position; ++i) {");
  w.line("const " + number + " point = entries[i].place;");
  w.indices(nest, points, "point");
  const std::string value = converted("x0[" + w.place(values) + "]", values.dtype, sum);
  if (is_long)
    w.line("add_long(sum, rest, " + value + ");");
  else
    w.line("sum = " + combined(combine, sum, "sum", value) + ";");
  w.close();
  if (is_long) w.line("if (sum - sum == 0) sum += rest;");
  const std::string place = w.place(nest.output);
  w.line("y[" + added(place, "position * " + w.number(nest.output.indirection.stride)) +
         "] = " + converted("sum", sum, nest.output.dtype) + ";");
  kernels.push_back(w.finish(ceil_div(line_count * size * row_size, block_threads)));
  return kernels;
}

}  // namespace ein::codegen
