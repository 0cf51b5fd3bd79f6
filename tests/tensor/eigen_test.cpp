// Eigen's own indexing is the oracle: element (i, j) of the one must be element (i, j) of the
// other.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include <ein/create.hpp>
#include <ein/eigen.hpp>
#include <ein/eigen_tensor.hpp>
#include <ein/error.hpp>

namespace ein {
namespace {

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Matrix>
Matrix counted(Eigen::Index rows, Eigen::Index cols) {
  Matrix m(rows, cols);
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index j = 0; j < cols; ++j) {
      m(i, j) = static_cast<typename Matrix::Scalar>(static_cast<float>(10 * i + j));
    }
  }
  return m;
}

template <class M>
void expect_same(const Tensor& x, const M& m) {
  ASSERT_EQ(x.shape(), (Shape{m.rows(), m.cols()}));
  for (Eigen::Index i = 0; i < m.rows(); ++i) {
    for (Eigen::Index j = 0; j < m.cols(); ++j) {
      EXPECT_EQ(x.at({i, j}).template item<double>(), static_cast<double>(m(i, j)))
          << i << ", " << j;
    }
  }
}

template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// --- From Eigen ---

template <class T>
class EigenScalars : public testing::Test {};
using Scalars = testing::Types<double, float, Eigen::half, Eigen::bfloat16, std::int64_t,
                               std::int32_t, std::uint8_t, bool>;
TYPED_TEST_SUITE(EigenScalars, Scalars);

TYPED_TEST(EigenScalars, CrossInBothDirections) {
  using T = TypeParam;
  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic> m =
      counted<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>>(3, 4);
  const Tensor x = from_eigen(m);
  expect_same(x, m);
  EXPECT_EQ(x.raw_data(), m.data());
  EXPECT_EQ(x.dtype(), detail::eigen_dtype<T>);
  auto back = as_matrix<T>(x);
  static_assert(std::is_same_v<typename decltype(back)::Scalar, T>);
  EXPECT_EQ(back.data(), m.data());
  EXPECT_TRUE((back.array() == m.array()).all());
  back(2, 1) = T(1);
  EXPECT_EQ(m(2, 1), T(1));
  x.at({0, 2}).fill(1);
  EXPECT_EQ(m(0, 2), T(1));
}

TEST(Eigen, DtypesOfScalars) {
  EXPECT_EQ(detail::eigen_dtype<Eigen::half>, DType::f16);
  EXPECT_EQ(detail::eigen_dtype<const Eigen::bfloat16>, DType::bf16);
  static_assert(EigenScalar<f16> && EigenScalar<const bf16> && EigenScalar<Eigen::half>);
  static_assert(!EigenScalar<f8e4m3> && !EigenScalar<f8e5m2> && EigenScalar<std::int8_t>);
  static_assert(EigenScalar<const std::uint64_t> && !EigenScalar<char>);
  static_assert(EigenDense<Eigen::MatrixXcf> && !EigenDense<Tensor>);
  static_assert(std::is_same_v<decltype(as_vector<f16>(Tensor()))::Scalar, Eigen::half>);
}

TEST(Eigen, StorageOrderBecomesStrides) {
  Eigen::MatrixXf columns = counted<Eigen::MatrixXf>(3, 4);
  EXPECT_EQ(from_eigen(columns).strides(), (Strides{1, 3}));
  RowMatrix rows = counted<RowMatrix>(3, 4);
  EXPECT_EQ(from_eigen(rows).strides(), (Strides{4, 1}));
  EXPECT_TRUE(from_eigen(rows).is_contiguous());
  expect_same(from_eigen(rows), columns);
  expect_same(from_eigen(columns).contiguous(), columns);
}

TEST(Eigen, WritesAreSeenOnBothSides) {
  Eigen::MatrixXf m = counted<Eigen::MatrixXf>(3, 4);
  const Tensor x = from_eigen(m);
  m(1, 2) = 99;
  EXPECT_EQ(x.at({1, 2}).item(), 99);
  x.at({2, every}).fill(-1);
  EXPECT_EQ(m.row(2), Eigen::RowVector4f::Constant(-1));
  expect_same(x, m);
}

