// Reductions of pairs in tiles as CUDA C++, run on the host against the interpreter; and which
// reductions are computed so.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <ein/ein.hpp>
#include "backend/backend.hpp"
#include "passes/contraction_order.hpp"
#include "passes/copy_maps.hpp"
#include "passes/simplify.hpp"
#include "support/attention_cases.hpp"
#include "support/emitted_cases.hpp"

namespace ein::test {
namespace {

/// A GPU for which the smallest results come in tiles, as large as their sizes allow.
GpuTarget tiny_gpu() {
  GpuTarget target;
  target.sms = 1;
  target.least_tile_side = target.least_tile_depth = target.least_tiles = 1;
  return target;
}

bool is_in_tiles(const std::vector<KernelSource>& kernels) {
  return !kernels.empty() && kernels[0].name.starts_with("pairs_");
}

/// Lends what makes tensors.
struct Elements : EmitTest {
  using EmitTest::random_tensor;
};

class EmitPairsTest : public EmitTest {
 protected:
  static Emission for_gpu(const GpuTarget& target) {
    return [=](const LoopNest& nest, const std::string& suffix) {
      return codegen::emit(nest, target, suffix);
    };
  }
  std::size_t count_in_tiles() const {
    std::size_t count = 0;
    for (const Case& c : cases_)
      count +=
          static_cast<std::size_t>(std::count_if(c.kernels.begin(), c.kernels.end(), is_in_tiles));
    return count;
  }

  /// f of tensors, as a compiled function has it.
  Case& add_call(const Function& f, const std::vector<Tensor>& arguments, const GpuTarget& target,
                 const Tolerance& tolerance) {
    const CompiledProgram c = compiled(arguments, f, [](Program&, std::span<const int>) {});
    Case& added =
        add(copy_maps(order_contractions(simplify(c.graph))), c.inputs, tolerance, for_gpu(target));
    added.graph = c.graph;
    return added;
  }
};

/// combine over d and e of f(x, y, z...), and maybe something of that: x lies along i, p and mostly
/// the depth, y along j and the depth, the others anywhere but along i, j and the depth at once.
class RandomPairs {
 public:
  enum Letter { b, i, p, j, d, e };

  RandomPairs(Random& random, std::uint64_t number) : random_(random) {
    constexpr std::int64_t sides[] = {1, 2, 15, 16, 17, 31, 33, 48, 64, 65, 70, 130, 0},
                           depths[] = {1, 2, 7, 8, 15, 16, 17, 32, 33, 48, 0};
    const auto side = [&] { return sides[below(random, below(random, 6) == 0 ? 13 : 12)]; };
    const std::int64_t small = 1 + below(random, 3);
    axes_ = {{"b", below(random, 3) == 0 ? 1 + below(random, 3) : 1},
             {"i", side()},
             {"p", below(random, 4) == 0 ? small : 1},
             {"j", side()},
             {"d", depths[below(random, below(random, 6) == 0 ? 11 : 10)]},
             {"e", below(random, 4) == 0 ? small : 1}};
    constexpr DType types[] = {DType::f32, DType::f32, DType::f64, DType::i64};
    compute_ = types[number % 4];

    const bool has_batch = below(random, 2) == 0;
    const auto with_batch = [&](std::vector<int> axes) {
      if (has_batch) axes.push_back(b);
      return axes;
    };
    const bool is_still = below(random, 4) == 0;
    add_input(with_batch(is_still ? std::vector<int>{i, p} : std::vector<int>{i, p, d, e}));
    add_input(with_batch({j, d, e}));
    const std::vector<std::vector<int>> others{{},  {d, e},    {i},    {j, p}, {i, j},
                                               {b}, {b, i, j}, {i, d}, {j, e}, {b, d}};
    for (std::int64_t more = below(random, 3); more > 0; --more)
      add_input(others[static_cast<std::size_t>(below(random, std::ssize(others)))]);
    write();
  }

  Graph graph;
  std::vector<Tensor> inputs;
  Tolerance tolerance;

 private:
  DType dtype_of_input() {
    constexpr DType singles[] = {DType::f32, DType::f32, DType::bf16, DType::f16},
                    doubles[] = {DType::f64, DType::f32},
                    wholes[] = {DType::i64, DType::i32, DType::u8};
    return compute_ == DType::f32   ? singles[below(random_, 4)]
           : compute_ == DType::f64 ? doubles[below(random_, 2)]
                                    : wholes[below(random_, 3)];
  }
  Shape shape_of(const std::vector<int>& axes) const {
    Shape shape;
    for (const int a : axes) shape.push_back(axes_[static_cast<std::size_t>(a)].size);
    return shape;
  }
  void add_input(std::vector<int> axes) {
    std::shuffle(axes.begin(), axes.end(), random_);
    const DType dtype = dtype_of_input();
    Tensor x = Elements::random_tensor(shape_of(axes), dtype, random_);
    if (is_floating(dtype) && below(random_, 6) == 0 && x.numel() > 0) {
      Values values = get_values(x);
      values[static_cast<std::size_t>(below(random_, std::ssize(values)))] =
          below(random_, 2) == 0 ? NAN : -INFINITY;
      set_values(x, values);
    }
    map_.inputs.push_back(static_cast<ValueId>(graph.ops.size()));
    map_.reads.push_back(plain(axes));
    graph.ops.push_back({.kind = OpKind::input, .dtype = dtype, .shape = x.shape()});
    inputs.push_back(std::move(x));
  }

