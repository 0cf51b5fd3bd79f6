// Bytes that a value has on the heap, for the account of what is kept.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <ein/detail/fields.hpp>
#include <ein/shape.hpp>
#include "tensor/type_kinds.hpp"

namespace ein {

/// Bytes that an allocator takes for a block of `bytes`: 8 more, in steps of 16.
constexpr std::size_t block_bytes(std::size_t bytes) {
  return bytes == 0 ? 0 : (bytes + 8 + 15) / 16 * 16;
}

/// Whether memory is a part of an object itself.
template <class T>
bool is_inside(const void* memory, const T& object) {
  const auto* const begin = reinterpret_cast<const char*>(&object);
  const auto* const at = static_cast<const char*>(memory);
  return at >= begin && at < begin + sizeof object;
}

/// What it has outside of itself, and what that has: of a struct that lists its fields
/// (EIN_FIELDS), of these. What is shared counts as its own.
template <class T>
std::size_t heap_bytes(const T& x) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    return 0;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return is_inside(x.data(), x) ? 0 : block_bytes(x.capacity() + 1);
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    return block_bytes(x.capacity() / 8);
  } else if constexpr (std::is_same_v<T, Shape>) {
    return is_inside(x.data(), x) ? 0 : block_bytes(x.rank() * sizeof(Size));
  } else if constexpr (detail::is_vector<T>) {
    std::size_t bytes = block_bytes(x.capacity() * sizeof x[0]);
    for (const auto& element : x) bytes += heap_bytes(element);
    return bytes;
  } else if constexpr (detail::is_unique_pointer<T> || detail::is_shared_pointer<T>) {
    return x ? block_bytes(sizeof *x) + heap_bytes(*x) : 0;
  } else if constexpr (detail::is_optional<T>) {
    return x ? heap_bytes(*x) : 0;
  } else if constexpr (detail::is_variant<T>) {
    return std::visit([](const auto& form) { return heap_bytes(form); }, x);
  } else if constexpr (detail::is_pair<T>) {
    return heap_bytes(x.first) + heap_bytes(x.second);
  } else {
    std::size_t bytes = 0;
    detail::for_each_field(x, [&](const auto& field) { bytes += heap_bytes(field); });
    return bytes;
  }
}

/// Of several values.
template <class... T>
std::size_t heap_bytes_of_all(const T&... x) {
  return (heap_bytes(x) + ... + std::size_t{0});
}

}  // namespace ein
