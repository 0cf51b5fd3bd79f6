// Gathers: rows of one input, each at the position that another input holds.
#include <algorithm>
#include <cstring>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "cpu/position.hpp"
#include "machine/parallel.hpp"
#include "size/ask.hpp"

namespace ein::host {
namespace {

/// What one call copies. Steps are in bytes, but for those of the positions.
struct Rows {
  std::int64_t count, length;  // rows, and elements of each
  std::int64_t position_step, from_step, to_step;
  std::int64_t from_element, to_element;  // steps inside a row
  std::int64_t position_bytes;            // from one position to the next
  std::int64_t size;                      // of the axis that positions are of
  bool picks_classes;                     // positions are targets of a loss
  const LoopNest::Indirection* axis;      // for errors
};

template <std::size_t bytes, class Position>
void gather_rows(const Rows& rows, const Position* positions, const std::byte* from,
                 std::byte* to) {
  const bool is_run = rows.from_element == bytes && rows.to_element == bytes;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t position = checked_gather(
        rows.picks_classes, positions[r * rows.position_step], rows.size, *rows.axis);
    const std::byte* source = from + r * rows.from_step + position * rows.position_bytes;
    std::byte* target = to + r * rows.to_step;
    if (rows.length == 1) {
      std::memcpy(target, source, bytes);
    } else if (is_run) {
      std::memcpy(target, source, static_cast<std::size_t>(rows.length) * bytes);
    } else {
      for (std::int64_t i = 0; i < rows.length; ++i) {
        std::memcpy(target + i * rows.to_element, source + i * rows.from_element, bytes);
      }
    }
  }
}

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(const LoopNest& nest) : nest_(nest) {
    const LoopNest::Operand& x = nest_.inputs[0];
    const LoopNest::Operand& positions = nest_.inputs[1];
    // In the order of the result; its innermost axis is a row if it shares a position.
    std::vector<std::size_t> axes = axes_where(nest_, [](std::size_t) { return true; });
    std::sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
      return nest_.output.strides[a] > nest_.output.strides[b];
    });
    std::size_t element_axis = no_axis, row_axis = no_axis;
    if (!axes.empty() && ask_equal(positions.strides[axes.back()], 0)) {
      element_axis = axes.back();
      axes.pop_back();
    }
    if (!axes.empty()) {
      row_axis = axes.back();
      axes.pop_back();
    }
    const auto stride = [](const LoopNest::Operand& operand, std::size_t axis) {
      return axis == no_axis ? Size(0) : operand.strides[axis];
    };
    const auto bytes = static_cast<std::int64_t>(size_of(x.dtype));
    rows_.length = element_axis == no_axis ? Size(1) : nest_.axes[element_axis].size;
    rows_.position_step = stride(positions, row_axis);
    rows_.from_step = stride(x, row_axis) * bytes;
    rows_.to_step = stride(nest_.output, row_axis) * bytes;
    rows_.from_element = stride(x, element_axis) * bytes;
    rows_.to_element = stride(nest_.output, element_axis) * bytes;
    rows_.position_bytes = x.indirection.stride * bytes;
    rows_.size = x.indirection.size;
    rows_.picks_classes = nest_.picks_classes;
    rows_.axis = &nest_.inputs[0].indirection;
    cut_ =
        cut(nest_, row_axis,
            std::max<std::int64_t>(1, elements_per_part / std::max<std::int64_t>(1, rows_.length)));
    outer_ = Loops(nest_, axes);
    visit_positions(positions.dtype, [&]<class Position>(std::type_identity<Position>) {
      switch (bytes) {
        case 1:
          copy_ = gather<1, Position>;
          break;
        case 2:
          copy_ = gather<2, Position>;
          break;
        case 4:
          copy_ = gather<4, Position>;
          break;
        default:
          copy_ = gather<8, Position>;
      }
    });
  }

  void run(const Run& run) const override {
    const std::int64_t units = rows_.length == 0 ? 0 : outer_.count() * cut_.pieces();
    const std::int64_t units_per_part = std::max<std::int64_t>(
        1, elements_per_part / std::max<std::int64_t>(1, cut_.step * rows_.length));
    parallel_for((units + units_per_part - 1) / units_per_part, [&](std::int64_t part) {
      Loops::Cursor cursor(outer_, nest_.axes.size());
      std::int64_t unit = part * units_per_part;
      const std::int64_t end = std::min(units, unit + units_per_part), pieces = cut_.pieces();
      cursor.seek(unit / pieces);
      for (; unit < end; ++unit) {
        Rows rows = rows_;
        rows.count = cut_.count(unit % pieces);
        const std::int64_t first = cut_.first(unit % pieces);
        const auto position_size = static_cast<std::int64_t>(size_of(nest_.inputs[1].dtype));
        copy_(rows,
              base(nest_.inputs[1], run.buffers) + cursor.offset(1) +
                  first * rows.position_step * position_size,
              base(nest_.inputs[0], run.buffers) + cursor.offset(0) + first * rows.from_step,
              base(nest_.output, run.buffers) + cursor.offset(2) + first * rows.to_step);
        if (unit % pieces == pieces - 1) cursor.next();
      }
    });
  }

 private:
  using Copy = void (*)(const Rows&, const std::byte* positions, const std::byte* from,
                        std::byte* to);
  template <std::size_t bytes, class Position>
  static void gather(const Rows& rows, const std::byte* positions, const std::byte* from,
                     std::byte* to) {
    gather_rows<bytes>(rows, reinterpret_cast<const Position*>(positions), from, to);
  }

  LoopNest nest_;
  Rows rows_{};
  Cut cut_;
  Loops outer_;
  Copy copy_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_gather_kernel(const LoopNest& nest) {
  return std::make_unique<GatherKernel>(nest);
}

}  // namespace ein::host
