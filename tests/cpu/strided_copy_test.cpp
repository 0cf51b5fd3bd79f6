#include "cpu/strided_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "support/seeds.hpp"

namespace ein::host {
namespace {

using Axes = std::vector<CopyAxis>;
using Bytes = std::vector<std::byte>;

constexpr std::size_t guard_bytes = 192;
constexpr std::int64_t always_stream = 0, never_stream = std::int64_t{1} << 62;

// Elements from the first to the last that the axes reach.
std::size_t span(const Axes& axes, std::int64_t CopyAxis::*stride) {
  std::int64_t last = 0;
  for (const CopyAxis& axis : axes)
    last += std::max<std::int64_t>(axis.size - 1, 0) * std::abs(axis.*stride);
  return static_cast<std::size_t>(last + 1);
}

// Elements of the source before the first one.
std::size_t before(const Axes& axes) {
  std::int64_t elements = 0;
  for (const CopyAxis& axis : axes)
    elements -=
        std::max<std::int64_t>(axis.size - 1, 0) * std::min<std::int64_t>(axis.src_stride, 0);
  return static_cast<std::size_t>(elements);
}

void naive_copy(const Axes& axes, std::size_t depth, std::byte* dst, const std::byte* src,
                std::size_t element) {
  if (depth == axes.size()) {
    std::copy_n(src, element, dst);
    return;
  }
  const CopyAxis& axis = axes[depth];
  const auto bytes = static_cast<std::int64_t>(element);
  for (std::int64_t n = 0; n < axis.size; ++n) {
    naive_copy(axes, depth + 1, dst + n * axis.dst_stride * bytes,
               src + n * axis.src_stride * bytes, element);
  }
}

class StridedCopyTest : public testing::Test {
 protected:
  const std::uint32_t seed = 20240607 + test::first_seed();
  std::mt19937 random{seed};

  std::int64_t uniform(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }

  Bytes noise(std::size_t size) {
    Bytes bytes(size);
    std::uint32_t state = random() | 1u;
    for (std::byte& b : bytes) {
      state = state * 1664525u + 1013904223u;
      b = static_cast<std::byte>(state >> 24);
    }
    return bytes;
  }

  // Runs all parts in shuffled order; every byte of the destination's buffer must be what plain
  // loops leave there. The source's buffer ends with its last element, so that sanitizers see
  // overreads.
  void check(const Axes& axes, std::size_t element, std::size_t dst_offset, std::size_t src_offset,
             std::int64_t stream_from, const Caches& caches = host::caches()) {
    const Bytes src = noise(src_offset + span(axes, &CopyAxis::src_stride) * element);
    Bytes dst = noise(2 * guard_bytes + dst_offset + span(axes, &CopyAxis::dst_stride) * element);
    Bytes expected = dst;
    const std::byte* const from = src.data() + src_offset + before(axes) * element;
    naive_copy(axes, 0, expected.data() + guard_bytes + dst_offset, from, element);

    const StridedCopy copy(axes, element, stream_from, caches);
    std::vector<std::int64_t> parts(static_cast<std::size_t>(copy.parts()));
    std::iota(parts.begin(), parts.end(), 0);
    std::shuffle(parts.begin(), parts.end(), random);
    for (const std::int64_t part : parts) {
      copy.run(dst.data() + guard_bytes + dst_offset, from, part);
    }
    if (dst == expected) return;
    const auto at = std::mismatch(dst.begin(), dst.end(), expected.begin()).first - dst.begin();
    std::ostringstream text;
    for (const CopyAxis& axis : axes) {
      text << " {" << axis.size << ", " << axis.dst_stride << ", " << axis.src_stride << "}";
    }
    ADD_FAILURE() << "seed " << seed << ": axes" << text.str() << ", element " << element
                  << ", offsets " << dst_offset << " and " << src_offset << ", stream from "
                  << stream_from << ", caches " << caches.l1 << " (ways of " << caches.l1_way
                  << "), " << caches.l2 << ", " << caches.l3 << ", parts " << copy.parts()
                  << ": first wrong byte "
                  << at - static_cast<std::ptrdiff_t>(guard_bytes + dst_offset);
  }

  std::size_t random_element() { return std::size_t{1} << uniform(0, 3); }

