// The types of axes through one operation: checks the operands' types against a pattern, and finds
// the type of the result. Constexpr; the run-time solver (src/graph/solve.cpp) does the same with
// sizes.
#pragma once

#include <ein/grammar/check.hpp>
#include <ein/grammar/shape_spec.hpp>
#include <ein/grammar/text.hpp>

namespace ein::grammar {

/// What is known of an operand: the axes of its type, or null; and a number that stands for its
/// dtype, or -1.
struct OperandSpec {
  const SpecReading* axes = nullptr;
  int dtype = -1;
};

/// An axis size given with the call; -1 if it is known at run time only.
struct GivenSize {
  std::string_view name;
  std::int64_t size = -1;
};

/// Whether axes lie elsewhere in the result, as the pattern says there; without an arrow, as it
/// says.
enum class Moves : bool { no, yes };

/// The type of a result, written as a ShapeSpec; `is_known` only if every operand is typed.
struct InferredType {
  Mistake mistake{};
  bool is_known = false;
  Text axes{};
};

/// How often a type has this name, in sums and products too.
constexpr std::size_t uses_of(const SpecReading& spec, std::string_view name) {
  std::size_t uses = 0;
  for (const SpecStep& step : spec.steps)
    uses += step.kind == SpecStep::name && spec.text_of(step.span) == name;
  return uses;
}

/// What a result without an arrow has of the axes of the first operand's term number `term`.
constexpr MarkedAxes::Fate fate_of(const Pattern& pattern, const MarkedAxes& axes,
                                   std::uint32_t term) {
  if (!pattern.terms[term].marked) return axes.rest;
  for (std::uint32_t i = pattern.sides[0].first; i < term; ++i) {
    if (pattern.terms[i].marked) return axes.others;
  }
  return axes.first;
}

namespace detail {

/// The type of one axis: what its size is called, its size, and where it lies; each may be unknown.
struct AxisType {
  std::string_view name{};
  bool is_sum = false;  // the name is a sum or product of sizes
  std::int64_t size = -1;
  bool says_place = false;
  std::string_view placed{};  // "@data@pod"; empty if whole

  /// Whether both are of sizes that broadcast to neither, and lie differently.
  constexpr bool lies_elsewhere(const AxisType& other) const {
    if (!says_place || !other.says_place || placed == other.placed) return false;
    const bool same_name = !name.empty() && name == other.name;
    return same_name || !(may_be_one() || other.may_be_one());
  }

 private:
  constexpr bool may_be_one() const { return size == 1 || (size < 0 && placed.empty()); }
};

class TypeInference {
 public:
  constexpr TypeInference(Operation op, const Pattern& pattern,
                          std::span<const OperandSpec> operands, std::span<const GivenSize> given,
                          Moves moves, const MarkedAxes* marked, std::size_t which)
      : pattern_(pattern),
        operands_(operands),
        given_(given),
        moves_(moves),
        marked_(marked),
        which_(which),
        axis_of_(pattern.terms.size(), -1) {
    if (pattern.has_arrow() && pattern.has_sums()) cases_ = find_cases(op, pattern);
  }

  constexpr InferredType infer() {
    check_dtypes();
    name_axes();
    for (std::size_t k = 0; k < operands_.size() && !mistake_; ++k) {
      if (operands_[k].axes) take_operand(k);
    }
    for (int pass = 0; pass < 2; ++pass) {
      for (const GroupUse& use : groups_) take_group(use);
      for (const GroupUse& use : sums_of_axes_) take_sum(use);
    }
    for (const GroupUse& use : braces_) take_brace(use);
    if (moves_ == Moves::yes) place_result();
    if (pattern_.has_arrow()) check_places_of_result();
    InferredType type;
    type.mistake = mistake_;
    if (mistake_ || !(pattern_.has_arrow() || marked_)) return type;
    for (const OperandSpec& operand : operands_) {
      if (!operand.axes) return type;
    }
    type.is_known = write_result(type.axes);
    return type;
  }

 private:
  struct Axis {
    std::string_view name;
    AxisType type{};
    SourceSpan where{};
    SourceSpan where_placed{};
  };
  struct GroupUse {
    std::uint32_t term;
    AxisType type;
  };

  constexpr void complain(Complaint complaint, SourceSpan span, SourceSpan other = {},
                          std::int64_t argument = 0) {
    if (!mistake_) mistake_ = {complaint, span, other, argument};
  }

  constexpr void check_dtypes() {
    int dtype = -1;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      if (dtype >= 0 && operands_[k].dtype >= 0 && operands_[k].dtype != dtype) {
        complain(Complaint::operands_have_different_dtypes, {}, {}, static_cast<std::int64_t>(k));
      }
      if (operands_[k].dtype >= 0) dtype = operands_[k].dtype;
    }
  }

