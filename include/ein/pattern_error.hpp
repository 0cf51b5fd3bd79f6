// pattern_error: what the compiler says about a pattern that is wrong.
//
// A literal is checked while compiling. A mistake calls one of these functions, which are not constexpr, so
// that the compiler stops there and prints the function's name.
#pragma once

#include <string_view>

#include <ein/grammar/mistake.hpp>

namespace ein {

namespace pattern_error {

#define EIN_DECLARE(name) void name(std::string_view place_in_the_pattern);
EIN_FOR_EACH_COMPLAINT(EIN_DECLARE)
#undef EIN_DECLARE
void reduction_is_unknown(std::string_view name);
void types_have_different_dtypes();
void types_have_different_ranks();
void types_have_different_sizes();

}  // namespace pattern_error

namespace detail {

/// Stops the compiler at the function named after the mistake, if there is one.
constexpr void require_none(const grammar::Mistake& mistake, std::string_view pattern) {
  const std::string_view place = pattern.substr(mistake.span.begin < pattern.size() ? mistake.span.begin : pattern.size(),
                                                mistake.span.end - mistake.span.begin);
  switch (mistake.complaint) {
    case grammar::Complaint::none: return;
#define EIN_CASE(name) \
  case grammar::Complaint::name: return pattern_error::name(place);
      EIN_FOR_EACH_COMPLAINT(EIN_CASE)
#undef EIN_CASE
  }
}

}  // namespace detail
}  // namespace ein
