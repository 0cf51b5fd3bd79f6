#include "runtime/plan.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <ein/error.hpp>
#include "compile/operand.hpp"
#include "cost/scope.hpp"
#include "graph/at_sizes.hpp"
#include "machine/fork.hpp"
#include "passes/complex.hpp"
#include "runtime/call.hpp"
#include "runtime/mesh.hpp"
#include "tensor/heap_bytes.hpp"
#include "tensor/kept.hpp"

namespace ein::engine {

namespace {

/// Of a program of numbers.
std::unique_ptr<const Bound> bound_to(std::unique_ptr<Compiled> compiled) {
  compiled->load();
  return std::make_unique<const Bound>(std::shared_ptr<const Compiled>(std::move(compiled)));
}

}  // namespace

Device common_device(const std::string& call, Operands operands) {
  if (operands.empty()) return cpu;
  const Device device = operands.front()->device();
  if (std::all_of(operands.begin(), operands.end(),
                  [&](const Tensor* x) { return x->device() == device; }))
    return device;
  std::string places;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    places += (i == 0 ? "" : ", ") + ("operand " + std::to_string(i + 1)) + " of shape " +
              operands[i]->shape().to_string() + " on " + to_string(operands[i]->device());
  }
  throw Error(ErrorKind::device,
              call + ": operands lie on several devices: " + places +
                  "\n  help: move them to one with .to(device), such as ein::cuda or ein::cpu");
}

Plan::Plan(std::string call, const Graph& graph, Device device, const OrderOptions& options)
    : call_(std::move(call)),
      graph_(real_graph(graph, call_, options)),
      device_(device),
      options_(options),
      kept_(sizeof *this + heap_bytes_of_all(call_, graph_)) {
  if (!has_complex(graph)) return;
  for (const ValueId output : graph.outputs)
    complex_results_.push_back(ein::is_complex(graph.op(output).dtype));
}

Plan::Plan(std::string call, const Graph& graph, Operands operands, const OrderOptions& options,
           ResultPlacements results)
    : Plan(call, graph, common_device(call, operands), options) {
  // The rest of the offsets is added to the buffers' addresses, so that equal views share a plan.
  const RealOperands real(operands);
  mesh_ = results.mesh ? results.mesh : common_mesh(call_, real.operands());
  result_placements_ = std::move(results);
  for (const Tensor* operand : real.operands()) {
    layouts_.push_back(layout_of(part_of(*operand, 0)));
    if (mesh_) operand_placements_.push_back(placement_of(*operand));
  }
  if (mesh_) layouts_.resize(layouts_.size() + mesh_->axes.size());  // of the coordinates
}

Plan::Plan(std::string call, const Graph& graph, Device device)
    : Plan(std::move(call), graph, device, {}) {}

Plan::Plan(std::string call, std::unique_ptr<Compiled> compiled)
    : call_(std::move(call)),
      device_(compiled->device()),
      bound_(bound_to(std::move(compiled))),
      made_(bound_.get()),
      kept_(sizeof *this + heap_bytes(call_)) {}

Plan::Plan(std::shared_ptr<const Plan> of_formulas, std::unique_ptr<const Bound> bound)
    : call_(of_formulas->call_),
      of_formulas_(std::move(of_formulas)),
      complex_results_(of_formulas_->complex_results_),
      device_(of_formulas_->device_),
      bound_(std::move(bound)),
      made_(bound_.get()),
      kept_(sizeof *this + heap_bytes(call_)) {}

const Graph& Plan::graph() const {
  if (!of_formulas_) return graph_;
  const NoForkLock lock(mutex_);
  return known_graph();
}

const Graph& Plan::known_graph() const {
  if (of_formulas_ && graph_.ops.empty()) {
    SizesAt sizes(bound_->lengths());
    graph_ = at_sizes(of_formulas_->graph_, sizes);
    kept_.add(heap_bytes(graph_));
  }
  return graph_;
}

Job Plan::job() const {
  Job job{.call = call_, .device = device_, .layouts = layouts_, .order = options_};
  if (mesh_) {
    job.mesh = mesh_->axes;
    job.operands = operand_placements_;
    job.results = result_placements_.placements;
  }
  return job;
}

const Bound& Plan::bound() const {
  if (const Bound* made = made_.load(std::memory_order_acquire)) return *made;
  const Bound& made = make_bound();
  bound_plans();
  return made;
}

const Bound& Plan::make_bound() const {
  const NoForkLock lock(mutex_);
  if (!bound_) {
    bound_ = bound_to(std::make_unique<Compiled>(known_graph(), job()));
    made_.store(bound_.get(), std::memory_order_release);
  }
  return *bound_;
}

const Cost& Plan::cost() const {
  const Bound& made = bound();
  const NoForkLock lock(mutex_);
  if (!cost_) cost_ = ein::cost(made.program());
  return *cost_;
}

const Backward& Plan::backward(const std::vector<bool>& wanted) const {
  static std::atomic<std::int64_t> count{0};
  const NoForkLock lock(mutex_);
  for (const auto& known : backward_) {
    if (known->wanted == wanted) return *known;
  }
  const Graph& graph = known_graph();
  autograd::Vjp vjp = derivative_of(graph, wanted);
  kept_.add(sizeof(Backward) + heap_bytes(vjp.graph));
  backward_.push_back(std::make_unique<const Backward>(Backward{wanted, std::move(vjp), count++}));
  return *backward_.back();
}

}  // namespace ein::engine
