// Pattern: what the grammar reads from a text such as "b s (h d) -> b h s d". Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <ein/grammar/list.hpp>

namespace ein {

/// A byte range [begin, end) of a pattern's text.
struct SourceSpan {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  friend bool operator==(const SourceSpan&, const SourceSpan&) = default;
};

namespace grammar {

enum class TermKind : std::uint8_t {
  name,      // an axis
  number,    // 1, or an anonymous axis of that size
  unnamed,   // _
  ellipsis,  // ...
  packed,    // *
  group,     // ( ... ), followed by its members: factors of its size
  sum,       // ( ... + ... ), followed by its members, the pieces that lie side by side
  brace,     // { ... }, followed by its members: names and constants that are added up
  constant,  // a number in a brace
};

/// One word, group or brace. Terms lie in the order of the text; the members of a group or a brace
/// follow it, up to `next`.
struct Term {
  TermKind kind = TermKind::name;
  SourceSpan span;
  std::uint32_t next = 0;  // index of the first term after this one and its members
  std::int64_t value =
      0;                // of a number or constant; of a name the size that the pattern says, or 0
  bool marked = false;  // in brackets [ ]
  SourceSpan placed{};  // of a name: "@data@pod" right behind it, or empty
  std::int64_t coefficient = 1;  // in a brace: what a name is multiplied by; of a constant the sign
  SourceSpan coefficient_name{};  // in a brace: of a name, another factor, which comes by this name
  SourceSpan size_name{};         // of a brace: the name of its dimension's size, or empty
  bool is_open = false;           // in a brace: it has a number that only the call knows, here 1
  bool is_many = false;           // a name behind '*': that of any number of axes

  constexpr bool has_members() const {
    return kind == TermKind::group || kind == TermKind::sum || kind == TermKind::brace;
  }
  constexpr bool is_placed() const { return placed.begin < placed.end; }
  /// Whether it is one axis: a name, or a number above 1.
  constexpr bool is_axis() const {
    return (kind == TermKind::name && !is_many) || (kind == TermKind::number && value > 1);
  }
};

/// Calls f(SourceSpan) for the name of each mesh axis of `placed`, a text such as "@data@pod".
template <class F>
constexpr void for_each_mesh_axis(std::string_view text, SourceSpan placed, F&& f) {
  for (std::uint32_t begin = placed.begin; begin < placed.end;) {
    std::uint32_t end = begin + 1;
    while (end < placed.end && text[end] != '@') ++end;
    f(SourceSpan{begin + 1, end});
    begin = end;
  }
}

/// One operand, or one result: the terms [first, last) and the text they came from.
struct Side {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  SourceSpan span;
};

/// A parsed pattern. It owns nothing: the text and the arrays belong to a PatternBuffer or are
/// constant data of the program.
struct Pattern {
  std::string_view text;
  std::span<const Term> terms;
  std::span<const Side> sides;     // the inputs, then the outputs
  std::uint32_t output_count = 0;  // the sides behind the arrow; 0 without one

  constexpr bool has_arrow() const { return output_count > 0; }
  constexpr std::span<const Side> inputs() const {
    return sides.first(sides.size() - output_count);
  }
  constexpr std::span<const Side> outputs() const { return sides.last(output_count); }
  /// The only output. Precondition: has_arrow().
  constexpr const Side& output() const { return sides.back(); }
  constexpr std::string_view text_of(SourceSpan span) const {
    return text.substr(span.begin, span.end - span.begin);
  }
  constexpr std::string_view name_of(const Term& term) const { return text_of(term.span); }
  constexpr std::span<const Term> terms_of(const Side& side) const {
    return terms.subspan(side.first, side.last - side.first);
  }

