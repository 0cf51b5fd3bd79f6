// flip, roll and pad against plain loops.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16,   DType::i64,
                            DType::i32, DType::i8,  DType::u8,  DType::boolean};

TEST(ShiftTest, KnownAnswers) {
  const Tensor x = make_tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(get_values(flip(x, "a [b]")), (Values{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(get_values(flip(x, "[a] b")), (Values{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(get_values(flip(x, "[...]")), (Values{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(get_values(roll(x, "a [b]", 1)), (Values{3, 1, 2, 6, 4, 5}));
  EXPECT_EQ(get_values(roll(x, "a [b]", -4)), (Values{2, 3, 1, 5, 6, 4}));
  EXPECT_EQ(get_values(roll(x, "a [b]", INT64_MIN)), get_values(roll(x, "a [b]", -2)));
  EXPECT_EQ(get_values(roll(x, "[a b]", {1, 2})), (Values{5, 6, 4, 2, 3, 1}));
  EXPECT_EQ(get_values(roll(x, "[a b]", 1)), (Values{6, 4, 5, 3, 1, 2}));
  EXPECT_EQ(get_values(pad(x, "a [b]", 1, 2, 9)), (Values{9, 1, 2, 3, 9, 9, 9, 4, 5, 6, 9, 9}));
  EXPECT_EQ(get_values(pad(x, "[a b]", {1, 0}, {0, 1})),
            (Values{0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0}));
  EXPECT_EQ(get_values(pad(x, "a [b]", 2, 1, PadMode::reflect)),
            (Values{3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5}));
  EXPECT_EQ(get_values(pad(x, "a [b]", 2, 1, PadMode::replicate)),
            (Values{1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 6, 6}));
  EXPECT_EQ(get_values(pad(x, "a [b]", 2, 1, PadMode::wrap)),
            (Values{2, 3, 1, 2, 3, 1, 5, 6, 4, 5, 6, 4}));
}

// The elements of `x` at f(position along each axis), or `otherwise` where that is below 0.
template <class F>
Values looked_up(const Values& x, const Shape& from, const Shape& to, F&& f, double otherwise) {
  Values result;
  for (std::int64_t i = 0; i < numel(to); ++i) {
    std::int64_t rest = i, place = 0, step = 1;
    bool is_inside = true;
    for (std::size_t d = to.rank(); d-- > 0;) {
      const std::int64_t at = f(d, rest % to[d]);
      rest /= to[d];
      is_inside &= at >= 0;
      place += at * step;
      step *= from[d];
    }
    result.push_back(is_inside ? x[static_cast<std::size_t>(place)] : otherwise);
  }
  return result;
}

TEST(ShiftTest, AgreesWithPlainLoops) {
  const unsigned seed = 20261;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 600; ++round) {
    const auto rank = static_cast<std::size_t>(1 + below(4));
    Shape shape, larger;
    std::string pattern;
    std::vector<bool> marked(rank, false);
    std::vector<Size> shifts, before, after;
    std::vector<std::int64_t> shift(rank, 0), begins(rank, 0);
    marked[static_cast<std::size_t>(below(static_cast<std::int64_t>(rank)))] = true;
    const bool is_large = round % 20 == 0;
    for (std::size_t d = 0; d < rank; ++d) {
      shape.push_back(is_large && d + 1 == rank ? 1 + below(3000)
                      : below(12) == 0          ? 0
                                                : 1 + below(8));
      if (below(3) == 0) marked[d] = true;
      larger.push_back(shape[d]);
      const std::string name(1, "abcd"[d]);
      pattern += marked[d] ? " [" + name + "]" : " " + name;
      if (!marked[d]) continue;
      shift[d] = below(40) - 20;
      begins[d] = below(4);
      shifts.push_back(shift[d]);
      before.push_back(begins[d]);
      after.push_back(below(4));
      larger[d] += before.back() + after.back();
    }
    const DType dtype = dtypes[below(std::size(dtypes))];
    const Tensor x = test::scattered_tensor(shape, dtype, std::vector<bool>(rank, false), random);
    Values in(static_cast<std::size_t>(numel(shape)));
    for (double& value : in) value = test::stored(static_cast<double>(below(100)), dtype);
    test::set_values(x, in);
    SCOPED_TRACE(pattern + " " + shape.to_string() + " " + std::string(name(dtype)));
    const auto text = runtime(pattern);

    const auto expect = [&](const Tensor& result, const Shape& to, const Values& values) {
      ASSERT_EQ(result.shape(), to);
      ASSERT_EQ(result.dtype(), dtype);
      ASSERT_EQ(get_values(result), values);
      ASSERT_TRUE(numel(to) == 0 || !result.same_storage(x));
    };
    const Values flipped = looked_up(
        in, shape, shape,
        [&](std::size_t d, std::int64_t i) -> std::int64_t {
          return marked[d] ? shape[d] - 1 - i : Size(i);
        },
        0);
    expect(flip(x, text), shape, flipped);
    const Values rolled = looked_up(
        in, shape, shape,
        [&](std::size_t d, std::int64_t i) -> std::int64_t {
          const std::int64_t n = shape[d];
          return ((i - shift[d]) % n + n) % n;
        },
        0);
    expect(roll(x, text, shifts), shape, rolled);
    const Values padded = looked_up(
        in, shape, larger,
        [&](std::size_t d, std::int64_t i) -> std::int64_t {
          const std::int64_t at = i - begins[d];
          return at < shape[d] ? at : -1;
        },
        1);
    expect(pad(x, text, before, after, 1), larger, padded);
    // Elements of x, as far as it has them.
    const auto with = [&](PadMode mode, auto&& f) {
      try {
        const Tensor result = pad(x, text, before, after, mode);
        expect(result, larger,
               looked_up(
                   in, shape, larger,
                   [&](std::size_t d, std::int64_t i) -> std::int64_t {
                     const std::int64_t at = i - begins[d], n = shape[d];
                     return at >= 0 && at < n ? at : f(at, n);
                   },
                   0));
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::value);
      }
    };
    with(PadMode::reflect,
         [](std::int64_t at, std::int64_t n) { return at < 0 ? -at : 2 * (n - 1) - at; });
    with(PadMode::replicate, [](std::int64_t at, std::int64_t n) { return at < 0 ? 0 : n - 1; });
    with(PadMode::wrap, [](std::int64_t at, std::int64_t n) { return at < 0 ? at + n : at - n; });

    auto f = compile([&](const Tensor& t) {
      return std::vector{flip(t, text), roll(t, text, shifts), pad(t, text, before, after, 1),
                         flip(roll(flip(t, text), text, shifts), text)};
    });
    const std::vector<Tensor> compiled = f(x);
    expect(compiled[0], shape, flipped);
    expect(compiled[1], shape, rolled);
    expect(compiled[2], larger, padded);
    expect(compiled[3], shape, get_values(flip(roll(flip(x, text), text, shifts), text)));
  }
}

TEST(ShiftTest, OfAnyLength) {
  int traces = 0;
  const auto call = [](const Tensor& x) {
    return std::vector{flip(x, "a [b]"), roll(x, "[a b]", {1, -2}), pad(x, "a [b]", 2, 1, 9),
                       pad(x, "a [b]", 2, 1, PadMode::reflect)};
  };
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return call(x);
      },
      {"a b"});
  for (const Shape& shape : {Shape{4, 7}, Shape{5, 9}, Shape{8, 40}}) {
    const Tensor x = randn(shape);
    const std::vector<Tensor> found = f(x), expected = call(x);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(found[i].shape(), expected[i].shape());
      ASSERT_EQ(get_values(found[i]), get_values(expected[i]));
    }
  }
  EXPECT_EQ(traces, 1);
}

TEST(ShiftTest, NanAndSignsOfZeroStay) {
  const Tensor x = make_tensor({-0.0, std::nan(""), 1}, {3});
  for (const Tensor& y : {flip(x, "[n]"), roll(x, "[n]", 2)}) {
    const Values values = get_values(y);
    EXPECT_TRUE(std::isnan(values[1]) || std::isnan(values[0]));
  }
  EXPECT_TRUE(std::signbit(get_values(flip(x, "[n]"))[2]));
}

TEST(ShiftTest, Errors) {
  const Tensor x = zeros({2, 3});
  expect_error(
      [&] {
        roll(x, "a [b]", {1, 2});
      },
      ErrorKind::arity,
      {"roll: 2 shifts are given for 1 axis in brackets", "a [b]\n     ^\n     3", "(2, 3)"});
  expect_error(
      [&] {
        pad(x, "[a b]", {1, 2, 3}, 0);
      },
      ErrorKind::arity, {"3 sizes before are given for 2"});
  expect_error([&] { pad(x, "a [b]", -1, 0); }, ErrorKind::value,
               {"pad: an axis of 3 cannot be padded with -1 elements"});
  expect_error([&] { pad(x, "a [b]", 3, 0, PadMode::reflect); }, ErrorKind::value,
               {"pad: an axis of 3 cannot be padded with 3 elements"});
  expect_error([&] { pad(x, "a [b]", 0, 4, PadMode::wrap); }, ErrorKind::value, {"wrap"});
  expect_error([&] { pad(zeros({0}), "[b]", 0, 1, PadMode::replicate); }, ErrorKind::value,
               {"replicate"});
  expect_error([&] { pad(zeros({2}, DType::u8), "[b]", 0, 1, 0.5); }, ErrorKind::dtype,
               {"u8 cannot hold 0.5"});
  expect_error([&] { pad(x, "a [b]", INT64_MAX - 4, INT64_MAX - 4); }, ErrorKind::overflow,
               {"63 bits"});
  expect_error([&] { pad(x, "a [b]", INT64_MAX / 2, 10); }, ErrorKind::overflow, {"bytes"});
  expect_error([&] { flip(x, runtime("a b")); }, ErrorKind::pattern, {"no axis in brackets"});
  expect_error([&] { flip(x, runtime("a [b] c")); }, ErrorKind::rank, {"operand 1 has 2 axes"});
}

// A flip is one copy, and so is a roll: of two pieces along one axis.
TEST(ShiftTest, CostsOnePass) {
  const Tensor x = ones({64, 64});

  const Count twice = 2 * 64 * 64 * 4;
  const auto measured = [&](auto&& f) {
    CostScope scope;
    f();
    return scope.total().bytes();
  };
  EXPECT_EQ(measured([&] { flip(x, "a [b]"); }), twice);
  EXPECT_EQ(measured([&] { roll(x, "[a b]", {3, 5}); }), twice);
}

}  // namespace
}  // namespace ein