  constexpr void name_axes() {
    const std::size_t last_input = pattern_.inputs().back().last;
    for (std::size_t i = 0; i < pattern_.terms.size(); ++i) {
      const Term& term = pattern_.terms[i];
      if (term.kind == TermKind::number && term.value > 1) {
        axis_of_[i] = static_cast<int>(axes_.size());
        axes_.push_back({pattern_.name_of(term), {{}, false, term.value}, term.span});
      } else if (term.kind == TermKind::unnamed) {
        axis_of_[i] = static_cast<int>(axes_.size());
        axes_.push_back({pattern_.name_of(term)});
      } else if (term.kind == TermKind::name) {
        for (std::size_t a = 0; a < axes_.size(); ++a) {
          if (axes_[a].name == pattern_.name_of(term)) axis_of_[i] = static_cast<int>(a);
        }
        if (axis_of_[i] < 0) {
          axis_of_[i] = static_cast<int>(axes_.size());
          axes_.push_back({pattern_.name_of(term)});
          for (const GivenSize& size : given_) {
            if (size.name == axes_.back().name) axes_.back().type.size = size.size;
          }
        }
        Axis& axis = axes_[static_cast<std::size_t>(axis_of_[i])];
        if (term.value > 0 && axis.type.size >= 0 && axis.type.size != term.value)
          complain(Complaint::axis_has_two_sizes, term.span);
        if (term.value > 0) axis.type.size = term.value;
        const bool says_how_it_lies =
            moves_ == Moves::no || (pattern_.has_arrow() && i < last_input);
        if (term.is_placed() && says_how_it_lies)
          learn_place(axis_of_[i], pattern_.text_of(term.placed), term.span);
      } else if (is_whole(i)) {
        const std::uint32_t first = cases_.same[i];
        axis_of_[i] = first == i ? static_cast<int>(axes_.size()) : axis_of_[first];
        if (first == i) axes_.push_back({pattern_.name_of(term)});
      }
    }
  }

  constexpr void learn(int axis, const AxisType& type, SourceSpan where) {
    Axis& a = axes_[static_cast<std::size_t>(axis)];
    const bool sized = a.type.size >= 0 && type.size >= 0;
    if (sized && a.type.size != type.size) complain(Complaint::axis_has_two_sizes, where, a.where);
    if (!sized && !a.type.name.empty() && !type.name.empty() && a.type.name != type.name) {
      complain(Complaint::axis_has_two_types, where, a.where);
    }
    if (a.where.end == 0) a.where = where;
    if (a.type.name.empty()) {
      a.type.name = type.name;
      a.type.is_sum = type.is_sum;
    }
    if (a.type.size < 0) a.type.size = type.size;
    if (type.says_place) learn_place(axis, type.placed, where);
  }
  constexpr void learn_place(int axis, std::string_view placed, SourceSpan where) {
    Axis& a = axes_[static_cast<std::size_t>(axis)];
    if (a.type.says_place && a.type.placed != placed) {
      complain(Complaint::axis_is_placed_differently, where,
               where == a.where_placed ? SourceSpan{} : a.where_placed);
    }
    if (a.type.says_place) return;
    a.type.says_place = true;
    a.type.placed = placed;
    a.where_placed = where;
  }

  static constexpr AxisType type_of(const SpecReading& spec, const SpecDim& dim) {
    if (dim.kind != SpecDim::size) return {};
    AxisType type{{}, false, dim.fixed, dim.says_place(), spec.text_of(dim.placed)};
    if (spec.is_name(dim)) {
      type.name = spec.name_of(dim);
    } else if (dim.fixed < 0) {
      type.name = spec.text_of(dim.span);
      type.is_sum = true;
    }
    return type;
  }

