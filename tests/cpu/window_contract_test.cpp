// Contractions one of whose operands is read by windows, as convolutions and their gradients are:
// the kernels beside the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <ein/parallel.hpp>
#include "cpu/gemm.hpp"
#include "cpu/kernel.hpp"
#include "oracle/execute.hpp"
#include "support/random_nests.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::NestMemory;

/// Axes of a convolution in a nest, the windowed ones in pairs: a place and an element of the
/// window there.
struct Convolution {
  enum Axis : std::size_t { b, g, y, x, ky, kx, c, o, count };
};

/// A dimension of a tensor: one axis, or a place and an element of its window, or, behind an axis
/// of the result, a gap.
struct Dimension {
  std::vector<std::pair<std::size_t, std::int64_t>> axes;  // and how far a step is
  std::int64_t size = 1, first = 0;                        // where index 0 of the axes is
};

class RandomWindows {
 public:
  LoopNest nest;
  NestMemory memory;

  RandomWindows(std::mt19937& random, DType dtype, DType result, DType compute, int scale)
      : random_(random), dtype_(dtype) {
    using A = Convolution;
    static constexpr const char* names[] = {"b", "g", "y", "x", "ky", "kx", "c", "o"};
    const bool is_flat = pick(0, 3) == 0;
    const int sizes[A::count] = {pick(1, 3),
                                 pick(0, 3) == 0 ? pick(1, 3) : 1,
                                 is_flat ? 1 : pick(1, 4 * scale),
                                 pick(1, 12 * scale),
                                 is_flat ? 1 : pick(1, 3),
                                 pick(1, 5),
                                 pick(1, pick(0, 1) == 0 ? 4 : 16 * scale),
                                 pick(1, pick(0, 1) == 0 ? 4 : 16 * scale)};
    for (std::size_t a = 0; a < A::count; ++a) nest.axes.push_back({names[a], sizes[a]});
    const bool of_weights = pick(0, 3) == 0;  // their gradient
    for (std::size_t a : of_weights ? std::vector<std::size_t>{A::b, A::y, A::x}
                                    : std::vector<std::size_t>{A::ky, A::kx, A::c})
      nest.axes[a].reduced = true;
    LoopNest::Operand image =
        operand({axis(A::b), axis(A::g), window(A::y, A::ky), window(A::x, A::kx), axis(A::c)},
                dtype, false);
    LoopNest::Operand other =
        of_weights
            ? operand({axis(A::b), axis(A::g), axis(A::y), axis(A::x), axis(A::o)}, dtype, false)
            : operand({axis(A::g), axis(A::ky), axis(A::kx), axis(A::c), axis(A::o)}, dtype, true);
    nest.inputs = {std::move(image), std::move(other)};
    if (pick(0, 1) == 0) std::swap(nest.inputs[0], nest.inputs[1]);
    const std::vector<Dimension> kept =
        of_weights
            ? std::vector<Dimension>{axis(A::g), axis(A::ky), axis(A::kx), axis(A::c), axis(A::o)}
            : std::vector<Dimension>{axis(A::b), axis(A::g), axis(A::y), axis(A::x), axis(A::o)};
    nest.output = operand(with_gaps(kept), result, false);
    nest.body = Ex::input(0) * Ex::input(1);
    nest.combine = Combine::sum;
    nest.compute = compute;
    if (pick(0, 1) == 0) add_epilogue(kept);
    simplify(nest);
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  Dimension axis(std::size_t a) const { return {{{a, 1}}, nest.axes[a].size}; }

  /// Strides and dilations, forwards or backwards, with what no window reads at both ends.
  Dimension window(std::size_t place, std::size_t element) {
    const std::int64_t stride = pick(0, 2) == 0 ? pick(2, 3) : 1,
                       dilation = pick(0, 3) == 0 ? pick(2, 3) : 1;
    const std::int64_t reach = (nest.axes[element].size - 1) * dilation;
    const bool is_flipped = pick(0, 3) == 0;
    Dimension dimension{{{place, stride}, {element, is_flipped ? -dilation : dilation}}};
    dimension.first = pick(0, 2) + (is_flipped ? std::int64_t(reach) : 0);
    dimension.size = 4 + (nest.axes[place].size - 1) * stride + reach;
    return dimension;
  }

  /// A part of a larger result, as what lies inside of its borders.
  std::vector<Dimension> with_gaps(std::vector<Dimension> dimensions) {
    if (pick(0, 1) == 0) return dimensions;
    for (Dimension& dimension : dimensions) {
      if (pick(0, 2) != 0) continue;
      dimension.first += pick(0, 2);
      dimension.size += dimension.first + pick(0, 2);
    }
    return dimensions;
  }

  /// A tensor with these dimensions in any order.
  LoopNest::Operand operand(std::vector<Dimension> dimensions, DType dtype, bool may_be_flipped) {
    LoopNest::Operand operand{.dtype = dtype, .strides = std::vector<Size>(nest.axes.size(), 0)};
    if (pick(0, 2) != 0) std::shuffle(dimensions.begin(), dimensions.end(), random_);
    std::int64_t stride = 1, offset = 0;
    for (std::size_t d = dimensions.size(); d-- > 0;) {
      const Dimension& dimension = dimensions[d];
      offset += dimension.first * stride;
      for (const auto& [a, step] : dimension.axes) {
        const bool is_flipped =
            may_be_flipped && a >= Convolution::ky && a <= Convolution::kx && pick(0, 3) == 0;
        if (is_flipped) offset += (nest.axes[a].size - 1) * step * stride;
        operand.strides[a] = (is_flipped ? -step : step) * stride;
      }
      stride *= dimension.size;
    }
    operand.offset = offset;
    operand.buffer = memory.add(random_, dtype, stride);
    return operand;
  }

  void add_epilogue(const std::vector<Dimension>& kept) {
    Ex value = Ex::input(0);
    for (int n = pick(0, 2); n >= 0; --n) {
      std::vector<Dimension> some;
      for (const Dimension& dimension : kept) {
        if (n == 0 || pick(0, 1) == 0) some.push_back(dimension);
      }
      nest.inputs.push_back(operand(some, dtype_, false));
      value = value + Ex::input(static_cast<int>(nest.inputs.size()) - 1);
    }
    nest.epilogue = Ex::apply(ScalarOp::max, value, Ex(0.0));
  }

  std::mt19937& random_;
  DType dtype_;
};

/// What a kernel makes of an output, on so many threads.
std::vector<std::byte> result_of(const host::Kernel& kernel, NestMemory memory, int output,
                                 int threads) {
  const int usual = num_threads();
  set_num_threads(threads);
  std::vector<std::byte*> buffers;
  for (auto& bytes : memory.bytes) buffers.push_back(bytes.data());
  std::vector<std::byte> workspace(kernel.workspace_bytes(threads) + 64);
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) / 64 * 64);
  kernel.run({buffers, aligned, {}, threads});
  set_num_threads(usual);
  return memory.bytes[static_cast<std::size_t>(output)];
}

