// What each operation wants of a pattern, whatever the shapes. Constexpr: the same code runs while
// compiling and at run time.
#pragma once

#include <ein/grammar/cases.hpp>
#include <ein/grammar/mistake.hpp>
#include <ein/grammar/operations.hpp>

namespace ein {

namespace grammar {

constexpr const Form& form_of(Operation op) { return info(op).form; }

/// Whether einsum of several operands may sum an axis that stands in one of them alone.
enum class LoneSums : bool { refused, allowed };
/// How many results the caller takes.
enum class Results : bool { one, many };

namespace detail {

/// The checks of one call, in the order in which they are reported.
class Checker {
 public:
  constexpr Checker(Operation op, const Pattern& pattern, std::span<const std::string_view> given,
                    bool more_given, LoneSums lone_sums, Results results)
      : op_(op),
        form_(form_of(op)),
        pattern_(pattern),
        given_(given),
        more_given_(more_given),
        lone_sums_(lone_sums),
        results_(results) {}

  constexpr Mistake check(std::size_t operand_count) {
    check_form(operand_count);
    for (const Side& side : pattern_.inputs()) check_words(side, true);
    for (const Side& side : pattern_.outputs()) check_words(side, false);
    check_brackets();
    for (const Side& side : pattern_.sides) check_repeats(side);
    if (has_output()) check_axes();
    if (has_output() && op_ == Operation::reshard) check_order();
    if (pattern_.has_placements()) check_placements();
    check_sizes();
    check_given();
    if (has_output() && !more_given_) {
      for (const Term& term : pattern_.terms) check_size_name(term);
    }
    if (has_output() && has_cases(op_, pattern_)) {
      const Cases found = find_cases(op_, pattern_);
      if (!mistake_) mistake_ = found.mistake;
      check_solvable(found.is_whole);
    } else {
      check_solvable({});
    }
    if (op_ == Operation::einsum && lone_sums_ == LoneSums::refused) check_sums();
    return mistake_;
  }

 private:
  constexpr bool packs() const { return op_ == Operation::pack || op_ == Operation::unpack; }
  constexpr bool has_output() const { return !mistake_ && pattern_.has_arrow(); }

  constexpr void complain(Complaint complaint, SourceSpan span, SourceSpan other = {},
                          std::int64_t argument = 0) {
    if (!mistake_) mistake_ = {complaint, span, other, argument};
  }
  constexpr std::span<const Term> terms_of(const Side& side) const {
    return pattern_.terms_of(side);
  }
  static constexpr bool is_anonymous(const Term& term) {
    return term.kind == TermKind::number && term.value > 1;
  }
  /// Of many names most are as long as each other and differ at the end: a1000, a1001.
  static constexpr bool are_same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && a.back() == b.back() && a == b;
  }
  /// The term of `side` that names the same axis, or null.
  constexpr const Term* find(const Side& side, std::string_view name) const {
    for (const Term& term : terms_of(side)) {
      if (term.kind == TermKind::name && are_same(pattern_.name_of(term), name)) return &term;
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
    if (form_.has_arrow == Form::arrow && !pattern_.has_arrow())
      complain(Complaint::arrow_is_missing, {end, end + 1});
    if (form_.has_arrow == Form::no_arrow && pattern_.has_arrow()) {
      complain(Complaint::arrow_is_not_wanted,
               {pattern_.sides[0].span.end, pattern_.sides[0].span.end + 2});
    }
    if (pattern_.output_count > 1 && !form_.joins) {
      const std::uint32_t comma = pattern_.outputs()[0].span.end;
      complain(Complaint::comma_after_the_arrow, {comma, comma + 1});
    }
    if (pattern_.output_count > 1 && results_ == Results::one)
      complain(Complaint::call_has_one_result,
               {pattern_.outputs()[0].span.begin, pattern_.outputs().back().span.end});
    if (mistake_) return;
    const bool many = form_.operands == Form::any_number;
    if (pattern_.inputs().size() != (many ? operand_count : form_.operands)) {
      const SourceSpan all{pattern_.inputs().front().span.begin, pattern_.inputs().back().span.end};
      complain(Complaint::number_of_operands_differs, all, {},
               static_cast<std::int64_t>(operand_count));
    }
  }

  constexpr bool is_in_a_group(const Side& side, const Term& term) const {
    for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
      const Term& whole = pattern_.terms[i];
      if (whole.span.begin < term.span.begin && term.span.end < whole.span.end) return true;
    }
    return false;
  }
  /// Whether there is a use for a group: where no other side names its axes, an axis in brackets.
  constexpr bool may_group(const Side& side, const Term& group) const {
    if (!form_.has_groups || form_.operands > 1 || form_.has_arrow != Form::no_arrow)
      return form_.has_groups;
    for (const Term* term = &group + 1; term != pattern_.terms.data() + group.next; ++term) {
      if (term->marked) return true;
    }
    return is_in_a_group(side, group);
  }

