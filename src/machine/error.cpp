#include <ein/error.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include "machine/printable.hpp"

namespace ein {

Error::Error(ErrorKind kind, const std::string& text, std::vector<SourceSpan> spans)
    : std::runtime_error(printable_lines(text)), kind_(kind), spans_(std::move(spans)) {}

std::string printable_line(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  return std::string(grammar::detail::ShownLine(text).line().view());
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    lines += printable_line(text.substr(0, end)) + '\n';
  return lines + printable_line(text);
}

}  // namespace ein
