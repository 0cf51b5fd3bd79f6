// Results do not depend on where their operands lie in memory, to the bit.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <random>

#include <ein/ein.hpp>
#include "support/seeds.hpp"

namespace ein {
namespace {

using namespace ein::literals;

using Call = std::function<Tensor(const Tensor& x, const Tensor& y)>;  // of "b s c" and "b t c"

const std::vector<std::pair<const char*, Call>>& calls() {
  using X = const Tensor&;
  static const std::vector<std::pair<const char*, Call>> list = {
      {"map", [](X x, X) { return exp(x) * x + 0.5; }},
      {"sum of rows", [](X x, X) { return reduce(x, "b s c -> b s", Reduction::sum); }},
      {"sum of columns", [](X x, X) { return reduce(x, "b s c -> b c", Reduction::sum); }},
      {"sum of columns and rows", [](X x, X) { return reduce(x, "b s c -> s", Reduction::sum); }},
      {"sum", [](X x, X) { return reduce(x, "b s c ->", Reduction::sum); }},
      {"product", [](X x, X) { return reduce(x, "b s c -> b s", Reduction::prod); }},
      {"sum of functions", [](X x, X) { return reduce(exp(x), "b s c -> b s", Reduction::sum); }},
      {"softmax", [](X x, X) { return softmax(x, "b s [c]"); }},
      {"softmax of columns", [](X x, X) { return softmax(x, "b [s] c"); }},
      {"layer norm", [](X x, X) { return layer_norm(x, "b s [c]"); }},
      {"cumulative sum", [](X x, X) { return cumsum(x, "b s [c]"); }},
      {"scores", [](X x, X y) { return einsum(x, y, "b s c, b t c -> b s t"); }},
      {"one product", [](X x, X y) { return einsum(x, y, "b s c, e t c -> b s e t"); }},
      {"product of columns", [](X x, X) { return einsum(x, x, "b s c, b s d -> b c d"); }},
      {"dots", [](X x, X) { return einsum(x, x, "b s c, b s c -> b s"); }},
      {"dots of columns", [](X x, X) { return einsum(x, x, "b s c, b s c -> b c"); }},
      {"one dot", [](X x, X) { return einsum(x, x, "b s c, b s c ->"); }},
      {"rows by a vector",
       [](X x, X y) {
         return einsum(x, y.at({0, 0, every}), "b s c, c -> b s");
       }},
      {"columns by a vector",
       [](X x, X) {
         return einsum(x, x.at({0, every, 0}), "b s c, s -> b c");
       }},
  };
  return list;
}

/// The values of x, `offset` elements behind the beginning of a block of memory.
Tensor at_offset(const Tensor& x, std::int64_t offset) {
  const Tensor place = zeros({offset + x.numel()}, x.dtype()).at({slice(offset)});
  place.copy_from(rearrange(x, "b s c -> (b s c)"));
  return rearrange(place, "(b s c) -> b s c", "b"_a = x.shape()[0], "s"_a = x.shape()[1]);
}

TEST(PlaceOfOperands, ChangesNoBit) {
  test::for_seeds(30, [](unsigned seed) {
    std::mt19937 random(seed);
    manual_seed(seed);
    const auto size = [&] {
      const std::int64_t most[] = {4, 20, 70, 300};
      return std::int64_t{1} + random() % most[random() % std::size(most)];
    };
    const std::int64_t b = 1 + random() % 4, s = size(), t = size(), c = size();
    const DType dtypes[] = {DType::f32, DType::f32, DType::f64, DType::bf16};
    const DType dtype = dtypes[random() % std::size(dtypes)];
    const Tensor x = randn({b, s, c}).to(dtype), y = randn({b, t, c}).to(dtype);
    const std::int64_t offset_x = 1 + random() % 31, offset_y = 1 + random() % 31;
    const Tensor moved_x = at_offset(x, offset_x), moved_y = at_offset(y, offset_y);
    for (const auto& [name, call] : calls())
      EXPECT_EQ(call(moved_x, moved_y).to_vector<double>(), call(x, y).to_vector<double>())
          << name << " of " << x.shape().to_string() << ", " << y.shape().to_string() << " of "
          << ein::name(dtype) << " moved by " << offset_x << ", " << offset_y << " elements";
  });
}

}  // namespace
}  // namespace ein
