// Tensors from numbers as they are written, and from memory of the caller; elements by position.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

using test::expect_error;
using namespace ein::literals;
using Integers = std::vector<std::int64_t>;

TEST(Making, NumbersAsTheyAreWritten) {
  const Tensor matrix = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(matrix.shape(), (Shape{2, 3}));
  EXPECT_EQ(matrix.dtype(), DType::i64);
  EXPECT_EQ(matrix.to_vector<std::int64_t>(), (Integers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor({1.5, 2.5}).dtype(), DType::f32);
  EXPECT_EQ(tensor({1.5, 2.5}).shape(), Shape{2});
  EXPECT_EQ(tensor({true, false}).dtype(), DType::boolean);
  EXPECT_EQ(tensor({1.5F}).dtype(), DType::f32);
  EXPECT_EQ(tensor({std::int8_t{1}}).dtype(), DType::i8);
  const Tensor doubles = tensor({{0.1, 0.2}}, DType::f64);
  EXPECT_EQ(doubles.dtype(), DType::f64);
  EXPECT_EQ(doubles.to_vector<double>(), (std::vector<double>{0.1, 0.2})) << "not through f32";
  EXPECT_EQ(tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}}).shape(),
            (Shape{3, 2, 2}));
  EXPECT_EQ(tensor({{{{1}}, {{2}}}}).shape(), (Shape{1, 2, 1, 1}));
  EXPECT_EQ(tensor({{1}, {2}}).shape(), (Shape{2, 1}));
}

TEST(Making, RowsOfOtherLengthsAreNamed) {
  expect_error(
      [] {
        tensor({{1, 2}, {3}});
      },
      ErrorKind::shape, {"tensor: dimension 1 has rows of 2 and of 1; all are to be equally long"});
  expect_error(
      [] {
        tensor({{{1}, {2}}, {{3}}});
      },
      ErrorKind::shape, {"dimension 1 has rows of 2 and of 1"});
  expect_error(
      [] {
        tensor({{{1}, {2}}, {{3}, {4, 5}}});
      },
      ErrorKind::shape, {"dimension 2 has rows of 1 and of 2"});
}

TEST(Making, MemoryOfTheCallerIsBorrowed) {
  std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const Tensor rows = from_span(numbers, {2, 3});
  EXPECT_EQ(rows.data<float>(), numbers.data());
  numbers[4] = 50;
  EXPECT_EQ(rows(1, 1).item(), 50);
  rows(0, 0) = 10;
  EXPECT_EQ(numbers[0], 10);
  const Tensor every_other = from_span(numbers, {3}, {2});
  EXPECT_EQ(every_other.to_vector<float>(), (std::vector<float>{10, 3, 50}));
  std::array<double, 4> four{1, 2, 3, 4};
  EXPECT_EQ(from_span(four, {2, 2}).dtype(), DType::f64);
  int integers[] = {1, 2};
  EXPECT_EQ(from_span(integers, {2}).dtype(), DType::i32);
  EXPECT_EQ(from_span(std::span(numbers.data() + 1, 2), {2}).to_vector<float>(),
            (std::vector<float>{2, 3}));
}

TEST(Making, ConstMemoryIsReadOnly) {
  const std::vector<float> numbers{1, 2};
  const Tensor x = from_span(numbers, {2});
  EXPECT_EQ((x + 1).to_vector<float>(), (std::vector<float>{2, 3}));
  expect_error([&] { x.fill(0); }, ErrorKind::value, {"read-only"});
}

TEST(Making, AnOwnerLivesAsLongAsATensor) {
  auto numbers = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  const std::weak_ptr<std::vector<float>> watched = numbers;
  Tensor column;
  {
    const Tensor x = from_span(std::span(*numbers), {2, 2}, numbers);
    numbers.reset();
    column = x(every, 1);
  }
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(column.to_vector<float>(), (std::vector<float>{2, 4}));
  column = Tensor();
  EXPECT_TRUE(watched.expired());
}