  Ex body() {
    const Ex x = Ex::input(0), y = Ex::input(1);
    const Ex squared = (x - y) * (x - y);
    std::vector<Ex> bodies{
        x + y,
        squared,
        Ex::apply(ScalarOp::abs, x - y),
        Ex::apply(ScalarOp::max, x, y) - y,
        Ex::apply(ScalarOp::gt, x, y),
        Ex::apply(ScalarOp::remainder, x, y),
        Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::le, Ex::index(i), Ex::index(j)), x, y),
        x * Ex::index(d) - y};
    if (is_floating(compute_)) bodies.push_back(Ex::apply(ScalarOp::exp, x - y));
    if (is_floating(compute_)) bodies.push_back(x / (y * y + Ex(1.0)));
    const auto which = below(random_, std::ssize(bodies));
    if (which > 7) tolerance = {2e-5, 2e-5};
    Ex result = bodies[static_cast<std::size_t>(which)];
    for (std::size_t k = 2; k < inputs.size(); ++k) {
      const Ex z = Ex::input(static_cast<int>(k));
      result = below(random_, 2) == 0 ? result + z : Ex::apply(ScalarOp::min, result, z);
    }
    return result;
  }

  void write() {
    std::vector<int> all{b, i, p, j, d, e}, kept{b, i, p, j};
    std::shuffle(kept.begin(), kept.end(), random_);
    map_.dtype = map_.compute = compute_;
    map_.shape = shape_of(all);
    map_.axes = axes_;
    map_.write = plain(all);
    map_.expr = body();
    graph.ops.push_back(map_);
    constexpr Combine combines[] = {Combine::sum,  Combine::sum, Combine::max, Combine::min,
                                    Combine::prod, Combine::any, Combine::all};
    Op reduce{.kind = OpKind::reduce,
              .dtype = compute_,
              .shape = shape_of(kept),
              .inputs = {last()},
              .axes = axes_,
              .reads = {plain(all)},
              .write = plain(kept),
              .combine = combines[below(random_, std::ssize(combines))]};
    // The greatest and the least of no integers are no doubles.
    if (compute_ == DType::i64 && points(d) == 0 && info(reduce.combine).selects)
      reduce.combine = Combine::sum;
    // Of many factors the product leaves the range; when, depends on their order.
    if (reduce.combine == Combine::prod) {
      Op& map = graph.ops.back();
      map.expr = Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::lt, Ex::of(map.expr), one()), one(),
                           one() + one());
      if (compute_ != DType::i64 && points(d) * points(e) > 100) reduce.combine = Combine::sum;
    }
    graph.ops.push_back(reduce);
    if (below(random_, 2) == 0) add_map_of_result(reduce);
    graph.outputs = {last()};
    verify(graph);
  }
  /// Twice the result less 1, which the kernel does itself; or less what lies along some of its
  /// axes, in another type maybe, which is a kernel of its own.
  void add_map_of_result(const Op& reduce) {
    std::vector<Axis> axes;
    std::vector<int> all, some;
    for (std::size_t a = 0; a < reduce.shape.rank(); ++a) {
      axes.push_back({std::string(1, static_cast<char>('q' + a)), reduce.shape[a]});
      all.push_back(static_cast<int>(a));
      if (below(random_, 2) == 0) some.push_back(static_cast<int>(a));
    }
    Op map{.kind = OpKind::map,
           .dtype = compute_ == DType::f32 && below(random_, 2) == 0 ? DType::bf16 : compute_,
           .shape = reduce.shape,
           .inputs = {last()},
           .axes = axes,
           .reads = {plain(all), plain(some)},
           .write = plain(all),
           .compute = compute_};
    const Ex two = one() + one();
    if (below(random_, 2) == 0) {
      map.dtype = compute_;
      map.reads = {plain(all)};
      map.expr = Ex::input(0) * two - one();
      graph.ops.push_back(map);
      return;
    }
    map.expr = Ex::input(0) * two - Ex::input(1);
    Shape shape;
    for (const int a : some) shape.push_back(reduce.shape[static_cast<std::size_t>(a)]);
    const DType dtype = dtype_of_input();
    // Inputs come first.
    const auto at = static_cast<std::ptrdiff_t>(inputs.size());
    graph.ops.insert(graph.ops.begin() + at,
                     {.kind = OpKind::input, .dtype = dtype, .shape = shape});
    for (std::size_t o = static_cast<std::size_t>(at) + 1; o < graph.ops.size(); ++o) {
      for (ValueId& input : graph.ops[o].inputs) input += input >= static_cast<ValueId>(at) ? 1 : 0;
    }
    map.inputs = {last(), static_cast<ValueId>(at)};
    graph.ops.push_back(map);
    inputs.push_back(Elements::random_tensor(shape, dtype, random_));
  }
  Ex one() const { return is_floating(compute_) ? Ex(1.0) : Ex::integer(1); }
  std::int64_t points(Letter axis) const { return axes_[static_cast<std::size_t>(axis)].size; }
  ValueId last() const { return static_cast<ValueId>(graph.ops.size()) - 1; }

  Random& random_;
  std::vector<Axis> axes_;
  DType compute_ = DType::f32;
  Op map_{.kind = OpKind::map};
};

