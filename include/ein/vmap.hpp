// vmap: a function over one more axis.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/detail/results.hpp>
#include <ein/typed.hpp>

namespace ein {

struct VmapOptions {
  /// Random numbers that the function draws are drawn once, the same for each index; else for each
  /// anew.
  bool same_random_numbers = false;
};

namespace detail {

struct VmapCall {
  std::string_view pattern;
  std::span<const Tensor* const> operands;
  TensorFunction function;
  const void* context;
  VmapOptions options;
};
std::vector<Tensor> run_vmap(const VmapCall& call);

// --- types that lose and regain an axis ---

/// A type without the axis of this name, and where it was.
struct WithoutAxis {
  ResultAxes axes;  // not known: the type is too long
  int place = -1;   // none
  bool comes_after_open = false;
  std::int64_t size = -1;
};
constexpr WithoutAxis without_axis(std::string_view type, std::string_view name) {
  const grammar::SpecReading spec = grammar::read_shape_spec(type);
  WithoutAxis found;
  found.axes.is_known = type.size() < ResultAxes::capacity;
  if (!found.axes.is_known || spec.mistake) return found;
  std::size_t d = 0;
  int depth = 0;
  bool is_open = false;
  for (std::size_t at = 0; at < type.size();) {
    if (type[at] == ' ') {
      ++at;
      continue;
    }
    std::size_t end = at;
    for (; end < type.size() && (depth > 0 || type[end] != ' '); ++end)
      depth += type[end] == '(' ? 1 : type[end] == ')' ? -1 : 0;
    const grammar::SpecDim& dim = spec.dims[d];
    if (spec.is_name(dim) && spec.text_of(spec.steps[dim.first].span) == name) {
      found.place = static_cast<int>(d);
      found.comes_after_open = is_open;
      found.size = dim.fixed;
    } else {
      if (found.axes.size > 0) found.axes.text[found.axes.size++] = ' ';
      for (std::size_t i = at; i < end; ++i) found.axes.text[found.axes.size++] = type[i];
    }
    is_open |= dim.is_open();
    ++d;
    at = end;
  }
  return found;
}
/// With an axis before the others.
constexpr ResultAxes with_first_axis(std::string_view type, std::string_view name,
                                     std::int64_t size) {
  grammar::Text text;
  text.add(name);
  if (size >= 0) {
    text.add("=");
    text.add(size);
  }
  if (!type.empty()) {
    text.add(" ");
    text.add(type);
  }
  return ResultAxes(text.view());
}

/// An argument of a function that vmap<Name> made.
template <FixedString Name, class X>
struct VmapArgument {
  static constexpr bool has_axis = true;
  static constexpr std::int64_t size = -1;
  using Without = Tensor;
};
template <FixedString Name, class T, FixedString Axes>
struct VmapArgument<Name, Typed<T, Axes>> {
  static constexpr WithoutAxis found = without_axis(Axes.view(), Name.view());
  static constexpr ResultAxes axes = found.axes;
  static constexpr bool has_axis = found.place >= 0;
  static constexpr std::int64_t size = found.size;
  using Without = Typed<T, fixed_string<axes>()>;
};

template <FixedString Name, std::int64_t Size, class Result>
struct VmapResult {
  using type = Result;
};
template <FixedString Name, std::int64_t Size, class T, FixedString Axes>
struct VmapResult<Name, Size, Typed<T, Axes>> {
  static_assert(without_axis(Axes.view(), Name.view()).place < 0,
                "the function's result has the axis of vmap already: give one another name");
  static constexpr ResultAxes axes = with_first_axis(Axes.view(), Name.view(), Size);
  using type = Typed<T, fixed_string<axes>()>;
};

/// x with dimension `place` first; counted from the last of `rank` where an open part comes before.
Tensor with_first(const Tensor& x, int place, bool comes_after_open, std::size_t words);

template <FixedString Name, class X>
Tensor with_axis_first(const X& x) {
  if constexpr (OperandType<X>::is_typed) {
    using Argument = VmapArgument<Name, X>;
    if constexpr (Argument::has_axis)
      return with_first(x, Argument::found.place, Argument::found.comes_after_open,
                        grammar::read_shape_spec(X::axes()).dims.size());
    else
      return x;
  } else {
    return x;
  }
}

template <class Result>
Result typed_result(std::vector<Tensor> results) {
  if constexpr (OperandType<Result>::is_typed)
    return Result(Trusted(), std::move(results.front()));
  else
    return from_list<Result>(std::move(results));
}

}  // namespace detail

/// `vmap(f, "n")(x...)`: f of what x... are at each index of their first axis, "n", as one call;
/// the results have it first. f is traced once, without the axis, and a pass gives it to every
/// value that depends on it: no loop runs. `vmap(f, "n ..., ... n, ...")` says of each argument
/// where it has the axis, or that it has none; `-> ... n` where the results have it.
///
///     auto one = [&](const Tensor& x, const Tensor& y) { return loss(model(x), y); };
///     vmap(grad(one), "n")(xs, ys)        // a gradient for each example
///
/// What f uses from outside is the same for all. Gradients flow through it, calls can be nested and
/// compiled. f returns a Tensor, a std::vector or a std::array of them. Errors: kind `size` where
/// arguments have the axis in two sizes; `pattern`, `rank`; `value` where f writes to tensors,
/// reads elements, or does what can't be done along the axis, which is named.
template <class F>
auto vmap(F f, std::string pattern, VmapOptions options = {}) {
  return [f = std::move(f), pattern = std::move(pattern),
          options](const std::convertible_to<Tensor> auto&... x) {
    using Result = decltype(f(static_cast<const Tensor&>(x)...));
    const Tensor* const operands[] = {&static_cast<const Tensor&>(x)...};
    return detail::from_list<Result>(detail::run_vmap(
        {pattern, operands, detail::tensor_function<F>(std::make_index_sequence<sizeof...(x)>()),
         &f, options}));
  };
}

/// `vmap<"n">(f)(x...)`: the same of typed tensors. Those whose types have the axis lose it,
/// wherever it is, and the typed result of f regains it, first. Plain ones have it first.
template <FixedString Name, class F>
auto vmap(F f, VmapOptions options = {}) {
  return [ f = std::move(f), options ]<std::convertible_to<Tensor>... X>(const X&... x) {
    static_assert((detail::VmapArgument<Name, X>::has_axis || ...),
                  "vmap: the type of no argument has the axis");
    using Function = F;
    using Made =
        std::invoke_result_t<const F&, const typename detail::VmapArgument<Name, X>::Without&...>;
    std::int64_t constexpr sizes[] = {detail::VmapArgument<Name, X>::size...};
    constexpr std::int64_t size = *std::max_element(std::begin(sizes), std::end(sizes));
    using Result = typename detail::VmapResult<Name, size, Made>::type;
    const std::array<Tensor, sizeof...(X)> moved{detail::with_axis_first<Name>(x)...};
    std::array<const Tensor*, sizeof...(X)> operands{};
    for (std::size_t k = 0; k < moved.size(); ++k) operands[k] = &moved[k];
    std::string pattern;
    ((pattern += pattern.empty() ? "" : ", ", pattern += detail::VmapArgument<Name, X>::has_axis
                                                             ? std::string(Name.view()) + " ..."
                                                             : "..."),
     ...);
    const detail::TensorFunction function = [](const void* context,
                                               std::span<const Tensor> at) -> std::vector<Tensor> {
      const auto call = [&]<std::size_t... Indices>(std::index_sequence<Indices...>) {
        return detail::as_list((*static_cast<const Function*>(context))(
            typename detail::VmapArgument<Name, X>::Without(at[Indices])...));
      };
      return call(std::index_sequence_for<X...>());
    };
    return detail::typed_result<Result>(
        detail::run_vmap({pattern, operands, function, &f, options}));
  };
}

}  // namespace ein
