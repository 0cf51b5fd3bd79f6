// Tensors: shapes, storage, views, slices, copies, and their text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include "support/seeds.hpp"
// An allocation too large for a sanitizer is to fail as it does without one. They ask these
// functions.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

using ein::DType;
using ein::Error;
using ein::ErrorKind;
using ein::Index;
using ein::Shape;
using ein::slice;
using ein::Slice;
using ein::Storage;
using ein::Strides;
using ein::Tensor;
using Values = std::vector<double>;

Tensor numbered(const Shape& shape) {
  return ein::arange(ein::numel(shape)).to(DType::f64).view(shape);
}

void expect_error(const std::function<void()>& call, ErrorKind kind, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no Error, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), text);
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << text;
    EXPECT_TRUE(error.spans().empty());
  }
}

// The place of each element in the storage, in row-major order.
std::vector<std::int64_t> places(const Tensor& x) {
  std::vector<std::int64_t> result;
  std::vector<std::int64_t> at(x.rank(), 0);
  for (std::int64_t n = x.numel(); n > 0; --n) {
    std::int64_t place = x.offset();
    for (std::size_t d = 0; d < x.rank(); ++d) place += at[d] * x.strides()[d];
    result.push_back(place);
    for (std::size_t d = x.rank(); d-- > 0;) {
      if (++at[d] < x.shape()[d]) break;
      at[d] = 0;
    }
  }
  return result;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(engine_);
  }
  std::int64_t between(std::int64_t a, std::int64_t b) { return a + below(b - a + 1); }

  // A view with dimensions dropped, cut, stepped over, exchanged or repeated.
  Tensor view() {
    Shape shape;
    for (std::int64_t d = between(0, 4); d > 0; --d) shape.push_back(between(1, 4));
    Tensor x = numbered(shape);
    for (std::int64_t steps = below(4); steps > 0; --steps) {
      if (x.rank() == 2 && below(2)) x = x.transpose();
      if (x.rank() == 0) continue;
      std::vector<Index> indices;
      for (std::size_t d = 0; d < x.rank(); ++d) {
        const std::int64_t size = x.shape()[d];
        if (size > 1 && below(3) == 0) {
          indices.push_back(slice(below(2), size - below(2), between(1, 2)));
        } else if (size > 0 && below(6) == 0) {
          indices.push_back(below(size));
        } else {
          indices.push_back(ein::every);
        }
      }
      x = x.at(indices);
      if (below(4) == 0) x = ein::repeat(x, "... -> 3 ...");
      if (below(4) == 0) x = ein::rearrange(x, "... -> ... 1");
      if (x.rank() >= 2 && below(3) == 0) x = ein::rearrange(x, ein::runtime("a ... b -> b ... a"));
    }
    return x;
  }

  // The same number of elements in another shape.
  Shape reshaped(std::int64_t n) {
    Shape shape;
    while (n > 1 && shape.rank() < 5) {
      const std::int64_t factor = between(1, std::min<std::int64_t>(n, 8));
      if (n % factor != 0) continue;
      shape.push_back(factor);
      n /= factor;
    }
    if (n > 1 || below(4) == 0) shape.push_back(n);
    std::shuffle(shape.begin(), shape.end(), engine_);
    return shape;
  }

 private:
  std::mt19937 engine_;
};

// --- Shape ---

TEST(Shape, HoldsAnyNumberOfSizes) {
  for (std::size_t rank : {0u, 1u, 7u, 8u, 9u, 16u, 17u, 40u}) {
    Shape shape;
    for (std::size_t d = 0; d < rank; ++d) shape.push_back(static_cast<std::int64_t>(d * d));
    ASSERT_EQ(shape.rank(), rank);
    ASSERT_EQ(shape.empty(), rank == 0);
    for (std::size_t d = 0; d < rank; ++d) ASSERT_EQ(shape[d], static_cast<std::int64_t>(d * d));

    Shape copy = shape;
    EXPECT_EQ(copy, shape);
    copy.push_back(1);
    EXPECT_NE(copy, shape);
    Shape moved = std::move(copy);
    EXPECT_EQ(moved.rank(), rank + 1);
    EXPECT_EQ(moved.back(), 1);
    Shape assigned{1, 2};
    assigned = moved;
    EXPECT_EQ(assigned, moved);
    assigned = std::move(moved);
    EXPECT_EQ(assigned.rank(), rank + 1);
    moved = Shape{5};  // NOLINT: what was moved from may be assigned to
    EXPECT_EQ(moved, Shape{5});
    assigned.resize(rank);
    EXPECT_EQ(assigned, shape);
    assigned.resize(rank + 3);
    EXPECT_EQ(assigned[rank + 2], 0);
  }
}

