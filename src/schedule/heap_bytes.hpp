// Bytes that schedules have on the heap. A field that is added does not compile until it is named
// here.
#pragma once

#include "nest/heap_bytes.hpp"
#include "schedule/schedule.hpp"

namespace ein {

inline std::size_t heap_bytes_of(const Schedule::Loop& loop) {
  const auto& [axis, size, block, is_serial] = loop;
  return heap_bytes(axis);
}
inline std::size_t heap_bytes_of(const Schedule::Place& place) {
  const auto& [buffer, dtype, offset, strides, row_step, step, is_kept, streams] = place;
  return heap_bytes(strides);
}
inline std::size_t heap_bytes_of(const Schedule::RowNest& nest) {
  const auto& [inputs, output, body, combine, over, epilogue, is_scalar] = nest;
  return heap_bytes_of_all(inputs, body, epilogue);
}
inline std::size_t heap_bytes_of(const Schedule::Rows& of_rows) {
  const auto& [rows, length, nests, in_strips, compute, axes] = of_rows;
  return heap_bytes_of_all(nests, axes);
}
inline std::size_t heap_bytes_of(const Schedule::Part& part) {
  const auto& [places, rows, product, whole, loops, inside, pieces] = part;
  return heap_bytes_of_all(places, rows, whole, loops);
}
inline std::size_t heap_bytes_of(const Schedule::Step& step) {
  const auto& [loops, parts, mask, threads] = step;
  return heap_bytes_of_all(loops, parts);
}
inline std::size_t heap_bytes_of(const Schedule& schedule) {
  const auto& [buffers, scratch, steps] = schedule;
  return heap_bytes_of_all(scratch, steps);
}

}  // namespace ein
