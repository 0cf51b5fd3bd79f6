// How often each pre-token of a text occurs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/pre_tokens.hpp"

namespace ein::text {

/// Byte strings with a number each.
class Counts {
 public:
  struct Row {
    std::size_t hash = 0, begin = 0, length = 0;  // of its bytes
    std::int64_t count = 0;                       // 0: no row
  };

  void add(std::string_view bytes, std::int64_t count) {
    add(bytes, count, std::hash<std::string_view>()(bytes));
  }
  void add(const Counts& others) {
    for (const Row& row : others.rows_) {
      if (row.count > 0) add(others.bytes(row), row.count, row.hash);
    }
  }
  /// Calls f(bytes, count) for each.
  template <class F>
  void for_each(const F& f) const {
    for (const Row& row : rows_) {
      if (row.count > 0) f(bytes(row), row.count);
    }
  }

 private:
  std::string_view bytes(const Row& row) const {
    return std::string_view(bytes_).substr(row.begin, row.length);
  }
  void add(std::string_view bytes, std::int64_t count, std::size_t hash);
  void grow();

  std::vector<Row> rows_;  // open addressing, at most half of them used
  std::size_t used_ = 0;
  std::string bytes_;
};

/// The pre-tokens of texts, counted on threads.
class PreTokenCounter {
 public:
  explicit PreTokenCounter(const Cuts& cuts);

  /// Counts what the rest of the text can't change, and says how many bytes that is; all if it is
  /// the last piece.
  std::size_t count(std::string_view text, bool is_last);
  /// Of all texts.
  Counts finish();

 private:
  /// Pre-tokens that begin in [begin, end) of a text between special tokens.
  struct Part {
    std::string_view text;
    std::size_t begin, end;
  };
  std::size_t cut(std::string_view text, bool ends);
  void count_parts();

  const Cuts& cuts_;
  std::vector<Part> parts_;
  std::vector<Counts> counts_;  // one for each piece of work
};

}  // namespace ein::text
