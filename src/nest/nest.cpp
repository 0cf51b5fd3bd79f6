#include "nest/nest.hpp"

#include <algorithm>

#include "graph/fields.hpp"
#include "nest/attention.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {

bool always_equal(const std::vector<Size>& a, const std::vector<Size>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](Size x, Size y) { return always_equal(x, y); });
}

bool operator==(const LoopNest::Indirection& a, const LoopNest::Indirection& b) {
  return equal_fields(a, b);
}
bool operator==(const LoopNest::Operand& a, const LoopNest::Operand& b) {
  return equal_fields(a, b);
}

bool LoopNest::reduces() const {
  return std::any_of(axes.begin(), axes.end(), [](const NestAxis& axis) { return axis.reduced; });
}

bool LoopNest::is_copy() const {
  return !combine && along == Along::nothing && inputs.size() == 1 && body.is_input() &&
         epilogue.steps.empty() && has_all_values(compute, inputs[0].dtype);
}

bool LoopNest::sums_products() const {
  if (combine != Combine::sum || inputs.size() < 2 || body.steps.size() != 3) return false;
  const ScalarStep& product = body.steps[2];
  return product.op == ScalarOp::mul && body.steps[0].op == ScalarOp::input &&
         body.steps[1].op == ScalarOp::input;
}

namespace {

std::string outside_axis(const std::string& position, std::int64_t length, std::int64_t size) {
  const std::string axis = " an axis of size " + std::to_string(size);
  if (length == 1) return "position " + position + " is outside" + axis;
  return "a slice of " + std::to_string(length) + " from position " + position +
         " on is not inside" + axis;
}

}  // namespace

std::string outside_axis(std::int64_t position, std::int64_t length, std::int64_t size) {
  return outside_axis(std::to_string(position), length, size);
}
std::string outside_axis(std::int64_t position, const LoopNest::Indirection& axis) {
  return outside_axis(position_text(position, axis), axis.length, axis.size * axis.parts);
}
std::string position_text(std::int64_t position, const LoopNest::Indirection& axis) {
  return axis.is_unsigned ? std::to_string(static_cast<std::uint64_t>(position))
                          : std::to_string(position);
}

bool asks_index(const ScalarExpr& expr) {
  return std::any_of(expr.steps.begin(), expr.steps.end(),
                     [](const ScalarStep& step) { return step.op == ScalarOp::index; });
}
bool asks_index(const ScalarExpr& expr, std::size_t axis) {
  return std::any_of(expr.steps.begin(), expr.steps.end(), [&](const ScalarStep& step) {
    return step.op == ScalarOp::index && static_cast<std::size_t>(step.which) == axis;
  });
}
bool asks_index(const LoopNest& nest, std::size_t axis) {
  return asks_index(nest.body, axis) || asks_index(nest.epilogue, axis);
}

std::vector<std::size_t> inputs_of(const ScalarExpr& expr) {
  std::vector<std::size_t> inputs;
  for (const ScalarStep& step : expr.steps) {
    if (step.op == ScalarOp::input) inputs.push_back(static_cast<std::size_t>(step.which));
  }
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  return inputs;
}

namespace {

template <class F>
void for_each_operand(LoopNest& nest, F&& f) {
  for (LoopNest::Operand& input : nest.inputs) f(input);
  f(nest.output);
}

void erase_axis(LoopNest& nest, std::size_t a) {
  nest.axes.erase(nest.axes.begin() + static_cast<std::ptrdiff_t>(a));
  for_each_operand(nest, [&](LoopNest::Operand& operand) {
    operand.strides.erase(operand.strides.begin() + static_cast<std::ptrdiff_t>(a));
  });
  rename_indices(nest, [&](std::size_t axis) { return axis > a ? axis - 1 : axis; });
}

}  // namespace

void split(LoopNest::Operand& operand, std::size_t axis, Size inner) {
  const Size stride = operand.strides[axis];
  operand.strides[axis] = stride * inner;
  operand.strides.insert(operand.strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1, stride);
}

void split(LoopNest& nest, std::size_t axis, Size inner) {
  LoopNest::NestAxis part = nest.axes[axis];
  part.size = inner;
  nest.axes[axis].size /= inner;
  nest.axes.insert(nest.axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, std::move(part));
  for_each_operand(nest, [&](LoopNest::Operand& operand) { split(operand, axis, inner); });
  rename_indices(nest, [&](std::size_t which) { return which > axis ? which + 1 : which; });
}

