// The one place that says what operations cost, for numbers and for formulas, for graphs and for
// nests.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include <ein/cost.hpp>
#include "linalg/function.hpp"
#include "size/size_scope.hpp"

namespace ein {

template <class N>
N& transcendental_count(Tally<N>& tally, ScalarOp op) {
  for (std::size_t i = 0; i < transcendental_ops.size(); ++i) {
    if (transcendental_ops[i] == op) return tally.transcendental[i];
  }
  throw std::logic_error("cost: an operation that is not counted");
}

/// Adds a scalar expression evaluated `times` times.
template <class N>
void add_expr(Tally<N>& tally, const ScalarExpr& expr, const N& times) {
  const ScalarExpr values = without_slopes(expr);
  for (const ScalarStep& step : values.steps) {
    switch (info(step.op).cost) {
      case CostClass::none:
        continue;
      case CostClass::addition:
        tally.add += times;
        break;
      case CostClass::multiplication:
        tally.mul += times;
        break;
      case CostClass::division:
        tally.div += times;
        break;
      case CostClass::comparison:
        tally.compare += times;
        break;
      case CostClass::transcendental:
        transcendental_count(tally, step.op) += times;
        break;
    }
    tally.model += times;
  }
}

/// Adds a combination of `tuples` values to `results`; `differ` is tuples - results, or 0 where
/// there is nothing to combine.
template <class N>
void add_combination(Tally<N>& tally, Combine combine, const N& tuples, const N& differ) {
  const CombineInfo& how = info(combine);
  switch (info(how.operation).cost) {
    case CostClass::addition:
      tally.add += differ;
      break;
    case CostClass::multiplication:
      tally.mul += differ;
      break;
    default:
      tally.compare += differ;
  }
  if (how.asks) tally.compare += tuples;  // each value is compared with 0 first
  tally.model += tuples;
}

/// Adds sorting `tuples` values in lines of `size`. How many comparisons that takes depends on the
/// values: counted are ceil(log2 size) for each value, which no merge sort exceeds (Knuth, The Art
/// of Computer Programming, vol. 3, 5.2.4).
template <class N>
void add_sort(Tally<N>& tally, const N& tuples, Size size) {
  const std::int64_t number = about(size - 1);
  const std::int64_t rounds = number < 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(number));
  tally.compare += tuples * N(rounds);
  tally.model += tuples * N(rounds);
}

/// Adds a function of `matrices` matrices of rows × columns, with `right` columns of a second
/// operand: an estimate. Its terms have fractions, so for one matrix it is a number in formulas,
/// too.
template <class N>
void add_matrix(Tally<N>& tally, MatrixFunction function, const N& matrices, Size rows,
                Size columns, Size right) {
  const double flops = linalg::estimated_flops(function, static_cast<double>(about(rows)),
                                               static_cast<double>(about(columns)),
                                               static_cast<double>(about(right)));
  const auto whole = static_cast<std::int64_t>(std::min(std::round(flops), 9e18));
  tally.mul += matrices * N(whole / 2);
  tally.add += matrices * N(whole - whole / 2);
  tally.model += matrices * N(whole);
  tally.estimated += matrices * N(whole);
}

}  // namespace ein
