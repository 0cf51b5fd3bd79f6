// Functions of tensors whose type is forgotten: what `compile` and `checkpoint` keep of them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <tuple>
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

/// A pair or a tuple of what there is a list for.
template <class T>
inline constexpr bool is_list = requires(const T& x) {
  x.begin();
};
template <class T>
concept Tuple = requires {
  typename std::tuple_element<0, T>::type;
  std::tuple_size<T>::value;
}
&&!std::is_convertible_v<T, Tensor> && !is_list<T>;
template <Tuple T>
std::vector<Tensor> as_list(const T& results) {
  std::vector<Tensor> all;
  const auto take = [&](const auto& part) {
    for (Tensor& x : as_list(part)) all.push_back(std::move(x));
  };
  std::apply([&](const auto&... parts) { (take(parts), ...); }, results);
  return all;
}

/// How many tensors a type holds.
template <class T>
constexpr std::size_t count_of_tensors() {
  if constexpr (std::is_convertible_v<T, Tensor>) {
    return 1;
  } else {
    return []<std::size_t... Indices>(std::index_sequence<Indices...>) {
      return (count_of_tensors<std::tuple_element_t<Indices, T>>() + ... + 0);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  }
}

struct Trusted;

/// A tensor like an argument: of its type, if that says its axes.
template <class X>
struct Like {
  using type = Tensor;
  static const Tensor& of(const Tensor& x) { return x; }
};
template <class X>
requires requires { X::axes(); }
struct Like<X> {
  using type = X;
  /// Not checked anew where that can be: of sizes such as d*s a tensor alone does not say which.
  template <class T = Trusted>
  static X of(const Tensor& x) {
    if constexpr (std::is_constructible_v<X, T, Tensor>)
      return X(T(), x);
    else
      return X(x);
  }
};

/// The reverse of as_list().
template <class Result>
Result from_list(std::vector<Tensor> results) {
  if constexpr (Tuple<Result>) {
    std::size_t first = 0;
    const auto next = [&]<class Part>(std::type_identity<Part>) {
      const std::size_t begin = std::exchange(first, first + count_of_tensors<Part>());
      return from_list<Part>({results.begin() + static_cast<std::ptrdiff_t>(begin),
                              results.begin() + static_cast<std::ptrdiff_t>(first)});
    };
    return [&]<std::size_t... Indices>(std::index_sequence<Indices...>) {
      return Result{next(std::type_identity<std::tuple_element_t<Indices, Result>>())...};
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>());
  } else if constexpr (std::is_convertible_v<Result, Tensor>) {
    return Like<Result>::of(results.front());
  } else if constexpr (std::is_same_v<Result, std::vector<Tensor>>) {
    return results;
  } else if constexpr (!std::is_void_v<Result>) {
    Result all;
    std::move(results.begin(), results.end(), all.begin());
    return all;
  }
}

/// What F makes of arguments like these.
template <class F, class... X>
using ResultOf = std::invoke_result_t<const F&, const typename Like<X>::type&...>;

/// The F at `context`, called with a tensor like each of these arguments. It returns nothing, a
/// Tensor, a std::vector or a std::array of them.
template <class F, class... X>
TensorFunction tensor_function() {
  return [](const void* context, std::span<const Tensor> x) -> std::vector<Tensor> {
    const auto call = [&]<std::size_t... Indices>(std::index_sequence<Indices...>) {
      return (*static_cast<const F*>(context))(
          static_cast<const typename Like<X>::type&>(Like<X>::of(x[Indices]))...);
    };
    constexpr std::index_sequence_for<X...> places;
    if constexpr (std::is_void_v<decltype(call(places))>) {
      call(places);
      return {};
    } else {
      return as_list(call(places));
    }
  };
}
/// Called with so many plain tensors.
template <class F, std::size_t... Indices>
TensorFunction tensor_function(std::index_sequence<Indices...>) {
  return tensor_function<F, std::enable_if_t<Indices + 1 != 0, Tensor>...>();
}

}  // namespace ein::detail