TEST_F(EmitPairsTest, RandomPairs) {
  for (std::uint64_t n = 0; n < seeds_or(160); ++n) {
    Random random(suite_seed() + 9000 + n);
    RandomPairs pairs(random, n);
    add(std::move(pairs.graph), std::move(pairs.inputs), pairs.tolerance, for_gpu(tiny_gpu()));
  }
  check_all();
  std::cout << count_in_tiles() << " in tiles\n";
  EXPECT_GE(count_in_tiles(), at_least(110));
}

/// What functions of tensors become, with their gradients.
TEST_F(EmitPairsTest, OfFunctions) {
  Random random(suite_seed() + 9500);
  using Tensors = std::vector<Tensor>;
  using Arguments = std::span<const Tensor>;
  const auto squared = [](const Tensor& x, const Tensor& y) { return (x - y) * (x - y); };
  const Tolerance close{1e-4, 1e-4};
  const Tensor x = random_tensor({2, 37, 21}, DType::f32, random),
               y = random_tensor({2, 45, 21}, DType::f32, random);
  add_call(
      [&](Arguments t) {
        return Tensors{map(t[0], t[1], "b i d, b j d -> b i j", squared, "sum")};
      },
      {x, y}, tiny_gpu(), {});
  EXPECT_EQ(count_in_tiles(), 1u);
  add_call(
      [&](Arguments t) {
        const auto scale = [&](const Tensor& a, const Tensor& w) { return a + w * t[2]; };
        return Tensors{map(t[0], t[1], "b i d, b j d -> b j i", scale, "logsumexp")};
      },
      {x, y, random_tensor({}, DType::f32, random)}, tiny_gpu(), close);
  EXPECT_EQ(count_in_tiles(), 3u);  // the greatest, and the sum
  // The gradient keeps an element of x for each result.
  add_call(
      [&](Arguments t) {
        Tensor leaf = t[0].detach();
        leaf.requires_grad(true);
        const auto power = [](const Tensor& a, const Tensor& w) { return exp(-abs(a - w)); };
        const Tensor sums = map(leaf, t[1], "b i d, b j d -> b i j", power, "sum");
        const Tensors leaves{leaf};
        return Tensors{gradients(sums, t[2], leaves).front()};
      },
      {x, y, random_tensor({2, 37, 45}, DType::f32, random)}, tiny_gpu(), close);
  EXPECT_EQ(count_in_tiles(), 4u);
  // A map of the results alone is the epilogue of the kernel.
  const Case& finished = add_call(
      [&](Arguments t) {
        return Tensors{exp(-map(t[0], t[1], "b i d, b j d -> b i j", squared, "sum"))};
      },
      {x, y}, tiny_gpu(), close);
  EXPECT_EQ(finished.kernels.size(), 1u) << text_of(finished);
  EXPECT_EQ(count_in_tiles(), 5u);
  check_all();
}

