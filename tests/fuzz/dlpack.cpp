// Any bytes as a tensor of another library: taken, dropped and handed on; either an ein::Error,
// after which the deleter has not been called, or a tensor that says what the bytes say, after
// which it is called once. What lies in the memory of the test is read, too.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include <ein/dlpack.hpp>

#include "fuzz/fuzz.hpp"
#include "tensor/dlpack_abi.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

/// Numbers from the input, 0 behind its end.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  template <class T>
  T next() {
    T value{};
    const std::size_t count = std::min(sizeof value, size_);
    if (count > 0) std::memcpy(&value, data_, count);
    data_ += count;
    size_ -= count;
    return value;
  }
  /// Mostly a small number, so that some of them are possible.
  std::int64_t number() {
    const auto first = next<std::int8_t>();
    return first == 127 ? next<std::int64_t>() : first == 126 ? next<std::int32_t>() : first;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

constexpr std::size_t memory_bytes = 512, most_axes = 6;

struct Capsule {
  alignas(64) std::array<std::byte, memory_bytes> memory{};
  std::array<std::int64_t, most_axes> shape{}, strides{};
  int deleted = 0;
  DLManagedTensorVersioned managed{};
};

/// Whether each element lies in the memory of the test, computed another way than ein does: with
/// 128 bits.
bool is_readable(const Tensor& x, const Capsule& capsule) {
  __extension__ typedef __int128 Wide;
  const auto size = static_cast<Wide>(x.element_size());
  const auto begin = static_cast<Wide>(reinterpret_cast<std::uintptr_t>(capsule.memory.data()));
  Wide low = static_cast<Wide>(reinterpret_cast<std::uintptr_t>(x.raw_data())), high = low + size;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (x.shape()[d] == 0) return true;
    const Wide extent =
        Wide{std::int64_t{x.strides()[d]}} * (std::int64_t{x.shape()[d]} - 1) * size;
    (extent < 0 ? low : high) += extent;
  }
  return low >= begin && high <= begin + static_cast<Wide>(memory_bytes);
}

void check_taken(const Tensor& x, const Capsule& capsule) {
  const DLTensor& said = capsule.managed.dl_tensor;
  require(x.rank() == static_cast<std::size_t>(said.ndim), "another rank");
  for (std::size_t d = 0; d < x.rank(); ++d)
    require(x.shape()[d] == said.shape[d], "another shape");
  const bool is_empty = x.numel() == 0;
  for (std::size_t d = 0; d < x.rank() && !is_empty && said.strides != nullptr; ++d)
    require(x.strides()[d] == Size(said.strides[d]), "other strides");
  require(x.storage()->read_only() == ((capsule.managed.flags & 1) != 0), "another flag");
  if (!is_empty && is_readable(x, capsule) && x.numel() < 4096)
    require(same(x, x.clone()), "a copy differs");
  // Handed on, and taken back.
  const Tensor again = from_dlpack(to_dlpack(x));
  require(again.dtype() == x.dtype() && again.shape() == x.shape(), "another tensor");
  require(is_empty || (again.strides() == x.strides() && again.raw_data() == x.raw_data()),
          "another place");
  require(again.storage()->read_only() == x.storage()->read_only(), "another flag of both");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Capsule capsule;
  DLTensor& said = capsule.managed.dl_tensor;
  const auto how = bytes.next<std::uint8_t>();
  capsule.managed.version = {how % 16 == 15 ? bytes.next<std::uint32_t>() : 1, 0};
  capsule.managed.flags = bytes.next<std::uint8_t>();
  capsule.managed.manager_ctx = &capsule;
  capsule.managed.deleter = [](DLManagedTensorVersioned* self) {
    ++static_cast<Capsule*>(self->manager_ctx)->deleted;
  };
  if ((how & 16) != 0) capsule.managed.deleter = nullptr;
  const bool has_deleter = capsule.managed.deleter != nullptr;
  const auto kind = bytes.next<std::uint8_t>();
  constexpr std::array<DLDataType, 6> common{{{kDLFloat, 32, 1},
                                              {kDLFloat, 64, 1},
                                              {kDLInt, 8, 1},
                                              {kDLBfloat, 16, 1},
                                              {kDLComplex, 64, 1},
                                              {kDLBool, 8, 1}}};
  said.dtype = kind < 250 ? common[kind % common.size()]
                          : DLDataType{bytes.next<std::uint8_t>(), bytes.next<std::uint8_t>(),
                                       bytes.next<std::uint16_t>()};
  const auto device = bytes.next<std::uint8_t>();
  said.device = {device < 240 ? kDLCPU : static_cast<DLDeviceType>(bytes.next<std::int32_t>()),
                 static_cast<std::int32_t>(bytes.number())};
  const std::int64_t rank = bytes.number();
  // A shape of more axes than it has is beyond what a consumer can see.
  said.ndim = rank > static_cast<std::int64_t>(most_axes) && rank <= 1024
                  ? static_cast<std::int32_t>(most_axes)
                  : static_cast<std::int32_t>(std::clamp<std::int64_t>(rank, INT32_MIN, INT32_MAX));
  for (std::size_t d = 0; d < most_axes; ++d) {
    capsule.shape[d] = bytes.number();
    capsule.strides[d] = bytes.number();
  }
  said.shape = (how & 32) != 0 && said.ndim == 0 ? nullptr : capsule.shape.data();
  said.strides = (how & 64) != 0 ? nullptr : capsule.strides.data();
  if ((how & 128) != 0 && device >= 128) said.shape = nullptr;
  const auto place = bytes.next<std::uint8_t>();
  said.data = place == 255   ? nullptr
              : place == 254 ? reinterpret_cast<void*>(bytes.next<std::uintptr_t>())
                             : capsule.memory.data() + place;
  said.byte_offset = static_cast<std::uint64_t>(bytes.number());
  {
    std::optional<Tensor> taken;
    try {
      taken = from_dlpack(&capsule.managed);
    } catch (const Error& error) {
      require(error.what()[0] != '\0', "an error without words");
      require(capsule.deleted == 0, "the deleter of what was refused");
      return 0;
    }
    check_taken(*taken, capsule);
    require(capsule.deleted == 0, "the deleter before the last tensor is gone");
  }
  require(capsule.deleted == (has_deleter ? 1 : 0), "the deleter after the last tensor is gone");
  return 0;
}
