// Which tiles a contraction is cut into.
#include <algorithm>
#include <bit>

#include "codegen/contract.hpp"

namespace ein::codegen {
namespace {

/// Whether a block may have more than 99 KiB of shared memory ("CUDA C++ Programming Guide",
/// technical specifications per compute capability).
bool has_much_shared_memory(int sm) { return sm == 80 || sm == 87 || (sm >= 90 && sm < 120); }

/// Elements to a thread along one side.
std::int64_t per_thread(Size count) {
  return count > 512 ? 8 : count > 32 ? 4 : count > 16 ? 2 : 1;
}

std::vector<Tile> thread_tiles(const LoopNest& nest, const ContractRoles& roles,
                               const GpuTarget& target) {
  const auto tile = [&](std::int64_t most) {
    return Tile{.m = 16 * std::min(per_thread(roles.m), most),
                .n = 16 * std::min(per_thread(roles.n), most)};
  };
  const Tile large = tile(8), small = tile(4);
  // Eight times eight long numbers are more than a thread's registers hold.
  if (size_of(nest.compute) == 8 || (large.m == small.m && large.n == small.n)) return {small};
  // Small results are cut finer, for the sake of more blocks.
  if (large.count(roles) < target.sms) return {small, large};
  return {large, small};
}

bool has_mma(const LoopNest& nest, const ContractRoles& roles, const GpuTarget& target) {
  const DType dtype = nest.inputs[roles.a].dtype;
  constexpr std::int64_t least = 16;
  if (target.sm < 80 || nest.compute != DType::f32 || nest.inputs[roles.b].dtype != dtype ||
      roles.m < least || roles.n < least || roles.k < least)
    return false;
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return true;
    case DType::f8e4m3:
    case DType::f8e5m2:
      return target.sm >= 89;
    case DType::f32:
      return target.tf32;
    default:
      return false;
  }
}

}  // namespace

std::string to_string(const Tile& tile) {
  const char* const by = tile.by == Tile::By::wgmma ? "wgmma "
                         : tile.by == Tile::By::mma ? "mma "
                                                    : "threads ";
  return by + std::to_string(tile.m) + "x" + std::to_string(tile.n) + "x" + std::to_string(tile.k) +
         ", " + std::to_string(tile.stages) + " stages" + (tile.in_turns ? ", in turns" : "");
}

std::int64_t pieces_of(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                       const GpuTarget& target) {
  constexpr std::int64_t least_depth = 256;
  // A block by wgmma has a multiprocessor to itself.
  const std::int64_t busy_blocks = target.sms * (tile.by == Tile::By::wgmma ? 1 : 2);
  // The second kernel has no second operand.
  const std::vector<std::size_t> read = epilogue_inputs(nest);
  if (roles.depth.empty() || std::count(read.begin(), read.end(), std::size_t{1}) > 0) return 1;
  const Size tiles = tile.count(roles), axis_size = nest.axes[roles.depth.front()].size;
  if (tiles > busy_blocks / 2 || roles.k < 2 * least_depth) return 1;
  std::int64_t pieces = std::min(busy_blocks / at_most(tiles), at_least(roles.k) / least_depth);
  if (pieces > axis_size) pieces = at_least(axis_size);
  // Of an open axis by powers of 2 alone, which few lengths tell apart.
  if (!axis_size.is_number())
    pieces = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(pieces)));
  while (pieces > 1 && axis_size % pieces != 0)
    pieces = axis_size.is_number() ? pieces - 1 : pieces / 2;
  return pieces;
}

std::vector<Tile> tiles_for(const LoopNest& nest, const ContractRoles& roles,
                            const GpuTarget& target) {
  if (!has_mma(nest, roles, target)) return thread_tiles(nest, roles, target);
  const std::int64_t row = 64 / static_cast<std::int64_t>(size_of(nest.inputs[roles.a].dtype));
  // From large to small: what a tile's blocks must be at least, in multiprocessors, to be chosen.
  struct Candidate {
    Tile tile;
    std::int64_t busy;
  };
  std::vector<Candidate> candidates;
  const bool has_wgmma = target.sm == 90 && target.accelerated &&
                         nest.inputs[roles.a].dtype != DType::f32 && roles.k >= 2 * row;
  constexpr std::int64_t never = INT64_MAX;
  // Of little depth, storing takes a large part of the time, which goes by while others multiply.
  constexpr std::int64_t little_depth = 1024;
  const Tile by_wgmma[] = {{Tile::By::wgmma, 128, 128, 2 * row, 6, 2, 1, true},
                           {Tile::By::wgmma, 128, 256, 2 * row, 4, 2, 1},
                           {Tile::By::wgmma, 128, 128, 2 * row, 4, 2, 1}};
  for (const Tile& tile : by_wgmma) {
    if (!has_wgmma || !has_tensor_maps(nest, roles, tile)) continue;
    const std::int64_t busy = tile.in_turns   ? (roles.k <= little_depth ? 2 * target.sms : never)
                              : tile.n == 256 ? target.sms
                                              : (target.sms + 1) / 2;
    candidates.push_back({tile, busy});
  }
  using enum Tile::By;
  // 8-bit floats that are multiplied as 16-bit floats take too many registers for the largest.
  const bool is_tiny = row == 64;
  if (!is_tiny) candidates.push_back({{mma, 128, 256, row, 3, 2, 4}, never});
  if (!is_tiny && has_much_shared_memory(target.sm))
    candidates.push_back({{mma, 128, 128, 2 * row, 3, 2, 4}, never});
  candidates.push_back({{mma, 128, 128, row, 4, 2, 4}, target.sms});
  candidates.push_back({{mma, 128, 64, row, 4, 4, 2}, never});
  candidates.push_back({{mma, 64, 128, row, 4, 2, 4}, never});
  candidates.push_back({{mma, 64, 64, row, 4, 2, 4}, 0});

  const auto chosen =
      std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
        const Size blocks =
            candidate.tile.count(roles) * pieces_of(nest, roles, candidate.tile, target);
        return blocks >= candidate.busy;
      });
  std::vector<Tile> tiles{chosen->tile};
  for (const Candidate& candidate : candidates) {
    const Tile& tile = candidate.tile;
    // More than half of a tile ought to be of use.
    const bool fits = tile.m < 2 * roles.m && tile.n < 2 * roles.n;
    if (&candidate != &*chosen && fits) tiles.push_back(tile);
  }
  return tiles;
}

}  // namespace ein::codegen
