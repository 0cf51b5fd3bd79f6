// Division of counts.
#pragma once

#include <cstdint>
#include <string>

#include <ein/count.hpp>

namespace ein::accounting {

struct Quotient {
  Count value = 0;
  std::int64_t rest = 0;
};

/// a by b, for 0 < b < 2^59: digit by digit, as counts have no division of their own.
inline Quotient divided(Count a, std::int64_t b) {
  Quotient q;
  for (const char digit : a.to_string()) {
    q.rest = q.rest * 10 + (digit - '0');
    q.value = q.value * Count(10) + Count(q.rest / b);
    q.rest %= b;
  }
  return q;
}

}  // namespace ein::accounting
