#include "schedule/schedule.hpp"

#include <stdexcept>

#include "graph/at_sizes.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using Place = Schedule::Place;
using Step = Schedule::Step;

std::string name_of(const Schedule& schedule, int buffer) {
  const auto b = static_cast<std::size_t>(buffer);
  return b < schedule.buffers ? "b" + std::to_string(b)
                              : "s" + std::to_string(b - schedule.buffers);
}

// What is shown may be damaged: verify() shows what it refuses.

std::string axis_of(const Step& step, std::size_t loop) {
  return loop < step.loops.size() ? step.loops[loop].axis : "no loop";
}

std::string show(const Schedule& schedule, const Step& step, const Schedule::Part& part,
                 std::size_t p) {
  if (p >= part.places.size()) return "no place";
  const Place& place = part.places[p];
  std::string at;
  const auto add = [&](Size stride, const std::string& index) {
    if (!always_equal(stride, 0))
      at += (at.empty() ? "" : " + ") + (is_one(stride) ? "" : to_string(stride) + "·") + index;
  };
  for (std::size_t l = 0; l < place.strides.size(); ++l) add(place.strides[l], axis_of(step, l));
  if (!part.whole) {
    add(place.row_step, "row");
    add(place.step, "element");
  }
  if (!always_equal(place.offset, 0)) at += (at.empty() ? "" : " + ") + to_string(place.offset);
  return name_of(schedule, place.buffer) + "[" + (at.empty() ? "0" : at) + "]" +
         (place.is_kept ? "" : " (in registers)");
}

std::string show(const Step& step, const Schedule::Extent& extent) {
  return extent.loop < 0 ? to_string(extent.size)
                         : "the piece's " + axis_of(step, static_cast<std::size_t>(extent.loop));
}

std::string indented(const std::string& text, const std::string& indent) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    result += indent + text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

std::string show(const Schedule& schedule, const Step& step, const Schedule::Part& part) {
  std::string text;
  if (part.product) {
    const Schedule::Product& product = *part.product;
    return "  " + show(schedule, step, part, 2) + (product.adds ? " += " : " = ") +
           show(schedule, step, part, 0) + " · " + show(schedule, step, part, 1) + ", " +
           show(step, product.rows) + " x " + show(step, product.depth) + " x " +
           show(step, product.columns) + "\n";
  }
  if (part.whole) {
    for (std::size_t p = 0; p < part.places.size(); ++p)
      text += "  " + (p + 1 < part.places.size() ? "x" + std::to_string(p) : "out") + " from " +
              show(schedule, step, part, p) + "\n";
    for (std::size_t a = 0; a < part.loops.size(); ++a) {
      if (part.loops[a] >= 0)
        text += "  " + part.whole->axes[a].name + " is a piece of " +
                axis_of(step, static_cast<std::size_t>(part.loops[a])) + "\n";
    }
    return text + indented(to_string(*part.whole), "  ");
  }
  text += "  rows " + show(step, part.rows.rows) + " of " + show(step, part.rows.length);
  if (part.rows.in_strips) text += " in strips of " + std::string(name(part.rows.compute));
  text += "\n";
  for (const Schedule::RowNest& nest : part.rows.nests) {
    text += "    " + show(schedule, step, part, nest.output) + " = ";
    if (nest.combine)
      text += std::string(name(*nest.combine)) +
              (nest.over == Schedule::Over::row ? " along the row of " : " of the rows of ");
    text += to_string(nest.body);
    if (!nest.epilogue.steps.empty()) text += ", then " + to_string(nest.epilogue);
    if (nest.is_scalar) text += ", once a row";
    for (std::size_t i = 0; i < nest.inputs.size(); ++i)
      text += (i == 0 ? "; x" : ", x") + std::to_string(i) + " = " +
              show(schedule, step, part, nest.inputs[i]);
    text += "\n";
  }
  return text;
}

