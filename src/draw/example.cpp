#include "draw/example.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/solve.hpp"
#include "graph/spread.hpp"
#include "size/ask.hpp"

namespace ein::draw {
namespace {

using grammar::Pattern;
using grammar::Side;
using grammar::Term;
using grammar::TermKind;

constexpr std::int64_t longest = 4;         // of an axis that is drawn
constexpr std::int64_t most_points = 4096;  // of the index space

class Maker {
 public:
  Maker(const PatternCall& call, std::span<const Shape> shapes)
      : call_(call),
        shapes_(shapes.begin(), shapes.end()),
        spread_(call.op, call.pattern, shapes_for_spread(), false),
        pattern_(spread_.pattern()),
        terms_(pattern_.terms.begin(), pattern_.terms.end()) {
    example_.text = pattern_.text;
  }

  Example make() {
    require_drawable();
    name_axes();
    take_real_sizes();
    choose_sizes();
    shrink();
    finish();
    return std::move(example_);
  }

 private:
  /// Where nothing is known of the operands, `*name` is one axis.
  std::vector<Shape> shapes_for_spread() const {
    if (!shapes_.empty() || !call_.pattern.has_many()) return shapes_;
    std::vector<Shape> shapes;
    for (const Side& side : call_.pattern.inputs()) {
      std::size_t rank = 0;
      for (std::uint32_t i = side.first; i < side.last; i = call_.pattern.terms[i].next) ++rank;
      shapes.emplace_back(rank, 2);
    }
    return shapes;
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& help) const {
    fail(ErrorKind::value, "draw", what, call_.pattern.text, {}, {"help: " + help});
  }
  void require_drawable() const {
    if (!pattern_.has_arrow() || pattern_.has_placements())
      refuse("it draws patterns with an arrow, without axes of a mesh", "leave @ and its name out");
    if (pattern_.sides.size() > 2 * most_operands)
      refuse("the pattern has " + std::to_string(pattern_.sides.size()) +
                 " operands and results; a picture has at most " +
                 std::to_string(2 * most_operands),
             "draw a part of it");
    for (const Side& side : pattern_.sides) {
      if (side.last - side.first <= 4 * most_axes) continue;
      refuse("a tensor with as many axes as this one cannot be drawn", "draw a part of it");
    }
  }

  // --- axes ---

  std::size_t axis_named(const std::string& name) {
    const auto [at, is_new] = number_of_.try_emplace(name, example_.axes.size());
    if (is_new) example_.axes.push_back({name, {}, 0});
    return at->second;
  }
  void name_axes() {
    example_.axis_of.assign(terms_.size(), -1);
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      const Term& term = terms_[i];
      const std::string text(pattern_.name_of(term));
      example_.spans.push_back(term.span);
      if (term.kind == TermKind::name) {
        const std::size_t axis = axis_named(text);
        example_.axis_of[i] = static_cast<int>(axis);
        if (term.value > 0) example_.axes[axis].real = term.value;
      } else if (term.kind == TermKind::unnamed ||
                 (term.kind == TermKind::number && term.value > 1)) {
        example_.axis_of[i] = static_cast<int>(example_.axes.size());
        example_.axes.push_back({text, {}, 0});
        if (term.kind == TermKind::number) example_.axes.back().real = term.value;
      }
      if (term.size_name.end > 0) axis_named(std::string(pattern_.text_of(term.size_name)));
    }
    for (const AxisSize& size : call_.sizes) {
      const auto axis = number_of_.find(std::string(size.name));
      if (!size.is_number && axis != number_of_.end() && size.size.is_number())
        example_.axes[axis->second].real = std::int64_t{size.size};
    }
  }
  template <class F>
  void for_each_dim(const Side& side, F&& f) const {
    for (std::uint32_t i = side.first; i < side.last; i = terms_[i].next) f(i);
  }
  /// How many axes `...` is in operand k.
  std::size_t under_ellipsis(std::size_t k) const {
    if (shapes_.empty()) return 1;
    std::size_t dims = 0;
    for_each_dim(pattern_.sides[k],
                 [&](std::uint32_t i) { dims += terms_[i].kind != TermKind::ellipsis; });
    return shapes_[k].rank() - std::min(dims, shapes_[k].rank());
  }
  bool has_ellipsis() const {
    return std::any_of(terms_.begin(), terms_.end(),
                       [](const Term& term) { return term.kind == TermKind::ellipsis; });
  }
  void take_real_sizes() {
    if (has_ellipsis()) {
      std::size_t most = 0;
      for (std::size_t k = 0; k < pattern_.inputs().size(); ++k) {
        bool has = false;
        for_each_dim(pattern_.sides[k],
                     [&](std::uint32_t i) { has |= terms_[i].kind == TermKind::ellipsis; });
        if (has) most = std::max(most, under_ellipsis(k));
      }
      for (std::size_t e = 0; e < most; ++e)
        ellipsis_.push_back(axis_named("..." + std::to_string(e)));
    }
    if (shapes_.empty()) return;
    std::vector<OperandType> operands;
    for (const Shape& shape : shapes_) operands.push_back({shape, DType::f32});
    const Graph graph = build_graph(call_, operands);
    for (const ValueId output : graph.outputs) real_results_.push_back(graph.op(output).shape);
    for (const Axis& axis : solve(call_.op, pattern_, shapes_, call_.sizes).axes) {
      const auto found = number_of_.find(axis.name);
      if (found != number_of_.end()) example_.axes[found->second].real = std::int64_t{axis.size};
    }
    for (std::size_t k = 0; k < pattern_.inputs().size(); ++k) {  // those without a name
      std::size_t position = 0;
      for_each_dim(pattern_.sides[k], [&](std::uint32_t i) {
        if (terms_[i].kind == TermKind::unnamed)
          example_.axes[static_cast<std::size_t>(example_.axis_of[i])].real =
              std::int64_t{shapes_[k][position]};
        position += terms_[i].kind == TermKind::ellipsis ? under_ellipsis(k) : 1;
      });
    }
  }

