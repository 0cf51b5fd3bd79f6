#include "passes/pad_rows.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "nest/attention.hpp"
#include "size/ask.hpp"
#include "size/size_arithmetic.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;

constexpr std::int64_t alignment = 16;     // bytes
constexpr std::int64_t least_bytes = 128;  // of a row: of shorter ones padding is a large part
constexpr std::int64_t line = 128;         // of the cache, to which long rows are padded
constexpr std::int64_t long_bytes = 32 * line;

bool is_contraction(const LoopNest& nest) {
  return nest.sums_products() && nest.along == LoopNest::Along::nothing && !nest.is_scatter();
}

/// Whether an operand's places may change.
bool goes_by_strides(const LoopNest& nest) {
  return nest.along == LoopNest::Along::nothing && !nest.is_scatter();
}

/// The elements of a row that would begin anywhere; 0 if there are none.
std::int64_t unaligned_row(const Operand& operand) {
  const auto size = static_cast<std::int64_t>(size_of(operand.dtype));
  std::int64_t row = 0;
  bool is_contiguous = false;
  for (const Size stride : operand.strides) {
    is_contiguous |= is_one(stride);
    if (stride.is_number() && stride > 1 && (row == 0 || stride < row)) row = stride;
  }
  const bool is_aligned = row * size % alignment == 0;
  return size > 4 || !is_contiguous || is_aligned || row * size < least_bytes ? 0 : row;
}

/// Moves rows of `from` elements apart, to `to`.
class Rows {
 public:
  Rows(std::int64_t from, std::int64_t to) : from_(from), to_(to) {}

  /// Whether the operand stays within a row along all axes that do not go from row to row.
  bool move(Operand& operand, const std::vector<LoopNest::NestAxis>& axes) const {
    std::int64_t low = 0, high = 0;
    const auto move_by = [&](Size& stride, Size count) {
      const std::optional<std::int64_t> rest = rest_of(stride);
      if (!rest || (*rest != 0 && !count.is_number())) return false;
      if (*rest != 0) (*rest < 0 ? low : high) += (count - 1) * *rest;
      stride = (stride - *rest) / from_ * to_ + *rest;
      return true;
    };
    bool fits = move_by(operand.offset, 2);
    for (std::size_t a = 0; a < axes.size(); ++a)
      fits = fits && move_by(operand.strides[a], axes[a].size);
    if (operand.is_indirect())
      fits = fits && move_by(operand.indirection.stride, operand.indirection.count());
    return fits && low >= 0 && high < from_;
  }

  /// An axis that goes on from the end of a row to the next, and how much of it is a row.
  std::optional<std::pair<std::size_t, std::int64_t>> over_ends(
      const Operand& operand, const std::vector<LoopNest::NestAxis>& axes) const {
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const Size stride = operand.strides[a];
      if (!stride.is_number() || stride <= 0 || stride >= from_ || !ask_equal(from_ % stride, 0))
        continue;
      const std::int64_t inner = from_ / stride;
      if (!always_equal(axes[a].size, inner) && always_equal(axes[a].size % inner, 0))
        return std::pair(a, inner);
    }
    return std::nullopt;
  }

 private:
  /// What a stride or an offset moves within a row.
  std::optional<std::int64_t> rest_of(Size stride) const {
    const Size rest = stride % from_;
    return rest.is_number() ? std::optional(std::int64_t{rest}) : std::nullopt;
  }

  std::int64_t from_, to_;
};

class Padding {
 public:
  Padding(Program& program, std::span<const int> kept)
      : program_(program), is_fixed_(program.buffers.size(), false), users_(is_fixed_.size()) {
    std::fill_n(is_fixed_.begin(), program.input_count, true);
    for (const int buffer : kept) is_fixed_[index(buffer)] = true;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      if (program.buffers[b].is_local || program.buffers[b].memory >= 0) is_fixed_[b] = true;
    }
    is_alone_.assign(program.nests.size(), false);
    for (const Program::Group& group : program.groups) {
      is_alone_[group.first] =
          group.count == 1 && (!group.blocks() || group.blocks()->axes.empty()) && !group.rows();
      const Attention* attention = group.attention();
      if (!attention) continue;
      for (const Operand* operand : read_by(*attention)) fix(*operand);
      fix(attention->out);
      for (std::size_t n = group.first; n < group.first + group.count; ++n) fix_all(n);
    }
    for (std::size_t n = 0; n < program.nests.size(); ++n) {
      const LoopNest& nest = program.nests[n];
      if (!goes_by_strides(nest)) fix_all(n);
      for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
        std::vector<std::size_t>& users = users_[index(nest.operand(o).buffer)];
        if (users.empty() || users.back() != n) users.push_back(n);
      }
    }
  }

  void run() {
    for (std::size_t n = 0; n < program_.nests.size(); ++n) {
      if (!is_contraction(program_.nests[n])) continue;
      for (const std::size_t o : {std::size_t{0}, std::size_t{1}, program_.nests[n].inputs.size()})
        pad(program_.nests[n].operand(o));
    }
  }

 private:
  static std::size_t index(int buffer) { return static_cast<std::size_t>(buffer); }
  void fix(const Operand& operand) { is_fixed_[index(operand.buffer)] = true; }
  void fix_all(std::size_t n) {
    const LoopNest& nest = program_.nests[n];
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) fix(nest.operand(o));
  }

  /// Pads the rows of the operand's buffer, if all nests allow that.
  void pad(const Operand& operand) {
    const int buffer = operand.buffer;
    const std::int64_t row = unaligned_row(operand);
    Size& elements = program_.buffers[index(buffer)].elements;
    if (row == 0 || is_fixed_[index(buffer)] || !always_equal(elements % row, 0)) return;
    is_fixed_[index(buffer)] = true;
    const auto size = static_cast<std::int64_t>(size_of(operand.dtype));
    const std::int64_t step = (row * size < long_bytes ? alignment : line) / size;
    const std::int64_t padded = round_up(row, step);
    const Rows rows(row, padded);
    std::vector<LoopNest> moved;
    for (const std::size_t n : users_[index(buffer)]) {
      std::optional<LoopNest> nest = moved_nest(n, buffer, rows);
      if (!nest) return;
      moved.push_back(std::move(*nest));
    }
    for (std::size_t i = 0; i < moved.size(); ++i)
      program_.nests[users_[index(buffer)][i]] = std::move(moved[i]);
    elements = elements / row * padded;
  }

  std::optional<LoopNest> moved_nest(std::size_t n, int buffer, const Rows& rows) const {
    LoopNest nest = program_.nests[n];
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
      if (nest.operand(o).buffer != buffer) continue;
      const auto end = rows.over_ends(nest.operand(o), nest.axes);
      if (end && is_alone_[n] && !asks_index(nest, end->first))
        split(nest, end->first, end->second);
      if (!rows.move(nest.operand(o), nest.axes)) return std::nullopt;
    }
    return nest;
  }

  Program& program_;
  std::vector<bool> is_fixed_;                   // buffers
  std::vector<std::vector<std::size_t>> users_;  // nests of each buffer
  std::vector<bool> is_alone_;                   // nests whose axes are nobody else's
};

}  // namespace

void pad_rows(Program& program, std::span<const int> kept) { Padding(program, kept).run(); }

}  // namespace ein