  constexpr void check_words(const Side& side, bool is_input) {
    const bool unnamed_fits =
        (op_ == Operation::einsum && is_input) || op_ == Operation::parse_shape;
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
          if (!mistake_ && !may_group(side, term))
            complain(Complaint::group_is_not_allowed, term.span);
          break;
        case TermKind::sum:
          if (!form_.has_sums) complain(Complaint::sum_is_not_allowed, term.span);
          check_pieces(term);
          break;
        case TermKind::brace:
          if (!form_.has_braces) complain(Complaint::brace_is_not_allowed, term.span);
          if (is_in_a_group(side, term)) complain(Complaint::brace_is_inside_a_group, term.span);
          break;
        case TermKind::number:
          if (packs() || is_of_a_mesh(op_)) complain(Complaint::number_is_not_allowed, term.span);
          break;
        case TermKind::name:
          if (term.is_many) check_many(term);
          break;
        case TermKind::ellipsis:
        case TermKind::constant:
          break;
      }
    }
    if (packs() && !packed) complain(Complaint::packed_axes_are_missing, side.span);
    if (is_input) check_ellipsis_is_bare(side);
  }

  constexpr void check_many(const Term& many) {
    if (packs()) complain(Complaint::many_axes_are_not_allowed, many.span);
    if (mistake_) return;
    for (const Term& term : pattern_.terms) {
      if (term.kind == TermKind::name && !term.is_many &&
          are_same(pattern_.name_of(term), pattern_.name_of(many)))
        complain(Complaint::name_is_of_one_axis_and_of_many, term.span, many.span);
    }
  }

  constexpr void check_pieces(const Term& sum) {
    for (const Term* piece = &sum + 1; piece != pattern_.terms.data() + sum.next; ++piece) {
      const bool is_axis =
          (piece->kind == TermKind::name && !piece->is_many) || piece->kind == TermKind::number;
      const bool holds_axes = piece->kind == TermKind::group || piece->kind == TermKind::sum;
      if (!is_axis && !holds_axes) complain(Complaint::piece_is_no_axis, piece->span);
      if (piece->is_placed()) complain(Complaint::piece_is_placed, with_placement(*piece));
    }
    for (std::uint32_t i = static_cast<std::uint32_t>(&sum - pattern_.terms.data()) + 1;
         i < sum.next; i = pattern_.terms[i].next) {
      if (pattern_.terms[i].kind == TermKind::sum)
        complain(Complaint::piece_is_no_axis, pattern_.terms[i].span);
    }
  }

  /// From the bracket before a marked term to the one after it.
  constexpr SourceSpan brackets_around(const Term& term) const {
    SourceSpan span = term.span;
    while (pattern_.text[span.begin] != '[') --span.begin;
    while (pattern_.text[span.end - 1] != ']') ++span.end;
    return span;
  }