  /// Lays the dimensions of operand k's type along its side of the pattern.
  constexpr void take_operand(std::size_t k) {
    const SpecReading& spec = *operands_[k].axes;
    const Side& side = pattern_.inputs()[k];
    List<std::uint32_t> terms;
    std::size_t ellipsis_at = SIZE_MAX;
    for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
      if (pattern_.terms[i].kind == TermKind::ellipsis)
        ellipsis_at = terms.size();
      else
        terms.push_back(i);
    }
    std::size_t open_at = SIZE_MAX;
    for (std::size_t d = 0; d < spec.dims.size(); ++d) {
      if (spec.dims[d].kind == SpecDim::open || spec.dims[d].kind == SpecDim::variadic) open_at = d;
    }
    const bool open_pattern = ellipsis_at != SIZE_MAX, open_type = open_at != SIZE_MAX;
    const std::size_t dims = spec.dims.size() - (open_type ? 1 : 0);
    const bool fits = open_pattern && open_type ? true
                      : open_pattern            ? dims >= terms.size()
                      : open_type               ? dims <= terms.size()
                                                : dims == terms.size();
    if (!fits) {
      complain(Complaint::operand_has_another_rank_than_the_pattern, side.span, {},
               static_cast<std::int64_t>(k));
      return;
    }
    // How many dimensions can be told from the left, and how many from the right.
    const std::size_t left =
        lesser(open_pattern ? ellipsis_at : terms.size(), open_type ? open_at : dims);
    const std::size_t right_terms = open_pattern ? terms.size() - ellipsis_at : terms.size();
    const std::size_t right_dims = open_type ? dims - open_at : dims;
    const std::size_t right = open_pattern || open_type ? lesser(right_terms, right_dims) : 0;
    List<std::uint32_t> term_of;  // of each dimension that can be told
    for (std::size_t d = 0; d < spec.dims.size(); ++d) term_of.push_back(UINT32_MAX);
    for (std::size_t d = 0; d < left; ++d) term_of[d] = terms[d];
    for (std::size_t d = 0; d < right; ++d)
      term_of[spec.dims.size() - 1 - d] = terms[terms.size() - 1 - d];
    for (std::size_t d = 0; d < spec.dims.size(); ++d) {
      if (term_of[d] == UINT32_MAX) continue;
      if (is_exchanged(spec, term_of, d))
        complain(Complaint::axis_has_two_types, pattern_.terms[term_of[d]].span);
      take_dim(term_of[d], type_of(spec, spec.dims[d]));
    }
    if (open_pattern)
      take_ellipsis(spec, k, left, spec.dims.size() - right,
                    left == ellipsis_at && right == right_terms);
  }

  constexpr void take_dim(std::uint32_t i, const AxisType& type) {
    const Term& term = pattern_.terms[i];
    if (axis_of_[i] >= 0) {
      learn(axis_of_[i], type, term.span);
    } else if (term.kind == TermKind::number || term.next == i + 1) {
      if (type.size >= 0 && type.size != 1) complain(Complaint::axis_is_not_of_size_one, term.span);
    } else if (term.kind == TermKind::brace) {
      braces_.push_back({i, type});
    } else if (term.kind == TermKind::sum) {
      sums_of_axes_.push_back({i, type});
    } else if (holds_sum(i)) {
      return;
    } else {
      groups_.push_back({i, type});
    }
  }

  /// Whether the pattern calls dimension d as the type calls another one, and that one as the type
  /// calls a third, or this: `keys [batch]` of "batch keys". (A pattern may call axes as it likes:
  /// in `h n` of "hidden h" no name is exchanged.)
  constexpr bool is_exchanged(const SpecReading& spec, const List<std::uint32_t>& term_of,
                              std::size_t d) const {
    const auto called = [&](std::size_t dim) {
      if (term_of[dim] == UINT32_MAX) return std::string_view();
      const Term& term = pattern_.terms[term_of[dim]];
      return term.kind == TermKind::name ? pattern_.name_of(term) : std::string_view();
    };
    const auto find = [&](std::string_view name) {
      for (std::size_t e = 0; e < spec.dims.size(); ++e) {
        if (!name.empty() && spec.name_of(spec.dims[e]) == name) return e;
      }
      return spec.dims.size();
    };
    const std::size_t other = find(called(d));
    if (other == spec.dims.size() || spec.name_of(spec.dims[d]) == called(d)) return false;
    return called(other) != called(d) && find(called(other)) != spec.dims.size();
  }

  constexpr void take_group(const GroupUse& use) {
    const Term& group = pattern_.terms[use.term];
    std::int64_t known = 1;
    int unknown = -1;
    std::size_t unknowns = 0;
    std::uint32_t leaf = 0, leaves = 0;
    for (std::uint32_t j = use.term + 1; j < group.next; ++j) {
      if (axis_of_[j] < 0) continue;
      leaf = j;
      // Cases of a group are cases of its outermost axis.
      if (use.type.says_place) {
        learn_place(axis_of_[j], leaves == 0 ? use.type.placed : std::string_view(),
                    pattern_.terms[j].span);
      }
      ++leaves;
      const std::int64_t size = axes_[static_cast<std::size_t>(axis_of_[j])].type.size;
      if (size < 0) {
        unknown = axis_of_[j];
        ++unknowns;
      } else if (__builtin_mul_overflow(known, size, &known)) {
        return complain(Complaint::group_has_another_size_than_its_axes, group.span);
      }
    }
    if (leaves == 1) return learn(axis_of_[leaf], use.type, pattern_.terms[leaf].span);
    if (use.type.size < 0 || unknowns > 1) return;
    if (unknowns == 0) {
      if (known != use.type.size)
        complain(Complaint::group_has_another_size_than_its_axes, group.span);
    } else if (known == 0 ? use.type.size != 0 : use.type.size % known != 0) {
      complain(Complaint::group_cannot_be_split_evenly, group.span);
    } else if (known != 0) {
      axes_[static_cast<std::size_t>(unknown)].type.size = use.type.size / known;
    }
  }

