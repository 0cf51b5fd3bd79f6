// What is asked of an operation's kind, a row each: passes that treat several kinds alike ask the
// row, not the kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

#include <ein/graph.hpp>

namespace ein {

struct OpKindInfo {
  /// The access that positions, the last input, move along dimension `dim`: the first read or the
  /// write.
  enum Positions : std::uint8_t { no_positions, of_read, of_write };
  static constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

  OpKind kind;
  std::string_view name;
  std::size_t least_inputs = 1, most_inputs = 1;
  /// Whether it has axes, reads and a write. Others take their inputs whole.
  bool has_accesses = true;
  /// Whether elements of its inputs, but for positions, become those of the result as they are, or
  /// are combined there.
  bool moves = false;
  /// Whether what the result lacks of its axes is reduced.
  bool reduces = false;
  /// Whether `combine` says how.
  bool combines = false;
  /// Whether it goes along `axis` in order.
  bool is_ordered = false;
  Positions positions = no_positions;
  /// Why the axis or dimension that it goes along is in one piece on each process of a mesh.
  std::string_view why_whole = {};
};

inline constexpr OpKindInfo op_kinds[] = {
    {.kind = OpKind::input,
     .name = "input",
     .least_inputs = 0,
     .most_inputs = 0,
     .has_accesses = false},
    {.kind = OpKind::map, .name = "map", .least_inputs = 0, .most_inputs = OpKindInfo::any_number},
    {.kind = OpKind::contract,
     .name = "contract",
     .most_inputs = OpKindInfo::any_number,
     .reduces = true},
    {.kind = OpKind::reduce, .name = "reduce", .reduces = true, .combines = true},
    {.kind = OpKind::reindex, .name = "reindex", .moves = true},
    {.kind = OpKind::concat,
     .name = "concat",
     .most_inputs = OpKindInfo::any_number,
     .has_accesses = false,
     .moves = true,
     .why_whole = "values are joined along it"},
    {.kind = OpKind::place,
     .name = "place",
     .most_inputs = 3,
     .moves = true,
     .positions = OpKindInfo::of_write},
    {.kind = OpKind::gather,
     .name = "gather",
     .least_inputs = 2,
     .most_inputs = 2,
     .moves = true,
     .positions = OpKindInfo::of_read},
    {.kind = OpKind::scatter,
     .name = "scatter",
     .least_inputs = 2,
     .most_inputs = 2,
     .moves = true,
     .combines = true,
     .positions = OpKindInfo::of_write},
    {.kind = OpKind::scan,
     .name = "scan",
     .most_inputs = 2,
     .combines = true,
     .is_ordered = true,
     .why_whole = "it is scanned along"},
    {.kind = OpKind::argsort,
     .name = "argsort",
     .is_ordered = true,
     .why_whole = "values are put in order along it"},
    {.kind = OpKind::matrix,
     .name = "matrix",
     .most_inputs = 2,
     .why_whole = "it is of the rows or columns of matrices"},
    {.kind = OpKind::reshard, .name = "reshard", .moves = true},
    {.kind = OpKind::collective, .name = "collective", .moves = true},
};

constexpr const OpKindInfo& info(OpKind kind) { return op_kinds[static_cast<std::size_t>(kind)]; }

static_assert([] {
  for (std::size_t k = 0; k < std::size(op_kinds); ++k) {
    if (op_kinds[k].kind != static_cast<OpKind>(k)) return false;
  }
  return std::size(op_kinds) == static_cast<std::size_t>(OpKind::collective) + 1;
}());

/// How what meets in one element of the result is combined: products of a contraction are summed.
inline Combine combination_of(const Op& op) {
  return op.kind == OpKind::contract ? Combine::sum : op.combine;
}

/// Whether positions decide where it reads its first input.
inline bool reads_at_positions(const Op& op) {
  return info(op.kind).positions == OpKindInfo::of_read;
}
/// Whether positions decide where it writes; a place may have none.
inline bool writes_at_positions(const Op& op) {
  const OpKindInfo& kind = info(op.kind);
  return kind.positions == OpKindInfo::of_write && op.inputs.size() == kind.most_inputs;
}

}  // namespace ein
