// Strips: a scalar expression evaluated on about a thousand neighbouring elements at a time, step
// by step, in vectorised loops over buffers that stay in the first-level cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "nest/nest.hpp"

namespace ein::host {

/// Elements per strip.
inline constexpr std::int64_t strip_size = 1024;

/// out[i] = op(a[i], b[i], c[i]) for i in [0, n); arguments that the operation lacks are ignored.
/// `out` may be `a`; otherwise it overlaps none of them.
template <class C>
void apply(ScalarOp op, const C* a, const C* b, const C* c, C* out, std::size_t n);

/// Where a strip's elements come from: for each input the address of the first and the step to
/// the next, in elements; the first value of each axis index with its step; and the output
/// position. A strip may be several rows of `row_length` elements, `row_steps` apart; 0 means
/// that it is one row, as it must be for an expression with random numbers.
struct StripPlace {
  std::span<const std::byte* const> inputs;
  std::span<const std::int64_t> steps;
  std::span<const std::int64_t> row_steps{};
  std::size_t row_length = 0;
  std::span<const std::int64_t> index{};
  std::size_t strip_axis = 0,
              row_axis = 0;  // whose indices move, along a row and from row to row
  std::int64_t position = 0;
  std::int64_t position_step = 0;
  RandomOrigin random{};
};

/// Whether elements of `dtype` are in memory what a strip of C has of them: integers modulo 2^bits.
template <class C>
constexpr bool holds(DType dtype) {
  if (dtype == dtype_of<C>) return true;
  return std::is_integral_v<C> && is_integral(dtype) && dtype != DType::boolean &&
         size_of(dtype) == sizeof(C);
}

/// An expression made ready to run in type C, one of EIN_STRIP_TYPES.
template <class C>
class StripExpr {
 public:
  StripExpr(const ScalarExpr& expr, std::span<const LoopNest::Operand> inputs);

  const ScalarExpr& expr() const { return expr_; }
  /// Whether its value is input 0, and needs no conversion.
  bool is_plain_input() const;

  /// Elements of scratch memory that evaluate() wants.
  std::size_t scratch_size() const { return slots_ * strip_size; }
  /// The expression's values for n <= strip_size elements: in `scratch`, or an input itself. Where
  /// they are computed or converted, they are written to `into` instead, if that is given.
  const C* evaluate(const StripPlace& place, std::size_t n, C* scratch, C* into = nullptr) const;

 private:
  /// How many values a step has in a strip: one for all, one for each row, or one for each element.
  enum class Extent : std::uint8_t { one, rows, all };
  struct Value {
    const C* data;
    Extent extent;
  };
  struct Shape;

  Value load(const StripPlace& place, std::size_t input, const Shape& shape, C* slot,
             C* into) const;
  Value index(const StripPlace& place, std::size_t axis, const Shape& shape, C* out) const;
  void draw(const StripPlace& place, const ScalarStep& step, const C* positions, std::size_t n,
            C* out) const;

  ScalarExpr expr_;
  std::vector<DType> input_dtypes_;
  std::vector<C> constants_;         // of each step
  std::vector<std::uint16_t> slot_;  // of each step: the strip of scratch memory that it fills
  std::size_t slots_ = 0;
};

/// Stores a strip, rows and all, into elements of dtype `to`; steps in elements.
template <class C>
void store_strip(const C* values, std::size_t n, std::size_t row_length, std::byte* out, DType to,
                 std::int64_t step, std::int64_t row_step);

/// Memory of the calling thread for strips of C, kept between calls; valid until the next call for
/// C on the thread.
template <class C>
C* strip_scratch(std::size_t elements);

}  // namespace ein::host
