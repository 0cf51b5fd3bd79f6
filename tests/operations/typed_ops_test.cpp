// Operations on typed tensors: the types of their results, and that operands meet by name. What
// they compute is written out beside them for plain tensors, with rearrange.
#include <ein/typed_ops.hpp>

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::get_values;

template <class Expected, class Result>
const Result& is(const Result& result) {
  static_assert(std::is_same_v<Result, Expected>);
  return result;
}
void expect_equal(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.shape(), want.shape());
  EXPECT_EQ(got.dtype(), want.dtype());
  EXPECT_EQ(get_values(got), get_values(want));
}
Tensor plain(const Tensor& x) { return x; }

class TypedOps : public testing::Test {
 protected:
  // Sizes are equal, so that a wrong order of axes is no error but wrong numbers.
  Float<"b s c"> x = randn({3, 3, 3});
  Float<"s b"> turned = randn({3, 3});
  Float<"c"> bias = randn({3});
  Float<"b"> each = randn({3});
  Long<"b s"> ids = arange(9).view({3, 3});
  Bool<"c s"> mask = randn({3, 3}) > 0.0;
};

TEST_F(TypedOps, TwoOperandsMeetByName) {
  expect_equal(is<Float<"b s c">>(x + bias), plain(x) + plain(bias));
  expect_equal(is<Float<"b s c">>(bias - x), plain(bias) - plain(x));
  expect_equal(is<Float<"b s c">>(x * turned), plain(x) * rearrange(turned, "s b -> b s 1"));
  expect_equal(is<Float<"b s c">>(each / x), rearrange(each, "b -> b 1 1") / plain(x));
  expect_equal(is<Float<"s b">>(turned - ids), plain(turned) - rearrange(ids, "b s -> s b"));
  expect_equal(is<Float<"b s">>(ids - turned), plain(ids) - rearrange(turned, "s b -> b s"));
  expect_equal(is<Bool<"b s c">>(x < turned), plain(x) < rearrange(turned, "s b -> b s 1"));
  expect_equal(is<Float<"b s c">>(maximum(x, turned)),
               maximum(x, rearrange(turned, "s b -> b s 1")));
  const Float<"b s 1"> one = reduce(x, "b s c -> b s 1", "max");
  expect_equal(is<Float<"b s c">>(x - one), plain(x) - plain(one));
  const Float<"b=3 s c"> sized = x;
  is<Float<"b=3 s c">>(x + sized);
  is<Float<"b=3 s c">>(sized + bias);
}

TEST_F(TypedOps, OpenTypes) {
  const Float<"... c"> open = x;
  expect_equal(is<Float<"... c">>(open + bias), plain(x) + plain(bias));
  const Float<"b ... c"> around = x;
  const Float<"c b"> other = randn({3, 3});
  expect_equal(is<Float<"b ... c">>(around * other), plain(x) * rearrange(other, "c b -> b 1 c"));
  const Float<"*batch c"> batch = x, same = x;
  expect_equal(is<Float<"*batch c">>(batch + same), plain(x) + plain(x));
  const Float<"*batch c"> fewer = turned;
  expect_error([&] { batch + fewer; }, ErrorKind::size, {"the number of axes under '...'"});
}

TEST_F(TypedOps, NumbersKeepTheType) {
  expect_equal(is<Float<"b s c">>(x * 2), plain(x) * 2);
  expect_equal(is<Float<"b s c">>(1.5 - x), 1.5 - plain(x));
  expect_equal(is<Float<"b s c">>(x / x.shape()[0]), plain(x) / 3);
  expect_equal(is<Long<"b s">>(ids + 1), plain(ids) + 1);
  expect_equal(is<Float<"b s">>(ids * 0.5), plain(ids) * 0.5);
  expect_equal(is<Float<"b s">>(ids / 2), plain(ids) / 2);
  expect_equal(is<Long<"c s">>(mask + 1), plain(mask) + 1);
  expect_equal(is<Bool<"b s">>(ids >= 4), plain(ids) >= 4);
  is<Tensor>(x + plain(x));
  is<Tensor>(plain(x) * x);
}

TEST_F(TypedOps, DtypesPromote) {
  const Half<"b s c"> half = x.to<f16>();
  is<Float<"b s c">>(half + x);
  is<Half<"b s c">>(half * ids);
  const Double<"c"> wide = bias.to<double>();
  is<Double<"b s c">>(x + wide);
  const Int<"b s"> narrow = ids.to<std::int32_t>();
  is<Long<"b s">>(narrow + ids);
  is<Float<"b s">>(narrow / ids);
}

TEST_F(TypedOps, OfOneOperand) {
  expect_equal(is<Float<"b s c">>(exp(x)), exp(plain(x)));
  expect_equal(is<Float<"b s c">>(-x), -plain(x));
  expect_equal(is<Float<"b s">>(sqrt(ids)), sqrt(plain(ids)));
  expect_equal(is<Long<"b s">>(abs(ids)), abs(plain(ids)));
  expect_equal(is<Bool<"b s c">>(isnan(x)), isnan(plain(x)));
  expect_equal(is<Bool<"c s">>(logical_not(mask)), logical_not(plain(mask)));
  expect_equal(is<Float<"b s c">>(clamp(x, -1, 0.5)), clamp(plain(x), -1, 0.5));
  is<Float<"b s c">>(x.detach());
  is<Float<"b s c">>(x.clone());
}