  // --- sizes ---

  void choose_sizes() {
    constexpr std::int64_t chosen[] = {2, 3, 4};  // differ, so that axes can be told apart
    std::size_t next = 0;
    for (DrawnAxis& axis : example_.axes)
      axis.size = axis.real ? std::min(*axis.real, longest) : chosen[next++ % 3];
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      if (terms_[i].kind != TermKind::brace) continue;
      // First where a window begins, then what it reads.
      for (std::uint32_t j = static_cast<std::uint32_t>(i) + 1; j < terms_[i].next; ++j) {
        if (example_.axis_of[j] < 0) continue;
        DrawnAxis& axis = example_.axes[static_cast<std::size_t>(example_.axis_of[j])];
        const std::int64_t most = j == i + 1 ? 4 : 3;
        axis.size = axis.real ? std::min(axis.size, most) : most;
      }
    }
    set_sizes_of_braces();
  }
  void set_sizes_of_braces() {
    for (std::uint32_t i = 0; i < terms_.size(); ++i) {
      if (terms_[i].size_name.end == 0) continue;
      example_.axes[axis_named(std::string(pattern_.text_of(terms_[i].size_name)))].size =
          positions_of(i);
    }
  }
  /// Of a brace: up to the last position that it reads, as docs/patterns.md has it.
  std::int64_t positions_of(std::uint32_t brace) const {
    std::int64_t first = 0, span = 0;
    for (std::uint32_t j = brace + 1; j < terms_[brace].next; ++j) {
      const Term& term = terms_[j];
      if (term.kind == TermKind::constant)
        first += term.coefficient * term.value;
      else
        span += std::abs(term.coefficient) * (std::max<std::int64_t>(size_of_axis(j), 1) - 1);
    }
    return std::max<std::int64_t>(1, first + span + 1 - std::max<std::int64_t>(0, -first));
  }
  std::int64_t size_of_axis(std::uint32_t term) const {
    return example_.axes[static_cast<std::size_t>(example_.axis_of[term])].size;
  }

