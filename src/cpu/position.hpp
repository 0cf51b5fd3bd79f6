// Positions: integers from a tensor that say where to read or write.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <ein/error.hpp>
#include "cpu/loops.hpp"

namespace ein::host {

[[noreturn]] inline void throw_outside(const char* operation, std::int64_t position,
                                       std::int64_t size, std::int64_t length) {
  throw Error(ErrorKind::value,
              std::string(operation) + ": " + outside_axis(position, length, size));
}

[[noreturn]] inline void throw_no_class(std::int64_t target, std::int64_t classes) {
  throw Error(ErrorKind::value, "cross_entropy: target " + std::to_string(target) +
                                    " is none of the " + std::to_string(classes) +
                                    " classes, 0 to " + std::to_string(classes - 1));
}

/// `position`, if 0 <= position <= size - length; otherwise the Error of kind `value` that every
/// backend gives.
inline std::int64_t checked_position(const char* operation, std::int64_t position,
                                     std::int64_t size, std::int64_t length = 1) {
  if (static_cast<std::uint64_t>(position) >= static_cast<std::uint64_t>(size - length + 1))
    throw_outside(operation, position, size, length);
  return position;
}

/// The position of one element, likewise; `picks_classes` says that it is the target of a loss.
inline std::int64_t checked_gather(bool picks_classes, std::int64_t position, std::int64_t size) {
  if (!picks_classes) return checked_position("gather", position, size);
  if (static_cast<std::uint64_t>(position) >= static_cast<std::uint64_t>(size))
    throw_no_class(position, size);
  return position;
}

/// Calls `f` with a std::type_identity of the type of positions.
template <class F>
void visit_positions(DType dtype, F&& f) {
  if (dtype == DType::i32) return f(std::type_identity<std::int32_t>{});
  f(std::type_identity<std::int64_t>{});
}

}  // namespace ein::host