  constexpr void check_brackets() {
    if (mistake_) return;
    if (form_.brackets == Form::matrix_of_the_input) return check_matrices();
    const bool in_output = form_.brackets == Form::axis_of_the_output;
    const Side& home = in_output ? pattern_.output() : pattern_.sides[0];
    const Term* found = nullptr;
    std::size_t count = 0;
    for (const Side& side : pattern_.sides) {
      for (const Term& term : terms_of(side)) {
        if (!term.marked) continue;
        if (form_.brackets == Form::no_brackets || &side != &home) {
          complain(Complaint::brackets_are_not_allowed, brackets_around(term));
        }
        if (form_.marks_one_axis() && (found || !term.is_axis())) {
          complain(Complaint::one_axis_in_brackets_is_wanted, brackets_around(term));
        }
        if (form_.marks_two_axes() && (count == 2 || !term.is_axis())) {
          complain(Complaint::two_axes_in_brackets_are_wanted, brackets_around(term));
        }
        const bool is_one = term.kind == TermKind::number && !term.is_axis();
        if (is_one) complain(Complaint::number_is_not_allowed, term.span);
        if (makes_two_of_one() && is_in_a_group(side, term))
          complain(Complaint::brackets_are_inside_a_group, brackets_around(term));
        found = &term;
        ++count;
      }
    }
    if (form_.brackets == Form::no_brackets || mistake_) return;
    if (!found) return complain(Complaint::brackets_are_missing, home.span);
    if (form_.marks_two_axes() && count == 1)
      return complain(Complaint::two_axes_in_brackets_are_wanted, brackets_around(*found));
    if (found->kind != TermKind::name) return;
    for (const Side& side : pattern_.sides) {
      const bool may_have_it = &side == &home || has_classes(side);
      const Term* other = may_have_it ? nullptr : find(side, pattern_.name_of(*found));
      if (other) complain(Complaint::axis_in_brackets_is_elsewhere, other->span, found->span);
    }
    const bool is_known =
        more_given_ || is_given(pattern_.name_of(*found)) || size_of(pattern_.name_of(*found)) > 0;
    if (in_output && !is_known) complain(Complaint::axis_size_is_missing, found->span);
  }

  /// Whether two axes come in the place of the one in brackets.
  constexpr bool makes_two_of_one() const { return info(op_).axes[0].first == MarkedAxes::doubled; }

  /// Targets that are probabilities of the classes in brackets.
  constexpr bool has_classes(const Side& side) const {
    return op_ == Operation::cross_entropy && &side == &pattern_.sides[1];
  }

  /// In brackets are names: two of the first operand, the first of them in the second operand too,
  /// and the second in the output.
  constexpr void check_matrices() {
    const Side& home = pattern_.sides[0];
    const Term *rows = nullptr, *columns = nullptr;
    for (const Term& term : terms_of(home)) {
      if (!term.marked) continue;
      if (columns || term.kind != TermKind::name || term.is_many)
        complain(Complaint::rows_and_columns_in_brackets_are_wanted, brackets_around(term));
      (rows ? columns : rows) = &term;
    }
    if (!columns) {
      complain(Complaint::rows_and_columns_in_brackets_are_wanted,
               rows ? brackets_around(*rows) : home.span);
    }
    for (std::size_t s = 1; s < pattern_.sides.size() && !mistake_; ++s) {
      const Side& side = pattern_.sides[s];
      const bool is_output = s >= pattern_.inputs().size();
      const Term &wanted = is_output ? *columns : *rows, &other = is_output ? *rows : *columns;
      if (const Term* found = find(side, pattern_.name_of(other)))
        complain(Complaint::axis_in_brackets_is_elsewhere, found->span, other.span);
      const Complaint complaint = is_output ? Complaint::columns_in_brackets_are_wanted
                                            : Complaint::rows_in_brackets_are_wanted;
      const Term* marked = nullptr;
      for (const Term& term : terms_of(side)) {
        if (!term.marked) continue;
        const bool is_it = term.kind == TermKind::name && !marked &&
                           pattern_.name_of(term) == pattern_.name_of(wanted);
        if (!is_it) complain(complaint, brackets_around(term), wanted.span);
        marked = &term;
      }
      if (!marked) complain(complaint, side.span, wanted.span);
    }
  }

