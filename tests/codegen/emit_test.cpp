// Loop nests as CUDA C++: the very text is compiled for the host and run there, against the
// interpreter; or on the GPU whose number EIN_TEST_DEVICE is.
#include <algorithm>
#include <numeric>

#include <ein/create.hpp>

#include "cpu/kernel.hpp"
#include "support/emitted_cases.hpp"
#include "support/random_slices.hpp"
#include "tensor/compute_type.hpp"

namespace ein::test {
namespace {

/// Axes of random sizes with about as many points as `budget` at most, named a, b, ...
std::vector<Axis> random_axes(Random& random, std::int64_t most,
                              std::span<const std::int64_t> sizes, std::int64_t budget) {
  std::vector<Axis> axes;
  for (std::int64_t a = below(random, most + 1); a > 0; --a) {
    std::int64_t size = below(random, 40) == 0
                            ? 0
                            : sizes[static_cast<std::size_t>(below(random, std::ssize(sizes)))];
    if (size > budget) size = 1;
    budget /= std::max<std::int64_t>(1, size);
    axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), size});
  }
  return axes;
}
std::vector<int> all_of(const std::vector<Axis>& axes) {
  std::vector<int> all(axes.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}
Shape shape_of(const std::vector<Axis>& axes, const std::vector<int>& list) {
  Shape shape;
  for (int a : list) shape.push_back(axes[static_cast<std::size_t>(a)].size);
  return shape;
}

/// A random expression: exact operations, and at the end maybe one that rounds.
class ExprMaker {
 public:
  ExprMaker(Random& random, int inputs, int axes, DType compute)
      : random_(random), inputs_(inputs), axes_(axes), compute_(compute) {}

  Ex make() {
    const Ex x = exact(static_cast<int>(below(random_, 4)));
    if (compute_ == DType::i64 || below(random_, 2) == 0) return x;
    rounds_ = true;
    constexpr ScalarOp functions[] = {
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) ScalarOp::name,
#define EIN_ROUNDING(name, reference, host, adjoint, cuda)
#define EIN_CONVERSION(name, reference, host, adjoint, cuda)
#include <ein/detail/scalar_functions.hpp>
    };
    if (below(random_, 3) == 0) return exact(1) / x;
    if (below(random_, 8) == 0)
      return Ex::apply(ScalarOp::pow, Ex::apply(ScalarOp::abs, x), Ex(1.5));
    if (below(random_, 12) == 0) return Ex::apply(ScalarOp::atan2, x, exact(1));
    if (below(random_, 12) == 0) return Ex::apply(ScalarOp::hypot, x, exact(1));
    return Ex::apply(functions[below(random_, std::ssize(functions))], x);
  }
  bool rounds() const { return rounds_; }

 private:
  Ex exact(int depth) {
    if (depth == 0) return leaf();
    const Ex a = exact(depth - 1);
    constexpr ScalarOp unary[] = {ScalarOp::neg, ScalarOp::abs, ScalarOp::logical_not};
    constexpr ScalarOp roundings[] = {
#define EIN_FUNCTION(name, reference, host, adjoint, cuda)
#define EIN_ROUNDING(name, reference, host, adjoint, cuda) ScalarOp::name,
#define EIN_CONVERSION(name, reference, host, adjoint, cuda)
#include <ein/detail/scalar_functions.hpp>
    };
    if (compute_ != DType::i64 && below(random_, 12) == 0)
      return Ex::apply(roundings[below(random_, std::ssize(roundings))], a);
    if (below(random_, 4) == 0) return Ex::apply(unary[below(random_, 3)], a);
    const Ex b = exact(static_cast<int>(below(random_, depth)));
    if (below(random_, 5) == 0) return Ex::apply(ScalarOp::where, leaf(), a, b);
    constexpr ScalarOp binary[] = {
        ScalarOp::add, ScalarOp::sub,         ScalarOp::mul,       ScalarOp::min, ScalarOp::max,
        ScalarOp::lt,  ScalarOp::le,          ScalarOp::gt,        ScalarOp::ge,  ScalarOp::eq,
        ScalarOp::ne,  ScalarOp::logical_and, ScalarOp::logical_or};
    constexpr ScalarOp of_integers[] = {ScalarOp::bit_and, ScalarOp::bit_or, ScalarOp::bit_xor,
                                        ScalarOp::shift_left, ScalarOp::shift_right};
    if (compute_ == DType::i64 && below(random_, 4) == 0)
      return Ex::apply(of_integers[below(random_, std::ssize(of_integers))], a, b);
    if (below(random_, 12) == 0) return Ex::apply(ScalarOp::remainder, a, b);
    return Ex::apply(binary[below(random_, std::ssize(binary))], a, b);
  }
  Ex leaf() {
    const std::int64_t kind = below(random_, 10);
    if (kind == 0 && axes_ > 0) return Ex::index(static_cast<int>(below(random_, axes_)));
    if (kind == 1 || inputs_ == 0) {
      const std::int64_t value = below(random_, 9) - 4;
      return compute_ == DType::i64    ? Ex::integer(value)
             : below(random_, 12) == 0 ? Ex(-INFINITY)
                                       : Ex(static_cast<double>(value) / 2);
    }
    return Ex::input(static_cast<int>(below(random_, inputs_)));
  }

  Random& random_;
  int inputs_, axes_;
  DType compute_;
  bool rounds_ = false;
};

