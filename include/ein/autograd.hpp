// Gradients: what tensors remember of how they were computed, and functions of functions.
//
// A tensor for which requires_grad(true) was called, and everything computed from it, remembers the
// call that made it. `loss.backward()` walks these calls back and adds to the grad() of every such
// leaf; `gradients` returns them instead. Members: Tensor::requires_grad, backward, grad,
// zero_grad, retain_grad, detach.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/checkpoint.hpp>
#include <ein/detail/results.hpp>
#include <ein/tensor.hpp>

namespace ein {

/// While it lives, this thread's calls are not remembered: for updates of parameters, and
/// evaluation.
class NoGrad {
 public:
  NoGrad() : NoGrad(false) {}
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 protected:
  explicit NoGrad(bool enabled);

 private:
  bool before_;
};
/// While it lives, they are, even inside a NoGrad.
class EnableGrad : public NoGrad {
 public:
  EnableGrad() : NoGrad(true) {}
};
/// Whether this thread's calls are remembered.
bool grad_is_enabled();

/// d result / d input for each input: Σ over the elements of `result` of cotangent · ∂ result / ∂
/// input. Without a cotangent the result must be a scalar. Gradients have the inputs' shapes and
/// dtypes; zeros for an input that the result does not depend on. With `create_graph` they can be
/// differentiated again. No grad() changes. An Error of kind `value` when a tensor that is needed
/// was modified since.
std::vector<Tensor> gradients(const Tensor& result, std::span<const Tensor> inputs,
                              bool create_graph = false);
std::vector<Tensor> gradients(const Tensor& result, const Tensor& cotangent,
                              std::span<const Tensor> inputs, bool create_graph = false);

namespace detail {

/// An alias of x that gradients can be asked for, connected to x.
Tensor differentiable(const Tensor& x);

template <class... X>
struct GradientsOf {
  static constexpr bool are_plain = (std::is_same_v<typename Like<X>::type, Tensor> && ...);
  using type = std::conditional_t<are_plain, std::array<Tensor, sizeof...(X)>,
                                  std::tuple<typename Like<X>::type...>>;
};
template <class X>
struct GradientsOf<X> : Like<X> {};
template <class... X>
using Gradients = typename GradientsOf<X...>::type;

/// The value of f, a function of a list of tensors, and its gradients.
template <class F>
std::pair<Tensor, std::vector<Tensor>> value_and_gradients(const F& f, std::span<const Tensor> x) {
  bool again = false;
  std::vector<Tensor> inputs;
  for (const Tensor& one : x) again = again || one.requires_grad();
  again = again && grad_is_enabled();
  const EnableGrad enabled;
  for (const Tensor& one : x) inputs.push_back(differentiable(one));
  const Tensor value = f(std::span<const Tensor>(inputs));
  std::vector<Tensor> found = gradients(value, inputs, again);
  return {again ? value : value.detach(), std::move(found)};
}

template <class F, class... X>
std::pair<Tensor, Gradients<X...>> value_and_grad(const F& f, const X&... x) {
  constexpr std::index_sequence_for<X...> places;
  const std::array<Tensor, sizeof...(X)> given{x...};
  const auto call = [&](std::span<const Tensor> inputs) {
    return [&]<std::size_t... Indices>(std::index_sequence<Indices...>)->Tensor {
      return f(static_cast<const typename Like<X>::type&>(Like<X>::of(inputs[Indices]))...);
    }
    (places);
  };
  auto [value, found] = value_and_gradients(call, given);
  const auto all = [&found = found]<std::size_t... Indices>(std::index_sequence<Indices...>) {
    return Gradients<X...>{Like<X>::of(found[Indices])...};
  };
  return {std::move(value), all(places)};
}

}  // namespace detail

/// The gradient of a function of tensors whose result is a scalar, as a function: `grad(f)(x)` is a
/// tensor like x, `grad(f)(x, y)` an array of two, or where types say axes a tuple of tensors of
/// these types. It can be differentiated again: `grad([&](auto& x) { return einsum(grad(f)(x), v,
/// "i, i ->"); })`.
template <class F>
auto grad(F f) {
  return [f = std::move(f)](const std::convertible_to<Tensor> auto&... x) {
    return detail::value_and_grad(f, x...).second;
  };
}
/// The same with the function's value: a pair.
template <class F>
auto value_and_grad(F f) {
  return [f = std::move(f)](const std::convertible_to<Tensor> auto&... x) {
    return detail::value_and_grad(f, x...);
  };
}

namespace detail {

template <class F, class Vjp>
struct CustomFunctions {
  F f;
  Vjp vjp;

