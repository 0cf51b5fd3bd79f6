// parse_shape: sizes by name.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <ein/ein.hpp>

namespace {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

Sizes listed(const ein::NamedSizes& sizes) { return Sizes(sizes.begin(), sizes.end()); }

TEST(ParseShape, NamesTheAxesInTheirOrder) {
  const ein::Tensor x = ein::zeros({2, 3, 5, 7});
  EXPECT_EQ(listed(ein::parse_shape(x, "b c h w")),
            (Sizes{{"b", 2}, {"c", 3}, {"h", 5}, {"w", 7}}));
  EXPECT_EQ(listed(ein::parse_shape(x, "batch _ h _")), (Sizes{{"batch", 2}, {"h", 5}}));
  EXPECT_EQ(listed(ein::parse_shape(x, "2 c ... w")), (Sizes{{"c", 3}, {"w", 7}}));
  EXPECT_EQ(listed(ein::parse_shape(x, "z a ...")), (Sizes{{"z", 2}, {"a", 3}}));
  EXPECT_EQ(listed(ein::parse_shape(x, "...")), Sizes{});
  EXPECT_EQ(listed(ein::parse_shape(ein::zeros({}), "")), Sizes{});
  EXPECT_EQ(listed(ein::parse_shape(ein::zeros({4, 1}), "n 1")), (Sizes{{"n", 4}}));
  EXPECT_EQ(listed(ein::parse_shape(ein::zeros({0, 3}), "n _")), (Sizes{{"n", 0}}));
}

TEST(ParseShape, AnswersByName) {
  const ein::NamedSizes sizes = ein::parse_shape(ein::zeros({2, 3}), "rows größe");
  EXPECT_EQ(sizes["größe"], 3);
  EXPECT_EQ(sizes["rows"], 2);
  EXPECT_EQ(sizes.size(), 2u);
  try {
    sizes["row"];
    FAIL();
  } catch (const ein::Error& error) {
    EXPECT_EQ(error.kind(), ein::ErrorKind::axis_argument);
    EXPECT_NE(std::string(error.what()).find("'row'"), std::string::npos);
  }
}

// What it gives is what the other operations take.
TEST(ParseShape, SizesServeAnotherCall) {
  const ein::Tensor image = ein::zeros({2, 4, 6}), flat = ein::zeros({2, 24});
  const ein::NamedSizes sizes = ein::parse_shape(image, "b h w");
  const ein::Tensor x = ein::rearrange(flat, ein::runtime("b (h w) -> b h w"),
                                       ein::axis("h", sizes["h"]), ein::axis("w", sizes["w"]));
  EXPECT_EQ(x.shape(), image.shape());
}

}  // namespace
