// What each operation wants of a pattern, whatever the shapes. Constexpr: the same code runs while
// compiling and at run time.
#pragma once

#include <ein/grammar/mistake.hpp>

namespace ein {

enum class Operation : std::uint8_t { einsum, reduce, rearrange, repeat, pack, unpack, parse_shape };

constexpr std::string_view name(Operation op) {
  constexpr std::string_view names[] = {"einsum", "reduce", "rearrange", "repeat", "pack", "unpack", "parse_shape"};
  return names[static_cast<std::size_t>(op)];
}

namespace grammar {

namespace detail {

/// The checks of one call, in the order in which they are reported.
class Checker {
 public:
  constexpr Checker(Operation op, const Pattern& pattern, std::span<const std::string_view> given, bool more_given)
      : op_(op), pattern_(pattern), given_(given), more_given_(more_given) {}

  constexpr Mistake check(std::size_t operand_count) {
    check_form(operand_count);
    for (const Side& side : pattern_.inputs()) check_words(side, true);
    if (has_output()) check_words(pattern_.output(), false);
    for (const Side& side : pattern_.sides) check_repeats(side);
    if (has_output()) check_axes();
    check_given();
    check_solvable();
    return mistake_;
  }

 private:
  constexpr bool takes_arrow() const {
    return op_ != Operation::pack && op_ != Operation::unpack && op_ != Operation::parse_shape;
  }
  constexpr bool packs() const { return op_ == Operation::pack || op_ == Operation::unpack; }
  constexpr bool has_output() const { return !mistake_ && takes_arrow(); }

  constexpr void complain(Complaint complaint, SourceSpan span, SourceSpan other = {}, std::int64_t argument = 0) {
    if (!mistake_) mistake_ = {complaint, span, other, argument};
  }
  constexpr std::span<const Term> terms_of(const Side& side) const {
    return pattern_.terms.subspan(side.first, side.last - side.first);
  }
  static constexpr bool is_anonymous(const Term& term) {
    return term.kind == TermKind::number && term.value > 1;
  }
  /// The term of `side` that names the same axis, or null.
  constexpr const Term* find(const Side& side, std::string_view name) const {
    for (const Term& term : terms_of(side)) {
      if (term.kind == TermKind::name && pattern_.name_of(term) == name) return &term;
    }
    return nullptr;
  }
  constexpr bool is_in_an_input(std::string_view name) const {
    for (const Side& side : pattern_.inputs()) {
      if (find(side, name)) return true;
    }
    return false;
  }
  constexpr bool is_given(std::string_view name) const {
    for (std::string_view given : given_) {
      if (given == name) return true;
    }
    return false;
  }

  constexpr void check_form(std::size_t operand_count) {
    const auto end = static_cast<std::uint32_t>(pattern_.text.size());
    if (takes_arrow() && !pattern_.has_arrow) complain(Complaint::arrow_is_missing, {end, end + 1});
    if (!takes_arrow() && pattern_.has_arrow) {
      complain(Complaint::arrow_is_not_wanted, {pattern_.sides[0].span.end, pattern_.sides[0].span.end + 2});
    }
    if (mistake_) return;
    const std::size_t wanted = pattern_.inputs().size();
    const bool many = op_ == Operation::einsum;
    if (many ? wanted != operand_count : wanted != 1) {
      const SourceSpan all{pattern_.inputs().front().span.begin, pattern_.inputs().back().span.end};
      complain(Complaint::number_of_operands_differs, all, {}, static_cast<std::int64_t>(operand_count));
    }
  }

  constexpr void check_words(const Side& side, bool is_input) {
    const bool unnamed_fits = (op_ == Operation::einsum && is_input) || op_ == Operation::parse_shape;
    const Term* packed = nullptr;
    for (const Term& term : terms_of(side)) {
      switch (term.kind) {
        case TermKind::unnamed:
          if (!unnamed_fits) complain(Complaint::unnamed_axis_is_not_allowed, term.span);
          break;
        case TermKind::packed:
          if (!packs()) complain(Complaint::packed_axes_are_not_allowed, term.span);
          if (packed) complain(Complaint::packed_axes_are_repeated, term.span, packed->span);
          packed = &term;
          break;
        case TermKind::group:
          if (!takes_arrow()) complain(Complaint::group_is_not_allowed, term.span);
          break;
        case TermKind::number:
          if (packs()) complain(Complaint::number_is_not_allowed, term.span);
          break;
        case TermKind::ellipsis:
          if (packs()) complain(Complaint::ellipsis_is_not_allowed, term.span);
          break;
        case TermKind::name: break;
      }
    }
    if (packs() && !packed) complain(Complaint::packed_axes_are_missing, side.span);
    if (is_input) check_ellipsis_is_bare(side);
  }

  constexpr void check_ellipsis_is_bare(const Side& side) {
    for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
      for (std::uint32_t j = i + 1; j < pattern_.terms[i].next; ++j) {
        if (pattern_.terms[j].kind != TermKind::ellipsis) continue;
        complain(Complaint::ellipsis_is_inside_a_group_of_an_input, pattern_.terms[j].span, pattern_.terms[i].span);
      }
    }
  }