  /// Of arguments like X: the cotangents of the results, the results, the arguments.
  template <class Result, class... X>
  static TensorFunction pull_back() {
    return [](const void* context, std::span<const Tensor> all) -> std::vector<Tensor> {
      const auto& functions = *static_cast<const CustomFunctions*>(context);
      const std::size_t results = (all.size() - sizeof...(X)) / 2;
      const auto list = [&](std::size_t first) {
        const auto part = all.subspan(first, results);
        return from_list<Result>(std::vector<Tensor>(part.begin(), part.end()));
      };
      const auto x = all.subspan(2 * results);
      const auto call = [&]<std::size_t... Indices>(std::index_sequence<Indices...>) {
        const Result cotangents = list(0), made = list(results);
        return functions.vjp(
            cotangents, made,
            static_cast<const typename Like<X>::type&>(Like<X>::of(x[Indices]))...);
      };
      return as_list(call(std::index_sequence_for<X...>()));
    };
  }
  template <class... X>
  static TensorFunction call() {
    return [](const void* context, std::span<const Tensor> x) -> std::vector<Tensor> {
      const auto& functions = *static_cast<const CustomFunctions*>(context);
      return tensor_function<F, X...>()(&functions.f, x);
    };
  }
};

/// `functions` is kept for the backward pass.
std::vector<Tensor> custom(std::shared_ptr<const void> functions, TensorFunction call,
                           TensorFunction pull_back, std::span<const Tensor> x);

}  // namespace detail

/// A function with a gradient of one's own: `custom(f, vjp)(x...)` is f(x...), whose calls are not
/// remembered. The backward pass calls `vjp(cotangent, result, x...)` for the cotangents of the
/// arguments, each of its argument's shape and dtype:
///
///     auto clipped = custom([](const Tensor& x) { return x; },
///                           [](const Tensor& g, const Tensor&, const Tensor&) {
///                             return clamp(g, -1, 1);
///                           });
///
/// f returns a Tensor, or a std::vector or std::array of them, of which vjp then gets as many
/// cotangents and results. vjp returns one Tensor for one argument, else a std::vector or a
/// std::array with one for each; what stands for an argument that takes no gradient is not read.
/// Where vjp is made of ein's functions, gradients can be differentiated again, and ein::compile
/// traces both. backward() gives an Error of kind `shape` or `dtype` for other cotangents, of kind
/// `value` for another number of them, and when an argument or a result was written to since.
///
/// Gradients reach the arguments alone. So a call of f on a tensor from outside that requires a
/// gradient is an Error of kind `value`: make it an argument, or give f its detach(). And where
/// gradients are to be differentiated again, a call of vjp on what f computed from its arguments
/// and kept is one: return it from f among the results, or compute it again in vjp.
template <class F, class Vjp>
auto custom(F f, Vjp vjp) {
  using Functions = detail::CustomFunctions<F, Vjp>;
  return [functions = std::make_shared<const Functions>(
              std::move(f), std::move(vjp))]<std::convertible_to<Tensor>... X>(const X&... x) {
    using Result = detail::ResultOf<F, X...>;
    const std::array<Tensor, sizeof...(X)> arguments{x...};
    return detail::from_list<Result>(detail::custom(functions, Functions::template call<X...>(),
                                                    Functions::template pull_back<Result, X...>(),
                                                    arguments));
  };
}

}  // namespace ein