TEST_F(EmitTest, RandomMaps) {
  constexpr std::int64_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 33, 64, 257};
  for (unsigned i = 0; i < seeds_or(400); ++i) {
    Random random(suite_seed() + 1000 + i);
    Op op{.kind = OpKind::map, .axes = random_axes(random, 4, sizes, 4000)};
    const std::vector<int> all = all_of(op.axes);
    op.shape = shape_of(op.axes, all);
    op.write = plain(all);
    constexpr DType types[] = {DType::f32, DType::f32, DType::f64, DType::i64};
    op.compute = types[below(random, 4)];
    std::vector<std::pair<DType, Shape>> types_of_inputs;
    std::vector<Tensor> inputs;
    const std::int64_t count = below(random, 4);
    for (std::int64_t k = 0; k < count; ++k) {
      std::vector<int> read = all;
      if (below(random, 3) == 0) std::shuffle(read.begin(), read.end(), random);
      if (!read.empty() && below(random, 3) == 0)
        read.erase(read.begin() + below(random, std::ssize(read)));
      DType dtype = random_dtype(random);
      if (op.compute == DType::i64 && is_floating(dtype)) dtype = DType::i64;
      if (op.compute == DType::f32 && dtype == DType::f64) dtype = DType::bf16;
      types_of_inputs.push_back({dtype, shape_of(op.axes, read)});
      op.reads.push_back(plain(read));
      inputs.push_back(random_tensor(types_of_inputs.back().second, dtype, random));
    }
    ExprMaker maker(random, static_cast<int>(count), static_cast<int>(all.size()), op.compute);
    op.expr = maker.make();
    op.dtype = op.compute == DType::i64 ? DType::i64 : random_dtype(random);
    // A value that is a little off may be truncated to another integer.
    if (is_integral(op.dtype) && op.dtype != DType::boolean) op.dtype = op.compute;
    if (maker.rounds() && op.dtype == DType::boolean) op.dtype = op.compute;
    const Tolerance tolerance = !maker.rounds()            ? Tolerance{}
                                : op.compute == DType::f64 ? Tolerance{1e-13, 1e-14}
                                                           : Tolerance{3e-6, 1e-7};
    add(graph_of(types_of_inputs, op), inputs, tolerance);
  }
  check_all();
}

// 1 / f(x) tells 0 from -0.
TEST_F(EmitTest, SignsOfZero) {
  const Values values{0, -0.0, 1, -1, INFINITY, -INFINITY};
  const auto n = static_cast<std::int64_t>(values.size());
  for (DType dtype : {DType::f32, DType::f64}) {
    const auto add_map = [&](const Ex& f) {
      Op op{.kind = OpKind::map,
            .dtype = dtype,
            .shape = {n, n},
            .axes = {{"a", n}, {"b", n}},
            .reads = {plain({0}), plain({1})},
            .write = plain({0, 1}),
            .expr = Ex(1.0) / f,
            .compute = dtype};
      add(graph_of({{dtype, {n}}, {dtype, {n}}}, op),
          {make_tensor(values, {n}, dtype), make_tensor(values, {n}, dtype)}, {1e-6, 0});
    };
    for (ScalarOp op : {ScalarOp::neg, ScalarOp::abs, ScalarOp::sqrt, ScalarOp::tanh, ScalarOp::erf,
                        ScalarOp::silu, ScalarOp::gelu})
      add_map(Ex::apply(op, Ex::input(0)) + Ex(0.0) * Ex::input(1));
    for (ScalarOp op :
         {ScalarOp::neg, ScalarOp::abs, ScalarOp::tanh, ScalarOp::silu, ScalarOp::gelu})
      add_map(Ex::apply(op, Ex::input(0)) * Ex::apply(ScalarOp::abs, Ex::input(1)));
    for (ScalarOp op : {ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::div})
      add_map(Ex::apply(op, Ex::input(0), Ex::input(1)));
  }
  check_all();
}

