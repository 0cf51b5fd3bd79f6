// What the kernels of contractions have in common.
#pragma once

#include <string>

#include "codegen/forms.hpp"
#include "codegen/writer.hpp"

namespace ein::codegen {

/// Each axis has a role: batch (in both operands and the result, or in neither operand), row (in a
/// and the result), column (in b and the result) or depth (summed).
struct ContractRoles {
  AxisList batch, rows, columns, depth;
  std::int64_t m = 1, n = 1, k = 1, batches = 1;  // points of rows, columns, depth and batch
};

/// One operand's part in a tile.
struct ContractSide {
  std::size_t input;
  std::string tile;  // in shared memory
  std::string base;  // where the batch begins: a or b
  std::string name;  // of the index of a row or column: m or n
  const AxisList& axes;
  std::int64_t count;   // of all rows or columns
  std::int64_t length;  // of those in a tile

  /// The place of row or column `at` and depth `k` in the operand, from `base` on.
  std::string place(const std::string& at, const std::string& k) const {
    return base + "_" + name + "(" + at + ") + " + base + "_k(" + k + ")";
  }
};

/// Declares where things are: the functions from a row or column, and from a depth, to places in
/// each operand; m_first and n_first of this block's tile; the indices of its batch; a and b.
void write_origins(Writer& writer, const LoopNest& nest, const ContractRoles& roles,
                   const ContractSide& left, const ContractSide& right);

/// Whether neighbouring depths of an operand lie closer together than its neighbouring rows or
/// columns.
bool is_along_depth(const LoopNest& nest, const ContractRoles& roles, const ContractSide& side);

/// By tensor cores; none if the nest is not for them.
Kernels emit_contract_mma(const LoopNest& nest, const ContractRoles& roles, const Context& context);

}  // namespace ein::codegen
