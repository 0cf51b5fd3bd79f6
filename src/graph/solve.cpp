#include "graph/solve.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

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
        axis_of_(pattern.terms.size(), -1) {}

  Solved solve() {
    name_axes();
    check_ranks();
    take_given();
    take_plain();
    take_ellipses();
    take_groups();
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
      } else if (term.kind == TermKind::unnamed ||
                 (term.kind == TermKind::number && term.value > 1)) {
        axis_of_[i] = add_axis(text);
        if (term.kind == TermKind::number)
          axes_.back() = {text, term.value, {"the pattern", term.span}};
      }
    }
  }

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

  void take_given() {
    for (const AxisSize& size : given_) {
      const auto axis = std::find_if(axes_.begin(), axes_.end(),
                                     [&](const Unknown& a) { return a.name == size.name; });
      if (size.size < 0) {
        const auto term =
            std::find_if(pattern_.terms.begin(), pattern_.terms.end(), [&](const Term& t) {
              return t.kind == TermKind::name && pattern_.name_of(t) == size.name;
            });
        raise(ErrorKind::axis_argument,
              "axis '" + axis->name + "' is given the size " + to_string(size.size) +
                  ", which is negative",
              {{term->span, to_string(size.size)}});
      }
      if (axis->size && *axis->size != size.size) {
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
    if (*a.size == size) return;
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
        if (axis_of_[i] >= 0) learn(axis_of_[i], size, k, term.span);
        const bool is_one =
            term.kind == TermKind::number || (term.kind == TermKind::group && term.next == i + 1);
        if (axis_of_[i] < 0 && is_one && size != 1) {
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
    if (a.size && (is_one(size) || *a.size == size || size == 1)) return;
    if (a.size && *a.size != 1) {
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
        if (term.kind == TermKind::group && term.next > i + 1) f(Group{i, shapes_[k][position], k});
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
      if (factors.known == group.size) return false;
      complain(ErrorKind::size, text_of(group) + " is " + known + " by its axes",
               ", " + size + " in " + operand(group.operand));
    }
    if (factors.known == 0 && group.size == 0) return false;
    if (factors.known == 0 || group.size % factors.known != 0) {
      complain(ErrorKind::divisibility,
               "axis " + text_of(group) + " of size " + size + " in " + operand(group.operand) +
                   " cannot be split: " + known + " does not divide it",
               "");
    }
    learn(axis_of_[factors.unknown_at], group.size / factors.known, group.operand,
          pattern_.terms[factors.unknown_at].span);
    return true;
  }

  /// The position along the dimension that a term describes, and the dimension's size.
  std::pair<DimIndex, Size> index_of(std::uint32_t i) const {
    DimIndex dim;
    const Term& term = pattern_.terms[i];
    for (std::uint32_t j = i; j < term.next; ++j) {
      if (axis_of_[j] >= 0) dim.terms.push_back({axis_of_[j], 1});
      if (pattern_.terms[j].kind == TermKind::ellipsis) {
        for (int axis : ellipsis_) dim.terms.push_back({axis, 1});
      }
    }
    Size extent = 1;
    for (std::size_t t = dim.terms.size(); t-- > 0;) {
      dim.terms[t].coefficient = extent;
      if (multiply_overflows(extent, size_of_axis(dim.terms[t].axis), extent)) {
        raise(ErrorKind::overflow,
              "the size of " + quoted(pattern_.text_of(term.span)) + " exceeds 63 bits",
              {{term.span, ""}});
      }
    }
    return {std::move(dim), extent};
  }
  Size size_of_axis(int axis) const { return *axes_[static_cast<std::size_t>(axis)].size; }

  Solved result() {
    Solved solved;
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      Access read;
      std::size_t e = 0;
      for_each_dim(inputs()[k], [&](std::uint32_t i) {
        if (pattern_.terms[i].kind != TermKind::ellipsis) {
          read.push_back(index_of(i).first);
          return;
        }
        for (; e < ellipsis_dims_[k].size(); ++e) {
          const int axis = ellipsis_dims_[k][e];
          const bool stretched = shapes_[k][read.size()] != size_of_axis(axis);
          read.push_back(stretched ? DimIndex{} : DimIndex{0, {{axis, 1}}});
        }
      });
      solved.reads.push_back(std::move(read));
    }
    for (const Unknown& axis : axes_) solved.axes.push_back({axis.name, *axis.size});
    solved.marked.assign(axes_.size(), 0);
    for (std::size_t i = 0; i < pattern_.terms.size(); ++i) {
      if (!pattern_.terms[i].marked) continue;
      if (axis_of_[i] >= 0) solved.marked[static_cast<std::size_t>(axis_of_[i])] = 1;
      if (pattern_.terms[i].kind != TermKind::ellipsis) continue;
      for (int axis : ellipsis_) solved.marked[static_cast<std::size_t>(axis)] = 1;
    }
    if (!pattern_.has_arrow) return solved;
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
};

}  // namespace

Solved solve(Operation op, const Pattern& pattern, std::span<const Shape> shapes,
             std::span<const AxisSize> given) {
  return Solver(op, pattern, shapes, given).solve();
}

}  // namespace ein
