// einsum whose result is added to a tensor that is there.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/ops.hpp>

#include "compile/operand.hpp"
#include "graph/build.hpp"
#include "graph/diagnostic.hpp"
#include "runtime/call.hpp"
#include "runtime/call_pattern.hpp"
#include "runtime/map.hpp"
#include "runtime/trace.hpp"
#include "runtime/writes.hpp"
#include "tensor/small_array.hpp"

namespace ein {
namespace {

constexpr const char* what = "einsum_into";

/// A factor: 0 and 1 are part of the graph, others are operands, so that loops may change them.
struct Factor {
  Factor(double value, DType compute, Device device) : is_zero(value == 0), is_one(value == 1) {
    if (is_zero || is_one) return;
    given = compute == DType::i64 || compute == DType::u64
                ? full({}, static_cast<std::int64_t>(value), compute, device)
                : full({}, value, compute, device);
  }
  std::int64_t word() const { return is_zero ? 0 : is_one ? 1 : 2; }

  bool is_zero, is_one;
  std::optional<Tensor> given;
};

DType dtype_to_compute(const Tensor& c, engine::Operands operands) {
  DType dtype = is_complex(c.dtype()) ? c.dtype() : compute_type(c.dtype());
  for (const Tensor* operand : operands) {
    const DType given = operand->dtype();
    if (is_complex(given) && !is_complex(c.dtype())) {
      throw Error(ErrorKind::dtype, std::string(what) + ": the tensor to write to holds " +
                                        std::string(name(c.dtype())) + ", an operand " +
                                        std::string(name(given)) +
                                        "\n  help: write to a complex tensor");
    }
    if (is_integral(c.dtype()) && !is_integral(given)) {
      throw Error(ErrorKind::dtype, std::string(what) + ": the tensor to write to holds " +
                                        std::string(name(c.dtype())) + ", an operand " +
                                        std::string(name(given)) +
                                        "\n  help: write to a floating-point tensor");
    }
    if (real_dtype(given) == DType::f64) dtype = promote(dtype, DType::f64);
  }
  return dtype;
}

void require_whole(double factor, const char* letter, const Tensor& c) {
  if (is_integral(c.dtype()) && !(std::trunc(factor) == factor && std::abs(factor) < 0x1p63)) {
    throw Error(ErrorKind::value,
                std::string(what) + ": " + letter + " is " + std::to_string(factor) +
                    ", and the tensor holds " + std::string(name(c.dtype())) +
                    "\n  help: give a whole number, or write to a floating-point tensor");
  }
}

/// The new value of c. Inputs: the operands, c, and those factors that are given.
Graph graph_of_value(const detail::PatternArgument& pattern, engine::Operands operands,
                     const Tensor& c, const Factor& alpha, const Factor& beta, DType compute) {
  const std::vector<Shape> shapes = shapes_of(operands);
  const CallPattern parsed(Operation::einsum, pattern, {}, shapes);
  Graph graph = build_graph({.op = Operation::einsum,
                             .pattern = parsed.pattern,
                             .is_checked = pattern.is_checked(),
                             .dtype = compute,
                             .lone_sums = lone_sums_of(pattern)},
                            types_of(operands));
  const ValueId sums = graph.outputs.front();
  const Shape shape = graph.op(sums).shape;
  if (!(shape == c.shape())) {
    fail(ErrorKind::shape, what,
         "the result has shape " + shape.to_string() + ", the tensor to write to " +
             c.shape().to_string(),
         pattern.text(), {mark_side(parsed.pattern, parsed.pattern.output(), shape.to_string())},
         {show_operands(shapes)});
  }
  Op op = plain_op(OpKind::map, c.dtype(), shape);
  op.compute = compute_type(compute);
  const auto read = [&](ValueId value, const Shape& of) {
    op.inputs.push_back(value);
    op.reads.push_back(engine::broadcast_access(of, shape));
    return Ex::input(static_cast<int>(op.inputs.size()) - 1);
  };
  const auto add_input = [&](DType dtype, const Shape& of) {
    return append(graph, {.kind = OpKind::input, .dtype = dtype, .shape = of});
  };
  const auto times = [&](const Factor& factor, const Ex& value) {
    return factor.given ? read(add_input(real_dtype(compute), {}), {}) * value : value;
  };
  const ValueId before = add_input(c.dtype(), shape);
  std::optional<Ex> formula;
  if (!alpha.is_zero) formula = times(alpha, read(sums, shape));
  if (!beta.is_zero) {
    const Ex kept = times(beta, read(before, shape));
    formula = formula ? *formula + kept : kept;
  }
  op.expr = formula.value_or(Ex::integer(0));
  graph.outputs = {append(graph, std::move(op))};
  verify(graph);
  return graph;
}

/// Computes the graph's result where c lies, which is operand number `to`.
std::shared_ptr<const engine::Plan> plan_of(const detail::PatternArgument& pattern, Graph graph,
                                            engine::Operands operands, std::size_t to) {
  engine::Job job{.call = what, .device = engine::common_device(what, operands)};
  for (const Tensor* operand : operands) {
    job.memory.push_back(static_cast<int>(job.layouts.size()));
    job.layouts.push_back(engine::layout_of(*operand));
  }
  ValueId input = -1;
  for (std::size_t inputs = 0; inputs <= to; ++inputs) {
    do ++input;
    while (graph.op(input).kind != OpKind::input);
  }
  graph.assignments = {{input, graph.outputs.front()}};
  graph.outputs.clear();
  return std::make_shared<const engine::Plan>(
      std::string(what) + " \"" + std::string(pattern.text()) + "\"",
      std::make_unique<engine::Compiled>(std::move(graph), job));
}

}  // namespace

void detail::run_into(const Tensor& c, const PatternArgument& pattern,
                      std::span<const Tensor* const> given, double alpha_value, double beta_value) {
  engine::require_no_flow(c, what);
  for (const Tensor* operand : given) engine::require_no_flow_from(*operand, c, what);
  engine::require_writable(c, what);
  const DType compute = dtype_to_compute(c, given);
  require_whole(alpha_value, "alpha", c);
  require_whole(beta_value, "beta", c);
  const bool is_traced = engine::Trace::active();
  const DType of_factors = real_dtype(compute);
  const Factor alpha(alpha_value, of_factors, c.device()), beta(beta_value, of_factors, c.device());

  SmallArray<std::optional<Tensor>, 8> copies(given.size());
  SmallArray<const Tensor*, 12> operands(given.size() + 1 + (alpha.given ? 1 : 0) +
                                         (beta.given ? 1 : 0));
  // Integers are multiplied and added up in c's kind of number.
  const bool converts =
      !is_integral(compute) && std::all_of(given.begin(), given.end(), [&](const Tensor* operand) {
        return is_integral(operand->dtype()) && operand->dtype() == given[0]->dtype();
      });
  for (std::size_t k = 0; k < given.size(); ++k) {
    operands[k] = given[k];
    if (converts) {
      operands[k] = &copies[k].emplace(given[k]->to(of_factors));
      continue;
    }
    if (is_traced || !engine::may_overlap(*given[k], c)) continue;
    operands[k] = &copies[k].emplace(given[k]->clone());
  }
  std::size_t count = given.size();
  operands[count++] = &c;
  for (const Factor* factor : {&alpha, &beta}) {
    if (factor->given) operands[count++] = &*factor->given;
  }
  const engine::Operands all{operands.data(), count}, summed{operands.data(), given.size()};
  const auto graph = [&] { return graph_of_value(pattern, summed, c, alpha, beta, compute); };
  if (is_traced) {
    const auto plan = std::make_shared<const engine::Plan>(what, graph(), all, OrderOptions());
    return engine::copy(engine::run(*plan, all).front(), c);
  }
  engine::PlanKey key;
  add(key, engine::KeyKind::einsum_into);
  key.add(static_cast<std::int64_t>(lone_sums_of(pattern)) << 4 | alpha.word() << 2 | beta.word());
  key.add(pattern, {});
  key.add(all);
  auto plan = engine::find_plan(key);
  if (!plan) {
    const std::vector<std::int64_t> words(key.words().begin(), key.words().end());
    plan = plan_of(pattern, graph(), engine::RealOperands(all).operands(), given.size());
    engine::keep_plan(engine::PlanKey(words), plan);
  }
  engine::run(*plan, all);
  c.storage()->count_write();
}

void einsum_into(const Tensor& c, std::span<const Tensor> operands,
                 const PatternFor<Operation::einsum, detail::Types<detail::AnyNumber>>& pattern,
                 double alpha, double beta) {
  std::vector<const Tensor*> addresses;
  for (const Tensor& operand : operands) addresses.push_back(&operand);
  detail::run_into(c, pattern, addresses, alpha, beta);
}

}  // namespace ein