TEST_F(TypedOps, Choices) {
  const Tensor test = rearrange(mask, "c s -> 1 s c");
  expect_equal(is<Float<"b s c">>(where(mask, x, bias)), where(test, plain(x), plain(bias)));
  expect_equal(is<Float<"b s c">>(where(mask, x, turned)),
               where(test, x, rearrange(turned, "s b -> b s 1")));
  expect_equal(is<Float<"b s c">>(where(mask, bias, x)), where(test, plain(bias), plain(x)));
  expect_equal(is<Float<"b s c">>(where(x > 0, turned, 0.0)),
               where(plain(x) > 0, rearrange(turned, "s b -> b s 1"), 0.0));
  expect_equal(is<Float<"c s">>(where(mask, -1.0, bias)),
               where(plain(mask), -1.0, rearrange(bias, "c -> c 1")));
}

TEST_F(TypedOps, AxesInBrackets) {
  expect_equal(is<Float<"b s c">>(softmax(x, "b s [c]")), softmax(plain(x), "b s [c]"));
  expect_equal(is<Float<"b s c">>(log_softmax(x, "i [j] k")), log_softmax(plain(x), "i [j] k"));
  expect_equal(is<Float<"b s c">>(layer_norm(x, "b s [c]")), layer_norm(plain(x), "b s [c]"));
  expect_equal(is<Float<"b s c">>(layer_norm(x, bias, bias, "b s [c]")),
               layer_norm(plain(x), bias, bias, "b s [c]"));
  expect_equal(is<Float<"b s c">>(rms_norm(x, bias, "b s [c]")),
               rms_norm(plain(x), bias, "b s [c]"));
  expect_equal(is<Long<"b s">>(cumsum(ids, "b [s]")), cumsum(plain(ids), "b [s]"));
  expect_equal(is<Long<"c s">>(cumsum(mask, "c [s]")), cumsum(plain(mask), "c [s]"));
  expect_equal(is<Int<"b s">>(cumprod(ids, "b [s]", as<DType::i32>())),
               cumprod(plain(ids), "b [s]", as(DType::i32)));
  expect_equal(is<Float<"b s c">>(flip(x, "[b] s [c]")), flip(plain(x), "[b] s [c]"));
  expect_equal(is<Float<"b s c">>(tril(x, "b [s c]", 1, 0.5)), tril(plain(x), "b [s c]", 1, 0.5));
  const auto sorted = sort(x, "b [s] c", true);
  expect_equal(is<Float<"b s c">>(sorted.values), sort(plain(x), "b [s] c", true).values);
  expect_equal(is<Long<"b s c">>(sorted.positions), sort(plain(x), "b [s] c", true).positions);
}

TEST_F(TypedOps, GradientsFlow) {
  const auto loss = [&](const auto& a, const auto& b) { return exp(a * b) - a; };
  x.requires_grad(true);
  turned.requires_grad(true);
  reduce(loss(x, turned), "b s c ->", "sum").backward();
  const Tensor got_x = is<Float<"b s c">>(x.grad()), got_turned = turned.grad();
  x.zero_grad();
  turned.zero_grad();
  reduce(loss(plain(x), rearrange(turned, "s b -> b s 1")), "b s c ->", "sum").backward();
  expect_equal(got_x, plain(x).grad());
  expect_equal(got_turned, plain(turned).grad());
}

TEST_F(TypedOps, InACompiledFunction) {
  const auto f = [](const Tensor& a, const Tensor& b) -> Tensor {
    return softmax(Float<"b s c">(a) * Float<"s b">(b), "b s [c]");
  };
  expect_equal(compile(f)(x, turned), f(x, turned));
}

TEST_F(TypedOps, SizesAreComparedWhenACallRuns) {
  const Float<"c"> longer = randn({4});
  expect_error([&] { x + longer; }, ErrorKind::size,
               {"operator+: axis 'c' has two sizes: 3 in operand 1, 4 in operand 2\n"
                "  operand 1: \"b s c\" (3, 3, 3)\n"
                "  operand 2: \"c\" (4,)"});
  // A size that happens to be 1 does not stretch: only what is written 1 does.
  const Float<"c"> single = randn({1});
  expect_error([&] { x* single; }, ErrorKind::size, {"axis 'c' has two sizes"});
  expect_error([&] { where(mask, x, single); }, ErrorKind::size, {"axis 'c' has two sizes"});
}

TEST_F(TypedOps, AScopeBindsTheArgumentsOfACall) {
  const Float<"b s"> q = randn({2, 3}), k = randn({2, 4});
  const auto attend = [](const Float<"b s">& a, const Float<"b s">& b) {
    const Scope names(a, b);
    return a.rank() + b.rank();
  };
  EXPECT_EQ(attend(q, q), 4u);
  expect_error([&] { attend(q, k); }, ErrorKind::size, {"s"});
}

}  // namespace
}  // namespace ein
