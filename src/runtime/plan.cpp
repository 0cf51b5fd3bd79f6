#include "runtime/plan.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "compile/operand.hpp"
#include "cost/scope.hpp"
#include "graph/at_sizes.hpp"
#include "machine/fork.hpp"
#include "passes/complex.hpp"
#include "runtime/complex.hpp"
#include "runtime/custom.hpp"
#include "runtime/mesh.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"
#include "tensor/heap_bytes.hpp"
#include "tensor/kept.hpp"
#include "tensor/small_array.hpp"

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

namespace {

/// Of one process, on its parts of the operands.
std::vector<Tensor> execute(const Plan& plan, Operands operands, const mesh::Process* process) {
  const Bound& bound = plan.bound();
  const Backend& backend = backend_of(plan.device());
  SmallArray<std::byte*, 8> addresses(bound.buffers());
  SmallArray<std::shared_ptr<Storage>, 2> results(bound.result_buffers().size());
  std::fill(addresses.begin(), addresses.end(), nullptr);
  for (std::size_t b = 0; b < operands.size(); ++b) addresses[b] = address_of(*operands[b]);
  std::size_t r = 0;
  for (const auto& [buffer, bytes] : bound.result_buffers()) {
    results[r] = backend.allocate(bytes);
    addresses[buffer] = results[r++]->data();
  }
  const int threads = num_threads();
  const std::size_t block_bytes = bound.block_bytes(threads);
  if (CostRecorder::is_active())
    CostRecorder::record(plan.call(), plan.cost(), bound.result_bytes() + block_bytes);
  const std::shared_ptr<Storage> block = block_bytes > 0 ? backend.allocate(block_bytes) : nullptr;
  bound.run({addresses.data(), bound.buffers()}, block ? block->data() : nullptr, {}, threads,
            process);
  bound.kernels().require_success(plan.call());
  return bound.results([&](std::size_t b) -> const Tensor& { return *operands[b]; },
                       [&](std::size_t memory) { return results[memory]; });
}

std::vector<Tensor> execute(const Plan& plan, Operands operands) {
  const MeshPointer& mesh = plan.mesh();
  if (!mesh) return execute(plan, operands, nullptr);
  const auto shape_of = [&](std::size_t r) {
    return plan.graph().op(plan.graph().outputs[r]).shape;
  };
  const auto run_here = [&](std::size_t h) {
    std::vector<const Tensor*> own;
    for (const Tensor* operand : operands) own.push_back(&part_of(*operand, h));
    for (const Tensor& coordinate : mesh->here[h].coordinates(plan.device()))
      own.push_back(&coordinate);
    return execute(plan, own, &mesh->here[h].process);
  };
  return run_parts(mesh, plan.bound().compiled().placements(), shape_of, run_here);
}

}  // namespace

std::vector<Tensor> run(const Plan& plan, Operands given) {
  const RealOperands real(given);
  const Operands operands = real.operands();
  Trace* const trace = Trace::active();
  std::vector<Tensor> results =
      trace ? trace->splice(plan.graph(), operands, plan.device()) : execute(plan, operands);
  const bool flows = std::any_of(operands.begin(), operands.end(),
                                 [](const Tensor* x) { return x->requires_grad(); });
  // A map is differentiated as a whole.
  if (trace && trace->is_in_no_grad()) {
    for (Tensor& result : results) result = trace->detached(result);
  }
  const bool remembers = grad_is_enabled() && (!trace || trace->remembers());
  if (flows && remembers)
    remember_call(plan, operands, results);
  else if (flows && !grad_is_enabled())
    CustomScope::note(plan.call(), operands, results);
  if (plan.has_complex_results()) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (plan.is_complex(r)) results[r] = as_complex(results[r]);
    }
  }
  return results;
}

}  // namespace ein::engine
