// What a Device points to.
#pragma once

#include <ein/device.hpp>

namespace ein {

namespace engine {
class Backend;
}

/// A kind of device. Each is defined in the room of its backend, so that a program has those
/// backends alone that it names.
struct detail::DeviceKind {
  const char* name;
  const engine::Backend& (*backend)(int index);
  int (*count)();
  bool is_single;  // the first needs no number
};

}  // namespace ein