TEST(Eigen, BlocksMapsRefsAndTransposesAreShared) {
  Eigen::MatrixXf m = counted<Eigen::MatrixXf>(5, 6);
  const Tensor block = from_eigen(m.block(1, 2, 3, 2));
  EXPECT_EQ(block.strides(), (Strides{1, 5}));
  expect_same(block, m.block(1, 2, 3, 2));
  expect_same(from_eigen(m.transpose()), m.transpose());
  EXPECT_EQ(from_eigen(m.array()).raw_data(), m.data());

  const Tensor row = from_eigen(m.row(3));
  EXPECT_EQ(row.shape(), Shape{6});
  EXPECT_EQ(row.strides(), Strides{5});
  EXPECT_EQ(row.to_vector<float>(), (std::vector<float>{30, 31, 32, 33, 34, 35}));
  row.fill(7);
  EXPECT_EQ(m(3, 5), 7);
  EXPECT_EQ(from_eigen(m.diagonal()).to_vector<float>(), (std::vector<float>{0, 11, 22, 7, 44}));

  Eigen::Map<RowMatrix, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>> map(
      m.data() + 1, 2, 3, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(10, 2));
  expect_same(from_eigen(map), map);
  Eigen::Ref<Eigen::MatrixXf> ref = m.middleCols(1, 2);
  const Tensor through_ref = from_eigen(ref);
  EXPECT_EQ(through_ref.raw_data(), &m(0, 1));
  expect_same(through_ref, ref);
}

TEST(Eigen, VectorsHaveRankOne) {
  Eigen::VectorXd v = Eigen::VectorXd::LinSpaced(5, 0, 4);
  EXPECT_EQ(from_eigen(v).shape(), Shape{5});
  Eigen::RowVector3i r(1, 2, 3);
  EXPECT_EQ(from_eigen(r).to_vector<int>(), (std::vector<int>{1, 2, 3}));
  Eigen::ArrayXf a = Eigen::ArrayXf::Ones(4);
  EXPECT_EQ(from_eigen(a).shape(), Shape{4});
  Eigen::MatrixXf one_column = Eigen::MatrixXf::Ones(4, 1);  // a matrix by its type
  EXPECT_EQ(from_eigen(one_column).shape(), (Shape{4, 1}));
}

TEST(Eigen, RvaluesAreOwned) {
  Eigen::MatrixXf m = counted<Eigen::MatrixXf>(30, 40);
  const Eigen::MatrixXf copy = m;
  const float* data = m.data();
  const Tensor moved = from_eigen(std::move(m));
  EXPECT_EQ(moved.raw_data(), data);  // moved, not copied
  expect_same(moved, copy);
  const Tensor fixed = from_eigen(Eigen::Matrix4d(Eigen::Matrix4d::Identity()));
  EXPECT_EQ(fixed.to_vector<double>(), eye(4, DType::f64).to_vector<double>());
  const Tensor slice_of_temporary = from_eigen(Eigen::MatrixXf(copy))[3];
  EXPECT_EQ(slice_of_temporary.at({7}).item(), 37);
}

TEST(Eigen, ExpressionsAreEvaluatedAndOwned) {
  const Eigen::MatrixXf a = counted<Eigen::MatrixXf>(2, 3), b = counted<Eigen::MatrixXf>(3, 2);
  const Eigen::MatrixXf product = a * b, sum = a + b.transpose();
  expect_same(from_eigen(a * b), product);
  expect_same(from_eigen(a + b.transpose()), sum);
  EXPECT_NO_THROW(from_eigen(a + a).fill(1));
}

TEST(Eigen, ConstIsReadOnly) {
  const Eigen::MatrixXf m = counted<Eigen::MatrixXf>(2, 3);
  const Tensor x = from_eigen(m);
  EXPECT_EQ(x.raw_data(), m.data());
  expect_error(ErrorKind::value, "read-only", [&] { x.fill(1); });
  expect_error(ErrorKind::value, "read-only", [&] { as_matrix<float>(x); });
  EXPECT_EQ(as_matrix<const float>(x), m);
  EXPECT_TRUE(from_eigen(m.row(1)).storage()->read_only());
  const Eigen::Map<const Eigen::VectorXf> map(m.data(), 6);
  EXPECT_TRUE(from_eigen(map).storage()->read_only());
  const Eigen::Ref<const Eigen::MatrixXf> ref(m);
  EXPECT_TRUE(from_eigen(ref).storage()->read_only());
  Eigen::MatrixXf other = m;
  EXPECT_FALSE(from_eigen(other).storage()->read_only());
}