/// Long sums are taken in runs; where results are few, by several blocks.
TEST_F(EmitPairsTest, OfGreatDepth) {
  Random random(suite_seed() + 9600);
  const auto add_sum = [&](std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                           const GpuTarget& target) -> const Case& {
    const auto distance = [](const Tensor& x, const Tensor& y) { return abs(x - y); };
    return add_call(
        [&](std::span<const Tensor> t) {
          const Tensor sums = map(t[0], t[1], "i d, j d -> i j", distance, "sum");
          return std::vector<Tensor>{sums + t[2]};
        },
        {random_tensor({m, k}, dtype, random), random_tensor({n, k}, dtype, random),
         random_tensor({n}, dtype, random)},
        target, {});
  };
  GpuTarget busy = tiny_gpu();
  busy.sms = 16;
  for (const DType dtype : {DType::f32, DType::f64, DType::i64}) {
    for (const std::int64_t depth : {512, 513, 1024, 1100}) {
      const Case& c = add_sum(40, 70, depth, dtype, tiny_gpu());
      const std::string& text = c.kernels.at(0).at(0).text;
      EXPECT_EQ(text.find("total[i][j]") != text.npos, dtype != DType::i64 && depth > 512) << text;
    }
    EXPECT_EQ(add_sum(40, 70, 1024, dtype, busy).kernels.at(0).size(), 2u);
  }
  EXPECT_EQ(count_in_tiles(), 15u);
  // What is done to a result is done to the sum of all pieces.
  const Case& finished = add_call(
      [](std::span<const Tensor> t) {
        const auto distance = [](const Tensor& x, const Tensor& y) { return abs(x - y); };
        return std::vector<Tensor>{sqrt(map(t[0], t[1], "i d, j d -> i j", distance, "sum"))};
      },
      {random_tensor({40, 1024}, DType::f32, random),
       random_tensor({70, 1024}, DType::f32, random)},
      busy, {});
  EXPECT_EQ(finished.kernels.size(), 1u) << text_of(finished);
  EXPECT_EQ(finished.kernels.at(0).size(), 2u) << text_of(finished);
  // A piece would not know where it begins.
  const Case& weighted =
      add(graph_of_pairs(DType::f32, DType::f32, {40, 70, 1024},
                         (Ex::input(0) - Ex::input(1)) * Ex::index(2), Combine::max),
          {random_tensor({40, 1024}, DType::f32, random),
           random_tensor({70, 1024}, DType::f32, random)},
          {}, for_gpu(busy));
  EXPECT_TRUE(is_in_tiles(weighted.kernels.back())) << text_of(weighted);
  EXPECT_EQ(weighted.kernels.back().size(), 1u) << text_of(weighted);
  check_all();
}

/// In one sum each addition would round to the places of the whole.
TEST_F(EmitPairsTest, RunsKeepWhatAPlainSumLoses) {
  const std::int64_t depth = 1 << 16;
  const Tensor x = make_tensor(Values(static_cast<std::size_t>(2 * depth), 0.1f), {2, depth}),
               y = make_tensor(Values(static_cast<std::size_t>(2 * depth), 0.2f), {2, depth});
  add_call(
      [](std::span<const Tensor> t) {
        return std::vector<Tensor>{map(t[0], t[1], "i d, j d -> i j", fn::maximum, "sum")};
      },
      {x, y}, tiny_gpu(), {3e-5, 0});
  EXPECT_EQ(count_in_tiles(), 1u);
  check_all();
}

/// The first kernel of a reduction over `depth` of a function of rows and columns.
std::string kernel_for(const Shape& x, const Shape& y, const std::string& pattern, DType dtype,
                       const GpuTarget& target = {}) {
  const CompiledProgram c = compiled(
      {zeros(x, dtype), zeros(y, dtype)},
      [&](std::span<const Tensor> t) {
        const auto distance = [](const Tensor& a, const Tensor& w) { return abs(a - w); };
        return std::vector<Tensor>{map(t[0], t[1], RuntimeText{pattern}, distance, "sum")};
      },
      [](Program& program, std::span<const int>) { engine::backend_of(cuda).group(program); });
  return codegen::emit(c.program, c.program.groups.at(0), target).at(0).name;
}

TEST_F(EmitPairsTest, ChosenBySize) {
  const auto name = [](std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::f32) {
    return kernel_for({m, k}, {n, k}, "i d, j d -> i j", dtype);
  };
  EXPECT_EQ(name(1024, 1024, 64), "pairs_f32");
  EXPECT_EQ(name(1000, 77, 300), "pairs_f32");
  EXPECT_EQ(name(512, 512, 64, DType::bf16), "pairs_bf16");
  EXPECT_EQ(name(512, 512, 64, DType::f64), "pairs_f64");
  EXPECT_EQ(name(512, 512, 64, DType::i64), "pairs_i64");
  // In pieces of the depth.
  EXPECT_EQ(name(64, 64, 16384), "pairs_f32");
  // Few results, few rows, few columns, little depth.
  EXPECT_EQ(name(64, 64, 64), "reduce_rows_f32");
  EXPECT_EQ(name(15, 100000, 64), "reduce_rows_f32");
  EXPECT_EQ(name(100000, 15, 64), "reduce_rows_f32");
  EXPECT_EQ(name(1024, 1024, 7), "reduce_rows_f32");
  // Each element serves one result.
  EXPECT_EQ(kernel_for({1024, 1024, 64}, {1024, 1024, 64}, "i j d, i j d -> i j", DType::f32),
            "reduce_rows_f32");
}

}  // namespace
}  // namespace ein::test
