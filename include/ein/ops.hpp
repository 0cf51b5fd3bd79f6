// The operations that a pattern describes.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <ein/axis.hpp>
#include <ein/detail/check_call.hpp>
#include <ein/detail/result_dtype.hpp>
#include <ein/pattern.hpp>
#include <ein/reduction.hpp>
#include <ein/typed.hpp>
// Clang 21 has it in older standards, too, with a warning.
#if __cpp_static_assert >= 202306L && __cplusplus > 202302L
#include <ein/detail/pattern_message.hpp>
#endif

namespace ein {

/// How einsum of many operands may be computed.
struct EinsumOptions {
  /// No intermediate result may have more elements than this; 0 for no limit. Where every product
  /// of two operands has more, up to 15 (4 complex ones) are multiplied and summed at once. An
  /// Error of kind `memory` if that does not help either.
  std::int64_t max_intermediate = 0;
  /// Whether an axis may be summed that stands in one of several operands alone, which often is a
  /// name mistyped: `b q h, b k d -> b q k`. Where nothing is said, it may in ein::runtime(text)
  /// and not in a literal. `_` may be summed anyway. An Error of kind `pattern`.
  std::optional<bool> sums_alone{};
};

/// A Tensor, or a Typed one.
template <class T>
concept TensorArgument = std::derived_from<T, Tensor>;

namespace detail {

/// One call as the eager runtime takes it.
struct Call {
  Operation op;
  const PatternArgument& pattern;
  std::span<const Tensor* const> operands;
  std::span<const AxisSize> sizes;
  Reduction reduction = Reduction::sum;
  std::span<const Shape> packed_shapes{};
  bool stacked = false;
  EinsumOptions options{};
  std::optional<DType> dtype{};                      // of the result; none: result_dtype()
  grammar::Results results = grammar::Results::one;  // how many the caller takes
};
Tensor run_one(const Call& call);
std::vector<Tensor> run_all(const Call& call);

/// A call on operands that are known one by one.
template <std::size_t N, class... S>
Tensor run_on(Operation op, const PatternArgument& pattern, Reduction reduction,
              const std::array<const Tensor*, N>& operands, const S&... arguments) {
  const CallArguments<S...> given(arguments...);
  return run_one({op, pattern, operands, given.sizes, reduction, {}, false, {}, given.dtype});
}
/// A call on a list of operands.
template <class... S>
Tensor run_on_list(Operation op, const PatternArgument& pattern, Reduction reduction,
                   std::span<const Tensor> operands, bool stacked, const EinsumOptions& options,
                   const S&... arguments) {
  const CallArguments<S...> given(arguments...);
  std::vector<const Tensor*> addresses;
  for (const Tensor& tensor : operands) addresses.push_back(&tensor);
  return run_one(
      {op, pattern, addresses, given.sizes, reduction, {}, stacked, options, given.dtype});
}

/// What the compiler finds out about a call whose pattern is in a type.
struct StaticFacts {
  PatternArgument argument;
  grammar::Mistake mistake{};
  ResultAxes axes{};
};
template <class... Operands>
consteval bool are_typed(Types<Operands...>) {
  return (OperandType<Operands>::is_typed && ...);
}
template <Operation Op, FixedString Pattern, class Operands, class Sizes, std::size_t Which = 0>
consteval StaticFacts find_facts() {
  StaticFacts facts{PatternArgument(Pattern.view())};
  grammar::InferredType type;
  facts.mistake = facts.argument.template read_literal<Op, Which>(Operands(), Sizes(), &type);
  if (are_typed(Operands())) facts.axes = ResultAxes(type);
  return facts;
}

#if __cpp_static_assert >= 202306L && __cplusplus > 202302L
template <Operation Op, class... Sizes>
consteval grammar::StaticMessage static_message(std::string_view pattern,
                                                const grammar::Mistake& mistake, Types<Sizes...>) {
  std::vector<AxisSize> given;
  (..., (is_named<Sizes> ? given.push_back({static_size<Sizes>().name, static_size<Sizes>().size})
                         : void()));
  const bool sizes_known = ((static_size<Sizes>().size >= 0) && ...);
  return grammar::static_message(Op, pattern, mistake, given, sizes_known);
}
#endif

template <class List>
struct First;
template <class Head, class... Rest>
struct First<Types<Head, Rest...>> {
  using type = Head;
};

/// The dtype of the result of a call on typed operands, where the types of its arguments say it.
/// What the reduction makes of integers and complex numbers does not: it is a value.
template <Operation Op, DType operand, bool drops_an_axis, class... S>
consteval std::optional<DType> static_result_dtype(Types<S...>) {
  std::optional<DType> said;
  (..., [&] {
    if constexpr (requires { S::result_dtype; }) said = S::result_dtype;
  }());
  if (said) return said;
  if ((ResultDTypeArgument<S> || ...)) return std::nullopt;
  switch (info(Op).result) {
    case OperationInfo::of_operand:
      return operand;
    case OperationInfo::sums:
      return sum_dtype(operand);
    case OperationInfo::sums_if_reduced:
      return drops_an_axis ? sum_dtype(operand) : operand;
    case OperationInfo::of_reduction:
      return is_floating(operand) ? std::optional(operand) : std::nullopt;
  }
  return std::nullopt;
}

/// A call whose pattern is in a type: its result has a type. Every operation checks it by itself
/// (check_call), since each function between the user's line and a mistake lengthens the
/// compiler's message.
template <Operation Op, FixedString Pattern, class Operands, class Arguments>
struct StaticCall;
template <Operation Op, FixedString Pattern, class Operands, class... Arguments>
struct StaticCall<Op, Pattern, Operands, Types<Arguments...>> {
  using Sizes = SizesAmong<Arguments...>;
  static constexpr StaticFacts facts = find_facts<Op, Pattern, Operands, Sizes>();
  static constexpr ResultAxes axes = facts.axes;
  /// Of result `Which`.
  template <std::size_t Which>
  static constexpr ResultAxes axes_of = find_facts<Op, Pattern, Operands, Sizes, Which>().axes;

#if __cpp_static_assert >= 202306L && __cplusplus > 202302L
  static consteval auto message() {
    return static_message<Op>(Pattern.view(), facts.mistake, Sizes());
  }
#endif
  static auto run(Reduction reduction, std::span<const Tensor* const> operands,
                  const CallArguments<Arguments...>& given) {
    Call call{Op, facts.argument, operands, given.sizes, reduction, {}, false, {}, given.dtype};
    constexpr std::size_t count = facts.argument.output_count();
    if constexpr (count < 2) {
      return typed<0>(run_one(call));
    } else {
      call.results = grammar::Results::many;
      return [&]<std::size_t... Which>(std::vector<Tensor> results, std::index_sequence<Which...>) {
        if constexpr (axes.is_known)
          return std::tuple(typed<Which>(std::move(results[Which]))...);
        else
          return std::array<Tensor, count>{std::move(results[Which])...};
      }
      (run_all(call), std::make_index_sequence<count>());
    }
  }
  static auto run_on(Reduction reduction, const Tensor& x, const Arguments&... arguments) {
    return run(reduction, std::array{&x}, CallArguments<Arguments...>(arguments...));
  }

