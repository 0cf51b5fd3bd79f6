#include "graph/solve.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "size/ask.hpp"

namespace ein {
namespace {

using grammar::Pattern;
using grammar::Side;
using grammar::Term;
using grammar::TermKind;

/// Where a size came from.
struct Source {
  std::string where;  // "operand 1", "the call"
  std::optional<SourceSpan> span;
};

struct Unknown {
  std::string name;
  std::optional<Size> size;
  Source source;
};

class Solver {
 public:
  Solver(Operation op, const Pattern& pattern, std::span<const Shape> shapes,
         std::span<const AxisSize> given)
      : op_(op),
        pattern_(pattern),
        shapes_(shapes),
        given_(given),
        axis_of_(pattern.terms.size(), -1) {
    if (pattern.has_arrow() && grammar::has_cases(op, pattern))
      cases_ = grammar::find_cases(op, pattern);
  }

  Solved solve() {
    name_axes();
    check_ranks();
    take_given();
    take_plain();
    take_ellipses();
    do {
      take_groups();
    } while (take_sums() || take_braces());
    require_groups_solved();
    forget_pieces_of_whole_sums();
    require_braces_read();
    return result();
  }

 private:
  std::span<const Side> inputs() const { return pattern_.inputs(); }

  template <class F>
  void for_each_dim(const Side& side, F&& f) const {
    for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) f(i);
  }
  std::size_t dims_without_ellipsis(const Side& side) const {
    std::size_t n = 0;
    for_each_dim(side, [&](std::uint32_t i) { n += pattern_.terms[i].kind != TermKind::ellipsis; });
    return n;
  }
  bool has_ellipsis(const Side& side) const {
    bool found = false;
    for_each_dim(side,
                 [&](std::uint32_t i) { found |= pattern_.terms[i].kind == TermKind::ellipsis; });
    return found;
  }
  std::string operand(std::size_t k) const { return "operand " + std::to_string(k + 1); }

  [[noreturn]] void raise(ErrorKind kind, const std::string& what, const std::vector<Mark>& marks,
                          const std::string& help = "") const {
    std::vector<std::string> notes{show_operands(shapes_)};
    if (shapes_.empty()) notes.clear();
    if (!help.empty()) notes.push_back("help: " + help);
    fail(kind, name(op_), what, pattern_.text, marks, notes);
  }

  int add_axis(std::string name) {
    axes_.push_back({std::move(name), std::nullopt, {}});
    return static_cast<int>(axes_.size()) - 1;
  }

  /// One axis per distinct name, one per anonymous or unnamed occurrence.
  void name_axes() {
    std::unordered_map<std::string_view, int> number_of;  // of axes, by name
    for (std::size_t i = 0; i < pattern_.terms.size(); ++i) {
      const Term& term = pattern_.terms[i];
      const std::string text(pattern_.name_of(term));
      if (term.kind == TermKind::name) {
        const auto [same, is_new] = number_of.try_emplace(pattern_.name_of(term));
        if (is_new) same->second = add_axis(text);
        axis_of_[i] = same->second;
        if (term.value > 0)
          axes_[static_cast<std::size_t>(axis_of_[i])] = {
              text, term.value, {"the pattern", term.span}};
      } else if (term.kind == TermKind::number && !cases_.same.empty() && cases_.same[i] != i) {
        axis_of_[i] = axis_of_[cases_.same[i]];
      } else if (term.kind == TermKind::unnamed ||
                 (term.kind == TermKind::number && term.value > 1)) {
        axis_of_[i] = add_axis(text);
        if (term.kind == TermKind::number)
          axes_.back() = {text, term.value, {"the pattern", term.span}};
      } else if (is_whole(i)) {
        axis_of_[i] = cases_.same[i] == i ? add_axis(text) : axis_of_[cases_.same[i]];
      }
    }
    // Those that braces give sizes.
    for (std::size_t i = 0; i < pattern_.terms.size(); ++i) {
      if (pattern_.terms[i].size_name.end == 0) continue;
      const std::string_view name = pattern_.text_of(pattern_.terms[i].size_name);
      const auto [same, is_new] = number_of.try_emplace(name);
      if (is_new) same->second = add_axis(std::string(name));
      axis_of_[i] = same->second;
    }
  }
  /// Whether a term is a sum that is one axis.
  bool is_whole(std::size_t i) const { return !cases_.is_whole.empty() && cases_.is_whole[i]; }
  bool is_brace(std::uint32_t i) const { return pattern_.terms[i].kind == TermKind::brace; }

