// Operations for models. The pattern marks the axes that an operation goes along with brackets:
// `softmax(x, "b h q [k]")`. An axis in brackets may be a part of a dimension: in
// `softmax(x, "b (h [d])", "h"_a = 4)` d is. Floats of 8 and 16 bits are computed in f32 and
// rounded once, at the end.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/axis.hpp>
#include <ein/detail/fields.hpp>
#include <ein/detail/result_dtype.hpp>
#include <ein/pattern.hpp>
#include <ein/tensor.hpp>

namespace ein {

/// A number for each axis in brackets, in the order of the pattern; a single one is that of each.
class PerAxis {
 public:
  PerAxis(std::convertible_to<Size> auto number) : numbers_{Size(number)} {}
  PerAxis(std::initializer_list<Size> numbers) : numbers_(numbers) {}
  PerAxis(std::vector<Size> numbers) : numbers_(std::move(numbers)) {}
  std::span<const Size> numbers() const { return numbers_; }

 private:
  std::vector<Size> numbers_;
};

/// What `pad` puts around a tensor, where that is not one value.
enum class PadMode : std::uint8_t {
  reflect,    ///< its elements in reverse order, without the one at the edge: c b | a b c | b a
  replicate,  ///< the one at the edge: a a | a b c | c c
  wrap        ///< those from the other end: b c | a b c | a b
};

/// Which number between two elements in order is their quantile, and which of the two where it is
/// one: NumPy's methods of the same names.
enum class Interpolation : std::uint8_t {
  linear,
  lower,
  higher,
  nearest,  ///< halfway the one at an even place in order
  midpoint
};

namespace detail {

/// What a call says beside its pattern, operands and axis sizes; each operation reads its own.
struct NamedOptions {
  double eps = 0;
  std::int64_t k = 0;
  bool descending = false;          // the greatest first
  std::optional<DType> dtype{};     // of the result, where the call says it
  std::span<const Size> numbers{};  // shifts; before and, as many, after; diagonal; samples, bins
  std::span<const double> reals{};  // quantiles; where the bins begin and end
  bool keeps_axis = false;          // several quantiles
  bool right = false;               // behind equal elements
  std::optional<PadMode> pad_mode{};
  Interpolation interpolation = Interpolation::linear;  // of quantiles
  Scalar otherwise = 0;                   // what is padded with; the rest of a triangle
  std::optional<std::int64_t> ignored{};  // a target that counts for nothing
  double smoothing = 0;                   // of targets
  EIN_FIELDS(NamedOptions, eps, k, descending, dtype, numbers, reals, keeps_axis, right, pad_mode,
             interpolation, otherwise, ignored, smoothing)
};

struct NamedCall {
  Operation op;
  const PatternArgument& pattern;
  std::span<const Tensor* const> operands;
  std::span<const AxisSize> sizes{};  // else those of the pattern
  NamedOptions options{};
};
std::vector<Tensor> run_named(const NamedCall& call);

template <Operation Op, class... S>
using NamedPattern1 = PatternFor<Op, Types<Tensor>, S...>;
template <Operation Op, class... S>
using NamedPattern2 = PatternFor<Op, Types<Tensor, Tensor>, S...>;

}  // namespace detail

// --- softmax ---

/// exp(x) / Σ exp(x), the sum over the axes in brackets: `softmax(x, "b h q [k]")`. -inf gives 0;
/// where all are -inf, NaN. Errors: kind dtype unless x is floating-point.
Tensor softmax(const Tensor& x, const detail::NamedPattern1<Operation::softmax>& pattern);
/// log softmax(x), without rounding of small probabilities to 0.
Tensor log_softmax(const Tensor& x, const detail::NamedPattern1<Operation::log_softmax>& pattern);

// --- norms ---

/// (x - mean) / √(variance + eps) · weight + bias over the axes in brackets (Ba, Kiros, Hinton
/// 2016; the variance is the population's): `layer_norm(x, weight, bias, "b s [c]")`. weight and
/// bias have these axes, in the order of the pattern, in any float type that x is computed in.
/// Of rows of n elements it is right, and so is its gradient, for |x - mean| <= 1.8e19 / √n, in f64
/// 1.3e154 / √n; beyond, squares overflow, and results may be 0 or NaN.
/// Errors: kind dtype, shape; value unless eps >= 0.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const detail::NamedPattern1<Operation::layer_norm>& pattern, double eps = 1e-5);
Tensor layer_norm(const Tensor& x, const detail::NamedPattern1<Operation::layer_norm>& pattern,
                  double eps = 1e-5);

/// x / √(mean of x² + eps) · weight over the axes in brackets (Zhang, Sennrich 2019). It is right
/// for |x| <= 1.8e19 / √n, in f64 1.3e154 / √n, as layer_norm is.
Tensor rms_norm(const Tensor& x, const Tensor& weight,
                const detail::NamedPattern1<Operation::rms_norm>& pattern, double eps = 1e-6);
Tensor rms_norm(const Tensor& x, const detail::NamedPattern1<Operation::rms_norm>& pattern,
                double eps = 1e-6);

// --- order ---

/// The i64 position of the greatest element along the axis in brackets, which the result lacks:
/// `argmax(x, "b [v]")`. Of equal elements the first; NaN counts as the greatest. Of several axes,
/// `argmax(x, "b [h w]")`, the position is that in row-major order, h · size of w + w. An Error of
/// kind `reduction` over no elements.
Tensor argmax(const Tensor& x, const detail::NamedPattern1<Operation::argmax>& pattern);
/// The same for the least element; NaN counts as the least.
Tensor argmin(const Tensor& x, const detail::NamedPattern1<Operation::argmin>& pattern);

/// Sums of all elements up to each along the axis in brackets: `cumsum(x, "b [s]")`, in x's dtype;
/// of bool and integers in i64. `cumsum(x, "b [s]", ein::as(dtype))` says another.
Tensor cumsum(const Tensor& x, const detail::NamedPattern1<Operation::cumsum>& pattern);
Tensor cumsum(const Tensor& x, const detail::NamedPattern1<Operation::cumsum>& pattern,
              ResultDType dtype);
/// The same for products. Its gradients of any order are right where elements are 0.
Tensor cumprod(const Tensor& x, const detail::NamedPattern1<Operation::cumprod>& pattern);
Tensor cumprod(const Tensor& x, const detail::NamedPattern1<Operation::cumprod>& pattern,
               ResultDType dtype);
/// log Σ exp of all elements up to each, without overflow in between: `logcumsumexp(x, "b [s]")`.
/// Errors: kind dtype unless x is floating-point.
Tensor logcumsumexp(const Tensor& x, const detail::NamedPattern1<Operation::logcumsumexp>& pattern);
/// The greatest element up to each: `cummax(x, "b [s]")`, in x's dtype. From the first NaN on NaN.
/// The gradient of each result goes to one element, the last of equal ones, as PyTorch's does.
Tensor cummax(const Tensor& x, const detail::NamedPattern1<Operation::cummax>& pattern);
/// The same for the least element.
Tensor cummin(const Tensor& x, const detail::NamedPattern1<Operation::cummin>& pattern);

/// Elements in order along an axis, and where in x each of them is (i64).
struct Sorted {
  Tensor values, positions;
};
/// `sort(x, "b [v]")`: the least first. Equal elements keep their order; NaN is the greatest.
Sorted sort(const Tensor& x, const detail::NamedPattern1<Operation::sort>& pattern,
            bool descending = false);
/// The k greatest, the greatest first: `top_k(x, "b [v]", 5)`. An Error of kind `value` unless k
/// is from 0 to the axis's size.
/// `top_k(x, "b [v]", 5, true)`: the k least, the least first.
Sorted top_k(const Tensor& x, const detail::NamedPattern1<Operation::top_k>& pattern,
             std::int64_t k, bool least = false);

/// The median along the axis in brackets, which the result lacks: `median(x, "b [s]")`. Of an even
/// number of elements it is the mean of the middle two. It is quantile(x, .., 0.5).
Tensor median(const Tensor& x, const detail::NamedPattern1<Operation::median>& pattern);
/// The element at q · (size - 1) in order along the axis in brackets, between two of them by linear
/// interpolation, as NumPy's and PyTorch's default, or another: `quantile(x, "b [s]", 0.9)`. NaN
/// where an element is NaN. Of floats in x's dtype; of bool and integers f32, computed in f64. The
/// gradient goes to the two elements, by their weights. Errors: kind value unless 0 <= q <= 1;
/// reduction over no elements.
Tensor quantile(const Tensor& x, const detail::NamedPattern1<Operation::quantile>& pattern,
                double q, Interpolation interpolation = Interpolation::linear);
/// The same for several q, along which the axis in brackets then lies: "b [s]" of (2, 100) and
/// {0.1, 0.5, 0.9} give (2, 3).
Tensor quantile(const Tensor& x, const detail::NamedPattern1<Operation::quantile>& pattern,
                const std::vector<double>& q, Interpolation interpolation = Interpolation::linear);

// --- where elements lie ---
//
// The results have x's dtype, and gradients flow back to the elements that were moved.

/// x in reverse order along the axes in brackets: `flip(x, "b [s] c")`.
Tensor flip(const Tensor& x, const detail::NamedPattern1<Operation::flip>& pattern);
/// Each element `shift` places further on along the axes in brackets, and those beyond the end at
/// the beginning: `roll(x, "b [s] c", 1)`, `roll(x, "[h] [w]", {1, -2})`. An Error of kind `arity`
/// for another number of shifts than 1 or that of the axes.
Tensor roll(const Tensor& x, const detail::NamedPattern1<Operation::roll>& pattern,
            const PerAxis& shifts);
/// x with `before` and `after` elements more along the axes in brackets, which are `value`:
/// `pad(x, "b [s] c", 0, 3)` of (2, 5, 4) is (2, 8, 4), `pad(x, "b [h w]", 1, {1, 2})`. Errors:
/// kind arity for another number than 1 or that of the axes; value for less than 0; dtype for a
/// value that x's dtype lacks.
Tensor pad(const Tensor& x, const detail::NamedPattern1<Operation::pad>& pattern,
           const PerAxis& before, const PerAxis& after, Scalar value = 0);
/// The same with elements of x. An Error of kind `value` for more than x has of them: its size by
/// `wrap`, one less by `reflect`, none by `replicate` along an axis without elements.
Tensor pad(const Tensor& x, const detail::NamedPattern1<Operation::pad>& pattern,
           const PerAxis& before, const PerAxis& after, PadMode mode);

/// The lower triangle of matrices, whose rows and columns are the axes in brackets, in this order:
/// `tril(x, "b [i j]")`. Elements with column - row > diagonal are `otherwise`. An Error of kind
/// `dtype` for one that x's dtype lacks.
Tensor tril(const Tensor& x, const detail::NamedPattern1<Operation::tril>& pattern,
            Size diagonal = 0, Scalar otherwise = 0);
/// The upper triangle: elements with column - row < diagonal are `otherwise`.
Tensor triu(const Tensor& x, const detail::NamedPattern1<Operation::triu>& pattern,
            Size diagonal = 0, Scalar otherwise = 0);
/// The elements with column - row = offset, as a view: `diagonal(x, "b [i j]")` of (2, 3, 4) is
/// (2, 3). They lie where the rows were; the result has no columns. Of offset 0 it is
/// einsum(x, "b i i -> b i"), which wants square matrices.
Tensor diagonal(const Tensor& x, const detail::NamedPattern1<Operation::diagonal>& pattern,
                Size offset = 0);
/// Square matrices with the axis in brackets at column - row = offset and zeros elsewhere; rows and
/// columns lie where it was: `from_diagonal(x, "b [i] c")` of (2, 3, 4) is (2, 3, 3, 4).
Tensor from_diagonal(const Tensor& x,
                     const detail::NamedPattern1<Operation::from_diagonal>& pattern,
                     Size offset = 0);

// --- draws ---
//
// From the next stream of random numbers, as rand() does: the same on any number of threads, and
// others at each run of a compiled function.

/// 1 with the probability that p holds, else 0, in p's dtype. Errors: kind dtype unless p is
/// floating-point; value for one outside [0, 1], unless a compiled function computes it.
Tensor bernoulli(const Tensor& p);
/// The i64 positions of `samples` draws along the axis in brackets, each with a probability
/// proportional to its element, with replacement: `multinomial(p, "b [c]", 5)` of (2, 10) is (2,
/// 5). In a compiled function a row that sums up to 0, NaN or infinity gives positions of -1.
/// Errors: kind dtype unless floating-point; value for fewer than 0 samples, for a negative element
/// or for such a row; reduction for draws from no elements.
Tensor multinomial(const Tensor& probabilities,
                   const detail::NamedPattern1<Operation::multinomial>& pattern, Size samples);

// --- in order, and counted ---

/// How many elements along the axis in brackets of `sorted`, which are in order, come before each
/// value: where it would go to keep the order. `right`: behind equal elements, else before. NaN is
/// the greatest. The result (i64) has all other axes of both, in any order:
///
///     searchsorted(edges, x, "[e], b s -> b s")
///
/// Errors: kind dtype unless both have the same dtype.
Tensor searchsorted(const Tensor& sorted, const Tensor& values,
                    const detail::NamedPattern2<Operation::searchsorted>& pattern,
                    bool right = false);
/// How many elements (i64) along the axis in brackets lie in each of `bins` equal parts of
/// [low, high], as NumPy's histogram: `histogram(x, "b [s]", 10, 0, 1)` of (2, 100) is (2, 10). An
/// edge belongs to the bin that begins there, `high` to the last; what lies outside, and NaN, to
/// none. Errors: kind value unless bins >= 1, and low < high are finite.
Tensor histogram(const Tensor& x, const detail::NamedPattern1<Operation::histogram>& pattern,
                 Size bins, double low, double high);

// The sizes of these results are data, so in a function that ein::compile traces they are an Error
// of kind `value`.

/// The i64 positions of the elements that are not 0, in row-major order, one along each axis of x:
/// (count, rank).
Tensor nonzero(const Tensor& x);
/// The different elements of x in order, NaN last and once; of each element of x the i64 position
/// of its value among them; and how often each value is there (i64).
struct Unique {
  Tensor values, positions, counts;
};
Unique unique(const Tensor& x);

// --- positions ---
//
// Positions are integers of any dtype; an Error of kind `value` for one that is not from 0 to the
// axis's size - 1.

/// The elements of x at `positions` along the axis in brackets. The result has all other axes of
/// both, in any order:
///
///     gather(table, tokens, "[v] d, b s -> b s d")  // embeddings
///     gather(x, i, "b [v], b -> b")                 // one element of each row
template <AxisArgument... S>
Tensor gather(const Tensor& x, const Tensor& positions,
              const std::type_identity_t<detail::NamedPattern2<Operation::gather, S...>>& pattern,
              const S&... sizes) {
  const std::array operands{&x, &positions};
  const std::array<AxisSize, sizeof...(S)> given{AxisSize(sizes)...};
  return std::move(detail::run_named({Operation::gather, pattern, operands, given}).front());
}

namespace detail {
template <Operation Op, class Pattern, CallArgument... S>
Tensor run_scatter(const Tensor& values, const Tensor& positions, const Pattern& pattern,
                   const S&... arguments) {
  const std::array operands{&values, &positions};
  const CallArguments<S...> given(arguments...);
  return std::move(run_named({Op, pattern, operands, given.sizes, {.dtype = given.dtype}}).front());
}
}  // namespace detail

/// Zeros, and each value added at its position along the axis in brackets: the reverse of gather.
/// Sums over axes that the output lacks. The result has the dtype of the values; of bool and
/// integers it is i64, of u64 u64. `ein::as(dtype)` at the end says another.
///
///     scatter_add(values, tokens, "b s d, b s -> [v] d", "v"_a = 1000)
template <CallArgument... S>
Tensor scatter_add(
    const Tensor& values, const Tensor& positions,
    const std::type_identity_t<detail::NamedPattern2<Operation::scatter_add, S...>>& pattern,
    const S&... arguments) {
  return detail::run_scatter<Operation::scatter_add>(values, positions, pattern, arguments...);
}
/// The same for products, which begin with 1.
template <CallArgument... S>
Tensor scatter_prod(
    const Tensor& values, const Tensor& positions,
    const std::type_identity_t<detail::NamedPattern2<Operation::scatter_prod, S...>>& pattern,
    const S&... arguments) {
  return detail::run_scatter<Operation::scatter_prod>(values, positions, pattern, arguments...);
}
/// The greatest value at each position, in the dtype of the values; where there is none -inf, or
/// the least number of an integer dtype. NaN where a value is NaN. Equal values share the gradient.
template <AxisArgument... S>
Tensor scatter_max(
    const Tensor& values, const Tensor& positions,
    const std::type_identity_t<detail::NamedPattern2<Operation::scatter_max, S...>>& pattern,
    const S&... sizes) {
  return detail::run_scatter<Operation::scatter_max>(values, positions, pattern, sizes...);
}
/// The least one; where there is none inf, or the greatest number of an integer dtype.
template <AxisArgument... S>
Tensor scatter_min(
    const Tensor& values, const Tensor& positions,
    const std::type_identity_t<detail::NamedPattern2<Operation::scatter_min, S...>>& pattern,
    const S&... sizes) {
  return detail::run_scatter<Operation::scatter_min>(values, positions, pattern, sizes...);
}

/// 1 at each position along the axis in brackets, else 0. A position outside of it gives zeros.
///
///     one_hot(tokens, "b s -> b s [v]", "v"_a = 10)
template <AxisArgument Size>
Tensor one_hot(const Tensor& positions,
               const std::type_identity_t<detail::NamedPattern1<Operation::one_hot, Size>>& pattern,
               const Size& size, DType dtype = DType::f32) {
  const std::array operands{&positions};
  const std::array given{AxisSize(size)};
  return std::move(
      detail::run_named({Operation::one_hot, pattern, operands, given, {.dtype = dtype}}).front());
}
/// The axis in brackets is a number: `one_hot(digits, "n -> n [10]")`.
Tensor one_hot(const Tensor& positions, const detail::NamedPattern1<Operation::one_hot>& pattern,
               DType dtype = DType::f32);

// --- losses ---

/// The mean of log Σ exp(logits) - logits[target], the sum over the axis in brackets, along which
/// the targets (integers) are positions: a tensor without axes. With an arrow the losses are
/// averaged over the axes that the output lacks.
///
///     cross_entropy(logits, targets, "b s [v], b s")
///     cross_entropy(logits, targets, "b s [v], b s -> b s")  // each
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const detail::NamedPattern2<Operation::cross_entropy>& pattern);

