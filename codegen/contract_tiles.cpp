// Which tiles a contraction, or another reduction of pairs, is cut into.
#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/contract.hpp"
#include "size/ask.hpp"

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

/// About the instructions of a body at a point, and of its combination.
std::int64_t weight_of(const LoopNest& nest) {
  const std::int64_t of_function = size_of(nest.compute) == 8 ? 64 : 16;
  std::int64_t weight = 1;
  for (const ScalarStep& step : nest.body.steps) {
    const CostClass cost = info(step.op).cost;
    if (cost == CostClass::none) continue;
    weight += cost == CostClass::transcendental || cost == CostClass::division ? of_function : 1;
  }
  return weight;
}
/// Of all results of a thread.
std::int64_t weight_of(const LoopNest& nest, const Tile& tile) {
  return weight_of(nest) * (tile.m / 16) * (tile.n / 16);
}

bool are_numbers(const TileRoles& roles) {
  return roles.m.is_number() && roles.n.is_number() && roles.k.is_number() &&
         roles.batches.is_number();
}

/// About the cycles of a contraction by wgmma whose depth is cut into `pieces`: multiprocessors go
/// from tile to tile together, and a second kernel adds up what the pieces wrote.
double cycles(const TileRoles& roles, const Tile& tile, std::int64_t pieces, int sms) {
  // Products of a multiprocessor in a cycle, and bytes of all of them, as measured on an H200.
  const double products = tile.n == 256 ? 1470 : 1340, bytes = 2000, launch = 5000;
  const double rounds = static_cast<double>(ceil_div(tile.count(roles) * pieces, sms)),
               depth = static_cast<double>(std::int64_t{roles.k}) / static_cast<double>(pieces);
  const double multiplying = rounds * depth * static_cast<double>(tile.m * tile.n) / products;
  if (pieces == 1) return multiplying;
  const double sums = static_cast<double>(std::int64_t{roles.batches * roles.m * roles.n * pieces});
  return multiplying + sums * 8 / bytes + launch;
}

}  // namespace

std::string to_string(const Tile& tile) {
  const char* const by = tile.by == Tile::By::wgmma ? "wgmma "
                         : tile.by == Tile::By::mma ? "mma "
                                                    : "threads ";
  return by + std::to_string(tile.m) + "x" + std::to_string(tile.n) + "x" + std::to_string(tile.k) +
         ", " + std::to_string(tile.stages) + " stages" + (tile.in_turns ? ", in turns" : "");
}

std::int64_t pieces_of(const LoopNest& nest, const TileRoles& roles, const Tile& tile,
                       const GpuTarget& target) {
  constexpr std::int64_t least_depth = 256;
  // A block by wgmma has a multiprocessor to itself.
  const std::int64_t busy_blocks = target.sms * (tile.by == Tile::By::wgmma ? 1 : 2);
  // A piece does not know how far along the axis it begins.
  if (roles.depth.empty() || asks_index(nest, roles.depth.front())) return 1;
  const Size tiles = tile.count(roles), axis_size = nest.axes[roles.depth.front()].size;
  if (tile.by == Tile::By::wgmma && are_numbers(roles)) {
    std::int64_t best = 1;
    const std::int64_t most = std::min<std::int64_t>(roles.k / least_depth, axis_size);
    for (std::int64_t pieces = 2; pieces <= most && tiles * pieces <= 16 * target.sms; ++pieces) {
      if (ask_equal(axis_size % pieces, 0) &&
          cycles(roles, tile, pieces, target.sms) < cycles(roles, tile, best, target.sms))
        best = pieces;
    }
    return best;
  }
  if (tiles > busy_blocks / 2 || roles.k < 2 * least_depth) return 1;
  std::int64_t pieces = std::min(busy_blocks / at_most(tiles), at_least(roles.k) / least_depth);
  if (pieces > axis_size) pieces = at_least(axis_size);
  // Of an open axis by powers of 2 alone, which few lengths tell apart.
  if (!axis_size.is_number())
    pieces = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(pieces)));
  while (pieces > 1 && !ask_equal(axis_size % pieces, 0))
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
  constexpr std::int64_t little_depth = 2048;
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
  // Of those by wgmma together, the one whose tiles leave fewer multiprocessors without work.
  const auto best = [&] {
    if (chosen->tile.by != Tile::By::wgmma || chosen->tile.in_turns || !are_numbers(roles))
      return chosen;
    const auto cycles_of = [&](const Candidate& candidate) {
      const Tile& tile = candidate.tile;
      if (tile.by != Tile::By::wgmma || tile.in_turns) return HUGE_VAL;
      return cycles(roles, tile, pieces_of(nest, roles, tile, target), target.sms);
    };
    return std::min_element(
        candidates.begin(), candidates.end(),
        [&](const Candidate& a, const Candidate& b) { return cycles_of(a) < cycles_of(b); });
  }();
  std::vector<Tile> tiles{best->tile};
  for (const Candidate& candidate : candidates) {
    const Tile& tile = candidate.tile;
    // More than half of a tile ought to be of use.
    const bool fits = tile.m < 2 * roles.m && tile.n < 2 * roles.n;
    if (&candidate != &*best && fits) tiles.push_back(tile);
  }
  return tiles;
}

/// Instructions at all depths that a loop unrolls, for the sake of the instructions' cache.
constexpr std::int64_t most_weight = 1024;

std::optional<Tile> tile_for(const LoopNest& nest, const PairRoles& roles,
                             const GpuTarget& target) {
  // What a thread's numbers may take of the registers of two blocks, and a block of shared memory.
  constexpr std::int64_t most_registers = 80, most_bytes = 48 << 10, most_results = 32;
  Tile tile{.m = 16 * per_thread(roles.m), .n = 16 * per_thread(roles.n)};
  const auto halve = [&] { (tile.m < tile.n ? tile.n : tile.m) /= 2; };
  const auto fits = [&] {
    return tile.m * tile.n <= 256 * most_results && weight_of(nest, tile) <= most_weight &&
           registers_of(nest, roles, tile) <= most_registers &&
           shared_bytes_of(nest, roles, tile) <= most_bytes;
  };
  const auto is_smallest = [&] { return tile.m == 16 && tile.n == 16; };
  while (!is_smallest() && !fits()) halve();
  if (registers_of(nest, roles, tile) > most_registers ||
      shared_bytes_of(nest, roles, tile) > most_bytes)
    return std::nullopt;
  // Small results are cut finer, for the sake of more blocks.
  while (!is_smallest() && tile.count(roles) * pieces_of(nest, roles, tile, target) < target.sms)
    halve();
  return tile;
}

std::int64_t unrolled_depths(const LoopNest& nest, const Tile& tile) {
  constexpr std::int64_t most_depths = 16;
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(most_weight / weight_of(nest, tile), 1, most_depths))));
}

}  // namespace ein::codegen