  /// Makes the longest axes shorter until everything fits.
  void shrink() {
    while (!fits()) {
      DrawnAxis* longest_axis = nullptr;
      for (std::size_t a = 0; a < example_.axes.size(); ++a) {
        DrawnAxis& axis = example_.axes[a];
        if (!is_of_brace(a) && axis.size > 1 && (!longest_axis || axis.size > longest_axis->size))
          longest_axis = &axis;
      }
      if (!longest_axis)
        refuse("the smallest example has a tensor of more than " + std::to_string(most_elements) +
                   " elements",
               "make the numbers in braces smaller");
      --longest_axis->size;
      set_sizes_of_braces();
    }
  }
  bool is_of_brace(std::size_t axis) const {
    return std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) {
      return term.size_name.end > 0 && pattern_.text_of(term.size_name) == example_.axes[axis].name;
    });
  }
  bool fits() const {
    for (std::size_t s = 0; s < pattern_.sides.size(); ++s) {
      std::int64_t elements = 1;
      for (const Dimension& dim : dims_of(s)) elements *= size_of(dim);
      if (elements > most_elements) return false;
    }
    std::int64_t points = 1;
    for (const DrawnAxis& axis : example_.axes) {
      points *= std::max<std::int64_t>(axis.size, 1);
      if (points > most_points) return false;
    }
    return true;
  }

  // --- tensors ---

  Factor axis_factor(std::size_t number) const {
    return {Factor::axis, number, example_.axes[number].size, example_.axes[number].name, {}, {}};
  }
  void add_factors(std::uint32_t i, Dimension& to) const {
    const Term& term = terms_[i];
    if (term.kind == TermKind::group) {
      for (std::uint32_t j = i + 1; j < term.next; j = terms_[j].next) add_factors(j, to);
    } else if (term.kind == TermKind::sum) {
      Factor sum{Factor::sum, 0, 0, std::string(pattern_.name_of(term)), {}, {}};
      for (std::uint32_t j = i + 1; j < term.next; j = terms_[j].next) {
        Dimension piece;
        add_factors(j, piece);
        for (Factor& factor : piece) factor.is_piece = true;
        sum.size += size_of(piece);
        sum.pieces.push_back(std::move(piece));
      }
      to.push_back(std::move(sum));
    } else if (term.kind == TermKind::brace) {
      const std::string text(pattern_.name_of(term));
      to.push_back({Factor::positions, 0, positions_of(i), text, {}, {}});
      for (std::uint32_t j = i + 1; j < term.next; ++j) {
        if (example_.axis_of[j] >= 0)
          to.back().reads.push_back(static_cast<std::size_t>(example_.axis_of[j]));
      }
      if (term.size_name.end > 0) {
        const auto axis = number_of_.find(std::string(pattern_.text_of(term.size_name)));
        to.back().size = example_.axes[axis->second].size;
      }
    } else if (term.kind == TermKind::ellipsis) {
      for (const std::size_t axis : ellipsis_) to.push_back(axis_factor(axis));
    } else if (example_.axis_of[i] >= 0) {
      to.push_back(axis_factor(static_cast<std::size_t>(example_.axis_of[i])));
    }
  }
  std::vector<Dimension> dims_of(std::size_t side) const {
    std::vector<Dimension> dims;
    std::size_t position = 0;
    for_each_dim(pattern_.sides[side], [&](std::uint32_t i) {
      if (terms_[i].kind != TermKind::ellipsis) {
        add_factors(i, dims.emplace_back());
        ++position;
        return;
      }
      const bool is_input = side < pattern_.inputs().size();
      const std::size_t count =
          is_input ? std::min(under_ellipsis(side), ellipsis_.size()) : ellipsis_.size();
      for (std::size_t e = ellipsis_.size() - count; e < ellipsis_.size(); ++e, ++position) {
        dims.emplace_back();
        const bool is_one = is_input && !shapes_.empty() && ask_equal(shapes_[side][position], 1);
        if (!is_one) dims.back().push_back(axis_factor(ellipsis_[e]));
      }
    });
    return dims;
  }

  void finish() {
    PatternCall small = call_;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      if (example_.axis_of[i] < 0 || terms_[i].value <= 0) continue;
      terms_[i].value = std::max<std::int64_t>(size_of_axis(static_cast<std::uint32_t>(i)), 1);
    }
    small.pattern = pattern_;
    small.pattern.terms = terms_;
    small.is_checked = true;
    std::vector<AxisSize> sizes;
    for (const auto& [name, number] : number_of_) {
      if (!name.starts_with('.')) sizes.push_back({name, example_.axes[number].size});
    }
    small.sizes = sizes;
    std::vector<OperandType> operands;
    for (std::size_t s = 0; s < pattern_.sides.size(); ++s) {
      DrawnTensor tensor{pattern_.sides[s].span, dims_of(s), {}, {}};
      const std::size_t count = pattern_.inputs().size();
      std::size_t axes = 0;
      for (const Dimension& dim : tensor.dims) {
        tensor.shape.push_back(size_of(dim));
        axes += dim.size();
      }
      if (axes > most_axes)
        refuse("a tensor has " + count_axes(axes) + "; one that is drawn has at most " +
                   std::to_string(most_axes),
               "name fewer axes");
      if (s < count) {
        if (!shapes_.empty()) tensor.real = shapes_[s];
        operands.push_back({tensor.shape, DType::f32});
        example_.operands.push_back(std::move(tensor));
      } else {
        if (!real_results_.empty()) tensor.real = real_results_[s - count];
        example_.results.push_back(std::move(tensor));
      }
    }
    example_.graph = build_graph(small, operands);
  }

  const PatternCall& call_;
  std::vector<Shape> shapes_;
  SpreadPattern spread_;
  Pattern pattern_;
  std::vector<Term> terms_;
  std::map<std::string, std::size_t> number_of_;  // of axes, by name
  std::vector<std::size_t> ellipsis_;             // the axes under '...'
  std::vector<Shape> real_results_;
  Example example_;
};

}  // namespace

bool Example::has_sums() const {
  const auto has_sum = [](const Dimension& dim) {
    return std::any_of(dim.begin(), dim.end(),
                       [](const Factor& factor) { return factor.kind == Factor::sum; });
  };
  const auto has = [&](const std::vector<DrawnTensor>& tensors) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const DrawnTensor& tensor) {
      return std::any_of(tensor.dims.begin(), tensor.dims.end(), has_sum);
    });
  };
  return has(operands) || has(results);
}

std::int64_t size_of(const Dimension& dim) {
  std::int64_t size = 1;
  for (const Factor& factor : dim) size *= factor.size;
  return size;
}

Example example_of(const PatternCall& call, std::span<const Shape> shapes) {
  return Maker(call, shapes).make();
}

}  // namespace ein::draw
