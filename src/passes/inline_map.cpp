#include "passes/inline_map.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/rewrite.hpp"
#include "nest/integer_range.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;

// --- values ---

std::optional<std::int64_t> number(const Size& size) {
  return size.is_number() ? std::optional<std::int64_t>(size) : std::nullopt;
}

/// Of a step of whole numbers, of indices and truth values, whose arguments lie in `ranges`; none
/// of any other.
std::optional<IntegerRange> range_of_step(const LoopNest& map, const ScalarStep& step,
                                          const std::vector<IntegerRange>& ranges) {
  using enum ScalarOp;
  const auto which = static_cast<std::size_t>(step.which);
  if (step.op == constant) return IntegerRange{step.integer, step.integer};
  if (step.op == index) {
    const std::optional<std::int64_t> size = number(map.axes[which].size);
    return size ? std::optional(IntegerRange{0, *size}) : std::nullopt;
  }
  if (step.op == input && map.inputs[which].dtype == DType::boolean) return IntegerRange{0, 1};
  if (step.op != add && step.op != sub && step.op != mul && !is_truth(step.op)) return std::nullopt;
  std::vector<IntegerRange> args;
  for (int i = 0; i < info(step.op).arity; ++i)
    args.push_back(ranges[static_cast<std::size_t>(step.args[i])]);
  return range_of(step.op, args);
}

/// Whether such an expression has the same values in f32.
bool is_exact_in_f32(const LoopNest& map) {
  constexpr std::int64_t limit = 1 << 24;
  std::vector<IntegerRange> ranges;
  for (const ScalarStep& step : map.body.steps) {
    const auto range = range_of_step(map, step, ranges);
    if (!range || range->low < -limit || range->high > limit) return false;
    ranges.push_back(*range);
  }
  return true;
}

/// The value that is read, in the reader's type; none if it cannot be computed there.
std::optional<ScalarExpr> value_in(DType compute, const LoopNest& map) {
  const bool is_whole = map.compute == DType::i64 && compute == DType::f32;
  if (map.body.steps.empty() || (map.compute != compute && !(is_whole && is_exact_in_f32(map))))
    return std::nullopt;
  ScalarExpr value = map.body;
  const DType stored = map.output.dtype;
  if (stored == map.compute) return value;
  if (stored == DType::boolean)
    return is_truth(value.steps.back().op) ? std::optional(std::move(value)) : std::nullopt;
  if (is_whole && stored == DType::f32) return value;
  if (!can_round(map.compute, stored)) return std::nullopt;
  return rounded(std::move(value), map.compute, stored);
}

// --- axes ---

/// Makes two axes of one, the inner of `inner` steps.
void split_axis(LoopNest& nest, std::size_t a, std::int64_t inner) {
  LoopNest::NestAxis axis = nest.axes[a];
  nest.axes[a].size = std::int64_t{axis.size} / inner;
  axis.size = inner;
  nest.axes.insert(nest.axes.begin() + static_cast<std::ptrdiff_t>(a) + 1, axis);
  for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
    std::vector<Size>& strides = nest.operand(o).strides;
    const Size stride = strides[a];
    strides[a] = stride * inner;
    strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(a) + 1, stride);
  }
  for (ScalarExpr* expr : {&nest.body, &nest.epilogue}) {
    for (ScalarStep& step : expr->steps) {
      if (step.op == ScalarOp::index && step.which > static_cast<int>(a)) ++step.which;
    }
  }
}

/// How an axis of the reader moves along one of the map.
struct Moves {
  std::size_t along = 0;
  std::int64_t step = 0;  // 0: along none
};

/// Of each axis of the reader, of which some become two.
std::optional<std::vector<Moves>> moves_of(LoopNest& reader, std::size_t input,
                                           const LoopNest& map) {
  std::vector<Moves> moves;
  std::vector<std::int64_t> reached(map.axes.size(), 0);
  for (std::size_t a = 0; a < reader.axes.size(); ++a) {
    const auto stride = number(reader.inputs[input].strides[a]), size = number(reader.axes[a].size);
    if (!stride || !size || *stride < 0) return std::nullopt;
    moves.emplace_back();
    if (*stride == 0 || *size == 1) continue;
    std::size_t along = map.axes.size();
    std::int64_t unit = 0, end = 0;
    for (std::size_t s = 0; s < map.axes.size(); ++s) {
      const auto step = number(map.output.strides[s]), count = number(map.axes[s].size);
      if (!step || !count) return std::nullopt;
      if (*step > 0 && *step <= *stride && *stride < *step * *count)
        along = s, unit = *step, end = *step * *count;
    }
    if (along == map.axes.size() || *stride % unit != 0) return std::nullopt;
    if (*stride * (*size - 1) >= end) {
      const std::int64_t inner = end / *stride;
      if (end % *stride != 0 || inner < 2 || *size % inner != 0 || asks_index(reader, a))
        return std::nullopt;
      split_axis(reader, a, inner);
      // The outer axis moves along the next one of the map.
      moves.pop_back();
      --a;
      continue;
    }
    moves.back() = {along, *stride / unit};
    reached[along] += *stride / unit * (*size - 1);
    if (reached[along] * unit >= end) return std::nullopt;
  }
  return moves;
}

