#include "runtime/plan.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "cost/scope.hpp"
#include "graph/after_pass.hpp"
#include "nest/at_sizes.hpp"
#include "nest/heap_bytes.hpp"
#include "passes/complex.hpp"
#include "passes/short_forms.hpp"
#include "passes/simplify.hpp"
#include "runtime/complex.hpp"
#include "runtime/custom.hpp"
#include "runtime/device.hpp"
#include "runtime/mesh.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"
#include "tensor/fork.hpp"
#include "tensor/kept.hpp"
#include "tensor/small_array.hpp"

namespace ein::engine {

namespace {
Program grouped(Program program, Device device) {
  backend_of(device).group(program);
  return program;
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

Executable::Executable(Program lowered, Device device)
    : Executable(grouped(std::move(lowered), device), nullptr) {
  kernels = backend_of(device).compile(program);
}

Executable::Executable(Program grouped, std::unique_ptr<const Kernels> made)
    : program(std::move(grouped)), kernels(std::move(made)) {
  for (std::size_t b = program.input_count; b < program.buffers.size(); ++b) {
    if (!program.buffers[b].is_local) buffer_bytes += program.buffers[b].bytes();
  }
  kept.add(sizeof *this + heap_bytes(program));
}

Plan::Plan(std::string call, const Graph& graph, Device device, const OrderOptions& options)
    : call_(std::move(call)),
      graph_(without_complex(graph, call_, options)),
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

Plan::Plan(std::string call, Program program, Device device)
    : call_(std::move(call)),
      device_(device),
      executable_(std::make_unique<Executable>(std::move(program), device)),
      made_(executable_.get()),
      kept_(sizeof *this + heap_bytes(call_)) {}

Plan::Plan(std::shared_ptr<const Plan> of_formulas, SizeValues values,
           std::unique_ptr<const Executable> executable)
    : call_(of_formulas->call_),
      of_formulas_(std::move(of_formulas)),
      values_(std::move(values)),
      complex_results_(of_formulas_->complex_results_),
      device_(of_formulas_->device_),
      executable_(std::move(executable)),
      made_(executable_.get()),
      kept_(sizeof *this + heap_bytes_of_all(call_, values_)) {}

const Graph& Plan::graph() const {
  if (!of_formulas_) return graph_;
  const NoForkLock lock(mutex_);
  return known_graph();
}

const Graph& Plan::known_graph() const {
  if (of_formulas_ && graph_.ops.empty()) {
    SizesAt sizes(values_);
    graph_ = at_sizes(of_formulas_->graph_, sizes);
    kept_.add(heap_bytes(graph_));
  }
  return graph_;
}

const ProcessGraph& Plan::distributed() const {
  const NoForkLock lock(distributing_);
  if (!distributed_) {
    distributed_.emplace(distribute(call_, graph(), mesh_->axes, operand_placements_,
                                    result_placements_.placements));
    kept_.add(heap_bytes(distributed_->graph));
  }
  return *distributed_;
}

Program Plan::lowered() const {
  const Graph& own = mesh_ ? distributed().graph : graph();
  return lower(after_pass("order_contractions", order_contractions(with_short_forms(own), options_)),
               layouts_);
}

const Executable& Plan::executable() const {
  if (const Executable* made = made_.load(std::memory_order_acquire)) return *made;
  const Executable& made = make_executable();
  bound_plans();
  return made;
}

const Executable& Plan::make_executable() const {
  const NoForkLock lock(mutex_);
  if (!executable_) {
    executable_ = std::make_unique<Executable>(lowered(), device_);
    made_.store(executable_.get(), std::memory_order_release);
  }
  return *executable_;
}

const Cost& Plan::cost() const {
  const Program& program = executable().program;
  const NoForkLock lock(mutex_);
  if (!cost_) cost_ = ein::cost(program);
  return *cost_;
}

const Backward& Plan::backward(const std::vector<bool>& wanted) const {
  static std::atomic<std::int64_t> count{0};
  const NoForkLock lock(mutex_);
  for (const auto& known : backward_) {
    if (known->wanted == wanted) return *known;
  }
  const Graph& graph = known_graph();
  const std::vector<bool> given(graph.outputs.size(), true);
  autograd::Vjp vjp = autograd::vjp(graph, wanted, given);
  vjp.graph = after_pass("simplify", simplify(vjp.graph, true));
  kept_.add(sizeof(Backward) + heap_bytes(vjp.graph));
  backward_.push_back(std::make_unique<const Backward>(Backward{wanted, std::move(vjp), count++}));
  return *backward_.back();
}

namespace {

/// Of one process, on its parts of the operands.
std::vector<Tensor> execute(const Plan& plan, Operands operands, const mesh::Process* process) {
  const Executable& executable = plan.executable();
  const Backend& backend = backend_of(plan.device());
  const Program& program = executable.program;
  const std::size_t count = program.buffers.size();
  SmallArray<std::byte*, 8> addresses(count);
  SmallArray<std::shared_ptr<Storage>, 4> allocated(count - operands.size());
  for (std::size_t b = 0; b < operands.size(); ++b) addresses[b] = address_of(*operands[b]);
  for (std::size_t b = operands.size(); b < count; ++b) {
    const Program::Buffer& buffer = program.buffers[b];
    std::shared_ptr<Storage>& storage = allocated[b - operands.size()];
    if (!buffer.is_local) storage = backend.allocate(buffer.bytes());
    addresses[b] = storage ? storage->data() : nullptr;
  }
  const int threads = num_threads();
  const std::size_t workspace_bytes = executable.kernels->workspace_bytes(threads);
  if (CostRecorder::is_active())
    CostRecorder::record(plan.call(), plan.cost(), executable.buffer_bytes + workspace_bytes);
  std::shared_ptr<Storage> workspace;
  if (workspace_bytes > 0) workspace = backend.allocate(workspace_bytes);
  executable.kernels->run(
      {{addresses.data(), count}, workspace ? workspace->data() : nullptr, {}, threads, process});
  executable.kernels->require_success(plan.call());
  std::vector<Tensor> results;
  results.reserve(program.results.size());
  for (const Program::Result& result : program.results) {
    const auto b = static_cast<std::size_t>(result.buffer);
    if (b < operands.size()) {
      results.emplace_back(
          detail::view_of(operands[b]->storage(), result.dtype, result.shape, result.strides,
                          operands[b]->offset() - elements_before(*operands[b]) + result.offset));
    } else {
      results.emplace_back(detail::view_of(allocated[b - operands.size()], result.dtype,
                                           result.shape, result.strides, result.offset));
    }
  }
  return results;
}

std::vector<Tensor> execute(const Plan& plan, Operands operands) {
  const MeshPointer& mesh = plan.mesh();
  if (!mesh) return execute(plan, operands, nullptr);
  const std::vector<Placement>& placements = plan.placements();
  std::vector<std::vector<Tensor>> parts(placements.size(), std::vector<Tensor>(mesh->here.size()));
  for_each_here(*mesh, [&](std::size_t h) {
    std::vector<const Tensor*> own;
    for (const Tensor* operand : operands) own.push_back(&part_of(*operand, h));
    for (const Tensor& coordinate : mesh->here[h].coordinates(plan.device()))
      own.push_back(&coordinate);
    std::vector<Tensor> results = execute(plan, own, &mesh->here[h].process);
    for (std::size_t r = 0; r < results.size(); ++r) parts[r][h] = std::move(results[r]);
  });
  std::vector<Tensor> results;
  for (std::size_t r = 0; r < placements.size(); ++r) {
    const Op& output = plan.graph().op(plan.graph().outputs[r]);
    results.push_back(joined(mesh, placements[r], output.shape, std::move(parts[r])));
  }
  return results;
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
  if (flows && grad_is_enabled())
    remember_call(plan, operands, results);
  else if (flows)
    CustomScope::note(plan.call(), operands, results);
  if (plan.has_complex_results()) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (plan.is_complex(r)) results[r] = as_complex(results[r]);
    }
  }
  return results;
}

}  // namespace ein::engine
