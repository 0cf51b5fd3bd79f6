#include "schedule/cpu_choose_tiles.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/cpu_choose.hpp"
#include "schedule/rows_of.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;

class Tiles {
 public:
  Tiles(const LoopNest& nest, const Target& target) : nest_(nest), target_(target) {}

  /// Whether there are tiles, and then which.
  bool find() {
    if (!is_for_rows(nest_, target_) || !find_axes()) return false;
    const std::int64_t lanes = target_.lanes(nest_.compute);
    const std::int64_t registers = std::min(target_.tile_registers, size(columns_) / lanes);
    width_ = registers * lanes;
    const auto places = static_cast<std::int64_t>(most_places / (nest_.inputs.size() + 1));
    height_ = std::min(
        {target_.folded_registers / std::max<std::int64_t>(registers, 1), size(rows_), places});
    return registers >= 1 && height_ >= 2 && pays();
  }

  void add_to(Steps& steps) {
    steps_ = &steps;
    const std::int64_t whole = size(columns_) / width_ * width_, rest = size(columns_) - whole;
    add_columns(0, whole, width_);
    if (rest > 0) add_columns(whole, rest, rest);
  }

 private:
  std::int64_t size(std::size_t axis) const { return nest_.axes[axis].size; }
  bool moves(const Operand& input, std::size_t axis) const {
    return !ask_equal(input.strides[axis], 0);
  }