TEST(Shape, IsWrittenAsATuple) {
  EXPECT_EQ(Shape().to_string(), "()");
  EXPECT_EQ(Shape{7}.to_string(), "(7,)");
  EXPECT_EQ((Shape{2, 3, 5}).to_string(), "(2, 3, 5)");
  EXPECT_EQ(Shape(3, 4).to_string(), "(4, 4, 4)");
}

TEST(Shape, CountsElementsOrSaysWhyNot) {
  EXPECT_EQ(ein::numel(Shape{}), 1);
  EXPECT_EQ(ein::checked_numel({2, 3, 4}, 8), 24);
  EXPECT_EQ(ein::checked_numel({0, INT64_MAX}), 0);
  EXPECT_EQ(ein::checked_numel({INT64_MAX}), INT64_MAX);
  expect_error(
      [] {
        ein::checked_numel({2, -3});
      },
      ErrorKind::shape, "shape (2, -3) has a negative size");
  expect_error(
      [] {
        ein::checked_numel({1, std::int64_t{1} << 62}, 2);
      },
      ErrorKind::overflow, "shape (1, 4611686018427387904) needs more than 2^63 - 1 bytes");
  expect_error(
      [] {
        ein::checked_numel({INT64_MAX, 0, 2});
      },
      ErrorKind::overflow, "shape (9223372036854775807, 0, 2) needs more than 2^63 - 1 bytes");
  EXPECT_EQ(ein::contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(ein::contiguous_strides({}), Strides{});
}

// --- memory ---

TEST(Tensor, KnowsItsBytes) {
  const Tensor x = ein::zeros({4, 8});
  EXPECT_EQ(x.numel(), 32);
  EXPECT_EQ(x.element_size(), 4u);
  EXPECT_EQ(x.nbytes(), 128u);
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_EQ(x.rank(), 2u);
  // A feed-forward weight of GPT-3, as a view that takes no memory.
  const Tensor weight = ein::repeat(ein::zeros({}), "-> 49152 12288");
  EXPECT_EQ(weight.nbytes(), std::size_t{2304} * 1024 * 1024);
  EXPECT_EQ(weight.storage()->bytes(), 4u);
}

TEST(Tensor, DefaultIsEmpty) {
  const Tensor x;
  EXPECT_EQ(x.shape(), Shape{0});
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_TRUE(x.to_vector<float>().empty());
}

TEST(Tensor, StoresWhatADtypeCanHold) {
  EXPECT_EQ(ein::full({}, 1e-8, DType::f16).item(), 0);
  EXPECT_EQ(ein::full({}, 1e-8, DType::bf16).item(), 1.0011717677116394e-08);
  EXPECT_EQ(ein::full({}, 70000, DType::f16).item(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ein::full({}, 448, DType::f8e4m3).item(), 448);
  EXPECT_EQ(ein::full({}, 57344, DType::f8e5m2).item(), 57344);
}

// --- views ---

TEST(Tensor, StridesSayWhereElementsLie) {
  const Tensor x = numbered({4, 4});
  EXPECT_EQ(x.strides(), (Strides{4, 1}));
  EXPECT_EQ(x.at({1, 2}).offset(), 6);
  EXPECT_EQ(x.at({1, 2}).item(), 6);
}

TEST(Tensor, ViewsShareStorage) {
  const Tensor x = ein::from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor row = x[0], column = x.at({ein::every, 1}), view = x.view({3, 2}),
               transposed = x.transpose();
  EXPECT_EQ(row.to_vector<double>(), (Values{1, 2, 3}));
  EXPECT_EQ(column.to_vector<double>(), (Values{2, 5}));
  EXPECT_EQ(view.to_vector<double>(), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(view.shape(), (Shape{3, 2}));
  EXPECT_EQ(transposed.to_vector<double>(), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(transposed.shape(), (Shape{3, 2}));
  for (const Tensor* y : {&row, &column, &view, &transposed}) EXPECT_TRUE(y->same_storage(x));

  x[0][0] = 100;
  EXPECT_EQ(row.to_vector<double>()[0], 100);
  EXPECT_EQ(view.to_vector<double>()[0], 100);
  EXPECT_EQ(transposed.to_vector<double>()[0], 100);
  x[0][1] = -1;
  EXPECT_EQ(column.to_vector<double>()[0], -1);
  x[1] = 0;
  EXPECT_EQ(x.to_vector<double>(), (Values{100, -1, 3, 0, 0, 0}));
}

TEST(Tensor, AViewMustFitTheStrides) {
  const Tensor x = ein::from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor transposed = x.transpose();
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_FALSE(transposed.is_contiguous());
  expect_error(
      [&] {
        transposed.view({2, 3});
      },
      ErrorKind::shape,
      "view: no strides give shape (2, 3) to a tensor of shape (3, 2) and strides (1, 3); reshape "
      "copies where it must");
  expect_error(
      [&] {
        x.view({4, 2});
      },
      ErrorKind::shape, "view: shape (4, 2) has 8 elements, the tensor of shape (2, 3) has 6");
  expect_error([&] { x.view({-1, 2}); }, ErrorKind::shape, "shape (-1, 2) has a negative size");
  expect_error([&] { x.reshape({5}); }, ErrorKind::shape,
               "reshape: shape (5,) has 5 elements, the tensor of shape (2, 3) has 6");
  expect_error([&] { x.view({}); }, ErrorKind::shape,
               "view: shape () has 1 element, the tensor of shape (2, 3) has 6");
  const Tensor copied = transposed.contiguous().view({2, 3});
  EXPECT_EQ(copied.to_vector<double>(), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_FALSE(copied.same_storage(x));
  EXPECT_TRUE(x.contiguous().same_storage(x));
  EXPECT_FALSE(x.clone().same_storage(x));
  expect_error(
      [] {
        numbered({2, 3, 4}).transpose();
      },
      ErrorKind::rank,
      "transpose: wants a matrix, got shape (2, 3, 4); rearrange exchanges axes by name");
}

// A view exists exactly if each new dimension steps evenly through the elements; reshape always
// gives the elements in order, and copies only where no view exists.
TEST(Tensor, ViewsExistWhereStridesAllow) {
  const unsigned seed = 17 + ein::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  int possible = 0, impossible = 0;
  for (int round = 0; round < static_cast<int>(ein::test::seeds_or(20'000)); ++round) {
    const Tensor x = random.view();
    if (x.numel() == 0) continue;  // see below
    const Shape shape = random.reshaped(x.numel());
    const auto old_places = places(x);

    Strides strides(shape.rank(), 0);
    std::int64_t step = 1;
    for (std::size_t d = shape.rank(); d-- > 0;) {
      if (shape[d] > 1) strides[d] = old_places[static_cast<std::size_t>(step)] - old_places[0];
      step *= shape[d];
    }
    bool exists = true;
    for (std::size_t i = 0; i < old_places.size() && exists; ++i) {
      std::int64_t place = old_places[0];
      auto rest = static_cast<std::int64_t>(i);
      for (std::size_t d = shape.rank(); d-- > 0;) {
        place += strides[d] * (rest % shape[d]);
        rest /= shape[d];
      }
      exists = place == old_places[i];
    }
    const std::string what = x.shape().to_string() + " with strides " + x.strides().to_string() +
                             " as " + shape.to_string();
    ++(exists ? possible : impossible);
    try {
      const Tensor y = x.view(shape);
      ASSERT_TRUE(exists) << what;
      ASSERT_TRUE(y.same_storage(x));
      ASSERT_EQ(places(y), old_places) << what;
    } catch (const Error& error) {
      ASSERT_FALSE(exists) << what << "\n" << error.what();
      ASSERT_EQ(error.kind(), ErrorKind::shape);
    }
    const Tensor z = x.reshape(shape);
    ASSERT_EQ(z.same_storage(x), exists) << what;
    ASSERT_EQ(z.shape(), shape);
    ASSERT_EQ(z.to_vector<double>(), x.to_vector<double>()) << what;

    bool in_order = true;
    for (std::size_t i = 1; i < old_places.size(); ++i)
      in_order &= old_places[i] == old_places[i - 1] + 1;
    ASSERT_EQ(x.is_contiguous(), in_order) << what;
    const Tensor c = x.contiguous();
    ASSERT_TRUE(c.is_contiguous());
    ASSERT_EQ(c.same_storage(x), in_order);
  }
  EXPECT_GT(possible, static_cast<int>(ein::test::at_least(2000)));
  EXPECT_GT(impossible, static_cast<int>(ein::test::at_least(2000)));
}

TEST(Tensor, EmptyTensorsHaveEveryEmptyView) {
  const Tensor x = ein::zeros({3, 0, 2});
  EXPECT_EQ(x.view({0}).shape(), Shape{0});
  EXPECT_EQ(x.view({5, 0, 7}).shape(), (Shape{5, 0, 7}));
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_TRUE(ein::rearrange(x, "a b c -> c b a").is_contiguous());
  EXPECT_EQ(x[2].shape(), (Shape{0, 2}));
  EXPECT_EQ(x.at({slice(1, 3), ein::every, 1}).shape(), (Shape{2, 0}));
  EXPECT_EQ(x.clone().shape(), x.shape());
  EXPECT_EQ(x.to(DType::i64).shape(), x.shape());
  x.fill(1);
  x.copy_from(ein::zeros({3, 0, 2}));
}

// --- positions and slices ---

TEST(Tensor, PositionsCountFromEitherEnd) {
  const Tensor x = numbered({3, 4});
  EXPECT_EQ(x[-1].to_vector<double>(), (Values{8, 9, 10, 11}));
  EXPECT_EQ(x.at({-3, -4}).item(), 0);
  EXPECT_EQ(x.at({ein::every, -1}).to_vector<double>(), (Values{3, 7, 11}));
  expect_error([&] { x[3]; }, ErrorKind::shape,
               "at: position 3 is outside an axis of size 3 of shape (3, 4)");
  expect_error(
      [&] {
        x.at({0, -5});
      },
      ErrorKind::shape, "at: position -5 is outside an axis of size 4 of shape (3, 4)");
  expect_error([&] { x[INT64_MIN]; }, ErrorKind::shape,
               "at: position -9223372036854775808 is outside an axis of size 3 of shape (3, 4)");
  expect_error(
      [&] {
        x.at({0, 0, 0});
      },
      ErrorKind::rank, "at: 3 indices are given for shape (3, 4)");
  expect_error([&] { ein::zeros({})[0]; }, ErrorKind::rank, "at: 1 index is given for shape ()");
  expect_error([&] { x.at({slice(0, 2, 0)}); }, ErrorKind::value,
               "at: the step of a slice is 0, at least 1 is wanted");
  expect_error([&] { x.at({slice(0, 2, -1)}); }, ErrorKind::value,
               "at: the step of a slice is -1, at least 1 is wanted");
}

// A slice takes the positions that a loop over the axis would: Python's slices of positive step.
TEST(Tensor, SlicesTakeWhatALoopWould) {
  constexpr std::int64_t bounds[] = {INT64_MIN, -9, -7, -6, -5, -3, -1,       0,
                                     1,         2,  5,  6,  7,  9,  INT64_MAX};
  for (std::int64_t size = 0; size <= 6; ++size) {
    const Tensor x = numbered({size});
    for (std::int64_t begin : bounds) {
      for (std::int64_t end : bounds) {
        for (std::int64_t step :
             {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{7}, INT64_MAX}) {
          Values expected;
          for (std::int64_t i = 0; i < size; ++i) {
            const std::int64_t first = begin >= 0 ? begin : begin < -size ? 0 : begin + size;
            const std::int64_t last = end >= 0 ? end : end < -size ? 0 : end + size;
            if (i >= first && i < last && (i - first) % step == 0)
              expected.push_back(static_cast<double>(i));
          }
          const Tensor y = x.at({slice(begin, end, step)});
          ASSERT_EQ(y.to_vector<double>(), expected)
              << size << ": " << begin << ", " << end << ", " << step;
          ASSERT_TRUE(y.same_storage(x));
        }
      }
    }
  }
}

TEST(Tensor, SlicesOfManyAxes) {
  const Tensor x = numbered({4, 5, 6});
  const Tensor y = x.at({slice(1, 4, 2), -2, slice(-4, -1)});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.to_vector<double>(), (Values{50, 51, 52, 110, 111, 112}));
  EXPECT_EQ(y.at({1, slice(0, INT64_MAX, 2)}).to_vector<double>(), (Values{110, 112}));
}

// --- making views by hand ---

TEST(Tensor, StaysInsideItsStorage) {
  const auto storage = Storage::allocate(48);
  const auto make = [&](const Shape& shape, const Strides& strides, std::int64_t offset = 0,
                        DType dtype = DType::f32) {
    return Tensor(storage, dtype, shape, strides, offset);
  };
  EXPECT_EQ(make({3, 4}, {4, 1}).numel(), 12);
  EXPECT_EQ(make({12}, {1}).numel(), 12);
  EXPECT_EQ(make({2, 3}, {6, 2}, 1).numel(), 6);
  EXPECT_EQ(make({0}, {1}, 12).numel(), 0);
  EXPECT_EQ(make({100, 100}, {0, 0}, 11).numel(), 10'000);
  EXPECT_EQ(make({12}, {-1}, 11).numel(), 12);
  EXPECT_EQ(make({3, 4}, {-4, 1}, 8).numel(), 12);
  EXPECT_EQ(make({3, 1}, {1, -100}, 0).numel(), 3);
  const auto refused = [&](const Shape& shape, const Strides& strides, std::int64_t offset,
                           const std::string& how = "") {
    expect_error([&] { make(shape, strides, offset); }, ErrorKind::shape,
                 "a tensor of shape " + shape.to_string() + ", strides " + strides.to_string() +
                     " and offset " + std::to_string(offset) +
                     " does not fit a storage of 48 bytes, 12 elements of f32" + how);
  };
  const std::string help =
      "\n  help: with negative strides the first element is not the lowest one; give an offset of ";
  refused({13}, {1}, 0, ": it reaches from 0 to 12");
  refused({12}, {1}, 1, ": it reaches from 1 to 12");
  refused({3, 4}, {5, 1}, 0, ": it reaches from 0 to 13");
  refused({2}, {-1}, 0, ": it reaches from -1 to 0" + help + "1 or more");
  refused({4, 3}, {-4, 1}, 11, ": it reaches from -1 to 13" + help + "12 or more");
  refused({3, 3}, {-4, 1}, 10, ": it reaches from 2 to 12");
  refused({2}, {1}, -1);
  refused({0}, {1}, 13);
  refused({2, 3}, {1}, 0);
  refused({3}, {INT64_MAX}, 0);
  refused({3}, {INT64_MIN}, 0);
  refused({2, 2}, {INT64_MIN / 2 - 1, INT64_MIN / 2 - 1}, 0);
  refused({2, 2}, {INT64_MAX, 1}, 1);
  expect_error([&] { make({-1}, {1}); }, ErrorKind::shape, "shape (-1,) has a negative size");
  expect_error([&] { Tensor(nullptr, DType::f32, {1}, {1}); }, ErrorKind::value,
               "a tensor of shape (1,) has no storage");
  expect_error([&] { make(Shape(1025, 1), Strides(1025, 0)); }, ErrorKind::rank,
               "a tensor has at most 1024 axes, not 1025");
}

TEST(Tensor, WantsAlignedMemory) {
  alignas(8) static char bytes[24] = {};
  const auto storage = Storage::wrap(bytes + 1, 16, nullptr);
  expect_error([&] { Tensor(storage, DType::f64, {2}, {1}); }, ErrorKind::value,
               "a tensor of f64 wants memory that is aligned to 8 bytes; copy it first");
  EXPECT_EQ(Tensor(storage, DType::u8, {16}, {1}).numel(), 16);
}

TEST(Storage, WrapsMemoryOfOthers) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    const Tensor x(Storage::wrap(owner->data(), 16, owner), DType::f32, {2, 2}, {2, 1});
    x[1][0] = 30;
    EXPECT_EQ((*owner)[2], 30);
    const Tensor y = x.transpose();
    owner.reset();
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(y.to_vector<double>(), (Values{1, 30, 2, 4}));
  }
  EXPECT_TRUE(watch.expired());
}

// Memory without an owner is the caller's: it is neither freed nor handed out again.
TEST(Storage, MemoryWithoutAnOwnerIsLeftAlone) {
  alignas(64) static float memory[16] = {1, 2, 3};
  { const Tensor x(Storage::wrap(memory, sizeof memory, nullptr), DType::f32, {16}, {1}); }
  std::vector<Tensor> fresh;
  for (int i = 0; i < 10; ++i) {
    fresh.push_back(ein::zeros({16}));
    EXPECT_NE(fresh.back().raw_data(), static_cast<void*>(memory));
  }
  EXPECT_EQ(memory[2], 3);
}

TEST(Storage, AllocatesAlignedOrFails) {
  for (std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 1000u, 4097u, 1u << 20}) {
    const auto storage = Storage::allocate(bytes);
    EXPECT_EQ(storage->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage->data()) % 64, 0u);
    EXPECT_FALSE(storage->read_only());
    std::fill_n(storage->data(), bytes, std::byte{1});
  }
  EXPECT_THROW(Storage::allocate(SIZE_MAX), Error);
  EXPECT_THROW(ein::empty({std::int64_t{1} << 60}, DType::u8), Error);
}

// --- writing ---

TEST(Tensor, FillWritesThroughViews) {
  const Tensor x = ein::zeros({3, 4}, DType::f64);
  x.at({ein::every, slice(1, 4, 2)}).fill(2.5);
  EXPECT_EQ(x.to_vector<double>(), (Values{0, 2.5, 0, 2.5, 0, 2.5, 0, 2.5, 0, 2.5, 0, 2.5}));
  x.transpose()[0] = -1;
  EXPECT_EQ(x.at({ein::every, 0}).to_vector<double>(), (Values{-1, -1, -1}));
  const Tensor i = ein::zeros({2}, DType::i64);
  i.fill((std::int64_t{1} << 53) + 1);
  EXPECT_EQ(i.to_vector<std::int64_t>()[1], (std::int64_t{1} << 53) + 1);
  const Tensor u = ein::zeros({1}, DType::u8);
  u.fill(300);
  EXPECT_EQ(u.item(), 44);  // modulo 2^8
  const Tensor b = ein::zeros({1}, DType::boolean);
  b.fill(0.5);
  EXPECT_EQ(b.item<bool>(), true);
}

TEST(Tensor, SharedElementsAreNotWritten) {
  const Tensor x = numbered({4});
  const Tensor repeated = ein::repeat(x, "a -> 3 a");
  expect_error([&] { repeated.fill(1); }, ErrorKind::value,
               "fill: elements of the tensor of shape (3, 4) and strides (0, 1) share memory; "
               "write to a clone()");
  expect_error(
      [&] {
        repeated.copy_from(ein::zeros({3, 4}, DType::f64));
      },
      ErrorKind::value,
      "copy_from: elements of the tensor of shape (3, 4) and strides (0, 1) share memory; write to "
      "a clone()");
  const Tensor windows(x.storage(), DType::f64, {3, 2}, {1, 1});
  EXPECT_THROW(windows.fill(1), Error);
  repeated.clone().fill(1);
  EXPECT_EQ(x.to_vector<double>(), (Values{0, 1, 2, 3}));
  // Repeated once, an axis repeats nothing.
  ein::repeat(x, "a -> 1 a").fill(7);
  EXPECT_EQ(x.to_vector<double>(), (Values{7, 7, 7, 7}));
}

// Writing is refused exactly where two elements have one place.
TEST(Tensor, OverlapIsFoundExactly) {
  const unsigned seed = 23;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const auto storage = Storage::allocate(4096);
  int apart = 0, shared = 0;
  for (int round = 0; round < 20'000; ++round) {
    Shape shape;
    Strides strides;
    for (std::int64_t d = random.between(0, 4); d > 0; --d) {
      shape.push_back(random.between(random.below(20) == 0 ? 0 : 1, 4));
      strides.push_back(random.below(16));
    }
    const Tensor x(storage, DType::f64, shape, strides);
    auto taken = places(x);
    std::sort(taken.begin(), taken.end());
    const bool overlaps = std::adjacent_find(taken.begin(), taken.end()) != taken.end();
    ++(overlaps ? shared : apart);
    bool refused = false;
    try {
      x.fill(0);
    } catch (const Error&) {
      refused = true;
    }
    ASSERT_EQ(refused, overlaps) << shape.to_string() << " " << strides.to_string();
  }
  EXPECT_GT(apart, 1000);
  EXPECT_GT(shared, 1000);
}

TEST(Tensor, ReadOnlyStorageIsNotWritten) {
  static const float numbers[3] = {1, 2, 3};
  const Tensor x(Storage::wrap(const_cast<float*>(numbers), sizeof numbers, nullptr, true),
                 DType::f32, {3}, {1});
  expect_error([&] { x.fill(0); }, ErrorKind::value, "fill: the tensor's storage is read-only");
  expect_error([&] { x.at({slice(0, 2)}).copy_from(ein::zeros({2})); }, ErrorKind::value,
               "copy_from: the tensor's storage is read-only");
  EXPECT_EQ((x + 1).to_vector<double>(), (Values{2, 3, 4}));
  x.clone().fill(0);
  EXPECT_EQ(x.to_vector<double>(), (Values{1, 2, 3}));
}

enum Digits { seven = 7 };
enum class Scoped { seven = 7 };

TEST(Scalar, NothingButABoolBecomesOne) {
  const auto filled = [](ein::Scalar value) {
    const Tensor x = ein::empty({}, DType::i64);
    x.fill(value);
    return x.item<std::int64_t>();
  };
  const std::vector<bool> flags{true};
  std::vector<bool> writable{false};
  EXPECT_EQ(filled(seven), 7);
  EXPECT_EQ(filled(true), 1);
  EXPECT_EQ(filled(flags[0]), 1);
  EXPECT_EQ(filled(writable[0]), 0);
  EXPECT_EQ((ein::ones({}) * seven).item(), 7);
  using ein::Scalar;
  static_assert(!std::is_convertible_v<const char*, Scalar>);
  static_assert(!std::is_convertible_v<Tensor*, Scalar>);
  static_assert(!std::is_convertible_v<void (*)(), Scalar>);
  static_assert(!std::is_convertible_v<std::nullptr_t, Scalar>);
  static_assert(!std::is_convertible_v<Scoped, Scalar>);
}

TEST(Tensor, CopyConvertsAndChecks) {
  const Tensor x = ein::zeros({2, 3}, DType::i32);
  x.copy_from(ein::from_vector<float>({1.9f, -1.9f, 3e10f, -3e10f, NAN, 0.5f}, {2, 3}));
  EXPECT_EQ(x.to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, -1, INT32_MAX, INT32_MIN, 0, 0}));
  expect_error(
      [&] {
        x.copy_from(ein::zeros({3, 2}));
      },
      ErrorKind::shape, "copy_from: the source has shape (3, 2), the tensor (2, 3)");
  expect_error([&] { x.copy_from(ein::zeros({3})); }, ErrorKind::shape,
               "copy_from: the source has shape (3,), the tensor (2, 3)");
}

// The source is read as it was before the copy, however the two lie on each other.
TEST(Tensor, CopiesOntoItselfAreSafe) {
  const unsigned seed = 41;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    constexpr std::int64_t length = 600;
    const Tensor memory = numbered({length});
    Shape shape;
    for (std::int64_t d = random.between(1, 3); d > 0; --d) shape.push_back(random.between(1, 7));
    const auto somewhere = [&](bool may_repeat) {
      std::vector<std::size_t> order(shape.rank());
      for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
      if (random.below(2)) std::reverse(order.begin(), order.end());
      Strides strides(shape.rank(), 0);
      std::int64_t extent = 1;
      for (std::size_t d : order) {
        if (may_repeat && random.below(6) == 0) continue;
        strides[d] = extent;
        extent = strides[d] * shape[d] + random.below(2);
      }
      return Tensor(memory.storage(), DType::f64, shape, strides, random.below(length - extent));
    };
    const Tensor from = somewhere(true), to = somewhere(false);
    Values expected = memory.to_vector<double>();
    const Values values = from.to_vector<double>();
    const auto targets = places(to);
    for (std::size_t i = 0; i < targets.size(); ++i)
      expected[static_cast<std::size_t>(targets[i])] = values[i];
    // The same memory under another storage is the same memory.
    const bool wrapped = random.below(2);
    const Tensor source =
        !wrapped ? from
                 : Tensor(Storage::wrap(memory.raw_data(), memory.nbytes(), memory.storage()),
                          DType::f64, from.shape(), from.strides(), from.offset());
    to.copy_from(source);
    ASSERT_EQ(memory.to_vector<double>(), expected) << "round " << round;
  }
}

