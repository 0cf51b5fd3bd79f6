// SizeScope: the lengths that a function is traced with, and the guards under which the trace, or a
// plan made of it, holds for others.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ein/size.hpp>

namespace ein {

/// Named sizes and their values.
using SizeValues = std::vector<std::pair<Size, std::int64_t>>;

/// What a formula is for these values; each name in it has one. An Error of kind `overflow` where
/// that exceeds 63 bits.
std::int64_t evaluate(Size formula, const SizeValues& values);

/// For choices that only want to know how large a size is, about: its value for the lengths at
/// hand, with a guard that it stays between two powers of 2.
std::int64_t about(Size size);
/// The same, but a number that the size does not exceed, or that does not exceed the size, for all
/// lengths that the guard allows; of a number itself.
std::int64_t at_most(Size size);
std::int64_t at_least(Size size);
/// The least power of 2 that is not below a size, but at most `most`, itself one; with a guard that
/// it stays so.
std::int64_t power_of_two_above(Size size, std::int64_t most = std::int64_t{1} << 62);

/// Formulas that divide this one for all lengths: itself first, few of them.
std::vector<Size> factors_of(Size formula);

/// Numbers in place of formulas, each of which is evaluated once.
class SizesAt {
 public:
  /// Without values: of what has no formulas.
  explicit SizesAt(SizeValues values = {}) : values_(std::move(values)) {}
  const SizeValues& values() const { return values_; }

  std::int64_t operator()(Size formula);
  void put(Size& size) { size = (*this)(size); }
  /// Whether any was asked for that is no number.
  bool has_met_formula() const { return !known_.empty(); }

 private:
  SizeValues values_;
  std::unordered_map<std::int64_t, std::int64_t> known_;
};

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
  /// What reading a formula as a number does: an Error, while a function is traced; a guard that it
  /// is this number, while passes run.
  enum class Reading : std::uint8_t { is_error, is_guard };
  /// `known` holds already.
  explicit SizeScope(SizeValues values, Reading reading = Reading::is_error, SizeGuards known = {});
  ~SizeScope();
  SizeScope(const SizeScope&) = delete;
  SizeScope& operator=(const SizeScope&) = delete;

  /// The innermost of this thread, or null.
  static SizeScope* active();
  const SizeValues& values() const { return values_; }
  /// Without those that follow from the ranges.
  SizeGuards guards() const;
  bool is_traced() const { return reading_ == Reading::is_error; }
  bool is_negative(Size formula);
  bool is_zero(Size formula);
  std::int64_t number_of(Size formula);

 private:
  friend class SizeScopePause;
  void keep_negative(Size formula);

  SizeScope* outer_;
  SizeValues values_;
  SizeGuards guards_;
  Reading reading_;
  bool is_paused_ = false;
};

/// The number that a size is at the lengths at hand. A guard that it is this number is made: what
/// is built of it holds for no others.
std::int64_t number_at_hand(Size size);

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
