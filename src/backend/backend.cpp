// The table of backends: what a new kind of device adds a row to.
#include "backend/backend.hpp"

#include <stdexcept>
#include <string>

namespace ein {
namespace {

struct Row {
  const char* name;
  const engine::Backend& (*backend)(int index);
  int (*count)();
  bool is_single;  // the first needs no number
};

// A kind without a row does not compile.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
constexpr Row row_of(Device::Kind kind) {
  switch (kind) {
    case Device::Kind::cpu:
      return {"cpu", engine::cpu_backend, [] { return 1; }, true};
    case Device::Kind::cuda:
      return {"cuda", engine::cuda_backend, engine::cuda_device_count, false};
  }
  throw std::logic_error("device: of no kind");
}
#pragma GCC diagnostic pop

}  // namespace

std::unique_ptr<engine::Kernels> engine::Backend::compile(const Program& program) const {
  SizesAt sizes;
  return plan(program)->at(sizes);
}

const engine::Backend& engine::backend_of(Device device) {
  return row_of(device.kind()).backend(device.index());
}

int device_count(Device::Kind kind) { return row_of(kind).count(); }

std::string to_string(Device device) {
  const Row row = row_of(device.kind());
  if (row.is_single && device.index() == 0) return row.name;
  return std::string(row.name) + ":" + std::to_string(device.index());
}

}  // namespace ein
