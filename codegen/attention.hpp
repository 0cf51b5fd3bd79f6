// What the kernels of attention have in common: a block keeps some rows of one side, queries or
// keys, and goes through the rows of the other side tile by tile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/forms.hpp"
#include "codegen/writer.hpp"
#include "nest/attention.hpp"

namespace ein::codegen {

/// Rows of an operand, queries or keys.
struct AttentionRows {
  std::string name;
  const LoopNest::Operand* operand = nullptr;
  bool is_kept = false;  // by the block; otherwise they come by tiles
  Size count = 0;
  std::int64_t width = 0;
  Size step = 0, width_step = 0;  // strides
};

/// How a block's work is cut. A thread has `row_slots` times `column_slots` elements of a tile of
/// scores.
struct AttentionTiles {
  bool by_mma = false;
  unsigned threads = 256;
  std::int64_t each = 1;  // mma: 16 rows of a warp
  std::int64_t rows = 64, columns = 64;
  std::int64_t row_slots() const { return by_mma ? 2 * each : rows / 16; }
  std::int64_t column_slots() const { return by_mma ? columns / 4 : columns / 16; }
  std::int64_t slots_of(
      std::int64_t width) const;  // elements of a row of `width` that a thread has
};

/// Writes products of tiles, and what surrounds them: by tensor cores, from tiles in shared memory
/// that are copied while those before them are multiplied, or, for other elements than of 16 bits,
/// by threads of 4 × 4 elements each.
///
/// In the text `first` is the first row of the tile at hand and `kept_first` that of the block;
/// `row` and `column` are those of a thread's first element.
class AttentionWriter {
 public:
  AttentionWriter(const Attention& attention, const AttentionTiles& tiles, const std::string& name);

 protected:
  // --- text for a thread's elements ---
  /// Element `r`, `n` of those of a thread in an array of scores or sums; its row and column in the
  /// tile; and the array's declaration.
  std::string at(const std::string& array, const std::string& r, const std::string& n) const;
  std::string row(const std::string& r) const;
  std::string column(const std::string& n) const;
  std::string declared(const std::string& array, std::int64_t slots) const;
  /// Unrolled loops.
  void open_rows();
  void open_columns(std::int64_t slots);
  /// The combination of a row's values, of which neighbouring lanes have parts.
  std::string across_lanes(const std::string& value, const char* combination) const;

  // --- tiles ---
  void declare_arguments(const std::vector<const AttentionRows*>& rows);
  void declare_tiles(const std::vector<const AttentionRows*>& rows, bool has_sums);
  void write_thread();
  /// `name_at`: where the rows of this batch begin; `axes` are those whose indices are there.
  void write_base(const AttentionRows& rows, const AxisList& axes);
  void write_base(const LoopNest::Operand& operand, const std::string& name, const AxisList& axes);
  void write_fetch(const AttentionRows& rows);
  /// Adds left · right to the columns j and j + 1 of all rows, by tensor cores.
  void write_multiply_add(const std::string& to);
  /// `scores` = a of the block times b of the tile, both along their width.
  void write_product(const std::string& scores, const AttentionRows& a, const AttentionRows& b);
  /// `sum` += `weights` times b of the tile.
  void write_accumulation(const std::string& sum, const std::string& weights,
                          const AttentionRows& b);
  /// Writes rows of `sum`, each times `factor`.
  void write_result(const AttentionRows& to, const std::string& sum, const std::string& factor);
  std::string place(const AttentionRows& rows, const std::string& row,
                    const std::string& column) const;
  std::size_t shared_bytes() const { return shared_bytes_; }

  const Attention& attention_;
  AttentionTiles tiles_;
  LoopNest shape_;  // has the axes
  Writer w_;

 private:
  bool has_packs(const AttentionRows& rows) const;
  void unroll() { w_.line("#pragma unroll"); }

  std::string element_;
  std::size_t shared_bytes_ = 0;
};

/// Whether tensor cores can multiply these operands.
bool is_for_mma(const Attention& attention, const GpuTarget& target);

/// The kernels of a group that is attention.
Kernels emit_attention(const Attention& attention, const Context& context);

}  // namespace ein::codegen
