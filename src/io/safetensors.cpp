#include <ein/safetensors.hpp>

#include "io/elements.hpp"
#include "io/file.hpp"
#include "io/safetensors_header.hpp"

namespace ein {

Safetensors io::load_safetensors(const InputFile& file, bool mmap) {
  SafetensorsHeader header = read_safetensors_header(file);
  Safetensors loaded;
  loaded.metadata = std::move(header.metadata);
  const std::shared_ptr<std::byte> mapping = mmap ? file.map() : nullptr;
  for (auto& [name, entry] : header.tensors) {
    auto storage = read_elements(file, mapping, header.data_begin + entry.begin,
                                 entry.end - entry.begin, entry.dtype);
    Strides strides = contiguous_strides(entry.shape);
    loaded.tensors.emplace_hint(
        loaded.tensors.end(), name,
        Tensor(std::move(storage), entry.dtype, std::move(entry.shape), std::move(strides)));
  }
  return loaded;
}

Safetensors load_safetensors(const std::string& path, SafetensorsOptions options) {
  return io::load_safetensors(io::InputFile("load_safetensors", path), options.mmap);
}

void save_safetensors(const std::string& path, const StateDict& tensors, const Metadata& metadata) {
  const io::SafetensorsLayout layout =
      io::layout_safetensors("save_safetensors", tensors, metadata);
  io::ReplacementFile file("save_safetensors", path);
  layout.write([&](const void* from, std::size_t bytes) { file.write(from, bytes); });
  file.commit();
}

}  // namespace ein
