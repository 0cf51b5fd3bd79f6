// Named operations on typed tensors, whose results have other axes than the operands. Which, the
// pattern says: where it is in a type the result is typed.
//
//     Float<"b s d"> x = gather(table, tokens, "[v] d, b s -> b s d"_p);
//     Long<"b s"> words = argmax<"b s [v]">(logits);
//
// A pattern that is no part of a type is checked against the operands' types, and the result is
// plain. Of a plain operand it is plain, too.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/axis.hpp>
#include <ein/detail/result_dtype.hpp>
#include <ein/linalg.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include <ein/pattern.hpp>
#include <ein/typed.hpp>
#include <ein/typed_ops.hpp>

#include <ein/detail/check_call.hpp>  // behind ops.hpp, which takes it back

namespace ein {

namespace pattern_error {
// Two typed operands, of the types A and B, of which each element has its fellow
template <FixedString A, FixedString B>
void an_operand_lacks_an_axis();  // repeat it along that axis
}  // namespace pattern_error

namespace detail {

/// Of which dtype the result of a named operation is: as its row of operations.hpp and its call
/// say; of positions, and counts; of quantiles; or of zeros and ones.
enum class NamedDType { by_call, positions, quantiles, ones };

template <NamedDType kind, class Call>
struct DTypeOf;
template <NamedDType kind, Operation Op, FixedString Pattern, class X, class... Rest,
          class... Arguments>
struct DTypeOf<kind, StaticCall<Op, Pattern, Types<X, Rest...>, Types<Arguments...>>> {
  static constexpr DType operand = OperandType<X>::dtype;
  static constexpr std::optional<DType> find() {
    if (kind == NamedDType::positions) return DType::i64;
    if (kind == NamedDType::quantiles) return is_floating(operand) ? operand : DType::f32;
    constexpr DType otherwise = kind == NamedDType::ones ? DType::f32 : operand;
    return static_result_dtype<Op, otherwise, true>(Types<Arguments...>());
  }
};

/// The axes of result `Which` of a call.
template <class Call, std::size_t Which>
struct AxesOf;
template <Operation Op, FixedString Pattern, class Operands, class... Arguments, std::size_t Which>
struct AxesOf<StaticCall<Op, Pattern, Operands, Types<Arguments...>>, Which> {
  static constexpr ResultAxes axes =
      find_facts<Op, Pattern, Operands, SizesAmong<Arguments...>, Which>().axes;
};
template <Operation Op, FixedString Pattern, class Operands, class... Arguments>
struct AxesOf<StaticCall<Op, Pattern, Operands, Types<Arguments...>>, 0> {
  static constexpr const ResultAxes& axes =
      StaticCall<Op, Pattern, Operands, Types<Arguments...>>::axes;
};

/// A result of a call as it is typed; plain where types don't say its axes or its dtype.
template <class Call, std::size_t Which = 0, NamedDType kind = NamedDType::by_call>
auto with_type(Tensor made) {
  if constexpr (Call::axes.is_known) {
    constexpr std::optional<DType> dtype = DTypeOf<kind, Call>::find();
    if constexpr (dtype.has_value() && AxesOf<Call, Which>::axes.is_known) {
      constexpr auto axes = fixed_string<AxesOf<Call, Which>::axes>();
      return Typed<ElementOf<*dtype>, axes>(Trusted(), std::move(made));
    } else {
      return made;
    }
  } else {
    return made;
  }
}

template <FixedString A, FixedString B>
consteval void check_ranks() {
  if (!ranks_agree(StaticSpec<A>::reading(), StaticSpec<B>::reading()))
    pattern_error::an_operand_lacks_an_axis<A, B>();
}

/// Whether an operand that holds positions can: its type, if it has one, says integers, or of
/// cross_entropy probabilities.
template <Operation Op, class... Operands>
consteval bool holds_positions() {
  constexpr int operand = info(Op).positions;
  if constexpr (operand < 0) {
    return true;
  } else {
    constexpr int dtypes[] = {static_dtype<Operands>()...};
    if (dtypes[operand] < 0) return true;
    constexpr auto dtype = static_cast<DType>(dtypes[operand]);
    return is_of(DTypeKind::integer, dtype) ||
           (Op == Operation::cross_entropy && is_of(DTypeKind::floating, dtype));
  }
}

template <class... Operands>
concept SayAxes = (TensorArgument<Operands> && ...) && (says_axes<Operands> || ...);

/// The types of the arguments behind a pattern.
template <class, class... S>
using CallArgumentTypes = Types<S...>;

}  // namespace detail

#define EIN_UNPACKED(...) __VA_ARGS__

// --- of one operand ---
//
// EIN_TYPED_ALONG(function, what follows its pattern: declared, and passed on; which of the axes in
// its row, and the dtype, the result has).

#define EIN_TYPED_ALONG(function, parameters, arguments, which, dtype)                             \
  template <detail::SayAxes X>                                                                     \
  Tensor function(                                                                                 \
      const X& x,                                                                                  \
      const detail::TypedPattern<Operation::function, X>& pattern EIN_UNPACKED parameters) {       \
    return function(static_cast<const Tensor&>(x),                                                 \
                    detail::untyped(pattern) EIN_UNPACKED arguments);                              \
  }                                                                                                \
  template <TensorArgument X, FixedString Pattern>                                                 \
  auto function(const X& x, PatternLiteral<Pattern> EIN_UNPACKED parameters) {                     \
    using Call = detail::StaticCallOn<X, Operation::function, Pattern>;                            \
    check_call(Call());                                                                            \
    return detail::with_type<Call, which, detail::NamedDType::dtype>(function(                     \
        static_cast<const Tensor&>(x),                                                             \
        detail::NamedPattern1<Operation::function>(Call::facts.argument) EIN_UNPACKED arguments)); \
  }                                                                                                \
  template <FixedString Pattern, TensorArgument X>                                                 \
  auto function(const X& x EIN_UNPACKED parameters) {                                              \
    using Call = detail::StaticCallOn<X, Operation::function, Pattern>;                            \
    check_call(Call());                                                                            \
    return detail::with_type<Call, which, detail::NamedDType::dtype>(function(                     \
        static_cast<const Tensor&>(x),                                                             \
        detail::NamedPattern1<Operation::function>(Call::facts.argument) EIN_UNPACKED arguments)); \
  }
// clang-format off
EIN_TYPED_ALONG(argmax, (), (), 0, positions)
EIN_TYPED_ALONG(argmin, (), (), 0, positions)
EIN_TYPED_ALONG(median, (), (), 0, quantiles)
EIN_TYPED_ALONG(quantile, (, double q, Interpolation interpolation = Interpolation::linear),
                (, q, interpolation), 0, quantiles)
EIN_TYPED_ALONG(quantile, (, const std::vector<double>& q,
                           Interpolation interpolation = Interpolation::linear),
                (, q, interpolation), 1, quantiles)
EIN_TYPED_ALONG(pad, (, const PerAxis& before, const PerAxis& after, Scalar value = 0),
                (, before, after, value), 0, by_call)
EIN_TYPED_ALONG(pad, (, const PerAxis& before, const PerAxis& after, PadMode mode),
                (, before, after, mode), 0, by_call)
EIN_TYPED_ALONG(diagonal, (, Size offset = 0), (, offset), 0, by_call)
EIN_TYPED_ALONG(from_diagonal, (, Size offset = 0), (, offset), 0, by_call)
EIN_TYPED_ALONG(multinomial, (, Size samples), (, samples), 0, positions)
EIN_TYPED_ALONG(histogram, (, Size bins, double low, double high), (, bins, low, high), 0,
                positions)
EIN_TYPED_ALONG(inverse, (), (), 0, by_call)
EIN_TYPED_ALONG(det, (), (), 0, by_call)
// clang-format on
#undef EIN_TYPED_ALONG

/// In the axes of m, whose names the pattern may not exchange.
template <class T, FixedString A>
auto cholesky(const Typed<T, A>& m,
              const detail::TypedPattern<Operation::cholesky, Typed<T, A>>& pattern) {
  return Typed<T, A>(detail::Trusted(),
                     cholesky(static_cast<const Tensor&>(m), detail::untyped(pattern)));
}

// --- with several results ---
//
// EIN_TYPED_PARTS(function, what follows its pattern: declared, and passed on; the plain results
// and the typed ones, and what these are of the plain `made`).

/// Elements in order, and where they were: of top_k.
template <class Values, class Positions>
struct TypedTopK {
  Values values;
  Positions positions;
};
template <class Q, class R>
struct TypedQrFactors {
  Q q;
  R r;
};
template <class U, class S, class Vt>
struct TypedSvdFactors {
  U u;
  S s;
  Vt vt;
};
template <class Values, class Vectors>
struct TypedEigenpairs {
  Values values;
  Vectors vectors;
};

#define EIN_TYPED_PARTS(function, parameters, arguments, plain, results, parts)              \
  template <detail::SayAxes X>                                                               \
  plain function(                                                                            \
      const X& x,                                                                            \
      const detail::TypedPattern<Operation::function, X>& pattern EIN_UNPACKED parameters) { \
    return function(static_cast<const Tensor&>(x),                                           \
                    detail::untyped(pattern) EIN_UNPACKED arguments);                        \
  }                                                                                          \
  template <class T, FixedString A, FixedString Pattern>                                     \
  auto function(const Typed<T, A>& x, PatternLiteral<Pattern> EIN_UNPACKED parameters) {     \
    using Call = detail::StaticCallOn<Typed<T, A>, Operation::function, Pattern>;            \
    check_call(Call());                                                                      \
    plain made = function(static_cast<const Tensor&>(x),                                     \
                          detail::NamedPattern1<Operation::function>(Call::facts.argument)   \
                              EIN_UNPACKED arguments);                                       \
    return results{EIN_UNPACKED parts};                                                      \
  }                                                                                          \
  template <FixedString Pattern, class T, FixedString A>                                     \
  auto function(const Typed<T, A>& x EIN_UNPACKED parameters) {                              \
    using Call = detail::StaticCallOn<Typed<T, A>, Operation::function, Pattern>;            \
    check_call(Call());                                                                      \
    plain made = function(static_cast<const Tensor&>(x),                                     \
                          detail::NamedPattern1<Operation::function>(Call::facts.argument)   \
                              EIN_UNPACKED arguments);                                       \
    return results{EIN_UNPACKED parts};                                                      \
  }
#define EIN_PART(field, which, dtype) \
  detail::with_type<Call, which, detail::NamedDType::dtype>(std::move(made.field))
// clang-format off
EIN_TYPED_PARTS(top_k, (, std::int64_t k, bool least = false), (, k, least), Sorted, TypedTopK,
                (EIN_PART(values, 0, by_call), EIN_PART(positions, 0, positions)))
EIN_TYPED_PARTS(qr, (), (), QrFactors, TypedQrFactors,
                (EIN_PART(q, 0, by_call), EIN_PART(r, 1, by_call)))
EIN_TYPED_PARTS(svd, (), (), SvdFactors, TypedSvdFactors,
                (EIN_PART(u, 0, by_call), EIN_PART(s, 1, by_call), EIN_PART(vt, 2, by_call)))
EIN_TYPED_PARTS(eigh, (), (), Eigenpairs, TypedEigenpairs,
                (EIN_PART(values, 0, by_call), EIN_PART(vectors, 1, by_call)))
// clang-format on
#undef EIN_PART
#undef EIN_TYPED_PARTS

// --- of two operands ---
//
// EIN_TYPED_PAIR(function, what follows its pattern: types of arguments, these as classes and
// declared, and passed on; the dtype of the result). One operand may be plain. No macro makes these
// calls: each macro around a mistake lengthens what a compiler says.

#define EIN_TYPED_PAIR(function, types, classes, parameters, arguments, dtype)              \
  template <TensorArgument X, TensorArgument Y EIN_UNPACKED classes>                        \
  requires detail::SayAxes<X, Y> Tensor function(                                           \
      const X& x, const Y& y,                                                               \
      const std::type_identity_t<                                                           \
          PatternFor<Operation::function, detail::Types<X, Y> EIN_UNPACKED types>>& pattern \
          EIN_UNPACKED parameters) {                                                        \
    static_assert(detail::holds_positions<Operation::function, X, Y>(),                     \
                  "positions are integers: cast with .to<std::int64_t>()");                 \
    return function(static_cast<const Tensor&>(x), static_cast<const Tensor&>(y),           \
                    detail::NamedPattern2<Operation::function EIN_UNPACKED types>(pattern)  \
                        EIN_UNPACKED arguments);                                            \
  }                                                                                         \
  template <TensorArgument X, TensorArgument Y, FixedString Pattern EIN_UNPACKED classes>   \
  auto function(const X& x, const Y& y, PatternLiteral<Pattern> EIN_UNPACKED parameters) {  \
    using Call = detail::StaticCall<Operation::function, Pattern, detail::Types<X, Y>,      \
                                    detail::CallArgumentTypes<void EIN_UNPACKED types>>;    \
    check_call(Call());                                                                     \
    static_assert(detail::holds_positions<Operation::function, X, Y>(),                     \
                  "positions are integers: cast with .to<std::int64_t>()");                 \
    return detail::with_type<Call, 0, detail::NamedDType::dtype>(function(                  \
        static_cast<const Tensor&>(x), static_cast<const Tensor&>(y),                       \
        detail::NamedPattern2<Operation::function EIN_UNPACKED types>(Call::facts.argument) \
            EIN_UNPACKED arguments));                                                       \
  }                                                                                         \
  template <FixedString Pattern, TensorArgument X, TensorArgument Y EIN_UNPACKED classes>   \
  auto function(const X& x, const Y& y EIN_UNPACKED parameters) {                           \
    using Call = detail::StaticCall<Operation::function, Pattern, detail::Types<X, Y>,      \
                                    detail::CallArgumentTypes<void EIN_UNPACKED types>>;    \
    check_call(Call());                                                                     \
    static_assert(detail::holds_positions<Operation::function, X, Y>(),                     \
                  "positions are integers: cast with .to<std::int64_t>()");                 \
    return detail::with_type<Call, 0, detail::NamedDType::dtype>(function(                  \
        static_cast<const Tensor&>(x), static_cast<const Tensor&>(y),                       \
        detail::NamedPattern2<Operation::function EIN_UNPACKED types>(Call::facts.argument) \
            EIN_UNPACKED arguments));                                                       \
  }

// clang-format off
EIN_TYPED_PAIR(gather, (, S...), (, AxisArgument... S), (, const S&... given),
               (, given...), by_call)
EIN_TYPED_PAIR(scatter_add, (, S...), (, CallArgument... S), (, const S&... given),
               (, given...), by_call)
EIN_TYPED_PAIR(scatter_prod, (, S...), (, CallArgument... S), (, const S&... given),
               (, given...), by_call)
EIN_TYPED_PAIR(scatter_max, (, S...), (, AxisArgument... S), (, const S&... given),
               (, given...), by_call)
EIN_TYPED_PAIR(scatter_min, (, S...), (, AxisArgument... S), (, const S&... given),
               (, given...), by_call)
EIN_TYPED_PAIR(cross_entropy, (), (), (), (), by_call)
EIN_TYPED_PAIR(cross_entropy, (), (), (, const CrossEntropyOptions& options), (, options), by_call)
EIN_TYPED_PAIR(searchsorted, (), (), (, bool right = false), (, right), positions)
EIN_TYPED_PAIR(solve, (), (), (), (), by_call)
EIN_TYPED_PAIR(lstsq, (), (), (), (), by_call)
// clang-format on
#undef EIN_TYPED_PAIR

// --- one_hot ---

template <detail::SayAxes X, AxisArgument Size>
Tensor one_hot(
    const X& positions,
    const std::type_identity_t<PatternFor<Operation::one_hot, detail::Types<X>, Size>>& pattern,
    const Size& size, DType dtype = DType::f32) {
  static_assert(detail::holds_positions<Operation::one_hot, X>(),
                "positions are integers: cast with .to<std::int64_t>()");
  return one_hot(static_cast<const Tensor&>(positions),
                 detail::NamedPattern1<Operation::one_hot, Size>(pattern), size, dtype);
}
template <detail::SayAxes X>
Tensor one_hot(const X& positions, const detail::TypedPattern<Operation::one_hot, X>& pattern,
               DType dtype = DType::f32) {
  static_assert(detail::holds_positions<Operation::one_hot, X>(),
                "positions are integers: cast with .to<std::int64_t>()");
  return one_hot(static_cast<const Tensor&>(positions), detail::untyped(pattern), dtype);
}

namespace detail {
template <class Call, class... S>
auto run_one_hot(const Tensor& positions, const S&... arguments) {
  const CallArguments<S...> given(arguments...);
  const std::array<const Tensor*, 1> operands{&positions};
  return with_type<Call, 0, NamedDType::ones>(
      std::move(run_named({Operation::one_hot,
                           Call::facts.argument,
                           operands,
                           given.sizes,
                           {.dtype = given.dtype.value_or(DType::f32)}})
                    .front()));
}
}  // namespace detail

/// Behind the pattern may stand the size of the axis in brackets, and `ein::as<dtype>()`.
template <TensorArgument X, FixedString Pattern, CallArgument... S>
auto one_hot(const X& positions, PatternLiteral<Pattern>, const S&... arguments) {
  using Call = detail::StaticCallOn<X, Operation::one_hot, Pattern, S...>;
  check_call(Call());
  static_assert(detail::holds_positions<Operation::one_hot, X>(),
                "positions are integers: cast with .to<std::int64_t>()");
  return detail::run_one_hot<Call>(positions, arguments...);
}
template <FixedString Pattern, TensorArgument X, CallArgument... S>
auto one_hot(const X& positions, const S&... arguments) {
  using Call = detail::StaticCallOn<X, Operation::one_hot, Pattern, S...>;
  check_call(Call());
  static_assert(detail::holds_positions<Operation::one_hot, X>(),
                "positions are integers: cast with .to<std::int64_t>()");
  return detail::run_one_hot<Call>(positions, arguments...);
}

// --- without a pattern ---

/// The same draws of zeros and ones, or zeros among the elements, as of plain tensors.
template <class T, FixedString A>
auto bernoulli(const Typed<T, A>& p) {
  return Typed<T, A>(detail::Trusted(), bernoulli(static_cast<const Tensor&>(p)));
}
template <class T, FixedString A>
auto dropout(const Typed<T, A>& x, double p) {
  return Typed<T, A>(detail::Trusted(), dropout(static_cast<const Tensor&>(x), p));
}

/// Positions of the elements that are not 0: a row of one number for each axis of x.
template <class T, FixedString A>
auto nonzero(const Typed<T, A>& x) {
  return Typed<std::int64_t, "_ _">(detail::Trusted(), nonzero(static_cast<const Tensor&>(x)));
}
/// What there is once of each value, where, and how often.
template <class T, FixedString A>
struct TypedUnique {
  Typed<T, "_"> values;
  Typed<std::int64_t, A> positions;
  Typed<std::int64_t, "_"> counts;
};
template <class T, FixedString A>
auto unique(const Typed<T, A>& x) {
  Unique found = unique(static_cast<const Tensor&>(x));
  return TypedUnique<T, A>{{detail::Trusted(), std::move(found.values)},
                           {detail::Trusted(), std::move(found.positions)},
                           {detail::Trusted(), std::move(found.counts)}};
}

/// Elements meet by the names of their axes, which both operands have.
template <class T, FixedString A, class U, FixedString B>
auto mse_loss(const Typed<T, A>& a, const Typed<U, B>& b) {
  detail::check_meeting<A, B>();
  detail::check_ranks<A, B>();
  constexpr std::optional<DType> common = common_dtype(dtype_of<T>, dtype_of<U>);
  static_assert(common.has_value(), "no dtype holds all numbers of both: cast one with .to(dtype)");
  constexpr DType dtype = detail::element_result(detail::ElementResult::floating, *common);
  return Typed<ElementOf<dtype>, "">(
      detail::Trusted(),
      detail::run_met<A, B>("mse_loss", a, b,
                            [](const Tensor& x, const Tensor& y) { return mse_loss(x, y); }));
}

namespace detail {

/// Of a matrix product's operand: whether it is a vector, or a type leaves that open.
enum class MatrixRank { vector, matrix, open };
constexpr MatrixRank matrix_rank(const grammar::SpecReading& spec) {
  const std::size_t least = spec.dims.size() - (spec.is_open() ? 1 : 0);
  if (least >= 2) return MatrixRank::matrix;
  return least == 1 && !spec.is_open() ? MatrixRank::vector : MatrixRank::open;
}
/// matmul as an einsum, with names that no type has.
inline constexpr FixedString dot_product = "k_of_matmul, k_of_matmul ->";
inline constexpr FixedString row_by_matrix =
    "k_of_matmul, ... k_of_matmul n_of_matmul -> ... n_of_matmul";
inline constexpr FixedString matrix_by_column =
    "... m_of_matmul k_of_matmul, k_of_matmul -> ... m_of_matmul";
inline constexpr FixedString matrix_by_matrix =
    "... m_of_matmul k_of_matmul, ... k_of_matmul n_of_matmul -> ... m_of_matmul n_of_matmul";
template <MatrixRank A, MatrixRank B>
consteval auto matmul_pattern() {
  if constexpr (A == MatrixRank::vector && B == MatrixRank::vector)
    return dot_product;
  else if constexpr (A == MatrixRank::vector)
    return row_by_matrix;
  else if constexpr (B == MatrixRank::vector)
    return matrix_by_column;
  else
    return matrix_by_matrix;
}

}  // namespace detail

/// By place: the last axis of a meets the last but one of b, whose name is the same.
template <class T, FixedString A, class U, FixedString B>
auto matmul(const Typed<T, A>& a, const Typed<U, B>& b) {
  constexpr detail::MatrixRank of_a = detail::matrix_rank(detail::StaticSpec<A>::reading()),
                               of_b = detail::matrix_rank(detail::StaticSpec<B>::reading());
  if constexpr (of_a == detail::MatrixRank::open || of_b == detail::MatrixRank::open) {
    return matmul(static_cast<const Tensor&>(a), static_cast<const Tensor&>(b));
  } else {
    constexpr auto pattern = detail::matmul_pattern<of_a, of_b>();
    using Call = detail::StaticCall<Operation::einsum, pattern,
                                    detail::Types<Typed<T, A>, Typed<U, B>>, detail::Types<>>;
    check_call(Call());
    Tensor made = matmul(static_cast<const Tensor&>(a), static_cast<const Tensor&>(b));
    if constexpr (std::string_view(Call::axes.text, Call::axes.size).find("_of_matmul") ==
                  std::string_view::npos)
      return detail::with_type<Call>(std::move(made));
    else
      return made;  // an axis has no name
  }
}

#undef EIN_UNPACKED
#undef check_call

}  // namespace ein
