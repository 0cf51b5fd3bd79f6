// Positions: integers from a tensor that say where to read or write.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <ein/error.hpp>
#include "cpu/loops.hpp"

namespace ein::host {

[[noreturn]] inline void throw_outside(const char* operation, std::int64_t position,
                                       const LoopNest::Indirection& axis) {
  throw Error(ErrorKind::value, std::string(operation) + ": " + outside_axis(position, axis));
}

[[noreturn]] inline void throw_no_class(std::int64_t target, const LoopNest::Indirection& axis) {
  const std::int64_t classes = axis.size * axis.parts;
  throw Error(ErrorKind::value, "cross_entropy: target " + position_text(target, axis) +
                                    " is none of the " + std::to_string(classes) +
                                    " classes, 0 to " + std::to_string(classes - 1));
}

/// `position`, if it is one of the first `count` of `axis`; otherwise the Error of kind `value`
/// that every backend gives.
inline std::int64_t checked_position(const char* operation, std::int64_t position,
                                     std::int64_t count, const LoopNest::Indirection& axis) {
  if (static_cast<std::uint64_t>(position) >= static_cast<std::uint64_t>(count))
    throw_outside(operation, position, axis);
  return position;
}

/// The position of one element, likewise; `picks_classes` says that it is the target of a loss.
inline std::int64_t checked_gather(bool picks_classes, std::int64_t position, std::int64_t count,
                                   const LoopNest::Indirection& axis) {
  if (!picks_classes) return checked_position("gather", position, count, axis);
  if (static_cast<std::uint64_t>(position) >= static_cast<std::uint64_t>(count))
    throw_no_class(position, axis);
  return position;
}

/// Calls `f` with a std::type_identity of the type of positions.
template <class F>
void visit_positions(DType dtype, F&& f) {
  if (dtype == DType::i32) return f(std::type_identity<std::int32_t>{});
  f(std::type_identity<std::int64_t>{});
}

}  // namespace ein::host