 private:
  /// Result `Which` with its type, where that is known.
  template <std::size_t Which>
  static auto typed(Tensor result) {
    if constexpr (axes.is_known) {
      constexpr auto dtype =
          static_result_dtype<Op, First<Operands>::type::static_dtype,
                              facts.argument.drops_an_axis()>(Types<Arguments...>());
      if constexpr (!dtype)
        return result;
      else if constexpr (Which == 0)
        return Typed<ElementOf<*dtype>, fixed_string<axes>()>(Trusted(), std::move(result));
      else
        return Typed<ElementOf<*dtype>, fixed_string<axes_of<Which>>()>(Trusted(),
                                                                        std::move(result));
    } else {
      return result;
    }
  }
};

#if __cpp_static_assert < 202306L || __cplusplus <= 202302L
template <Operation Op, FixedString Pattern, class Operands, class Arguments>
consteval void check_call(StaticCall<Op, Pattern, Operands, Arguments> call) {
  const grammar::Mistake mistake = call.facts.mistake;
  const pattern_error::Place place = pattern_error::place_of(mistake, Pattern.view());
  if (mistake) pattern_error::function_of(mistake)(place);
}
#endif

template <class X, Operation Op, FixedString Pattern, class... S>
using StaticCallOn = StaticCall<Op, Pattern, Types<X>, Types<S...>>;

template <class... Arguments>
using TensorsAmong = decltype((
    Types<>() + ... + std::conditional_t<TensorArgument<Arguments>, Types<Arguments>, Types<>>()));
template <class... Arguments>
using CallArgumentsAmong = decltype((
    Types<>() + ... + std::conditional_t<CallArgument<Arguments>, Types<Arguments>, Types<>>()));

template <Operation Op, FixedString Pattern, class... Arguments>
using StaticCallAmong =
    StaticCall<Op, Pattern, TensorsAmong<Arguments...>, CallArgumentsAmong<Arguments...>>;

/// The tuple of those arguments of a call that may follow a pattern.
template <class... Arguments>
auto call_arguments_among(const Arguments&... arguments) {
  const auto taken = [](const auto& argument) {
    if constexpr (CallArgument<std::remove_cvref_t<decltype(argument)>>)
      return std::tie(argument);
    else
      return std::tuple<>();
  };
  return std::tuple_cat(taken(arguments)...);
}

/// A call whose arguments are tensors, the literal maybe, and what may follow it.
template <class Call, class... Arguments>
auto run_static_call(const Arguments&... arguments) {
  std::array<const Tensor*, (std::size_t{TensorArgument<Arguments>} + ... + 0)> operands{};
  std::size_t operand_count = 0;
  const auto take = [&](const auto& argument) {
    if constexpr (TensorArgument<std::remove_cvref_t<decltype(argument)>>)
      operands[operand_count++] = &argument;
  };
  (take(arguments), ...);
  return std::apply(
      [&]<class... S>(const S&... given) {
        return Call::run(Reduction::sum, operands, CallArguments<S...>(given...));
      },
      call_arguments_among(arguments...));
}

/// The pattern among the arguments of a call.
template <class... Arguments>
struct LiteralAmong {};
template <class First, class... Rest>
struct LiteralAmong<First, Rest...> : LiteralAmong<Rest...> {};
template <FixedString Text, class... Rest>
struct LiteralAmong<PatternLiteral<Text>, Rest...> {
  static constexpr auto text = Text;
};
template <class... Arguments>
concept HasLiteral = requires {
  LiteralAmong<Arguments...>::text;
}
&&sizeof...(Arguments) == 1 + (std::size_t{TensorArgument<Arguments>} + ...) +
                              (std::size_t{CallArgument<Arguments>} + ...);

}  // namespace detail

// --- einsum: products summed over the axes that the output lacks ---
//
// `einsum(x, y, "b s1 h, b s2 h -> b s1 s2")`. Inputs may hold composites, numbers, 1, `_`, `...`
// and repeated axes (diagonals). The result is a new tensor, or a view where nothing is computed.
// It has the operands' dtype; where axes are summed, bool and integers give i64. `ein::as(dtype)`
// after the pattern says another. Floats of 8 and 16 bits accumulate in f32. In a literal an axis
// that is summed stands in two operands, unless there is one operand, or the axis is `_`.

template <TensorArgument A, CallArgument... S>
Tensor einsum(const A& a,
              std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A>, S...>> pattern,
              const S&... arguments) {
  return detail::run_on<1>(Operation::einsum, pattern, Reduction::sum, {&a}, arguments...);
}
template <TensorArgument A, TensorArgument B, CallArgument... S>
Tensor einsum(
    const A& a, const B& b,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on<2>(Operation::einsum, pattern, Reduction::sum, {&a, &b}, arguments...);
}
template <TensorArgument A, TensorArgument B, TensorArgument C, CallArgument... S>
Tensor einsum(
    const A& a, const B& b, const C& c,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B, C>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on<3>(Operation::einsum, pattern, Reduction::sum, {&a, &b, &c}, arguments...);
}
template <TensorArgument A, TensorArgument B, TensorArgument C, TensorArgument D, CallArgument... S>
Tensor einsum(
    const A& a, const B& b, const C& c, const D& d,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B, C, D>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on<4>(Operation::einsum, pattern, Reduction::sum, {&a, &b, &c, &d},
                           arguments...);
}
template <TensorArgument A, TensorArgument B, TensorArgument C, TensorArgument D, TensorArgument E,
          CallArgument... S>
Tensor einsum(
    const A& a, const B& b, const C& c, const D& d, const E& e,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B, C, D, E>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on<5>(Operation::einsum, pattern, Reduction::sum, {&a, &b, &c, &d, &e},
                           arguments...);
}
template <TensorArgument A, TensorArgument B, TensorArgument C, TensorArgument D, TensorArgument E,
          TensorArgument F, CallArgument... S>
Tensor einsum(
    const A& a, const B& b, const C& c, const D& d, const E& e, const F& f,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B, C, D, E, F>, S...>>
        pattern,
    const S&... arguments) {
  return detail::run_on<6>(Operation::einsum, pattern, Reduction::sum, {&a, &b, &c, &d, &e, &f},
                           arguments...);
}
template <TensorArgument A, TensorArgument B, TensorArgument C, TensorArgument D, TensorArgument E,
          TensorArgument F, TensorArgument G, CallArgument... S>
Tensor einsum(
    const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B, C, D, E, F, G>, S...>>
        pattern,
    const S&... arguments) {
  return detail::run_on<7>(Operation::einsum, pattern, Reduction::sum, {&a, &b, &c, &d, &e, &f, &g},
                           arguments...);
}
template <TensorArgument A, TensorArgument B, TensorArgument C, TensorArgument D, TensorArgument E,
          TensorArgument F, TensorArgument G, TensorArgument H, CallArgument... S>
Tensor einsum(
    const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B, C, D, E, F, G, H>, S...>>
        pattern,
    const S&... arguments) {
  return detail::run_on<8>(Operation::einsum, pattern, Reduction::sum,
                           {&a, &b, &c, &d, &e, &f, &g, &h}, arguments...);
}

/// Operands known at run time only.
template <CallArgument... S>
Tensor einsum(std::span<const Tensor> operands,
              std::type_identity_t<
                  PatternFor<Operation::einsum, detail::Types<detail::AnyNumberWithOptions>, S...>>
                  pattern,
              const EinsumOptions& options, const S&... arguments) {
  return detail::run_on_list(Operation::einsum, pattern, Reduction::sum, operands, false, options,
                             arguments...);
}
template <CallArgument... S>
Tensor einsum(
    std::span<const Tensor> operands,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<detail::AnyNumber>, S...>>
        pattern,
    const S&... arguments) {
  return detail::run_on_list(Operation::einsum, pattern, Reduction::sum, operands, false, {},
                             arguments...);
}

// --- einsum into a tensor that is there ---

namespace detail {
void run_into(const Tensor& c, const PatternArgument& pattern,
              std::span<const Tensor* const> operands, double alpha, double beta);
}

/// c = alpha · einsum(operands) + beta · c, in c's memory: `einsum_into(c, a, b, "i k, k j -> i
/// j")` overwrites c; with alpha 1 and beta 1 it adds to it. c has the result's shape, in any
/// strides. Where beta is 0, c is not read, and the sums are written where they belong; else they
/// are computed apart first. All is computed in f64 where c or an operand is f64, else in f32, or
/// in integers for a c of integers, and rounded to c's dtype once. An operand that shares memory
/// with c is copied first. In a function that ein::compile traces it is an assignment to c, which
/// must be a tensor from outside.
///
/// Errors: those of einsum; kind `shape` unless c has the result's shape; `dtype` where c holds
/// integers and an operand does not; `value` where alpha or beta is then no integer, where
/// gradients flow, and where c cannot be written to.
template <TensorArgument A>
void einsum_into(const Tensor& c, const A& a,
                 std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A>>> pattern,
                 double alpha = 1, double beta = 0) {
  const Tensor* const operands[] = {&a};
  detail::run_into(c, pattern, operands, alpha, beta);
}
template <TensorArgument A, TensorArgument B>
void einsum_into(const Tensor& c, const A& a, const B& b,
                 std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B>>> pattern,
                 double alpha = 1, double beta = 0) {
  const Tensor* const operands[] = {&a, &b};
  detail::run_into(c, pattern, operands, alpha, beta);
}
template <TensorArgument A, TensorArgument B, TensorArgument C>
void einsum_into(
    const Tensor& c, const A& a, const B& b, const C& d,
    std::type_identity_t<PatternFor<Operation::einsum, detail::Types<A, B, C>>> pattern,
    double alpha = 1, double beta = 0) {
  const Tensor* const operands[] = {&a, &b, &d};
  detail::run_into(c, pattern, operands, alpha, beta);
}
/// Operands known at run time only.
void einsum_into(const Tensor& c, std::span<const Tensor> operands,
                 const PatternFor<Operation::einsum, detail::Types<detail::AnyNumber>>& pattern,
                 double alpha = 1, double beta = 0);

/// `einsum(x, y, "b s1 h, b s2 h -> b s1 s2"_p)`: with typed operands, any number of them, the
/// result is typed.
template <class... Arguments>
requires detail::HasLiteral<Arguments...>
auto einsum(const Arguments&... arguments) {
  using Call = detail::StaticCallAmong<Operation::einsum, detail::LiteralAmong<Arguments...>::text,
                                       Arguments...>;
  check_call(Call());
  return detail::run_static_call<Call>(arguments...);
}
/// `einsum<"b s1 h, b s2 h -> b s1 s2">(x, y)`: the same.
template <FixedString Pattern, class... Arguments>
requires((TensorArgument<Arguments> ||
          CallArgument<Arguments>)&&...) auto einsum(const Arguments&... arguments) {
  using Call = detail::StaticCallAmong<Operation::einsum, Pattern, Arguments...>;
  check_call(Call());
  return detail::run_static_call<Call>(arguments...);
}

/// More than eight operands before a pattern that is in no type.
template <class... Arguments>
requires((std::size_t{TensorArgument<Arguments>} + ... + 0) > 8 &&
         !detail::HasLiteral<Arguments...>) Tensor einsum(const Arguments&...) {
  static_assert(detail::never<Arguments...>,
                "einsum takes at most 8 operands one by one: give a std::span of them, or the "
                "pattern as \"...\"_p");
  return {};
}

// --- rearrange, repeat, reduce ---

/// `rearrange(x, "b s (h d) -> b h s d", "h"_a = 8)`: transposes, splits, merges and drops axes of
/// size 1. A view whenever strides can express the result, else a copy. A list of tensors of one
/// shape is stacked on a new first axis first, where the pattern has one input.
///
/// A sum of axes, "(q + k + v)", is a dimension in which its pieces lie side by side. With as many
/// tensors as the pattern has inputs, `rearrange(cls, x, "b c, b s c -> b (1 + s) c")` joins them:
/// each goes to the pieces that it names, or, if it names none, to the next number, and is repeated
/// along the axes it lacks. With several outputs, a `"..."_p` splits,
///
///     auto [q, k, v] = rearrange(qkv, "b s (q + k + v) d -> b s q d, b s k d, b s v d"_p,
///                                "q"_a = 8, "k"_a = 2);
///
/// into an array of views (a tuple where qkv's type says its axes). One size of a sum may be open.
template <TensorArgument X, CallArgument... S>
Tensor rearrange(
    const X& x,
    std::type_identity_t<PatternFor<Operation::rearrange, detail::Types<X>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on<1>(Operation::rearrange, pattern, Reduction::sum, {&x}, arguments...);
}
template <TensorArgument A, TensorArgument B, CallArgument... S>
Tensor rearrange(
    const A& a, const B& b,
    std::type_identity_t<PatternFor<Operation::rearrange, detail::Types<A, B>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on<2>(Operation::rearrange, pattern, Reduction::sum, {&a, &b}, arguments...);
}
template <TensorArgument A, TensorArgument B, TensorArgument C, CallArgument... S>
Tensor rearrange(
    const A& a, const B& b, const C& c,
    std::type_identity_t<PatternFor<Operation::rearrange, detail::Types<A, B, C>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on<3>(Operation::rearrange, pattern, Reduction::sum, {&a, &b, &c},
                           arguments...);
}
template <TensorArgument A, TensorArgument B, TensorArgument C, TensorArgument D, CallArgument... S>
Tensor rearrange(
    const A& a, const B& b, const C& c, const D& d,
    std::type_identity_t<PatternFor<Operation::rearrange, detail::Types<A, B, C, D>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on<4>(Operation::rearrange, pattern, Reduction::sum, {&a, &b, &c, &d},
                           arguments...);
}
template <CallArgument... S>
Tensor rearrange(
    std::span<const Tensor> xs,
    std::type_identity_t<PatternFor<Operation::rearrange, detail::Types<detail::AnyNumber>, S...>>
        pattern,
    const S&... arguments) {
  return detail::run_on_list(Operation::rearrange, pattern, Reduction::sum, xs, true, {},
                             arguments...);
}
template <TensorArgument X, FixedString Pattern, CallArgument... S>
auto rearrange(const X& x, PatternLiteral<Pattern>, const S&... arguments) {
  using Call = detail::StaticCallOn<X, Operation::rearrange, Pattern, S...>;
  check_call(Call());
  return Call::run_on(Reduction::sum, x, arguments...);
}
template <FixedString Pattern, TensorArgument X, CallArgument... S>
auto rearrange(const X& x, const S&... arguments) {
  using Call = detail::StaticCallOn<X, Operation::rearrange, Pattern, S...>;
  check_call(Call());
  return Call::run_on(Reduction::sum, x, arguments...);
}

/// Several tensors before a pattern in a type.
template <TensorArgument A, TensorArgument B, class... Arguments>
requires detail::HasLiteral<A, B, Arguments...>
auto rearrange(const A& a, const B& b, const Arguments&... arguments) {
  using Call =
      detail::StaticCallAmong<Operation::rearrange, detail::LiteralAmong<A, B, Arguments...>::text,
                              A, B, Arguments...>;
  check_call(Call());
  return detail::run_static_call<Call>(a, b, arguments...);
}
template <FixedString Pattern, TensorArgument A, TensorArgument B, class... Arguments>
requires((TensorArgument<Arguments> ||
          CallArgument<Arguments>)&&...) auto rearrange(const A& a, const B& b,
                                                        const Arguments&... arguments) {
  using Call = detail::StaticCallAmong<Operation::rearrange, Pattern, A, B, Arguments...>;
  check_call(Call());
  return detail::run_static_call<Call>(a, b, arguments...);
}

/// All results of a pattern that is known at run time only: `rearrange_all(x, ein::runtime(text))`.
template <CallArgument... S>
std::vector<Tensor> rearrange_all(std::span<const Tensor> xs, RuntimeText pattern,
                                  const S&... arguments) {
  const detail::CallArguments<S...> given(arguments...);
  const detail::PatternArgument text(pattern.text);
  std::vector<const Tensor*> addresses;
  for (const Tensor& x : xs) addresses.push_back(&x);
  return detail::run_all({Operation::rearrange,
                          text,
                          addresses,
                          given.sizes,
                          Reduction::sum,
                          {},
                          xs.size() > 1,
                          {},
                          given.dtype,
                          grammar::Results::many});
}
template <CallArgument... S>
std::vector<Tensor> rearrange_all(const Tensor& x, RuntimeText pattern, const S&... arguments) {
  return rearrange_all(std::span(&x, 1), pattern, arguments...);
}

/// `repeat(x, "h w -> h w 3")`, `repeat(x, "h w -> (h k) w", "k"_a = 2)`: like rearrange, and axes
/// that only the output has repeat the elements. A view of stride 0 whenever strides can express
/// the result.
template <TensorArgument X, CallArgument... S>
Tensor repeat(const X& x,
              std::type_identity_t<PatternFor<Operation::repeat, detail::Types<X>, S...>> pattern,
              const S&... arguments) {
  return detail::run_on<1>(Operation::repeat, pattern, Reduction::sum, {&x}, arguments...);
}
template <CallArgument... S>
Tensor repeat(
    std::span<const Tensor> xs,
    std::type_identity_t<PatternFor<Operation::repeat, detail::Types<Tensor>, S...>> pattern,
    const S&... arguments) {
  return detail::run_on_list(Operation::repeat, pattern, Reduction::sum, xs, true, {},
                             arguments...);
}
template <TensorArgument X, FixedString Pattern, CallArgument... S>
auto repeat(const X& x, PatternLiteral<Pattern>, const S&... arguments) {
  using Call = detail::StaticCallOn<X, Operation::repeat, Pattern, S...>;
  check_call(Call());
  return Call::run_on(Reduction::sum, x, arguments...);
}
template <FixedString Pattern, TensorArgument X, CallArgument... S>
auto repeat(const X& x, const S&... arguments) {
  using Call = detail::StaticCallOn<X, Operation::repeat, Pattern, S...>;
  check_call(Call());
  return Call::run_on(Reduction::sum, x, arguments...);
}

namespace detail {
/// combine(context, a, b) of neighbours.
Tensor reduce_by(const Tensor& x, const PatternArgument& pattern, std::span<const AxisSize> sizes,
                 Tensor (*combine)(const void* context, const Tensor& a, const Tensor& b),
                 const void* context);
}  // namespace detail

/// `reduce(x, "b c (h 2) (w 2) -> b c h w", "max")`: combines over the axes that the output lacks.
/// The result has x's dtype; "sum" and "prod" of bool and integers are i64. `ein::as(dtype)` at the
/// end says another.
template <TensorArgument X, CallArgument... S>
Tensor reduce(const X& x,
              std::type_identity_t<PatternFor<Operation::reduce, detail::Types<X>, S...>> pattern,
              std::type_identity_t<ReductionFor<X>> reduction, const S&... arguments) {
  return detail::run_on<1>(Operation::reduce, pattern, reduction.reduction(), {&x}, arguments...);
}

/// A reduction of one's own: `combine(a, b)` of two tensors of one shape gives that of each pair of
/// elements. It must be associative, not commutative: a comes before b, in the row-major order of
/// the axes that the output lacks.
///
///     reduce(x, "b s -> b", [](const Tensor& a, const Tensor& b) { return a + b - a * b; })
///
/// Neighbours are combined, then what that gave, and so on: n - 1 combinations for n elements, in
/// about log2 n calls, and the rounding error grows with log2 n. Gradients are those of combine,
/// and a function that ein::compile traces holds its operations for the length that x has. Errors:
/// kind `reduction` over no elements; `shape` where combine gives another shape.
template <TensorArgument X, class F, AxisArgument... S>
requires std::is_invocable_r_v<Tensor, const F&, const Tensor&, const Tensor&> Tensor reduce(
    const X& x, std::type_identity_t<PatternFor<Operation::reduce, detail::Types<X>, S...>> pattern,
    F combine, const S&... sizes) {
  const auto call = [](const void* f, const Tensor& a, const Tensor& b) -> Tensor {
    return (*static_cast<const F*>(f))(a, b);
  };
  const std::array<AxisSize, sizeof...(S)> given{AxisSize(sizes)...};
  return detail::reduce_by(x, pattern, given, call, &combine);
}
template <CallArgument... S>
Tensor reduce(
    std::span<const Tensor> xs,
    std::type_identity_t<PatternFor<Operation::reduce, detail::Types<Tensor>, S...>> pattern,
    ReductionFor<Tensor> reduction, const S&... arguments) {
  return detail::run_on_list(Operation::reduce, pattern, reduction.reduction(), xs, true, {},
                             arguments...);
}
template <TensorArgument X, FixedString Pattern, CallArgument... S>
auto reduce(const X& x, PatternLiteral<Pattern>, std::type_identity_t<ReductionFor<X>> reduction,
            const S&... arguments) {
  using Call = detail::StaticCallOn<X, Operation::reduce, Pattern, S...>;
  check_call(Call());
  return Call::run_on(reduction.reduction(), x, arguments...);
}
template <FixedString Pattern, TensorArgument X, CallArgument... S>
auto reduce(const X& x, std::type_identity_t<ReductionFor<X>> reduction, const S&... arguments) {
  using Call = detail::StaticCallOn<X, Operation::reduce, Pattern, S...>;
  check_call(Call());
  return Call::run_on(reduction.reduction(), x, arguments...);
}

// --- pack, unpack, parse_shape ---

/// The packed tensor, and for each operand the shape that `*` stood for in it.
struct Packed {
  Tensor tensor;
  std::vector<Shape> shapes;
};
/// `pack(xs, "b * c")`: joins tensors along one axis, each after its axes under `*` are merged into
/// one. Beside `...`, as in "... * c", `*` is one axis of each.
Packed pack(std::span<const Tensor> xs,
            const PatternFor<Operation::pack, detail::Types<Tensor>>& pattern);
inline Packed pack(std::initializer_list<Tensor> xs,
                   const PatternFor<Operation::pack, detail::Types<Tensor>>& pattern) {
  return pack(std::span(xs.begin(), xs.size()), pattern);
}

/// The reverse of pack: one tensor per shape, each a view of x. One size may be -1: what is left.
/// `unpack(x, shapes, "... * c")` on any leading axes.
std::vector<Tensor> unpack(const Tensor& x, std::span<const Shape> packed_shapes,
                           const PatternFor<Operation::unpack, detail::Types<Tensor>>& pattern);
inline std::vector<Tensor> unpack(
    const Tensor& x, std::initializer_list<Shape> packed_shapes,
    const PatternFor<Operation::unpack, detail::Types<Tensor>>& pattern) {
  return unpack(x, std::span(packed_shapes.begin(), packed_shapes.size()), pattern);
}

/// Sizes by name, in the order of the pattern.
class NamedSizes {
 public:
  explicit NamedSizes(std::vector<std::pair<std::string, Size>> sizes) : sizes_(std::move(sizes)) {}
  /// The size of an axis; an Error of kind `axis_argument` for a name that is not there.
  Size operator[](std::string_view name) const;
  auto begin() const { return sizes_.begin(); }
  auto end() const { return sizes_.end(); }
  std::size_t size() const { return sizes_.size(); }

 private:
  std::vector<std::pair<std::string, Size>> sizes_;
};
/// `parse_shape(x, "b _ h w")["h"]`: the sizes of the named axes.
NamedSizes parse_shape(const Tensor& x,
                       const PatternFor<Operation::parse_shape, detail::Types<Tensor>>& pattern);

#undef check_call

}  // namespace ein
