// Numbers on the command line, in, out for people, and out for programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ein/count.hpp>

namespace ein::command {

/// The positive, finite number that an option's word says: "70e9". A UsageError otherwise.
double positive_number(const std::string& option, const std::string& word);
/// The positive whole number below 2^63 that it says, in either notation: "1024", "15e12".
std::int64_t whole_number(const std::string& option, const std::string& word);

/// 33,554,432.
std::string grouped(Count count);
/// Four digits: "143.9"; "6.30e24" from ten million on.
std::string shown(double value);
/// With a prefix of the SI: "989.5 TFLOP/s", "80 GB".
std::string with_prefix(double value, const std::string& unit);
/// "1.2 µs", "3.4 hours", "143.9 days".
std::string duration(double seconds);

/// Rows of cells; columns as wide as their widest cell, the last unpadded.
class Table {
 public:
  /// `right_aligned`: for each column, whether it holds numbers.
  explicit Table(std::vector<bool> right_aligned) : right_aligned_(std::move(right_aligned)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<bool> right_aligned_;
  std::vector<std::vector<std::string>> rows_;
};

/// One JSON object (RFC 8259) of plain members, one a line.
class Json {
 public:
  /// All digits.
  void add(std::string_view key, Count value);
  /// The shortest digits that read back as the same double; null for infinities and NaN.
  void add(std::string_view key, double value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  std::string text() const { return "{\n" + members_ + "\n}\n"; }

 private:
  void add_raw(std::string_view key, const std::string& value);
  std::string members_;
};

}  // namespace ein::command
