// `*batch`: any number of axes by one name.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include "support/expect_error.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace literals;

using test::expect_error;
using test::get_values;

/// What `text` says with n names in the place of `*m`.
std::string spread(const std::string& text, std::size_t n) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) != "*m") {
      result += text[i++];
      continue;
    }
    for (std::size_t k = 0; k < n; ++k) result += (k ? " m" : "m") + std::to_string(k);
    i += 2;
  }
  return result;
}

TEST(ManyAxes, AreAsManyNames) {
  const struct {
    Operation op;
    std::string text;
    std::vector<std::string> sides;
  } calls[] = {
      {Operation::einsum, "*m i k, *m k j -> *m i j", {"*mik", "*mkj"}},
      {Operation::einsum, "i *m, *m j -> j i", {"i*m", "*mj"}},
      {Operation::einsum, "i *m j -> j *m i", {"i*mj"}},
      {Operation::einsum, "*m, *m -> *m", {"*m", "*m"}},
      {Operation::einsum, "i *m, k *m -> (i k) (*m)", {"i*m", "k*m"}},
      {Operation::einsum, "... i *m, *m -> ... i", {"kji*m", "*m"}},
      {Operation::rearrange, "i *m k -> (*m) k i", {"i*mk"}},
      {Operation::rearrange, "i *m, k *m -> (k + i) *m", {"i*m", "k*m"}},
      {Operation::reduce, "i *m k -> k *m", {"i*mk"}},
      {Operation::reduce, "i *m k -> i", {"i*mk"}},
  };
  test::for_seeds(120, [&](unsigned seed) {
    std::mt19937 random(seed);
    const auto& call = calls[random() % std::size(calls)];
    const std::size_t n = random() % 4;
    std::vector<std::int64_t> many;
    for (std::size_t k = 0; k < n; ++k) many.push_back(static_cast<std::int64_t>(1 + random() % 3));
    const std::int64_t sizes[] = {2, 3, 4};  // of i, j, k
    std::vector<Tensor> operands;
    for (const std::string& side : call.sides) {
      Shape shape;
      for (std::size_t c = 0; c < side.size(); ++c) {
        if (side[c] == '*') {
          for (const std::int64_t size : many) shape.push_back(size);
          ++c;
        } else {
          shape.push_back(sizes[side[c] - 'i']);
        }
      }
      operands.push_back(randn(shape));
      operands.back().requires_grad(true);
    }
    const auto run = [&](const std::string& text) {
      std::vector<const Tensor*> all;
      for (const Tensor& operand : operands) all.push_back(&operand);
      return detail::run_one({call.op, detail::PatternArgument(text), all, {}});
    };
    SCOPED_TRACE(call.text + " with " + std::to_string(n));
    const Tensor made = run(call.text), wanted = run(spread(call.text, n));
    EXPECT_EQ(made.shape(), wanted.shape());
    EXPECT_EQ(get_values(made), get_values(wanted));
    const Tensor seeds = randn(made.shape());
    const auto loss = [&](const Tensor& x) { return reduce(x * seeds, "... ->", "sum"); };
    const auto a = gradients(loss(made), operands), b = gradients(loss(wanted), operands);
    for (std::size_t k = 0; k < operands.size(); ++k)
      EXPECT_EQ(get_values(a[k]), get_values(b[k])) << "gradient of operand " << k + 1;
  });
}

TEST(ManyAxes, SeveralNamesWhereTheirNumbersFollow) {
  const Tensor x = randn({2, 3, 4, 5}), a = randn({2, 3});
  EXPECT_EQ(einsum(x, a, "*a m *b, *a -> *b m").shape(), (Shape{5, 4}));
  EXPECT_EQ(einsum(a, x, a, "*a, *a *b, *a -> *b").shape(), (Shape{4, 5}));
  expect_error([&] { einsum(x, "*a m *b -> *b m *a"); }, ErrorKind::inference,
               {"how many axes '*a' stands for cannot be found", "operand 1: (2, 3, 4, 5)"});
  expect_error([&] { einsum(x, "... *a -> *a ..."); }, ErrorKind::inference,
               {"how many axes '*a' stands for"});
}

TEST(ManyAxes, AreTheSameInEveryOperand) {
  const Tensor x = randn({2, 3, 4}), y = randn({1, 3, 4}), z = randn({3, 4});
  expect_error(
      [&] { einsum(x, y, "*b c, *b c -> *b"); }, ErrorKind::size,
      {"axis 'b₁' has two sizes: 2 in operand 1, 1 in operand 2", "b₁ b₂ c, b₁ b₂ c -> b₁ b₂"});
  expect_error([&] { einsum(x, z, "*b c, *b c -> *b"); }, ErrorKind::rank,
               {"operand 2 has 2 axes, the pattern wants 3"});
}

TEST(ManyAxes, OfOtherOperations) {
  const Tensor x = randn({2, 3, 4});
  EXPECT_EQ(get_values(softmax(x, "*b [c]")), get_values(softmax(x, "... [c]")));
  EXPECT_EQ(get_values(softmax(x, "b [*c]")), get_values(softmax(x, "b [c d]")));
  EXPECT_EQ(get_values(repeat(x, "*b c -> *b 2 c")), get_values(repeat(x, "a b c -> a b 2 c")));
  EXPECT_EQ(get_values(map(x, randn({2, 3}) * 0 + 1, "*b c, *b -> c *b", fn::mul)),
            get_values(rearrange(x, "a b c -> c a b")));
  const Tensor table = randn({5, 2}), positions = tensor<std::int64_t>({4, 0, 2});
  EXPECT_EQ(get_values(gather(table, positions, "[v] d, *n -> *n d")),
            get_values(gather(table, positions, "[v] d, n -> n d")));
  EXPECT_EQ(parse_shape(x, "*b c")["b₂"], 3);
  const Mesh mesh({{"data", 2}});
  EXPECT_EQ(placement(place(x, mesh, "*b c@data")), "i0 i1 i2@data");
  expect_error(
      [&] {
        (void)pack(std::vector{x, x}, runtime("*a *"));
      },
      ErrorKind::pattern, {"pack has '*' alone for many axes"});
}

TEST(ManyAxes, Compile) {
  auto f = compile(
      [](const Tensor& x, const Tensor& w) { return einsum(x, w, "*b i, i o -> *b o") * 2; });
  const Tensor w = randn({3, 4});
  for (const Shape& shape : {Shape{3}, Shape{2, 3}, Shape{2, 1, 5, 3}}) {
    const Tensor x = randn(shape);
    EXPECT_TRUE(all_close(f(x, w), einsum(x, w, "... i, i o -> ... o") * 2, 1e-5, 1e-5));
  }
}

TEST(ManyAxes, HaveTypes) {
  const Typed<float, "n=2 h s=5 d=3"> x(ones({2, 4, 5, 3}));
  const Typed<float, "d=3 o=6"> w(ones({3, 6}));
  const auto y = einsum(x, w, "*batch d, d o -> *batch o"_p);
  static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, Typed<float, "n=2 h s=5 o=6">>);
  const Typed<float, "*batch d=3"> open(ones({2, 4, 3}));
  const auto z = einsum(open, w, "*b d, d o -> *b o"_p);
  static_assert(std::is_same_v<std::remove_const_t<decltype(z)>, Typed<float, "*batch o=6">>);
}

}  // namespace
}  // namespace ein