void expect_computes(const LoopNest& nest, NestMemory memory) {
  const std::string text = to_string(nest);
  DoubleBuffers want = memory.values;
  execute(nest, want);
  const auto kernel = host::make_kernel(nest);
  // No operand is written out window by window.
  if (is_floating(nest.compute) && !host::products_are_by_eigen()) {
    std::size_t bytes = 0;
    for (const auto& values : memory.values) bytes += values.size() * size_of(nest.compute) + 64;
    ASSERT_LE(kernel->workspace_bytes(1), bytes) << text;
  }
  const int output = nest.output.buffer;
  const std::vector<std::byte> alone = result_of(*kernel, memory, output, 1);
  // Eigen's products may differ where another number of threads cuts them.
  if (!host::products_are_by_eigen()) {
    ASSERT_EQ(alone, result_of(*kernel, memory, output, 2)) << "threads change the result of\n"
                                                            << text;
  }
  memory.bytes[static_cast<std::size_t>(output)] = alone;
  double terms = 1;
  for (const auto& axis : nest.axes) terms *= axis.reduced ? static_cast<double>(axis.size) : 1;
  const double unit = nest.output.dtype == DType::bf16  ? 0x1p-8
                      : nest.output.dtype == DType::f16 ? 0x1p-11
                      : nest.output.dtype == DType::f64 ? 0x1p-53
                                                        : 0x1p-24;
  const double of_terms = nest.compute == DType::f64 ? 0x1p-53 : 0x1p-24;
  const std::vector<double>& values = want[static_cast<std::size_t>(output)];
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(memory.value(output, i), values[i],
                2 * unit * (1 + std::abs(values[i])) + 4 * of_terms * terms)
        << "[" << i << "]\n"
        << text;
}

