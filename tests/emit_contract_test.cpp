// Contractions by tensor cores as CUDA C++, run on the host against the interpreter: mma.sync, and
// wgmma with its tensor maps and barriers.
#include <algorithm>

#include "support/emitted_cases.hpp"

namespace ein::test {
namespace {

using codegen::Target;

class EmitContractTest : public EmitTest {
 protected:
  /// Emits the alternative of this number, counted around, whose name begins so. Where there is
  /// none, the test fails.
  Emission by(const std::string& kind, const Target& target, std::uint64_t number) {
    return [=, this](const LoopNest& nest, const std::string& suffix) {
      std::vector<codegen::Alternative> of_kind = codegen::alternatives(nest, target, suffix);
      std::erase_if(of_kind, [&](const codegen::Alternative& alternative) {
        return !alternative.name.starts_with(kind);
      });
      if (of_kind.empty()) {
        ADD_FAILURE() << "no alternative by " << kind << to_string(nest);
        return std::vector<KernelSource>();
      }
      const codegen::Alternative& chosen = of_kind[number % of_kind.size()];
      names_.insert(chosen.name);
      return chosen.kernels;
    };
  }

  /// Lines whose beginnings lie `gap` elements further apart than they must, after an offset.
  static Tensor with_gaps(const Shape& shape, DType dtype, std::int64_t gap, std::int64_t offset,
                          Random& random) {
    Strides strides(shape.rank(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = shape.rank(); i-- > 0;) {
      strides[i] = stride;
      stride *= shape[i];
      if (i + 1 == shape.rank()) stride += gap;
    }
    const Tensor x(Storage::allocate(static_cast<std::size_t>(stride + offset) * size_of(dtype)),
                   dtype, shape, strides, offset);
    Values values(static_cast<std::size_t>(numel(shape)));
    for (double& value : values) value = random_value(dtype, random);
    set_values(x, values);
    return x;
  }

  /// The shapes of a pattern's operands, of axes of one letter.
  static std::vector<Shape> shapes_of(const std::string& pattern,
                                      const std::map<char, std::int64_t>& sizes) {
    std::vector<Shape> shapes(1);
    for (char c : pattern.substr(0, pattern.find('-'))) {
      if (c == ',') shapes.emplace_back();
      if (sizes.contains(c)) shapes.back().push_back(sizes.at(c));
    }
    return shapes;
  }

  std::set<std::string> names_;  // of alternatives that were taken
};

constexpr const char* patterns[] = {
    "m k, k n -> m n",       "m k, n k -> m n",       "k m, k n -> n m",     "k m, n k -> m n",
    "b m k, b n k -> b m n", "m b k, k b n -> b m n", "m p k, p n k -> n m", "k m, n k -> n m",
    "b k m, n b k -> m b n", "q m k, n k -> n q m"};

/// Each order of operands, whole packs and ragged ones, every tile, every type of elements.
TEST_F(EmitContractTest, ByWarps) {
  constexpr std::int64_t sizes[] = {16, 17, 24, 40, 64, 65, 72, 128, 136, 200};
  constexpr DType dtypes[] = {DType::bf16,   DType::f16, DType::bf16,
                              DType::f8e4m3, DType::f32, DType::f8e5m2};
  for (std::uint64_t i = 0; i < 120 / share; ++i) {
    Random random(suite_seed + 5000 + i);
    const std::string pattern = patterns[i % std::size(patterns)];
    std::map<char, std::int64_t> size{{'b', 3}, {'p', 2}, {'q', 2}};
    for (char axis : {'m', 'n', 'k'}) size[axis] = sizes[below(random, std::ssize(sizes))];
    const std::vector<Shape> shapes = shapes_of(pattern, size);
    const DType dtype = dtypes[i % std::size(dtypes)];
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) {
      constexpr std::int64_t gaps[] = {0, 1, 2, 4, 8, 16};
      inputs.push_back(below(random, 3) == 0 ? random_tensor(shape, dtype, random)
                                             : with_gaps(shape, dtype, gaps[below(random, 6)],
                                                         gaps[below(random, 6)], random));
    }
    add(graph_of_pattern(Operation::einsum, pattern, shapes, dtype), inputs, {},
        by("mma", {.sm = 90, .accelerated = false, .sms = 132, .tf32 = true}, i));
  }
  check_all();
  for (const Case& c : cases_)
    EXPECT_TRUE(c.kernels.at(0).at(0).name.starts_with("contract_mma_")) << text_of(c);
  if (share == 1) {
    for (const char* tile : {"128x256x32", "128x128x32", "128x128x64", "64x64x32", "64x128x32",
                             "128x64x32", "128x128x16", "64x64x64"}) {
      EXPECT_TRUE(std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
        return name.find(tile) != name.npos;
      })) << tile;
    }
  }
}