std::string show(const Schedule& schedule, const Step& step) {
  std::string text = "step";
  std::vector<std::string> serial;
  for (const Schedule::Loop& loop : step.loops) {
    std::string of = loop.axis + " in 0.." + to_string(loop.size);
    if (!is_one(loop.block)) of += " by " + to_string(loop.block);
    if (loop.is_serial)
      serial.push_back(of);
    else
      text += ", " + of;
  }
  if (step.mask) {
    const std::string query = axis_of(step, step.mask->query), key = axis_of(step, step.mask->key);
    text += ", where ";
    if (step.mask->back) text += query + " - " + to_string(*step.mask->back) + " <= ";
    text += key;
    if (step.mask->reach) text += " <= " + query + " + " + to_string(*step.mask->reach);
  }
  if (const auto& threads = step.threads)
    text += ", each by " + std::to_string(threads->lanes) + " lanes, " +
            std::to_string(threads->width) + " elements at once" +
            (threads->is_unrolled ? ", unrolled" : "") + ", in blocks of " +
            std::to_string(threads->threads) + " threads";
  text += "\n";
  std::size_t inside = 0;
  for (const Schedule::Part& part : step.parts) {
    for (inside = std::min(inside, part.inside); inside < part.inside; ++inside)
      text += std::string(2 * inside + 2, ' ') + "each " +
              (inside < serial.size() ? serial[inside] : "no loop") + "\n";
    const std::string of = show(schedule, step, part);
    if (part.pieces != Schedule::Pieces::all)
      text += std::string(2 * inside + 2, ' ') + (part.pieces == Schedule::Pieces::cut
                                                      ? "where some is hidden\n"
                                                      : "where nothing is hidden\n");
    text += indented(of, std::string(2 * inside, ' '));
  }
  return text;
}

class Verifier {
 public:
  Verifier(const Schedule& schedule, std::span<const Size> elements)
      : schedule_(schedule), elements_(elements) {}

  void run() {
    written_.assign(schedule_.scratch.size(), false);
    for (const Schedule::Scratch& scratch : schedule_.scratch)
      require(scratch.elements >= 0, "scratch of a negative size");
    for (const Step& step : schedule_.steps) check(step);
  }

 private:
  static void require(bool condition, const char* what) {
    if (!condition) throw std::logic_error(std::string("schedule: ") + what);
  }

  void check(const Step& step) {
    std::size_t serial = 0;
    for (const Schedule::Loop& loop : step.loops) {
      require(loop.size >= 1 && loop.block >= 1, "a loop of no points");
      require(loop.is_serial || serial == 0, "serial loops are behind the parallel ones");
      serial += loop.is_serial;
    }
    require(!step.mask || std::max(step.mask->query, step.mask->key) < step.loops.size(),
            "a mask of loops that are not there");
    if (step.threads) check_threads(step);
    for (std::size_t s = 0; s < written_.size(); ++s) {
      if (schedule_.scratch[s].of_thread) written_[s] = false;  // a unit finds nothing there
    }
    for (const Schedule::Part& part : step.parts) {
      for (const Place& place : part.places) {
        require(place.buffer >= 0 && static_cast<std::size_t>(place.buffer) <
                                         schedule_.buffers + schedule_.scratch.size(),
                "no such buffer");
        require(place.strides.size() == step.loops.size(),
                "a place has a stride for each loop of its step");
        if (schedule_.is_scratch(place))
          require(place.dtype == schedule_.scratch_of(place).dtype, "scratch of another dtype");
      }
      require(part.inside <= serial, "a part inside of more loops than there are");
      check_loops(step, part, step.loops.size() - serial + part.inside);
      if (part.product)
        check_product(step, part);
      else if (part.whole)
        check_whole(step, part);
      else
        check_rows(step, part);
    }
  }

  /// Lanes do not wait for each other: a value is read by the lane that made it, or it is a row's.
  static void check_threads(const Step& step) {
    const Schedule::Threads& threads = *step.threads;
    require(threads.lanes >= 1 && threads.threads % threads.lanes == 0 && threads.width >= 1 &&
                threads.run >= 1,
            "a block has whole units");
    for (std::size_t p = 0; p < step.parts.size(); ++p) {
      const Schedule::Part& part = step.parts[p];
      require(part.whole && part.loops.size() == part.whole->axes.size(),
              "lanes walk nests of which each unit has a piece");
      for (std::size_t i = 0; i < part.whole->inputs.size(); ++i) {
        for (std::size_t before = 0; before < p; ++before) {
          const Schedule::Part& maker = step.parts[before];
          const Place &made = maker.places.back(), &read = part.places[i];
          if (made.buffer != read.buffer) continue;
          const std::vector<Size>&to = maker.whole->output.strides,
                &from = part.whole->inputs[i].strides;
          bool is_own =
              ask_equal(made.offset, read.offset) && ask_equal(made.strides, read.strides);
          for (std::size_t a = 0; a < std::max(to.size(), from.size()); ++a)
            is_own &=
                ask_equal(a < to.size() ? to[a] : Size(0), a < from.size() ? from[a] : Size(0));
          require(is_own && !part.whole->inputs[i].is_indirect(),
                  "a lane reads what another one makes");
        }
      }
    }
  }

