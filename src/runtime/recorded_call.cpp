#include "runtime/recorded_call.hpp"

#include <algorithm>
#include <utility>

#include "graph/fields.hpp"
#include "runtime/call.hpp"
#include "runtime/mesh.hpp"

namespace ein::engine {

RecordedCall record_call(
    Trace::Of of, Operands like,
    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& function,
    const std::vector<bool>& without_first) {
  Trace trace(of);
  std::vector<Tensor> arguments;
  for (std::size_t k = 0; k < like.size(); ++k) {
    const Tensor& x = *like[k];
    if (x.is_placed()) trace.lies_on(x.impl().placed->mesh);
    const std::size_t first = k < without_first.size() && without_first[k] ? 1 : 0;
    Shape shape;
    Strides strides;
    for (std::size_t d = first; d < x.rank(); ++d) {
      shape.push_back(x.shape()[d]);
      strides.push_back(x.strides()[d]);
    }
    arguments.push_back(trace.argument(x, shape, strides));
  }
  const std::vector<Tensor> results = function(arguments);
  RecordedCall call;
  for (const Tensor& result : results) call.is_complex.push_back(is_complex(result.dtype()));
  if (!results.empty()) call.device = results.front().device();
  call.graph = trace.finish(results);
  verify(call.graph);
  call.captured = trace.captured();
  return call;
}

std::vector<Tensor> run_recorded(const std::string& what, const RecordedCall& call,
                                 Operands arguments) {
  const RealOperands real(arguments);
  std::vector<const Tensor*> operands(real.operands().begin(), real.operands().end());
  for (const Tensor& x : call.captured) operands.push_back(&x);
  const auto plan = [&]() -> std::shared_ptr<const Plan> {
    if (operands.empty()) return std::make_shared<const Plan>(what, call.graph, call.device);
    // One that draws random numbers does so once; a plan of it would be kept for nothing.
    if (std::any_of(call.graph.ops.begin(), call.graph.ops.end(),
                    [](const Op& op) { return draws(op.expr); }))
      return std::make_shared<const Plan>(what, call.graph, operands, OrderOptions());
    PlanKey key;
    add(key, KeyKind::recorded);
    key.add(what);  // errors name axes, which words of graphs leave out
    for_each_word(call.graph, [&](std::int64_t word) { key.add(word); });
    return plan_for(
        key, operands, [&] { return what; }, [&] { return call.graph; });
  }();
  return complex_where(call.is_complex, run(*plan, operands));
}

}  // namespace ein::engine
