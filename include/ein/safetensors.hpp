// .safetensors files: named tensors, and nothing that could be executed.
#pragma once

#include <map>
#include <string>

#include <ein/state_dict.hpp>

namespace ein {

struct SafetensorsOptions {
  /// Map the file instead of reading it: tensors are read-only views of one mapping, which lives as
  /// long as the last of them. Whoever writes to the file in place meanwhile (save_safetensors
  /// never does) changes the elements, and whoever truncates it makes an access fault, SIGBUS,
  /// which ends the process. So make this false for files that strangers can write to: every byte
  /// is then read once. Bool and unaligned elements are read all the same.
  bool mmap = true;
};

/// A tensor of a dtype that ein lacks, such as F8_E8M0 or F4.
struct ForeignTensor {
  std::string dtype;  ///< as the file calls it
  Shape shape;        ///< of its elements
  Tensor bytes;       ///< as they lie in the file: a u8 vector
};

/// What a file holds.
struct Safetensors {
  StateDict tensors;
  Metadata metadata;                             ///< its `__metadata__`
  std::map<std::string, ForeignTensor> foreign;  ///< those that are not among `tensors`
};

/// Reads a file of the safetensors format (github.com/huggingface/safetensors, "Format"). Dtypes
/// F64 F32 F16 BF16 F8_E4M3 F8_E5M2 I64 I32 I16 I8 U64 U32 U16 U8 BOOL C64; bool bytes other than 0
/// and 1 are true. Tensors of other dtypes, which are names of capital letters, digits and `_`, are
/// in `foreign` with their bytes. An Error of kind `file` when the file cannot be read or breaks
/// any rule of the format: a header above 100,000,000 bytes, one that is not a JSON object in
/// UTF-8, keys given twice, unknown or missing fields, sizes that overflow or disagree with the
/// offsets, holes or overlaps between tensors, bytes that no tensor has. Of kind `memory` when
/// there is no more. Of a path that ends with `.safetensors.index.json`, as Hugging Face's models
/// of several files have it, the tensors of all files that it names, which must have what it says,
/// and the metadata of the first.
Safetensors load_safetensors(const std::string& path, SafetensorsOptions options = {});

/// Writes tensors row-major, wider dtypes first, then by name; equal arguments give equal bytes.
/// All of it arrives at `path`, durably, or the file that was there stays whole. An Error of kind
/// `file` when that fails, `value` for a name or text that is not UTF-8, a tensor named
/// `__metadata__` and a header above 100,000,000 bytes, `overflow` above 2^63 - 1 bytes.
void save_safetensors(const std::string& path, const StateDict& tensors,
                      const Metadata& metadata = {});

}  // namespace ein
