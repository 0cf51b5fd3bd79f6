#include "cuda/arguments.hpp"
#include "size/ask.hpp"

namespace ein::gpu {

void Arguments::set(const codegen::KernelSource& kernel, const Memory& memory) {
  words_.clear();
  for (const codegen::TensorMap& map : kernel.maps) {
    const std::byte* const begin = memory.buffers[static_cast<std::size_t>(map.buffer)];
    const codegen::EncodedTensorMap encoded = memory.encode(
        map, reinterpret_cast<std::uint64_t>(begin) + static_cast<std::uint64_t>(map.offset));
    words_.insert(words_.end(), encoded.begin(), encoded.end());
  }
  const std::size_t in_maps = words_.size();
  const auto pointer = [&](std::size_t i) {
    const int buffer = kernel.buffers[i];
    const std::byte* const begin = buffer == codegen::workspace_buffer
                                       ? memory.workspace
                                       : memory.buffers[static_cast<std::size_t>(buffer)];
    words_.push_back(reinterpret_cast<std::uint64_t>(begin) +
                     static_cast<std::uint64_t>(kernel.offsets[i]));
  };
  for (std::size_t i = 0; i < kernel.table.pointers; ++i) pointer(i);
  words_.insert(words_.end(), kernel.table.numbers.begin(), kernel.table.numbers.end());
  const std::size_t in_table = words_.size();
  for (std::size_t i = kernel.table.pointers; i < kernel.buffers.size(); ++i) pointer(i);
  if (kernel.checks_positions) words_.push_back(memory.fault);
  for (const codegen::KernelSource::Stream& stream : kernel.streams) {
    words_.push_back(stream.of_run ? memory.random.seed : stream.seed);
    words_.push_back(stream.stream + (stream.of_run ? memory.random.stream : 0));
  }
  words_.insert(words_.end(), kernel.constants.begin(), kernel.constants.end());
  words_.insert(words_.end(), kernel.sizes.begin(), kernel.sizes.end());
  addresses_.clear();
  for (std::size_t i = 0; i < in_maps; i += std::tuple_size_v<codegen::EncodedTensorMap>)
    addresses_.push_back(&words_[i]);
  if (in_table > in_maps) addresses_.push_back(&words_[in_maps]);
  for (std::size_t i = in_table; i < words_.size(); ++i) addresses_.push_back(&words_[i]);
}

}  // namespace ein::gpu