  // --- sums of axes ---

  /// A number and names, each with a coefficient: written as the size of a type.
  struct SizeSum {
    std::int64_t constant = 0;
    Text text{};
    constexpr void add(std::int64_t coefficient, const Axis& axis) {
      if (axis.type.size >= 0) {
        constant += coefficient * axis.type.size;
        return;
      }
      add(coefficient, axis.type.name.empty() ? axis.name : axis.type.name, axis.type.is_sum);
    }
    constexpr void add(std::int64_t coefficient, std::string_view name, bool is_sum) {
      // Of "s+1" the number is added to the others.
      std::size_t digits = name.size();
      while (is_sum && digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
      if (digits > 1 && digits < name.size() &&
          (name[digits - 1] == '+' || name[digits - 1] == '-')) {
        const std::int64_t number = parse_number(name.substr(digits));
        constant += coefficient * (name[digits - 1] == '+' ? number : -number);
        name = name.substr(0, digits - 1);
        is_sum = name.find_first_of("+-") != name.npos;
      }
      if (coefficient < 0 || !text.empty()) text.add(coefficient < 0 ? "-" : "+");
      const std::int64_t times = coefficient < 0 ? -coefficient : coefficient;
      if (times != 1) {
        text.add(times);
        text.add("*");
      }
      if (is_sum) text.add("(");
      text.add(name);
      if (is_sum) text.add(")");
    }
    /// The text of the whole.
    constexpr Text whole() const {
      Text all = text;
      if (text.empty() || constant > 0) {
        if (!text.empty()) all.add("+");
        all.add(constant);
      } else if (constant < 0) {
        all.add("-");
        all.add(-constant);
      }
      return all;
    }
  };
  constexpr bool is_whole(std::size_t i) const {
    return !cases_.is_whole.empty() && cases_.is_whole[i];
  }
  constexpr bool holds_sum(std::uint32_t i) const {
    for (std::uint32_t j = i; j < pattern_.terms[i].next; ++j) {
      if (pattern_.terms[j].kind == TermKind::sum) return true;
    }
    return false;
  }
  /// Adds the size of a piece as it is written in a type. Whether it can be.
  constexpr bool add_piece(SizeSum& sum, std::uint32_t piece) const {
    const Term& term = pattern_.terms[piece];
    if (axis_of_[piece] >= 0) {
      sum.add(1, axis_at(piece));
    } else if (term.kind == TermKind::number) {
      sum.constant += term.value;
    } else if (term.kind == TermKind::group && !holds_sum(piece)) {
      Text product;
      write_group(piece, product);
      const std::int64_t number = parse_size(product.view());
      if (number >= 0)
        sum.constant += number;
      else if (product.view() == "_")
        return false;
      else
        sum.add(1, product.view(), false);
    } else {
      return false;
    }
    return true;
  }
  /// The number that a text of digits is, or -1.
  static constexpr std::int64_t parse_size(std::string_view text) {
    for (char c : text) {
      if (c < '0' || c > '9') return -1;
    }
    return text.empty() ? -1 : parse_number(text);
  }
  /// The size of the only piece that is not known follows from the others.
  constexpr void take_sum(const GroupUse& use) {
    const Term& whole = pattern_.terms[use.term];
    SizeSum known;
    std::uint32_t unknown = 0;
    for (std::uint32_t p = use.term + 1; p < whole.next; p = pattern_.terms[p].next) {
      const bool is_open = axis_of_[p] >= 0 && axis_at(p).type.size < 0;
      const bool is_named = is_open && !axis_at(p).type.name.empty();
      if (is_open && !is_named) {
        if (unknown > 0) return;
        unknown = p;
      } else if (!add_piece(known, p)) {
        return;
      }
    }
    if (use.type.size >= 0 && known.text.empty()) {
      const std::int64_t rest = use.type.size - known.constant;
      if (unknown == 0 ? rest != 0 : rest < 0)
        return complain(Complaint::sum_has_another_size_than_its_pieces, whole.span);
      if (unknown > 0) axes_[static_cast<std::size_t>(axis_of_[unknown])].type.size = rest;
      return;
    }
    if (unknown == 0 || use.type.size >= 0 || use.type.name.empty() || !known.text.empty()) return;
    Axis& axis = axes_[static_cast<std::size_t>(axis_of_[unknown])];
    SizeSum rest;
    rest.add(1, use.type.name, use.type.is_sum);
    rest.constant -= known.constant;
    sums_.push_back(rest.whole());
    axis.type.name = sums_.back().view();
    axis.type.is_sum = axis.type.name.find_first_of("+-*") != std::string_view::npos;
  }
  /// The size of a sum of the result.
  constexpr void write_sum(std::uint32_t term, Text& text) const {
    SizeSum size;
    for (std::uint32_t p = term + 1; p < pattern_.terms[term].next; p = pattern_.terms[p].next) {
      if (!add_piece(size, p)) return text.add("_");
    }
    text.add(size.whole().view());
  }

