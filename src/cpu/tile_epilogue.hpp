// TileEpilogue: what a contraction does with parts of its result that are ready.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu/gemm.hpp"
#include "cpu/loops.hpp"
#include "cpu/row_code.hpp"
#include "cpu/strip.hpp"
#include "machine/cache.hpp"

namespace ein::host {

/// A contraction's epilogue as an expression of the product, input 0, and of the nest's inputs from
/// 2 on.
inline ScalarExpr finishing_expr(ScalarExpr epilogue) {
  for (ScalarStep& step : epilogue.steps) {
    if (step.op == ScalarOp::input && step.which > 1) --step.which;
  }
  return epilogue;
}

/// A nest's epilogue on a rectangle of rows and columns of products: in place, or from their sums
/// to the nest's result.
template <class C>
class TileEpilogue {
 public:
  /// An operand's strides along rows and columns, and along the loops around the products.
  struct Strides {
    std::int64_t row = 0, col = 0;
    std::vector<std::int64_t> outer{};
  };

  /// `strides`: of the nest's result, then of its inputs from 2 on. It is in place where the result
  /// is of type C.
  TileEpilogue(const LoopNest& nest, std::vector<Strides> strides)
      : strides_(std::move(strides)),
        operands_(operands(nest)),
        result_(nest.output.dtype == dtype_of<C> ? 0 : operands_.size() - 1),
        expr_(finishing_expr(nest.epilogue), operands_) {
    // Along what lies side by side in the result.
    by_rows_ = strides_[0].row == 1 && strides_[0].col != 1;
    if (!is_in_place()) {
      const Strides of_result = std::exchange(strides_[0], {1, 1});  // sums follow each other
      strides_.push_back(of_result);
    }
    for (const Strides& s : strides_) {
      steps_.push_back(by_rows_ ? s.row : s.col);
      line_steps_.push_back(by_rows_ ? s.col : s.row);
    }
    code_ = RowCode::compile(lines());
  }

  bool is_in_place() const { return result_ == 0; }
  /// How the sums of a part are to lie.
  Order order() const { return by_rows_ ? Order::column_major : Order::row_major; }

  /// What is read from beyond the second-level cache for a product of `rows` by `cols` at the
  /// indices `outer` of the loops around it, of what lies side by side.
  std::vector<Finish::Read> far_reads(std::span<std::byte* const> buffers,
                                      std::span<const std::int64_t> outer, std::int64_t rows,
                                      std::int64_t cols) const {
    std::vector<Finish::Read> far;
    for (std::size_t i = 1; i < operands_.size(); ++i) {
      const Strides& s = strides_[i];
      if (i == result_ || steps_[i] != 1 || line_steps_[i] <= 1 ||
          rows * cols * bytes(i) <= caches().l2)
        continue;
      far.push_back({begin_of(i, buffers, outer), s.row * bytes(i), s.col * bytes(i)});
    }
    return far;
  }

  /// On rows [row, row + rows) of columns [col, col + cols) of a product, at the indices `outer` of
  /// the loops around it. In place `c` is the product; otherwise it is the sums of this part, whose
  /// lines are `sums_line` apart, if not side by side.
  void run(std::span<std::byte* const> buffers, std::span<const std::int64_t> outer, C* c,
           std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols,
           std::int64_t sums_line = 0) const {
    const std::int64_t lines = by_rows_ ? cols : rows, length = by_rows_ ? rows : cols;
    const std::int64_t pieces = std::max<std::int64_t>(1, (length + strip_size - 1) / strip_size);
    const std::int64_t together =
        pieces > 1 ? 1 : std::max<std::int64_t>(1, strip_size / std::max<std::int64_t>(1, length));
    SmallArray<std::byte*, 16> begin(operands_.size());
    SmallArray<std::int64_t, 16> line_steps(operands_.size()), to_next_line(operands_.size());
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const bool is_sums = i == 0 && !is_in_place();
      line_steps[i] = !is_sums ? line_steps_[i] : sums_line > 0 ? sums_line : length;
      to_next_line[i] = line_steps[i] * bytes(i);
      begin[i] = i == 0 ? reinterpret_cast<std::byte*>(c) : begin_of(i, buffers, outer);
      if (!is_sums) begin[i] += (row * strides_[i].row + col * strides_[i].col) * bytes(i);
    }
    if (code_) return (*code_)({begin.data(), length, lines, nullptr, to_next_line.data()});
    C* const scratch = strip_scratch<C>(expr_.scratch_size());
    SmallArray<const std::byte*, 16> from(operands_.size());
    for (std::int64_t line = 0; line < lines; line += together) {
      const std::int64_t count = std::min(together, lines - line);
      for (std::int64_t p = 0; p < pieces; ++p) {
        const std::int64_t first = length * p / pieces, n = length * (p + 1) / pieces - first;
        const auto at = [&](std::size_t i) {
          return begin[i] + (line * line_steps[i] + first * steps_[i]) * bytes(i);
        };
        for (std::size_t i = 0; i < operands_.size(); ++i) from[i] = at(i);
        const auto values = static_cast<std::size_t>(n * count),
                   line_length = static_cast<std::size_t>(n);
        const C* results = expr_.evaluate({from, steps_, line_steps, line_length}, values, scratch);
        store_strip(results, values, line_length, at(result_), operands_[result_].dtype,
                    steps_[result_], line_steps_[result_]);
      }
    }
  }

 private:
  std::int64_t bytes(std::size_t operand) const {
    return static_cast<std::int64_t>(size_of(operands_[operand].dtype));
  }

  /// Where an operand but the products begins.
  std::byte* begin_of(std::size_t operand, std::span<std::byte* const> buffers,
                      std::span<const std::int64_t> outer) const {
    std::int64_t place = 0;
    for (std::size_t l = 0; l < outer.size(); ++l) place += outer[l] * strides_[operand].outer[l];
    return base(operands_[operand], buffers) + place * bytes(operand);
  }

  /// The products, the nest's inputs from 2 on, and the result if it is not in place.
  static std::vector<LoopNest::Operand> operands(const LoopNest& nest) {
    std::vector<LoopNest::Operand> operands(nest.inputs.begin() + 1, nest.inputs.end());
    operands[0] = {.dtype = dtype_of<C>};
    if (nest.output.dtype != dtype_of<C>) operands.push_back(nest.output);
    return operands;
  }

  /// Code that any distance between lines suits.
  Schedule::Part lines() const {
    const Size line_step = Size::named("line step");
    Schedule::Part part;
    Schedule::RowNest nest{.output = result_, .body = expr_.expr()};
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      part.places.push_back(
          {.dtype = operands_[i].dtype, .row_step = line_step, .step = steps_[i]});
      if (i == 0 || i != result_) nest.inputs.push_back(i);
    }
    part.rows.compute = dtype_of<C>;
    part.rows.nests.push_back(std::move(nest));
    return part;
  }

  std::vector<Strides> strides_;
  std::vector<LoopNest::Operand> operands_;
  std::size_t result_;  // of the operands
  StripExpr<C> expr_;
  std::shared_ptr<const RowCode> code_;  // that does the same; may be none
  bool by_rows_ = false;
  std::vector<std::int64_t> steps_, line_steps_;  // of each operand, along a line and between lines
};

}  // namespace ein::host
