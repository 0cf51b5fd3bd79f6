#include "tensor/device_kind.hpp"

#include <string>

#include <ein/error.hpp>
#include <ein/tensor.hpp>

namespace ein {

int device_count(Device device) { return device.kind().count(); }

std::string to_string(Device device) {
  const detail::DeviceKind& kind = device.kind();
  if (kind.is_single && device.index() == 0) return kind.name;
  return std::string(kind.name) + ":" + std::to_string(device.index());
}

void detail::not_on_the_host(const TensorData& data) {
  throw Error(ErrorKind::device,
              "data(): the tensor of shape " + data.shape.to_string() + " lies on " +
                  to_string(data.storage->device()) +
                  ", where the host cannot reach it\n  help: copy it with .to(ein::cpu)");
}

}  // namespace ein
