// Random patterns and their gradients as CUDA C++: compiled for the host and run there, against the
// interpreter; or on the GPU whose number EIN_TEST_DEVICE is.
#include "autograd/vjp.hpp"
#include "passes/contraction_order.hpp"
#include "passes/simplify.hpp"
#include "support/emitted_cases.hpp"
#include "support/random_pattern.hpp"

namespace ein::test {
namespace {

/// 2,000 patterns, each forward and backward, in parts that may run side by side; the first is
/// enough for every day.
constexpr int parts = 4;
constexpr unsigned patterns_of_part = 500;

class EmitPatternsTest : public EmitTest, public testing::WithParamInterface<int> {
 protected:
  /// Calls f(pattern, random) for each pattern of this part.
  template <class F>
  static void for_each_pattern(F&& f) {
    for (unsigned n = 0; n < seeds_or(patterns_of_part); ++n) {
      const unsigned i = static_cast<unsigned>(GetParam()) * patterns_of_part + n;
      Random random(suite_seed() + i);
      constexpr Operation operations[] = {Operation::rearrange, Operation::repeat,
                                          Operation::reduce,    Operation::reduce,
                                          Operation::einsum,    Operation::einsum};
      const Operation op = operations[i / 4 % 6];
      PatternMaker maker =
          i % 4 == 0 ? PatternMaker(random, 20000, large_sizes, 4) : PatternMaker(random, 3000);
      const std::int64_t operands = op == Operation::einsum ? 1 + below(random, 2) : 1;
      f(maker.make(op, static_cast<std::size_t>(operands)), random);
    }
  }

  static Graph graph_of_call(const TestPattern& p, const std::vector<Tensor>& inputs, DType dtype,
                             Reduction reduction) {
    std::vector<AxisSize> sizes;
    for (int id : p.given)
      sizes.push_back(
          {p.axes[static_cast<std::size_t>(id)].text, p.axes[static_cast<std::size_t>(id)].size});
    std::vector<Shape> shapes;
    for (const Tensor& x : inputs) shapes.push_back(x.shape());
    return graph_of_pattern(p.op, p.text, shapes, dtype, reduction, sizes);
  }

  /// Of no elements there is no largest and no smallest: their sum then.
  static Reduction defined(Reduction reduction, const TestPattern& p) {
    const bool is_extreme = reduction == Reduction::max || reduction == Reduction::min ||
                            reduction == Reduction::nanmax || reduction == Reduction::nanmin;
    const bool is_undefined =
        is_extreme && numel(p.shape(p.inputs[0])) == 0 && numel(p.shape(p.output)) > 0;
    return is_undefined ? Reduction::sum : reduction;
  }

  void add_forward(const TestPattern& p, Random& random) {
    DType dtype = random_dtype(random);
    const auto reduction =
        defined(static_cast<Reduction>(below(random, std::ssize(detail::reduction_names))), p);
    Tolerance tolerance;
    if (p.op == Operation::reduce) {
      const bool floats_only = wants_floating(reduction);
      if (floats_only && !is_floating(dtype)) dtype = DType::f32;
      const bool wide = dtype == DType::f64;
      if (floats_only) tolerance = {wide ? 1e-13 : 1e-5, wide ? 1e-13 : 1e-5};
      if (name(reduction).ends_with("std")) tolerance.absolute = wide ? 1e-6 : 1e-3;
    }
    std::vector<Tensor> inputs;
    for (const TestSide& side : p.inputs) {
      inputs.push_back(random_tensor(p.shape(side), dtype, random));
      if (p.op != Operation::reduce) continue;
      Values values = get_values(inputs.back());
      if (reduction == Reduction::prod || reduction == Reduction::nanprod)
        std::fill(values.begin(), values.end(), is_floating(dtype) || dtype >= DType::i64 ? 1 : 0);
      for (double& value : values) {
        if (name(reduction).starts_with("nan") && below(random, 3) == 0) value = NAN;
      }
      set_values(inputs.back(), values);
    }
    add(copied(graph_of_call(p, inputs, dtype, reduction)), inputs, tolerance);
  }

  /// Signs, and about eight values that are not 1: products of all of them, and of all but one, are
  /// exact.
  static void set_factors(const Tensor& x, Random& random) {
    Values values(static_cast<std::size_t>(x.numel()));
    for (double& value : values) {
      constexpr double others[] = {0, 0.5, 2, 4};
      const double size = below(random, 1 + x.numel() / 8) == 0 ? others[below(random, 4)] : 1;
      value = below(random, 2) == 0 ? size : -size;
    }
    set_values(x, values);
  }

  /// The cotangents of some of the operands for one of the result.
  void add_gradient(const TestPattern& p, Random& random) {
    constexpr Reduction reductions[] = {Reduction::sum,      Reduction::mean, Reduction::max,
                                        Reduction::min,      Reduction::prod, Reduction::var,
                                        Reduction::logsumexp};
    const DType dtype = below(random, 2) == 0 ? DType::f32 : DType::f64;
    const Reduction reduction =
        p.op == Operation::reduce ? defined(reductions[below(random, 7)], p) : Reduction::sum;
    std::vector<Tensor> inputs;
    for (const TestSide& side : p.inputs) {
      inputs.push_back(random_tensor(p.shape(side), dtype, random));
      if (reduction == Reduction::prod) set_factors(inputs.back(), random);
    }
    std::vector<bool> wanted(inputs.size(), true);
    if (inputs.size() > 1 && below(random, 3) == 0)
      wanted[static_cast<std::size_t>(below(random, std::ssize(wanted)))] = false;
    const autograd::Vjp vjp =
        autograd::vjp(graph_of_call(p, inputs, dtype, reduction), wanted, {true});
    std::vector<Tensor> given;
    for (std::size_t i : vjp.needs) given.push_back(inputs[i]);
    given.push_back(random_tensor(p.shape(p.output), dtype, random));
    Graph graph = order_contractions(simplify(vjp.graph));
    for (ValueId id : graph.outputs) {
      Op& op = graph.ops[static_cast<std::size_t>(id)];
      if (op.kind == OpKind::reindex) op.kind = OpKind::place;  // a kernel, not a view
    }
    verify(graph);
    const bool is_exact = reduction == Reduction::sum || reduction == Reduction::prod;
    const double error = is_exact ? 0 : dtype == DType::f64 ? 1e-13 : 1e-5;
    // The interpreter takes what the rules say, before any pass.
    add(std::move(graph), std::move(given), {error, error}).graph = vjp.graph;
  }
};

TEST_P(EmitPatternsTest, Forward) {
  for_each_pattern([&](const TestPattern& p, Random& random) { add_forward(p, random); });
  check_all();
}

TEST_P(EmitPatternsTest, Backward) {
  for_each_pattern([&](const TestPattern& p, Random& random) { add_gradient(p, random); });
  check_all();
}

INSTANTIATE_TEST_SUITE_P(Parts, EmitPatternsTest, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(SlowParts, EmitPatternsTest, testing::Range(1, parts));

}  // namespace
}  // namespace ein::test
