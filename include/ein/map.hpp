// A function of elements that meet by the names of axes, with any reduction: what einsum is for
// products and sums.
//
//     map(x, bias, "b s c, c -> b s c", [](auto& x, auto& b) { return tanh(x + b); })
//     map(x, y, "i d, j d -> i j", [](auto& a, auto& b) { return (a - b) * (a - b); }, "sum")
//     map(a, b, "i k, k j -> i j", fn::add, "max")       // tropical product
//     where(mask, s, -INFINITY, "q k, b h q k -> b h q k")
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <ein/detail/results.hpp>
#include <ein/elementwise.hpp>
#include <ein/ops.hpp>
#include <ein/typed_ops.hpp>

#include <ein/detail/check_call.hpp>  // behind ops.hpp, which takes it back

namespace ein {

// --- functions as values ---

/// The functions of elements as objects that can be passed: `map(a, b, "i k, k j -> i j", fn::add,
/// "max")`. Each takes what the function of its name takes.
namespace fn {

#define EIN_FUNCTION_OBJECT(function, result)                                              \
  inline constexpr auto function = [](const auto&... x) -> decltype(ein::function(x...)) { \
    return ein::function(x...);                                                            \
  };
EIN_FOR_EACH_UNARY(EIN_FUNCTION_OBJECT)
EIN_FOR_EACH_BINARY(EIN_FUNCTION_OBJECT)
EIN_FUNCTION_OBJECT(abs, same)
EIN_FUNCTION_OBJECT(where, same)
EIN_FUNCTION_OBJECT(clamp, same)
#undef EIN_FUNCTION_OBJECT

}  // namespace fn

// --- map ---

namespace detail {

struct MapCall {
  const PatternArgument& pattern;
  std::span<const Tensor* const> operands;
  std::span<const AxisSize> sizes;
  TensorFunction function;
  const void* context;
  std::optional<Reduction> reduction{};
  std::optional<DType> dtype{};  // of the result; none: result_dtype()
};
Tensor run_map(const MapCall& call);

/// A function of so many tensors that are alike.
template <class F, class... X>
concept MapFunction =
    std::is_invocable_r_v<Tensor, const F&, std::conditional_t<true, const Tensor&, X>...>;

/// The axes of a pattern, in the order in which the function's operands have them, as a type says
/// them: those of the output, then the others.
constexpr ResultAxes axes_of_points(std::string_view text) {
  const grammar::Reading reading = grammar::match_pattern(text);
  if (reading.mistake) return {};
  const grammar::Pattern pattern = reading.buffer.pattern(text);
  grammar::List<std::string_view> names;
  const auto take = [&](const grammar::Side& side) {
    for (const grammar::Term& term : pattern.terms_of(side)) {
      if (term.kind != grammar::TermKind::name) continue;
      bool is_known = false;
      for (std::string_view name : names) is_known |= name == pattern.name_of(term);
      if (!is_known) names.push_back(pattern.name_of(term));
    }
  };
  take(pattern.output());
  for (const grammar::Side& side : pattern.inputs()) take(side);
  ResultAxes axes;
  axes.is_known = true;
  for (std::string_view name : names) {
    if (axes.size + name.size() + 1 >= ResultAxes::capacity) return {};
    if (axes.size > 0) axes.text[axes.size++] = ' ';
    for (const char c : name) axes.text[axes.size++] = c;
  }
  return axes;
}

/// map with its pattern in a type.
template <Operation Op, FixedString Pattern, class F, class Operands, class Arguments>
struct StaticMap;
template <Operation Op, FixedString Pattern, class F, class... Operands, class... Arguments>
struct StaticMap<Op, Pattern, F, Types<Operands...>, Types<Arguments...>> {
  using Call = StaticCall<Op, Pattern, Types<Operands...>, Types<Arguments...>>;
  static constexpr ResultAxes points = axes_of_points(Pattern.view());

  /// The type of what the function returns of operands of these dtypes.
  static constexpr auto value() {
    if constexpr ((OperandType<Operands>::is_typed && ...) && points.is_known) {
      constexpr auto axes = fixed_string<points>();
      if constexpr (std::is_invocable_v<
                        const F&, const Typed<ElementOf<OperandType<Operands>::dtype>, axes>&...>)
        return std::type_identity<std::invoke_result_t<
            const F&, const Typed<ElementOf<OperandType<Operands>::dtype>, axes>&...>>();
      else
        return std::type_identity<Tensor>();
    } else {
      return std::type_identity<Tensor>();
    }
  }
  using Value = std::remove_cvref_t<typename decltype(value())::type>;

