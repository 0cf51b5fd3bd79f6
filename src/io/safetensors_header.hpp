// The header of a .safetensors file: a length, and a JSON object that says what lies where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ein/safetensors.hpp>

#include "io/file.hpp"
#include "io/xxh64.hpp"

namespace ein::io {

struct SafetensorsEntry {
  DType dtype = DType::f32;
  std::string foreign;  // the name of another dtype, in the place of that; or empty
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // bytes, from the end of the header
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry, std::less<>> tensors;
  Metadata metadata;
  std::uint64_t data_begin = 0;  // bytes before the first element
};

/// Reads and checks it against every rule of the format, the file's size included, so that each
/// entry's bytes lie inside of the file and are what its shape needs, where the size of its dtype's
/// elements is known. `checksum`, if any, gets the bytes that are read. Errors are `file`'s.
SafetensorsHeader read_safetensors_header(const InputFile& file, Xxh64* checksum = nullptr);

/// load_safetensors of a file that is open. Without `mmap` each byte is read once, in order;
/// `checksum`, if any, gets them.
Safetensors load_safetensors(const InputFile& file, bool mmap, Xxh64* checksum = nullptr);

/// A file in the order in which it is written.
struct SafetensorsLayout {
  std::string header;                  // with its length before it
  std::vector<const Tensor*> tensors;  // of the StateDict, which must outlive this
};

/// Errors as save_safetensors says; their text begins with `caller`.
SafetensorsLayout layout_safetensors(std::string_view caller, const StateDict& tensors,
                                     const Metadata& metadata);

}  // namespace ein::io
