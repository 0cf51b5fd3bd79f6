// Contractions by tensor cores as CUDA C++, run on the host against the interpreter: mma.sync, and
// wgmma with its tensor maps and barriers.
#include <algorithm>

#include "support/emitted_cases.hpp"

namespace ein::test {
namespace {

class EmitContractTest : public EmitTest {
 protected:
  /// Emits the alternative of this number, counted around, whose name begins so. Where there is
  /// none, the test fails.
  Emission by(const std::string& kind, const GpuTarget& target, std::uint64_t number) {
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
  for (std::uint64_t i = 0; i < seeds_or(120); ++i) {
    Random random(suite_seed() + 5000 + i);
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
  if (seeds_or(120) == 120) {
    for (const char* tile : {"128x256x32", "128x128x32", "128x128x64", "64x64x32", "64x128x32",
                             "128x64x32", "128x128x16", "64x64x64"}) {
      EXPECT_TRUE(std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
        return name.find(tile) != name.npos;
      })) << tile;
    }
  }
}

TEST_F(EmitContractTest, ChosenBySize) {
  Random random(suite_seed() + 5500);
  const GpuTarget target{.accelerated = false};
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
  EXPECT_EQ(cases_[0].kernels[0][0].grid()[0], 10u * 14u);
  EXPECT_EQ(einsum("k m, k n -> m n", {3072, 70}, {3072, 70}).kernels.at(0).size(), 2u);
  check_all();
}

/// Hopper's kernel on a few multiprocessors, which go from tile to tile. The first half has every
/// pattern and type.
class EmitContractHalves : public EmitContractTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(First, EmitContractHalves, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(SlowSecond, EmitContractHalves, testing::Values(1));

TEST_P(EmitContractHalves, ByWarpgroups) {
  constexpr std::int64_t sizes[] = {64, 72, 128, 136, 200, 256, 264, 320};
  const std::uint64_t half = seeds_or(18);
  const auto begin = half * static_cast<std::uint64_t>(GetParam());
  for (std::uint64_t i = begin; i < begin + half; ++i) {
    Random random(20250117 + 6000 + i);  // with others there may be none by wgmma
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

/// A contraction with bias, activation and residual, in one nest.
struct WithEpilogue {
  Graph graph;                 // the contraction alone
  std::vector<Tensor> inputs;  // its operands, the bias and the residual
  LoopNest nest;               // buffers 0 and 1, 2 for the result, 3 and 4
  std::vector<KernelSource> kernels;
};

TEST_F(EmitContractTest, Epilogues) {
  struct Kind {
    const char* name;
    DType dtype;
    GpuTarget target;
  };
  const Kind kinds[] = {{"threads", DType::f32, {}},
                        {"mma", DType::bf16, {.sm = 80, .accelerated = false}},
                        {"mma", DType::f16, {.sm = 80, .accelerated = false}},
                        {"wgmma", DType::bf16, {.sms = 3}}};
  const char* const forms[] = {"m k, n k -> m n", "k m, n k -> n m", "b m k, b k n -> b m n"};
  std::vector<WithEpilogue> all;
  for (std::uint64_t i = 0; i < seeds_or(48); ++i) {
    Random random(suite_seed() + 7000 + i);
    const Kind& kind = kinds[i % std::size(kinds)];
    const std::string form = forms[i / std::size(kinds) % std::size(forms)];
    const bool is_wgmma = kind.name == std::string("wgmma");
    std::map<char, std::int64_t> size{{'b', 2}};
    for (char axis : {'m', 'n', 'k'}) {
      constexpr std::int64_t sizes[] = {64, 72, 136, 160, 17, 33, 130};
      size[axis] = sizes[below(random, is_wgmma ? 4 : 7)];
    }
    if (is_wgmma) size['m'] = 136, size['n'] = 144;
    // Deep ones are cut, and those of few rows are reductions.
    const bool is_deep = i % 5 == 0 && !is_wgmma, is_flat = i % 7 == 0 && !is_wgmma;
    if (is_deep) size['k'] = 1040;
    if (is_flat) size['m'] = 1 + below(random, 3);
    const std::vector<Shape> shapes = shapes_of(form, size);
    WithEpilogue c{graph_of_pattern(Operation::einsum, form, shapes, kind.dtype), {}, {}, {}};
    for (const Shape& shape : shapes)
      c.inputs.push_back(with_gaps(shape, kind.dtype, is_wgmma ? 8 : below(random, 3), 0, random));
    const std::vector<InputLayout> layouts{{c.inputs[0].strides(), 0}, {c.inputs[1].strides(), 0}};
    c.nest = lower(c.graph, layouts).nests.at(0);
    // The bias goes along the rows, or along the columns, of the result.
    const bool along_inner = below(random, 2) == 0;
    LoopNest::Operand bias{.buffer = 3, .dtype = DType::f32}, residual = c.nest.output;
    std::int64_t biases = 1;
    for (std::size_t a = 0; a < c.nest.axes.size(); ++a) {
      const bool moves = !c.nest.axes[a].reduced &&
                         (c.nest.output.strides[a] == 1) == along_inner &&
                         c.nest.inputs[0].strides[a] * c.nest.inputs[1].strides[a] == 0;
      bias.strides.push_back(moves ? 1 : 0);
      if (moves) biases = c.nest.axes[a].size;
    }
    residual.buffer = 4;
    c.nest.inputs.push_back(bias);
    c.nest.inputs.push_back(residual);
    c.nest.epilogue = Ex::apply(ScalarOp::max, Ex::input(0) + Ex::input(2), Ex(0.0)) + Ex::input(3);
    const Tensor plain = random_tensor({biases}, DType::f32, random);
    c.inputs.push_back(make_tensor(get_values(plain), {biases}, DType::f32));
    const Shape result = c.graph.ops.back().shape;
    c.inputs.push_back(
        make_tensor(get_values(random_tensor(result, kind.dtype, random)), result, kind.dtype));
    const std::string suffix = "_" + std::to_string(i);
    c.kernels = is_flat ? codegen::emit(c.nest, kind.target, suffix)
                        : by(kind.name, kind.target, i)(c.nest, suffix);
    ASSERT_EQ(c.kernels.size(), is_deep && !is_flat ? 2u : c.kernels.size());
    for (const KernelSource& kernel : c.kernels) host_.add(kernel);
    all.push_back(std::move(c));
  }
  ASSERT_EQ(host_.build(), "");
  for (const WithEpilogue& c : all) {
    const std::vector<Values> sums =
        Interpreter<>::run(c.graph, {get_values(c.inputs[0]), get_values(c.inputs[1])}, {});
    const Shape& shape = c.inputs[3].shape();
    const DType dtype = c.inputs[3].dtype();
    const Tensor y = make_tensor(Values(sums[0].size(), 7), shape, dtype);
    std::vector<std::byte*> buffers{c.inputs[0].storage()->data(), c.inputs[1].storage()->data(),
                                    y.storage()->data(), c.inputs[2].storage()->data(),
                                    c.inputs[3].storage()->data()};
    const Fresh workspace(c.kernels[0].workspace_bytes);
    for (const KernelSource& kernel : c.kernels) {
      ASSERT_EQ(host_.run(kernel, buffers, workspace.storage()->data(), {}, nullptr), "")
          << kernel.name;
    }
    EXPECT_FALSE(workspace.is_overrun());
    const Values bias = get_values(c.inputs[2]), residual = get_values(c.inputs[3]);
    // Which of the result's dimensions the bias goes along.
    const bool along_inner = [&] {
      for (std::size_t a = 0; a < c.nest.axes.size(); ++a) {
        if (c.nest.inputs[2].strides[a] == 1) return c.nest.output.strides[a] == 1;
      }
      return true;
    }();
    const std::int64_t inner = shape[shape.rank() - 1], rows = shape[shape.rank() - 2];
    Values want(sums[0].size());
    for (std::size_t e = 0; e < want.size(); ++e) {
      const auto at = static_cast<std::int64_t>(e);
      const std::int64_t which = along_inner ? at % inner : at / inner % rows;
      want[e] = std::max(sums[0][e] + bias[static_cast<std::size_t>(which)], 0.0) + residual[e];
    }
    EXPECT_EQ(compare(get_values(y), want, dtype, {}), "")
        << to_string(c.nest) << c.kernels[0].text.substr(c.kernels[0].kernel_begin);
  }
}

}  // namespace
}  // namespace ein::test
