// CRC-32, the checksum of zip archives (and of gzip and PNG).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ein::io {

/// The checksum of what gave `before`, 0 at first, and these bytes behind it.
std::uint32_t crc32(std::uint32_t before, const void* data, std::size_t bytes);

}  // namespace ein::io
