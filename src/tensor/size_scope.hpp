// SizeScope: for which lengths a function is traced, and for which others what came of it holds.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ein/size.hpp>

namespace ein {

/// Named sizes and their values.
using SizeValues = std::vector<std::pair<Size, std::int64_t>>;

/// What a formula is for these values; each name in it has one. An Error of kind `overflow` where
/// that exceeds 63 bits.
std::int64_t evaluate(Size formula, const SizeValues& values);

/// For which values all comparisons of a scope have the same answers: a range for each named size,
/// and formulas that have to stay below 0.
struct SizeGuards {
  struct Range {
    Size size;
    std::int64_t low = 0, high = INT64_MAX;
  };
  std::vector<Range> ranges;
  std::vector<Size> negative;

  /// `values` of the same sizes in the same order.
  bool hold(const SizeValues& values) const;
  std::string to_string() const;
};

/// While it lives, formulas are compared on this thread as if named sizes had these values, and
/// each comparison whose answer depends on them becomes a guard.
class SizeScope {
 public:
  explicit SizeScope(SizeValues values);
  ~SizeScope();
  SizeScope(const SizeScope&) = delete;
  SizeScope& operator=(const SizeScope&) = delete;

  /// The innermost of this thread, or null.
  static SizeScope* active();
  const SizeValues& values() const { return values_; }
  const SizeGuards& guards() const { return guards_; }
  bool is_negative(Size formula);
  bool is_zero(Size formula);

 private:
  friend class SizeScopePause;
  void keep_negative(Size formula);

  SizeScope* outer_;
  SizeValues values_;
  SizeGuards guards_;
  bool is_paused_ = false;
};

/// While it lives, comparisons make no guards: what only checks decides nothing.
class SizeScopePause {
 public:
  SizeScopePause();
  ~SizeScopePause();
  SizeScopePause(const SizeScopePause&) = delete;
  SizeScopePause& operator=(const SizeScopePause&) = delete;

 private:
  SizeScope* scope_;
  bool before_ = false;
};

}  // namespace ein