TEST_F(EmitTest, EveryConversion) {
  // Values at and beyond the limits of all dtypes, ties, subnormal numbers, infinities, NaN.
  Values values{0,
                -0.0,
                1,
                -1,
                0.5,
                -0.5,
                1.5,
                2.5,
                255,
                256,
                255.5,
                -3,
                448,
                464,
                465,
                479,
                480,
                57344,
                61440,
                61441,
                65504,
                65519,
                65520,
                1e6,
                2147483647,
                2147483648,
                -2147483648.0,
                -2147483649.0,
                9.3e18,
                -9.3e18,
                9223372036854774784.0,
                1e30,
                1e39,
                1e300,
                -1e300,
                3e-8,
                6e-8,
                8.9e-8,
                1.5e-5,
                7.6e-6,
                7.7e-6,
                0.001953125,
                0.0009765625,
                0.00098,
                1e-40,
                4.6e-41,
                1e-45,
                1e-300,
                INFINITY,
                -INFINITY,
                NAN,
                1 + 0x1p-8,
                1 + 0x1p-8 + 0x1p-30,
                1 + 3 * 0x1p-8,
                1 + 0x1p-11,
                1 + 0x1p-11 + 0x1p-40,
                1 + 0x1p-25,
                1.0625,
                1.125,
                1.1875};
  for (DType from : real_dtypes) {
    for (DType to : real_dtypes) {
      const auto n = static_cast<std::int64_t>(values.size());
      Op op{.kind = OpKind::map,
            .dtype = to,
            .shape = {n},
            .axes = {{"a", n}},
            .reads = {plain({0})},
            .write = plain({0})};
      op.expr = Ex::apply(ScalarOp::max, Ex::input(0), Ex::input(0));  // no mere copy
      op.compute = compute_type(from);
      Values held;
      for (double value : values) {
        const bool is_small = std::abs(value) < 1000;
        held.push_back(is_floating(from)        ? value
                       : from == DType::boolean ? value > 1
                       : std::isnan(value)      ? 7
                       : is_small
                           ? std::trunc(std::abs(value))
                           : stored(size_of(from) == 8 ? std::abs(value) : 2e9 + 55555, from));
      }
      add(graph_of({{from, {n}}}, op), {make_tensor(held, {n}, from)});
    }
  }
  // The interpreter does not round between steps, and truncates as the library's own conversions do
  // not: those are the oracle here.
  ASSERT_EQ(host_.build(), "");
  for (const Case& c : cases_) {
    const Memory memory(c);
    for (const KernelSource& kernel : c.kernels.at(0))
      ASSERT_EQ(host_.run(kernel, memory.buffers, nullptr, {}, nullptr), "");
    const Program::Result& result = c.program.results[0];
    const DType from = c.inputs[0].dtype(), to = result.dtype, compute = c.program.nests[0].compute;
    const Values got = get_values(Tensor(memory.storages[static_cast<std::size_t>(result.buffer)],
                                         to, result.shape, result.strides, result.offset));
    std::size_t i = 0;
    visit(from, [&]<class From>(std::type_identity<From>) {
      visit(compute, [&]<class C>(std::type_identity<C>) {
        visit(to, [&]<class To>(std::type_identity<To>) {
          if constexpr (is_compute_type(dtype_of<C>)) {
            for (; i < got.size(); ++i) {
              const From x = reinterpret_cast<const From*>(c.inputs[0].raw_data())[i];
              const double want = convert<double>(convert<To>(convert<C>(x)));
              EXPECT_TRUE(got[i] == want || (std::isnan(got[i]) && std::isnan(want)))
                  << name(from) << " to " << name(to) << ": " << values[i] << " gives " << got[i]
                  << ", ought to be " << want;
            }
          }
        });
      });
    });
  }
}

// The interpreter does not round: the library's own conversions are the oracle.
TEST_F(EmitTest, RoundedSteps) {
  const Values values{0,
                      -0.0,
                      1e-40,
                      -1e-45,
                      6e-8,
                      3e38,
                      -3.4e38,
                      65519,
                      65520,
                      0.1,
                      INFINITY,
                      -INFINITY,
                      NAN,
                      1e300,
                      1 + 0x1p-8,
                      1 + 0x1p-8 + 0x1p-30,
                      1 + 3 * 0x1p-8,
                      1 + 0x1p-11,
                      1 + 0x1p-11 + 0x1p-40};
  const auto n = static_cast<std::int64_t>(values.size());
  const std::pair<ScalarOp, DType> steps[] = {{ScalarOp::as_bf16, DType::bf16},
                                              {ScalarOp::as_f16, DType::f16}};
  for (const auto& [step, dtype] : steps) {
    for (DType compute : {DType::f32, DType::f64}) {
      Op op{.kind = OpKind::map,
            .dtype = compute,
            .shape = {n},
            .axes = {{"a", n}},
            .reads = {plain({0})},
            .write = plain({0})};
      op.expr = Ex::apply(step, Ex::input(0));
      op.compute = compute;
      add(graph_of({{compute, {n}}}, op), {make_tensor(values, {n}, compute)});
    }
  }
  ASSERT_EQ(host_.build(), "");
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const Case& c = cases_[i];
    const Memory memory(c);
    for (const KernelSource& kernel : c.kernels.at(0))
      ASSERT_EQ(host_.run(kernel, memory.buffers, nullptr, {}, nullptr), "");
    const Program::Result& result = c.program.results[0];
    const Values given = get_values(c.inputs[0]),
                 got =
                     get_values(Tensor(memory.storages[static_cast<std::size_t>(result.buffer)],
                                       result.dtype, result.shape, result.strides, result.offset));
    for (std::size_t v = 0; v < given.size(); ++v) {
      const double want = stored(given[v], steps[i / 2].second);
      EXPECT_TRUE(got[v] == want || (std::isnan(got[v]) && std::isnan(want)))
          << given[v] << " gives " << got[v] << ", ought to be " << want;
    }
  }
}

