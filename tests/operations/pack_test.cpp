// pack and unpack: tensors of unlike shapes on one axis, and back.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <ein/ein.hpp>

namespace {

using ein::DType;
using ein::Shape;
using ein::Tensor;

Tensor numbered(const Shape& shape, double first = 0, DType dtype = DType::f64) {
  return (ein::arange(ein::numel(shape)).to(DType::f64) + first).view(shape).to(dtype);
}

TEST(Pack, MergesWhatTheStarStandsFor) {
  const std::vector<Tensor> xs{numbered({2, 3}), numbered({2}, 100), numbered({2, 2, 2}, 200)};
  const ein::Packed packed = ein::pack(xs, "b *");
  EXPECT_EQ(packed.tensor.shape(), (Shape{2, 8}));
  EXPECT_EQ(
      packed.tensor.to_vector<double>(),
      (std::vector<double>{0, 1, 2, 100, 200, 201, 202, 203, 3, 4, 5, 101, 204, 205, 206, 207}));
  EXPECT_EQ(packed.shapes, (std::vector<Shape>{{3}, {}, {2, 2}}));
}

TEST(Pack, OneTensorIsAViewWhereItCanBe) {
  const std::vector<Tensor> one{numbered({2, 3, 4})};
  const ein::Packed packed = ein::pack(one, "* c");
  EXPECT_EQ(packed.tensor.shape(), (Shape{6, 4}));
  EXPECT_TRUE(packed.tensor.same_storage(one[0]));
}

TEST(Pack, KeepsTheDtype) {
  for (DType dtype :
       {DType::f32, DType::bf16, DType::f8e4m3, DType::i64, DType::u8, DType::boolean}) {
    const std::vector<Tensor> xs{numbered({2}, 0, dtype), numbered({}, 1, dtype)};
    const Tensor packed = ein::pack(xs, "*").tensor;
    EXPECT_EQ(packed.dtype(), dtype);
    EXPECT_EQ(packed.to_vector<double>(), (std::vector<double>{0, 1, 1}));
  }
}

TEST(Unpack, GivesViews) {
  const Tensor x = numbered({2, 7, 3});
  const std::vector<Shape> shapes{{2}, {}, {2, 2}};
  const std::vector<Tensor> parts = ein::unpack(x, shapes, "b * c");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(parts[1].shape(), (Shape{2, 3}));
  EXPECT_EQ(parts[2].shape(), (Shape{2, 2, 2, 3}));
  for (const Tensor& part : parts) EXPECT_TRUE(part.same_storage(x));
  parts[1].fill(-1);
  EXPECT_EQ(x.at({1, 2, 0}).item(), -1);
  EXPECT_EQ(x.at({1, 3, 0}).item(), 30);
  EXPECT_EQ(parts[2].at({0, 1, 0, 2}).item(), 17);
}

// '...' stands for as many axes as x has beside '*' and those with names.
TEST(Unpack, OnAnyOtherAxes) {
  const std::vector<Shape> shapes{{2}, {}, {2, 2}};
  const Tensor flat = numbered({7, 3}), deep = numbered({2, 4, 7, 3});
  const Tensor turned = ein::rearrange(deep, "a b s c -> c s b a");
  const std::vector<Tensor> of_flat = ein::unpack(flat, shapes, "... * c"),
                            of_deep = ein::unpack(deep, shapes, "... * c"),
                            in_front = ein::unpack(turned, shapes, "a * ...");
  EXPECT_EQ(of_flat[2].shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(of_deep[1].shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(of_deep[2].shape(), (Shape{2, 4, 2, 2, 3}));
  EXPECT_EQ(in_front[0].shape(), (Shape{3, 2, 4, 2}));
  for (const Tensor& part : of_deep) EXPECT_TRUE(part.same_storage(deep));
  EXPECT_EQ(of_deep[1].at({1, 3, 2}).item(), deep.at({1, 3, 2, 2}).item());
  EXPECT_EQ(of_deep[2].at({1, 2, 1, 0, 1}).item(), deep.at({1, 2, 5, 1}).item());
  EXPECT_EQ(in_front[2].at({1, 1, 1, 3, 0}).item(), deep.at({0, 3, 6, 1}).item());
}

TEST(Unpack, OneSizeMayBeLeftOpen) {
  const Tensor x = numbered({12});
  const auto shapes_of = [&](const std::vector<Shape>& shapes) {
    std::vector<Shape> result;
    for (const Tensor& part : ein::unpack(x, shapes, "*")) result.push_back(part.shape());
    return result;
  };
  EXPECT_EQ(shapes_of({{-1}}), (std::vector<Shape>{{12}}));
  EXPECT_EQ(shapes_of({{2}, {-1, 5}}), (std::vector<Shape>{{2}, {2, 5}}));
  EXPECT_EQ(shapes_of({{3, 4}, {-1}}), (std::vector<Shape>{{3, 4}, {0}}));
  EXPECT_EQ(shapes_of({{}, {2, -1}, {}}), (std::vector<Shape>{{}, {2, 5}, {}}));
}

TEST(Unpack, ManyPiecesOfNothing) {
  const std::vector<Shape> none;
  EXPECT_TRUE(ein::unpack(numbered({2, 0}), none, "a *").empty());
  const std::vector<Shape> empty{{0}, {3, 0}, {0, 5}};
  const auto parts = ein::unpack(numbered({2, 0}), empty, "a *");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].shape(), (Shape{2, 0, 5}));
}

// Packing and unpacking changes nothing, and where each element goes is plain arithmetic.
TEST(Pack, RandomTensorsComeBack) {
  const unsigned seed = 3;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  constexpr std::string_view patterns[] = {"*",     "a b *", "a *",     "* a",     "a * b",
                                           "* a b", "... *", "a b * c", "a * ...", "... a * b"};
  constexpr std::size_t named_before[] = {0, 2, 1, 0, 1, 0, 0, 2, 1, 1},
                        named_after[] = {0, 0, 0, 1, 1, 2, 0, 1, 0, 1};
  for (int round = 0; round < 500; ++round) {
    const auto which = static_cast<std::size_t>(below(std::size(patterns)));
    Shape before, after;
    for (std::size_t d = 0; d < named_before[which]; ++d)
      before.push_back(below(8) == 0 ? 0 : 1 + below(4));
    for (std::size_t d = 0; d < named_after[which]; ++d) after.push_back(1 + below(4));
    // Those under '...' are before the others, or behind them.
    const std::size_t dots = patterns[which].find("...");
    const bool is_open = dots != std::string_view::npos;
    for (std::int64_t d = is_open ? below(3) : 0; d > 0; --d)
      (dots == 0 ? before : after).push_back(1 + below(3));
    std::vector<Tensor> xs;
    std::vector<Shape> shapes;
    for (std::int64_t n = 1 + below(4); n > 0; --n) {
      Shape middle;
      for (std::int64_t d = is_open ? 1 : below(4); d > 0; --d)
        middle.push_back(below(10) == 0 ? 0 : 1 + below(3));
      Shape shape = before;
      for (std::int64_t size : middle) shape.push_back(size);
      for (std::int64_t size : after) shape.push_back(size);
      Tensor x = numbered(shape, 1000.0 * static_cast<double>(xs.size()));
      if (shape.rank() == 2 && below(2)) x = numbered({shape[1], shape[0]}, 7).transpose();
      xs.push_back(x);
      shapes.push_back(middle);
    }
    const ein::Packed packed = ein::pack(xs, ein::runtime(patterns[which]));
    ASSERT_EQ(packed.shapes, shapes);

    std::vector<double> expected;
    const std::int64_t rows = ein::numel(before), columns = ein::numel(after);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::size_t k = 0; k < xs.size(); ++k) {
        const std::vector<double> values = xs[k].to_vector<double>();
        const std::int64_t length = ein::numel(shapes[k]) * columns;
        for (std::int64_t i = 0; i < length; ++i)
          expected.push_back(values[static_cast<std::size_t>(row * length + i)]);
      }
    }
    ASSERT_EQ(packed.tensor.to_vector<double>(), expected)
        << patterns[which] << ", round " << round;

    const std::vector<Tensor> back =
        ein::unpack(packed.tensor, packed.shapes, ein::runtime(patterns[which]));
    ASSERT_EQ(back.size(), xs.size());
    for (std::size_t k = 0; k < xs.size(); ++k) {
      ASSERT_EQ(back[k].shape(), xs[k].shape());
      ASSERT_EQ(back[k].to_vector<double>(), xs[k].to_vector<double>());
    }
  }
}

}  // namespace
