#include "backend/backend.hpp"

namespace ein {

std::unique_ptr<engine::Kernels> engine::Backend::compile(const Program& program) const {
  SizesAt sizes;
  return plan(program)->at(sizes);
}

const engine::Backend& engine::backend_of(Device device) {
  return device.kind().backend(device.index());
}

}  // namespace ein
