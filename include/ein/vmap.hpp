// vmap: a function over one more axis.
#pragma once

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

/// Whether a type can lose or regain an axis: the name is that of one whole dimension of it, or of
/// nothing.
constexpr bool is_one_axis_or_none(const grammar::SpecReading& spec, std::string_view name) {
  const std::size_t uses = grammar::uses_of(spec, name), place = grammar::find_axis(spec, name);
  return uses == 0 || (uses == 1 && place != SIZE_MAX && spec.dims[place].placed.end == 0);
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

/// x with this dimension before the others.
Tensor with_first(const Tensor& x, std::size_t dimension);

/// An argument of a function that vmap<Name> made.
template <FixedString Name, class X>
struct VmapArgument {
  static constexpr bool has_axis = true;
  static constexpr std::int64_t size = -1;
  using Without = Tensor;
  static Tensor axis_first(const Tensor& x) { return x; }
};
template <FixedString Name, class T, FixedString Axes>
struct VmapArgument<Name, Typed<T, Axes>> {
  static_assert(is_one_axis_or_none(StaticSpec<Axes>::reading(), Name.view()),
                "vmap: an argument's type has the axis twice, in a sum or product, or placed");
  using Named = NamedAxis<Axes, Name>;
  static constexpr bool has_axis = Named::is_there;
  static constexpr std::int64_t size = Named::fixed;
  static constexpr auto without() {
    if constexpr (has_axis)
      return fixed_string<SlicedAxes<Axes, Name, true>::axes>();
    else
      return Axes;
  }
  using Without = Typed<T, without()>;
  static Tensor axis_first(const Tensor& x) {
    return has_axis ? with_first(x, Named::dimension(x)) : x;
  }
};

template <FixedString Name, std::int64_t Size, class Result>
struct VmapResult {
  using type = Result;
};
template <FixedString Name, std::int64_t Size, class T, FixedString Axes>
struct VmapResult<Name, Size, Typed<T, Axes>> {
  static_assert(grammar::uses_of(StaticSpec<Axes>::reading(), Name.view()) == 0,
                "the function's result has the axis of vmap already: give one another name");
  static constexpr ResultAxes axes = with_first_axis(Axes.view(), Name.view(), Size);
  static_assert(axes.is_known, "vmap: the result's type would be too long");
  using type = Typed<T, fixed_string<axes>()>;
};

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
    constexpr std::int64_t size = [] {
      std::int64_t known = -1;
      ((known = known < 0 ? detail::VmapArgument<Name, X>::size : known), ...);
      return known;
    }();
    using Result = typename detail::VmapResult<Name, size, Made>::type;
    const std::array<Tensor, sizeof...(X)> moved{detail::VmapArgument<Name, X>::axis_first(x)...};
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
    return detail::from_list<Result>(detail::run_vmap({pattern, operands, function, &f, options}));
  };
}

}  // namespace ein
