#include "cost/traffic.hpp"

#include <algorithm>

#include "size/ask.hpp"

namespace ein {
namespace {

/// The part of a buffer that a nest of a group uses while it computes one block or row.
struct Piece {
  int buffer;
  Size offset;
  Strides steps;                 // from one block, or row, to the next
  Size elements = 1, reach = 0;  // of each: how many, and how far the last is from the first
  bool moves() const {
    return std::any_of(steps.begin(), steps.end(), [](Size step) { return !ask_equal(step, 0); });
  }
  friend bool operator==(const Piece& a, const Piece& b) {
    return a.buffer == b.buffer && always_equal(a.offset, b.offset) &&
           always_equal(a.steps, b.steps) && always_equal(a.elements, b.elements) &&
           always_equal(a.reach, b.reach);
  }
};

class GroupTraffic {
 public:
  GroupTraffic(const Program& program, const Program::Group& group)
      : program_(program), group_(group) {}

  Traffic of(std::size_t i) {
    const LoopNest& nest = program_.nests[group_.first + i];
    Traffic traffic = traffic_of(nest);
    for (std::size_t k = 0; k < nest.inputs.size(); ++k)
      traffic.reads[k] &= !is_local(nest.inputs[k]) && !is_at_hand(i, nest.inputs[k]);
    traffic.writes = !is_local(nest.output);
    for (const LoopNest::Operand& input : nest.inputs) remember(i, input);
    written_.push_back(nest.output.buffer);
    return traffic;
  }

 private:
  bool is_local(const LoopNest::Operand& operand) const {
    return program_.buffers[static_cast<std::size_t>(operand.buffer)].is_local;
  }
  /// Attention reads by tiles, each nest its own.
  bool shares_blocks() const { return group_.count > 1 && !group_.attention(); }

  Piece piece(std::size_t i, const LoopNest::Operand& operand) const {
    const LoopNest& nest = program_.nests[group_.first + i];
    const Program::Group::Blocks* blocks = group_.blocks();
    const bool has_blocks = blocks && !blocks->axes.empty();
    const std::size_t rows = has_blocks      ? 0
                             : group_.rows() ? group_.rows()->axes
                                             : nest.axes.size();
    Piece piece{operand.buffer, operand.offset, {}};
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      const Size stride = operand.strides[a];
      const bool is_cut = has_blocks && a == blocks->axes[i];
      const Size within = is_cut     ? nest.axes[a].size / blocks->count
                          : a < rows ? Size(1)
                                     : nest.axes[a].size;
      if (is_cut || a < rows) piece.steps.push_back(stride * within);
      if (always_equal(stride, 0)) continue;
      piece.elements *= within;
      piece.reach += stride * (within - 1);
    }
    return piece;
  }

  bool is_at_hand(std::size_t i, const LoopNest::Operand& operand) const {
    if (!shares_blocks() || operand.is_indirect()) return false;
    const auto has = [](const auto& all, const auto& one) {
      return std::find(all.begin(), all.end(), one) != all.end();
    };
    return has(written_, operand.buffer) || has(read_, piece(i, operand));
  }

  void remember(std::size_t i, const LoopNest::Operand& operand) {
    if (!shares_blocks() || operand.is_indirect()) return;
    if (Piece used = piece(i, operand); used.moves()) read_.push_back(std::move(used));
  }

  const Program& program_;
  const Program::Group& group_;
  std::vector<Piece> read_;
  std::vector<int> written_;
};

}  // namespace

Traffic traffic_of(const LoopNest& nest) {
  Traffic traffic;
  for (auto input = nest.inputs.begin(); input != nest.inputs.end(); ++input)
    traffic.reads.push_back(std::find(nest.inputs.begin(), input, *input) == input);
  return traffic;
}

std::vector<Traffic> traffic_of(const Program& program) {
  std::vector<Traffic> all;
  for (const Program::Group& group : program.groups) {
    GroupTraffic traffic(program, group);
    for (std::size_t i = 0; i < group.count; ++i) all.push_back(traffic.of(i));
  }
  for (std::size_t n = all.size(); n < program.nests.size(); ++n)
    all.push_back(traffic_of(program.nests[n]));
  return all;
}

}  // namespace ein