  // --- braces ---

  static constexpr std::int64_t absolute(std::int64_t number) {
    return number < 0 ? -number : number;
  }
  /// Whether a brace has a number that only the call knows.
  constexpr bool has_open_number(std::uint32_t brace) const {
    for (std::uint32_t j = brace + 1; j < pattern_.terms[brace].next; ++j) {
      if (pattern_.terms[j].is_open) return true;
    }
    return false;
  }
  /// The constants that a brace adds.
  constexpr std::int64_t constant_of(std::uint32_t brace) const {
    std::int64_t sum = 0;
    for (std::uint32_t j = brace + 1; j < pattern_.terms[brace].next; ++j) {
      if (pattern_.terms[j].kind == TermKind::constant)
        sum += pattern_.terms[j].coefficient * pattern_.terms[j].value;
    }
    return sum;
  }
  constexpr bool is_in_another_brace(std::uint32_t brace, int axis) const {
    for (const GroupUse& use : braces_) {
      for (std::uint32_t j = use.term + 1; j < pattern_.terms[use.term].next; ++j) {
        if (use.term != brace && axis_of_[j] == axis) return true;
      }
    }
    return false;
  }

  /// The size of the one axis that nothing else gives a size or a name, as the run-time solver
  /// finds it: a number, or with steps of 1 what remains of the dimension.
  constexpr void take_brace(const GroupUse& use) {
    if (has_open_number(use.term)) return;
    const Term& brace = pattern_.terms[use.term];
    if (brace.size_name.end > 0 && use.type.size >= 0) {
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        if (axes_[a].name == pattern_.text_of(brace.size_name)) axes_[a].type.size = use.type.size;
      }
    }
    const std::int64_t constant = constant_of(use.term);
    const bool has_name = use.type.size < 0 && !use.type.name.empty();
    if (use.type.size < 0 && !has_name) return;
    SizeSum room;
    if (has_name)
      room.add(1, use.type.name, use.type.is_sum);
    else
      room.constant = use.type.size;
    room.constant += (constant < 0 ? -constant : 0) - constant;
    std::uint32_t unknown = 0;
    for (std::uint32_t j = use.term + 1; j < brace.next; ++j) {
      if (axis_of_[j] < 0) continue;
      const Axis& axis = axis_at(j);
      const std::int64_t step = absolute(pattern_.terms[j].coefficient);
      if (axis.type.size < 0 && axis.type.name.empty()) {
        if (unknown > 0 || is_in_another_brace(use.term, axis_of_[j])) return;
        unknown = j;
        continue;
      }
      room.add(-step, axis);
      room.constant += step;
    }
    if (unknown == 0) return;
    Axis& axis = axes_[static_cast<std::size_t>(axis_of_[unknown])];
    const std::int64_t step = absolute(pattern_.terms[unknown].coefficient);
    if (room.text.empty()) {
      if (room.constant < 1) return complain(Complaint::brace_reads_nothing, brace.span);
      axis.type.size = (room.constant - 1) / step + 1;
    } else if (step == 1) {
      sums_.push_back(room.whole());
      axis.type.name = sums_.back().view();
      axis.type.is_sum =
          room.constant != 0 || !has_name || use.type.is_sum || room.text.view() != use.type.name;
    }
  }
  /// The size of a brace of the result.
  constexpr void write_brace(std::uint32_t term, Text& text) const {
    const Term& brace = pattern_.terms[term];
    if (brace.size_name.end == 0 && has_open_number(term)) return text.add("_");
    if (brace.size_name.end > 0) {
      const std::string_view name = pattern_.text_of(brace.size_name);
      for (const Axis& axis : axes_) {
        if (axis.name == name) return write(axis, text);
      }
      for (const GivenSize& given : given_) {
        if (given.name == name && given.size >= 0) return text.add(given.size);
      }
      return text.add(name);
    }
    const std::int64_t constant = constant_of(term);
    SizeSum size;
    size.constant = constant + 1 - (constant < 0 ? -constant : 0);
    for (std::uint32_t j = term + 1; j < brace.next; ++j) {
      if (axis_of_[j] < 0) continue;
      const std::int64_t step = absolute(pattern_.terms[j].coefficient);
      size.add(step, axis_at(j));
      size.constant -= step;
    }
    text.add(size.text.empty() && size.constant < 0 ? Text("_").view() : size.whole().view());
  }