// The interpreter has no exact numbers of 64 bits: the processor's kernels are the oracle.
TEST_F(EmitTest, NumbersOf64BitsWithoutASign) {
  const std::vector<std::uint64_t> numbers{0,
                                           1,
                                           2,
                                           3,
                                           7,
                                           63,
                                           64,
                                           65,
                                           1ull << 32,
                                           (1ull << 53) + 1,
                                           INT64_MAX,
                                           1ull << 63,
                                           (1ull << 63) + 5,
                                           ~1ull,
                                           ~0ull};
  const auto n = static_cast<std::int64_t>(numbers.size());
  const Tensor a = from_vector(numbers, {n, 1}), b = from_vector(numbers, {1, n});
  constexpr ScalarOp two[] = {
      ScalarOp::add,       ScalarOp::sub,         ScalarOp::mul,        ScalarOp::pow,
      ScalarOp::remainder, ScalarOp::min,         ScalarOp::max,        ScalarOp::lt,
      ScalarOp::le,        ScalarOp::gt,          ScalarOp::ge,         ScalarOp::eq,
      ScalarOp::ne,        ScalarOp::logical_and, ScalarOp::logical_or, ScalarOp::bit_and,
      ScalarOp::bit_or,    ScalarOp::bit_xor,     ScalarOp::shift_left, ScalarOp::shift_right};
  std::vector<ScalarExpr> formulas;
  const Ex x = Ex::input(0), y = Ex::input(1);
  for (ScalarOp op : two) formulas.push_back(Ex::apply(op, x, y));
  for (ScalarOp op : {ScalarOp::neg, ScalarOp::abs, ScalarOp::logical_not})
    formulas.push_back(Ex::apply(op, x + y));
  formulas.push_back(Ex::apply(ScalarOp::where, x - y, Ex::unsigned_integer(~0ull), y));
  for (const ScalarExpr& formula : formulas) {
    for (DType to : {DType::u64, DType::f64, DType::i8, DType::boolean}) {
      Op op{.kind = OpKind::map,
            .dtype = to,
            .shape = {n, n},
            .axes = {{"a", n}, {"b", n}},
            .reads = {{DimIndex{0, {{0, 1}}}, DimIndex{}}, {DimIndex{}, DimIndex{0, {{1, 1}}}}},
            .write = plain({0, 1}),
            .expr = formula,
            .compute = DType::u64};
      add(graph_of({{DType::u64, {n, 1}}, {DType::u64, {1, n}}}, op), {a, b});
    }
  }
  for (Combine combine :
       {Combine::sum, Combine::prod, Combine::max, Combine::min, Combine::any, Combine::all}) {
    Op op{.kind = OpKind::reduce,
          .dtype = DType::u64,
          .shape = {1},
          .axes = {{"a", n}, {"b", 1}},
          .reads = {plain({0, 1})},
          .write = plain({1}),
          .combine = combine};
    add(graph_of({{DType::u64, {n, 1}}}, op), {a});
  }
  ASSERT_EQ(host_.build(), "");
  for (const Case& c : cases_) {
    const Memory memory(c), expected(c);
    for (std::size_t i = 0; i < c.program.nests.size(); ++i) {
      for (const KernelSource& kernel : c.kernels.at(i))
        ASSERT_EQ(host_.run(kernel, memory.buffers, nullptr, {}, nullptr), "");
      const auto kernel = host::make_kernel(c.program.nests[i]);
      std::vector<std::byte> workspace(kernel->workspace_bytes(1));
      kernel->run({.buffers = expected.buffers, .workspace = workspace.data()});
    }
    const Program::Result& result = c.program.results[0];
    const auto place = static_cast<std::size_t>(result.buffer);
    const auto bytes = static_cast<std::size_t>(numel(result.shape)) * size_of(result.dtype);
    EXPECT_EQ(std::memcmp(memory.buffers[place], expected.buffers[place], bytes), 0)
        << to_string(c.graph) << "to " << name(result.dtype);
  }
}

TEST_F(EmitTest, RandomNumbersAreThoseOfTheProcessor) {
  for (ScalarOp distribution : {ScalarOp::uniform, ScalarOp::normal}) {
    for (DType dtype : {DType::f64, DType::f32}) {
      for (bool of_run : {false, true}) {
        Op op{.kind = OpKind::map,
              .dtype = dtype,
              .shape = {37, 101},
              .axes = {{"a", 37}, {"b", 101}},
              .write = plain({0, 1}),
              .compute = dtype};
        op.expr = of_run ? Ex::random_of_run(distribution, 5)
                         : Ex::random(distribution, 0xFEDCBA9876543210, 3ull << 40);
        add(graph_of({}, op), {}).origin = {12345, 1ull << 33};
        // Those of positions that expressions say: a part of something larger, in order and not.
        op.compute = DType::f64;
        for (const double step : {1.0, 3.0}) {
          const ScalarStep drawn = op.expr.steps.back();
          Op part = op;
          part.expr = Ex::random_at(drawn, Ex::index(0) * 202.0 + Ex::index(1) * step + 5e9).expr();
          add(graph_of({}, part), {}).origin = {12345, 1ull << 33};
        }
      }
    }
  }
  check_all();  // bit by bit
}