TEST(Making, SpansThatAreTooShort) {
  std::vector<float> numbers(6);
  expect_error([&] { from_span(numbers, {2, 4}); }, ErrorKind::shape, {"(2, 4)"});
  expect_error([&] { from_span(numbers, {2, 3}, {4, 1}); }, ErrorKind::shape, {"(4, 1)"});
  expect_error(
      [&] {
        from_span(numbers, {2, 3}, {-3, 1});
      },
      ErrorKind::shape,
      {"shape (2, 3), strides (-3, 1) and offset 0",
       "24 bytes, 6 elements of f32: it reaches from -3 to 2", "give an offset of 3 or more"});
  expect_error(
      [&] {
        from_span(numbers, {2, 3}, {-3, 1}, 4);
      },
      ErrorKind::shape, {"strides (-3, 1) and offset 4", "it reaches from 1 to 6"});
  EXPECT_EQ(from_span(std::span<float>(), {0, 3}).numel(), 0);
}

TEST(Making, ColumnByColumn) {
  const std::vector<double> columns{1, 4, 2, 5, 3, 6};  // [[1, 2, 3], [4, 5, 6]] in Fortran
  const Tensor x = from_vector(columns, {2, 3}, Order::column_major);
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.to_vector<double>(Order::column_major), columns);
  const Tensor lying = from_span(columns, {2, 3}, contiguous_strides({2, 3}, Order::column_major));
  EXPECT_EQ(lying.strides(), (Strides{1, 2}));
  EXPECT_EQ(lying.to_vector<double>(), x.to_vector<double>());
  EXPECT_EQ(lying.to_vector<double>(Order::column_major), columns);
  const Tensor cube = arange(24).view({2, 3, 4});
  const auto of_fortran = cube.to_vector<std::int64_t>(Order::column_major);
  EXPECT_EQ(of_fortran[1], 12) << "the first axis is the closest";
  EXPECT_EQ(from_vector(of_fortran, {2, 3, 4}, Order::column_major).to_vector<std::int64_t>(),
            cube.to_vector<std::int64_t>());
  EXPECT_EQ(contiguous_strides({2, 3, 4}, Order::column_major), (Strides{1, 2, 6}));
}

TEST(Making, ElementsAndSlicesByPosition) {
  const Tensor x = arange(12).view({3, 4});
  EXPECT_EQ(x(1, 2).item<std::int64_t>(), 6);
  EXPECT_EQ(x(-1, -1).item<std::int64_t>(), 11);
  EXPECT_EQ(x(1).to_vector<std::int64_t>(), (Integers{4, 5, 6, 7}));
  EXPECT_EQ(x(every, 1).to_vector<std::int64_t>(), (Integers{1, 5, 9}));
  EXPECT_EQ(x(slice(1, 3), slice(0, 4, 2)).to_vector<std::int64_t>(), (Integers{4, 6, 8, 10}));
  EXPECT_TRUE(x(1, every).same_storage(x));
  x(1, 2) = -1;
  EXPECT_EQ(x[1][2].item<std::int64_t>(), -1);
  x(0) = 7;
  EXPECT_EQ(x(0).to_vector<std::int64_t>(), (Integers{7, 7, 7, 7}));
  expect_error([&] { x(3, 0); }, ErrorKind::shape, {"3"});
#if defined(__cpp_multidimensional_subscript)
  EXPECT_EQ((x[2, 3].item<std::int64_t>()), 11);
  EXPECT_EQ((x[every, 3].to_vector<std::int64_t>()), (Integers{7, 7, 11}));
#endif
}

TEST(Making, PackTakesTensorsInBraces) {
  const Tensor a = ones({2, 3}), b = zeros({2, 2, 2});
  const Packed packed = pack({a, b}, "b *");
  EXPECT_EQ(packed.tensor.shape(), (Shape{2, 7}));
  const std::vector<Tensor> parts = unpack(packed.tensor, {{3}, {2, 2}}, "b *");
  EXPECT_EQ(parts[1].shape(), (Shape{2, 2, 2}));
}

}  // namespace
}  // namespace ein