  void check_ranks() {
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      const Side& side = inputs()[k];
      const std::size_t wanted = dims_without_ellipsis(side);
      const std::size_t rank = shapes_[k].rank();
      const bool open = has_ellipsis(side);
      if (open ? rank >= wanted : rank == wanted) continue;
      if (pattern_.is_glued() && ranks_fit_letters()) {
        const grammar::Mistake glued{grammar::Complaint::axis_names_are_glued,
                                     {0, static_cast<std::uint32_t>(pattern_.text.size())},
                                     {},
                                     0};
        fail(op_, pattern_, glued, given_);
      }
      raise(ErrorKind::rank,
            operand(k) + " has " + count_axes(rank) + ", the pattern wants " +
                (open ? "at least " : "") + std::to_string(wanted),
            mark_dims(pattern_, side));
    }
  }

  /// Whether each operand has as many axes as its side has letters.
  bool ranks_fit_letters() const {
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      std::size_t letters = 0;
      for (const Term& term : pattern_.terms_of(inputs()[k])) {
        if (term.kind == TermKind::name) letters += pattern_.name_of(term).size();
      }
      const std::size_t rank = shapes_[k].rank();
      if (has_ellipsis(inputs()[k]) ? rank < letters : rank != letters) return false;
    }
    return true;
  }

  /// Where the pattern first names an axis, or a size.
  SourceSpan place_of(std::string_view name) const {
    for (const Term& term : pattern_.terms) {
      if (term.kind == TermKind::name && pattern_.name_of(term) == name) return term.span;
      if (term.size_name.end > 0 && pattern_.text_of(term.size_name) == name) return term.size_name;
    }
    return {};
  }

  void take_given() {
    for (const AxisSize& size : given_) {
      if (size.is_number) continue;  // it is in the pattern
      const auto axis = std::find_if(axes_.begin(), axes_.end(),
                                     [&](const Unknown& a) { return a.name == size.name; });
      if (size.size < 0) {
        raise(ErrorKind::axis_argument,
              "axis '" + axis->name + "' is given the size " + to_string(size.size) +
                  ", which is negative",
              {{place_of(size.name), to_string(size.size)}});
      }
      if (axis->size && !ask_equal(*axis->size, size.size)) {
        raise(ErrorKind::axis_argument,
              "axis '" + axis->name + "' has two sizes: " + to_string(*axis->size) +
                  " in the pattern, " + to_string(size.size) + " in the call",
              {{*axis->source.span, to_string(*axis->size)}});
      }
      if (axis->size) continue;
      axis->size = size.size;
      axis->source = {"the call", std::nullopt};
    }
  }

  /// Records that an axis has `size` in operand k; an axis with two sizes is an error.
  void learn(int axis, Size size, std::size_t k, SourceSpan span) {
    Unknown& a = axes_[static_cast<std::size_t>(axis)];
    if (!a.size) {
      a.size = size;
      a.source = {operand(k), span};
      return;
    }
    if (ask_equal(*a.size, size)) return;
    std::vector<Mark> marks{{span, to_string(size)}};
    const bool is_anonymous = a.name[0] >= '0' && a.name[0] <= '9';
    if (is_anonymous && a.source.span && *a.source.span == span) {
      raise(ErrorKind::size,
            "anonymous axis '" + a.name + "' is " + to_string(size) + " in " + operand(k), marks);
    }
    if (a.source.span && *a.source.span != span)
      marks.push_back({*a.source.span, to_string(*a.size)});
    raise(ErrorKind::size,
          "axis '" + a.name + "' has two sizes: " + to_string(*a.size) + " in " + a.source.where +
              ", " + to_string(size) + " in " + operand(k),
          marks);
  }

  void take_plain() {
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      for_each_position(k, [&](std::uint32_t i, std::size_t position) {
        const Term& term = pattern_.terms[i];
        const Size size = shapes_[k][position];
        if (axis_of_[i] >= 0) learn(axis_of_[i], size, k, is_brace(i) ? term.size_name : term.span);
        const bool is_one =
            term.kind == TermKind::number || (term.kind == TermKind::group && term.next == i + 1);
        if (axis_of_[i] < 0 && is_one && !ask_equal(size, 1)) {
          raise(ErrorKind::size,
                "an axis of size 1 is wanted, " + operand(k) + " has " + to_string(size) + " there",
                {{term.span, to_string(size)}});
        }
      });
    }
  }

  /// Calls f(term, dimension) for each dimension of operand k but those under its ellipsis.
  template <class F>
  void for_each_position(std::size_t k, F&& f) const {
    const Side& side = inputs()[k];
    std::size_t position = 0;
    for_each_dim(side, [&](std::uint32_t i) {
      if (pattern_.terms[i].kind == TermKind::ellipsis) {
        position += shapes_[k].rank() - dims_without_ellipsis(side);
      } else {
        f(i, position++);
      }
    });
  }

  /// The axes under the ellipses, aligned at the right; a size of 1 stretches to the others.
  void take_ellipses() {
    std::size_t most = 0;
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      if (has_ellipsis(inputs()[k]))
        most = std::max(most, shapes_[k].rank() - dims_without_ellipsis(inputs()[k]));
    }
    for (std::size_t e = 0; e < most; ++e) ellipsis_.push_back(add_axis("..." + std::to_string(e)));
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      ellipsis_dims_.emplace_back();
      std::size_t position = 0;
      for_each_dim(inputs()[k], [&](std::uint32_t i) {
        if (pattern_.terms[i].kind != TermKind::ellipsis) {
          ++position;
          return;
        }
        const std::size_t count = shapes_[k].rank() - dims_without_ellipsis(inputs()[k]);
        for (std::size_t e = 0; e < count; ++e) {
          const int axis = ellipsis_[most - count + e];
          const Size size = shapes_[k][position + e];
          ellipsis_dims_[k].push_back(axis);
          stretch(axis, size, k, pattern_.terms[i].span);
        }
        position += count;
      });
    }
  }

  void stretch(int axis, Size size, std::size_t k, SourceSpan span) {
    Unknown& a = axes_[static_cast<std::size_t>(axis)];
    if (a.size && (is_one(size) || ask_equal(*a.size, size) || ask_equal(size, 1))) return;
    if (a.size && !ask_equal(*a.size, 1)) {
      raise(ErrorKind::size,
            "'...' does not broadcast: " + to_string(*a.size) + " in " + a.source.where + ", " +
                to_string(size) + " in " + operand(k),
            {{*a.source.span, to_string(*a.size)}, {span, to_string(size)}},
            "sizes under '...' must be equal or 1, aligned at the right");
    }
    a.size = size;
    a.source = {operand(k), span};
  }

  /// Divides the sizes of groups among their axes, as long as that teaches something.
  void take_groups() {
    for (bool progress = true; progress;) {
      progress = false;
      for_each_group([&](const Group& group) { progress |= take_group(group); });
    }
  }
  void require_groups_solved() const {
    // What is left is 0 divided by 0, since check_pattern() wants one unknown size at most.
    for_each_group([&](const Group& group) {
      const Factors factors = factors_of(group);
      if (factors.unknowns == 0) return;
      const Explanation e = explain(group);
      raise(ErrorKind::inference,
            "the size of axis '" + axis_at(factors.unknown_at).name +
                "' cannot be found: the rest of " + text_of(group) + " is 0 (" + e.factors + ")",
            e.marks, "give its size with the call");
    });
  }

  /// A dimension that is split: the term of its group, its size, the operand.
  struct Group {
    std::uint32_t term;
    Size size;
    std::size_t operand;
  };
  template <class F>
  void for_each_group(F&& f) const {
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      for_each_position(k, [&](std::uint32_t i, std::size_t position) {
        const Term& term = pattern_.terms[i];
        if (term.kind == TermKind::group && term.next > i + 1 && !has_sum(i))
          f(Group{i, shapes_[k][position], k});
      });
    }
  }
  std::string text_of(const Group& group) const {
    return quoted(pattern_.text_of(pattern_.terms[group.term].span));
  }
  const Unknown& axis_at(std::uint32_t term) const {
    return axes_[static_cast<std::size_t>(axis_of_[term])];
  }

  /// The axes of a group: the product of the known ones, and one that is not known.
  struct Factors {
    Size known = 1;
    bool overflows = false;
    std::size_t unknowns = 0;
    std::uint32_t unknown_at = 0;  // its term
  };
  Factors factors_of(const Group& group) const {
    Factors factors;
    for (std::uint32_t j = group.term + 1; j < pattern_.terms[group.term].next; ++j) {
      if (axis_of_[j] < 0) continue;
      if (const Unknown& a = axis_at(j); a.size) {
        factors.overflows |= multiply_overflows(factors.known, *a.size, factors.known);
      } else {
        ++factors.unknowns;
        factors.unknown_at = j;
      }
    }
    return factors;
  }

  /// The known sizes of a group's axes and where they came from; marks for the group and those
  /// places.
  struct Explanation {
    std::string factors;
    std::vector<Mark> marks;
  };
  Explanation explain(const Group& group) const {
    const Term& term = pattern_.terms[group.term];
    Explanation e{"", {{term.span, to_string(group.size)}}};
    for (std::uint32_t j = group.term + 1; j < term.next; ++j) {
      if (axis_of_[j] < 0 || !axis_at(j).size) continue;
      const Unknown& a = axis_at(j);
      const std::string size = to_string(*a.size);
      if (!e.factors.empty()) e.factors += ", ";
      e.factors += pattern_.terms[j].kind == TermKind::number
                       ? a.name
                       : a.name + " = " + size + " in " + a.source.where;
      if (!a.source.span) continue;
      const SourceSpan from = *a.source.span;
      const bool is_marked = std::any_of(e.marks.begin(), e.marks.end(), [&](const Mark& mark) {
        return mark.span.begin <= from.begin && from.end <= mark.span.end;
      });
      if (!is_marked) e.marks.push_back({from, size});
    }
    return e;
  }

  /// Whether the group taught the size of an axis.
  bool take_group(const Group& group) {
    const Factors factors = factors_of(group);
    if (factors.unknowns > 1) return false;
    const auto complain = [&](ErrorKind kind, const std::string& before, const std::string& after) {
      const Explanation e = explain(group);
      raise(kind, before + " (" + e.factors + ")" + after, e.marks);
    };
    const std::string size = to_string(group.size), known = to_string(factors.known);
    if (factors.overflows) {
      complain(ErrorKind::overflow,
               "the sizes of the axes of " + text_of(group) + " multiply to more than 63 bits", "");
    }
    if (factors.unknowns == 0) {
      if (ask_equal(factors.known, group.size)) return false;
      complain(ErrorKind::size, text_of(group) + " is " + known + " by its axes",
               ", " + size + " in " + operand(group.operand));
    }
    if (ask_equal(factors.known, 0) && ask_equal(group.size, 0)) return false;
    if (ask_equal(factors.known, 0) || !ask_equal(group.size % factors.known, 0)) {
      complain(ErrorKind::divisibility,
               "axis " + text_of(group) + " of size " + size + " in " + operand(group.operand) +
                   " cannot be split: " + known + " does not divide it",
               "");
    }
    learn(axis_of_[factors.unknown_at], group.size / factors.known, group.operand,
          pattern_.terms[factors.unknown_at].span);
    return true;
  }

  // --- sums of axes ---

  /// Whether a dimension is a sum, or a group that holds one.
  bool has_sum(std::uint32_t i) const {
    for (std::uint32_t j = i; j < pattern_.terms[i].next; ++j) {
      if (pattern_.terms[j].kind == TermKind::sum) return true;
    }
    return false;
  }
  /// Combines the sizes of the terms in [first, last), those of a group or a sum, as far as known.
  struct Members {
    Size known = 0;
    std::size_t unknowns = 0;
    std::uint32_t unknown_at = 0;
  };
  Members members_of(const Group& dim, std::uint32_t whole) const {
    const bool is_sum = pattern_.terms[whole].kind == TermKind::sum;
    Members members{is_sum ? 0 : 1, 0, 0};
    for (std::uint32_t m = whole + 1; m < pattern_.terms[whole].next; m = pattern_.terms[m].next) {
      const std::optional<Size> size = size_if_known(dim, m);
      if (!size) {
        ++members.unknowns;
        members.unknown_at = m;
      } else if (is_sum ? add_overflows(members.known, *size, members.known)
                        : multiply_overflows(members.known, *size, members.known)) {
        raise(ErrorKind::overflow,
              "the size of " + quoted(pattern_.text_of(pattern_.terms[dim.term].span)) +
                  " exceeds 63 bits",
              {{pattern_.terms[dim.term].span, ""}});
      }
    }
    return members;
  }
  std::optional<Size> size_if_known(const Group& dim, std::uint32_t i) const {
    if (axis_of_[i] >= 0 && axis_at(i).size) return axis_at(i).size;
    const Term& term = pattern_.terms[i];
    if (term.kind == TermKind::name) return std::nullopt;
    if (term.kind == TermKind::number) return Size(term.value);
    const Members members = members_of(dim, i);
    return members.unknowns > 0 ? std::nullopt : std::optional(members.known);
  }
  /// Finds sizes in dimensions with sums, from the whole to its pieces. Whether there was any.
  bool take_sums() {
    bool progress = false;
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      for_each_position(k, [&](std::uint32_t i, std::size_t position) {
        if (has_sum(i))
          progress |= divide(Group{i, shapes_[k][position], k}, i, shapes_[k][position]);
      });
    }
    return progress;
  }
  /// Divides `size` among the members of term `i` of a dimension. Whether that taught anything.
  bool divide(const Group& dim, std::uint32_t i, Size size) {
    const Term& term = pattern_.terms[i];
    const auto complain = [&](ErrorKind kind, const std::string& before, const std::string& after) {
      const Explanation e = explain(dim);
      raise(kind, before + (e.factors.empty() ? "" : " (" + e.factors + ")") + after, e.marks);
    };
    const auto by_its_pieces = [&](const Size& pieces, const std::string& least) {
      complain(ErrorKind::size,
               quoted(pattern_.text_of(term.span)) + " is " + least + to_string(pieces) +
                   (term.kind == TermKind::sum ? " by its pieces" : " by its axes"),
               ", " + to_string(size) + " in " + operand(dim.operand));
    };
    const bool is_axis = axis_of_[i] >= 0;
    if (term.kind == TermKind::name && !axis_at(i).size) {
      learn(axis_of_[i], size, dim.operand, term.span);
      return true;
    }
    if (!term.has_members()) {
      if (!ask_equal(*size_if_known(dim, i), size)) by_its_pieces(*size_if_known(dim, i), "");
      return false;
    }
    const Members members = members_of(dim, i);
    if (members.unknowns == 0) {
      if (!ask_equal(members.known, size)) by_its_pieces(members.known, "");
      return false;
    }
    if (term.kind == TermKind::sum) {
      if (members.known > size) by_its_pieces(members.known, "at least ");
      return members.unknowns == 1 && !is_axis &&
             divide(dim, members.unknown_at, size - members.known);
    }
    if (members.unknowns > 1 || (ask_equal(members.known, 0) && ask_equal(size, 0))) return false;
    if (ask_equal(members.known, 0) || !ask_equal(size % members.known, 0)) {
      complain(ErrorKind::divisibility,
               "axis " + quoted(pattern_.text_of(term.span)) + " of size " + to_string(size) +
                   " in " + operand(dim.operand) + " cannot be split: " + to_string(members.known) +
                   " does not divide it",
               "");
    }
    return divide(dim, members.unknown_at, size / members.known);
  }
  /// Where a sum is one axis, the sizes of its pieces may stay open: nothing has them.
  void forget_pieces_of_whole_sums() {
    for (std::uint32_t i = 0; i < pattern_.terms.size(); ++i) {
      if (!is_whole(i)) continue;
      Unknown& sum = axes_[static_cast<std::size_t>(axis_of_[i])];
      Size size = 0;
      for (std::uint32_t m = i + 1; m < pattern_.terms[i].next && !sum.size;
           m = pattern_.terms[m].next) {
        if (const auto piece = size_if_known({i, 0, 0}, m)) size += *piece;
      }
      if (!sum.size) sum.size = size;
      for (std::uint32_t j = i + 1; j < pattern_.terms[i].next; ++j) {
        if (axis_of_[j] < 0) continue;
        Unknown& axis = axes_[static_cast<std::size_t>(axis_of_[j])];
        if (!axis.size) axis.size = 1;
      }
    }
  }

  // --- braces ---

  /// What a brace adds up: the constants, and what each axis is multiplied by.
  struct Sum {
    Size constant = 0;
    std::vector<DimIndex::Term> terms;
  };
  Sum sum_of(std::uint32_t brace) const {
    Sum sum;
    for (std::uint32_t j = brace + 1; j < pattern_.terms[brace].next; ++j) {
      const Term& term = pattern_.terms[j];
      if (term.kind == TermKind::constant) {
        sum.constant += term.coefficient * term.value;
        continue;
      }
      const auto same = std::find_if(sum.terms.begin(), sum.terms.end(),
                                     [&](const auto& t) { return t.axis == axis_of_[j]; });
      if (same == sum.terms.end())
        sum.terms.push_back({axis_of_[j], term.coefficient});
      else
        same->coefficient += term.coefficient;
    }
    std::erase_if(sum.terms, [](const DimIndex::Term& t) { return ask_equal(t.coefficient, 0); });
    return sum;
  }
  [[noreturn]] void raise_overflow(std::uint32_t brace) const {
    raise(ErrorKind::overflow,
          "the indices of " + quoted(pattern_.text_of(pattern_.terms[brace].span)) +
              " exceed 63 bits",
          {{pattern_.terms[brace].span, ""}});
  }
  static Size absolute(Size size) { return size < 0 ? -size : size; }
  static Size after_begin(Size constant) { return constant < 0 ? -constant : Size(0); }

  /// From the least index of a brace to the greatest, less than 2^61; axis `without`, and those
  /// that are not known, left out.
  Size reach_of(std::uint32_t brace, const Sum& sum, int without = -1) const {
    Size reach = 0;
    for (const DimIndex::Term& term : sum.terms) {
      const std::optional<Size>& size = axes_[static_cast<std::size_t>(term.axis)].size;
      if (term.axis == without || !size || ask_equal(*size, 0)) continue;
      Size steps = *size - 1;
      constexpr std::int64_t most = std::int64_t{1} << 61;
      const bool overflows = multiply_overflows(absolute(term.coefficient), steps, steps) ||
                             add_overflows(reach, steps, reach);
      if (overflows || (reach.is_number() && reach > most)) raise_overflow(brace);
    }
    return reach;
  }
  std::size_t unknowns_of(const Sum& sum) const {
    return static_cast<std::size_t>(
        std::count_if(sum.terms.begin(), sum.terms.end(), [&](const DimIndex::Term& term) {
          return !axes_[static_cast<std::size_t>(term.axis)].size;
        }));
  }

  /// A dimension of an input that is a brace: its term, its size, the operand.
  template <class F>
  void for_each_brace(F&& f) const {
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      for_each_position(k, [&](std::uint32_t i, std::size_t position) {
        if (is_brace(i)) f(Group{i, shapes_[k][position], k});
      });
    }
  }

  /// The largest size of an axis with which a brace reads inside, or, with a constant below 0, as
  /// far behind the end as before the beginning.
  struct Most {
    Size size = 0;
    Group from{};
    bool is_of_all = true;  // no brace that names the axis has another unknown one
  };
  std::optional<Most> most_by_braces(int axis) const {
    std::optional<Most> most;
    bool is_of_all = true;
    for_each_brace([&](const Group& brace) {
      const Sum sum = sum_of(brace.term);
      const auto term = std::find_if(sum.terms.begin(), sum.terms.end(),
                                     [&](const DimIndex::Term& t) { return t.axis == axis; });
      if (term == sum.terms.end()) return;
      if (unknowns_of(sum) > 1) {
        is_of_all = false;
        return;
      }
      const Size room = brace.size - 1 + after_begin(sum.constant) - sum.constant -
                        reach_of(brace.term, sum, axis);
      const bool is_empty =
          ask_equal(brace.size, 0) && ask_equal(sum.constant, 0) && ask_equal(room, -1);
      if (room < 0 && !is_empty) raise_nothing_read(brace, sum, axis);
      const Size size = is_empty ? Size(0) : room / absolute(term->coefficient) + 1;
      if (!most || size < most->size) most = Most{size, brace};
    });
    if (most) most->is_of_all = is_of_all;
    return most;
  }

  /// Gives axes that only braces name their sizes: those all of whose braces name no other unknown
  /// axis; where there is none, those of which one brace does not. Whether there was any.
  bool take_braces() {
    std::vector<std::pair<std::size_t, Most>> found;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].size) continue;
      if (const std::optional<Most> most = most_by_braces(static_cast<int>(a)))
        found.emplace_back(a, *most);
    }
    const bool has_sure =
        std::any_of(found.begin(), found.end(), [](const auto& f) { return f.second.is_of_all; });
    for (const auto& [a, most] : found) {
      if (has_sure && !most.is_of_all) continue;
      axes_[a].size = most.size;
      axes_[a].source = {operand(most.from.operand), pattern_.terms[most.from.term].span};
    }
    return !found.empty();
  }

  /// The indices of a brace as numbers: "y + 5 - 1 with ky = 3 in operand 2".
  [[noreturn]] void raise_nothing_read(const Group& brace, const Sum& sum, int unknown) const {
    const Term& term = pattern_.terms[brace.term];
    std::vector<Mark> marks{{term.span, to_string(brace.size)}};
    std::string sizes;
    for (const DimIndex::Term& t : sum.terms) {
      const Unknown& a = axes_[static_cast<std::size_t>(t.axis)];
      if (t.axis == unknown) continue;
      sizes += (sizes.empty() ? "" : ", ") + a.name + " = " + to_string(*a.size) + " in " +
               a.source.where;
      if (a.source.span && !(*a.source.span == term.span))
        marks.push_back({*a.source.span, to_string(*a.size)});
    }
    const Size reach = reach_of(brace.term, sum, unknown), first = sum.constant;
    raise(ErrorKind::size,
          quoted(pattern_.text_of(term.span)) + " reads nothing: its indices are " +
              (unknown < 0 ? "" : "at least ") + "from " + to_string(first) + " to " +
              to_string(first + reach) + ", " + operand(brace.operand) + " has " +
              to_string(brace.size) + " elements there" + (sizes.empty() ? "" : " (" + sizes + ")"),
          marks, unknown < 0 ? "" : "a constant '- p' reads p places before and behind the tensor");
  }

  /// Every brace has all sizes, and an index inside its operand, if there are indices at all. What
  /// only moves elements reads inside and writes each place once.
  void require_braces_read() const {
    for (std::uint32_t i = 0; i < pattern_.terms.size(); ++i) {
      const Term& term = pattern_.terms[i];
      const bool is_known =
          term.kind != TermKind::name || axes_[static_cast<std::size_t>(axis_of_[i])].size;
      if (is_known) continue;
      raise(ErrorKind::inference, "the size of axis '" + axis_at(i).name + "' cannot be found",
            {{term.span, ""}}, "give its size with the call");
    }
    for_each_brace([&](const Group& brace) {
      const Sum sum = sum_of(brace.term);
      const Size last = sum.constant + reach_of(brace.term, sum);
      const bool is_empty =
          std::any_of(sum.terms.begin(), sum.terms.end(),
                      [&](const DimIndex::Term& t) { return ask_equal(size_of_axis(t.axis), 0); });
      if (is_empty) return;
      if (last < 0 || sum.constant > brace.size - 1) raise_nothing_read(brace, sum, -1);
      if (op_ == Operation::rearrange && (sum.constant < 0 || last > brace.size - 1))
        raise_outside(brace, sum.constant, last);
    });
  }
  [[noreturn]] void raise_outside(const Group& brace, Size first, Size last) const {
    const Term& term = pattern_.terms[brace.term];
    raise(ErrorKind::size,
          quoted(pattern_.text_of(term.span)) + " reads from " + to_string(first) + " to " +
              to_string(last) + ", " + operand(brace.operand) + " has " + to_string(brace.size) +
              " elements there",
          {{term.span, to_string(brace.size)}},
          "rearrange reads inside its operand; ein::pad makes it longer first");
  }

  /// Index and size of the dimension of a brace; an axis with a negative coefficient runs
  /// backwards. The size is that of an output.
  std::pair<DimIndex, Size> index_of_brace(std::uint32_t brace) const {
    const Sum sum = sum_of(brace);
    const Size reach = reach_of(brace, sum);
    DimIndex dim{sum.constant, sum.terms};
    for (const DimIndex::Term& term : dim.terms) {
      const Size size = size_of_axis(term.axis);
      if (term.coefficient < 0 && !ask_equal(size, 0)) dim.offset -= term.coefficient * (size - 1);
    }
    if (axis_of_[brace] >= 0) return {std::move(dim), size_of_axis(axis_of_[brace])};
    return {std::move(dim), sum.constant - after_begin(sum.constant) + 1 + reach};
  }
  /// The size of an output's brace is no less than 0.
  void require_size(std::uint32_t i, Size size) const {
    if (!is_brace(i) || size >= 0) return;
    raise(ErrorKind::size,
          quoted(pattern_.text_of(pattern_.terms[i].span)) +
              " has a negative size: " + to_string(size),
          {{pattern_.terms[i].span, to_string(size)}},
          "name its size in the braces, '{... : h}', and give it with the call");
  }

  /// The position along the dimension that a term describes, and the dimension's size. Of sums
  /// these pieces are taken, from number `next` on.
  using Pieces = grammar::List<std::uint32_t>;
  std::pair<DimIndex, Size> index_of(std::uint32_t i, const Pieces& pieces,
                                     std::size_t& next) const {
    if (is_brace(i)) return index_of_brace(i);
    const Term& term = pattern_.terms[i];
    if (axis_of_[i] >= 0) return {{0, {{axis_of_[i], 1}}}, size_of_axis(axis_of_[i])};
    DimIndex dim;
    Size extent = term.kind == TermKind::sum ? 0 : 1;
    const auto refuse_overflow = [&](bool overflows) {
      if (!overflows) return;
      raise(ErrorKind::overflow,
            "the size of " + quoted(pattern_.text_of(term.span)) + " exceeds 63 bits",
            {{term.span, ""}});
    };
    const auto multiply = [&](const DimIndex& inner, Size size) {
      dim.offset *= size;
      for (DimIndex::Term& t : dim.terms) t.coefficient *= size;
      dim.offset += inner.offset;
      dim.terms.insert(dim.terms.end(), inner.terms.begin(), inner.terms.end());
      refuse_overflow(multiply_overflows(extent, size, extent));
    };
    if (term.kind == TermKind::ellipsis) {
      for (int axis : ellipsis_) multiply({0, {{axis, 1}}}, size_of_axis(axis));
      return {std::move(dim), extent};
    }
    const std::uint32_t piece = term.kind == TermKind::sum ? pieces[next++] : 0;
    for (std::uint32_t m = i + 1; m < term.next; m = pattern_.terms[m].next) {
      if (term.kind != TermKind::sum) {
        const auto [inner, size] = index_of(m, pieces, next);
        multiply(inner, size);
        continue;
      }
      if (m == piece) {
        dim = index_of(m, pieces, next).first;
        dim.offset += extent;
      }
      const Size size = size_of(m);
      refuse_overflow(add_overflows(extent, size, extent));
    }
    return {std::move(dim), extent};
  }
  std::pair<DimIndex, Size> index_of(std::uint32_t i) const {
    std::size_t next = 0;
    return index_of(i, {}, next);
  }
  /// The size of a term in a dimension.
  Size size_of(std::uint32_t i) const { return *size_if_known({i, 0, 0}, i); }
  Size size_of_axis(int axis) const { return *axes_[static_cast<std::size_t>(axis)].size; }

  /// Where operand k is read, with these pieces of its sums.
  Access read_of(std::size_t k, const Pieces& pieces) const {
    Access read;
    std::size_t e = 0, next = 0;
    for_each_dim(inputs()[k], [&](std::uint32_t i) {
      if (pattern_.terms[i].kind != TermKind::ellipsis) {
        read.push_back(index_of(i, pieces, next).first);
        return;
      }
      for (; e < ellipsis_dims_[k].size(); ++e) {
        const int axis = ellipsis_dims_[k][e];
        const bool stretched = !ask_equal(shapes_[k][read.size()], size_of_axis(axis));
        read.push_back(stretched ? DimIndex{} : DimIndex{0, {{axis, 1}}});
      }
    });
    return read;
  }
  bool is_by_cases() const {
    return std::any_of(cases_.cases.begin(), cases_.cases.end(), [&](const grammar::Case& from) {
      return cases_.cases.size() > 1 || !from.output.pieces.empty() ||
             std::any_of(from.inputs.begin(), from.inputs.end(),
                         [](const auto& input) { return !input.pieces.empty(); });
    });
  }
  /// The dimensions that the terms [first, last) of an output have in a case.
  void add_dims(std::uint32_t first, std::uint32_t last, const Pieces& pieces, std::size_t& next,
                SolvedCase& to) const {
    for (std::uint32_t i = first; i < last; i = pattern_.terms[i].next) {
      const Term& term = pattern_.terms[i];
      if (term.kind == TermKind::ellipsis) {
        for (int axis : ellipsis_) {
          to.write.push_back({0, {{axis, 1}}});
          to.shape.push_back(size_of_axis(axis));
        }
      } else if (term.kind == TermKind::sum && !is_whole(i)) {
        const std::uint32_t piece = pieces[next++];
        add_dims(piece, pattern_.terms[piece].next, pieces, next, to);
      } else if (cases_.holds_pieces(pattern_, i)) {
        add_dims(i + 1, term.next, pieces, next, to);
      } else {
        auto [dim, size] = index_of(i);
        require_size(i, size);
        to.write.push_back(std::move(dim));
        to.shape.push_back(size);
      }
    }
  }
  void add_cases(Solved& solved) const {
    solved.pieces = cases_;
    solved.under_ellipsis = ellipsis_.size();
    for (const grammar::Case& from : cases_.cases) {
      SolvedCase& to = solved.cases.emplace_back();
      to.operand = from.inputs[0].side;
      for (const grammar::Choice& input : from.inputs)
        to.reads.push_back(read_of(input.side, input.pieces));
      const Side& output = pattern_.sides[from.output.side];
      std::size_t next = 0;
      add_dims(output.first, output.last, from.output.pieces, next, to);
    }
  }

  Solved result() {
    Solved solved;
    for (const Unknown& axis : axes_) solved.axes.push_back({axis.name, *axis.size});
    solved.has_braces = pattern_.has_braces();
    solved.marked.assign(axes_.size(), 0);
    for (std::size_t i = 0; i < pattern_.terms.size(); ++i) {
      if (!pattern_.terms[i].marked) continue;
      if (axis_of_[i] >= 0) solved.marked[static_cast<std::size_t>(axis_of_[i])] = 1;
      if (pattern_.terms[i].kind != TermKind::ellipsis) continue;
      for (int axis : ellipsis_) solved.marked[static_cast<std::size_t>(axis)] = 1;
    }
    if (is_by_cases()) {
      add_cases(solved);
      return solved;
    }
    for (std::size_t k = 0; k < inputs().size(); ++k) solved.reads.push_back(read_of(k, {}));
    if (!pattern_.has_arrow()) return solved;
    const Side& output = pattern_.output();
    for_each_dim(output, [&](std::uint32_t i) {
      const Term& term = pattern_.terms[i];
      if (term.kind == TermKind::ellipsis) {
        for (int axis : ellipsis_) {
          solved.write.push_back({0, {{axis, 1}}});
          solved.shape.push_back(size_of_axis(axis));
        }
        return;
      }
      auto [dim, extent] = index_of(i);
      require_size(i, extent);
      solved.shape.push_back(extent);
      solved.write.push_back(std::move(dim));
    });
    return solved;
  }

  Operation op_;
  const Pattern& pattern_;
  std::span<const Shape> shapes_;
  std::span<const AxisSize> given_;
  std::vector<Unknown> axes_;
  std::vector<int> axis_of_;                     // of each term; -1 for groups, 1, ellipsis
  std::vector<int> ellipsis_;                    // the axes under '...', outermost first
  std::vector<std::vector<int>> ellipsis_dims_;  // per operand
  grammar::Cases cases_;
};

}  // namespace

Solved solve(Operation op, const Pattern& pattern, std::span<const Shape> shapes,
             std::span<const AxisSize> given) {
  return Solver(op, pattern, shapes, given).solve();
}

}  // namespace ein