/// Index `axis` of the map, of the reader's.
Ex index_of(std::size_t axis, const std::vector<Moves>& moves) {
  std::optional<Ex> sum;
  for (std::size_t a = 0; a < moves.size(); ++a) {
    if (moves[a].step == 0 || moves[a].along != axis) continue;
    Ex term = Ex::index(static_cast<int>(a));
    if (moves[a].step != 1) term = term * Ex(static_cast<double>(moves[a].step));
    sum = sum ? *sum + term : term;
  }
  return sum.value_or(Ex(0.0));
}

/// With inputs from `first` on, and indices of the reader.
ScalarExpr moved(const ScalarExpr& expr, std::size_t first, const std::vector<Moves>& moves) {
  ScalarExpr result;
  std::vector<int> places;
  for (ScalarStep step : expr.steps) {
    if (step.op == ScalarOp::index) {
      const ScalarExpr index = index_of(static_cast<std::size_t>(step.which), moves);
      const int begin = static_cast<int>(result.steps.size());
      std::vector<int> here;
      for (std::size_t i = 0; i < index.steps.size(); ++i)
        here.push_back(begin + static_cast<int>(i));
      for (ScalarStep of_index : index.steps) {
        of_index.move_arguments(here);
        result.steps.push_back(of_index);
      }
    } else {
      if (step.op == ScalarOp::input) step.which += static_cast<int>(first);
      step.move_arguments(places);
      result.steps.push_back(step);
    }
    places.push_back(static_cast<int>(result.steps.size()) - 1);
  }
  return result;
}

/// Whether an index, which is a sum of the reader's, is as exact there.
bool has_small_indices(const LoopNest& map) {
  return std::all_of(map.axes.begin(), map.axes.end(), [](const auto& axis) {
    return axis.size.is_number() && std::int64_t{axis.size} <= 1 << 24;
  });
}

}  // namespace

bool is_elementwise(const LoopNest& nest) {
  return !nest.combine && nest.along == LoopNest::Along::nothing && !nest.is_scatter() &&
         nest.epilogue.steps.empty() && !draws(nest.body) && always_equal(nest.output.offset, 0) &&
         std::none_of(nest.inputs.begin(), nest.inputs.end(),
                      [](const Operand& x) { return x.is_indirect(); });
}

std::optional<LoopNest> with_map(LoopNest reader, std::size_t input, const LoopNest& map) {
  if (!is_elementwise(map) || !always_equal(reader.inputs[input].offset, 0)) return std::nullopt;
  if (asks_index(map.body) && !has_small_indices(map)) return std::nullopt;
  const std::optional<ScalarExpr> value = value_in(reader.compute, map);
  if (!value) return std::nullopt;
  const auto moves = moves_of(reader, input, map);
  if (!moves) return std::nullopt;
  const auto first = reader.inputs.size();
  for (const Operand& of_map : map.inputs) {
    Operand operand{of_map.buffer, of_map.dtype, of_map.offset};
    for (const Moves& move : *moves)
      operand.strides.push_back(move.step == 0 ? Size(0) : of_map.strides[move.along] * move.step);
    reader.inputs.push_back(std::move(operand));
  }
  std::vector<ScalarExpr> values;
  for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
    // Without the input itself, those behind it have other numbers.
    values.push_back(i == input ? moved(*value, first - 1, *moves)
                                : ScalarExpr(Ex::input(static_cast<int>(i - (i > input)))));
  }
  reader.inputs.erase(reader.inputs.begin() + static_cast<std::ptrdiff_t>(input));
  for (ScalarExpr* expr : {&reader.body, &reader.epilogue}) {
    if (!expr->steps.empty()) *expr = substitute(*expr, values);
  }
  return reader;
}

}  // namespace ein
