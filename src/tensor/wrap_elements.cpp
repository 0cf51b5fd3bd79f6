// Tensors over memory that other libraries describe.
#include <cstdint>
#include <string>
#include <utility>

#include <ein/detail/wrap_elements.hpp>
#include <ein/error.hpp>
#include "tensor/rank.hpp"

namespace ein {

detail::MemoryReach detail::reach_of_elements(const void* first, DType dtype, const Shape& shape,
                                              Strides& strides) {
  require_possible_rank(shape.rank());
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const bool is_empty = checked_numel(shape, size) == 0;
  // Those of no elements may be anything: Eigen's are 0, as if elements shared memory.
  if (is_empty) strides = contiguous_strides(shape);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  std::int64_t before = 0, bytes = is_empty ? 0 : size;
  bool fits = true;
  for (std::size_t d = 0; d < shape.rank() && fits && !is_empty; ++d) {
    const std::int64_t steps = shape[d] - 1, stride = strides[d];
    std::int64_t extent = 0;
    fits = !__builtin_mul_overflow(stride, steps, &extent) &&
           !__builtin_mul_overflow(extent, size, &extent) &&
           !(extent < 0 ? __builtin_sub_overflow(before, extent, &before)
                        : __builtin_add_overflow(bytes, extent, &bytes));
  }
  fits = fits && !__builtin_add_overflow(bytes, before, &bytes);
  const auto below = static_cast<std::uintptr_t>(before), all = static_cast<std::uintptr_t>(bytes);
  if (!is_empty && first == nullptr) {
    throw Error(ErrorKind::value, "elements of " + std::string(name(dtype)) + " of shape " +
                                      shape.to_string() + " lie at a null address");
  }
  if (!fits || address < below || address - below > UINTPTR_MAX - all) {
    throw Error(ErrorKind::shape, "elements of " + std::string(name(dtype)) + " of shape " +
                                      shape.to_string() + " and strides " + strides.to_string() +
                                      " reach further than memory does");
  }
  return {static_cast<std::byte*>(const_cast<void*>(first)) - before, all, before / size};
}

Tensor detail::wrap_elements(const void* first, bool read_only, DType dtype, Shape shape,
                             Strides strides, std::shared_ptr<void> owner, Device device) {
  const MemoryReach reach = reach_of_elements(first, dtype, shape, strides);
  if (device != cpu && read_only) {
    throw Error(ErrorKind::value, "memory of " + to_string(device) +
                                      " that may only be read is no tensor\n  help: copy it first");
  }
  auto storage =
      device == cpu
          ? Storage::wrap(reach.lowest, reach.bytes, std::move(owner), read_only)
          : std::make_shared<Storage>(reach.lowest, reach.bytes, std::move(owner), device);
  return Tensor(std::move(storage), dtype, std::move(shape), std::move(strides), reach.offset);
}

}  // namespace ein
