// The pattern of a call, with a name for each axis where one stands for many.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "graph/diagnostic.hpp"

namespace ein {

/// The pattern itself where it has no `*name`; else a new one. An Error of kind `inference` where
/// the operands do not tell how many axes a name stands for.
class SpreadPattern {
 public:
  /// `stacked`: the operands become one, on a new first axis.
  SpreadPattern(Operation op, const grammar::Pattern& pattern, std::span<const Shape> shapes,
                bool stacked = false);
  const grammar::Pattern& pattern() const { return pattern_; }

 private:
  struct Written {
    std::string text;
    grammar::PatternBuffer buffer;
  };
  grammar::Pattern pattern_;
  std::shared_ptr<const Written> written_;
};

}  // namespace ein
