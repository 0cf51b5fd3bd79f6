// A .safetensors file while it is written.
#pragma once

#include <string>
#include <vector>

#include "io/file.hpp"
#include "io/manifest.hpp"
#include "io/safetensors_header.hpp"
#include "io/xxh64.hpp"

namespace ein::io {

/// The header at once, then the tensors one after the other, so that not all of them have to be in
/// memory. Errors as save_safetensors says; their text begins with `caller`.
class SafetensorsWriter {
 public:
  /// Of `tensors`, which must outlive this, dtypes and shapes are wanted.
  SafetensorsWriter(const std::string& caller, const std::string& path, const StateDict& tensors,
                    const Metadata& metadata);

  /// Those whose elements are to be written, in this order.
  const std::vector<const Tensor*>& tensors() const { return layout_.tensors; }
  void write(const Tensor& tensor);
  /// Puts the file at its path, and returns when it is on the disk.
  ManifestFile commit();

 private:
  void write(const void* from, std::size_t bytes);

  SafetensorsLayout layout_;
  ReplacementFile file_;
  ManifestFile written_;
  Xxh64 checksum_;
};

}  // namespace ein::io
