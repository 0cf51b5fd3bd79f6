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

#include "cpu/loops.hpp"
#include "cpu/row_code.hpp"
#include "cpu/strip.hpp"

namespace ein::host {

/// A contraction's epilogue as an expression of the product, input 0, and of the nest's inputs from
/// 2 on.
inline ScalarExpr finishing_expr(ScalarExpr epilogue) {
  for (ScalarStep& step : epilogue.steps) {
    if (step.op == ScalarOp::input && step.which > 1) --step.which;
  }
  return epilogue;
}

/// A nest's epilogue on a rectangle of rows and columns, in place.
template <class C>
class TileEpilogue {
 public:
  /// An operand's strides along rows and columns, and along the loops around the products.
  struct Strides {
    std::int64_t row = 0, col = 0;
    std::vector<std::int64_t> outer{};
  };

  /// `strides`: of the products, then of the nest's inputs from 2 on.
  TileEpilogue(const LoopNest& nest, std::vector<Strides> strides)
      : strides_(std::move(strides)),
        operands_(operands(nest)),
        expr_(finishing_expr(nest.epilogue), operands_) {
    // Along what lies side by side in the result.
    by_rows_ = strides_[0].row == 1 && strides_[0].col != 1;
    for (const Strides& s : strides_) {
      steps_.push_back(by_rows_ ? s.row : s.col);
      line_steps_.push_back(by_rows_ ? s.col : s.row);
    }
    for (std::size_t i = 0; i < operands_.size(); ++i)
      line_bytes_.push_back(line_steps_[i] * bytes(i));
    code_ = RowCode::compile(lines());
  }

  /// On rows [row, row + rows) of columns [col, col + cols) of the product `c`, at the indices
  /// `outer` of the loops around it.
  void run(std::span<std::byte* const> buffers, std::span<const std::int64_t> outer, C* c,
           std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) const {
    const std::int64_t lines = by_rows_ ? cols : rows, length = by_rows_ ? rows : cols;
    const std::int64_t pieces = std::max<std::int64_t>(1, (length + strip_size - 1) / strip_size);
    const std::int64_t together =
        pieces > 1 ? 1 : std::max<std::int64_t>(1, strip_size / std::max<std::int64_t>(1, length));
    SmallArray<std::byte*, 16> begin(operands_.size());
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      begin[i] = i == 0 ? reinterpret_cast<std::byte*>(c) : base(operands_[i], buffers);
      std::int64_t place = row * strides_[i].row + col * strides_[i].col;
      for (std::size_t l = 0; i > 0 && l < outer.size(); ++l)
        place += outer[l] * strides_[i].outer[l];
      begin[i] += place * bytes(i);
    }
    if (code_) return (*code_)({begin.data(), length, lines, nullptr, line_bytes_.data()});
    C* const scratch = strip_scratch<C>(expr_.scratch_size());
    SmallArray<const std::byte*, 16> from(operands_.size());
    for (std::int64_t line = 0; line < lines; line += together) {
      const std::int64_t count = std::min(together, lines - line);
      for (std::int64_t p = 0; p < pieces; ++p) {
        const std::int64_t first = length * p / pieces, n = length * (p + 1) / pieces - first;
        for (std::size_t i = 0; i < operands_.size(); ++i) {
          from[i] = begin[i] + (line * line_steps_[i] + first * steps_[i]) * bytes(i);
        }
        const auto values = static_cast<std::size_t>(n * count),
                   line_length = static_cast<std::size_t>(n);
        const C* results =
            expr_.evaluate({from, steps_, line_steps_, line_length}, values, scratch);
        std::byte* const to = begin[0] + (line * line_steps_[0] + first * steps_[0]) * bytes(0);
        store_strip(results, values, line_length, to, dtype_of<C>, steps_[0], line_steps_[0]);
      }
    }
  }

 private:
  std::int64_t bytes(std::size_t operand) const {
    return static_cast<std::int64_t>(size_of(operands_[operand].dtype));
  }

  static std::vector<LoopNest::Operand> operands(const LoopNest& nest) {
    std::vector<LoopNest::Operand> operands(nest.inputs.begin() + 1, nest.inputs.end());
    operands[0] = {.dtype = dtype_of<C>};
    return operands;
  }

  /// Code that any distance between lines suits.
  Schedule::Part lines() const {
    const Size line_step = Size::named("line step");
    Schedule::Part part;
    Schedule::RowNest nest{.body = expr_.expr()};
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      part.places.push_back(
          {.dtype = operands_[i].dtype, .row_step = line_step, .step = steps_[i]});
      nest.inputs.push_back(i);
    }
    part.rows.compute = dtype_of<C>;
    part.rows.nests.push_back(std::move(nest));
    return part;
  }

  std::vector<Strides> strides_;
  std::vector<LoopNest::Operand> operands_;
  StripExpr<C> expr_;
  std::shared_ptr<const RowCode> code_;  // that does the same; may be none
  bool by_rows_ = false;
  std::vector<std::int64_t> steps_, line_steps_;  // of each operand, along a line and between lines
  std::vector<std::int64_t> line_bytes_;          // between lines
};

}  // namespace ein::host