/// What else cross_entropy takes into account.
struct CrossEntropyOptions {
  /// A target that counts for nothing: its loss is 0, and means leave it out. It need not be one of
  /// the classes.
  std::optional<std::int64_t> ignored{};
  /// A weight for each class, a tensor along the axis in brackets. The loss of a target has the
  /// weight of its class, and a mean is the sum of the losses by the sum of these weights.
  std::optional<Tensor> weights{};
  /// From 0 to 1: the part of each target that is spread evenly over all classes (Szegedy et al.
  /// 2016).
  double smoothing = 0;
};
/// The same with options, and of targets that are probabilities: floating-point targets have the
/// axis in brackets too, and the loss is -Σ weight · target · log softmax(logits). Its means divide
/// by the number of losses, whatever the weights. Values and means are those of PyTorch. A mean of
/// no losses, as where all targets are ignored, is NaN.
///
///     cross_entropy(logits, targets, "b s [v], b s", {.ignored = -100, .smoothing = 0.1})
///     cross_entropy(logits, probabilities, "b s [v], b s v")
///
/// Errors: kind value unless 0 <= smoothing <= 1, and for an ignored target beside probabilities;
/// shape or dtype for weights that do not fit.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const detail::NamedPattern2<Operation::cross_entropy>& pattern,
                     const CrossEntropyOptions& options);

