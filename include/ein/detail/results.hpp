// Functions of tensors whose type is forgotten: what `compile` and `checkpoint` keep of them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/tensor.hpp>

namespace ein::detail {

/// Calls the function at `context`.
using TensorFunction = std::vector<Tensor> (*)(const void* context,
                                               std::span<const Tensor> arguments);

inline std::vector<Tensor> as_list(Tensor result) { return {std::move(result)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> results) { return results; }
template <std::size_t N>
std::vector<Tensor> as_list(const std::array<Tensor, N>& results) {
  return {results.begin(), results.end()};
}

/// The reverse.
template <class Result>
Result from_list(std::vector<Tensor> results) {
  if constexpr (std::is_convertible_v<Result, Tensor>) {
    return Tensor(std::move(results.front()));
  } else if constexpr (std::is_same_v<Result, std::vector<Tensor>>) {
    return results;
  } else if constexpr (!std::is_void_v<Result>) {
    Result all;
    std::move(results.begin(), results.end(), all.begin());
    return all;
  }
}

/// The F at `context`, called with a tensor for each index. It returns nothing, a Tensor, a
/// std::vector or a std::array of them.
template <class F, std::size_t... Indices>
TensorFunction tensor_function(std::index_sequence<Indices...>) {
  return
      [](const void* context, [[maybe_unused]] std::span<const Tensor> x) -> std::vector<Tensor> {
        const F& f = *static_cast<const F*>(context);
        if constexpr (std::is_void_v<decltype(f(x[Indices]...))>) {
          f(x[Indices]...);
          return {};
        } else {
          return as_list(f(x[Indices]...));
        }
      };
}

}  // namespace ein::detail
