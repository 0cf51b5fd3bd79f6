// Devices: their memory, and tensors that move between them.
#include "runtime/device.hpp"
#include "runtime/scratch.hpp"

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/hardware.hpp>
#include <ein/memory.hpp>
#include "cuda/gpu.hpp"
#include "cuda/settings.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"
#include "tensor/memory_count.hpp"

namespace ein {
namespace {

codegen::Gpu& gpu_of(Device device) { return codegen::Gpu::of_system(device.index()); }

bool is_cpu(Device device) {
  if (device.kind() == Device::Kind::cuda) return false;
  if (device == cpu) return true;
  throw Error(ErrorKind::value, to_string(device) + ": there is one CPU, ein::cpu");
}

std::uint64_t address(const Tensor& x) {
  return reinterpret_cast<std::uint64_t>(engine::first_element(x));
}

/// The elements of `x`, which is contiguous, on another device. Between two GPUs they go through
/// the host.
Tensor moved(const Tensor& x, Device to) {
  if (!(x.device() == cpu) && !is_cpu(to)) return moved(moved(x, cpu), to);
  const Tensor copy = empty(x.shape(), x.dtype(), to);
  if (x.numel() == 0) return copy;
  if (to == cpu)
    gpu_of(x.device()).copy_out(copy.raw_data(), address(x), x.nbytes());
  else
    gpu_of(to).copy_in(address(copy), x.raw_data(), x.nbytes());
  return copy;
}

/// A tensor's way to another device.
class MoveNode final : public engine::Node {
 public:
  MoveNode(const Tensor& from, const Tensor& to)
      : Node({from.impl().grad}, {&to, 1}), from_(from.device()) {}

  engine::MaybeTensors pull_back(const engine::MaybeTensors& cotangents,
                                 const std::vector<bool>&) const override {
    return {with_zeros(cotangents).front().to(from_)};
  }

 private:
  Device from_;
};

}  // namespace

std::string to_string(Device device) {
  if (device.kind() == Device::Kind::cuda) return "cuda:" + std::to_string(device.index());
  return device.index() == 0 ? "cpu" : "cpu:" + std::to_string(device.index());
}

int device_count(Device::Kind kind) {
  if (kind == Device::Kind::cpu) return 1;
  const codegen::Driver& driver = codegen::Driver::of_system();
  return driver.missing().empty() ? driver.device_count() : 0;
}

void synchronize(Device device) {
  if (!is_cpu(device)) gpu_of(device).synchronize();
}

void allow_tf32(bool allowed) { codegen::settings().tf32 = allowed; }
void tune(bool wanted) { codegen::settings().tunes = wanted; }

std::size_t memory_allocated(Device device) {
  return is_cpu(device) ? host_memory().count.live() : gpu_of(device).memory().count().live();
}
std::size_t max_memory_allocated(Device device) {
  return is_cpu(device) ? host_memory().count.most() : gpu_of(device).memory().count().most();
}
void reset_max_memory_allocated(Device device) {
  (is_cpu(device) ? host_memory().count : gpu_of(device).memory().count()).reset_most();
}
std::size_t memory_reserved(Device device) {
  return is_cpu(device) ? host_memory().reserved.live() : gpu_of(device).memory().reserved();
}
void release_memory(Device device) {
  engine::Releasable::release_all();
  if (is_cpu(device))
    release_host_memory();
  else
    gpu_of(device).memory().release();
}

std::optional<Hardware> find_hardware(Device device) {
  if (is_cpu(device)) return measured_cpu();
  const codegen::DeviceInfo info = codegen::Driver::of_system().info(device.index());
  return find_hardware(info.name, info.sms);
}

Tensor Tensor::to(Device wanted) const {
  if (wanted == device()) return *this;
  if (engine::Trace::active() || !storage()) {
    throw Error(ErrorKind::device,
                "to: a tensor of shape " + shape().to_string() + " is moved from " +
                    ein::to_string(device()) + " to " + ein::to_string(wanted) +
                    " in a function that ein::compile traces, which runs on one device\n"
                    "  help: move it before the call");
  }
  const Tensor copy = moved(detach().contiguous(), wanted);
  if (requires_grad() && grad_is_enabled())
    engine::attach(std::make_shared<MoveNode>(*this, copy), {&copy, 1});
  return copy;
}

void detail::not_on_the_host(const TensorData& data) {
  throw Error(ErrorKind::device,
              "data(): the tensor of shape " + data.shape.to_string() + " lies on " +
                  to_string(data.storage->device()) +
                  ", where the host cannot reach it\n  help: copy it with .to(ein::cpu)");
}

namespace engine {

std::shared_ptr<Storage> allocate(std::size_t bytes, Device device) {
  if (is_cpu(device)) return Storage::allocate(bytes);
  codegen::MemoryPool& pool = gpu_of(device).memory();
  const auto give_back = [&pool, bytes](codegen::DeviceMemory* block) {
    pool.give_back(codegen::MemoryPool::Block(block), bytes);
  };
  const std::shared_ptr<codegen::DeviceMemory> block(pool.take(bytes).release(), give_back);
  return std::make_shared<Storage>(reinterpret_cast<std::byte*>(block->address()), bytes, block,
                                   false, device);
}

std::byte* first_element(const Tensor& x) {
  if (!x.storage()) detail::no_elements_yet(x.shape());
  return x.storage()->data() + x.offset() * static_cast<std::int64_t>(x.element_size());
}

std::byte* address_of(const Tensor& x) {
  return first_element(x) - elements_before(x) * static_cast<std::int64_t>(x.element_size());
}

}  // namespace engine
}  // namespace ein
