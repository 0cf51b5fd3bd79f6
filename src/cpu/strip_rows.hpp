// Rows of a schedule in strips: step after step on about a thousand elements, in any type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nest/nest.hpp"
#include "schedule/schedule.hpp"

namespace ein::host {

class StripRows {
 public:
  /// How many elements further on the next element of a row is, and the next row: of each input of
  /// the nest, at least one, and then of the output.
  struct Steps {
    std::vector<std::int64_t> element, row;

    Steps(const Schedule::Part& part, SizesAt& sizes);
  };
  struct Call {
    const Steps& steps;
    std::span<std::byte* const> places;   // addresses of the first row
    std::int64_t rows, length;            // both at least 1
    std::span<const std::int64_t> index;  // the first value of each axis index
    const std::byte* first;  // of all results: random numbers depend on how far behind it they are
    RandomOrigin random;
  };
  virtual ~StripRows() = default;
  virtual void run(const Call& call) const = 0;

  /// Of a part's rows, which have one nest, for all lengths. Its expressions have no formulas.
  static std::unique_ptr<const StripRows> make(const Schedule::Part& part);
};

}  // namespace ein::host