TEST_F(EmitTest, RandomGathersAndScatters) {
  constexpr std::int64_t sizes[] = {1, 1, 2, 3, 4, 5, 8, 16, 17, 70};
  for (unsigned i = 0; i < seeds_or(300); ++i) {
    Random random(suite_seed() + 2000 + i);
    const bool gathers = i % 2 == 0;
    Op op{.kind = gathers ? OpKind::gather : OpKind::scatter,
          .dtype = random_dtype(random),
          .axes = random_axes(random, 4, sizes, 4000)};
    std::vector<int> own, of_positions, other = all_of(op.axes);
    for (int a : all_of(op.axes)) {
      // An axis belongs to the table, to the positions, or to both; of values, sometimes to nothing
      // else.
      const std::int64_t kind = below(random, 7);
      if (kind < 3 || kind == 6) own.push_back(a);
      if (kind >= 3 && kind != 5) of_positions.push_back(a);
    }
    for (auto* list : {&own, &of_positions, &other}) {
      if (below(random, 2) == 0) std::shuffle(list->begin(), list->end(), random);
    }
    if (!gathers && !other.empty() && below(random, 4) == 0) other.pop_back();
    const std::int64_t size = 1 + below(random, below(random, 4) == 0 ? 700 : 6);
    op.dim = static_cast<int>(below(random, std::ssize(own) + 1));
    Access indirect = plain(own);
    indirect.insert(indirect.begin() + op.dim, DimIndex{});
    std::vector<std::int64_t> dims;
    for (int a : own) dims.push_back(op.axes[static_cast<std::size_t>(a)].size);
    dims.insert(dims.begin() + op.dim, size);
    const Shape indirect_shape{std::span<const std::int64_t>(dims)};
    const Shape other_shape = shape_of(op.axes, other),
                positions_shape = shape_of(op.axes, of_positions);
    op.reads = {gathers ? indirect : plain(other), plain(of_positions)};
    op.write = gathers ? plain(other) : indirect;
    op.shape = gathers ? other_shape : indirect_shape;
    const Shape moved = gathers ? indirect_shape : other_shape;
    const DType position_dtype = below(random, 2) == 0 ? DType::i64 : DType::i32;
    Tensor x = random_tensor(moved, op.dtype, random);
    constexpr Combine combines[] = {Combine::sum, Combine::prod, Combine::max, Combine::min};
    if (!gathers) op.combine = combines[below(random, 4)];
    // Doubles do not hold the greatest integers of 64 bits.
    if (op.combine == Combine::min && is_integral(op.dtype) && size_of(op.dtype) == 8)
      op.combine = Combine::max;
    if (!gathers && (op.combine == Combine::sum || op.combine == Combine::prod)) {
      // Sums and products that every dtype holds.
      Values few(static_cast<std::size_t>(x.numel()));
      for (double& value : few) value = (below(random, 60) == 0) == (op.combine == Combine::sum);
      set_values(x, few);
    }
    add(graph_of({{op.dtype, moved}, {position_dtype, positions_shape}}, op),
        {x, positions(positions_shape, position_dtype, size, random)});
  }
  check_all();
}

TEST_F(EmitTest, RandomSlicesAtPositions) {
  for (unsigned i = 0; i < seeds_or(120); ++i) {
    Random random(suite_seed() + 2500 + i);
    const test::RandomSlice slice(random, i % 2 == 0);
    std::vector<Tensor> inputs;
    for (const ValueId input : slice.graph.ops.back().inputs) {
      const Op& op = slice.graph.op(input);
      inputs.push_back(random_tensor(op.shape, op.dtype, random));
    }
    set_values(inputs.back(), {slice.position});
    add(slice.graph, inputs);
  }
  check_all();
}

TEST_F(EmitTest, PositionsOutsideAreReported) {
  for (double position : {-1.0, 5.0, 1e15}) {
    for (bool gathers : {true, false}) {
      Op op{.kind = gathers ? OpKind::gather : OpKind::scatter, .axes = {{"s", 7}, {"d", 4}}};
      op.reads = {gathers ? Access{{}, {0, {{1, 1}}}} : plain({0, 1}), plain({0})};
      op.write = gathers ? plain({0, 1}) : Access{{}, {0, {{1, 1}}}};
      op.shape = gathers ? Shape{7, 4} : Shape{5, 4};
      const Shape moved = gathers ? Shape{5, 4} : Shape{7, 4};
      Random random(suite_seed());
      add(graph_of({{DType::f32, moved}, {DType::i64, {7}}}, op),
          {random_tensor(moved, DType::f32, random),
           make_tensor({0, 1, 4, position, 2, 3, 0}, {7}, DType::i64)})
          .fault = std::to_string(static_cast<std::int64_t>(position)) + " of 5";
    }
  }
  for (double position : {-1.0, 4.0, 1e15}) {  // of slices of two rows
    for (bool gathers : {true, false}) {
      Op op{.kind = gathers ? OpKind::gather : OpKind::place, .axes = {{"s", 2}, {"d", 4}}};
      op.write = plain({0, 1});
      op.shape = gathers ? Shape{2, 4} : Shape{5, 4};
      op.reads = {plain({0, 1}), {}};
      std::vector<std::pair<DType, Shape>> types{{DType::f32, {5, 4}}, {DType::i64, {}}};
      if (!gathers) {
        op.reads.insert(op.reads.begin(), plain({0, 1}));
        types.insert(types.begin(), {DType::f32, {2, 4}});
      }
      Random random(suite_seed());
      std::vector<Tensor> inputs;
      for (const auto& [dtype, shape] : types)
        inputs.push_back(random_tensor(shape, dtype, random));
      set_values(inputs.back(), {position});
      add(graph_of(types, op), inputs).fault =
          std::to_string(static_cast<std::int64_t>(position)) + " of 5";
    }
  }
  check_all();
}

