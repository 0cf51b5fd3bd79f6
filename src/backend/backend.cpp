#include "backend/backend.hpp"

#include <string>

namespace ein {

std::unique_ptr<engine::Kernels> engine::Backend::compile(const Program& program) const {
  SizesAt sizes;
  return plan(program)->at(sizes);
}

const engine::Backend& engine::backend_of(Device device) {
  return device.kind().backend(device.index());
}

int device_count(Device device) { return device.kind().count(); }

std::string to_string(Device device) {
  const detail::DeviceKind& kind = device.kind();
  if (kind.is_single && device.index() == 0) return kind.name;
  return std::string(kind.name) + ":" + std::to_string(device.index());
}

}  // namespace ein
