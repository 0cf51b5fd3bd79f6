#include "io/number.hpp"

#include <locale>
#include <sstream>
#include <string>

namespace ein::io {

std::optional<double> floating_number(std::string_view text) {
  // What streams take beside it differs between libraries: "+1", "0x10", "inf".
  if (text.starts_with('+') || text.find_first_not_of("0123456789+-.e") != text.npos)
    return std::nullopt;
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  double value = 0;
  stream >> value;
  const bool is_all = !stream.fail() && stream.peek() == std::istringstream::traits_type::eof();
  return is_all ? std::optional(value) : std::nullopt;
}

}  // namespace ein::io
