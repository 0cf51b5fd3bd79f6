// The multiplications of ResNet-50's convolutions, from their patterns: those that padding takes
// part in are none, which is the difference from the published number.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include <ein/call.hpp>
#include <ein/cost.hpp>

namespace ein {
namespace {

/// A convolution of size² points to (size / stride)², with `window`² elements and padding on all
/// sides.
struct Convolution {
  std::int64_t size = 0, from = 0, to = 0, window = 1, stride = 1, times = 1;

  std::int64_t padding() const { return window / 2; }
  /// As counters count that know no patterns: each point of the result times the window.
  std::int64_t with_padding() const {
    const std::int64_t out = size / stride;
    return times * out * out * window * window * from * to;
  }
  std::int64_t inside() const {
    const std::string s = std::to_string(stride), p = std::to_string(padding());
    const std::string pattern =
        "b {" + s + "*y + ky - " + p + "} {" + s + "*x + kx - " + p + "} c, ky kx c o -> b y x o";
    const Graph graph = graph_of(Operation::einsum, runtime(pattern),
                                 {{1, size, size, from}, {window, window, from, to}});
    return times * std::stoll(cost(graph).mul.to_string());
  }
  /// The points of one axis that lie in a window of each result, counted one by one.
  std::int64_t by_enumeration() const {
    std::int64_t pairs = 0;
    for (std::int64_t y = 0; y < size / stride; ++y) {
      for (std::int64_t k = 0; k < window; ++k) {
        const std::int64_t at = stride * y + k - padding();
        pairs += at >= 0 && at < size;
      }
    }
    return times * pairs * pairs * from * to;
  }
};

/// He, Zhang, Ren, Sun 2016, table 1, at 224 x 224; where a stage begins, the 3 x 3 window has the
/// stride, as in torchvision.
constexpr Convolution convolutions[] = {
    {224, 3, 64, 7, 2, 1},    {56, 64, 64, 1, 1, 1},    {56, 64, 64, 3, 1, 3},
    {56, 64, 256, 1, 1, 4},   {56, 256, 64, 1, 1, 2},   {56, 256, 128, 1, 1, 1},
    {56, 128, 128, 3, 2, 1},  {28, 128, 512, 1, 1, 4},  {56, 256, 512, 1, 2, 1},
    {28, 512, 128, 1, 1, 3},  {28, 128, 128, 3, 1, 3},  {28, 512, 256, 1, 1, 1},
    {28, 256, 256, 3, 2, 1},  {14, 256, 1024, 1, 1, 6}, {28, 512, 1024, 1, 2, 1},
    {14, 1024, 256, 1, 1, 5}, {14, 256, 256, 3, 1, 5},  {14, 1024, 512, 1, 1, 1},
    {14, 512, 512, 3, 2, 1},  {7, 512, 2048, 1, 1, 3},  {14, 1024, 2048, 1, 2, 1},
    {7, 2048, 512, 1, 1, 2},  {7, 512, 512, 3, 1, 2},
};

TEST(ResNet50, HasThePublishedMultiplicationsWithPadding) {
  std::int64_t times = 0, with_padding = 2048 * 1000, inside = with_padding;
  for (const Convolution& c : convolutions) {
    times += c.times;
    with_padding += c.with_padding();
    inside += c.inside();
    EXPECT_EQ(c.inside(), c.by_enumeration()) << c.size << " " << c.window << " " << c.stride;
  }
  EXPECT_EQ(times, 53);
  EXPECT_EQ(with_padding, 4'089'184'256);  // 4.09e9, as torchvision has it
  EXPECT_EQ(inside, 3'948'251'904);
}

}  // namespace
}  // namespace ein
