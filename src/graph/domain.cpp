#include "graph/domain.hpp"

#include <cmath>

#include <ein/error.hpp>
#include "graph/named.hpp"
#include "size/ask.hpp"

namespace ein {

bool Domain::has(double value) const {
  return std::isfinite(value) && (least_is_open ? value > least : value >= least) &&
         (most_is_open ? value < most : value <= most);
}

std::string Domain::wanted(const std::string& option) const {
  if (std::isinf(most))
    return (least_is_open ? "above " : "at least ") + show(least) + " and finite is wanted";
  return show(least) + (least_is_open ? " < " : " <= ") + option + (most_is_open ? " < " : " <= ") +
         show(most) + " is wanted";
}

double require_in(const Domain& domain, const std::string& of, const char* option, double value) {
  if (domain.has(value)) return value;
  throw Error(ErrorKind::value,
              of + ": " + option + " is " + show(value) + ", " + domain.wanted(option));
}

std::int64_t require_at_least(std::int64_t least, const std::string& of, const char* option,
                              std::int64_t value) {
  if (value >= least) return value;
  throw Error(ErrorKind::value, of + ": " + option + " is " + std::to_string(value) +
                                    ", at least " + std::to_string(least) + " is wanted");
}

}  // namespace ein
