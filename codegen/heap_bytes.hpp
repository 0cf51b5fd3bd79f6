// Bytes that kernels' sources have on the heap. A field that is added does not compile until it is
// named here.
#pragma once

#include "codegen/emit.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein::codegen {

inline std::size_t heap_bytes_of(const TensorMap& map) {
  const auto& [buffer, offset, dtype, sizes, strides, box] = map;
  return heap_bytes_of_all(sizes, strides, box);
}
inline std::size_t heap_bytes_of(const KernelSource::Table& table) {
  const auto& [pointers, numbers] = table;
  return heap_bytes(numbers);
}
inline std::size_t heap_bytes_of(const KernelSource& source) {
  const auto& [name, text, kernel_begin, blocks, block, shared_bytes, workspace_bytes, maps,
               buffers, offsets, pointers, table, checks_positions, streams, constants, sizes] =
      source;
  return heap_bytes_of_all(name, text, maps, buffers, offsets, pointers, table, streams, constants,
                           sizes);
}

}  // namespace ein::codegen
