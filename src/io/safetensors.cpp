#include <ein/safetensors.hpp>

#include "io/elements.hpp"
#include "io/file.hpp"
#include "io/safetensors_header.hpp"
#include "io/safetensors_index.hpp"
#include "io/safetensors_writer.hpp"

namespace ein {

Safetensors io::load_safetensors(const InputFile& file, bool mmap) {
  SafetensorsHeader header = read_safetensors_header(file);
  Safetensors loaded;
  loaded.metadata = std::move(header.metadata);
  const std::shared_ptr<std::byte> mapping = mmap ? file.map() : nullptr;
  for (auto& [name, entry] : header.tensors) {
    const bool is_foreign = !entry.foreign.empty();
    auto storage = read_elements(file, mapping, header.data_begin + entry.begin,
                                 entry.end - entry.begin, is_foreign ? DType::u8 : entry.dtype);
    if (is_foreign) {
      const Shape bytes{static_cast<std::int64_t>(storage->bytes())};
      loaded.foreign.emplace(name, ForeignTensor{std::move(entry.foreign), std::move(entry.shape),
                                                 Tensor(std::move(storage), DType::u8, bytes,
                                                        contiguous_strides(bytes))});
      continue;
    }
    Strides strides = contiguous_strides(entry.shape);
    loaded.tensors.emplace_hint(
        loaded.tensors.end(), name,
        Tensor(std::move(storage), entry.dtype, std::move(entry.shape), std::move(strides)));
  }
  return loaded;
}

Safetensors load_safetensors(const std::string& path, SafetensorsOptions options) {
  const std::string caller = "load_safetensors";
  if (path.ends_with(io::index_suffix)) return io::load_indexed(caller, path, options.mmap);
  return io::load_safetensors(io::InputFile(caller, path), options.mmap);
}

void save_safetensors(const std::string& path, const StateDict& tensors, const Metadata& metadata) {
  io::SafetensorsWriter file("save_safetensors", path, tensors, metadata);
  for (const Tensor* tensor : file.tensors()) file.write(*tensor);
  file.commit();
}

}  // namespace ein