  /// Columns lie side by side in the result; rows are those among which most is shared.
  bool find_axes() {
    if (!nest_.combine || asks_index(nest_.body) || asks_index(nest_.epilogue)) return false;
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      if (!nest_.axes[a].size.is_number()) return false;
      if (nest_.axes[a].reduced) {
        if (depth_ != no_axis) return false;
        depth_ = a;
      } else if (is_one(nest_.output.strides[a])) {
        columns_ = a;
      }
    }
    if (depth_ == no_axis || columns_ == no_axis) return false;
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      if (nest_.axes[a].reduced || a == columns_ || !has_shared(a)) continue;
      if (rows_ == no_axis || nest_.axes[a].size > nest_.axes[rows_].size) rows_ = a;
    }
    return rows_ != no_axis &&
           std::all_of(nest_.inputs.begin(), nest_.inputs.end(), [&](const Operand& input) {
             return is_shared(input, rows_) || is_readable(input);
           });
  }
  /// What all rows read, each of them all of it.
  bool is_shared(const Operand& input, std::size_t rows) const {
    return !moves(input, rows) && moves(input, columns_) && moves(input, depth_);
  }
  bool has_shared(std::size_t rows) const {
    return std::any_of(nest_.inputs.begin(), nest_.inputs.end(),
                       [&](const Operand& input) { return is_shared(input, rows); });
  }
  bool is_readable(const Operand& input) const {
    const Size step = input.strides[columns_];
    return (ask_equal(step, 0) || ask_equal(step, 1)) &&
           target_.reads(input.dtype, step, nest_.compute);
  }
  bool pays() const {
    return size(rows_) >= target_.least_tile_uses && size(depth_) >= target_.least_tile_depth &&
           size(depth_) <= target_.most_tile_depth &&
           std::all_of(nest_.inputs.begin(), nest_.inputs.end(), [&](const Operand& input) {
             return target_.reads(input.dtype, 1, nest_.compute);
           });
  }

  /// Columns [first, first + count), in panels of `width`.
  void add_columns(std::int64_t first, std::int64_t count, std::int64_t width) {
    for (std::size_t i = 0; i < nest_.inputs.size(); ++i) {
      if (is_shared(nest_.inputs[i], rows_))
        panels_.push_back({i, add_panels(nest_.inputs[i], first, count, width)});
    }
    const std::int64_t whole = size(rows_) / height_ * height_, rest = size(rows_) - whole;
    add_tiles({first, count, width}, 0, whole, height_);
    if (rest > 0) add_tiles({first, count, width}, whole, rest, rest);
    panels_.clear();
  }

  /// A shared operand, laid panel after panel, in each row after row.
  Operand add_panels(const Operand& input, std::int64_t first, std::int64_t count,
                     std::int64_t width) {
    LoopNest laying;
    laying.compute = compute_type(input.dtype);
    laying.body = Ex::input(0);
    Operand from = input;
    from.offset += input.strides[columns_] * first;
    from.strides.clear();
    // Behind the nest's axes that of the panels, whose columns are the columns.
    Operand panels = steps_->scratch(input.dtype, nest_.axes.size() + 1, [&] {
      std::vector<std::pair<std::size_t, Size>> laid{
          {columns_, width}, {depth_, size(depth_)}, {nest_.axes.size(), count / width}};
      for (std::size_t a = nest_.axes.size(); a-- > 0;) {
        if (a != columns_ && a != depth_ && moves(input, a)) laid.push_back({a, size(a)});
      }
      return laid;
    }());
    laying.output = panels;
    laying.output.strides.clear();
    const auto add_axis = [&](const std::string& name, Size points, Size stride, Size to) {
      laying.axes.push_back({name, points});
      from.strides.push_back(stride);
      laying.output.strides.push_back(to);
    };
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      if (a == columns_ || !moves(input, a)) continue;
      add_axis(nest_.axes[a].name, size(a), input.strides[a], panels.strides[a]);
    }
    add_axis("panel", count / width, input.strides[columns_] * width,
             panels.strides[nest_.axes.size()]);
    add_axis(nest_.axes[columns_].name, width, input.strides[columns_], panels.strides[columns_]);
    laying.inputs = {from};
    simplify(laying);
    steps_->add_whole(laying);
    return panels;
  }

  struct Columns {
    std::int64_t first, count, width;
  };
  /// Rows [first, first + count), `height` of them to a tile.
  void add_tiles(const Columns& columns, std::int64_t first, std::int64_t count,
                 std::int64_t height) {
    if (count == 0 || columns.count == 0) return;
    Schedule::Step step;
    Schedule::Part part;
    part.rows.compute = nest_.compute;
    part.rows.rows = {size(depth_)};
    part.rows.length = {columns.width};
    part.rows.axes.resize(nest_.axes.size());
    // What each loop moves: an axis, by so many points; and behind the axes that of the panels.
    std::vector<std::pair<std::size_t, std::int64_t>> moved;
    const auto add_loop = [&](const std::string& name, std::size_t axis, std::int64_t pieces,
                              std::int64_t points, bool is_serial = false) {
      step.loops.push_back({name, pieces, 1, is_serial});
      moved.push_back({axis, points});
    };
    std::int64_t units = columns.count / columns.width;
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      if (a == depth_ || a == columns_ || a == rows_) continue;
      add_loop(nest_.axes[a].name, a, size(a), 1);
      units *= size(a);
    }
    const std::size_t panel = nest_.axes.size();
    add_loop("panel", panel, columns.count / columns.width, 1);
    const std::int64_t tiles = count / height,
                       together = tiles_in_unit(tiles, units, columns.width);
    add_loop(nest_.axes[rows_].name, rows_, tiles / together, together * height);
    if (together > 1) {
      add_loop("tile", rows_, together, height, true);
      part.inside = 1;
    }
    const auto place_of = [&](const Operand& operand, std::int64_t row, bool is_panels) {
      Schedule::Place place{.buffer = operand.buffer,
                            .dtype = operand.dtype,
                            .offset = operand.offset + operand.strides[rows_] * (first + row),
                            .row_step = operand.strides[depth_],
                            .step = operand.strides[columns_]};
      if (!is_panels) place.offset += operand.strides[columns_] * columns.first;
      for (const auto& [axis, points] : moved) {
        place.strides.push_back(axis != panel ? operand.strides[axis] * points
                                : is_panels   ? operand.strides[panel]
                                              : operand.strides[columns_] * columns.width);
      }
      return place;
    };
    const auto number_of = [&](const Schedule::Place& place) {
      const auto known = std::find(part.places.begin(), part.places.end(), place);
      const auto number = static_cast<std::size_t>(known - part.places.begin());
      if (known == part.places.end()) part.places.push_back(place);
      return number;
    };
    for (std::int64_t row = 0; row < height; ++row) {
      Schedule::RowNest of_row{.body = nest_.body,
                               .combine = nest_.combine,
                               .over = Schedule::Over::rows,
                               .epilogue = nest_.epilogue};
      for (std::size_t i = 0; i < nest_.inputs.size(); ++i) {
        const auto panels = std::find_if(panels_.begin(), panels_.end(),
                                         [&](const auto& known) { return known.first == i; });
        of_row.inputs.push_back(number_of(panels == panels_.end()
                                              ? place_of(nest_.inputs[i], row, false)
                                              : place_of(panels->second, row, true)));
      }
      of_row.output = number_of(place_of(nest_.output, row, false));
      part.rows.nests.push_back(std::move(of_row));
    }
    step.parts = {std::move(part)};
    steps_->add(std::move(step));
  }

  /// As many as give a unit enough to do, if that leaves units enough; a divisor of all.
  std::int64_t tiles_in_unit(std::int64_t tiles, std::int64_t units, std::int64_t width) const {
    const std::int64_t points = height_ * width * size(depth_),
                       wanted = std::max<std::int64_t>(1, 16 * target_.elements_per_unit / points);
    std::int64_t best = 1;
    for (std::int64_t n = 1; n <= std::min(tiles, wanted); ++n) {
      if (tiles % n == 0) best = n;
    }
    return 2 * best < wanted && units >= target_.few_units ? tiles : best;
  }

  const LoopNest& nest_;
  const Target& target_;
  Steps* steps_ = nullptr;
  std::size_t columns_ = no_axis, rows_ = no_axis, depth_ = no_axis;
  std::int64_t width_ = 0, height_ = 0;
  std::vector<std::pair<std::size_t, Operand>> panels_;  // of inputs, of the columns at hand
};

}  // namespace

bool choose_tiles(const LoopNest& nest, const Target& target, Steps& steps) {
  Tiles tiles(nest, target);
  if (!tiles.find()) return false;
  tiles.add_to(steps);
  return true;
}

}  // namespace ein
