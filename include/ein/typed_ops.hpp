// Operations on typed tensors, whose results are typed: elements of two operands meet by the names
// of their axes, not by their places (docs/names.md).
//
//     Float<"b s c"> x;  Float<"c"> bias;  Float<"s b"> mask;
//     x + bias     // Float<"b s c">: an axis that one lacks repeats
//     x * mask     // Float<"b s c">: mask is read as "b s 1"
//
// Beside a plain Tensor they align by place, as elementwise.hpp says, and the result is plain.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ein/detail/element_result.hpp>
#include <ein/elementwise.hpp>
#include <ein/grammar/align.hpp>
#include <ein/named.hpp>
#include <ein/typed.hpp>

namespace ein {

namespace pattern_error {

// Two typed operands, of the types A and B
template <FixedString A, FixedString B>
void neither_operand_has_all_axes();  // repeat one along the axes that it lacks
template <FixedString A, FixedString B>
void axis_has_different_sizes();
template <FixedString A, FixedString B>
void axis_lies_elsewhere();  // reshard one
template <FixedString A, FixedString B>
void axis_needs_a_name();  // names tell which axes are one: write them in the types
template <FixedString A, FixedString B>
void name_stands_twice();  // give one of the axes another name
template <FixedString A, FixedString B>
void types_are_too_long();  // 511 characters of a result, and 64 axes, at most

}  // namespace pattern_error

namespace detail {

/// grammar::Alignment as data of a constant.
class StaticMeeting {
 public:
  using Wrong = grammar::Alignment::Wrong;
  using Pair = grammar::Alignment::Pair;

  constexpr explicit StaticMeeting(const grammar::Alignment& found)
      : axes(found.axes.view()), wrong(found.wrong), has_open_pair(found.has_open_pair) {
    is_too_long = !axes.is_known || found.meeting.size() > pairs_.size() ||
                  found.read_a.size() > most || found.read_b.size() > most;
    if (is_too_long) return;
    count_ = found.meeting.size();
    for (std::size_t i = 0; i < count_; ++i) pairs_[i] = found.meeting[i];
    copy(found.read_a.view(), read_a_, size_a_);
    copy(found.read_b.view(), read_b_, size_b_);
  }
  constexpr std::string_view read_a() const { return {read_a_, size_a_}; }
  constexpr std::string_view read_b() const { return {read_b_, size_b_}; }
  constexpr std::span<const Pair> pairs() const { return {pairs_.data(), count_}; }

  ResultAxes axes;
  Wrong wrong;
  bool has_open_pair;
  bool is_too_long = false;  // then the rest says nothing