struct Types {
  DType operands, result, compute;
};

void expect_random_windows_compute(const Types& types, unsigned seeds) {
  test::for_seeds(seeds, [&](unsigned seed) {
    std::mt19937 random(seed);
    const int scale = seed % 20 == 0 ? 3 : seed % 2 == 0 ? 2 : 1;
    const RandomWindows windows(random, types.operands, types.result, types.compute, scale);
    expect_computes(windows.nest, windows.memory);
  });
}

TEST(WindowContract, F32) {
  expect_random_windows_compute({DType::f32, DType::f32, DType::f32}, 400);
}
TEST(WindowContract, F64) {
  expect_random_windows_compute({DType::f64, DType::f64, DType::f64}, 120);
}
TEST(WindowContract, Bf16) {
  expect_random_windows_compute({DType::bf16, DType::bf16, DType::f32}, 240);
}
TEST(WindowContract, Bf16ToF32) {
  expect_random_windows_compute({DType::bf16, DType::f32, DType::f32}, 100);
}
TEST(WindowContract, F16) {
  expect_random_windows_compute({DType::f16, DType::f16, DType::f32}, 100);
}
TEST(WindowContract, F32ToBf16) {
  expect_random_windows_compute({DType::f32, DType::bf16, DType::f32}, 80);
}

TEST(WindowContract, Integers) {
  test::for_seeds(200, [&](unsigned seed) {
    std::mt19937 random(seed);
    RandomWindows windows(random, DType::i32, DType::i32, DType::i64, 1);
    for (std::size_t b = 0; b < windows.memory.values.size(); ++b) {
      for (std::size_t i = 0; i < windows.memory.values[b].size(); ++i) {
        const double value = std::uniform_int_distribution<int>(-50, 50)(random);
        windows.memory.values[b][i] = value;
        store_from(&value, 1, windows.memory.bytes[b].data() + i * size_of(DType::i32), DType::i32,
                   1);
      }
    }
    expect_computes(windows.nest, windows.memory);
  });
}

// Large enough for blocks of depth that are read as they lie, on both threads.
TEST(WindowContract, RowsReadAsTheyLie) {
  std::mt19937 random(1);
  for (const std::int64_t channels : {32, 40}) {
    for (const std::int64_t step : {1, 2}) {
      const std::int64_t places = 26, window = 3, columns = 36;
      const std::int64_t side = (places - 1) * step + window;
      NestMemory memory;
      LoopNest nest;
      nest.axes = {{"y", places},        {"x", places},         {"ky", window, true},
                   {"kx", window, true}, {"c", channels, true}, {"o", columns}};
      const Size row = side * channels;
      nest.inputs = {
          {.buffer = memory.add(random, DType::f32, side * row),
           .strides = {step * row, step * channels, row, channels, 1, 0}},
          {.buffer = memory.add(random, DType::f32, window * window * channels * columns),
           .strides = {0, 0, window * channels * columns, channels * columns, columns, 1}}};
      nest.output = {.buffer = memory.add(random, DType::f32, places * places * columns),
                     .strides = {places * columns, columns, 0, 0, 0, 1}};
      nest.body = Ex::input(0) * Ex::input(1);
      nest.combine = Combine::sum;
      expect_computes(nest, memory);
    }
  }
}

}  // namespace
}  // namespace ein