  /// A part knows nothing of the loops from `end` on, which it is not inside of.
  static void check_loops(const Step& step, const Schedule::Part& part, std::size_t end) {
    const auto check_loop = [&](int loop) {
      require(loop < static_cast<int>(end), "a part that is not inside of a loop follows it");
    };
    for (const Place& place : part.places) {
      for (std::size_t l = end; l < step.loops.size(); ++l)
        require(ask_equal(place.strides[l], 0),
                "a place moves along a loop that its part is not inside of");
    }
    if (part.product) {
      for (const auto& extent : {part.product->rows, part.product->columns, part.product->depth})
        check_loop(extent.loop);
    } else if (!part.whole) {
      check_loop(part.rows.rows.loop);
      check_loop(part.rows.length.loop);
      for (const Schedule::Rows::Axis& axis : part.rows.axes) check_loop(axis.loop);
    }
    if (part.pieces == Schedule::Pieces::all) return;
    require(step.mask.has_value(), "pieces of no mask");
    check_loop(static_cast<int>(std::max(step.mask->query, step.mask->key)));
  }

  void check_product(const Step& step, const Schedule::Part& part) {
    const auto& [rows, columns, depth, adds] = *part.product;
    require(part.places.size() == 3, "three matrices");
    const auto check_matrix = [&](const Place& place, const Schedule::Extent& first,
                                  const Schedule::Extent& second) {
      require(place.dtype == DType::f32, "a matrix of another dtype");
      check_bounds(place, walks(step, place, {{first, place.row_step}, {second, place.step}}));
    };
    for (const Schedule::Extent& extent : {rows, columns, depth}) check_extent(step, extent);
    check_matrix(part.places[0], rows, depth);
    check_matrix(part.places[1], depth, columns);
    check_matrix(part.places[2], rows, columns);
    for (std::size_t p = 0; p < (adds ? 3u : 2u); ++p) check_read(part.places[p]);
    if (!is_private(part.places[2])) check_apart(step, part.places[2]);
    note_written(part.places[2]);
  }

  static void check_extent(const Step& step, const Schedule::Extent& extent) {
    require(extent.size >= 1 && extent.loop < static_cast<int>(step.loops.size()),
            "rows of no elements");
    if (extent.loop >= 0)
      require(ask_equal(extent.size % step.loops[static_cast<std::size_t>(extent.loop)].block, 0),
              "a block of another size");
  }

  void check_whole(const Step& step, const Schedule::Part& part) {
    const LoopNest& nest = *part.whole;
    require(part.places.size() == nest.inputs.size() + 1, "a place for each operand of the nest");
    require(part.loops.empty() || part.loops.size() == nest.axes.size(), "a loop for each axis");
    std::vector<Schedule::Extent> extents;
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
      extents.push_back({nest.axes[a].size, part.loops.empty() ? -1 : part.loops[a]});
    const bool is_empty = std::any_of(extents.begin(), extents.end(),
                                      [](const auto& extent) { return ask_equal(extent.size, 0); });
    for (const Schedule::Extent& extent : extents) {
      if (extent.loop >= 0) check_extent(step, extent);
    }
    for (std::size_t o = 0; o < part.places.size(); ++o) {
      const LoopNest::Operand& operand = nest.operand(o);
      require(operand.dtype == part.places[o].dtype, "a place of another dtype");
      if (operand.is_indirect() || is_empty) continue;
      std::vector<Dimension> dimensions;
      for (std::size_t a = 0; a < nest.axes.size(); ++a)
        dimensions.push_back({extents[a], operand.strides[a]});
      check_bounds(part.places[o], walks(step, part.places[o], dimensions));
    }
    for (std::size_t i = 0; i < nest.inputs.size(); ++i) check_read(part.places[i]);
    if (!is_private(part.places.back())) check_apart(step, part.places.back());
    note_written(part.places.back());
  }

  void check_rows(const Step& step, const Schedule::Part& part) {
    const Schedule::Rows& rows = part.rows;
    require(!rows.nests.empty(), "rows without nests");
    require(rows.in_strips || is_floating(rows.compute), "code computes in f32 or f64");
    for (const Schedule::Extent& extent : {rows.rows, rows.length}) check_extent(step, extent);
    for (const Schedule::Rows::Axis& axis : rows.axes)
      require(axis.loop < static_cast<int>(step.loops.size()), "no such loop");
    for (const Schedule::RowNest& nest : rows.nests) {
      const bool combines_row = nest.combine && nest.over == Schedule::Over::row,
                 combines_rows = nest.combine && !combines_row;
      require(nest.output < part.places.size(), "no such place");
      const Place& output = part.places[nest.output];
      require(!nest.is_scalar || !nest.combine, "a single value is not combined");
      require(!combines_rows || ask_equal(output.row_step, 0), "rows are combined into one row");
      require(nest.epilogue.steps.empty() || nest.combine, "an epilogue of what is not combined");
      for (std::size_t p : nest.inputs) {
        require(p < part.places.size(), "no such place");
        check_read(part.places[p]);
        check_bounds(part.places[p], walks(step, rows, part.places[p], nest.is_scalar));
      }
      for (const ScalarExpr* expr : {&nest.body, &nest.epilogue}) {
        for (const ScalarStep& s : expr->steps) {
          require(s.op != ScalarOp::input ||
                      static_cast<std::size_t>(s.which) <
                          std::max<std::size_t>(nest.inputs.size(), expr == &nest.epilogue),
                  "an expression of more inputs than there are");
          require(s.op != ScalarOp::index || static_cast<std::size_t>(s.which) < rows.axes.size(),
                  "the index of no axis");
        }
      }
      check_bounds(output, walks(step, rows, output, nest.is_scalar || combines_row));
      if (!is_private(output)) check_apart(step, output);
      note_written(output);
    }
  }