  constexpr void check_repeats(const Side& side) {
    const bool is_output = pattern_.has_arrow && &side == &pattern_.output();
    const bool names_may_repeat = op_ == Operation::einsum && !is_output;
    const std::span<const Term> terms = terms_of(side);
    for (std::size_t i = 0; i < terms.size() && !mistake_; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (terms[i].kind != terms[j].kind) continue;
        if (terms[i].kind == TermKind::ellipsis) {
          complain(Complaint::ellipsis_is_repeated, terms[i].span, terms[j].span);
        }
        if (terms[i].kind == TermKind::name && !names_may_repeat &&
            pattern_.name_of(terms[i]) == pattern_.name_of(terms[j])) {
          complain(Complaint::axis_is_repeated, terms[i].span, terms[j].span);
        }
      }
    }
  }

  constexpr void check_axes() {
    const Side& output = pattern_.output();
    bool input_ellipsis = false;
    for (const Side& side : pattern_.inputs()) {
      for (const Term& term : terms_of(side)) input_ellipsis |= term.kind == TermKind::ellipsis;
    }
    bool output_ellipsis = false;
    const bool keeps_all = op_ == Operation::rearrange || op_ == Operation::repeat;
    const bool may_add_numbers = op_ == Operation::repeat || op_ == Operation::einsum;
    for (const Term& term : terms_of(output)) {
      if (term.kind == TermKind::ellipsis) {
        output_ellipsis = true;
        if (!input_ellipsis) complain(Complaint::ellipsis_of_the_output_is_in_no_input, term.span);
      }
      if (is_anonymous(term) && !may_add_numbers) {
        complain(Complaint::anonymous_axis_of_the_output_is_in_no_input, term.span);
      }
      if (term.kind == TermKind::name && !is_in_an_input(pattern_.name_of(term))) {
        if (op_ != Operation::repeat) {
          complain(Complaint::axis_of_the_output_is_in_no_input, term.span);
        } else if (!more_given_ && !is_given(pattern_.name_of(term))) {
          complain(Complaint::axis_size_is_missing, term.span);
        }
      }
    }
    if (!keeps_all) return;
    for (const Term& term : terms_of(pattern_.sides[0])) {
      if (term.kind == TermKind::ellipsis && !output_ellipsis) {
        complain(Complaint::ellipsis_of_the_input_is_lost, term.span);
      }
      if (is_anonymous(term)) complain(Complaint::anonymous_axis_of_the_input_is_lost, term.span);
      if (term.kind == TermKind::name && !find(output, pattern_.name_of(term))) {
        complain(Complaint::axis_of_the_input_is_lost, term.span);
      }
    }
  }

  constexpr void check_given() {
    for (std::size_t i = 0; i < given_.size() && !mistake_; ++i) {
      bool used = false;
      for (const Side& side : pattern_.sides) used |= find(side, given_[i]) != nullptr;
      if (!used || !takes_arrow()) {
        complain(Complaint::axis_size_is_not_of_the_pattern, {}, {}, static_cast<std::int64_t>(i));
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (given_[i] != given_[j]) continue;
        complain(Complaint::axis_size_is_given_twice, {}, {}, static_cast<std::int64_t>(i));
      }
    }
  }

  /// Every group must come to have at most one unknown size, once all others are known: from an
  /// argument, from a dimension of its own in some input, or from another group.
  constexpr void check_solvable() {
    if (mistake_ || !takes_arrow() || more_given_) return;
    std::vector<char> known(pattern_.terms.size(), 0);
    const auto learn = [&](const Term& found) {
      for (std::size_t i = 0; i < known.size(); ++i) {
        const Term& term = pattern_.terms[i];
        if (term.kind == TermKind::name && pattern_.name_of(term) == pattern_.name_of(found)) known[i] = 1;
      }
    };
    for (const Side& side : pattern_.inputs()) {
      for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
        if (pattern_.terms[i].kind == TermKind::name) learn(pattern_.terms[i]);
      }
      for (const Term& term : terms_of(side)) {
        if (term.kind == TermKind::name && is_given(pattern_.name_of(term))) learn(term);
      }
    }
    for (bool progress = true; progress;) {
      progress = false;
      const Term* stuck = nullptr;
      for (const Side& side : pattern_.inputs()) {
        for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
          std::size_t unknown = 0;
          const Term* last = nullptr;
          for (std::uint32_t j = i + 1; j < pattern_.terms[i].next; ++j) {
            const Term& term = pattern_.terms[j];
            const bool is_axis = term.kind == TermKind::name || term.kind == TermKind::unnamed;
            if (!is_axis || known[j]) continue;
            ++unknown;
            last = &term;
          }
          if (unknown == 1 && last->kind == TermKind::name) {
            learn(*last);
            progress = true;
          } else if (unknown > 1) {
            stuck = &pattern_.terms[i];
          }
        }
      }
      if (!progress && stuck) complain(Complaint::group_has_more_than_one_unknown_size, stuck->span);
    }
  }

  Operation op_;
  const Pattern& pattern_;
  std::span<const std::string_view> given_;
  bool more_given_;
  Mistake mistake_;
};

}  // namespace detail

/// The first thing about `pattern` that `op` cannot take, given the number of operands and the names of
/// the axis sizes that come with the call; or no mistake. `more_given`: sizes of unknown names come as well,
/// so that none can be called missing.
constexpr Mistake check_pattern(Operation op, const Pattern& pattern, std::size_t operand_count,
                                std::span<const std::string_view> given = {}, bool more_given = false) {
  return detail::Checker(op, pattern, given, more_given).check(operand_count);
}

}  // namespace grammar
}  // namespace ein
