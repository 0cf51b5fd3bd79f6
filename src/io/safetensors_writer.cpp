#include "io/safetensors_writer.hpp"

namespace ein::io {

SafetensorsWriter::SafetensorsWriter(const std::string& caller, const std::string& path,
                                     const StateDict& tensors, const Metadata& metadata)
    : layout_(layout_safetensors(caller, tensors, metadata)), file_(caller, path) {
  write(layout_.header.data(), layout_.header.size());
}

void SafetensorsWriter::write(const Tensor& tensor) {
  const Tensor elements = tensor.to(cpu).contiguous();
  write(elements.raw_data(), elements.nbytes());
}

void SafetensorsWriter::write(const void* from, std::size_t bytes) {
  file_.write(from, bytes);
  checksum_.update(from, bytes);
  written_.size += bytes;
}

ManifestFile SafetensorsWriter::commit() {
  file_.commit();
  written_.checksum = checksum_.digest();
  return written_;
}

}  // namespace ein::io
