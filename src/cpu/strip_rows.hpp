// Rows of a schedule in strips: step after step on about a thousand elements, in any type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nest/nest.hpp"
#include "schedule/schedule.hpp"

namespace ein::host {

class StripRows {
 public:
  struct Call {
    std::span<std::byte* const> places;   // addresses of the first row
    std::int64_t rows, length;            // both at least 1
    std::span<const std::int64_t> index;  // the first value of each axis index
    const std::byte* first;  // of all results: random numbers depend on how far behind it they are
    RandomOrigin random;
  };
  virtual ~StripRows() = default;
  virtual void run(const Call& call) const = 0;

  /// Of a part's rows, which have one nest.
  static std::unique_ptr<const StripRows> make(const Schedule::Part& part);
};

}  // namespace ein::host