 private:
  static constexpr std::size_t most = 256;
  static constexpr void copy(std::string_view from, char* to, std::size_t& size) {
    size = from.size();
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
  }
  std::array<Pair, 64> pairs_{};
  std::size_t count_ = 0;
  char read_a_[most] = {}, read_b_[most] = {};
  std::size_t size_a_ = 0, size_b_ = 0;
};

template <FixedString A, FixedString B>
struct Meeting {
  static constexpr StaticMeeting facts{grammar::align(A.view(), B.view())};
  static constexpr ResultAxes axes = facts.axes;
};

/// Where A and B cannot meet, the compiler says why.
template <FixedString A, FixedString B>
consteval void check_meeting(grammar::Alignment::Wrong wrong = Meeting<A, B>::facts.wrong,
                             bool is_too_long = Meeting<A, B>::facts.is_too_long) {
  using enum grammar::Alignment::Wrong;
  if (wrong == neither_has_all_axes) pattern_error::neither_operand_has_all_axes<A, B>();
  if (wrong == axis_has_two_sizes) pattern_error::axis_has_different_sizes<A, B>();
  if (wrong == axis_is_placed_differently) pattern_error::axis_lies_elsewhere<A, B>();
  if (wrong == axis_needs_a_name) pattern_error::axis_needs_a_name<A, B>();
  if (wrong == axis_is_repeated) pattern_error::name_stands_twice<A, B>();
  if (wrong == nothing && is_too_long) pattern_error::types_are_too_long<A, B>();
}

/// Two operands at run time, and their types.
struct MeetingOperands {
  const Tensor &a, &b;
  std::string_view axes_a, axes_b;
};
/// An Error of kind `size` that names the axis, unless those that meet have equal sizes.
void require_meeting(const char* what, const StaticMeeting& meeting,
                     const MeetingOperands& operands);
/// `x` as a rearrangement says; `#` in it are `ones` axes of size 1.
Tensor read_as(const Tensor& x, std::string_view read, std::size_t ones);
/// How many dimensions x has under the `...` of its type.
std::size_t open_dimensions(const Tensor& x, std::string_view axes);

/// Calls f with both operands as the result lies.
template <FixedString A, FixedString B, class F>
Tensor run_met(const char* what, const Tensor& a, const Tensor& b, const F& f) {
  constexpr const StaticMeeting& facts = Meeting<A, B>::facts;
  require_meeting(what, facts, {a, b, A.view(), B.view()});
  if constexpr (!facts.read_a().empty())
    return f(read_as(a, facts.read_a(), open_dimensions(b, B.view())), b);
  else if constexpr (!facts.read_b().empty())
    return f(a, read_as(b, facts.read_b(), open_dimensions(a, A.view())));
  else
    return f(a, b);
}

template <class N>
concept RealNumber = std::is_arithmetic_v<N> || std::is_same_v<N, Size>;

template <ElementResult Result, class T, FixedString A>
auto typed_element(const Typed<T, A>&, Tensor made) {
  constexpr DType dtype = element_result(Result, dtype_of<T>);
  return Typed<ElementOf<dtype>, A>(Trusted(), std::move(made));
}

template <ElementResult Result, class T, FixedString A, class U, FixedString B, class F>
auto typed_binary(const char* what, const Typed<T, A>& a, const Typed<U, B>& b, const F& f) {
  constexpr std::optional<DType> common = common_dtype(dtype_of<T>, dtype_of<U>);
  static_assert(common.has_value(), "no dtype holds all numbers of both: cast one with .to(dtype)");
  Tensor made = run_met<A, B>(what, a, b, f);
  if constexpr (common.has_value())
    return Typed<ElementOf<element_result(Result, *common)>, fixed_string<Meeting<A, B>::axes>()>(
        Trusted(), std::move(made));
}

template <ElementResult Result, class N, class T, FixedString A>
auto typed_beside_number(const Typed<T, A>&, Tensor made) {
  constexpr std::optional<DType> dtype = element_result_beside<N>(Result, dtype_of<T>);
  if constexpr (dtype.has_value())
    return Typed<ElementOf<*dtype>, A>(Trusted(), std::move(made));
  else
    return made;
}

/// An Error where two operands that meet differ in a size; nothing where their types don't say how
/// they meet.
template <FixedString A, FixedString B>
void require_pair(const char* what, const Tensor& a, const Tensor& b) {
  constexpr const StaticMeeting& facts = Meeting<A, B>::facts;
  if constexpr (facts.wrong == grammar::Alignment::nothing)
    require_meeting(what, facts, {a, b, A.view(), B.view()});
}
/// `x` along axes that are all of its own and maybe others.
template <FixedString Axes, FixedString X>
Tensor read_along(const Tensor& x, std::size_t ones) {
  constexpr const StaticMeeting& facts = Meeting<Axes, X>::facts;
  if constexpr (facts.read_b().empty())
    return x;
  else
    return read_as(x, facts.read_b(), ones);
}
/// Calls f with three operands as the result lies.
template <FixedString A, FixedString B, FixedString C, class F>
Tensor run_three_met(const char* what, const Tensor& a, const Tensor& b, const Tensor& c,
                     const F& f) {
  constexpr auto both = fixed_string<Meeting<A, B>::axes>();
  constexpr auto axes = fixed_string<Meeting<both, C>::axes>();
  require_pair<A, B>(what, a, b);
  require_pair<A, C>(what, a, c);
  require_pair<B, C>(what, b, c);
  const std::size_t ones = grammar::greater(
      open_dimensions(c, C.view()),
      grammar::greater(open_dimensions(a, A.view()), open_dimensions(b, B.view())));
  const Tensor read_a = read_along<axes, A>(a, ones), read_b = read_along<axes, B>(b, ones);
  return f(read_a, read_b, read_along<axes, C>(c, ones));
}
template <FixedString K, FixedString A, class T, class N, class F>
auto typed_where(const Tensor& condition, const Tensor& x, const F& f) {
  constexpr std::optional<DType> dtype = element_result_beside<N>(ElementResult::same, dtype_of<T>);
  Tensor made = run_met<K, A>("where", condition, x, f);
  if constexpr (dtype.has_value())
    return Typed<ElementOf<*dtype>, fixed_string<Meeting<K, A>::axes>()>(Trusted(),
                                                                         std::move(made));
  else
    return made;
}

template <class N, class T, FixedString A, class U, FixedString B, class F>
auto typed_clamp(const Typed<T, A>& x, const Typed<U, B>& bound, const F& f) {
  constexpr std::optional<DType> common = common_dtype(dtype_of<T>, dtype_of<U>);
  static_assert(common.has_value(), "no dtype holds all numbers of both: cast one with .to(dtype)");
  constexpr std::optional<DType> dtype = element_result_beside<N>(ElementResult::same, *common);
  Tensor made = run_met<A, B>("clamp", x, bound, f);
  if constexpr (dtype.has_value())
    return Typed<ElementOf<*dtype>, fixed_string<Meeting<A, B>::axes>()>(Trusted(),
                                                                         std::move(made));
  else
    return made;
}

}  // namespace detail

// --- functions of one operand, as elementwise.hpp declares them ---

// clang-format off
#define EIN_TYPED_UNARY(function, result)                                                \
  template <class T, FixedString A>                                                      \
  auto function(const Typed<T, A>& x) {                                                  \
    return detail::typed_element<detail::ElementResult::result>(                         \
        x, ein::function(static_cast<const Tensor&>(x)));                                \
  }
EIN_FOR_EACH_UNARY(EIN_TYPED_UNARY)
EIN_TYPED_UNARY(operator-, same)
EIN_TYPED_UNARY(operator~, same)
#undef EIN_TYPED_UNARY
// clang-format on

/// Of complex numbers it is real.
template <class T, FixedString A>
auto abs(const Typed<T, A>& x) {
  return Typed<ElementOf<real_dtype(dtype_of<T>)>, A>(detail::Trusted(),
                                                      abs(static_cast<const Tensor&>(x)));
}

// --- functions of two, by the names of their axes; or of one and a number ---

// clang-format off
#define EIN_TYPED_BINARY(function, result)                                               \
  template <class T, FixedString A, class U, FixedString B>                              \
  auto function(const Typed<T, A>& a, const Typed<U, B>& b) {                            \
    detail::check_meeting<A, B>();                                                       \
    return detail::typed_binary<detail::ElementResult::result>(                          \
        #function, a, b, [](const Tensor& x, const Tensor& y) { return ein::function(x, y); }); \
  }                                                                                      \
  template <class T, FixedString A, detail::RealNumber N>                                \
  auto function(const Typed<T, A>& a, N b) {                                             \
    return detail::typed_beside_number<detail::ElementResult::result, N>(                \
        a, ein::function(static_cast<const Tensor&>(a), Scalar(b)));                             \
  }                                                                                      \
  template <detail::RealNumber N, class T, FixedString A>                                \
  auto function(N a, const Typed<T, A>& b) {                                             \
    return detail::typed_beside_number<detail::ElementResult::result, N>(                \
        b, ein::function(Scalar(a), static_cast<const Tensor&>(b)));                             \
  }
EIN_FOR_EACH_BINARY(EIN_TYPED_BINARY)
#define EIN_TYPED_OPERATOR(name, function, result) EIN_TYPED_BINARY(name, result)
EIN_FOR_EACH_OPERATOR(EIN_TYPED_OPERATOR)
#undef EIN_TYPED_OPERATOR
#undef EIN_TYPED_BINARY
// clang-format on

// --- where, clamp ---

/// The element of a where the condition is not zero, else that of b; all three meet by name.
template <class C, FixedString K, class T, FixedString A, class U, FixedString B>
auto where(const Typed<C, K>& condition, const Typed<T, A>& a, const Typed<U, B>& b) {
  detail::check_meeting<A, B>();
  constexpr auto both = detail::fixed_string<detail::Meeting<A, B>::axes>();
  detail::check_meeting<both, K>();
  constexpr auto axes = detail::fixed_string<detail::Meeting<both, K>::axes>();
  constexpr std::optional<DType> dtype = common_dtype(dtype_of<T>, dtype_of<U>);
  static_assert(dtype.has_value(), "no dtype holds all numbers of both: cast one with .to(dtype)");
  return Typed<ElementOf<*dtype>, axes>(
      detail::Trusted(),
      detail::run_three_met<A, B, K>("where", a, b, condition,
                                     [](const Tensor& x, const Tensor& y, const Tensor& test) {
                                       return where(test, Operand(x), Operand(y));
                                     }));
}
template <class C, FixedString K, class T, FixedString A, detail::RealNumber N>
auto where(const Typed<C, K>& condition, const Typed<T, A>& a, N b) {
  detail::check_meeting<K, A>();
  return detail::typed_where<K, A, T, N>(condition, a, [&](const Tensor& test, const Tensor& x) {
    return where(test, Operand(x), Operand(Scalar(b)));
  });
}
template <class C, FixedString K, class T, FixedString A, detail::RealNumber N>
auto where(const Typed<C, K>& condition, N a, const Typed<T, A>& b) {
  detail::check_meeting<K, A>();
  return detail::typed_where<K, A, T, N>(condition, b, [&](const Tensor& test, const Tensor& x) {
    return where(test, Operand(Scalar(a)), Operand(x));
  });
}

/// The element of x, between two numbers.
template <class T, FixedString A, detail::RealNumber L, detail::RealNumber H>
auto clamp(const Typed<T, A>& x, L low, H high) {
  return detail::typed_beside_number<detail::ElementResult::same, std::common_type_t<L, H>>(
      x, clamp(static_cast<const Tensor&>(x), Operand(Scalar(low)), Operand(Scalar(high))));
}

/// Between two tensors, or a tensor and a number; all meet by name.
template <class T, FixedString A, class L, FixedString B, class H, FixedString C>
auto clamp(const Typed<T, A>& x, const Typed<L, B>& low, const Typed<H, C>& high) {
  detail::check_meeting<A, B>();
  constexpr auto both = detail::fixed_string<detail::Meeting<A, B>::axes>();
  detail::check_meeting<both, C>();
  constexpr auto axes = detail::fixed_string<detail::Meeting<both, C>::axes>();
  constexpr std::optional<DType> bounds = common_dtype(dtype_of<L>, dtype_of<H>);
  constexpr std::optional<DType> dtype = bounds ? common_dtype(dtype_of<T>, *bounds) : std::nullopt;
  static_assert(dtype.has_value(), "no dtype holds all numbers of these: cast with .to(dtype)");
  return Typed<ElementOf<*dtype>, axes>(
      detail::Trusted(),
      detail::run_three_met<A, B, C>(
          "clamp", x, low, high, [](const Tensor& value, const Tensor& least, const Tensor& most) {
            return clamp(value, Operand(least), Operand(most));
          }));
}
template <class T, FixedString A, class L, FixedString B, detail::RealNumber N>
auto clamp(const Typed<T, A>& x, const Typed<L, B>& low, N high) {
  detail::check_meeting<A, B>();
  return detail::typed_clamp<N>(x, low, [&](const Tensor& value, const Tensor& bound) {
    return clamp(value, Operand(bound), Operand(Scalar(high)));
  });
}
template <class T, FixedString A, detail::RealNumber N, class H, FixedString B>
auto clamp(const Typed<T, A>& x, N low, const Typed<H, B>& high) {
  detail::check_meeting<A, B>();
  return detail::typed_clamp<N>(x, high, [&](const Tensor& value, const Tensor& bound) {
    return clamp(value, Operand(Scalar(low)), Operand(bound));
  });
}

// --- operations along axes in brackets, which the result keeps ---
//
// The pattern is checked against the type, whose names it may not exchange.

namespace detail {
template <Operation Op, class X>
using TypedPattern = std::type_identity_t<PatternFor<Op, Types<X>>>;
/// The same pattern for an untyped operand.
template <Operation Op, class... X>
NamedPattern1<Op> untyped(const PatternFor<Op, Types<X...>>& pattern) {
  return NamedPattern1<Op>(pattern);
}
}  // namespace detail

#define EIN_TYPED_NAMED(function, dtype)                                                       \
  template <class T, FixedString A>                                                            \
  auto function(const Typed<T, A>& x,                                                          \
                const detail::TypedPattern<Operation::function, Typed<T, A>>& pattern) {       \
    return Typed<ElementOf<dtype(dtype_of<T>)>, A>(                                            \
        detail::Trusted(), function(static_cast<const Tensor&>(x), detail::untyped(pattern))); \
  }
EIN_TYPED_NAMED(softmax, )
EIN_TYPED_NAMED(log_softmax, )
EIN_TYPED_NAMED(cumsum, sum_dtype)
EIN_TYPED_NAMED(cumprod, sum_dtype)
EIN_TYPED_NAMED(cummax, )
EIN_TYPED_NAMED(cummin, )
EIN_TYPED_NAMED(logcumsumexp, )
EIN_TYPED_NAMED(flip, )
#undef EIN_TYPED_NAMED

#define EIN_TYPED_SCAN(function)                                                             \
  template <class T, FixedString A, DType dtype>                                             \
  auto function(const Typed<T, A>& x,                                                        \
                const detail::TypedPattern<Operation::function, Typed<T, A>>& pattern,       \
                StaticResultDType<dtype> as) {                                               \
    return Typed<ElementOf<dtype>, A>(                                                       \
        detail::Trusted(),                                                                   \
        function(static_cast<const Tensor&>(x), detail::untyped(pattern), ResultDType(as))); \
  }
EIN_TYPED_SCAN(cumsum)
EIN_TYPED_SCAN(cumprod)
#undef EIN_TYPED_SCAN

template <class T, FixedString A>
auto layer_norm(const Typed<T, A>& x,
                const detail::TypedPattern<Operation::layer_norm, Typed<T, A>>& pattern,
                double eps = 1e-5) {
  return Typed<T, A>(detail::Trusted(),
                     layer_norm(static_cast<const Tensor&>(x), detail::untyped(pattern), eps));
}
template <class T, FixedString A>
auto layer_norm(const Typed<T, A>& x, const Tensor& weight, const Tensor& bias,
                const detail::TypedPattern<Operation::layer_norm, Typed<T, A>>& pattern,
                double eps = 1e-5) {
  return Typed<T, A>(detail::Trusted(), layer_norm(static_cast<const Tensor&>(x), weight, bias,
                                                   detail::untyped(pattern), eps));
}
template <class T, FixedString A>
auto rms_norm(const Typed<T, A>& x,
              const detail::TypedPattern<Operation::rms_norm, Typed<T, A>>& pattern,
              double eps = 1e-6) {
  return Typed<T, A>(detail::Trusted(),
                     rms_norm(static_cast<const Tensor&>(x), detail::untyped(pattern), eps));
}
template <class T, FixedString A>
auto rms_norm(const Typed<T, A>& x, const Tensor& weight,
              const detail::TypedPattern<Operation::rms_norm, Typed<T, A>>& pattern,
              double eps = 1e-6) {
  return Typed<T, A>(detail::Trusted(), rms_norm(static_cast<const Tensor&>(x), weight,
                                                 detail::untyped(pattern), eps));
}
template <class T, FixedString A>
auto roll(const Typed<T, A>& x, const detail::TypedPattern<Operation::roll, Typed<T, A>>& pattern,
          const PerAxis& shifts) {
  return Typed<T, A>(detail::Trusted(),
                     roll(static_cast<const Tensor&>(x), detail::untyped(pattern), shifts));
}
template <class T, FixedString A>
auto tril(const Typed<T, A>& x, const detail::TypedPattern<Operation::tril, Typed<T, A>>& pattern,
          Size diagonal = 0, Scalar otherwise = 0) {
  return Typed<T, A>(detail::Trusted(), tril(static_cast<const Tensor&>(x),
                                             detail::untyped(pattern), diagonal, otherwise));
}
template <class T, FixedString A>
auto triu(const Typed<T, A>& x, const detail::TypedPattern<Operation::triu, Typed<T, A>>& pattern,
          Size diagonal = 0, Scalar otherwise = 0) {
  return Typed<T, A>(detail::Trusted(), triu(static_cast<const Tensor&>(x),
                                             detail::untyped(pattern), diagonal, otherwise));
}

/// Sorted elements, and where they were.
template <class T, FixedString A>
struct TypedSorted {
  Typed<T, A> values;
  Typed<std::int64_t, A> positions;
};
template <class T, FixedString A>
auto sort(const Typed<T, A>& x, const detail::TypedPattern<Operation::sort, Typed<T, A>>& pattern,
          bool descending = false) {
  Sorted sorted = sort(static_cast<const Tensor&>(x), detail::untyped(pattern), descending);
  return TypedSorted<T, A>{{detail::Trusted(), std::move(sorted.values)},
                           {detail::Trusted(), std::move(sorted.positions)}};
}

}  // namespace ein
