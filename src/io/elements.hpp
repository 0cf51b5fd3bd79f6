// The elements of tensors in files.
#pragma once

#include <algorithm>

#include <ein/tensor.hpp>

#include "io/file.hpp"

namespace ein::io {

/// A byte that is no bool becomes one.
inline void make_valid(Storage& storage, DType dtype) {
  if (dtype != DType::boolean) return;
  std::transform(storage.data(), storage.data() + storage.bytes(), storage.data(),
                 [](std::byte b) { return std::byte{b != std::byte{0}}; });
}

/// Elements that lie in a file from byte `begin` on: where they are in its mapping, if there is one
/// and they can be used there, else read. A mapped bool could become a byte that is no bool.
inline std::shared_ptr<Storage> read_elements(const InputFile& file,
                                              const std::shared_ptr<std::byte>& mapping,
                                              std::uint64_t begin, std::size_t bytes, DType dtype) {
  if (mapping && dtype != DType::boolean && begin % size_of(dtype) == 0)
    return Storage::wrap(mapping.get() + begin, bytes, mapping, true);
  auto storage = Storage::allocate(bytes);
  file.read(begin, storage->data(), bytes);
  make_valid(*storage, dtype);
  return storage;
}

}  // namespace ein::io