TEST_F(EmitTest, RandomRecurrences) {
  constexpr std::int64_t sizes[] = {1, 2, 3, 5, 33, 257, 600};
  for (unsigned i = 0; i < seeds_or(60); ++i) {
    Random random(suite_seed() + 3500 + i);
    Op op{.kind = OpKind::scan,
          .axes = random_axes(random, 3, sizes, 4000),
          .reverse = below(random, 2) == 0};
    if (op.axes.empty()) op.axes.push_back({"a", 700});
    const std::vector<int> all = all_of(op.axes);
    op.axis = static_cast<int>(below(random, std::ssize(all)));
    op.write = plain(all);
    op.shape = shape_of(op.axes, all);
    op.dtype = below(random, 2) == 0 ? DType::f32 : DType::f64;
    std::vector<std::pair<DType, Shape>> types;
    std::vector<Tensor> inputs;
    for (const bool are_factors : {false, true}) {
      std::vector<int> read = all;
      if (below(random, 2) == 0) std::shuffle(read.begin(), read.end(), random);
      op.reads.push_back(plain(read));
      const DType dtype = below(random, 4) == 0 ? DType::bf16 : op.dtype;
      types.emplace_back(dtype, shape_of(op.axes, read));
      // All of what was before, or nothing: sums stay exact.
      Tensor x = random_tensor(types.back().second, dtype, random);
      Values values(static_cast<std::size_t>(x.numel()));
      for (double& value : values)
        value = are_factors ? static_cast<double>(below(random, 2)) : below(random, 5) - 2.0;
      set_values(x, values);
      inputs.push_back(x);
    }
    add(graph_of(types, op), inputs);
  }
  check_all();
}

TEST_F(EmitTest, RandomScansAndSorts) {
  constexpr std::int64_t sizes[] = {1, 2, 3, 5, 8, 33, 127, 129, 255, 256, 257, 600, 1100};
  for (unsigned i = 0; i < seeds_or(240); ++i) {
    Random random(suite_seed() + 3000 + i);
    const bool sorts = i % 2 == 0;
    Op op{.kind = sorts ? OpKind::argsort : OpKind::scan,
          .axes = random_axes(random, 3, sizes, 4000),
          .reverse = below(random, 2) == 0};
    if (op.axes.empty()) op.axes.push_back({"a", 700});
    std::vector<int> read = all_of(op.axes);
    op.axis = static_cast<int>(below(random, std::ssize(read)));
    op.write = plain(read);
    op.shape = shape_of(op.axes, read);
    if (below(random, 2) == 0) std::shuffle(read.begin(), read.end(), random);
    op.reads = {plain(read)};
    const DType dtype = random_dtype(random);
    op.dtype = sorts ? DType::i64 : dtype;
    constexpr Combine combines[] = {Combine::sum, Combine::prod, Combine::max, Combine::min};
    op.combine = combines[below(random, 4)];
    const Shape shape = shape_of(op.axes, read);
    Tensor x = random_tensor(shape, dtype, random);
    Values values(static_cast<std::size_t>(x.numel()));
    for (double& value : values) {
      if (sorts) {
        const std::int64_t kind = below(random, 20);
        value = dtype == DType::boolean ? static_cast<double>(below(random, 2))
                : is_unsigned(dtype)
                    ? static_cast<double>(below(random, 256))
                    : static_cast<double>(below(random, 400) - 200) / (is_floating(dtype) ? 8 : 1);
        if (is_floating(dtype) && kind < 3) value = kind == 0 ? NAN : kind == 1 ? -0.0 : 0.0;
      } else {
        value = static_cast<double>(op.combine == Combine::sum    ? below(random, 300) == 0
                                    : op.combine == Combine::prod ? 1
                                                                  : below(random, 2));
      }
    }
    set_values(x, values);
    add(graph_of({{dtype, shape}}, op), {x});
  }
  check_all();
}

