// Any bytes as a .safetensors file: either an ein::Error, or tensors that have all of the file's
// data and that, written again, are read back the same.
#include <ein/safetensors.hpp>

#include "fuzz/fuzz.hpp"
#include "io/safetensors_header.hpp"

using ein::fuzz::MemoryFile, ein::fuzz::require, ein::fuzz::same;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file, written;
  file.replace(data, size);
  ein::Safetensors mapped;
  try {
    mapped = ein::load_safetensors(file.path());
  } catch (const ein::Error& error) {
    require(error.kind() == ein::ErrorKind::file, "an error of another kind");
    bool copies = true;
    try {
      ein::load_safetensors(file.path(), {.mmap = false});
    } catch (const ein::Error&) {
      copies = false;
    }
    require(!copies, "refused when mapped, accepted when copied");
    return 0;
  }
  std::uint64_t header = 0;
  std::memcpy(&header, data, sizeof header);
  std::size_t bytes = sizeof header + header;
  for (const auto& [name, tensor] : mapped.tensors) bytes += tensor.nbytes();
  for (const auto& [name, tensor] : mapped.foreign) bytes += tensor.bytes.nbytes();
  require(bytes == size, "bytes that are no tensor's");

  written.replace(nullptr, 0);
  const auto layout = ein::io::layout_safetensors("fuzz", mapped.tensors, mapped.metadata);
  written.write(layout.header.data(), layout.header.size());
  for (const ein::Tensor* tensor : layout.tensors)
    written.write(tensor->contiguous().raw_data(), tensor->nbytes());
  const ein::Safetensors back = ein::load_safetensors(written.path(), {.mmap = false});
  require(back.metadata == mapped.metadata, "other metadata after a round trip");
  require(back.tensors.size() == mapped.tensors.size(), "other tensors after a round trip");
  for (const auto& [name, tensor] : mapped.tensors) {
    require(same(tensor, back.tensors.at(name)), "another tensor after a round trip");
  }
  return 0;
}