  // Half of the bases are aligned to 64 bytes, give or take the allocator.
  std::size_t random_offset() {
    return uniform(0, 1) == 0 ? 0 : static_cast<std::size_t>(uniform(0, 63));
  }

  // Strides of the axes in a random order, with gaps now and then.
  void set_strides(Axes& axes, std::int64_t CopyAxis::*stride, int gap_percent) {
    std::vector<std::size_t> order(axes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (uniform(0, 3) != 0) std::shuffle(order.begin(), order.end(), random);
    const auto gap = [&] { return uniform(0, 99) < gap_percent ? uniform(1, 3) : 0; };
    std::int64_t next = 1 + gap();
    for (const std::size_t a : order) {
      axes[a].*stride = next;
      next = next * std::max<std::int64_t>(axes[a].size, 1) + gap();
    }
  }

  Axes random_axes(std::int64_t most_elements) {
    Axes axes(static_cast<std::size_t>(uniform(0, 8)));
    std::int64_t elements = 1;
    for (CopyAxis& axis : axes) {
      const std::int64_t most = std::min<std::int64_t>(70, most_elements / elements);
      axis.size =
          uniform(0, 3) == 0 ? uniform(1, std::min<std::int64_t>(most, 4)) : uniform(1, most);
      if (uniform(0, 99) == 0) axis.size = 0;
      elements *= std::max<std::int64_t>(axis.size, 1);
    }
    std::shuffle(axes.begin(), axes.end(), random);
    set_strides(axes, &CopyAxis::dst_stride, uniform(0, 2) == 0 ? 30 : 0);
    if (uniform(0, 3) == 0) {
      for (CopyAxis& axis : axes) axis.src_stride = axis.dst_stride;  // runs, maybe reversed
    } else {
      set_strides(axes, &CopyAxis::src_stride, uniform(0, 2) == 0 ? 30 : 0);
    }
    const bool from_the_end = uniform(0, 3) == 0;
    for (CopyAxis& axis : axes) {
      if (uniform(0, 7) == 0) axis.src_stride = 0;
      if (uniform(0, 31) == 0) axis.src_stride = uniform(0, 100);  // diagonals, windows
      if (from_the_end && uniform(0, 1) == 0) axis.src_stride = -axis.src_stride;
    }
    return axes;
  }
};

TEST_F(StridedCopyTest, AgreesWithPlainLoopsOnRandomAxes) {
  for (int trial = 0; trial < static_cast<int>(test::seeds_or(6000)) && !HasFailure(); ++trial) {
    const Axes axes = random_axes(trial % 20 == 0 ? 1'500'000 : trial % 4 == 0 ? 60'000 : 3'000);
    check(axes, random_element(), random_offset(), random_offset(),
          uniform(0, 1) == 0 ? always_stream : never_stream);
  }
}

TEST_F(StridedCopyTest, TransposesBatchesOfMatrices) {
  for (int trial = 0; trial < static_cast<int>(test::seeds_or(1500)) && !HasFailure(); ++trial) {
    const std::int64_t rows = uniform(1, 150), columns = uniform(1, 150), batch = uniform(1, 3);
    const std::int64_t multiple = uniform(0, 1) == 0 ? 1 : 32;
    const std::int64_t r = rows < 5 ? rows : (rows + multiple - 1) / multiple * multiple;
    const std::int64_t c = columns < 5 ? columns : (columns + multiple - 1) / multiple * multiple;
    check({{batch, r * c, r * c}, {r, 1, c}, {c, r, 1}}, random_element(), random_offset(),
          random_offset(), uniform(0, 1) == 0 ? always_stream : never_stream);
  }
}

// The rules that make tiles of sizes of caches hold for any of them: none to speak of, those of a
// small core, more than there are.
TEST_F(StridedCopyTest, AgreesWithPlainLoopsWhateverTheCaches) {
  const Caches each[] = {
      {.l1 = 64, .l2 = 64, .l3 = 64, .l1_way = 64},
      {.l1 = 1 << 10, .l2 = 4 << 10, .l3 = 16 << 10, .l1_way = 256},
      {.l1 = 24 << 10, .l2 = 512 << 10, .l3 = 2 << 20, .l1_way = 4 << 10},
      {.l1 = 32 << 10, .l2 = 1 << 20, .l3 = 32 << 20, .l1_way = 32 << 10},
      {.l1 = 48 << 10, .l2 = 2 << 20, .l3 = 32 << 20, .l1_way = 4 << 10},
      {.l1 = 192 << 10, .l2 = 16 << 20, .l3 = 16 << 20, .l1_way = 12345},
      {.l1 = 4 << 20, .l2 = 256 << 20, .l3 = std::int64_t{4} << 30, .l1_way = 1 << 20}};
  for (int trial = 0; trial < 3000 && !HasFailure(); ++trial) {
    const Caches& caches = each[uniform(0, std::size(each) - 1)];
    const std::size_t element = random_element();
    Axes axes = random_axes(trial % 20 == 0 ? 1'500'000 : trial % 4 == 0 ? 60'000 : 3'000);
    if (trial % 3 == 0) {  // matrices, whose rows may all fall into the same places
      const std::int64_t rows = uniform(1, 300), columns = uniform(1, 300),
                         gap = uniform(0, 2) * uniform(0, 40);
      const std::int64_t to = uniform(0, 1) == 0 ? rows + gap : 512, from = columns + gap;
      axes = {{rows, 1, from}, {columns, to, 1}};
    }
    check(axes, element, random_offset(), random_offset(),
          trial % 5 == 0   ? -1
          : trial % 2 == 0 ? always_stream
                           : never_stream,
          caches);
  }
}

// Everything between one element and a few vectors of either side, in both directions, densely and
// with gaps: the shapes that choose between squares, bands and single elements.
TEST_F(StridedCopyTest, TransposesNarrowMatricesOfEveryWidth) {
  for (std::int64_t narrow = 1; narrow <= 140 && !HasFailure(); ++narrow) {
    for (const std::size_t element : {1u, 2u, 4u, 8u}) {
      const std::int64_t wide = uniform(1, 300), gap = uniform(0, 1) * uniform(1, 40);
      const std::int64_t stream_from = uniform(0, 1) == 0 ? always_stream : never_stream;
      check({{narrow, 1, wide + gap}, {wide, narrow + gap, 1}}, element, random_offset(),
            random_offset(), stream_from);
      check({{wide, 1, narrow + gap}, {narrow, wide + gap, 1}}, element, random_offset(),
            random_offset(), stream_from);
    }
  }
}

// Squares whose lines are their own, and what is left of them at the ends; rows a line or more
// apart, and a power of two.
TEST_F(StridedCopyTest, TransposesRowsThatBeginAtLines) {
  for (int trial = 0; trial < 400 && !HasFailure(); ++trial) {
    const std::size_t element = random_element();
    const auto line = static_cast<std::int64_t>(64 / element);
    const auto row = [&](std::int64_t size) {
      const std::int64_t lines = (size + line - 1) / line;
      if (uniform(0, 1) == 0) return (lines + uniform(0, 5)) * line;
      return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(lines))) * line;
    };
    const std::int64_t rows = uniform(line, 12 * line), columns = uniform(line, 12 * line),
                       batch = uniform(1, 3);
    const std::int64_t to = row(rows), from = row(columns);
    check({{batch, to * columns, from * rows}, {rows, 1, from}, {columns, to, 1}}, element,
          random_offset(), random_offset(), never_stream);
    check({{rows, 1, from * batch}, {batch, to, from}, {columns, to * batch, 1}}, element,
          random_offset(), random_offset(), never_stream);
  }
}

// Rows of whole lines, of lines and a bit, and rows that all fall into the same places of a cache.
TEST_F(StridedCopyTest, TransposesMatricesLargeEnoughToPrefetch) {
  for (const std::size_t element : {1u, 2u, 4u, 8u}) {
    for (const std::int64_t columns : {7, 64, 1024, 1025}) {
      const auto bytes = static_cast<std::int64_t>(element);
      const std::int64_t rows = (5 << 20) / (columns * bytes) + uniform(0, 1);
      for (const std::int64_t stream_from : {always_stream, never_stream}) {
        check({{rows, 1, columns}, {columns, rows, 1}}, element, random_offset(), random_offset(),
              stream_from);
        check({{columns, 1, rows}, {rows, columns, 1}}, element, random_offset(), random_offset(),
              stream_from);
      }
    }
  }
}

// Rows of several KiB on one side or both, which are written or read one after another.
TEST_F(StridedCopyTest, TransposesLongRows) {
  for (int trial = 0; trial < static_cast<int>(test::seeds_or(60)) && !HasFailure(); ++trial) {
    const std::size_t element = random_element();
    const auto bytes = static_cast<std::int64_t>(element);
    const std::int64_t longer = uniform(1500, 9000) / bytes,
                       other = uniform(0, 1) == 0 ? uniform(1, 130) : uniform(500, 4000) / bytes;
    const std::int64_t gap = uniform(0, 1) * uniform(1, 40), batch = uniform(1, 2),
                       matrix = longer * (other + gap);
    check({{batch, matrix, matrix}, {other, 1, longer}, {longer, other + gap, 1}}, element,
          random_offset(), random_offset(), never_stream);
    check({{batch, matrix, matrix}, {longer, 1, other + gap}, {other, longer, 1}}, element,
          random_offset(), random_offset(), never_stream);
  }
  for (const std::size_t element : {2u, 4u, 8u}) {
    constexpr std::int64_t batch = 12,
                           matrix = 64 * 3136;  // more than the level-2 cache, in whole lines
    check({{batch, matrix, matrix}, {64, 1, 3136}, {3136, 64, 1}}, element, random_offset(),
          random_offset(), never_stream);
    check({{batch, matrix, matrix}, {3136, 1, 64}, {64, 3136, 1}}, element, random_offset(),
          random_offset(), never_stream);
  }
}

TEST_F(StridedCopyTest, ReversesManyAxesLargeEnoughToPrefetch) {
  for (const std::size_t element : {1u, 2u, 4u, 8u}) {
    for (const std::int64_t stream_from : {always_stream, never_stream}) {
      Axes axes{{18, 0, 0}, {11, 0, 0}, {14, 0, 0}, {10, 0, 0}, {17, 0, 0}, {12, 0, 0}};
      set_strides(axes, &CopyAxis::dst_stride, 0);
      set_strides(axes, &CopyAxis::src_stride, 0);
      check(axes, element, random_offset(), random_offset(), stream_from);
    }
  }
}

// Rows that are read from their ends, of elements and of cells of several, alone, with gaps, and
// within a repeated or reversed axis.
TEST_F(StridedCopyTest, ReversesRunsOfEveryLength) {
  for (std::int64_t length = 1; length <= 300 && !HasFailure(); ++length) {
    for (const std::size_t element : {1u, 2u, 4u, 8u}) {
      for (const std::int64_t cell : {1, 2, 3, 4}) {
        const std::int64_t rows = uniform(1, 6), run = length * cell, gap = uniform(0, 1) * 5;
        const std::int64_t from_row = uniform(-1, 1) * (run + gap);
        check({{rows, run + gap, from_row}, {length, cell, -cell}, {cell, 1, 1}}, element,
              random_offset(), random_offset(), uniform(0, 1) == 0 ? always_stream : never_stream);
      }
    }
  }
}

TEST_F(StridedCopyTest, ReversesLongRuns) {
  for (const std::size_t element : {1u, 2u, 4u, 8u}) {
    for (const std::int64_t stream_from : {always_stream, never_stream}) {
      check({{1'000'003, 1, -1}}, element, random_offset(), random_offset(), stream_from);
      check({{500, 2000, 2000}, {2000, 1, -1}}, element, 0, 0, stream_from);
      check({{7, 100'009, -200'009}, {100'009, 1, -1}}, element, 0, random_offset(), stream_from);
      // An offset that is no multiple of the element.
      check({{300'001, 1, -1}}, element, 1, 3, stream_from);
    }
  }
}

TEST_F(StridedCopyTest, MovesCellsOfAnySize) {
  for (std::int64_t cell = 1; cell <= 300 && !HasFailure(); ++cell) {
    const std::int64_t a = uniform(1, 20), b = uniform(1, 20);
    for (const std::int64_t stream_from : {always_stream, never_stream}) {
      check({{a, b * cell, cell}, {b, cell, a * cell}, {cell, 1, 1}}, random_element(),
            random_offset(), random_offset(), stream_from);
    }
  }
}

TEST_F(StridedCopyTest, RepeatsAlongAnyAxis) {
  for (std::int64_t times = 1; times <= 140 && !HasFailure(); ++times) {
    const std::int64_t a = uniform(1, 9), b = uniform(1, 80);
    for (const std::int64_t stream_from : {always_stream, never_stream}) {
      const std::size_t element = random_element();
      check({{a, b * times, b}, {b, times, 1}, {times, 1, 0}}, element, random_offset(),
            random_offset(), stream_from);
      check({{a, b * times, b}, {times, b, 0}, {b, 1, 1}}, element, random_offset(),
            random_offset(), stream_from);
      check({{times, a * b, 0}, {a, b, 1}, {b, 1, a}}, element, random_offset(), random_offset(),
            stream_from);
    }
  }
}

// Pairs and quadruples are filled as one element, at which not every row begins.
TEST_F(StridedCopyTest, RepeatsCellsInRowsThatAreNotAlignedToThem) {
  for (const std::size_t element : {1u, 2u, 4u, 8u}) {
    for (const std::int64_t cell : {2, 4}) {
      for (const std::int64_t stream_from : {always_stream, never_stream}) {
        check({{42, 200 * cell + 1, cell}, {200, cell, 0}, {cell, 1, 1}}, element, 0, 0,
              stream_from);
      }
    }
  }
}

TEST_F(StridedCopyTest, CopiesLongRunsOfOddLengths) {
  for (const std::int64_t stream_from : {always_stream, never_stream}) {
    check({{9'123'457, 1, 1}}, 1, 5, 3, stream_from);
    check({{7, 400'009, 400'009 * 2}, {400'009, 1, 1}}, 4, 0, 0, stream_from);
    check({{3, 1'000'003, 0}, {1'000'003, 1, 1}}, 2, 2, 0, stream_from);
    check({{2'000'003, 1, 0}}, 4, 4, 0, stream_from);
  }
}

TEST_F(StridedCopyTest, CopiesOneElementWithoutAxes) {
  for (const std::size_t element : {1u, 2u, 4u, 8u}) {
    EXPECT_EQ(StridedCopy({}, element).parts(), 1);
    check({}, element, 1, 3, never_stream);
    check({{1, 7, 9}, {1, 0, 0}}, element, 1, 3, never_stream);
  }
}

TEST_F(StridedCopyTest, CopiesNothingWhereAnAxisIsEmpty) {
  const StridedCopy copy({{5, 1, 1}, {0, 5, 5}}, 4);
  EXPECT_EQ(copy.parts(), 0);
  copy.run(nullptr, nullptr, 0);
}

TEST_F(StridedCopyTest, CutsLargeCopiesIntoPiecesOf128Kibibytes) {
  const Caches of_1_mib{.l1 = 32 << 10, .l2 = 1 << 20, .l3 = 32 << 20, .l1_way = 4 << 10};
  const auto parts = [&](const Axes& axes) { return StridedCopy(axes, 4, -1, of_1_mib).parts(); };
  EXPECT_EQ(parts({{64, 1, 64}, {64, 64, 1}}), 1);
  EXPECT_EQ(parts({{16 << 20, 1, 1}}), 512);                  // one run
  EXPECT_EQ(parts({{4096, 1, 4096}, {4096, 4096, 1}}), 512);  // transpose
  EXPECT_EQ(parts({{512, 512 * 64, 64}, {512, 64, 512 * 64}, {64, 1, 1}}), 512);
  EXPECT_EQ(parts({{16 << 20, 1, 0}}), 512);  // fill
}

TEST_F(StridedCopyTest, PartsRunAtTheSameTime) {
  const std::int64_t rows = 1111, columns = 2002;
  const Axes axes{{rows, 1, columns}, {columns, rows, 1}};
  const Bytes src = noise(static_cast<std::size_t>(rows * columns) * 4);
  Bytes dst(src.size()), expected(src.size());
  naive_copy(axes, 0, expected.data(), src.data(), 4);
  const StridedCopy copy(axes, 4, always_stream);
  ASSERT_GE(copy.parts(), 8);
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t part = t; part < copy.parts(); part += 4)
        copy.run(dst.data(), src.data(), part);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(dst == expected);
}

}  // namespace
}  // namespace ein::host