/// Shapes that take every branch of the choice of kernels, for each dtype in turn.
TEST_F(EmitTest, EveryForm) {
  Random random(suite_seed() + 4000);
  const auto reduce = [&](const std::string& pattern, const Shape& shape, Reduction reduction,
                          DType dtype, Tolerance tolerance = {}) {
    Tensor x = random_tensor(shape, dtype, random);
    if (reduction == Reduction::sum && !is_floating(dtype))
      set_values(x, Values(static_cast<std::size_t>(x.numel()), 0));
    add(graph_of_pattern(Operation::reduce, pattern, {shape}, dtype, reduction), {x}, tolerance);
  };
  const auto einsum = [&](const std::string& pattern, const std::vector<Shape>& shapes,
                          DType dtype) {
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(random_tensor(shape, dtype, random));
    add(graph_of_pattern(Operation::einsum, pattern, shapes, dtype), inputs);
  };
  const Tolerance close{1e-5, 1e-5};
  for (DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i64}) {
    reduce("a b ->", {300, 1000}, Reduction::sum, dtype);
    reduce("a b -> a", {3, 70000}, Reduction::max, dtype);
    reduce("a b -> b", {9000, 20}, Reduction::min, dtype);
    reduce("a b -> a", {20, 2048}, Reduction::any, dtype);
    reduce("a b c -> b", {40, 5, 700}, Reduction::all, dtype);
    reduce("a b -> b", {40, 900}, Reduction::max, dtype);
    einsum("m k, k n -> m n", {{130, 70}, {70, 140}}, dtype);
    einsum("k m, n k -> n m", {{33, 600}, {520, 33}}, dtype);
    einsum("b (h d) q, b k h d -> b h q k", {{2, 12, 17}, {2, 37, 3, 4}}, dtype);
    einsum("a i j, a k j l -> k a l i", {{3, 20, 7}, {3, 5, 7, 11}}, dtype);
    einsum("m k, k -> m", {{50, 3000}, {3000}}, dtype);
    einsum("i, j -> i j", {{70}, {90}}, dtype);
    einsum("k a, k b -> a b", {{4000, 5}, {4000, 6}}, dtype);
    einsum("p k a, k p b -> b a", {{512, 3, 20}, {3, 512, 18}}, dtype);
  }
  reduce("a b -> a", {5, 30000}, Reduction::logsumexp, DType::f32, close);
  reduce("a b -> b", {30000, 5}, Reduction::mean, DType::f16, close);
  for (DType dtype : real_dtypes) {
    for (const char* pattern : {"a b c -> a c b", "a b c -> c a b", "a b c -> b a c"}) {
      const Tensor x = random_tensor({3, 70, 90}, dtype, random);
      add(copied(graph_of_pattern(Operation::rearrange, pattern, {x.shape()}, dtype)), {x});
    }
    for (const char* pattern : {"a [b] c", "[a] b [c]", "[...]"}) {
      const Tensor x = random_tensor({3, 40, 50}, dtype, random);
      add(graph_of_pattern(Operation::flip, pattern, {x.shape()}, dtype), {x});
    }
    const Tensor x = random_tensor({31, 64}, dtype, random);
    add(copied(graph_of_pattern(Operation::repeat, "a b -> a 3 b", {x.shape()}, dtype)), {x});
  }
  check_all();
  for (const char* form : {"map_", "copy_", "transpose_", "reduce_rows_", "reduce_columns_",
                           "reduce_parts_", "reduce_finish_", "contract_"}) {
    EXPECT_TRUE(std::any_of(forms_.begin(), forms_.end(), [&](const std::string& f) {
      return f.starts_with(form);
    })) << form;
  }
}

/// Rows whose beginnings are aligned, partly aligned, and not.
TEST_F(EmitTest, RowsWithGapsBetween) {
  Random random(suite_seed() + 6000);
  for (DType dtype : {DType::f32, DType::bf16, DType::u8, DType::f64}) {
    for (std::int64_t gap : {0, 1, 2, 8, 16}) {
      for (std::int64_t offset : {0, 1, 8}) {
        const std::int64_t stride = 64 + gap;
        const Tensor x(
            Storage::allocate(static_cast<std::size_t>(offset + 48 * stride) * size_of(dtype)),
            dtype, {48, 64}, {stride, 1}, offset);
        Values values(48 * 64);
        for (double& value : values) value = static_cast<double>(below(random, 4));
        set_values(x, values);
        add(copied(graph_of_pattern(Operation::rearrange, "a b -> a b", {x.shape()}, dtype)), {x});
        add(graph_of_pattern(Operation::reduce, "a b -> a", {x.shape()}, dtype, Reduction::max),
            {x});
        if (dtype == DType::u8) continue;
        add(graph_of_pattern(Operation::einsum, "m k, n k -> m n", {x.shape(), x.shape()}, dtype),
            {x, x});
        add(graph_of_pattern(Operation::einsum, "k m, k n -> m n", {x.shape(), x.shape()}, dtype),
            {x, x});
      }
    }
  }
  check_all();
}

TEST_F(EmitTest, SumsAreCombinedByHalves) {
  // One rounding for each element would lose thousands of these; what is lost here is a few units
  // in the last place.
  Values values(1 << 20, 0.1f);
  Case& c = add(graph_of_pattern(Operation::reduce, "n ->", {Shape{1 << 20}}, DType::f32),
                {make_tensor(values, {1 << 20})}, {3e-7, 0});
  EXPECT_EQ(c.kernels.at(0).size(), 2u);
  check_all();
}

TEST_F(EmitTest, PlacesBeyond32Bits) {
  // Memory that is reserved, and of which few pages are touched.
  constexpr std::int64_t apart = 3'000'000'000;
  const auto storage = Storage::allocate(static_cast<std::size_t>(apart + 4096));
  const Tensor x(storage, DType::u8, {2, 40, 50}, {apart, 50, 1}, 3);
  Values values(4000);
  Random random(suite_seed());
  for (double& value : values) value = static_cast<double>(below(random, 100));
  set_values(x, values);
  add(copied(graph_of_pattern(Operation::rearrange, "a b c -> b a c", {x.shape()}, DType::u8)),
      {x});
  add(copied(graph_of_pattern(Operation::rearrange, "a b c -> a c b", {x.shape()}, DType::u8)),
      {x});
  add(graph_of_pattern(Operation::reduce, "a b c -> b", {x.shape()}, DType::u8, Reduction::max),
      {x});
  add(graph_of_pattern(Operation::reduce, "a b c -> c", {x.shape()}, DType::u8, Reduction::max),
      {x});
  const Tensor y = random_tensor({2, 50, 30}, DType::u8, random);
  add(graph_of_pattern(Operation::einsum, "a b c, a c d -> a b d", {x.shape(), y.shape()},
                       DType::u8),
      {x, y});
  for (const Case& c : cases_)
    EXPECT_NE(c.kernels.at(0).at(0).text.find("const i64 i0"), std::string::npos) << text_of(c);
  check_all();
}