TEST(Eigen, EmptyMatrices) {
  for (const auto& [rows, cols] : {std::pair{0, 3}, std::pair{3, 0}, std::pair{0, 0}}) {
    Eigen::MatrixXf m(rows, cols);
    const Tensor x = from_eigen(m);
    EXPECT_EQ(x.shape(), (Shape{rows, cols}));
    EXPECT_TRUE(x.to_vector<float>().empty());
    EXPECT_NO_THROW(x.fill(1));
    EXPECT_EQ(as_matrix<float>(x).rows(), rows);
    EXPECT_EQ(as_matrix<float>(x).cols(), cols);
  }
  Eigen::VectorXf none;
  EXPECT_EQ(from_eigen(none).shape(), Shape{0});
}

TEST(Eigen, UnusualStrides) {
  std::vector<float> values(6);
  std::iota(values.begin(), values.end(), 0.0f);
  using Stride = Eigen::InnerStride<Eigen::Dynamic>;
  const Tensor same =
      from_eigen(Eigen::Map<Eigen::VectorXf, 0, Stride>(values.data() + 2, 4, Stride(0)));
  EXPECT_EQ(same.to_vector<float>(), (std::vector<float>{2, 2, 2, 2}));
  Eigen::Map<Eigen::VectorXf, 0, Eigen::InnerStride<-2>> backwards(values.data() + 5, 3);
  ASSERT_EQ(backwards[1], 3);
  const Tensor x = from_eigen(backwards);
  EXPECT_EQ(x.strides(), Strides{-2});
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{5, 3, 1}));
  x(0) = 50;
  EXPECT_EQ(values[5], 50);
  EXPECT_TRUE(as_vector<float>(x) == backwards);
}

// --- To Eigen ---

TEST(Eigen, AnyStridesMapToAMatrix) {
  const Tensor x = arange(24).to(DType::f32).view({4, 6});
  expect_same(x, as_matrix<float>(x));
  expect_same(x.transpose(), as_matrix<float>(x.transpose()));
  const Tensor part = x.at({slice(1, 4, 2), slice(0, 6, 3)});
  auto map = as_matrix<float>(part);
  expect_same(part, map);
  map(1, 1) = -5;
  EXPECT_EQ(x.at({3, 3}).item(), -5);
  const Tensor repeated(x.storage(), DType::f32, {3, 2}, {0, 6});
  expect_same(repeated, as_matrix<const float>(repeated));
}

TEST(Eigen, MatrixProductsThroughMaps) {
  const Tensor x = arange(12).to(DType::f64).view({3, 4});
  const Eigen::MatrixXd gram = as_matrix<double>(x) * as_matrix<double>(x.transpose());
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      double sum = 0;
      for (int k = 0; k < 4; ++k) sum += (4 * i + k) * (4 * j + k);
      EXPECT_EQ(gram(i, j), sum);
    }
  }
}

TEST(Eigen, VectorMaps) {
  const Tensor x = arange(12).to(DType::i32).view({3, 4});
  auto column = as_vector<std::int32_t>(x.at({every, 1}));
  EXPECT_EQ(column, Eigen::Vector3i(1, 5, 9));
  column *= 2;
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{0, 2, 2, 3, 4, 10, 6, 7, 8, 18, 10, 11}));
  EXPECT_EQ(as_vector<const std::int32_t>(x[2]).sum(), 47);
}

TEST(Eigen, HalvesShareTheirBits) {
  const Tensor x = from_vector<double>({1, -0.5, 65504, 0.1});
  const Tensor half = x.to(DType::f16), brain = x.to(DType::bf16);
  const auto h = as_vector<f16>(half);
  const auto b = as_vector<Eigen::bfloat16>(brain);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<double>(h[i]), half.to_vector<double>()[static_cast<std::size_t>(i)]);
    EXPECT_EQ(static_cast<double>(b[i]), brain.to_vector<double>()[static_cast<std::size_t>(i)]);
  }
}

TEST(Eigen, MistakesAreErrors) {
  const Tensor x = zeros({2, 3});
  expect_error(ErrorKind::rank, "as_matrix: wants rank 2, got shape (2, 3, 1)", [&] {
    as_matrix<float>(x.view({2, 3, 1}));
  });
  expect_error(ErrorKind::rank, "as_vector: wants rank 1, got shape (2, 3)",
               [&] { as_vector<float>(x); });
  expect_error(ErrorKind::dtype, "holds f32, not f64", [&] { as_matrix<double>(x); });
  expect_error(ErrorKind::dtype, "holds f32, not f16", [&] { as_vector<Eigen::half>(x[0]); });
  expect_error(ErrorKind::rank, "wants rank 3", [&] { as_eigen_tensor<float, 3>(x); });
  expect_error(ErrorKind::dtype, "holds f32, not i64",
               [&] { as_eigen_tensor<std::int64_t, 2>(x); });
  expect_error(ErrorKind::shape, "strides (1, 3); contiguous()",
               [&] { as_eigen_tensor<float, 2>(x.transpose()); });
}

