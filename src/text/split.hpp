// The published splitting rules, on classes of characters instead of a regular expression.
#pragma once

#include <optional>
#include <string_view>

#include <ein/text.hpp>

#include "text/character.hpp"

namespace ein::text {

/// The rule of a regular expression as tokenizer.json has it; none for one that is not known.
std::optional<SplitRule> rule_of_pattern(std::string_view pattern);
/// The expression of a rule; "" for smollm2, which is made of two.
std::string_view pattern_of(SplitRule rule);

/// Finds the ends of pre-tokens.
class Splitter {
 public:
  explicit Splitter(SplitRule rule);

  /// The end of the pre-token that begins at `at`, which is before the end of the text. If the text
  /// goes on
  /// (`is_last` false) and what follows might make it another one: 0.
  std::size_t next(std::string_view text, std::size_t at, bool is_last) {
    text_ = text;
    touches_end_ = false;
    const std::size_t end = is_gpt2_ ? next_of_gpt2(at) : next_of_llama3(at);
    return touches_end_ && !is_last ? 0 : end;
  }

 private:
  struct Seen {
    Class of = Class::space;  // at the end of the text: nothing joins it
    std::uint32_t length = 0;
  };
  Seen see(std::size_t at);
  bool is_end(std::size_t at) {
    const bool is = at >= text_.size();
    touches_end_ |= is;
    return is;
  }
  std::size_t next_of_gpt2(std::size_t at);
  std::size_t next_of_llama3(std::size_t at);
  std::size_t contraction(std::size_t at);
  std::size_t run(Class of, std::size_t at);
  std::size_t white_space(std::size_t at);

  std::string_view text_;
  RangeTable classes_{class_ranges};
  Class of_marks_;
  bool is_gpt2_, cuts_digits_;
  int digits_;
  bool touches_end_ = false;
};

}  // namespace ein::text
