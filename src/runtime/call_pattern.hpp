// The pattern of a call, read; and the types of its operands.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <ein/pattern.hpp>
#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "graph/spread.hpp"
#include "runtime/plan.hpp"

namespace ein {

/// What the compiler read, or else what the run-time parser reads; an Error where it cannot.
class CallPattern {
 public:
  /// `sizes` are the call's: the numbers among them are put into braces, and are none of solve()'s.
  /// `shapes`, of the operands, tell how many axes a `*name` stands for.
  CallPattern(Operation op, const detail::PatternArgument& argument,
              std::span<const AxisSize> sizes = {}, std::span<const Shape> shapes = {},
              bool stacked = false) {
    if (argument.packed().is_set()) {
      buffer_ = argument.packed().unpacked(argument.text());
    } else {
      grammar::Reading reading = grammar::parse_pattern(argument.text());
      if (reading.mistake) fail(op, reading.buffer.pattern(argument.text()), reading.mistake, {});
      buffer_ = std::move(reading.buffer);
    }
    pattern = buffer_.pattern(argument.text());
    require_numbers(op, buffer_, argument.text(), sizes);
    pattern = buffer_.pattern(argument.text());
    if (!pattern.has_many()) return;
    spread_.emplace(op, pattern, shapes, stacked && pattern.inputs().size() == 1);
    pattern = spread_->pattern();
  }
  grammar::Pattern pattern;

 private:
  grammar::PatternBuffer buffer_;
  std::optional<SpreadPattern> spread_;
};

/// What einsum may sum, as the call says, or as its pattern is one in the program's text.
inline grammar::LoneSums lone_sums_of(const detail::PatternArgument& pattern,
                                      std::optional<bool> said = {}) {
  return said.value_or(!pattern.is_literal()) ? grammar::LoneSums::allowed
                                              : grammar::LoneSums::refused;
}

inline std::vector<Shape> shapes_of(engine::Operands operands) {
  std::vector<Shape> shapes;
  for (const Tensor* operand : operands) shapes.push_back(operand->shape());
  return shapes;
}

inline std::vector<OperandType> types_of(engine::Operands operands) {
  std::vector<OperandType> types;
  for (const Tensor* operand : operands) types.push_back({operand->shape(), operand->dtype()});
  return types;
}

}  // namespace ein