// --- Eigen::Tensor ---

template <class T>
void fill_counted(T& t) {
  for (Eigen::Index i = 0; i < t.dimension(0); ++i) {
    for (Eigen::Index j = 0; j < t.dimension(1); ++j) {
      for (Eigen::Index k = 0; k < t.dimension(2); ++k) t(i, j, k) = 100 * i + 10 * j + k;
    }
  }
}

template <class T>
void expect_same_cube(const Tensor& x, const T& t) {
  ASSERT_EQ(x.shape(), (Shape{t.dimension(0), t.dimension(1), t.dimension(2)}));
  for (Eigen::Index i = 0; i < t.dimension(0); ++i) {
    for (Eigen::Index j = 0; j < t.dimension(1); ++j) {
      for (Eigen::Index k = 0; k < t.dimension(2); ++k) {
        EXPECT_EQ(x.at({i, j, k}).template item<double>(), t(i, j, k));
      }
    }
  }
}

TEST(EigenTensors, BothStorageOrdersAreShared) {
  Eigen::Tensor<double, 3> columns(2, 3, 4);
  Eigen::Tensor<double, 3, Eigen::RowMajor> rows(2, 3, 4);
  fill_counted(columns);
  fill_counted(rows);
  const Tensor x = from_eigen(columns), y = from_eigen(rows);
  EXPECT_EQ(x.strides(), (Strides{1, 2, 6}));
  EXPECT_EQ(y.strides(), (Strides{12, 4, 1}));
  expect_same_cube(x, columns);
  expect_same_cube(y, rows);
  columns(1, 2, 3) = -1;
  EXPECT_EQ(x.at({1, 2, 3}).item(), -1);
  y.at({0, 1}).fill(8);
  EXPECT_EQ(rows(0, 1, 3), 8);
}

TEST(EigenTensors, RvaluesAreOwnedAndMapsShared) {
  Eigen::Tensor<double, 3> t(2, 3, 4);
  fill_counted(t);
  const Eigen::Tensor<double, 3> copy = t;
  Eigen::TensorMap<Eigen::Tensor<double, 3>> map(t.data(), 2, 3, 4);
  EXPECT_EQ(from_eigen(map).raw_data(), t.data());
  EXPECT_FALSE(from_eigen(map).storage()->read_only());
  EXPECT_TRUE(from_eigen(copy).storage()->read_only());
  expect_same_cube(from_eigen(copy), copy);
  const double* data = t.data();
  const Tensor owned = from_eigen(std::move(t));
  EXPECT_EQ(owned.raw_data(), data);
  expect_same_cube(owned, copy);
}

TEST(EigenTensors, RanksAndEmptiness) {
  Eigen::Tensor<float, 0> scalar;
  scalar() = 3;
  EXPECT_EQ(from_eigen(scalar).shape(), Shape{});
  EXPECT_EQ(from_eigen(scalar).item(), 3);
  EXPECT_EQ((as_eigen_tensor<float, 0>(from_eigen(scalar))()), 3);
  Eigen::Tensor<std::int64_t, 2> none(0, 5);
  EXPECT_EQ(from_eigen(none).shape(), (Shape{0, 5}));
  EXPECT_EQ((as_eigen_tensor<std::int64_t, 2>(from_eigen(none)).size()), 0);
}

TEST(EigenTensors, TensorsMapInRowMajorOrder) {
  const Tensor x = arange(24).to(DType::f32).view({2, 3, 4});
  auto map = as_eigen_tensor<float, 3>(x);
  expect_same_cube(x, map);
  map(1, 0, 2) = 77;
  EXPECT_EQ(x.at({1, 0, 2}).item(), 77);
  EXPECT_EQ(map.data(), x.data<float>());
  expect_same_cube(x[1].view({1, 3, 4}), as_eigen_tensor<const float, 3>(x[1].view({1, 3, 4})));
  const Eigen::Tensor<Eigen::bfloat16, 1, Eigen::RowMajor> ones_of_bf16 =
      as_eigen_tensor<bf16, 1>(ones({3}, DType::bf16));
  EXPECT_EQ(static_cast<float>(ones_of_bf16(2)), 1.0f);
}

}  // namespace
}  // namespace ein
