#include "runtime/map.hpp"

#include <algorithm>

#include <ein/error.hpp>
#include "compile/operand.hpp"
#include "graph/build.hpp"
#include "graph/fields.hpp"
#include "runtime/call.hpp"
#include "runtime/complex.hpp"
#include "runtime/trace.hpp"
#include "tensor/rank.hpp"

namespace ein::engine {

Access broadcast_access(const Shape& shape, const Shape& to) {
  Access access;
  const std::size_t shift = to.rank() - shape.rank();
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const bool stretched = shape[d] != to[shift + d];
    access.push_back(stretched ? DimIndex{} : DimIndex{0, {{static_cast<int>(shift + d), 1}}});
  }
  return access;
}

Shape broadcast_shape(std::string_view what, Operands operands) {
  Shape shape;
  for (const Tensor* operand : operands) {
    while (shape.rank() < operand->rank()) {
      Shape longer{1};
      for (Size size : shape) longer.push_back(size);
      shape = longer;
    }
    const std::size_t shift = shape.rank() - operand->rank();
    for (std::size_t d = 0; d < operand->rank(); ++d) {
      const Size size = operand->shape()[d];
      Size& common = shape[shift + d];
      if (is_one(common)) common = size;
      if (is_one(size) || size == common) continue;
      if (size != 1 && common != 1) {
        std::string shapes;
        for (std::size_t k = 0; k < operands.size(); ++k) {
          shapes += (k == 0                     ? ""
                     : k + 1 == operands.size() ? " and "
                                                : ", ") +
                    operands[k]->shape().to_string();
        }
        throw Error(ErrorKind::size,
                    std::string(what) + ": shapes " + shapes +
                        " do not broadcast: " + to_string(common) + " meets " + to_string(size) +
                        "\n  help: sizes must be equal or 1, aligned at the right");
      }
      if (common == 1) common = size;
    }
  }
  return shape;
}

Tensor map(std::string_view what, const ScalarExpr& formula, Operands operands, DType compute,
           DType to) {
  PlanKey key;
  add(key, KeyKind::map);
  key.add(static_cast<std::int64_t>(compute) << 8 | static_cast<std::int64_t>(to));
  for_each_word(formula, [&](std::int64_t word) { key.add(word); });
  const auto build = [&](Operands like) {
    Graph graph;
    const Shape shape = broadcast_shape(what, like);
    checked_numel(shape, static_cast<std::int64_t>(size_of(to)));
    Op op = plain_op(OpKind::map, to, shape);
    op.expr = formula;
    op.compute = compute;
    for (const Tensor* operand : like) {
      op.inputs.push_back(static_cast<ValueId>(graph.ops.size()));
      op.reads.push_back(broadcast_access(operand->shape(), shape));
      graph.ops.push_back(
          {.kind = OpKind::input, .dtype = operand->dtype(), .shape = operand->shape()});
    }
    graph.outputs.push_back(static_cast<ValueId>(graph.ops.size()));
    graph.ops.push_back(std::move(op));
    verify(graph);
    return graph;
  };
  return std::move(run(*plan_for(
                           key, operands, [&] { return std::string(what); }, build),
                       operands)
                       .front());
}

Tensor fill_new(const ScalarExpr& formula, const Shape& shape, DType compute, DType to,
                Device device) {
  require_possible_rank(shape.rank());
  const Size elements = checked_numel(shape, static_cast<std::int64_t>(size_of(to)));
  Graph graph;
  // An index is that of the element, row-major; without one, the axes are those of the shape.
  const bool is_flat = asks_index(formula);
  Op op = plain_op(OpKind::map, to, is_flat ? Shape{elements} : shape);
  op.expr = formula;
  op.compute = compute;
  graph.ops.push_back(std::move(op));
  graph.outputs.push_back(0);
  // Each formula is its own; a plan for it would be kept for nothing.
  const Tensor filled =
      run(*std::make_shared<const Plan>("fill", std::move(graph), device), {}).front();
  return is_flat ? filled.view(shape) : filled;
}

void copy(const Tensor& from, const Tensor& to) {
  if (is_complex(from.dtype()) != is_complex(to.dtype())) return copy(from.to(to.dtype()), to);
  if (is_complex(to.dtype())) return copy(as_real(from), as_real(to));
  if (Trace* trace = Trace::active()) return trace->assign(to, from);
  PlanKey key;
  add(key, KeyKind::copy);
  key.add(from);
  key.add(to);
  auto plan = find_plan(key);
  if (!plan) {
    const auto operand = [](int buffer, const Tensor& x) {
      return Program::Result{buffer, x.dtype(), x.shape(), x.strides(), elements_before(x)};
    };
    Program program;
    program.input_count = 2;
    for (const Tensor* x : {&from, &to}) {
      program.buffers.push_back({elements_up_to_last(x->shape(), layout_of(*x)), x->dtype()});
    }
    program.nests.push_back(copy_nest(operand(0, from), operand(1, to)));
    plan = std::make_shared<const Plan>(
        "copy", std::make_unique<Compiled>(std::move(program), from.device()));
    keep_plan(key, plan);
  }
  const Tensor* const operands[] = {&from, &to};
  run(*plan, operands);
}

}  // namespace ein::engine
