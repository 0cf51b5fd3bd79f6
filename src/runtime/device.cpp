// Devices: their memory, and tensors that move between them.
#include "runtime/device.hpp"

#include <algorithm>

#include "tensor/kept.hpp"

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/hardware.hpp>
#include <ein/memory.hpp>
#include "backend/backend.hpp"
#include "runtime/complex.hpp"
#include "runtime/custom.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"
#include "tensor/memory_count.hpp"

namespace ein {
namespace {

/// The elements of `x`, which is contiguous, on another device: through the host if neither is it.
Tensor moved(const Tensor& x, Device to) {
  const Tensor copy = empty(x.shape(), x.dtype(), to);
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
    throw Error(ErrorKind::device,
                "to: a tensor of shape " + shape().to_string() + " is moved from " +
                    ein::to_string(device()) + " to " + ein::to_string(wanted) +
                    " in a function that ein::compile traces, which runs on one device\n"
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

void detail::not_on_the_host(const TensorData& data) {
  throw Error(ErrorKind::device,
              "data(): the tensor of shape " + data.shape.to_string() + " lies on " +
                  to_string(data.storage->device()) +
                  ", where the host cannot reach it\n  help: copy it with .to(ein::cpu)");
}

namespace engine {

std::byte* first_element(const Tensor& x) {
  if (!x.storage()) detail::no_elements_here(x.impl());
  return x.storage()->data() + x.offset() * static_cast<std::int64_t>(x.element_size());
}

bool goes_back(const Strides& strides) {
  return std::any_of(strides.begin(), strides.end(), [](Size stride) { return goes_back(stride); });
}

Size elements_back(const Shape& shape, const Strides& strides) {
  if (!goes_back(strides)) return 0;
  if (std::find(shape.begin(), shape.end(), Size(0)) != shape.end()) return 0;
  Size elements = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (goes_back(strides[d])) elements += (shape[d] - 1) * -strides[d];
  }
  return elements;
}

std::int64_t elements_unaligned(const Tensor& x) {
  if (x.offset() == 0) return 0;
  const std::size_t elements = backend_of(x.device()).alignment() / x.element_size();
  if (elements <= 1) return 0;
  return (x.offset() - elements_back(x.shape(), x.strides())) % static_cast<std::int64_t>(elements);
}

std::int64_t elements_before(const Tensor& x) {
  if (x.offset() == 0) return 0;  // then nothing is below it
  return elements_back(x.shape(), x.strides()) + elements_unaligned(x);
}

InputLayout layout_of(const Tensor& like, const Shape& shape, const Strides& strides) {
  return {strides, elements_back(shape, strides) + elements_unaligned(like)};
}
InputLayout layout_of(const Tensor& x) { return layout_of(x, x.shape(), x.strides()); }

std::byte* address_of(const Tensor& x) {
  return first_element(x) - elements_before(x) * static_cast<std::int64_t>(x.element_size());
}

}  // namespace engine
}  // namespace ein
