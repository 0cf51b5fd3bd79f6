#include "report.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "call.hpp"
#include "io/number.hpp"

namespace ein::command {

double positive_number(const std::string& option, const std::string& word) {
  const auto number = io::number_of<double>(word);
  if (!number || *number <= 0)
    throw UsageError(option + ": '" + word + "' is not a positive number");
  return *number;
}

std::int64_t whole_number(const std::string& option, const std::string& word) {
  if (const auto digits = io::number_of<std::int64_t>(word); digits && *digits > 0) return *digits;
  const double value = positive_number(option, word);
  if (value != std::floor(value))
    throw UsageError(option + ": '" + word + "' is not a whole number");
  if (value >= 0x1p63) throw UsageError(option + ": '" + word + "' exceeds 63 bits");
  return static_cast<std::int64_t>(value);
}

std::string grouped(Count count) {
  std::string text = to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

namespace {

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string shown(double value) {
  if (value == 0 || !std::isfinite(value)) return printed("%g", value);
  if (value >= 1e-3 && value < 1e7) return printed(value < 1e4 ? "%.4g" : "%.0f", value);
  const std::string text = printed("%.2e", value);  // 6.30e+24
  const std::size_t exponent = text.find('e') + 1;
  return text.substr(0, exponent) + std::to_string(std::stoi(text.substr(exponent)));
}

std::string with_prefix(double value, const std::string& unit) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  std::size_t i = 0;
  for (; value >= 999.95 && i + 1 < std::size(prefixes); ++i) value /= 1000;
  return printed("%.4g", value) + " " + prefixes[i] + unit;
}

std::string duration(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr Unit units[] = {{1e-9, "ns"}, {1e-6, "µs"},    {1e-3, "ms"},   {1, "s"},
                            {60, "min"},  {3600, "hours"}, {86400, "days"}};
  const Unit* unit = units;
  for (const Unit& larger : units) {
    // Two minutes and two days read better in the larger unit, one does not.
    if (seconds >= larger.seconds * (larger.seconds > 1 ? 2 : 1)) unit = &larger;
  }
  return shown(seconds / unit->seconds) + " " + unit->name;
}

std::string Table::text() const {
  const auto width = [](const std::string& cell) {
    return static_cast<std::size_t>(
        std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  };
  std::vector<std::size_t> widths(right_aligned_.size());
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - width(row[c]), ' ');
      line += (c > 0 ? "  " : "") + (right_aligned_[c] ? padding + row[c] : row[c] + padding);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace

void Json::add_raw(std::string_view key, const std::string& value) {
  members_ += (members_.empty() ? "  " : ",\n  ") + quoted(key) + ": " + value;
}
void Json::add(std::string_view key, Count value) { add_raw(key, to_string(value)); }
void Json::add(std::string_view key, std::string_view value) { add_raw(key, quoted(value)); }
void Json::add(std::string_view key, double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  add_raw(key, error == std::errc() && std::isfinite(value) ? std::string(text, end) : "null");
}

}  // namespace ein::command