  /// Dimensions [first, last) of operand k's type lie under the ellipsis; exactly those if `exact`.
  constexpr void take_ellipsis(const SpecReading& spec, std::size_t k, std::size_t first,
                               std::size_t last, bool exact) {
    if (!exact) ellipsis_is_open_ = true;
    List<Text> texts;
    List<AxisType> types;
    bool has_variadic = false;
    for (std::size_t d = first; d < last; ++d) {
      const SpecDim& dim = spec.dims[d];
      has_variadic |= dim.kind == SpecDim::open || dim.kind == SpecDim::variadic;
      texts.push_back({});
      if (dim.kind == SpecDim::variadic) texts.back().add("*");
      texts.back().add(spec.text_of(dim.span));
      types.push_back(type_of(spec, dim));
    }
    if (!has_ellipsis_) {
      has_ellipsis_ = true;
      ellipsis_texts_ = texts;
      ellipsis_types_ = types;
      ellipsis_has_variadic_ = has_variadic;
      return;
    }
    if (texts == ellipsis_texts_) return;
    if (has_variadic || ellipsis_has_variadic_) {
      ellipsis_is_open_ = true;
      return;
    }
    // NumPy's broadcasting, aligned at the right.
    if (types.size() > ellipsis_types_.size()) {
      std::swap(types, ellipsis_types_);
      std::swap(texts, ellipsis_texts_);
    }
    const std::size_t shift = ellipsis_types_.size() - types.size();
    for (std::size_t d = 0; d < types.size(); ++d) {
      AxisType& common = ellipsis_types_[shift + d];
      if (types[d].size == 1 || ellipsis_texts_[shift + d] == texts[d]) continue;
      if (types[d].lies_elsewhere(common))
        complain(Complaint::axis_is_placed_differently, pattern_.inputs()[k].span);
      const bool sizes_differ =
          common.size > 1 && types[d].size > 1 && common.size != types[d].size;
      const bool names_differ =
          common.size < 0 && types[d].size < 0 && !common.name.empty() && !types[d].name.empty();
      if (sizes_differ || names_differ) {
        complain(sizes_differ ? Complaint::axis_has_two_sizes : Complaint::axis_has_two_types,
                 pattern_.inputs()[k].span);
      }
      if (common.size == 1 || (common.size < 0 && types[d].size >= 0)) {
        common = types[d];
        ellipsis_texts_[shift + d] = texts[d];
      } else if (common.size < 0) {  // either may turn out to be 1
        common = {};
        ellipsis_texts_[shift + d] = Text();
        ellipsis_texts_[shift + d].add("_");
      }
    }
  }

  // --- the result ---

  /// The axes of the result lie as the pattern says there, whatever they did before.
  constexpr void place_result() {
    for (std::uint32_t i = pattern_.output().first; i < pattern_.output().last; ++i) {
      if (axis_of_[i] < 0) continue;
      AxisType& type = axes_[static_cast<std::size_t>(axis_of_[i])].type;
      type.says_place = true;
      type.placed = pattern_.text_of(pattern_.terms[i].placed);
    }
  }

  /// Calls f(placed, outermost) for each axis of the dimension that the output's term `i` begins:
  /// where it lies, and whether it is its group's outermost one. Under an ellipsis are several.
  template <class F>
  constexpr void for_each_place(std::uint32_t i, F&& f) const {
    bool outermost = true;
    for (std::uint32_t j = i; j < pattern_.terms[i].next; ++j) {
      if (pattern_.terms[j].kind == TermKind::ellipsis && !ellipsis_is_open_) {
        for (const AxisType& type : ellipsis_types_) {
          f(type.placed, outermost, pattern_.terms[j].span);
          outermost = j == i;
        }
      } else if (axis_of_[j] >= 0) {
        f(axes_[static_cast<std::size_t>(axis_of_[j])].type.placed, outermost,
          pattern_.terms[j].span);
        outermost = false;
      }
    }
  }
  constexpr void check_places_of_result() {
    const Side& output = pattern_.outputs()[which_];
    List<std::string_view> seen;
    List<SourceSpan> places;
    for (std::uint32_t i = output.first; i < output.last; i = pattern_.terms[i].next) {
      for_each_place(i, [&](std::string_view placed, bool outermost, SourceSpan where) {
        if (placed.empty()) return;
        if (!outermost) complain(Complaint::inner_axis_of_a_group_is_placed, where);
        const auto end = static_cast<std::uint32_t>(placed.size());
        for_each_mesh_axis(placed, {0, end}, [&](SourceSpan mesh_axis) {
          const std::string_view name =
              placed.substr(mesh_axis.begin, mesh_axis.end - mesh_axis.begin);
          for (std::size_t k = 0; k < seen.size(); ++k) {
            if (seen[k] == name)
              complain(Complaint::mesh_axis_is_repeated, where,
                       where == places[k] ? SourceSpan{} : places[k]);
          }
          seen.push_back(name);
          places.push_back(where);
        });
      });
    }
  }

