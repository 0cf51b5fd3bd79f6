// In which type strips of a nest are computed: integers in as few bits as give what 64 would.
#pragma once

#include <cstdint>

#include <ein/dtype.hpp>
#include "schedule/schedule.hpp"

namespace ein::host {

struct StripType {
  DType dtype;  // of the body's values: i8, i16, i32, or as the rows are computed
  /// So many values may be combined in it; combinations of more are combined as the rows are
  /// computed. At least `plain_strip_size`.
  std::int64_t most = INT64_MAX;
  bool is_truth = false;  // all values are 0 or 1
};

/// The type for a part of rows in strips, which has one nest.
///
/// With fewer bits a step has its value modulo 2^bits. Sums, products and operations on bits need
/// no more of their arguments; all others need numbers that the bits hold, as shown by the ranges
/// of the inputs' dtypes and of constants. A result needs as many bits as it is stored in.
StripType strip_type(const Schedule::Part& part);

}  // namespace ein::host
