// Layers on typed tensors: those that keep the axes of their input, and those whose type says what
// becomes of them.
//
//     nn::LayerNorm norm(768);
//     nn::Named<nn::Linear, "... d_model -> ... d_ff"> up(768, 3072);
//     const Float<"batch seq d_model"> x = ...;
//     up(norm(x))      // Float<"batch seq d_ff">
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ein/autocast.hpp>
#include <ein/nn/module.hpp>
#include <ein/ops.hpp>
#include <ein/typed.hpp>

#include <ein/detail/check_call.hpp>  // behind ops.hpp, which takes it back

namespace ein {

namespace detail {

/// A result as its type says it, whose names mean the sizes that they have in x. A scope of
/// Autocast may have given it another dtype.
template <class T, FixedString Axes, class X>
Typed<T, Axes> layer_result(const X& x, Tensor made) {
  const Scope names(x);
  return made.dtype() != dtype_of<T> && autocast_dtype() ? made.to(dtype_of<T>) : std::move(made);
}

}  // namespace detail

namespace nn {

/// A layer whose result has the axes of its input, and is of its type.
class SameAxes : public Layer {
 public:
  using Layer::operator();
  template <class T, FixedString Axes>
  Typed<T, Axes> operator()(const Typed<T, Axes>& x) const {
    return detail::layer_result<T, Axes>(x, forward(x));
  }
};

/// Any layer, with a pattern that says its axes: those of its input, and those of its result, which
/// may be new. It is made as L is, or without the pattern where L takes one first:
///
///     nn::Named<nn::Embedding, "b s -> b s d_model"> words(50257, 768);
///     nn::Named<nn::EinMix, "b s (h c) -> b h s d"> mix("h c d", "h d", "h"_a = 8, "c"_a = 16,
///                                                       "d"_a = 32);
///
/// A call checks the type of x against the pattern, as operations do; its result is typed. Its
/// elements are of type Made, or where that is void of x's, or f32 where x holds integers. Errors:
/// the layer's; kind `dtype`, `rank` or `size` where its result is another than the pattern says.
template <std::derived_from<Layer> L, FixedString Pattern, class Made = void>
class Named : public L {
 public:
  template <class... Arguments>
  requires std::constructible_from<L, PatternLiteral<Pattern>, Arguments...>
  explicit Named(Arguments&&... arguments)
      : L(PatternLiteral<Pattern>(), std::forward<Arguments>(arguments)...) {}
  template <class... Arguments>
  requires(!std::constructible_from<L, PatternLiteral<Pattern>, Arguments...> &&
           std::constructible_from<L, std::string_view,
                                   Arguments...>) explicit Named(Arguments&&... arguments)
      : L(Pattern.view(), std::forward<Arguments>(arguments)...) {}
  template <class... Arguments>
  requires(!std::constructible_from<L, PatternLiteral<Pattern>, Arguments...> &&
           !std::constructible_from<L, std::string_view,
                                    Arguments...>) explicit Named(Arguments&&... arguments)
      : L(std::forward<Arguments>(arguments)...) {}

  Tensor operator()(const Tensor& x) const { return this->forward(x); }
  /// L's own forms of more arguments.
  template <class... More>
  requires(sizeof...(More) > 0) decltype(auto) operator()(const Tensor& x, More&&... more) const {
    return L::operator()(x, std::forward<More>(more)...);
  }
  template <class T, FixedString Axes>
  auto operator()(const Typed<T, Axes>& x) const {
    using Call = detail::StaticCallOn<Typed<T, Axes>, Operation::layer, Pattern>;
    check_call(Call());
    using Same = std::conditional_t<is_integral(dtype_of<T>), float, T>;
    using Element = std::conditional_t<std::is_void_v<Made>, Same, Made>;
    if constexpr (Call::axes.is_known)
      return detail::layer_result<Element, detail::fixed_string<Call::axes>()>(x, this->forward(x));
    else
      return this->forward(x);
  }
};

#undef check_call

}  // namespace nn
}  // namespace ein