/// The mean of (a - b)². An Error of kind `shape` unless the shapes are equal.
Tensor mse_loss(const Tensor& a, const Tensor& b);

// --- training ---

/// Each element is 0 with probability p, else divided by 1 - p (Srivastava et al. 2014), with the
/// next stream of random numbers. An Error of kind `value` unless 0 <= p < 1.
Tensor dropout(const Tensor& x, double p);

/// Multiplies the gradients of all parameters that have one by min(1, max_norm / (norm + 1e-6)), as
/// PyTorch's clip_grad_norm_ does; norm, the root of the sum of all their squares, is the result
/// (f32 or f64, without axes). Errors: kind value unless max_norm >= 0, and with
/// `error_if_nonfinite` where norm is NaN or infinite, before any gradient changes; ein::compile
/// cannot trace that question.
Tensor clip_grad_norm(std::span<const Tensor> parameters, double max_norm,
                      bool error_if_nonfinite = false);

// --- with sizes of axes ---
//
// Behind the pattern, before or behind the other arguments: `softmax(x, "b (h [d])", "h"_a = 4)`,
// `roll(x, "b (h [d])", 1, "h"_a = 4)`. Numbers in braces are a PerAxis{1, -2} there.
//
// EIN_WITH_SIZES(function, types of the operands, as classes, as parameters, and as arguments).

