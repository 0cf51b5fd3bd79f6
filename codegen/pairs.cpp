// Reductions of pairs that are no sums of products: f of all rows and columns at each depth, such
// as distances. Where results are many and each value serves several, they are computed in tiles.
#include <algorithm>
#include <optional>

#include "codegen/contract.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

/// Axes of the result along which the same inputs move, of those that move along the depth.
struct Kept {
  std::vector<std::size_t> moved;
  AxisList axes;
  Size points = 1;

  bool shares_input(const Kept& other) const {
    return std::any_of(moved.begin(), moved.end(), [&](std::size_t i) {
      return std::find(other.moved.begin(), other.moved.end(), i) != other.moved.end();
    });
  }
};

/// None where no rows and columns are such that each input of them serves several of the others.
std::optional<PairRoles> roles_of(const LoopNest& nest) {
  const auto is_indirect = [](const LoopNest::Operand& input) { return input.is_indirect(); };
  if (std::any_of(nest.inputs.begin(), nest.inputs.end(), is_indirect) || draws(nest.body))
    return std::nullopt;
  PairRoles roles;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (nest.axes[a].reduced) roles.depth.push_back(a);
  }
  std::vector<std::size_t> deep;
  for (const std::size_t i : inputs_of(nest.body))
    (moves_along(nest.inputs[i], roles.depth) ? deep : roles.still).push_back(i);

  std::vector<Kept> all;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (nest.axes[a].reduced) continue;
    Kept kept{{}, {a}, nest.axes[a].size};
    for (const std::size_t i : deep) {
      if (moves_along(nest.inputs[i], {a})) kept.moved.push_back(i);
    }
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const Kept& other) { return other.moved == kept.moved; });
    if (same == all.end()) {
      all.push_back(std::move(kept));
    } else {
      same->axes.push_back(a);
      same->points *= kept.points;
    }
  }
  // The two of which the shorter is longest.
  const Kept *rows = nullptr, *columns = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (all[i].shares_input(all[j])) continue;
      if (rows && std::min(all[i].points, all[j].points) <= std::min(rows->points, columns->points))
        continue;
      rows = &all[j];
      columns = &all[i];
    }
  }
  if (!rows) return std::nullopt;
  for (const Kept& kept : all) {
    AxisList& axes = &kept == rows ? roles.rows : &kept == columns ? roles.columns : roles.batch;
    axes.insert(axes.end(), kept.axes.begin(), kept.axes.end());
  }
  settle(roles, nest);
  for (const std::size_t i : deep) {
    (moves_along(nest.inputs[i], roles.rows)      ? roles.left
     : moves_along(nest.inputs[i], roles.columns) ? roles.right
                                                  : roles.of_depth)
        .push_back(i);
  }
  const std::vector<std::size_t>& guides = roles.right.empty() ? roles.left : roles.right;
  roles.depth = by_stride(std::move(roles.depth), nest.inputs[guides.front()]);
  return roles;
}

}  // namespace

std::optional<Kernels> emit_pairs(const LoopNest& nest, const Context& context) {
  const GpuTarget& target = context.target;
  std::optional<PairRoles> roles = roles_of(nest);
  if (!roles || roles->m < target.least_tile_side || roles->n < target.least_tile_side ||
      roles->k < target.least_tile_depth)
    return std::nullopt;
  const std::optional<Tile> tile = tile_for(nest, *roles, target);
  if (!tile) return std::nullopt;
  const std::int64_t pieces = pieces_of(nest, *roles, *tile, target);
  constexpr Tile smallest{.m = 16, .n = 16};
  if (smallest.count(*roles) * pieces < target.least_tiles) return std::nullopt;
  const std::string kind = "pairs_" + std::string(name(nest.output.dtype));
  if (pieces == 1) return Kernels{emit_pairs_by_threads(nest, *roles, *tile, kind, context)};
  const Pieces cut = cut_depth(nest, *roles, pieces);
  return emit_pieces(emit_pairs_by_threads(cut.parts, *roles, *tile, kind, context), cut, context);
}

}  // namespace ein::codegen
