#include "graph/spread.hpp"

#include <vector>

#include "ein/grammar/parse.hpp"
#include "ein/grammar/spread.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// What could not be seen any more in the names that come.
grammar::Mistake mistake_of_many(Operation op, const grammar::Pattern& pattern) {
  for (const grammar::Term& term : pattern.terms) {
    if (!term.is_many) continue;
    if (op == Operation::pack || op == Operation::unpack)
      return {grammar::Complaint::many_axes_are_not_allowed, term.span, {}, 0};
    for (const grammar::Term& other : pattern.terms) {
      const bool is_one = other.kind == grammar::TermKind::name && !other.is_many &&
                          pattern.name_of(other) == pattern.name_of(term);
      if (is_one)
        return {grammar::Complaint::name_is_of_one_axis_and_of_many, other.span, term.span, 0};
    }
  }
  return {};
}

}  // namespace

SpreadPattern::SpreadPattern(Operation op, const grammar::Pattern& pattern,
                             std::span<const Shape> shapes, bool stacked)
    : pattern_(pattern) {
  if (!pattern.has_many()) return;
  if (const grammar::Mistake mistake = mistake_of_many(op, pattern)) fail(op, pattern, mistake, {});
  std::vector<std::int64_t> ranks;
  for (const Shape& shape : shapes)
    ranks.push_back(static_cast<std::int64_t>(shape.rank()) + (stacked ? 1 : 0));
  if (stacked) ranks.resize(1);
  const grammar::List<grammar::AxisCount> counts = grammar::count_axes(pattern, ranks);
  if (const std::string_view open = grammar::uncounted(pattern, counts); !open.empty()) {
    std::vector<Mark> marks;
    for (const grammar::Term& term : pattern.terms) {
      if (term.is_many && pattern.name_of(term) == open) marks.push_back({term.span, ""});
    }
    fail(ErrorKind::inference, name(op),
         "how many axes '*" + std::string(open) + "' stands for cannot be found", pattern.text,
         marks,
         {show_operands(shapes), "help: an operand tells it that has no other '*' and no '...'"});
  }
  auto written = std::make_shared<Written>();
  written->text = std::string(grammar::spread(pattern, counts).text.view());
  grammar::Reading reading = grammar::parse_pattern(written->text);
  if (reading.mistake) fail(op, reading.buffer.pattern(written->text), reading.mistake, {});
  written->buffer = std::move(reading.buffer);
  pattern_ = written->buffer.pattern(written->text);
  written_ = std::move(written);
}

}  // namespace ein
