// The kind of the errors of a device.
#pragma once

#include <ein/error.hpp>

namespace ein::codegen {

/// A device, its driver or its compiler is missing, too old, or refuses.
inline constexpr ErrorKind device_error = ErrorKind::file;

}  // namespace ein::codegen
