// A tensor map as the stand-ins for driver and device write and read it: what a CUtensorMap is made
// from, in its 128 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

struct HostTensorMap {
  static constexpr std::uint32_t right_mark = 0x7E450A11;
  std::uint32_t mark;
  std::uint32_t rank, element_bytes;
  std::uint32_t sizes[5], box[5];
  std::uint64_t address;
  std::uint64_t strides[4];  // in bytes, of dimensions 1 and on
  std::uint64_t unused[4];
};
static_assert(sizeof(HostTensorMap) == 128);

/// What cuTensorMapEncodeTiled asks of its arguments (CUDA driver API, "Tensor Map Object
/// Management"), for tiles swizzled by 128 bytes; nothing if they are fine.
inline const char* encode_host_tensor_map(HostTensorMap& map, std::uint32_t element_bytes,
                                          std::uint32_t rank, std::uint64_t address,
                                          const std::uint64_t* sizes, const std::uint64_t* strides,
                                          const std::uint32_t* box) {
  map = {HostTensorMap::right_mark, rank, element_bytes, {}, {}, address, {}, {}};
  if (rank < 1 || rank > 5) return "rank";
  if (address % 16 != 0) return "address";
  if (box[0] * element_bytes > 128) return "the inner extent of a box";
  for (std::uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] == 0 || sizes[d] > std::uint64_t{1} << 32) return "a size";
    if (box[d] == 0 || box[d] > 256) return "a box";
    map.sizes[d] = static_cast<std::uint32_t>(sizes[d]);
    map.box[d] = box[d];
    if (d == 0) continue;
    const std::uint64_t stride = strides[d - 1];
    if (stride % 16 != 0 || stride == 0 || stride >= std::uint64_t{1} << 40) return "a stride";
    map.strides[d - 1] = stride;
  }
  return nullptr;
}
