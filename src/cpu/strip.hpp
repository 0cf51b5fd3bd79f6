// Strips: a scalar expression evaluated on some hundred neighbouring elements at a time, step by step, in
// vectorised loops over buffers that stay in the first-level cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nest/nest.hpp"

namespace ein::cpu {

/// Elements per strip.
inline constexpr std::int64_t strip_size = 512;

/// out[i] = op(a[i], b[i], c[i]) for i in [0, n); arguments that the operation lacks are ignored.
template <class C>
void apply(ScalarOp op, const C* a, const C* b, const C* c, C* out, std::size_t n);

/// An expression made ready to run in type C: float, double or std::int64_t.
template <class C>
class StripExpr {
 public:
  StripExpr(const ScalarExpr& expr, std::span<const LoopNest::Operand> inputs);

  /// Where a strip's elements come from: for each input the address of the first and the step to the
  /// next, in elements; the first value of each axis index with its step; and the output position.
  struct Place {
    std::span<const std::byte* const> inputs;
    std::span<const std::int64_t> steps;
    std::span<const std::int64_t> index;
    std::size_t strip_axis = 0;
    std::int64_t position = 0;
    std::int64_t position_step = 0;
  };

  /// Elements of scratch memory that evaluate() wants.
  std::size_t scratch_size() const { return expr_.steps.size() * strip_size; }
  /// Fills in the constants. Call once before evaluate() with the same scratch memory.
  void prepare(C* scratch) const;
  /// The expression's values for n <= strip_size elements: in `scratch`, or an input itself.
  const C* evaluate(const Place& place, std::size_t n, C* scratch) const;

 private:
  ScalarExpr expr_;
  std::vector<DType> input_dtypes_;
};

/// Memory of the calling thread for strips, kept between calls; valid until the next call on the thread.
template <class C>
C* strip_scratch(std::size_t elements);

}  // namespace ein::cpu
