#include "runtime/call.hpp"

#include <algorithm>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/parallel.hpp>
#include "compile/operand.hpp"
#include "cost/scope.hpp"
#include "runtime/complex.hpp"
#include "runtime/custom.hpp"
#include "runtime/mesh.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"
#include "tensor/small_array.hpp"

namespace ein::engine {

RealOperands::RealOperands(Operands operands) : operands_(operands) {
  const auto is_pair = [](const Tensor* x) { return is_complex(x->dtype()); };
  if (std::none_of(operands.begin(), operands.end(), is_pair)) return;
  real_.reserve(operands.size());
  for (const Tensor* x : operands) {
    if (is_pair(x)) real_.push_back(as_real(*x));
    addresses_.push_back(is_pair(x) ? &real_.back() : x);
  }
  operands_ = addresses_;
}

std::vector<Tensor> complex_where(const std::vector<bool>& is_pair, std::vector<Tensor> results) {
  for (std::size_t r = 0; r < is_pair.size(); ++r) {
    if (is_pair[r]) results[r] = as_complex(results[r]);
  }
  return results;
}

namespace {

/// `addresses` are those of the program's buffers, of which operands' and results' are set.
void run_at(const Plan& plan, std::span<std::byte*> addresses, const mesh::Process* process) {
  const Bound& bound = plan.bound();
  const int threads = num_threads();
  const std::size_t block_bytes = bound.block_bytes(threads);
  if (CostRecorder::is_active())
    CostRecorder::record(plan.call(), plan.cost(), bound.result_bytes() + block_bytes);
  const std::shared_ptr<Storage> block =
      block_bytes > 0 ? backend_of(plan.device()).allocate(block_bytes) : nullptr;
  bound.run(addresses, block ? block->data() : nullptr, {}, threads, process);
  bound.kernels().require_success(plan.call());
}

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
  run_at(plan, {addresses.data(), addresses.size()}, process);
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

void run_in_memory(const Plan& plan, std::span<std::byte* const> operands,
                   std::span<std::byte* const> results) {
  const Bound& bound = plan.bound();
  SmallArray<std::byte*, 8> addresses(bound.buffers());
  std::fill(addresses.begin(), addresses.end(), nullptr);
  std::copy(operands.begin(), operands.end(), addresses.begin());
  for (std::size_t r = 0; r < results.size(); ++r)
    addresses[bound.result_buffers()[r].buffer] = results[r];
  run_at(plan, {addresses.data(), addresses.size()}, nullptr);
}

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
  return complex_where(plan.complex_results(), std::move(results));
}

}  // namespace ein::engine