  /// Whether a dimension is a function of indices.
  constexpr bool has_braces() const { return has(TermKind::brace); }
  /// Whether a name stands for any number of axes.
  constexpr bool has_many() const {
    for (const Term& term : terms) {
      if (term.is_many) return true;
    }
    return false;
  }
  /// Whether axes lie side by side in a dimension.
  constexpr bool has_sums() const { return has(TermKind::sum); }
  /// Whether an axis is split over the processes of a mesh.
  constexpr bool has_placements() const {
    for (const Term& term : terms) {
      if (term.is_placed()) return true;
    }
    return false;
  }
  /// Calls f(SourceSpan) for the name of each mesh axis that `term` is split over, the outermost
  /// first.
  template <class F>
  constexpr void for_each_mesh_axis(const Term& term, F&& f) const {
    grammar::for_each_mesh_axis(text, term.placed, f);
  }
  /// The outermost axis of the group `terms[group]`, or null. 1 is none.
  constexpr const Term* outermost_axis(std::uint32_t group) const {
    for (std::uint32_t i = group + 1; i < terms[group].next; ++i) {
      const bool is_one = terms[i].kind == TermKind::number && terms[i].value == 1;
      if (terms[i].kind != TermKind::group && !is_one) return &terms[i];
    }
    return nullptr;
  }

  /// Whether an input has an axis that the output lacks: a name, an ellipsis, `_` or a number above
  /// 1. Precondition: has_arrow().
  constexpr bool drops_an_axis() const {
    for (const Side& side : inputs()) {
      for (const Term& term : terms_of(side)) {
        if (is_dropped(term)) return true;
      }
    }
    return false;
  }

  /// Whether the axes seem to be written as letters side by side, as other libraries have them:
  /// "ij,jk->ik". Then every name is of letters alone, some name has several, and the inputs have
  /// one name each, or names of one letter.
  constexpr bool is_glued() const {
    bool is_long = false;
    for (const Term& term : terms) {
      if (term.kind != TermKind::name && term.kind != TermKind::ellipsis) return false;
      if (term.kind == TermKind::name && !is_letters(name_of(term))) return false;
      is_long |= term.kind == TermKind::name && name_of(term).size() > 1;
    }
    return is_long && (inputs_have_one_name() || inputs_have_letters());
  }
  /// Whether each letter of `name` is in a name of an input.
  constexpr bool letters_are_in_inputs(std::string_view name) const {
    for (char letter : name) {
      bool found = false;
      for (const Side& side : inputs()) {
        for (const Term& term : terms_of(side))
          found |=
              term.kind == TermKind::name && name_of(term).find(letter) != std::string_view::npos;
      }
      if (!found) return false;
    }
    return true;
  }

 private:
  constexpr bool has(TermKind kind) const {
    for (const Term& term : terms) {
      if (term.kind == kind) return true;
    }
    return false;
  }
  static constexpr bool is_letters(std::string_view name) {
    for (char c : name) {
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
    }
    return true;
  }
  constexpr bool inputs_have_one_name() const {
    for (const Side& side : inputs()) {
      std::size_t names = 0;
      for (const Term& term : terms_of(side)) names += term.kind == TermKind::name;
      if (names > 1) return false;
    }
    return true;
  }
  constexpr bool inputs_have_letters() const {
    for (const Side& side : inputs()) {
      for (const Term& term : terms_of(side)) {
        if (term.kind == TermKind::name && name_of(term).size() > 1) return false;
      }
    }
    return true;
  }
  constexpr bool is_dropped(const Term& term) const {
    switch (term.kind) {
      case TermKind::unnamed:
        return true;
      case TermKind::number:
        return term.value > 1;
      case TermKind::name:
      case TermKind::ellipsis:
        for (const Side& side : outputs()) {
          for (const Term& kept : terms_of(side)) {
            if (kept.kind == term.kind &&
                (term.kind == TermKind::ellipsis || name_of(kept) == name_of(term)))
              return false;
          }
        }
        return true;
      default:
        return false;
    }
  }
};

/// The arrays of a Pattern while it is read, and afterwards its owner.
struct PatternBuffer {
  List<Term> terms;
  List<Side> sides;
  std::uint32_t output_count = 0;

  constexpr Pattern pattern(std::string_view text) const {
    return {text, terms, sides, output_count};
  }
};

}  // namespace grammar
}  // namespace ein