namespace detail {

/// Calls f with the pattern, to which the sizes among the arguments are added, and the others.
template <class Pattern, class F, class... A>
auto with_sizes(const PatternArgument& checked, const F& f, const A&... arguments) {
  std::array<AxisSize, (std::size_t{AxisArgument<A>} + ...)> sizes{};
  std::size_t count = 0;
  const auto take = [&](const auto& argument) {
    if constexpr (AxisArgument<std::remove_cvref_t<decltype(argument)>>) sizes[count++] = argument;
  };
  const auto other = [](const auto& argument) {
    if constexpr (AxisArgument<std::remove_cvref_t<decltype(argument)>>)
      return std::tuple<>();
    else
      return std::tie(argument);
  };
  (take(arguments), ...);
  const Pattern pattern{PatternArgument(checked, sizes)};
  return std::apply([&](const auto&... others) { return f(pattern, others...); },
                    std::tuple_cat(other(arguments)...));
}

template <class... A>
concept WithSizes = (AxisArgument<A> || ...);

}  // namespace detail

#define EIN_UNPACKED(...) __VA_ARGS__
#define EIN_WITH_SIZES(function, types, classes, operands, given)                                  \
  template <EIN_UNPACKED classes, class... A>                                                      \
  requires detail::WithSizes<A...>                                                                 \
  auto function(                                                                                   \
      EIN_UNPACKED operands,                                                                       \
      const std::type_identity_t<                                                                  \
          PatternFor<Operation::function, detail::Types<EIN_UNPACKED types>, A...>>& pattern,      \
      const A&... arguments) {                                                                     \
    return detail::with_sizes<PatternFor<Operation::function, detail::Types<EIN_UNPACKED types>>>( \
        pattern,                                                                                   \
        [&](const auto& sized, const auto&... others) {                                            \
          return function(EIN_UNPACKED given, sized, others...);                                   \
        },                                                                                         \
        arguments...);                                                                             \
  }
