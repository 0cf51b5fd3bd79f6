// The operations that a pattern describes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/axis.hpp>
#include <ein/pattern.hpp>
#include <ein/reduction.hpp>
#include <ein/tensor.hpp>

namespace ein {

/// How einsum of many operands may be computed.
struct EinsumOptions {
  /// No intermediate result may have more elements than this; 0 for no limit. An Error of kind `memory`
  /// if no order of contraction keeps it.
  std::int64_t max_intermediate = 0;
};

/// A reduction by enumerator or by name: "sum", "mean", "max", "min", "prod", "any", "all", "logsumexp",
/// "var", "std". Another name is an Error of kind `reduction`.
class ReductionArgument {
 public:
  ReductionArgument(Reduction reduction) : reduction_(reduction) {}
  ReductionArgument(std::string_view name);
  ReductionArgument(const char* name) : ReductionArgument(std::string_view(name)) {}
  Reduction reduction() const { return reduction_; }

 private:
  Reduction reduction_;
};

namespace detail {

/// One call as the eager runtime takes it.
struct Call {
  Operation op;
  std::string_view pattern;
  std::span<const Tensor* const> operands;
  std::span<const AxisSize> sizes;
  Reduction reduction = Reduction::sum;
  std::span<const Shape> packed_shapes{};
  bool stacked = false;
  EinsumOptions options{};
};
Tensor run_one(const Call& call);
std::vector<Tensor> run_all(const Call& call);
std::vector<const Tensor*> addresses(std::span<const Tensor> tensors);

template <class... Sizes>
std::array<AxisSize, sizeof...(Sizes)> axis_sizes(const Sizes&... sizes) {
  return {AxisSize(sizes)...};
}
}  // namespace detail

// --- einsum: products summed over the axes that the output lacks ------------------------------------

/// `einsum(x, y, "b s1 h, b s2 h -> b s1 s2")`. Inputs may hold composites, numbers, 1, `_`, `...` and
/// repeated axes (diagonals). The result is a new tensor in the operands' dtype, or a view where nothing is
/// computed. Floats of 8 and 16 bits accumulate in f32.
template <AxisArgument... Sizes>
Tensor einsum(std::span<const Tensor> operands, PatternText pattern, const EinsumOptions& options, const Sizes&... sizes) {
  const auto given = detail::axis_sizes(sizes...);
  const auto addresses = detail::addresses(operands);
  return detail::run_one({Operation::einsum, pattern.text(), addresses, given, Reduction::sum, {}, false, options});
}
template <AxisArgument... Sizes>
Tensor einsum(std::span<const Tensor> operands, PatternText pattern, const Sizes&... sizes) {
  return einsum(operands, pattern, EinsumOptions{}, sizes...);
}

namespace detail {
template <std::size_t N, class... Sizes>
Tensor einsum_of(const std::array<const Tensor*, N>& operands, PatternText pattern, const Sizes&... sizes) {
  const auto given = axis_sizes(sizes...);
  return run_one({Operation::einsum, pattern.text(), operands, given});
}
}  // namespace detail

template <AxisArgument... S>
Tensor einsum(const Tensor& a, PatternText p, const S&... s) {
  return detail::einsum_of<1>({&a}, p, s...);
}
template <AxisArgument... S>
Tensor einsum(const Tensor& a, const Tensor& b, PatternText p, const S&... s) {
  return detail::einsum_of<2>({&a, &b}, p, s...);
}
template <AxisArgument... S>
Tensor einsum(const Tensor& a, const Tensor& b, const Tensor& c, PatternText p, const S&... s) {
  return detail::einsum_of<3>({&a, &b, &c}, p, s...);
}
template <AxisArgument... S>
Tensor einsum(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, PatternText p, const S&... s) {
  return detail::einsum_of<4>({&a, &b, &c, &d}, p, s...);
}
template <AxisArgument... S>
Tensor einsum(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e, PatternText p,
              const S&... s) {
  return detail::einsum_of<5>({&a, &b, &c, &d, &e}, p, s...);
}
template <AxisArgument... S>
Tensor einsum(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e, const Tensor& f,
              PatternText p, const S&... s) {
  return detail::einsum_of<6>({&a, &b, &c, &d, &e, &f}, p, s...);
}
template <AxisArgument... S>
Tensor einsum(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e, const Tensor& f,
              const Tensor& g, PatternText p, const S&... s) {
  return detail::einsum_of<7>({&a, &b, &c, &d, &e, &f, &g}, p, s...);
}
template <AxisArgument... S>
Tensor einsum(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e, const Tensor& f,
              const Tensor& g, const Tensor& h, PatternText p, const S&... s) {
  return detail::einsum_of<8>({&a, &b, &c, &d, &e, &f, &g, &h}, p, s...);
}

// --- rearrange, repeat, reduce ----------------------------------------------------------------------

/// `rearrange(x, "b s (h d) -> b h s d", "h"_a = 8)`: transposes, splits, merges and drops axes of size 1.
/// A view whenever strides can express the result, else a copy.
template <AxisArgument... Sizes>
Tensor rearrange(const Tensor& x, PatternText pattern, const Sizes&... sizes) {
  const auto given = detail::axis_sizes(sizes...);
  const Tensor* operand = &x;
  return detail::run_one({Operation::rearrange, pattern.text(), {&operand, 1}, given});
}
/// The tensors, all of one shape, are stacked on a new first axis first.
template <AxisArgument... Sizes>
Tensor rearrange(std::span<const Tensor> xs, PatternText pattern, const Sizes&... sizes) {
  const auto given = detail::axis_sizes(sizes...);
  const auto operands = detail::addresses(xs);
  return detail::run_one({Operation::rearrange, pattern.text(), operands, given, Reduction::sum, {}, true});
}

/// `repeat(x, "h w -> h w 3")`, `repeat(x, "h w -> (h k) w", "k"_a = 2)`: like rearrange, and axes that only
/// the output has repeat the elements. A view of stride 0 whenever strides can express the result.
template <AxisArgument... Sizes>
Tensor repeat(const Tensor& x, PatternText pattern, const Sizes&... sizes) {
  const auto given = detail::axis_sizes(sizes...);
  const Tensor* operand = &x;
  return detail::run_one({Operation::repeat, pattern.text(), {&operand, 1}, given});
}
template <AxisArgument... Sizes>
Tensor repeat(std::span<const Tensor> xs, PatternText pattern, const Sizes&... sizes) {
  const auto given = detail::axis_sizes(sizes...);
  const auto operands = detail::addresses(xs);
  return detail::run_one({Operation::repeat, pattern.text(), operands, given, Reduction::sum, {}, true});
}

/// `reduce(x, "b c (h 2) (w 2) -> b c h w", "max")`: combines over the axes that the output lacks. The
/// result has x's dtype.
template <AxisArgument... Sizes>
Tensor reduce(const Tensor& x, PatternText pattern, ReductionArgument reduction, const Sizes&... sizes) {
  const auto given = detail::axis_sizes(sizes...);
  const Tensor* operand = &x;
  return detail::run_one({Operation::reduce, pattern.text(), {&operand, 1}, given, reduction.reduction()});
}
template <AxisArgument... Sizes>
Tensor reduce(std::span<const Tensor> xs, PatternText pattern, ReductionArgument reduction, const Sizes&... sizes) {
  const auto given = detail::axis_sizes(sizes...);
  const auto operands = detail::addresses(xs);
  return detail::run_one({Operation::reduce, pattern.text(), operands, given, reduction.reduction(), {}, true});
}

// --- pack, unpack, parse_shape ----------------------------------------------------------------------

/// The packed tensor, and for each operand the shape that `*` stood for in it.
struct Packed {
  Tensor tensor;
  std::vector<Shape> shapes;
};
/// `pack(xs, "b * c")`: joins tensors along one axis, each after its axes under `*` are merged into one.
Packed pack(std::span<const Tensor> xs, PatternText pattern);

/// The reverse of pack: one tensor per shape, each a view of x. One size may be -1: what is left.
std::vector<Tensor> unpack(const Tensor& x, std::span<const Shape> packed_shapes, PatternText pattern);

/// Sizes by name, in the order of the pattern.
class NamedSizes {
 public:
  explicit NamedSizes(std::vector<std::pair<std::string, std::int64_t>> sizes) : sizes_(std::move(sizes)) {}
  /// The size of an axis; an Error of kind `axis_argument` for a name that is not there.
  std::int64_t operator[](std::string_view name) const;
  auto begin() const { return sizes_.begin(); }
  auto end() const { return sizes_.end(); }
  std::size_t size() const { return sizes_.size(); }

 private:
  std::vector<std::pair<std::string, std::int64_t>> sizes_;
};
/// `parse_shape(x, "b _ h w")["h"]`: the sizes of the named axes.
NamedSizes parse_shape(const Tensor& x, PatternText pattern);

}  // namespace ein
