// Devices: their memory, and tensors that move between them.
#include <utility>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/hardware.hpp>
#include <ein/memory.hpp>
#include "backend/backend.hpp"
#include "compile/operand.hpp"
#include "runtime/complex.hpp"
#include "runtime/custom.hpp"
#include "runtime/map.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"
#include "tensor/kept.hpp"
#include "tensor/memory_count.hpp"

namespace ein {
namespace {

/// The elements of `x`, which is contiguous, on another device: through the host if neither is it.
Tensor moved(const Tensor& x, Device to) {
  const Tensor copy = engine::with_memory(x.shape(), x.dtype(), to);
  if (x.numel() == 0) return copy;
  if (copy.storage()->on_host()) {
    engine::backend_of(x.device())
        .copy_out(engine::first_element(copy), engine::first_element(x), x.nbytes());
  } else {
    const Tensor on_host = x.storage()->on_host() ? x : moved(x, cpu);
    engine::backend_of(to).copy_in(engine::first_element(copy), engine::first_element(on_host),
                                   x.nbytes());
  }
  return copy;
}

/// A tensor's way to another device.
class MoveNode final : public engine::Node {
 public:
  MoveNode(const Tensor& from, const Tensor& to)
      : Node({from.impl().grad}, {&to, 1}), from_(from.device()) {}

  engine::MaybeTensors pull_back(const engine::MaybeTensors& cotangents,
                                 const std::vector<bool>&) const override {
    return {engine::as_real(with_zeros(cotangents).front()).to(from_)};
  }

 private:
  Device from_;
};

}  // namespace

void synchronize(Device device) { engine::backend_of(device).synchronize(); }

std::size_t memory_allocated(Device device) {
  return engine::backend_of(device).memory_count().live();
}
std::size_t max_memory_allocated(Device device) {
  return engine::backend_of(device).memory_count().most();
}
void reset_max_memory_allocated(Device device) {
  engine::backend_of(device).memory_count().reset_most();
}
std::size_t memory_reserved(Device device) { return engine::backend_of(device).memory_reserved(); }
void release_memory(Device device) {
  Releasable::release_all();
  engine::backend_of(device).release_memory();
}

std::optional<Hardware> find_hardware(Device device) {
  return engine::backend_of(device).hardware();
}

Tensor Tensor::to(Device wanted) const {
  if (wanted == device()) return *this;
  if (is_placed())
    throw Error(ErrorKind::device,
                "to: a placed tensor stays on the devices of its processes\n"
                "  help: move it before ein::place");
  if (engine::Trace::active() || !storage()) {
    throw Error(ErrorKind::device, "to: a tensor of shape " + shape().to_string() +
                                       " is moved from " + ein::to_string(device()) + " to " +
                                       ein::to_string(wanted) + " in a function that " +
                                       engine::Trace::tracer() +
                                       " traces, which runs on one device\n"
                                       "  help: move it before the call");
  }
  const Tensor copy = moved(detach().contiguous(), wanted);
  const Tensor* const operand = this;
  if (requires_grad() && grad_is_enabled())
    engine::attach(std::make_shared<MoveNode>(*this, copy), {&copy, 1});
  else if (requires_grad())
    engine::CustomScope::note("to", {&operand, 1}, {&copy, 1});
  return copy;
}

}  // namespace ein
