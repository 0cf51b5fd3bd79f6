// What the kernels of contractions, and of other reductions of pairs, have in common.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/elements.hpp"
#include "codegen/forms.hpp"

namespace ein::codegen {

/// Each axis has a role: row or column of the result, depth, which is combined, or batch.
struct TileRoles {
  AxisList batch, rows, columns, depth;
  Size m = 1, n = 1, k = 1, batches = 1;  // points of rows, columns, depth and batch
};

/// Of a contraction. Batch axes are in both operands and the result, or in neither operand; rows in
/// a and the result; columns in b and the result; the depth is summed. Of the two operands, b is
/// the one whose axes lie closer together in the result.
struct ContractRoles : TileRoles {
  std::size_t a = 0, b = 1;  // inputs
};

/// Of a reduction of pairs, where no input that moves along the depth moves along both rows and
/// columns: of each input that the body reads, how it moves.
struct PairRoles : TileRoles {
  std::vector<std::size_t> left, right;  // along depth and rows, or depth and columns
  std::vector<std::size_t> of_depth;     // along depth alone
  std::vector<std::size_t> still;        // not along depth
};

/// How a block works on its part of the result.
struct Tile {
  enum class By { threads, mma, wgmma };
  By by = By::threads;
  std::int64_t m = 64, n = 64, k = 16;    // rows, columns and depths at a time
  std::int64_t stages = 1;                // how many of those are in shared memory
  std::int64_t warps_m = 1, warps_n = 1;  // by mma: what the warps have of it
  bool in_turns = false;  // by wgmma: each warpgroup has a tile of its own, and stores its sums
                          // while the other multiplies; otherwise they share one

  Size count(const TileRoles& roles) const {
    return roles.batches * ceil_div(roles.m, m) * ceil_div(roles.n, n);
  }
};
std::string to_string(const Tile& tile);

/// The tiles worth a try, the first of which is taken when nothing was measured.
std::vector<Tile> tiles_for(const LoopNest& nest, const ContractRoles& roles,
                            const GpuTarget& target);
/// How many pieces the depth is cut into, equal ones, where the result has too few tiles to keep a
/// device busy.
std::int64_t pieces_of(const LoopNest& nest, const TileRoles& roles, const Tile& tile,
                       const GpuTarget& target);
/// The tile of a reduction of pairs by threads; none if there are too many operands for any.
std::optional<Tile> tile_for(const LoopNest& nest, const PairRoles& roles, const GpuTarget& target);
/// Registers of a thread, about, that hold numbers in a reduction of pairs by threads, and its
/// shared memory.
std::int64_t registers_of(const LoopNest& nest, const PairRoles& roles, const Tile& tile);
std::int64_t shared_bytes_of(const LoopNest& nest, const PairRoles& roles, const Tile& tile);
/// How many depths of a tile such a kernel has one after the other in its text: fewer of long
/// expressions.
std::int64_t unrolled_depths(const LoopNest& nest, const Tile& tile);
/// Whether the operands lie so that a tensor map describes them (see emit_contract_wgmma).
bool has_tensor_maps(const LoopNest& nest, const ContractRoles& roles, const Tile& tile);

/// Whether indices of rows, columns, depths and tiles, and places in operands, fit into 32 bits.
bool has_narrow_indices(const LoopNest& nest, const TileRoles& roles);

/// Orders the axes of each role as they lie in the result, and counts their points. Neighbouring
/// threads store neighbouring columns: where rows lie closer together, the two change places, and
/// the result is true.
bool settle(TileRoles& roles, const LoopNest& nest);

/// A large reduction in pieces, each of which makes a result of its own, in the workspace, and the
/// combination of those.
struct Pieces {
  LoopNest parts, whole;
  Size bytes = 0;  // of workspace
};
/// `roles` become those of the parts.
Pieces cut_depth(const LoopNest& nest, TileRoles& roles, std::int64_t pieces);
/// The kernel of the parts, and that of their combination.
Kernels emit_pieces(KernelSource parts, const Pieces& cut, const Context& context);

/// Whether an operand moves along one of these axes.
bool moves_along(const LoopNest::Operand& operand, const AxisList& axes);

/// One operand's part in a tile.
struct ContractSide {
  std::size_t input;
  std::string tile;  // in shared memory
  std::string base;  // where the batch begins: a or b
  std::string name;  // of the index of a row or column: m or n
  const AxisList& axes;
  Size count;           // of all rows or columns
  std::int64_t length;  // of those in a tile

  /// The place of row or column `at` and depth `k` in the operand, from `base` on.
  std::string place(const std::string& at, const std::string& k) const {
    return base + "_" + name + "(" + at + ") + " + base + "_k(" + k + ")";
  }
};

/// Whether neighbouring depths of an operand lie closer together than its neighbouring rows or
/// columns.
bool is_along_depth(const LoopNest& nest, const TileRoles& roles, const ContractSide& side);

/// Declares the arguments that are no tensor maps: the operands that are read by address, what the
/// epilogue reads, and the result.
void declare_operands(Writer& writer, const LoopNest& nest,
                      const std::vector<std::size_t>& by_address);
/// Declares m_first and n_first of the tile of number `number`, and the indices of its batch.
/// Tiles that are near in number share rows and columns, which the cache keeps.
void write_tile_origin(Writer& writer, const LoopNest& nest, const TileRoles& roles,
                       const Tile& tile, const std::string& number);
/// Declares where things are: the functions from a row or column, and from a depth, to places in
/// the operand of each side; and the operands at this block's batch.
void write_places(Writer& writer, const LoopNest& nest, const TileRoles& roles,
                  std::span<const ContractSide> sides);
/// Stores `value`, a sum, at row m and column n, whose axes' indices are declared, after the
/// epilogue.
void write_element(Writer& writer, const LoopNest& nest, const std::string& value);

/// Rows and columns of a part of a tile that a warp stores at a time, by way of its own `out` in
/// shared memory, and elements from one row of that to the next: the rows that eight lanes write
/// together are in different banks.
inline constexpr std::int64_t part_rows = 16, part_row = 40;
/// Stores what lies in `out`: `columns` columns of it are row m, column n and those after them.
void write_part(Writer& writer, const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                std::int64_t columns, const std::string& m, const std::string& n);

/// By threads alone: a contraction, or any reduction of pairs. `kind` begins its name.
KernelSource emit_pairs_by_threads(const LoopNest& nest, const PairRoles& roles, const Tile& tile,
                                   const std::string& kind, const Context& context);
KernelSource emit_contract_mma(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                               const Context& context);
KernelSource emit_contract_wgmma(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                                 const Context& context);

}  // namespace ein::codegen
