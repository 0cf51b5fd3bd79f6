// `*batch`: any number of axes by one name. Where their number is known, the pattern is written
// anew with a name for each, "batch₁ batch₂", which is all that others see of it. Constexpr.
#pragma once

#include <ein/grammar/events.hpp>
#include <ein/grammar/text.hpp>

namespace ein::grammar {

/// How many axes a name stands for; `unknown` where nothing tells.
struct AxisCount {
  static constexpr std::int64_t unknown = -1;
  std::string_view name;
  std::int64_t count = unknown;
};

/// So many names at most are counted: more than that no tensor has axes for.
inline constexpr std::size_t max_names_of_many = 64;

/// The names of many axes, once each.
constexpr List<AxisCount> names_of_many(const Pattern& pattern) {
  List<AxisCount> names;
  for (const Term& term : pattern.terms) {
    if (!term.is_many || names.size() == max_names_of_many) continue;
    bool is_new = true;
    for (const AxisCount& other : names) is_new &= other.name != pattern.name_of(term);
    if (is_new) names.push_back({pattern.name_of(term)});
  }
  return names;
}

/// What operands of these ranks tell of the names of many axes; a rank below 0 tells nothing.
constexpr List<AxisCount> count_axes(const Pattern& pattern, std::span<const std::int64_t> ranks) {
  List<AxisCount> names = names_of_many(pattern);
  const auto find = [&](std::string_view name) {
    std::size_t i = 0;
    while (i < names.size() && names[i].name != name) ++i;
    return i;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t k = 0; k < ranks.size() && k < pattern.inputs().size(); ++k) {
      const Side& side = pattern.inputs()[k];
      std::int64_t left = ranks[k], unknowns = 0;
      bool is_open = false;
      std::size_t unknown = 0;
      for (std::uint32_t i = side.first; i < side.last; i = pattern.terms[i].next) {
        const Term& term = pattern.terms[i];
        is_open |= term.kind == TermKind::ellipsis;
        if (!term.is_many) {
          left -= term.kind != TermKind::ellipsis;
          continue;
        }
        const std::size_t name = find(pattern.name_of(term));
        if (name == names.size()) {
          is_open = true;
        } else if (names[name].count == AxisCount::unknown) {
          ++unknowns;
          unknown = name;
        } else {
          left -= names[name].count;
        }
      }
      if (ranks[k] < 0 || is_open || unknowns != 1 || left < 0) continue;
      names[unknown].count = left;
      progress = true;
    }
  }
  return names;
}

/// The first name whose number of axes `counts` does not say, or an empty one.
constexpr std::string_view uncounted(const Pattern& pattern, std::span<const AxisCount> counts) {
  for (const Term& term : pattern.terms) {
    bool is_counted = !term.is_many;
    for (std::size_t i = 0; i < counts.size() && !is_counted; ++i)
      is_counted = counts[i].name == pattern.name_of(term) && counts[i].count != AxisCount::unknown;
    if (!is_counted) return pattern.name_of(term);
  }
  return {};
}

/// A pattern with a name for each of many axes, and where in the first one each byte comes from.
struct Spread {
  Text text{};
  List<std::uint32_t> from{};

  constexpr SourceSpan origin(SourceSpan span) const {
    const auto end = static_cast<std::uint32_t>(from.size());
    if (span.end == 0 || end == 0) return span;
    const std::uint32_t begin = span.begin < end ? from[span.begin] : from[end - 1] + 1;
    return {begin, (span.end <= end ? from[span.end - 1] : from[end - 1]) + 1};
  }
};

/// A digit below the line: names may have it, and nobody types it.
constexpr void add_subscript(Text& text, std::int64_t number) {
  Text digits;
  digits.add(number);
  for (char digit : digits.view()) {
    text.add("\xE2\x82");
    text.add(static_cast<char>(0x80 + (digit - '0')));
  }
}

/// Writes `pattern` with as many names as `counts` says; an unknown number of axes is `...`.
constexpr Spread spread(const Pattern& pattern, std::span<const AxisCount> counts) {
  Spread result;
  std::uint32_t at = 0;
  const auto keep_up = [&](std::uint32_t place) {
    while (result.from.size() < result.text.size()) result.from.push_back(place);
  };
  const auto copy_until = [&](std::uint32_t end) {
    for (; at < end; ++at) {
      result.text.add(pattern.text[at]);
      keep_up(at);
    }
  };
  for (const Term& term : pattern.terms) {
    if (!term.is_many) continue;
    copy_until(term.span.begin - 1);  // '*'
    for (const AxisCount& axes : counts) {
      if (axes.name != pattern.name_of(term)) continue;
      if (axes.count == AxisCount::unknown) result.text.add("...");
      for (std::int64_t i = 1; i <= axes.count; ++i) {
        if (i > 1) result.text.add(" ");
        result.text.add(axes.name);
        add_subscript(result.text, i);
      }
    }
    keep_up(term.span.begin);
    at = term.span.end;
  }
  copy_until(static_cast<std::uint32_t>(pattern.text.size()));
  return result;
}

}  // namespace ein::grammar
