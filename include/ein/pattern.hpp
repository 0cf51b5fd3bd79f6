// The pattern argument of an operation.
#pragma once

#include <string_view>

#include <ein/grammar/check.hpp>

namespace ein {

/// A pattern known at run time only: `einsum(x, y, ein::runtime(text))`. The text must live until the
/// call returns.
struct RuntimePattern {
  std::string_view text;
};
inline RuntimePattern runtime(std::string_view text) { return {text}; }

/// A pattern as an operation takes it.
class PatternText {
 public:
  PatternText(const char* text) : text_(text) {}
  PatternText(RuntimePattern pattern) : text_(pattern.text) {}
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

}  // namespace ein