LoopNest in_order(const LoopNest& nest, const std::vector<std::size_t>& order) {
  LoopNest result = nest;
  for (std::size_t a = 0; a < order.size(); ++a) {
    result.axes[a] = nest.axes[order[a]];
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o)
      result.operand(o).strides[a] = nest.operand(o).strides[order[a]];
  }
  rename_indices(result, [&](std::size_t which) {
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), which) - order.begin());
  });
  return result;
}

void simplify(LoopNest& nest) {
  // Matrices keep their axes; the others name the matrix that an error is about.
  if (nest.is_matrix() || nest.is_collective()) return;
  // Where there is nothing to read or write, strides and the other sizes may be anything, too large
  // to compute with, even.
  for (std::size_t empty = 0; empty < nest.axes.size(); ++empty) {
    if (nest.axes[empty].size > 0) continue;
    const bool reduced = nest.axes[empty].reduced;
    for (LoopNest::NestAxis& axis : nest.axes) {
      if (axis.size > 0 && (axis.reduced || !reduced)) axis.size = 1;
    }
    for (LoopNest::Operand& input : nest.inputs)
      std::fill(input.strides.begin(), input.strides.end(), 0);
    if (!reduced) std::fill(nest.output.strides.begin(), nest.output.strides.end(), 0);
  }
  for (std::size_t a = nest.axes.size(); a-- > 0;) {
    if (ask_equal(nest.axes[a].size, 1) && !nest.axes[a].ordered && !asks_index(nest, a))
      erase_axis(nest, a);
  }
  // Any outer axis may join any inner one of its kind, not just its neighbour in the list.
  for (bool merged = true; merged;) {
    merged = false;
    for (std::size_t outer = 0; outer < nest.axes.size() && !merged; ++outer) {
      for (std::size_t inner = 0; inner < nest.axes.size() && !merged; ++inner) {
        if (inner == outer || nest.axes[inner].reduced != nest.axes[outer].reduced) continue;
        if (nest.axes[inner].ordered || nest.axes[outer].ordered) continue;
        if (asks_index(nest, inner) || asks_index(nest, outer)) continue;
        const Size size = nest.axes[inner].size;
        bool joint = true;
        for_each_operand(nest, [&](const LoopNest::Operand& operand) {
          joint &= always_equal(operand.strides[outer], operand.strides[inner] * size);
        });
        if (!joint) continue;
        nest.axes[inner].size *= nest.axes[outer].size;
        nest.axes[inner].name = nest.axes[outer].name + " " + nest.axes[inner].name;
        erase_axis(nest, outer);
        merged = true;
      }
    }
  }
}

std::vector<int> result_buffers(const Program& program) {
  std::vector<int> buffers;
  for (const Program::Result& result : program.results) buffers.push_back(result.buffer);
  return buffers;
}

namespace {

std::string show(const LoopNest::Operand& operand, const LoopNest& nest) {
  std::string place;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (always_equal(operand.strides[a], 0)) continue;
    if (!place.empty()) place += " + ";
    if (!is_one(operand.strides[a])) place += to_string(operand.strides[a]) + "·";
    place += nest.axes[a].name.find(' ') == std::string::npos ? nest.axes[a].name
                                                              : "(" + nest.axes[a].name + ")";
  }
  if (operand.is_indirect()) {
    const Size stride = operand.indirection.stride;
    place += (place.empty() ? "" : " + ") + (is_one(stride) ? "" : to_string(stride) + "·") + "x" +
             std::to_string(operand.indirection.positions);
  }
  if (!always_equal(operand.offset, 0))
    place += (place.empty() ? "" : " + ") + to_string(operand.offset);
  return "b" + std::to_string(operand.buffer) + "[" + (place.empty() ? "0" : place) + "]";
}

