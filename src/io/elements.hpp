// The elements of tensors in files.
#pragma once

#include <algorithm>

#include <ein/tensor.hpp>

#include "io/file.hpp"
#include "io/xxh64.hpp"

namespace ein::io {

/// A byte that is no bool becomes one.
inline void make_valid(Storage& storage, DType dtype) {
  if (dtype != DType::boolean) return;
  std::transform(storage.data(), storage.data() + storage.bytes(), storage.data(),
                 [](std::byte b) { return std::byte{b != std::byte{0}}; });
}

/// Reads as InputFile does; `checksum`, if any, gets the bytes.
inline void read_summed(const InputFile& file, std::uint64_t offset, void* to, std::size_t bytes,
                        Xxh64* checksum) {
  if (!checksum) return file.read(offset, to, bytes);
  constexpr std::size_t strip = std::size_t{1} << 18;  // stays in the second-level cache
  auto* const at = static_cast<std::byte*>(to);
  for (std::size_t done = 0; done < bytes; done += strip) {
    const std::size_t part = std::min(strip, bytes - done);
    file.read(offset + done, at + done, part);
    checksum->update(at + done, part);
  }
}

/// Elements that lie in a file from byte `begin` on: where they are in its mapping, if there is one
/// and they can be used there, else read. A mapped bool could become a byte that is no bool.
/// `checksum` gets the bytes that are read.
inline std::shared_ptr<Storage> read_elements(const InputFile& file,
                                              const std::shared_ptr<std::byte>& mapping,
                                              std::uint64_t begin, std::size_t bytes, DType dtype,
                                              Xxh64* checksum = nullptr) {
  if (mapping && dtype != DType::boolean && begin % size_of(dtype) == 0)
    return Storage::wrap(mapping.get() + begin, bytes, mapping, true);
  auto storage = Storage::allocate(bytes);
  read_summed(file, begin, storage->data(), bytes, checksum);
  make_valid(*storage, dtype);
  return storage;
}

}  // namespace ein::io