  constexpr void write(const Axis& axis, Text& text) const {
    const bool is_number = axis.name[0] >= '0' && axis.name[0] <= '9';
    const bool sized = axis.type.size >= 0;
    if (sized && (axis.type.is_sum || (is_number && axis.type.name.empty()))) {
      text.add(axis.type.size);
      return;
    }
    text.add(axis.type.name.empty() ? axis.name : axis.type.name);
    text.add(axis.type.placed);
    if (!sized) return;
    text.add("=");
    text.add(axis.type.size);
  }

  /// A group is the product of its axes: a number if all sizes are known. Where it is placed it has
  /// no name, as there is none for a product that is, nor where one of its axes is another than the
  /// operand's.
  constexpr void write_group(std::uint32_t group, Text& text) const {
    Text product;
    std::int64_t size = 1;
    bool is_sized = true, is_placed = false;
    std::uint32_t leaf = 0, leaves = 0;
    for (std::uint32_t j = group + 1; j < pattern_.terms[group].next; ++j) {
      const MarkedAxes::Fate fate = fate_at(j);
      if (fate == MarkedAxes::dropped) continue;
      if (fate != MarkedAxes::kept || pattern_.terms[j].kind == TermKind::ellipsis) {
        text.add("_");
        return;
      }
      if (axis_of_[j] < 0) continue;
      leaf = j;
      const Axis& axis = axes_[static_cast<std::size_t>(axis_of_[j])];
      is_sized &= axis.type.size >= 0 && !__builtin_mul_overflow(size, axis.type.size, &size);
      is_placed |= !axis.type.placed.empty();
      if (leaves++ > 0) product.add("*");
      if (axis.type.size >= 0) {
        product.add(axis.type.size);
      } else if (axis.type.is_sum) {
        product.add("(");
        product.add(axis.type.name);
        product.add(")");
      } else {
        product.add(axis.type.name.empty() ? axis.name : axis.type.name);
      }
    }
    if (leaves == 1) {
      write(axes_[static_cast<std::size_t>(axis_of_[leaf])], text);
    } else if (is_placed) {
      text.add("_");
    } else if (is_sized) {
      text.add(size);
    } else {
      text.add(product.view());
    }
  }

  // --- axes in brackets, where there is no arrow ---

  /// Those of the first operand that are one axis each.
  constexpr List<std::uint32_t> marked_terms() const {
    List<std::uint32_t> terms;
    for (std::uint32_t i = pattern_.sides[0].first; i < pattern_.sides[0].last; ++i) {
      if (pattern_.terms[i].marked && axis_of_[i] >= 0) terms.push_back(i);
    }
    return terms;
  }
  /// What becomes of a term of the result's side.
  constexpr MarkedAxes::Fate fate_at(std::uint32_t term) const {
    return pattern_.has_arrow() ? MarkedAxes::kept : fate_of(pattern_, *marked_, term);
  }
  constexpr const Axis& axis_at(std::uint32_t term) const {
    return axes_[static_cast<std::size_t>(axis_of_[term])];
  }

  /// The axis with another number of positions. It has no name where the type says that another
  /// axis has this size, or one that follows from it.
  constexpr void write_resized(const Axis& axis, Text& text) const {
    const bool is_number = axis.name[0] >= '0' && axis.name[0] <= '9';
    const bool has_own_name = !axis.type.name.empty();
    const std::string_view name = has_own_name ? axis.type.name : axis.name;
    const SpecReading& spec = *operands_[0].axes;
    const std::size_t uses = uses_of(spec, name);
    const bool has_name = !axis.type.is_sum && (has_own_name || !is_number) &&
                          axis.type.placed.empty() && uses == (has_own_name ? 1 : 0);
    text.add(has_name ? name : "_");
  }
  /// Of the other axis in brackets.
  constexpr void write_other(std::uint32_t term, MarkedAxes::Fate fate, Text& text) const {
    const List<std::uint32_t> both = marked_terms();
    const Axis &here = axis_at(term), &other = axis_at(both[both[0] == term ? 1 : 0]);
    if (fate == MarkedAxes::exchanged) return write(other, text);
    const std::int64_t a = here.type.size, b = other.type.size;
    if (a < 0 || b < 0)
      text.add("_");
    else
      text.add(a < b ? a : b);
  }
  constexpr void write_marked(std::uint32_t term, MarkedAxes::Fate fate, Text& text) const {
    switch (fate) {
      case MarkedAxes::kept:
        return write(axis_at(term), text);
      case MarkedAxes::dropped:
        return;
      case MarkedAxes::resized:
        return write_resized(axis_at(term), text);
      case MarkedAxes::unnamed:
        return text.add("_");
      case MarkedAxes::doubled:
        return text.add("_ _");
      case MarkedAxes::exchanged:
      case MarkedAxes::lesser:
        return write_other(term, fate, text);
    }
  }

