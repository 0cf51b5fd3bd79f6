// Eigen::Tensor and ein::Tensor over the same elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <ein/eigen.hpp>

#include <unsupported/Eigen/CXX11/Tensor>

namespace ein {
namespace detail {

template <class X>
struct EigenTensorTraits {
  static constexpr bool is_tensor = false;
};
template <class T, int rank, int options, class Index>
struct EigenTensorTraits<Eigen::Tensor<T, rank, options, Index>> {
  static constexpr bool is_tensor = true, owns = true;
};
template <class Plain, int options, template <class> class MakePointer>
struct EigenTensorTraits<Eigen::TensorMap<Plain, options, MakePointer>> {
  static constexpr bool is_tensor = true, owns = false;
};

}  // namespace detail

/// An Eigen::Tensor or Eigen::TensorMap, row- or column-major, over scalars that ein has.
template <class X>
concept EigenTensor = detail::EigenTensorTraits<std::remove_cvref_t<X>>::is_tensor &&
    EigenScalar<typename std::remove_cvref_t<X>::Scalar>;

/// A tensor of x's elements, indices in the same order whichever way x is stored. An Eigen::Tensor
/// by rvalue is moved into the tensor, which owns it; by lvalue, and as a TensorMap, it is shared
/// in both directions: the caller keeps the elements alive and does not resize them as long as a
/// tensor views them. Const elements make a read-only storage.
template <EigenTensor X>
Tensor from_eigen(X&& x) {
  using Source = std::remove_cvref_t<X>;
  const auto wrap = [](auto& source, std::shared_ptr<void> owner) {
    using Pointee = std::remove_pointer_t<decltype(source.data())>;
    Shape shape(static_cast<std::size_t>(Source::NumDimensions), 0);
    for (std::size_t d = 0; d < shape.rank(); ++d) shape[d] = source.dimension(d);
    Shape stored = shape;
    constexpr bool column_major = static_cast<int>(Source::Layout) == Eigen::ColMajor;
    if (column_major) std::reverse(stored.begin(), stored.end());
    Strides strides = contiguous_strides(stored);
    if (column_major) std::reverse(strides.begin(), strides.end());
    return detail::wrap_elements(source.data(), std::is_const_v<Pointee>,
                                 detail::eigen_dtype<typename Source::Scalar>, std::move(shape),
                                 std::move(strides), std::move(owner));
  };
  if constexpr (detail::EigenTensorTraits<Source>::owns && !std::is_lvalue_reference_v<X>) {
    const auto owned = std::make_shared<Source>(std::forward<X>(x));
    return wrap(*owned, owned);
  } else {
    return wrap(x, nullptr);
  }
}

template <EigenScalar T, int N>
using EigenTensorMap = Eigen::TensorMap<
    detail::with_const<T, Eigen::Tensor<eigen_scalar<std::remove_cv_t<T>>, N, Eigen::RowMajor>>>;

/// The elements of a contiguous tensor of rank N as a row-major Eigen tensor; valid while a tensor
/// holds the storage. T as for as_matrix. Errors of kind `rank`, `dtype`, `value` (a read-only
/// storage mapped for writing) and `shape` when it is not contiguous.
template <EigenScalar T, int N>
EigenTensorMap<T, N> as_eigen_tensor(const Tensor& x) {
  detail::require_rank("as_eigen_tensor", x, N);
  auto* data = detail::eigen_data<T>("as_eigen_tensor", x);
  if (!x.is_contiguous()) {
    throw Error(ErrorKind::shape, "as_eigen_tensor: the tensor of shape " + x.shape().to_string() +
                                      " has strides " + x.strides().to_string() +
                                      "; contiguous() makes it row-major");
  }
  std::array<Eigen::Index, static_cast<std::size_t>(N)> sizes{};
  for (std::size_t d = 0; d < sizes.size(); ++d) sizes[d] = x.shape()[d];
  return {data, sizes};
}

}  // namespace ein