TEST_F(EmitContractTest, ChosenBySize) {
  Random random(suite_seed + 5500);
  const Target target{.accelerated = false};
  const auto emission = [&](const LoopNest& nest, const std::string& suffix) {
    return codegen::emit(nest, target, suffix);
  };
  const auto einsum = [&](const std::string& pattern, const Shape& a, const Shape& b) -> Case& {
    return add(graph_of_pattern(Operation::einsum, pattern, {a, b}, DType::bf16),
               {random_tensor(a, DType::bf16, random), random_tensor(b, DType::bf16, random)}, {},
               emission);
  };
  // Groups of rows of tiles, the last of which is short.
  for (std::int64_t n : {1792, 1795}) einsum("m k, k n -> m n", {1280, 20}, {20, n});
  EXPECT_EQ(cases_[0].kernels[0][0].grid[0], 10u * 14u);
  EXPECT_EQ(einsum("k m, k n -> m n", {3072, 70}, {3072, 70}).kernels.at(0).size(), 2u);
  check_all();
}

/// Hopper's kernel on a few multiprocessors, which go from tile to tile.
TEST_F(EmitContractTest, ByWarpgroups) {
  constexpr std::int64_t sizes[] = {64, 72, 128, 136, 200, 256, 264, 320};
  for (std::uint64_t i = 0; i < 36 / share; ++i) {
    Random random(suite_seed + 6000 + i);
    const DType dtype = i % 6 == 5   ? i % 4 == 1 ? DType::f8e4m3 : DType::f8e5m2
                        : i % 2 == 0 ? DType::bf16
                                     : DType::f16;
    const bool small = size_of(dtype) == 1;
    const std::string pattern = small ? "b m k, b n k -> b m n" : patterns[i % std::size(patterns)];
    std::map<char, std::int64_t> size{{'b', 2}, {'p', 2}, {'q', 2}};
    for (char axis : {'m', 'n', 'k'}) size[axis] = sizes[below(random, std::ssize(sizes))];
    // A tile does not go on from one p to the next, and neither from one q.
    if (pattern.find('p') != pattern.npos) size['k'] = i % 3 == 0 ? 64 : 128;
    if (pattern.find('q') != pattern.npos) size['m'] = 128 * (1 + below(random, 2));
    if (small) size['k'] = 16 * (8 + below(random, 12));
    const std::vector<Shape> shapes = shapes_of(pattern, size);
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes)
      inputs.push_back(
          with_gaps(shape, dtype, 16 * below(random, 3), 16 * below(random, 2), random));
    add(graph_of_pattern(Operation::einsum, pattern, shapes, dtype), inputs, {},
        by("wgmma", {.sms = static_cast<int>(1 + below(random, 4))}, i / 2));
  }
  check_all();
  for (const Case& c : cases_)
    EXPECT_TRUE(c.kernels.at(0).at(0).name.starts_with("contract_wgmma_")) << text_of(c);
}

}  // namespace
}  // namespace ein::test
