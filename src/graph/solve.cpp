#include "graph/solve.hpp"

#include <algorithm>
#include <optional>

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
  std::optional<std::int64_t> size;
  Source source;
};

class Solver {
 public:
  Solver(Operation op, const Pattern& pattern, std::span<const Shape> shapes, std::span<const AxisSize> given)
      : op_(op), pattern_(pattern), shapes_(shapes), given_(given), axis_of_(pattern.terms.size(), -1) {}

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
    for_each_dim(side, [&](std::uint32_t i) { found |= pattern_.terms[i].kind == TermKind::ellipsis; });
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
    for (std::size_t i = 0; i < pattern_.terms.size(); ++i) {
      const Term& term = pattern_.terms[i];
      const std::string text(pattern_.name_of(term));
      if (term.kind == TermKind::name) {
        const auto same = std::find_if(axes_.begin(), axes_.end(), [&](const Unknown& a) { return a.name == text; });
        axis_of_[i] = same != axes_.end() ? static_cast<int>(same - axes_.begin()) : add_axis(text);
      } else if (term.kind == TermKind::unnamed || (term.kind == TermKind::number && term.value > 1)) {
        axis_of_[i] = add_axis(text);
        if (term.kind == TermKind::number) axes_.back() = {text, term.value, {"the pattern", term.span}};
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
      const std::string axes = wanted == 1 ? " axis" : " axes";
      raise(ErrorKind::rank,
            operand(k) + " has " + std::to_string(rank) + (rank == 1 ? " axis" : " axes") + ", the pattern wants " +
                (open ? "at least " : "") + std::to_string(wanted),
            {{trimmed(side), ""}});
    }
  }

  /// The text of a side without the blanks around it.
  SourceSpan trimmed(const Side& side) const {
    if (side.first == side.last) return side.span;
    SourceSpan span{pattern_.terms[side.first].span.begin, 0};
    for (std::uint32_t i = side.first; i < side.last; ++i) span.end = std::max(span.end, pattern_.terms[i].span.end);
    return span;
  }

  void take_given() {
    for (const AxisSize& size : given_) {
      const auto axis = std::find_if(axes_.begin(), axes_.end(), [&](const Unknown& a) { return a.name == size.name; });
      if (size.size < 0) {
        fail(ErrorKind::axis_argument, name(op_),
             "axis '" + axis->name + "' is given the size " + std::to_string(size.size), pattern_.text, {});
      }
      axis->size = size.size;
      axis->source = {"the call", std::nullopt};
    }
  }

  /// Records that an axis has `size` in operand k; an axis with two sizes is an error.
  void learn(int axis, std::int64_t size, std::size_t k, SourceSpan span) {
    Unknown& a = axes_[static_cast<std::size_t>(axis)];
    if (!a.size) {
      a.size = size;
      a.source = {operand(k), span};
      return;
    }
    if (*a.size == size) return;
    std::vector<Mark> marks{{span, std::to_string(size)}};
    if (a.source.span) marks.insert(marks.begin(), {*a.source.span, std::to_string(*a.size)});
    if (a.source.span && *a.source.span == span) {
      raise(ErrorKind::size,
            "anonymous axis '" + a.name + "' is " + std::to_string(size) + " in " + operand(k), {marks.back()});
    }
    raise(ErrorKind::size,
          "axis '" + a.name + "' has two sizes: " + std::to_string(*a.size) + " in " + a.source.where + ", " +
              std::to_string(size) + " in " + operand(k),
          marks);
  }

  void take_plain() {
    for (std::size_t k = 0; k < inputs().size(); ++k) {
      for_each_position(k, [&](std::uint32_t i, std::size_t position) {
        const Term& term = pattern_.terms[i];
        const std::int64_t size = shapes_[k][position];
        if (axis_of_[i] >= 0) learn(axis_of_[i], size, k, term.span);
        const bool is_one = term.kind == TermKind::number || (term.kind == TermKind::group && term.next == i + 1);
        if (axis_of_[i] < 0 && is_one && size != 1) {
          raise(ErrorKind::size,
                "an axis of size 1 is wanted, " + operand(k) + " has " + std::to_string(size) + " there",
                {{term.span, std::to_string(size)}});
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
      if (has_ellipsis(inputs()[k])) most = std::max(most, shapes_[k].rank() - dims_without_ellipsis(inputs()[k]));
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
          const std::int64_t size = shapes_[k][position + e];
          ellipsis_dims_[k].push_back(axis);
          stretch(axis, size, k, pattern_.terms[i].span);
        }
        position += count;
      });
    }
  }

