// What operations with axes in brackets say of operands that do not fit. Words about patterns
// alone: diagnostics_test.cpp.
#include <gtest/gtest.h>

#include <ein/call.hpp>
#include <ein/ein.hpp>

namespace ein {
namespace {

using namespace literals;

template <class F>
void expect_error(ErrorKind kind, const std::string& expected, F&& call) {
  try {
    call();
    ADD_FAILURE() << "no Error:" << expected;
  } catch (const Error& error) {
    EXPECT_EQ("\n" + std::string(error.what()), expected);
    EXPECT_EQ(error.kind(), kind) << expected;
  }
}

const Tensor x = zeros({2, 3, 4});

TEST(NamedDiagnosticsTest, Shapes) {
  expect_error(ErrorKind::rank, R"(
softmax: operand 1 has 3 axes, the pattern wants 2
  b [k]
  ^  ^
  operand 1: (2, 3, 4))",
               [] { softmax(x, "b [k]"); });
  expect_error(ErrorKind::size, R"(
softmax: anonymous axis '5' is 4 in operand 1
  b s [5]
       ^
       4
  operand 1: (2, 3, 4))",
               [] { softmax(x, "b s [5]"); });
  expect_error(ErrorKind::size, R"(
gather: axis 'b' has two sizes: 2 in operand 1, 3 in operand 2
  b s [v], b s -> b s
  ^        ^
  2        3
  operand 1: (2, 3, 4)   operand 2: (3, 3))",
               [] {
                 gather(x, zeros({3, 3}, DType::i64), "b s [v], b s -> b s");
               });
  expect_error(ErrorKind::shape, R"(
layer_norm: weight has shape (3,), the axes in brackets have (4,)
  b s [c]
       ^
       4
  operand 1: (2, 3, 4)   operand 2: (3,)   operand 3: (4,))",
               [] { layer_norm(x, ones({3}), zeros({4}), "b s [c]"); });
  expect_error(ErrorKind::shape, R"(
layer_norm: bias has shape (4, 3), the axes in brackets have (3, 4)
  b [s c]
     ^ ^
     3 4
  operand 1: (2, 3, 4)   operand 2: (3, 4)   operand 3: (4, 3))",
               [] {
                 layer_norm(x, ones({3, 4}), zeros({4, 3}), "b [s c]");
               });
  expect_error(ErrorKind::shape, R"(
rms_norm: weight has shape (2,), the axes in brackets have (3, 4)
  b [...]
     ^^^
  operand 1: (2, 3, 4)   operand 2: (2,))",
               [] { rms_norm(x, ones({2}), "b [...]"); });
  expect_error(ErrorKind::shape, "\nmse_loss: shapes (2, 3, 4) and (2, 3) differ", [] {
    mse_loss(x, zeros({2, 3}));
  });
}

TEST(NamedDiagnosticsTest, Dtypes) {
  const Tensor integers = zeros({2, 3}, DType::i64);
  expect_error(ErrorKind::dtype, R"(
softmax: a floating-point dtype is wanted, operand 1 holds i64
  b [s]
  operand 1: (2, 3)
  help: cast first, x.to(ein::DType::f32))",
               [&] { softmax(integers, "b [s]"); });
  expect_error(ErrorKind::dtype, R"(
gather: positions are integers, operand 2 holds f32
  b s [v], b s -> b s
           ^^^
           f32
  operand 1: (2, 3, 4)   operand 2: (2, 3))",
               [] {
                 gather(x, zeros({2, 3}), "b s [v], b s -> b s");
               });
  expect_error(ErrorKind::dtype, R"(
rms_norm: weight is f64, operand 1 is f32
  b s [c]
  operand 1: (2, 3, 4)   operand 2: (4,)
  help: cast one with .to(dtype))",
               [] { rms_norm(x, ones({4}, DType::f64), "b s [c]"); });
  for (DType dtype : {DType::boolean, DType::f16}) {
    EXPECT_THROW(cross_entropy(x, zeros({2, 3}, dtype), "b s [v], b s"), Error);
    EXPECT_THROW(one_hot(zeros({2}, dtype), "b -> b [3]"), Error);
    EXPECT_THROW(scatter_add(zeros({2}), zeros({2}, dtype), "b, b -> [3]"), Error);
  }
  EXPECT_THROW(cross_entropy(integers, zeros({2}, DType::i64), "b [v], b"), Error);
  EXPECT_THROW(layer_norm(integers, "b [s]"), Error);
  EXPECT_THROW(rms_norm(integers, "b [s]"), Error);
}

TEST(NamedDiagnosticsTest, Values) {
  expect_error(ErrorKind::value, R"(
top_k: there are no 5 greatest of 4 elements
  b s [v]
       ^
       4
  operand 1: (2, 3, 4))",
               [] { top_k(x, "b s [v]", 5); });
  EXPECT_THROW(top_k(x, "b s [v]", -1), Error);
  expect_error(ErrorKind::value, "\nlayer_norm: eps is -1, it must not be negative",
               [] { layer_norm(x, "b s [c]", -1); });
  EXPECT_THROW(rms_norm(x, "b s [c]", -1), Error);
  expect_error(ErrorKind::reduction, R"(
argmax: there is no position among no elements
  b [v]
     ^
     0
  operand 1: (2, 0))",
               [] {
                 argmax(zeros({2, 0}), "b [v]");
               });
  expect_error(ErrorKind::axis_argument, R"(
one_hot: axis 'v' is given the size -1, which is negative
  b -> b [v]
          ^
         -1
  operand 1: (2,))",
               [] { one_hot(zeros({2}, DType::i64), "b -> b [v]", "v"_a = -1); });
  expect_error(ErrorKind::overflow, R"(
one_hot: a tensor of shape (2, 9223372036854775807) needs more than 2^63 - 1 bytes
  b -> b [v]
  operand 1: (2,))",
               [] { one_hot(zeros({2}, DType::i64), "b -> b [v]", "v"_a = INT64_MAX); });
}

TEST(NamedDiagnosticsTest, NumberOfOperands) {
  expect_error(ErrorKind::arity, R"(
gather: gather takes 2 operands, the call has 1
  [v] d, b -> b d)",
               [] {
                 graph_of(Operation::gather, runtime("[v] d, b -> b d"), {{3, 4}});
               });
  expect_error(ErrorKind::arity, R"(
layer_norm: layer_norm takes 1 or 3 operands, the call has 2
  b [c])",
               [] {
                 graph_of(Operation::layer_norm, runtime("b [c]"), {{3, 4}, {4}});
               });
  EXPECT_EQ(graph_of(Operation::softmax, runtime("b [c]"), {{3, 4}}).outputs.size(), 1u);
}

}  // namespace
}  // namespace ein
