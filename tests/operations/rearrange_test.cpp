// Rearrange and repeat: known answers, and when a result is a view. Random ones: oracle_test.cpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/ein.hpp>
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace ein::literals;
using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

Tensor counting(const Shape& shape, DType dtype = DType::f32) {
  Values values(static_cast<std::size_t>(numel(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return make_tensor(values, shape, dtype);
}

TEST(RearrangeTest, KnownAnswers) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(get_values(rearrange(x, "a b -> b a")), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(get_values(rearrange(x, "a b -> (b a)")), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(rearrange(x, "a b -> (a b)").shape(), Shape{6});
  EXPECT_EQ(rearrange(x, "a b -> 1 b () a").shape(), (Shape{1, 3, 1, 2}));
  const Tensor line = counting({12});
  EXPECT_EQ(get_values(rearrange(line, "(h w) -> w h", "h"_a = 3)),
            (Values{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(rearrange(counting({2, 3, 4, 5}), "b ... c -> c b ...").shape(), (Shape{5, 2, 3, 4}));
  EXPECT_EQ(rearrange(counting({2, 3, 4, 5}), "b ... c -> (b ... c)").shape(), Shape{120});
  // Space to depth.
  const Tensor image = counting({1, 1, 4, 4});
  EXPECT_EQ(
      get_values(rearrange(image, "b c (h h2) (w w2) -> b (c h2 w2) h w", "h2"_a = 2, "w2"_a = 2)),
      (Values{0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15}));
  const std::vector<Tensor> list{counting({2}), counting({2}), counting({2})};
  EXPECT_EQ(get_values(rearrange(list, "n a -> a n")), (Values{0, 0, 0, 1, 1, 1}));
}

struct ViewCase {
  const char* pattern;
  Tensor x;
  bool is_view;
};

TEST(RearrangeTest, IsAViewWheneverStridesCanExpressIt) {
  const Tensor x = counting({4, 6, 5});
  const Tensor transposed = rearrange(x, "a b c -> c b a");
  const Tensor sliced = x.at({slice(0, 4, 2), slice(1, 5), slice(0, 5, 2)});
  const Tensor scalar = counting({});
  const Tensor empty = counting({0, 3});
  const Tensor expanded(x.storage(), DType::f32, {4, 6, 5}, {0, 5, 1});
  const Tensor diagonal(x.storage(), DType::f32, {4, 6}, {1, 1});
  const ViewCase table[] = {
      {"a b c -> a b c", x, true},
      {"a b c -> c a b", x, true},
      {"a b c -> (a b) c", x, true},
      {"a b c -> a (b c)", x, true},
      {"a b c -> (a b c)", x, true},
      {"a b c -> b (a c)", x, false},
      {"a b c -> (b a) c", x, false},
      {"a b c -> (c b a)", x, false},
      {"(a1 a2) b c -> a2 a1 c b", x, true},
      {"(a1 a2) b c -> a2 (a1 c) b", x, false},
      {"(a1 a2) b c -> (a2 a1) b c", x, false},
      {"(a1 a2) b c -> (a1 a2 b) c", x, true},
      {"a (b1 b2) c -> (a b1) (b2 c)", x, true},
      {"a b c -> a 1 b () c 1", x, true},
      {"... c -> c ...", x, true},
      {"... c -> c (...)", x, true},
      {"a b c -> c b a", transposed, true},
      {"c b a -> (a b c)", transposed, true},
      {"c b a -> (c b) a", transposed, false},
      {"a b c -> b a c", sliced, true},
      {"a b c -> (a b) c", sliced, false},
      {"a b c -> a (b c)", sliced, false},
      {"(a1 a2) b c -> a1 a2 b c", sliced, true},
      {"a (b1 b2) c -> b2 c a b1", sliced, true},
      {"-> 1", scalar, true},
      {"->", scalar, true},
      {"a b -> (a b)", empty, true},
      {"a b -> b a", empty, true},
      {"a b c -> (b c) a", expanded, true},
      {"a b c -> (a b) c", expanded, false},
      {"(a1 a2) b c -> a2 b c a1", expanded, true},
      {"a b -> b a", diagonal, true},
      {"a b -> (a b)", diagonal, false},
      {"a (b1 b2) -> (b1 b2) a", diagonal, true},
  };
  for (const ViewCase& c : table) {
    const bool splits_a = std::string(c.pattern).find("a1") != std::string::npos;
    const bool splits_b = std::string(c.pattern).find("b1") != std::string::npos;
    const auto pattern = runtime(c.pattern);
    const Tensor y = splits_a   ? rearrange(c.x, pattern, "a1"_a = 2)
                     : splits_b ? rearrange(c.x, pattern, "b2"_a = 2)
                                : rearrange(c.x, pattern);
    EXPECT_EQ(y.same_storage(c.x), c.is_view)
        << c.pattern << " of strides " << c.x.strides().to_string();
    if (!c.is_view) {
      EXPECT_TRUE(y.is_contiguous()) << c.pattern;
    }
    EXPECT_EQ(y.numel(), c.x.numel());
  }
}

TEST(RearrangeTest, WritingThroughAViewIsSeen) {
  const Tensor x = counting({4, 6});
  const Tensor y = rearrange(x, "a (b1 b2) -> b2 a b1", "b2"_a = 2);
  y.at({1, 2, 0}).fill(-1);
  EXPECT_EQ(x.at({2, 1}).item(), -1);
  const Tensor copy = rearrange(x, "a b -> (b a)");
  copy.fill(7);
  EXPECT_EQ(x.at({0, 1}).item(), 1);
}

TEST(RearrangeTest, ChainsOfViewsStayViews) {
  const Tensor x = counting({2, 3, 4, 5});
  Tensor y = rearrange(x, "a b c d -> d c b a");
  y = rearrange(y, "d (c1 c2) b a -> (b a) c1 d c2", "c1"_a = 2).at({every, 0});
  EXPECT_FALSE(y.same_storage(x));  // b a are not side by side in this order
  y = rearrange(x, "a b c d -> c d a b");
  y = rearrange(y, "c d a b -> (a b) (c d)");
  EXPECT_TRUE(y.same_storage(x));
  EXPECT_EQ(y.strides(), (Strides{20, 1}));
  // A size of 1 takes a stride that keeps later merges possible.
  const Tensor one = counting({3, 1, 4});
  EXPECT_TRUE(rearrange(rearrange(one, "a 1 b -> b 1 a"), "b 1 a -> (a b)").same_storage(one));
}

TEST(RearrangeTest, EveryDtype) {
  for (DType dtype : real_dtypes) {
    Values values{0, 1, 1, 0, 1, 0};
    const Tensor x = make_tensor(values, {2, 3}, dtype);
    EXPECT_EQ(get_values(rearrange(x, "a b -> (b a)")), (Values{0, 0, 1, 1, 1, 0}));
    EXPECT_EQ(rearrange(x, "a b -> (b a)").dtype(), dtype);
    EXPECT_EQ(repeat(x, "a b -> (a k) b", "k"_a = 2).dtype(), dtype);
  }
}

TEST(RepeatTest, KnownAnswersAndStrides) {
  const Tensor x = counting({2, 3});
  const Tensor channels = repeat(x, "h w -> h w 3");
  EXPECT_EQ(channels.shape(), (Shape{2, 3, 3}));
  EXPECT_TRUE(channels.same_storage(x));
  EXPECT_EQ(channels.strides(), (Strides{3, 1, 0}));
  EXPECT_EQ(get_values(channels), (Values{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5}));

  const Tensor leading = repeat(x, "h w -> k h w", "k"_a = 1000000);
  EXPECT_TRUE(leading.same_storage(x));
  EXPECT_EQ(leading.strides(), (Strides{0, 3, 1}));

  // Strides cannot express these.
  const Tensor rows = repeat(x, "h w -> (h k) w", "k"_a = 2);
  EXPECT_FALSE(rows.same_storage(x));
  EXPECT_EQ(get_values(rows), (Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  const Tensor tiles = repeat(x, "h w -> h (k w)", "k"_a = 2);
  EXPECT_FALSE(tiles.same_storage(x));
  EXPECT_EQ(get_values(tiles), (Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));

  // Two new axes side by side are one of stride 0, as is a new one beside an axis of size 1.
  EXPECT_EQ(repeat(x, "h w -> h (j k) w", "j"_a = 2, "k"_a = 3).strides(), (Strides{3, 0, 1}));
  const Tensor row = counting({1, 3});
  EXPECT_TRUE(repeat(row, "a b -> (a k) b", "k"_a = 4).same_storage(row));
  EXPECT_EQ(repeat(x, "h w -> h w k", "k"_a = 0).shape(), (Shape{2, 3, 0}));
  EXPECT_TRUE(repeat(x, "h w -> h w k", "k"_a = 1).same_storage(x));
}

TEST(RepeatTest, RepeatedElementsCannotBeWritten) {
  const Tensor x = counting({2});
  try {
    repeat(x, "a -> a 3").fill(1);
    FAIL() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
  }
  repeat(x, "a -> a 3").clone().fill(1);
  EXPECT_EQ(get_values(x), (Values{0, 1}));
}

TEST(PackTest, OfOneTensorIsAView) {
  const Tensor x = counting({2, 3, 4, 5});
  const Packed packed = pack(std::vector<Tensor>{x}, "b * c");
  EXPECT_EQ(packed.tensor.shape(), (Shape{2, 12, 5}));
  EXPECT_TRUE(packed.tensor.same_storage(x));
  const std::vector<Tensor> back = unpack(packed.tensor, packed.shapes, "b * c");
  EXPECT_EQ(back[0].shape(), x.shape());
  EXPECT_TRUE(back[0].same_storage(x));
}

}  // namespace
}  // namespace ein