  void stretch(int axis, std::int64_t size, std::size_t k, SourceSpan span) {
    Unknown& a = axes_[static_cast<std::size_t>(axis)];
    if (a.size && (size == 1 || *a.size == size)) return;
    if (a.size && *a.size != 1) {
      raise(ErrorKind::size,
            "'...' does not broadcast: " + std::to_string(*a.size) + " in " + a.source.where + ", " +
                std::to_string(size) + " in " + operand(k),
            {{*a.source.span, std::to_string(*a.size)}, {span, std::to_string(size)}},
            "sizes under '...' must be equal or 1, aligned at the right");
    }
    a.size = size;
    a.source = {operand(k), span};
  }

  /// Divides the sizes of groups among their axes, as long as that teaches something.
  void take_groups() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t k = 0; k < inputs().size(); ++k) {
        for_each_position(k, [&](std::uint32_t i, std::size_t position) {
          const Term& term = pattern_.terms[i];
          if (term.kind == TermKind::group && term.next > i + 1) progress |= take_group(i, shapes_[k][position], k);
        });
      }
    }
    for (const Unknown& axis : axes_) {
      if (!axis.size) raise(ErrorKind::inference, "the size of axis '" + axis.name + "' cannot be found", {});
    }
  }

  bool take_group(std::uint32_t group, std::int64_t size, std::size_t k) {
    const Term& term = pattern_.terms[group];
    std::int64_t known = 1;
    std::string factors;
    int unknown = -1;
    std::uint32_t unknown_at = 0;
    for (std::uint32_t j = group + 1; j < term.next; ++j) {
      const int axis = axis_of_[j];
      if (axis < 0) continue;
      const Unknown& a = axes_[static_cast<std::size_t>(axis)];
      if (!a.size) {
        if (unknown >= 0) return false;
        unknown = axis;
        unknown_at = j;
        continue;
      }
      if (!factors.empty()) factors += ", ";
      factors += a.name == std::to_string(*a.size) ? a.name : a.name + " = " + std::to_string(*a.size);
      if (__builtin_mul_overflow(known, *a.size, &known)) {
        raise(ErrorKind::overflow, "the sizes of the axes of a group multiply to more than 63 bits", {{term.span, ""}});
      }
    }
    const std::string group_text = "'" + std::string(pattern_.text_of(term.span)) + "'";
    const Mark mark{term.span, std::to_string(size)};
    if (unknown < 0) {
      if (known == size) return false;
      raise(ErrorKind::size,
            group_text + " is " + std::to_string(known) + " by its axes (" + factors + "), " + std::to_string(size) +
                " in " + operand(k),
            {mark});
    }
    if (known == 0 && size == 0) {
      raise(ErrorKind::inference, "the size of axis '" + axes_[static_cast<std::size_t>(unknown)].name +
                                      "' cannot be found: the rest of " + group_text + " is 0 (" + factors + ")",
            {mark}, "give its size with the call");
    }
    if (known == 0 || size % known != 0) {
      raise(ErrorKind::divisibility,
            "axis " + group_text + " of size " + std::to_string(size) + " in " + operand(k) +
                " cannot be split: " + std::to_string(known) + " does not divide it (" + factors + ")",
            {mark});
    }
    learn(unknown, size / known, k, pattern_.terms[unknown_at].span);
    return true;
  }

  /// The position along the dimension that a term describes, and the dimension's size.
  std::pair<DimIndex, std::int64_t> index_of(std::uint32_t i) const {
    DimIndex dim;
    const Term& term = pattern_.terms[i];
    for (std::uint32_t j = i; j < term.next; ++j) {
      if (axis_of_[j] >= 0) dim.terms.push_back({axis_of_[j], 1});
      if (pattern_.terms[j].kind == TermKind::ellipsis) {
        for (int axis : ellipsis_) dim.terms.push_back({axis, 1});
      }
    }
    std::int64_t extent = 1;
    for (std::size_t t = dim.terms.size(); t-- > 0;) {
      dim.terms[t].coefficient = extent;
      if (__builtin_mul_overflow(extent, size_of_axis(dim.terms[t].axis), &extent)) {
        raise(ErrorKind::overflow, "the size of the result exceeds 63 bits", {{term.span, ""}});
      }
    }
    return {std::move(dim), extent};
  }
  std::int64_t size_of_axis(int axis) const { return *axes_[static_cast<std::size_t>(axis)].size; }

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
    std::int64_t total = 1;
    for (std::int64_t size : solved.shape) {
      if (__builtin_mul_overflow(total, std::max<std::int64_t>(size, 1), &total)) {
        raise(ErrorKind::overflow, "the size of the result exceeds 63 bits", {{trimmed(output), ""}});
      }
    }
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

Solved solve(Operation op, const Pattern& pattern, std::span<const Shape> shapes, std::span<const AxisSize> given) {
  return Solver(op, pattern, shapes, given).solve();
}

}  // namespace ein
