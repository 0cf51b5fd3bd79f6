// checkpoint: less memory for a backward pass, which computes some values again. (What a training
// run leaves on disk is in checkpoint_files.hpp.)
#pragma once

#include <array>
#include <concepts>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/detail/results.hpp>
#include <ein/tensor.hpp>

namespace ein {

namespace detail {
/// `context` is the function's, and is kept.
std::vector<Tensor> checkpoint(std::shared_ptr<const void> context, TensorFunction function,
                               std::span<const Tensor> x);
}  // namespace detail

/// f(x...), of whose calls only the arguments are remembered: backward() runs f again for the
/// values in between, so that memory is paid for with time. Gradients flow to the arguments and to
/// tensors from outside that f uses, parameters say. The second run draws the same random numbers
/// and has the same Autocast as the first; under ein::compile it is part of the graph. f returns a
/// Tensor, a std::vector or a std::array of them, must do the same each time, and is kept until the
/// result's history is let go: what it captures by reference must live as long. Within NoGrad this
/// is just f(x...). backward() gives an Error of kind `value` when an argument, or a tensor from
/// outside whose value f differentiated through, was written to since.
template <class F, std::convertible_to<Tensor>... X>
auto checkpoint(F f, const X&... x) {
  using Result = detail::ResultOf<F, X...>;
  static_assert(!std::is_void_v<Result>,
                "checkpoint: the function returns no tensors to differentiate");
  const std::array<Tensor, sizeof...(X)> arguments{x...};
  return detail::from_list<Result>(detail::checkpoint(
      std::make_shared<const F>(std::move(f)), detail::tensor_function<F, X...>(), arguments));
}

}  // namespace ein
