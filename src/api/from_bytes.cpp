// Memory of others whose steps are counted in bytes.
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <ein/create.hpp>
#include <ein/error.hpp>
#include "runtime/map.hpp"

namespace ein {
namespace {

/// Elements of `size` bytes in memory of the caller.
struct Bytes {
  const char* call;
  std::size_t count;  // of the memory
  DType dtype;
  const Shape& shape;
  const Strides& strides;
  std::int64_t offset;

  std::int64_t size() const { return static_cast<std::int64_t>(size_of(dtype)); }
  bool steps(std::size_t d) const { return shape[d] > 1; }
};

/// From byte `low` on to byte `high`; the first element lies `before` bytes after `low`.
struct Reach {
  std::int64_t before = 0, low = 0, high = 0;
};

[[noreturn]] void refuse(const Bytes& m, ErrorKind kind, const std::string& why) {
  throw Error(kind, std::string(m.call) + ": elements of " + std::string(name(m.dtype)) + " (" +
                        std::to_string(m.size()) + " bytes) of shape " + m.shape.to_string() +
                        ", byte strides " + m.strides.to_string() + " and byte offset " +
                        std::to_string(m.offset) + why);
}

/// An Error of kind `shape` when some element is not in the memory.
Reach reach_of(const Bytes& m) {
  if (m.strides.rank() != m.shape.rank())
    refuse(m, ErrorKind::shape, " have not one stride for each axis");
  const std::string of_memory = "; the memory has " + std::to_string(m.count) + " bytes";
  std::int64_t before = 0, after = 0, high = 0;
  bool fits = true;
  const bool is_empty = checked_numel(m.shape, m.size()) == 0;
  for (std::size_t d = 0; d < m.shape.rank() && fits && !is_empty; ++d) {
    const std::int64_t stride = m.strides[d], size = m.shape[d];
    std::int64_t extent = 0;
    fits = !__builtin_mul_overflow(stride, size - 1, &extent) &&
           !(stride < 0 ? __builtin_sub_overflow(before, extent, &before)
                        : __builtin_add_overflow(after, extent, &after));
  }
  fits = fits && !__builtin_add_overflow(after, is_empty ? 0 : m.size(), &after) &&
         !__builtin_add_overflow(m.offset, after, &high);
  if (!fits) refuse(m, ErrorKind::shape, " reach further than memory does" + of_memory);
  if (m.offset < before || high > static_cast<std::int64_t>(m.count)) {
    refuse(m, ErrorKind::shape,
           " reach " +
               (m.offset < before ? std::to_string(before) + " bytes below the offset, " : "") +
               "up to byte " + std::to_string(high) + of_memory);
  }
  return {before, m.offset - before, high};
}

constexpr const char* help = "\n  help: copy_from_bytes makes a tensor of such memory, by a copy";

/// The strides in elements; an Error where there are none.
Strides strides_in_elements(const Bytes& m) {
  Strides strides = contiguous_strides(m.shape);
  for (std::size_t d = 0; d < strides.rank(); ++d) {
    if (!m.steps(d)) continue;
    if (m.strides[d] % m.size() != 0) {
      refuse(m, ErrorKind::shape,
             " are no view: the stride " + to_string(m.strides[d]) + " of axis " +
                 std::to_string(d) + " is no multiple of " + std::to_string(m.size()) + help);
    }
    strides[d] = m.strides[d] / m.size();
  }
  return strides;
}

}  // namespace

Tensor detail::borrowed_bytes(std::byte* data, std::size_t count, bool read_only, DType dtype,
                              const Shape& shape, const Strides& byte_strides,
                              std::int64_t byte_offset, std::shared_ptr<void> owner) {
  const Bytes m{"from_bytes", count, dtype, shape, byte_strides, byte_offset};
  const Reach reach = reach_of(m);
  Strides strides = strides_in_elements(m);
  const std::size_t alignment = size_of(real_dtype(dtype));
  std::byte* const lowest = data == nullptr ? nullptr : data + reach.low;
  if (reinterpret_cast<std::uintptr_t>(lowest) % alignment != 0) {
    refuse(m, ErrorKind::value,
           " are no view: their addresses are no multiples of " + std::to_string(alignment) + help);
  }
  auto storage = Storage::wrap(lowest, static_cast<std::size_t>(reach.high - reach.low),
                               std::move(owner), read_only);
  return Tensor(std::move(storage), dtype, shape, std::move(strides), reach.before / m.size());
}

Tensor copy_from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                       const Strides& byte_strides, std::int64_t byte_offset) {
  const Bytes m{"copy_from_bytes", bytes.size(), dtype, shape, byte_strides, byte_offset};
  reach_of(m);
  const Tensor copy = engine::with_memory(shape, dtype, cpu);
  auto* to = static_cast<std::byte*>(copy.raw_data());
  std::vector<std::int64_t> at(shape.rank(), 0);
  std::int64_t place = byte_offset;
  for (std::int64_t n = copy.numel(); n > 0; --n, to += m.size()) {
    std::memcpy(to, bytes.data() + place, size_of(dtype));
    for (std::size_t d = shape.rank(); d-- > 0;) {
      place += byte_strides[d];
      if (++at[d] < shape[d]) break;
      place -= at[d] * byte_strides[d];
      at[d] = 0;
    }
  }
  return copy;
}

}  // namespace ein