  /// Whether the type of the result is known.
  constexpr bool write_result(Text& text) const {
    const bool has_arrow = pattern_.has_arrow();
    const Side& side = has_arrow ? pattern_.outputs()[which_] : pattern_.sides[0];
    for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
      const Term& term = pattern_.terms[i];
      const MarkedAxes::Fate fate = fate_at(i);
      if (fate == MarkedAxes::dropped) continue;
      const bool is_ellipsis = term.kind == TermKind::ellipsis;
      if (!(is_ellipsis && !ellipsis_is_open_ && ellipsis_texts_.empty()) && !text.empty())
        text.add(" ");
      if (is_ellipsis && fate != MarkedAxes::kept) return false;
      if (is_ellipsis && ellipsis_is_open_) {
        text.add("...");
      } else if (is_ellipsis) {
        for (std::size_t d = 0; d < ellipsis_texts_.size(); ++d) {
          if (d > 0) text.add(" ");
          text.add(ellipsis_texts_[d].view());
        }
      } else if (is_whole(i) && axis_at(i).type.name.empty() && axis_at(i).type.size < 0) {
        write_sum(i, text);
      } else if (is_whole(i) && axis_at(i).type.name.empty()) {
        text.add(axis_at(i).type.size);
      } else if (axis_of_[i] >= 0) {
        write_marked(i, fate, text);
      } else if (term.kind == TermKind::sum) {
        write_sum(i, text);
      } else if (holds_sum(i)) {
        text.add("_");
      } else if (term.kind == TermKind::group) {
        write_group(i, text);
      } else if (term.kind == TermKind::brace) {
        write_brace(i, text);
      } else {
        text.add("1");
      }
    }
    return true;
  }

  const Pattern& pattern_;
  std::span<const OperandSpec> operands_;
  std::span<const GivenSize> given_;
  Moves moves_;
  const MarkedAxes* marked_;
  std::size_t which_;  // of the results
  List<int> axis_of_;
  List<Axis> axes_;
  List<GroupUse> groups_, sums_of_axes_, braces_;
  Cases cases_;
  List<Text> sums_;  // names of sizes that sums and braces made
  List<Text> ellipsis_texts_;
  List<AxisType> ellipsis_types_;
  bool has_ellipsis_ = false;
  bool ellipsis_has_variadic_ = false;
  bool ellipsis_is_open_ = false;
  Mistake mistake_;
};

}  // namespace detail

/// Precondition: check_pattern() found no mistake, and no operand's type has one. `marked`, if
/// given, says what the result has of axes in brackets where the pattern has no arrow. `which`: of
/// several results.
constexpr InferredType infer_type(Operation op, const Pattern& pattern,
                                  std::span<const OperandSpec> operands,
                                  std::span<const GivenSize> given = {}, Moves moves = Moves::no,
                                  const MarkedAxes* marked = nullptr, std::size_t which = 0) {
  return detail::TypeInference(op, pattern, operands, given, moves, marked, which).infer();
}

/// The place of the axis of this name among the dimensions of a type; SIZE_MAX where none has it,
/// or several have.
constexpr std::size_t find_axis(const SpecReading& spec, std::string_view name) {
  std::size_t found = SIZE_MAX, count = 0;
  for (std::size_t d = 0; d < spec.dims.size(); ++d) {
    if (name.empty() || spec.name_of(spec.dims[d]) != name) continue;
    found = d;
    ++count;
  }
  return count == 1 ? found : SIZE_MAX;
}

/// 1 for the last dimension of a type, and so on, for those behind any number of others; else 0,
/// as the place from the left is known.
constexpr std::size_t place_from_the_end(const SpecReading& spec, std::size_t place) {
  for (std::size_t d = 0; d < place; ++d) {
    if (spec.dims[d].is_open()) return spec.dims.size() - place;
  }
  return 0;
}

/// The type with a part of the positions along dimension `at`, a name; or, `dropped`, without it.
constexpr Text sliced(const SpecReading& spec, std::size_t at, bool dropped) {
  const std::string_view name = spec.text_of(spec.steps[spec.dims[at].first].span);
  const std::size_t uses = uses_of(spec, name);
  Text text;
  for (std::size_t d = 0; d < spec.dims.size(); ++d) {
    if (d == at && dropped) continue;
    if (!text.empty()) text.add(" ");
    if (spec.dims[d].kind == SpecDim::variadic) text.add("*");
    const bool has_name = uses == 1 && spec.dims[at].placed.end == 0;
    text.add(d != at ? spec.text_of(spec.dims[d].span) : has_name ? name : "_");
  }
  return text;
}

}  // namespace ein::grammar