#define EIN_OF_ONE(function) \
  EIN_WITH_SIZES(function, (X), (std::derived_from<Tensor> X), (const X& x), (x))
#define EIN_OF_TWO(function)                                                                   \
  EIN_WITH_SIZES(function, (X, Y), (std::derived_from<Tensor> X, std::derived_from<Tensor> Y), \
                 (const X& x, const Y& y), (x, y))
// clang-format off
EIN_OF_ONE(softmax)
EIN_OF_ONE(log_softmax)
EIN_OF_ONE(layer_norm)
EIN_OF_ONE(rms_norm)
EIN_OF_ONE(argmax)
EIN_OF_ONE(argmin)
EIN_OF_ONE(cumsum)
EIN_OF_ONE(cumprod)
EIN_OF_ONE(logcumsumexp)
EIN_OF_ONE(cummax)
EIN_OF_ONE(cummin)
EIN_OF_ONE(sort)
EIN_OF_ONE(top_k)
EIN_OF_ONE(median)
EIN_OF_ONE(quantile)
EIN_OF_ONE(flip)
EIN_OF_ONE(roll)
EIN_OF_ONE(pad)
EIN_OF_ONE(tril)
EIN_OF_ONE(triu)
EIN_OF_ONE(diagonal)
EIN_OF_ONE(multinomial)
EIN_OF_ONE(histogram)
EIN_OF_ONE(inverse)
EIN_OF_ONE(det)
EIN_OF_ONE(cholesky)
EIN_OF_ONE(qr)
EIN_OF_ONE(svd)
EIN_OF_ONE(eigh)
EIN_OF_TWO(searchsorted)
EIN_OF_TWO(cross_entropy)
EIN_OF_TWO(solve)
EIN_OF_TWO(lstsq)
EIN_WITH_SIZES(layer_norm, (X), (std::derived_from<Tensor> X),
               (const X& x, const Tensor& weight, const Tensor& bias), (x, weight, bias))
EIN_WITH_SIZES(rms_norm, (X), (std::derived_from<Tensor> X), (const X& x, const Tensor& weight),
               (x, weight))
// clang-format on
#undef EIN_OF_TWO
#undef EIN_OF_ONE
#undef EIN_WITH_SIZES
#undef EIN_UNPACKED

}  // namespace ein
