// Sizes of axes that a pattern says: "h=4".
#include <gtest/gtest.h>

#include <type_traits>

#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {

using namespace literals;

namespace {

using test::expect_error;
using test::get_values;

TEST(SizesInPatterns, TellWhatGroupsAreMadeOf) {
  const Tensor x = arange(24).view({2, 12});
  EXPECT_EQ(get_values(rearrange(x, "b (h=4 d) -> h b d")),
            get_values(rearrange(x, "b (h d) -> h b d", "h"_a = 4)));
  EXPECT_EQ(get_values(rearrange(x, runtime("b (h=4 d) -> h b d"))),
            get_values(rearrange(x, "b (h d) -> h b d", "h"_a = 4)));
  EXPECT_EQ(get_values(repeat(x, "b c -> b k=2 c")), get_values(repeat(x, "b c -> b 2 c")));
  EXPECT_EQ(get_values(reduce(x, "b (h=2 w=6) -> b w", "sum")),
            get_values(reduce(x, "b (h w) -> b w", "sum", "h"_a = 2)));
  EXPECT_EQ(get_values(one_hot(arange(2), "b -> b [v=3]")),
            get_values(one_hot(arange(2), "b -> b [v]", "v"_a = 3)));
  EXPECT_EQ(get_values(softmax(x.to(DType::f32), "b=2 [c=12]")),
            get_values(softmax(x.to(DType::f32), "b [c]")));
  // The same size twice, or in the call as well.
  EXPECT_EQ(rearrange(x, "b=2 (h=4 d) -> b=2 h d", "h"_a = 4).shape(), (Shape{2, 4, 3}));
}

TEST(SizesInPatterns, AreInTheTypesOfResults) {
  const Float<"b c"> x = ones({2, 12});
  const auto y = rearrange(x, "b (h=4 d) -> b h d"_p);
  static_assert(std::is_same_v<decltype(y), const Float<"b h=4 d">>);
  const auto z = reduce<"b c=12 -> c b">(x, "sum");
  static_assert(std::is_same_v<decltype(z), const Float<"c=12 b">>);
}

TEST(SizesInPatterns, AreChecked) {
  const Tensor x = ones({2, 12});
  expect_error([&] { reduce(x, "b c=10 -> b", "sum"); }, ErrorKind::size,
               {"reduce: axis 'c' has two sizes: 10 in the pattern, 12 in operand 1"});
  expect_error([&] { rearrange(x, "b (h=5 d) -> b h d"); }, ErrorKind::divisibility,
               {"cannot be split: 5 does not divide it"});
  expect_error([&] { rearrange(x, runtime("b (h=4 d) -> b h d"), "h"_a = 3); },
               ErrorKind::axis_argument,
               {"axis 'h' has two sizes: 4 in the pattern, 3 in the call"});
  expect_error([&] { einsum(x, x, runtime("b c=12, b c=13 -> b")); }, ErrorKind::size,
               {"has two sizes: the pattern says one"});
  expect_error([&] { reduce(x, runtime("b c= -> b"), "sum"); }, ErrorKind::syntax,
               {"the size of an axis is a number"});
}

}  // namespace
}  // namespace ein