// --- reading ---

TEST(Tensor, GivesItsElements) {
  const Tensor x = ein::from_vector<std::int32_t>({3, -4});
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{3, -4}));
  EXPECT_EQ(x.to_vector<bool>(), (std::vector<bool>{true, true}));
  EXPECT_EQ(x[1].item(), -4);
  EXPECT_EQ(x[1].item<std::uint8_t>(), 252);
  EXPECT_EQ(x.data<std::int32_t>()[0], 3);
  expect_error([&] { x.data<float>(); }, ErrorKind::dtype, "data(): the tensor holds i32, not f32");
  expect_error([&] { x.item(); }, ErrorKind::shape,
               "item: the tensor of shape (2,) has 2 elements, one is wanted");
  expect_error([&] { ein::zeros({0}).item(); }, ErrorKind::shape,
               "item: the tensor of shape (0,) has 0 elements, one is wanted");
  EXPECT_EQ(ein::full({1, 1}, 5).item(), 5);
  expect_error(
      [] {
        ein::from_vector<float>({1, 2, 3}, {2, 2});
      },
      ErrorKind::shape, "from_vector: shape (2, 2) wants 4 values, got 3");
}

TEST(Tensor, BytesThatAreNoBoolAreTrue) {
  static std::uint8_t bytes[3] = {0, 1, 7};
  const Tensor x(Storage::wrap(bytes, 3, nullptr), DType::boolean, {3}, {1});
  EXPECT_EQ(x.to_vector<bool>(), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(x.to_vector<double>(), (Values{0, 1, 1}));
  EXPECT_EQ(x[2].item<bool>(), true);
}

TEST(Tensor, ConvertsOnlyWhereItMust) {
  const Tensor x = numbered({3});
  EXPECT_TRUE(x.to(DType::f64).same_storage(x));
  EXPECT_EQ(x.to(DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(x.to(DType::boolean).to_vector<double>(), (Values{0, 1, 1}));
  EXPECT_EQ(ein::repeat(x, "a -> a 2").to(DType::i64).to_vector<double>(),
            (Values{0, 0, 1, 1, 2, 2}));
}

// --- text ---

TEST(Tensor, IsWrittenAsNestedBrackets) {
  EXPECT_EQ(to_string(ein::full({}, 2.5)), "2.5");
  EXPECT_EQ(to_string(ein::zeros({0})), "[]");
  EXPECT_EQ(to_string(ein::zeros({2, 0})), "[[],\n []]");
  EXPECT_EQ(to_string(ein::from_vector<float>({1, 0.5f, 1e10f, 1.0f / 3})),
            "[1, 0.5, 1e+10, 0.333333]");
  EXPECT_EQ(to_string(ein::from_vector<double>({1.0 / 3})), "[0.3333333333]");
  EXPECT_EQ(to_string(ein::from_vector<bool>({true, false})), "[true, false]");
  EXPECT_EQ(to_string(ein::from_vector<std::int64_t>({INT64_MAX, INT64_MIN})),
            "[9223372036854775807, -9223372036854775808]");
  EXPECT_EQ(to_string(ein::from_vector<float>({INFINITY, -INFINITY, NAN, -NAN})),
            "[inf, -inf, nan, nan]");
  EXPECT_EQ(to_string(ein::arange(6).view({2, 3})), "[[0, 1, 2],\n [3, 4, 5]]");
  EXPECT_EQ(to_string(ein::arange(4).view({2, 1, 2})), "[[[0, 1]],\n [[2, 3]]]");
  EXPECT_EQ(to_string(ein::arange(8)), "[0, 1, 2, 3, 4, 5, 6, 7]");
  EXPECT_EQ(to_string(ein::arange(100)), "[0, 1, 2, 3, ..., 96, 97, 98, 99]");
  EXPECT_EQ(to_string(ein::repeat(ein::arange(1), "a -> 20 a")),
            "[[0],\n [0],\n [0],\n [0],\n ...,\n [0],\n [0],\n [0],\n [0]]");
}

}  // namespace