std::string_view verb_of(const LoopNest& nest, const LoopNest::NestAxis& axis) {
  switch (axis.ordered ? nest.along : LoopNest::Along::nothing) {
    case LoopNest::Along::scan:
      return "scan";
    case LoopNest::Along::argsort:
      return "sort";
    case LoopNest::Along::matrix:
      return axis.role == MatrixAxis::rows      ? "rows"
             : axis.role == MatrixAxis::columns ? "columns"
                                                : "packed";
    case LoopNest::Along::processes:
    case LoopNest::Along::nothing:
      return axis.reduced ? "reduce" : "for";
  }
  return "";
}

}  // namespace

std::string to_string(const LoopNest& nest) {
  std::string text;
  std::string indent;
  for (const bool reduced : {false, true}) {
    for (const LoopNest::NestAxis& axis : nest.axes) {
      if (axis.reduced != reduced) continue;
      const std::string name =
          axis.name.find(' ') == std::string::npos ? axis.name : "(" + axis.name + ")";
      text += indent + std::string(verb_of(nest, axis)) + " " + name + " in " +
              (axis.ordered && nest.reverse ? to_string(axis.size) + "..0"
                                            : "0.." + to_string(axis.size)) +
              "\n";
      indent += "  ";
    }
  }
  std::string value = nest.body.is_input() ? "x0" : to_string(nest.body);
  // Positions come before what they move.
  for (const bool indirect : {false, true}) {
    for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
      if (nest.inputs[i].is_indirect() != indirect) continue;
      text += indent + "x" + std::to_string(i) + " = " + show(nest.inputs[i], nest) + "  : " +
              std::string(name(nest.inputs[i].dtype)) + "\n";
    }
  }
  if (nest.combine && !nest.is_scatter()) value = std::string(name(*nest.combine)) + " " + value;
  if (nest.along == LoopNest::Along::scan && nest.inputs.size() == 2) value += " with factors x1";
  if (nest.along == LoopNest::Along::argsort) value = "place of " + value;
  if (nest.is_collective()) value = std::string(name(nest.collective)) + " of " + value;
  if (nest.is_matrix()) {
    value = std::string(name(nest.function)) + " of " + value;
    if (nest.inputs.size() > 1) value += " and x1";
  }
  const std::string sign = !nest.is_scatter() || !nest.combine ? " = "
                           : nest.combine == Combine::sum
                               ? " += "
                               : " = " + std::string(name(*nest.combine)) + " with ";
  text += indent + show(nest.output, nest) + sign + value;
  if (!nest.epilogue.steps.empty()) text += ", then " + to_string(nest.epilogue);
  return text + "  : " + std::string(name(nest.output.dtype)) + " in " +
         std::string(name(nest.compute)) + "\n";
}

namespace {

/// How the nests of a group run together.
std::string how(const Program::Group::Blocks& blocks) {
  return "in " + to_string(blocks.count) + " blocks" +
         (is_one(blocks.at_once) ? "" : ", " + to_string(blocks.at_once) + " at once");
}
std::string how(const Program::Group::Rows&) { return "row by row"; }
std::string how(const Program::Group::Repeated& repeated) {
  return "the same for each " + std::to_string(repeated.each);
}
std::string how(const Program::Group::AsAttention& attention) {
  return attention->gradients ? "as the gradients of attention" : "as attention";
}

}  // namespace

std::string to_string(const Program& program) {
  std::string text;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Program::Buffer& buffer = program.buffers[b];
    text += "b" + std::to_string(b) + ": " +
            (b < program.input_count ? "input, "
             : buffer.is_local       ? "local, "
                                     : "") +
            to_string(buffer.elements) + " " + std::string(name(buffer.dtype)) + "\n";
  }
  std::size_t group = 0;
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    while (group < program.groups.size() && program.groups[group].first < n) ++group;
    if (group < program.groups.size() && program.groups[group].first == n &&
        program.groups[group].count > 1) {
      const Program::Group& g = program.groups[group];
      text += "the next " + std::to_string(g.count) + " together, " +
              std::visit([](const auto& form) { return how(form); }, g.form) + ":\n";
    }
    text += to_string(program.nests[n]);
  }
  for (const Program::Result& result : program.results) {
    text += "return b" + std::to_string(result.buffer) + " " + result.shape.to_string() +
            " strides " + result.strides.to_string() +
            (always_equal(result.offset, 0) ? "" : " offset " + to_string(result.offset)) + "\n";
  }
  return text;
}

}  // namespace ein
