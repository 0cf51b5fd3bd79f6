// Maps and reductions in strips. A strip of a map is along the result, one of a reduction along the
// axis that is reduced or along a kept one, whichever the largest input favours; of short axes it
// is several rows. Several reduced axes are reduced one after the other.
#include <algorithm>
#include <cstdlib>

#include "nest/combine.hpp"
#include "schedule/cpu_choose.hpp"
#include "schedule/steps.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;

Size size_of_axis(const LoopNest& nest, std::size_t axis) {
  return axis == no_axis ? Size(1) : nest.axes[axis].size;
}

/// Of the axes with `reduced` as given the best to walk in strips: one whose points are
/// neighbours in `operand`, else the longest.
std::size_t strip_axis(const LoopNest& nest, bool reduced, const Operand& operand) {
  std::size_t best = no_axis;
  const auto score = [&](std::size_t a) {
    return ask_equal(operand.strides[a], 1) ? Size(INT64_MAX) : nest.axes[a].size;
  };
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (nest.axes[a].reduced == reduced && (best == no_axis || score(a) >= score(best))) best = a;
  }
  return best;
}

/// The axis on which the rows of a map follow each other: of those that make rows along `along`
/// a strip that is worth its overhead, the one with the closest neighbours in the result.
std::size_t strip_rows(const LoopNest& nest, std::size_t along, const Target& target) {
  const Size length = size_of_axis(nest, along);
  const auto elements = [&](std::size_t a) {
    return std::min(nest.axes[a].size, std::max<Size>(1, target.strip / length)) * length;
  };
  const auto is_better = [&](std::size_t a, std::size_t b) {
    const Size enough = target.strip / 4;
    if (elements(a) < enough || elements(b) < enough) return elements(a) > elements(b);
    return nest.output.strides[a] < nest.output.strides[b];
  };
  std::size_t best = no_axis;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (a != along && (best == no_axis || is_better(a, best))) best = a;
  }
  return best;
}

/// Whether results are neighbours along a short axis, beside another that is kept: a map has
/// longer strips then.
bool is_narrow(const LoopNest& nest, const Target& target) {
  const std::size_t kept = strip_axis(nest, false, guide_of(nest));
  return nest.axes.size() > 2 && kept != no_axis && nest.axes[kept].size < target.strip / 16;
}

/// Whether a reduction's strips are along the axis that is reduced: else it is row after row that
/// is combined.
bool lies_along_cut(const LoopNest& nest, const Operand& guide, std::size_t cut, std::size_t kept) {
  const Size of_cut = nest.axes[cut].size, of_kept = nest.axes[kept].size,
             step = magnitude(guide.strides[cut]), kept_step = magnitude(guide.strides[kept]);
  // Sums of 8 are 1.6 times as fast along their rows, of 6 not always (4 million f64 and i64).
  const Size least = nest.combine == Combine::sum ? 8 : 16;
  const bool is_easy = step <= 1 && of_cut >= least, kept_is_easy = ask_equal(kept_step, 1);
  if (is_easy != kept_is_easy) return is_easy;
  if (!is_easy && !ask_equal(step, kept_step) && std::min(of_cut, of_kept) >= 16)
    return step < kept_step;
  return of_cut > of_kept;
}

/// A reduction of no elements as the map that it is.
LoopNest of_nothing(const LoopNest& nest) {
  const Combine combine = *nest.combine;
  const ScalarExpr value =
      nest.compute == DType::u64   ? Ex::unsigned_integer(identity<std::uint64_t>(combine))
      : nest.compute == DType::i64 ? Ex::integer(identity<std::int64_t>(combine))
                                   : Ex(identity<double>(combine));
  LoopNest map = nest;
  map.combine.reset();
  map.epilogue = {};
  for (LoopNest::NestAxis& axis : map.axes) {
    if (axis.reduced) axis = {axis.name, 1};
  }
  map.body = value;
  map.inputs.clear();
  if (nest.epilogue.steps.empty()) return map;
  std::vector<ScalarExpr> inputs{value};
  for (std::size_t i = 1; i < nest.inputs.size(); ++i) {
    inputs.push_back(Ex::input(static_cast<int>(map.inputs.size())));
    if (reads(nest.epilogue, i)) map.inputs.push_back(nest.inputs[i]);
  }
  map.body = substitute(nest.epilogue, inputs);
  return map;
}

}  // namespace