  /// Calls F with typed tensors where it takes them, so that typed ones from outside meet them by
  /// name.
  static TensorFunction function() {
    if constexpr (OperandType<Value>::is_typed) {
      static_assert(Value::axes() == std::string_view(points.text, points.size),
                    "the function returns other axes, or another order of them, than it is given");
      return [](const void* context, std::span<const Tensor> at) -> std::vector<Tensor> {
        constexpr auto axes = fixed_string<points>();
        const auto call = [&]<std::size_t... Indices>(std::index_sequence<Indices...>)->Tensor {
          return (*static_cast<const F*>(context))(
              Typed<ElementOf<OperandType<Operands>::dtype>, axes>(Trusted(), at[Indices])...);
        };
        return {call(std::index_sequence_for<Operands...>())};
      };
    } else {
      return tensor_function<F>(std::index_sequence_for<Operands...>());
    }
  }

  static auto run(const F& f, std::optional<Reduction> reduction,
                  std::span<const Tensor* const> operands, const Arguments&... arguments) {
    const CallArguments<Arguments...> given(arguments...);
    Tensor result = run_map(
        {Call::facts.argument, operands, given.sizes, function(), &f, reduction, given.dtype});
    if constexpr (OperandType<Value>::is_typed && Call::axes.is_known) {
      constexpr auto reduces = Op == Operation::map_reduce ? Operation::reduce : Op;
      constexpr auto dtype =
          static_result_dtype<reduces, OperandType<Value>::dtype, true>(Types<Arguments...>());
      if constexpr (dtype)
        return Typed<ElementOf<*dtype>, fixed_string<Call::axes>()>(Trusted(), std::move(result));
      else
        return result;
    } else {
      return result;
    }
  }
};

}  // namespace detail

// `map(x, y, "i d, j d -> i j d", f)`: f of the elements of x and y at each point of the axes.
// Inputs may hold composites, numbers, `...` and repeated axes, as those of einsum, and their
// dtypes may differ. f is called with a tensor for each operand: these have a dimension for
// each axis of the pattern, first those of the output, then the others, each of its size, or of 1
// where the operand lacks it. f computes with them as with any tensors of shapes that broadcast,
// and returns one whose shape broadcasts to that of all axes. It is called while the call is made,
// once or a few times, and must do the same each time. What it uses from outside takes part,
// gradients too.
//
// Axes that the output lacks are reduced as the word after f says, one of reduce's:
// `map(x, y, "i d, j d -> i j", f, "sum")`. No value of f for all points reaches memory, forward or
// backward, but for the gradients of prod. f's values and the result have the dtypes that its calls
// and reduce give; `ein::as(dtype)` at the end says another for the result.
//
// With typed operands, and the pattern in a type, the result is typed if f, a generic lambda or one
// of fn, returns a typed tensor for typed ones.
//
// Errors: those of einsum and reduce, but for dtypes that differ; kind `shape` where f's result
// does not broadcast to the points; `value` where f draws random numbers, writes to tensors, takes
// gradients, or reads elements.

// clang-format off
#define EIN_UNPACKED(...) __VA_ARGS__
#define EIN_MAP(classes, parameters, types, addresses)                                            \
  template <EIN_UNPACKED classes, detail::MapFunction<EIN_UNPACKED types> F, CallArgument... S>   \
  Tensor map(EIN_UNPACKED parameters,                                                             \
             std::type_identity_t<                                                                \
                 PatternFor<Operation::map, detail::Types<EIN_UNPACKED types>, S...>> pattern,    \
             const F& f, const S&... sizes) {                                                     \
    const Tensor* const operands[] = {EIN_UNPACKED addresses};                                    \
    const detail::CallArguments<S...> given(sizes...);                                            \
    constexpr std::make_index_sequence<std::size(operands)> count;                                \
    return detail::run_map({pattern, operands, given.sizes, detail::tensor_function<F>(count), &f,\
                            {}, given.dtype});                                                    \
  }                                                                                               \
  template <EIN_UNPACKED classes, detail::MapFunction<EIN_UNPACKED types> F, CallArgument... S>   \
  Tensor map(EIN_UNPACKED parameters,                                                             \
             std::type_identity_t<                                                                \
                 PatternFor<Operation::map_reduce, detail::Types<EIN_UNPACKED types>, S...>>      \
                 pattern,                                                                         \
             const F& f, std::type_identity_t<ReductionFor<Tensor>> reduction,                    \
             const S&... arguments) {                                                             \
    const Tensor* const operands[] = {EIN_UNPACKED addresses};                                    \
    const detail::CallArguments<S...> given(arguments...);                                        \
    constexpr std::make_index_sequence<std::size(operands)> count;                                \
    return detail::run_map({pattern, operands, given.sizes, detail::tensor_function<F>(count), &f,\
                            reduction.reduction(), given.dtype});                                 \
  }                                                                                               \
  template <EIN_UNPACKED classes, FixedString Pattern,                                            \
            detail::MapFunction<EIN_UNPACKED types> F, CallArgument... S>                         \
  auto map(EIN_UNPACKED parameters, PatternLiteral<Pattern>, const F& f, const S&... sizes) {     \
    using Map = detail::StaticMap<Operation::map, Pattern, F, detail::Types<EIN_UNPACKED types>,  \
                                  detail::Types<S...>>;                                           \
    check_call(typename Map::Call());                                                             \
    const Tensor* const operands[] = {EIN_UNPACKED addresses};                                    \
    return Map::run(f, std::nullopt, operands, sizes...);                                         \
  }                                                                                               \
  template <EIN_UNPACKED classes, FixedString Pattern,                                            \
            detail::MapFunction<EIN_UNPACKED types> F, CallArgument... S>                         \
  auto map(EIN_UNPACKED parameters, PatternLiteral<Pattern>, const F& f,                          \
           std::type_identity_t<ReductionFor<Tensor>> reduction, const S&... arguments) {         \
    using Map = detail::StaticMap<Operation::map_reduce, Pattern, F,                              \
                                  detail::Types<EIN_UNPACKED types>, detail::Types<S...>>;        \
    check_call(typename Map::Call());                                                             \
    const Tensor* const operands[] = {EIN_UNPACKED addresses};                                    \
    return Map::run(f, reduction.reduction(), operands, arguments...);                            \
  }                                                                                               \
  template <FixedString Pattern, EIN_UNPACKED classes,                                            \
            detail::MapFunction<EIN_UNPACKED types> F, CallArgument... S>                         \
  auto map(EIN_UNPACKED parameters, const F& f, const S&... sizes) {                              \
    using Map = detail::StaticMap<Operation::map, Pattern, F, detail::Types<EIN_UNPACKED types>,  \
                                  detail::Types<S...>>;                                           \
    check_call(typename Map::Call());                                                             \
    const Tensor* const operands[] = {EIN_UNPACKED addresses};                                    \
    return Map::run(f, std::nullopt, operands, sizes...);                                         \
  }                                                                                               \
  template <FixedString Pattern, EIN_UNPACKED classes,                                            \
            detail::MapFunction<EIN_UNPACKED types> F, CallArgument... S>                         \
  auto map(EIN_UNPACKED parameters, const F& f,                                                   \
           std::type_identity_t<ReductionFor<Tensor>> reduction, const S&... arguments) {         \
    using Map = detail::StaticMap<Operation::map_reduce, Pattern, F,                              \
                                  detail::Types<EIN_UNPACKED types>, detail::Types<S...>>;        \
    check_call(typename Map::Call());                                                             \
    const Tensor* const operands[] = {EIN_UNPACKED addresses};                                    \
    return Map::run(f, reduction.reduction(), operands, arguments...);                            \
  }
EIN_MAP((TensorArgument A), (const A& a), (A), (&a))
EIN_MAP((TensorArgument A, TensorArgument B), (const A& a, const B& b), (A, B), (&a, &b))
EIN_MAP((TensorArgument A, TensorArgument B, TensorArgument C),
        (const A& a, const B& b, const C& c), (A, B, C), (&a, &b, &c))
EIN_MAP((TensorArgument A, TensorArgument B, TensorArgument C, TensorArgument D),
        (const A& a, const B& b, const C& c, const D& d), (A, B, C, D), (&a, &b, &c, &d))
#undef EIN_MAP
#undef EIN_UNPACKED
// clang-format on

namespace detail {
/// A list is asked for first: a generic lambda of one tensor must not be tried with a span.
template <class L>
concept TensorList = !TensorArgument<L> && std::is_convertible_v<const L&, std::span<const Tensor>>;
template <class F>
concept FunctionOfList = std::is_invocable_r_v<Tensor, const F&, std::span<const Tensor>>;

template <class F, class... S>
Tensor run_map_of_list(const PatternArgument& pattern, std::span<const Tensor> operands, const F& f,
                       std::optional<Reduction> reduction, const S&... arguments) {
  const CallArguments<S...> given(arguments...);
  std::vector<const Tensor*> addresses;
  for (const Tensor& operand : operands) addresses.push_back(&operand);
  const TensorFunction function = [](const void* context,
                                     std::span<const Tensor> x) -> std::vector<Tensor> {
    return {(*static_cast<const F*>(context))(x)};
  };
  return run_map({pattern, addresses, given.sizes, function, &f, reduction, given.dtype});
}

}  // namespace detail

/// Any number of operands; f takes a std::span of as many tensors.
template <detail::TensorList L, detail::FunctionOfList F, CallArgument... S>
Tensor map(const L& operands,
           std::type_identity_t<PatternFor<Operation::map, detail::Types<detail::AnyNumber>, S...>>
               pattern,
           const F& f, const S&... sizes) {
  return detail::run_map_of_list(pattern, operands, f, std::nullopt, sizes...);
}
template <detail::TensorList L, detail::FunctionOfList F, CallArgument... S>
Tensor map(
    const L& operands,
    std::type_identity_t<PatternFor<Operation::map_reduce, detail::Types<detail::AnyNumber>, S...>>
        pattern,
    const F& f, std::type_identity_t<ReductionFor<Tensor>> reduction, const S&... arguments) {
  return detail::run_map_of_list(pattern, operands, f, reduction.reduction(), arguments...);
}

// --- short forms: functions of two elements, and where, with a pattern at the end ---

// clang-format off
#define EIN_WITH_PATTERN(function, result)                                                        \
  template <TensorArgument A, TensorArgument B, AxisArgument... S>                                \
  Tensor function(                                                                                \
      const A& a, const B& b,                                                                     \
      std::type_identity_t<PatternFor<Operation::map, detail::Types<A, B>, S...>> pattern,        \
      const S&... sizes) {                                                                        \
    return map(a, b, pattern, fn::function, sizes...);                                            \
  }                                                                                               \
  template <TensorArgument A, TensorArgument B, FixedString Pattern, AxisArgument... S>           \
  auto function(const A& a, const B& b, PatternLiteral<Pattern> pattern, const S&... sizes) {     \
    return map(a, b, pattern, fn::function, sizes...);                                            \
  }
EIN_FOR_EACH_BINARY(EIN_WITH_PATTERN)
#undef EIN_WITH_PATTERN

#define EIN_WHERE(classes, parameters, types, operands, value, function_parameters)               \
  template <classes, AxisArgument... S>                                                           \
  Tensor where(parameters,                                                                        \
      std::type_identity_t<PatternFor<Operation::map, detail::Types<types>, S...>> pattern,       \
      const S&... sizes) {                                                                        \
    return map(operands, pattern, [&](function_parameters) { return value; }, sizes...);          \
  }                                                                                               \
  template <classes, FixedString Pattern, AxisArgument... S>                                      \
  auto where(parameters, PatternLiteral<Pattern> pattern, const S&... sizes) {                    \
    return map(operands, pattern, [&](function_parameters) { return value; }, sizes...);          \
  }
#define EIN_LIST(...) __VA_ARGS__
EIN_WHERE(EIN_LIST(TensorArgument K, TensorArgument A, TensorArgument B),
          EIN_LIST(const K& condition, const A& a, const B& b), EIN_LIST(K, A, B),
          EIN_LIST(condition, a, b), EIN_LIST(where(k, x, y)),
          EIN_LIST(const auto& k, const auto& x, const auto& y))
EIN_WHERE(EIN_LIST(TensorArgument K, TensorArgument A, detail::RealNumber N),
          EIN_LIST(const K& condition, const A& a, N b), EIN_LIST(K, A), EIN_LIST(condition, a),
          EIN_LIST(where(k, x, b)), EIN_LIST(const auto& k, const auto& x))
EIN_WHERE(EIN_LIST(TensorArgument K, detail::RealNumber N, TensorArgument A),
          EIN_LIST(const K& condition, N a, const A& b), EIN_LIST(K, A), EIN_LIST(condition, b),
          EIN_LIST(where(k, a, x)), EIN_LIST(const auto& k, const auto& x))
#undef EIN_WHERE
#undef EIN_LIST
// clang-format on

#undef check_call

}  // namespace ein
