#include <ein/safetensors.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "io/elements.hpp"
#include "io/file.hpp"
#include "io/safetensors_header.hpp"
#include "io/safetensors_index.hpp"
#include "io/safetensors_writer.hpp"

namespace ein {

Safetensors io::load_safetensors(const InputFile& file, bool mmap, Xxh64* checksum) {
  SafetensorsHeader header = read_safetensors_header(file, checksum);
  Safetensors loaded;
  loaded.metadata = std::move(header.metadata);
  std::vector<decltype(header.tensors)::pointer> in_order;  // of their bytes
  for (auto& named : header.tensors) in_order.push_back(&named);
  std::ranges::sort(in_order, {},
                    [](auto* p) { return std::pair(p->second.begin, p->second.end); });
  const std::shared_ptr<std::byte> mapping = mmap ? file.map() : nullptr;
  for (auto* const named : in_order) {
    auto& [name, entry] = *named;
    const bool is_foreign = !entry.foreign.empty();
    auto storage =
        read_elements(file, mapping, header.data_begin + entry.begin, entry.end - entry.begin,
                      is_foreign ? DType::u8 : entry.dtype, checksum);
    if (is_foreign) {
      const Shape bytes{static_cast<std::int64_t>(storage->bytes())};
      loaded.foreign.emplace(name, ForeignTensor{std::move(entry.foreign), std::move(entry.shape),
                                                 Tensor(std::move(storage), DType::u8, bytes,
                                                        contiguous_strides(bytes))});
      continue;
    }
    Strides strides = contiguous_strides(entry.shape);
    loaded.tensors.emplace(
        name, Tensor(std::move(storage), entry.dtype, std::move(entry.shape), std::move(strides)));
  }
  return loaded;
}

Safetensors load_safetensors(const std::string& path, SafetensorsOptions options) {
  const std::string caller = "load_safetensors";
  const auto load = [&](const io::InputFile& file) {
    return io::load_safetensors(file, options.mmap);
  };
  if (path.ends_with(io::index_suffix))
    return io::load_indexed(caller, path, [&](auto& file, auto&) { return load(file); });
  return load(io::InputFile(caller, path));
}

void save_safetensors(const std::string& path, const StateDict& tensors, const Metadata& metadata) {
  io::SafetensorsWriter file("save_safetensors", path, tensors, metadata);
  for (const Tensor* tensor : file.tensors()) file.write(*tensor);
  file.commit();
}

}  // namespace ein
