// Eigen matrices as tensors and tensors as Eigen maps, without copying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

#include <ein/detail/wrap_elements.hpp>
#include <ein/dtype.hpp>
#include <ein/error.hpp>
#include <ein/tensor.hpp>

namespace ein {
namespace detail {

template <class T>
struct ToEigen {
  using type = T;
};
template <>
struct ToEigen<f16> {
  using type = Eigen::half;
};
template <>
struct ToEigen<bf16> {
  using type = Eigen::bfloat16;
};
template <>
struct ToEigen<f8e4m3> {};
template <>
struct ToEigen<f8e5m2> {};

template <class T>
struct FromEigen {
  using type = T;
};
template <>
struct FromEigen<Eigen::half> {
  using type = f16;
};
template <>
struct FromEigen<Eigen::bfloat16> {
  using type = bf16;
};
static_assert(sizeof(Eigen::half) == sizeof(f16) && sizeof(Eigen::bfloat16) == sizeof(bf16));

}  // namespace detail

/// Eigen's scalar types that ein has a dtype for: double, float, Eigen::half (f16), Eigen::bfloat16
/// (bf16), std::complex of float and double, bool and the integers of 8 to 64 bits.
template <class T>
concept EigenScalar = Element<typename detail::FromEigen<std::remove_cv_t<T>>::type> && requires {
  typename detail::ToEigen<std::remove_cv_t<T>>::type;
};

/// The Eigen scalar type of an element type, with its const: Eigen::half for f16 and
/// Eigen::bfloat16 for bf16, which have the same bits; T itself for the others.
template <EigenScalar T>
using eigen_scalar = std::conditional_t<std::is_const_v<T>,
                                        const typename detail::ToEigen<std::remove_cv_t<T>>::type,
                                        typename detail::ToEigen<std::remove_cv_t<T>>::type>;

namespace detail {

template <EigenScalar T>
inline constexpr DType eigen_dtype = dtype_of<typename FromEigen<std::remove_cv_t<T>>::type>;

/// The first element for an Eigen map of T, which may be const.
template <EigenScalar T>
eigen_scalar<T>* eigen_data(const char* caller, const Tensor& x) {
  if (x.dtype() != eigen_dtype<T>) {
    throw Error(ErrorKind::dtype, std::string(caller) + ": the tensor holds " +
                                      std::string(name(x.dtype())) + ", not " +
                                      std::string(name(eigen_dtype<T>)));
  }
  void* const data = x.raw_data();  // an Error where it has no elements here
  if (!std::is_const_v<T> && x.storage()->read_only()) {
    throw Error(
        ErrorKind::value,
        std::string(caller) + ": the tensor's storage is read-only; ask for a const element");
  }
  return static_cast<eigen_scalar<T>*>(data);
}

inline void require_rank(const char* caller, const Tensor& x, std::size_t rank) {
  if (x.rank() == rank) return;
  throw Error(ErrorKind::rank, std::string(caller) + ": wants rank " + std::to_string(rank) +
                                   ", got shape " + x.shape().to_string());
}

/// Plain<T>, const for a const T: what an Eigen map of T maps.
template <class T, class Plain>
using with_const = std::conditional_t<std::is_const_v<T>, const Plain, Plain>;

}  // namespace detail

// --- From Eigen ---

/// A dense Eigen object over scalars that ein has: Matrix, Array, Map, Ref, a block or an
/// expression.
template <class E>
concept EigenDense =
    std::is_base_of_v<Eigen::DenseBase<std::remove_cvref_t<E>>, std::remove_cvref_t<E>> &&
    EigenScalar<typename std::remove_cvref_t<E>::Scalar>;

/// A tensor of x's elements: of rank 1 where the type says that x is a vector, else of rank 2.
/// - A Matrix or Array by rvalue is moved (a fixed-size one copied) into the tensor, which owns it.
/// - A Matrix or Array by lvalue, and a Map, Ref, block or transpose, is shared in both directions,
///   strides and storage order as they are. The caller keeps the elements alive and does not resize
///   them as long as a tensor views them. Const elements make a read-only storage.
/// - Another expression, `a * b`, is evaluated into a matrix that the tensor owns.
template <EigenDense E>
Tensor from_eigen(E&& x) {
  using Dense = std::remove_cvref_t<E>;
  using Plain = typename Dense::PlainObject;
  constexpr bool is_plain = std::is_base_of_v<Eigen::PlainObjectBase<Dense>, Dense>;
  constexpr bool has_memory = (Dense::Flags & Eigen::DirectAccessBit) != 0;
  const auto wrap = [](auto& dense, std::shared_ptr<void> owner) {
    using Pointee = std::remove_pointer_t<decltype(dense.data())>;
    Shape shape{dense.rows(), dense.cols()};
    Strides strides{dense.rowStride(), dense.colStride()};
    if constexpr (Dense::IsVectorAtCompileTime) {
      shape = {dense.size()};
      strides = {dense.innerStride()};
    }
    return detail::wrap_elements(dense.data(), std::is_const_v<Pointee>,
                                 detail::eigen_dtype<typename Dense::Scalar>, std::move(shape),
                                 std::move(strides), std::move(owner));
  };
  if constexpr (!has_memory || (is_plain && !std::is_lvalue_reference_v<E>)) {
    const auto owned = std::make_shared<Plain>(std::forward<E>(x));
    return wrap(*owned, owned);
  } else {
    return wrap(x, nullptr);
  }
}

// --- To Eigen ---

template <EigenScalar T>
using EigenMatrixMap = Eigen::Map<
    detail::with_const<T, Eigen::Matrix<eigen_scalar<std::remove_cv_t<T>>, Eigen::Dynamic,
                                        Eigen::Dynamic, Eigen::RowMajor>>,
    Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

template <EigenScalar T>
using EigenVectorMap = Eigen::Map<
    detail::with_const<T, Eigen::Matrix<eigen_scalar<std::remove_cv_t<T>>, Eigen::Dynamic, 1>>,
    Eigen::Unaligned, Eigen::InnerStride<Eigen::Dynamic>>;

/// The elements of a tensor of rank 2, whatever its strides, as an Eigen matrix; valid while a
/// tensor holds the storage. T is the element type, f16 or Eigen::half alike, const for a map that
/// only reads. Errors of kind `rank`, `dtype`, and `value` when a read-only storage is to be mapped
/// for writing.
template <EigenScalar T>
EigenMatrixMap<T> as_matrix(const Tensor& x) {
  detail::require_rank("as_matrix", x, 2);
  return {detail::eigen_data<T>("as_matrix", x), x.shape()[0], x.shape()[1],
          Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(x.strides()[0], x.strides()[1])};
}

/// The same of rank 1, as an Eigen column vector.
template <EigenScalar T>
EigenVectorMap<T> as_vector(const Tensor& x) {
  detail::require_rank("as_vector", x, 1);
  return {detail::eigen_data<T>("as_vector", x), x.shape()[0],
          Eigen::InnerStride<Eigen::Dynamic>(x.strides()[0])};
}

}  // namespace ein