  constexpr void check_ellipsis_is_bare(const Side& side) {
    for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
      for (std::uint32_t j = i + 1; j < pattern_.terms[i].next; ++j) {
        if (pattern_.terms[j].kind != TermKind::ellipsis) continue;
        complain(Complaint::ellipsis_is_inside_a_group_of_an_input, pattern_.terms[j].span,
                 pattern_.terms[i].span);
      }
    }
  }

  constexpr void check_repeats(const Side& side) {
    const bool is_output = &side >= pattern_.outputs().data();
    const bool names_may_repeat = form_.multiplies() && !is_output;
    const std::span<const Term> terms = terms_of(side);
    for (std::size_t i = 0; i < terms.size() && !mistake_; ++i) {
      const bool is_name = terms[i].kind == TermKind::name && !names_may_repeat;
      // Of numbers and brackets, which may repeat, there may be very many.
      if (!is_name && terms[i].kind != TermKind::ellipsis) continue;
      for (std::size_t j = 0; j < i; ++j) {
        if (terms[i].kind != terms[j].kind) continue;
        if (!is_name) complain(Complaint::ellipsis_is_repeated, terms[i].span, terms[j].span);
        if (is_name && are_same(pattern_.name_of(terms[i]), pattern_.name_of(terms[j])))
          complain(Complaint::axis_is_repeated, terms[i].span, terms[j].span);
      }
    }
  }

  constexpr void check_axes() {
    bool input_ellipsis = false;
    for (const Side& side : pattern_.inputs()) {
      for (const Term& term : terms_of(side)) input_ellipsis |= term.kind == TermKind::ellipsis;
    }
    bool output_ellipsis = false;
    const bool keeps_all =
        op_ == Operation::map || op_ == Operation::rearrange || op_ == Operation::repeat ||
        op_ == Operation::gather || op_ == Operation::one_hot || op_ == Operation::solve ||
        op_ == Operation::lstsq || op_ == Operation::searchsorted || op_ == Operation::reshard;
    const bool may_add_axes = op_ == Operation::layer;
    const bool may_add_numbers = op_ == Operation::repeat || may_add_axes || form_.multiplies();
    for (const Term& term : pattern_.terms.subspan(pattern_.outputs()[0].first)) {
      if (term.marked) continue;
      if (term.kind == TermKind::ellipsis) {
        output_ellipsis = true;
        if (!input_ellipsis) complain(Complaint::ellipsis_of_the_output_is_in_no_input, term.span);
      }
      if (!mistake_ && is_anonymous(term) && !may_add_numbers && !is_in_a_sum(term)) {
        complain(Complaint::anonymous_axis_of_the_output_is_in_no_input, term.span);
      }
      if (term.kind == TermKind::name && !is_in_an_input(pattern_.name_of(term))) {
        if (pattern_.is_glued() && pattern_.letters_are_in_inputs(pattern_.name_of(term))) {
          complain(Complaint::axis_names_are_glued,
                   {0, static_cast<std::uint32_t>(pattern_.text.size())});
        } else if (op_ != Operation::repeat && !may_add_axes) {
          complain(Complaint::axis_of_the_output_is_in_no_input, term.span);
        } else if (!may_add_axes && !more_given_ && !is_given(pattern_.name_of(term)) &&
                   size_of(pattern_.name_of(term)) == 0) {
          complain(Complaint::axis_size_is_missing, term.span);
        }
      }
    }
    if (!keeps_all) return;
    for (const Side& side : pattern_.inputs()) {
      for (const Term& term : terms_of(side)) {
        if (term.marked) continue;
        if (term.kind == TermKind::ellipsis && !output_ellipsis) {
          complain(Complaint::ellipsis_of_the_input_is_lost, term.span);
        }
        if (is_anonymous(term)) complain(Complaint::anonymous_axis_of_the_input_is_lost, term.span);
        if (term.kind == TermKind::name && !is_in_an_output(pattern_.name_of(term))) {
          complain(Complaint::axis_of_the_input_is_lost, term.span);
        }
      }
    }
  }
  constexpr bool is_in_an_output(std::string_view name) const {
    for (const Side& side : pattern_.outputs()) {
      if (find(side, name)) return true;
    }
    return false;
  }
  constexpr bool is_in_a_sum(const Term& term) const {
    for (const Term* sum = pattern_.terms.data(); sum != &term; ++sum) {
      if (sum->kind == TermKind::sum && &term < pattern_.terms.data() + sum->next) return true;
    }
    return false;
  }

  /// Both sides have the same axes, each once.
  constexpr void check_order() {
    const std::span<const Term> from = terms_of(pattern_.sides[0]),
                                to = terms_of(pattern_.output());
    for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) {
      if (pattern_.name_of(from[i]) != pattern_.name_of(to[i]))
        return complain(Complaint::axes_are_in_another_order, to[i].span, from[i].span);
    }
  }

  constexpr void check_placements() {
    for (const Side& side : pattern_.sides) {
      check_mesh_axes(side);
      check_groups_placed(side);
    }
    if (op_ == Operation::reshard) return;
    const std::span<const Term> terms = pattern_.terms;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      for (std::size_t j = 0; j < i && terms[i].is_placed(); ++j) {
        if (!terms[j].is_placed() || pattern_.name_of(terms[i]) != pattern_.name_of(terms[j]) ||
            pattern_.text_of(terms[i].placed) == pattern_.text_of(terms[j].placed))
          continue;
        complain(Complaint::axis_is_placed_differently, with_placement(terms[i]),
                 with_placement(terms[j]));
      }
    }
  }
  static constexpr SourceSpan with_placement(const Term& term) {
    return {term.span.begin, term.placed.end};
  }
  constexpr void check_mesh_axes(const Side& side) {
    List<SourceSpan> seen;
    for (const Term& term : terms_of(side)) {
      pattern_.for_each_mesh_axis(term, [&](SourceSpan mesh_axis) {
        for (const SourceSpan& other : seen) {
          if (pattern_.text_of(other) == pattern_.text_of(mesh_axis))
            complain(Complaint::mesh_axis_is_repeated, mesh_axis, other);
        }
        seen.push_back(mesh_axis);
      });
    }
  }
  /// Cases of a group are cases of its outermost axis.
  constexpr void check_groups_placed(const Side& side) {
    for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
      if (pattern_.terms[i].kind != TermKind::group) continue;
      const Term* const outermost = pattern_.outermost_axis(i);
      for (std::uint32_t j = i + 1; j < pattern_.terms[i].next; ++j) {
        const Term& term = pattern_.terms[j];
        if (!term.is_placed() || &term == outermost) continue;
        complain(Complaint::inner_axis_of_a_group_is_placed, with_placement(term), outermost->span);
      }
    }
  }

  /// The size that the pattern says of an axis, or 0.
  constexpr std::int64_t size_of(std::string_view name) const {
    for (const Term& term : pattern_.terms) {
      if (term.kind == TermKind::name && term.value > 0 && pattern_.name_of(term) == name)
        return term.value;
    }
    return 0;
  }
  constexpr void check_sizes() {
    for (const Term& term : pattern_.terms) {
      if (term.kind != TermKind::name || term.value == 0) continue;
      for (const Term& other : pattern_.terms) {
        if (&other == &term) break;
        if (other.kind == TermKind::name && other.value > 0 && other.value != term.value &&
            pattern_.name_of(other) == pattern_.name_of(term))
          complain(Complaint::axis_has_two_sizes, term.span, other.span);
      }
    }
  }

  /// Whether a brace gives its dimension's size this name.
  constexpr bool names_a_dimension(std::string_view name) const {
    for (const Term& term : pattern_.terms) {
      if (term.size_name.end > 0 && pattern_.text_of(term.size_name) == name) return true;
    }
    return false;
  }

  constexpr void check_given() {
    for (std::size_t i = 0; i < given_.size() && !mistake_; ++i) {
      bool used = false;
      for (const Side& side : pattern_.sides) {
        const Term* const found = find(side, given_[i]);
        used |= found && !found->is_many;
      }
      used |= names_a_dimension(given_[i]);
      if (!used || !form_.has_groups) {
        complain(Complaint::axis_size_is_not_of_the_pattern, {}, {}, static_cast<std::int64_t>(i));
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (given_[i] != given_[j]) continue;
        complain(Complaint::axis_size_is_given_twice, {}, {}, static_cast<std::int64_t>(i));
      }
    }
  }

  constexpr bool has_a_group_among_inputs() const {
    for (const Side& side : pattern_.inputs()) {
      for (const Term& term : terms_of(side)) {
        if (term.has_members()) return true;
      }
    }
    return false;
  }

  /// Every group and brace must come to have at most one unknown size, once all others are known:
  /// from an argument, from a dimension of its own in some input, or from another group or brace.
  constexpr void check_solvable(const List<char>& is_whole) {
    if (mistake_ || !form_.has_groups || more_given_ || op_ == Operation::layer ||
        !has_a_group_among_inputs())
      return;
    List<char> known(pattern_.terms.size(), 0);
    const auto learn_name = [&](std::string_view name) {
      for (std::size_t i = 0; i < known.size(); ++i) {
        const Term& term = pattern_.terms[i];
        if (term.kind == TermKind::name && pattern_.name_of(term) == name) known[i] = 1;
      }
    };
    const auto learn = [&](const Term& found) { learn_name(pattern_.name_of(found)); };
    for (const Side& side : pattern_.inputs()) {
      for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
        if (pattern_.terms[i].kind == TermKind::name) learn(pattern_.terms[i]);
        if (pattern_.terms[i].size_name.end > 0)
          learn_name(pattern_.text_of(pattern_.terms[i].size_name));
        // Of a sum that is one axis nobody asks the sizes of its pieces.
        for (std::uint32_t j = i; !is_whole.empty() && is_whole[i] && j < pattern_.terms[i].next;
             ++j) {
          if (pattern_.terms[j].kind == TermKind::name) learn(pattern_.terms[j]);
        }
      }
    }
    for (const Term& term : pattern_.terms) {
      const bool is_told = term.kind == TermKind::name && (is_given(pattern_.name_of(term)) ||
                                                           size_of(pattern_.name_of(term)) > 0);
      if (is_told) learn(term);
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
      if (!progress && stuck) {
        complain(stuck->kind == TermKind::brace ? Complaint::brace_has_more_than_one_unknown_size
                 : stuck->kind == TermKind::sum ? Complaint::sum_has_more_than_one_unknown_size
                                                : Complaint::group_has_more_than_one_unknown_size,
                 stuck->span);
      }
    }
  }
  /// The name that a brace of the output gives its size is that of a size which is known.
  constexpr void check_size_name(const Term& brace) {
    if (brace.size_name.end == 0 || brace.span.begin < pattern_.inputs().back().span.end) return;
    const std::string_view name = pattern_.text_of(brace.size_name);
    if (!is_given(name) && size_of(name) == 0 && !is_in_an_input(name))
      complain(Complaint::axis_size_is_missing, brace.size_name);
  }

  /// Of each term whether it is a name that stands once in the pattern.
  constexpr List<char> names_alone() const {
    const List<std::uint32_t> first = first_of_names(pattern_);
    List<char> alone(first.size(), 0);
    for (std::uint32_t i = 0; i < first.size(); ++i)
      alone[first[i]] = first[i] == i && pattern_.terms[i].kind == TermKind::name;
    return alone;
  }
  /// An axis of an input that stands nowhere else is summed alone. Of two such axes in different
  /// operands one may be the other with a wrong name.
  constexpr void check_sums() {
    if (mistake_ || pattern_.inputs().size() < 2) return;
    const List<char> alone = names_alone();
    const Term* first = nullptr;
    for (const Side& side : pattern_.inputs()) {
      for (std::uint32_t i = side.first; i < side.last; ++i) {
        if (!alone[i]) continue;
        const Term& term = pattern_.terms[i];
        if (first) return complain(Complaint::axis_is_summed_alone, first->span, term.span);
        first = &term;
        break;
      }
    }
    if (first) complain(Complaint::axis_is_summed_alone, first->span);
  }

  Operation op_;
  Form form_;
  const Pattern& pattern_;
  std::span<const std::string_view> given_;
  bool more_given_;
  LoneSums lone_sums_;
  Results results_;
  Mistake mistake_;
};

}  // namespace detail

/// The first thing about `pattern` that `op` cannot take, given the number of operands and the
/// names of the axis sizes that come with the call; or no mistake. `more_given`: sizes of unknown
/// names come as well, so that none can be called missing.
constexpr Mistake check_pattern(Operation op, const Pattern& pattern, std::size_t operand_count,
                                std::span<const std::string_view> given = {},
                                bool more_given = false, LoneSums lone_sums = LoneSums::allowed,
                                Results results = Results::many) {
  return detail::Checker(op, pattern, given, more_given, lone_sums, results).check(operand_count);
}

}  // namespace grammar
}  // namespace ein