TEST_F(EmitTest, NothingToWriteIsNoKernel) {
  for (const char* pattern : {"a b -> b a", "a b -> a (b 1)"}) {
    const Case& c =
        add(copied(graph_of_pattern(Operation::rearrange, pattern, {Shape{0, 5}}, DType::f32)),
            {make_tensor({}, {0, 5})});
    for (const auto& nest : c.kernels) EXPECT_TRUE(nest.empty());
  }
  const Case& c = add(graph_of_pattern(Operation::reduce, "a b -> b", {Shape{0, 5}}, DType::f32),
                      {make_tensor({}, {0, 5})});
  EXPECT_EQ(c.kernels.at(0).size(), 1u);  // zeros
  check_all();
}

/// Kernels by hand, whose mistakes the host must see.
TEST_F(EmitTest, RacesOnSharedMemoryAreSeen) {
  const std::vector<std::pair<std::string, std::string>> bodies{
      {"fine",
       "tile[t] = t; __syncthreads(); y[t] = tile[63 - t]; __syncthreads(); tile[63 - t] = 1;"},
      {"read_too_early", "tile[t] = t; y[t] = tile[63 - t];"},
      {"write_too_early", "tile[t] = t; __syncthreads(); y[t] = tile[63 - t]; tile[t] = 1;"},
      {"two_writers", "tile[t / 2] = t;"},
      {"unwritten", "if (t < 63) tile[t] = t; __syncthreads(); y[t] = tile[63 - t];"},
      {"within_a_warp", "tile[t] = t; __shfl_xor_sync(0xffffffffu, t, 1); y[t] = tile[t ^ 1];"},
      {"beyond_a_warp", "tile[t] = t; __shfl_xor_sync(0xffffffffu, t, 1); y[t] = tile[t ^ 32];"},
  };
  std::vector<KernelSource> kernels;
  for (const auto& [name, body] : bodies) {
    KernelSource kernel;
    kernel.name = name;
    kernel.text =
        "extern \"C\" __global__ void " + name +
        "(int* y) {\n  __shared__ Shared<int> tile[64];\n  const int t = threadIdx.x;\n  " + body +
        "\n  __syncthreads();\n}\n";
    kernel.block[0] = 64;
    kernel.buffers = {0};
    kernel.offsets = {0};
    host_.add(kernel);
    kernels.push_back(kernel);
  }
  ASSERT_EQ(host_.build(), "");
  std::vector<int> y(64);
  auto* const memory = reinterpret_cast<std::byte*>(y.data());
  for (const KernelSource& kernel : kernels) {
    const std::string said = host_.run(kernel, {&memory, 1}, nullptr, {}, nullptr);
    const bool is_fine = kernel.name == "fine" || kernel.name == "within_a_warp";
    EXPECT_EQ(said.empty(), is_fine) << kernel.name << ": " << said;
  }
}

/// The text of some kernels, to be read by people: EIN_WRITE_GOLDEN=1 writes what the tests expect.
TEST(GoldenTest, TextIsWhatItWas) {
  const std::string folder = EIN_TEST_DATA "/../golden/";
  const auto check = [&](DType dtype, const std::string& form) {
    for (const NamedProgram& program : programs_of_every_form(dtype)) {
      if (program.name != form) continue;
      std::string text;
      for (const KernelSource& kernel : emitted(program.program, {})) {
        const auto three = [](const std::array<unsigned, 3>& n) {
          return std::to_string(n[0]) + ", " + std::to_string(n[1]) + ", " + std::to_string(n[2]);
        };
        text += "// grid " + three(kernel.grid()) + ", block " + three(kernel.block) + "\n" +
                kernel.text.substr(kernel.kernel_begin) + "\n";
      }
      const std::string path = folder + form + "_" + std::string(name(dtype)) + ".cu";
      if (std::getenv("EIN_WRITE_GOLDEN")) write_bytes(path, text);
      EXPECT_EQ(read_bytes(path), text) << path;
    }
  };
  for (const char* form :
       {"map", "map_gelu", "map_causal", "copy_heads", "transpose", "reduce_rows", "reduce_columns",
        "reduce_all", "logsumexp", "contract", "pairs", "contract_scores", "gather", "scatter_add",
        "scan_lines", "argsort"}) {
    check(DType::f32, form);
  }
  for (const char* form : {"map", "reduce_rows", "contract", "contract_large"})
    check(DType::bf16, form);
}

// What a person types into a pattern never reaches the text.
TEST(GoldenTest, AxisNamesDoNotReachTheText) {
  const Graph graph =
      graph_of_pattern(Operation::einsum, "evil_axis \u00e9, \u00e9 other -> other evil_axis",
                       {{20, 30}, {30, 40}}, DType::f32);
  for (const KernelSource& kernel : emitted(lowered(graph), {})) {
    EXPECT_EQ(kernel.text.find("evil"), std::string::npos);
    EXPECT_EQ(kernel.text.find("\u00e9"), std::string::npos);
    EXPECT_TRUE(std::all_of(kernel.text.begin(), kernel.text.end(),
                            [](char c) { return static_cast<unsigned char>(c) < 128; }));
  }
}

}  // namespace
}  // namespace ein::test