void Steps::add_strips(LoopNest nest) {
  std::vector<std::size_t> reduced;
  bool is_of_nothing = false;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const bool has_none = ask_equal(nest.axes[a].size, 0);
    if (has_none && !nest.axes[a].reduced) return;
    is_of_nothing |= has_none;
    if (nest.axes[a].reduced) reduced.push_back(a);
  }
  if (is_of_nothing) {
    nest = of_nothing(nest);
  } else if (!reduced.empty()) {
    const auto map = reduced.size() > 1 || is_narrow(nest, target_) ? window_as_map(nest, target_)
                                                                    : std::nullopt;
    if (map)
      nest = *map;
    else if (reduced.size() > 1)
      return add_one_by_one(nest);
  }
  if (nest.combine)
    add_reduction_in_strips(nest, reduced.empty() ? no_axis : reduced[0]);
  else
    add_map_in_strips(nest);
}

void Steps::add_map_in_strips(const LoopNest& nest) {
  const std::size_t along = strip_axis(nest, false, nest.output);
  const Size length = size_of_axis(nest, along), in_unit = target_.elements_per_unit;
  Walk walk{.along = along,
            .length = std::min(length, in_unit),
            .row = strip_rows(nest, along, target_),
            .in_strips = true};
  walk.rows = std::clamp<Size>(in_unit / length, 1, size_of_axis(nest, walk.row));
  add(nest, nest.output, walk);
}

/// Of at most one axis.
void Steps::add_reduction_in_strips(const LoopNest& nest, std::size_t cut) {
  const Operand& guide = guide_of(nest);
  const std::size_t kept = strip_axis(nest, false, guide);
  const Size of_cut = size_of_axis(nest, cut), of_kept = size_of_axis(nest, kept);
  Walk walk{.along = cut, .length = of_cut, .row = kept, .rows = of_kept, .in_strips = true};
  const bool is_down = cut != no_axis && kept != no_axis && !lies_along_cut(nest, guide, cut, kept);
  const Size points = points_of(nest), long_strip = 4 * target_.strip;
  Size in_unit = target_.elements_per_unit / of_cut;
  if (is_down) {
    // Memory is read fastest in long pieces; but in shorter ones before the reduced axis is cut.
    const Size of_few = points / of_cut / target_.few_units;
    in_unit = std::max(in_unit, of_few < target_.strip ? long_strip : std::min(of_few, long_strip));
  }
  walk.rows = std::clamp<Size>(in_unit, 1, of_kept);
  // Few results of many elements: pieces of the reduced axis as well.
  const Size units = points / of_cut / of_kept * ceil_div(of_kept, walk.rows);
  Size pieces = 1;
  if (units < target_.few_units && !nest.joins)
    pieces = std::clamp<Size>(points / units / target_.elements_per_unit, 1,
                              std::min<Size>(target_.most_pieces, of_cut));
  walk.length = ceil_div(of_cut, pieces);
  if (pieces > 1 && walk.length > long_strip)
    walk.length = std::min(of_cut, ceil_div(walk.length, long_strip) * long_strip);
  const bool is_whole = ask_equal(walk.length, of_cut);
  if (is_down) {
    std::swap(walk.along, walk.row);
    std::swap(walk.length, walk.rows);
    walk.over = Schedule::Over::rows;
  }
  if (is_whole) return add(nest, nest.output, walk);
  if (const auto join = add_partials(nest, cut, walk)) add_strips(*join);
}

/// Several reduced axes: first one of them, then what is left. The first is the one along which
/// neighbours lie, or else the longest, so that little is left.
void Steps::add_one_by_one(const LoopNest& nest) {
  const Operand& guide = guide_of(nest);
  const auto score = [&](std::size_t a) {
    return ask_equal(guide.strides[a], 1) && nest.axes[a].size >= 16 ? Size(INT64_MAX)
                                                                     : nest.axes[a].size;
  };
  std::size_t first = no_axis;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (nest.axes[a].reduced && (first == no_axis || score(a) > score(first))) first = a;
  }
  std::vector<std::pair<std::size_t, Size>> left;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (a != first) left.push_back({a, nest.axes[a].size});
  }
  std::stable_sort(left.begin(), left.end(), [&](const auto& a, const auto& b) {
    return magnitude(guide.strides[a.first]) < magnitude(guide.strides[b.first]);
  });
  LoopNest of_first = nest;
  of_first.epilogue = {};
  for (std::size_t a = 0; a < nest.axes.size(); ++a) of_first.axes[a].reduced = a == first;
  of_first.output = scratch(nest.compute, nest.axes.size(), left);
  LoopNest of_left = joined(nest, of_first.output, first, 1);
  for (LoopNest* part : {&of_first, &of_left}) {
    simplify(*part);
    add_strips(*part);
  }
}

}  // namespace ein