  /// A loop as an operand sees it.
  struct Walk {
    std::int64_t size, stride;
  };
  static std::vector<Walk> loops_of(const Step& step, const Place& place) {
    std::vector<Walk> walks;
    for (std::size_t l = 0; l < step.loops.size(); ++l)
      walks.push_back({step.loops[l].pieces(), place.strides[l]});
    return walks;
  }
  /// Points of a part along one of its own dimensions, which lie `step` apart.
  struct Dimension {
    Schedule::Extent extent;
    std::int64_t step;
  };
  /// The last piece of a loop may be shorter than the others: so where a dimension is the piece's
  /// points, the two are one walk over all points.
  static std::vector<Walk> walks(const Step& step, const Place& place,
                                 const std::vector<Dimension>& dimensions) {
    std::vector<Walk> walks = loops_of(step, place);
    for (const auto& [extent, point] : dimensions) {
      const auto l = static_cast<std::size_t>(extent.loop);
      if (extent.loop >= 0) {
        const std::int64_t all = extent.size / step.loops[l].block * step.loops[l].size;
        if (ask_equal(place.strides[l], point * extent.size))
          walks[l] = {all, point};
        else
          walks.push_back({std::min<std::int64_t>(extent.size, all), point});
      } else {
        walks.push_back({extent.size, point});
      }
    }
    return walks;
  }
  static std::vector<Walk> walks(const Step& step, const Schedule::Rows& rows, const Place& place,
                                 bool is_single) {
    std::vector<Dimension> dimensions{{rows.rows, place.row_step}};
    if (!is_single) dimensions.push_back({rows.length, place.step});
    return walks(step, place, dimensions);
  }

  void check_bounds(const Place& place, const std::vector<Walk>& walks) const {
    std::int64_t low = place.offset, high = place.offset;
    for (const Walk& walk : walks) (walk.stride < 0 ? low : high) += (walk.size - 1) * walk.stride;
    require(low >= 0, "an access before the beginning of a buffer");
    const auto b = static_cast<std::size_t>(place.buffer);
    if (b >= schedule_.buffers)
      require(high < schedule_.scratch_of(place).elements, "an access past the end of scratch");
    else if (b < elements_.size())
      require(high < elements_[b], "an access past the end of a buffer");
  }

  static void check_apart(const Step& step, const Place& place) {
    for (std::size_t l = 0; l < step.loops.size(); ++l)
      require(!ask_equal(place.strides[l], 0) || step.loops[l].is_serial ||
                  ask_equal(step.loops[l].pieces(), 1),
              "two units write the same element");
  }

  bool is_private(const Place& place) const {
    return schedule_.is_scratch(place) && schedule_.scratch_of(place).of_thread;
  }
  void check_read(const Place& place) const {
    if (schedule_.is_scratch(place))
      require(written_[static_cast<std::size_t>(place.buffer) - schedule_.buffers],
              "scratch is read before it is written");
  }
  void note_written(const Place& place) {
    if (schedule_.is_scratch(place))
      written_[static_cast<std::size_t>(place.buffer) - schedule_.buffers] = true;
  }

  const Schedule& schedule_;
  std::span<const Size> elements_;
  std::vector<bool> written_;  // of scratch, so far
};

}  // namespace

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (std::size_t s = 0; s < schedule.scratch.size(); ++s) {
    const Schedule::Scratch& scratch = schedule.scratch[s];
    text += "s" + std::to_string(s) + ": " + to_string(scratch.elements) + " " +
            std::string(name(scratch.dtype)) + (scratch.of_thread ? " of each thread\n" : "\n");
  }
  for (const Step& step : schedule.steps) text += show(schedule, step);
  return text;
}

bool operator==(const Place& a, const Place& b) { return equal_fields(a, b); }

void verify(const Schedule& schedule, std::span<const Size> elements) {
  const SizeScopePause pause;
  try {
    Verifier(schedule, elements).run();
  } catch (const std::logic_error& error) {
    throw std::logic_error(error.what() + ("\n" + to_string(schedule)));
  }
}

}  // namespace ein
