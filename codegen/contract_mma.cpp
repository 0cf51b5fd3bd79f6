// Contractions by the tensor cores' mma.sync (from sm_80 on), summed in f32: of 16-bit and 8-bit
// floats, and of f32 rounded to tf32. Tiles of both operands come into shared memory some stages
// ahead of their multiplication. A tile keeps the order of its operand where it can: ldmatrix turns
// 16-bit elements that lie the other way round, single reads take f32 as they lie, and 8-bit
// elements are turned on their way in.
#include <algorithm>
#include <array>

#include "codegen/contract.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

constexpr std::int64_t most_pack_bytes = 16;  // what is copied at once

class MmaWriter {
 public:
  MmaWriter(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
            const Context& context)
      : nest_(nest),
        roles_(roles),
        tile_(tile),
        dtype_(nest.inputs[roles.a].dtype),
        size_(static_cast<std::int64_t>(size_of(dtype_))),
        each_m_(tile.m / tile.warps_m / 16),
        each_n_(tile.n / tile.warps_n / 8),
        element_(element_type(dtype_)),
        left_{roles.a, "a_tile", "a", "m", roles.rows, roles.m, tile.m},
        right_{roles.b, "b_tile", "b", "n", roles.columns, roles.n, tile.n},
        w_("contract_mma_" + std::string(name(dtype_)) + context.suffix,
           static_cast<unsigned>(32 * tile.warps_m * tile.warps_n), has_narrow_indices(nest, roles),
           // 8-bit floats take twice the registers where they are multiplied as 16-bit floats.
           each_m_ * each_n_ > (size_ == 1 ? 4 : 16) ? 1 : 2) {}

  KernelSource write() {
    const std::string type = w_.unsigned_type(), k = count(roles_.k), step = count(tile_.k);
    declare_operands(w_, nest_, {roles_.a, roles_.b});
    w_.line("Shared<" + element_ + ">* const a_tile = shared_memory<" + element_ + ">();");
    w_.line("Shared<" + element_ + ">* const b_tile = a_tile + " +
            std::to_string(tile_.stages * elements(left_)) + ";");
    w_.block_number("block");
    write_tile_origin(w_, nest_, roles_, tile_, "block");
    write_places(w_, nest_, roles_, std::array{left_, right_});
    w_.open("const auto fetch = [&](u32 stage, " + type + " k_first) {");
    write_fetch(left_);
    write_fetch(right_);
    w_.close("};");
    w_.line("const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;");
    w_.line("const u32 warp_m = " + times(modulo("warp", tile_.warps_m), tile_.m / tile_.warps_m) +
            ", warp_n = " + times(divided("warp", tile_.warps_m), tile_.n / tile_.warps_n) + ";");
    w_.line("float sum[" + std::to_string(each_m_) + "][" + std::to_string(each_n_) + "][4] = {};");

    const std::string ahead = count(tile_.stages - 1);
    w_.open("for (u32 s = 0; s < " + ahead + "; ++s) {");
    w_.line("if (s * " + step + " < " + k + ") fetch(s, s * " + step + ");");
    w_.line("commit_copies();");
    w_.close();
    w_.line("u32 stage = 0, next = " + ahead + ";");
    w_.open(loop(type, "k_first", "0", k, step));
    w_.line("wait_for_copies<" + std::to_string(tile_.stages - 2) + ">();");
    w_.line("__syncthreads();");
    const std::string far = "k_first + " + count((tile_.stages - 1) * tile_.k);
    w_.line("if (" + far + " < " + k + ") fetch(next, " + far + ");");
    w_.line("commit_copies();");
    write_products();
    w_.line("next = stage;");
    w_.line("stage = stage == " + ahead + " ? 0u : stage + 1u;");
    w_.close();
    write_result();

    KernelSource kernel = w_.finish(tile_.count(roles_));
    const std::int64_t tiles = tile_.stages * (elements(left_) + elements(right_)) * size_;
    const std::int64_t out = tile_.warps_m * tile_.warps_n * part_rows * part_row * 4;
    kernel.shared_bytes = static_cast<std::size_t>(std::max(tiles, out));
    return kernel;
  }

 private:
  bool is_turned_on_the_way(const ContractSide& s) const {
    return size_ == 1 && !is_along_depth(nest_, roles_, s);
  }
  /// Whether neighbours in the tile are neighbours along the depth.
  bool has_depth_inside(const ContractSide& s) const {
    return size_ == 1 || is_along_depth(nest_, roles_, s);
  }
  std::int64_t lines(const ContractSide& s) const {
    return has_depth_inside(s) ? s.length : tile_.k;
  }
  /// Elements from one line of a tile to the next. What is more than its own spreads what a warp
  /// reads together over the banks: of each of 8 lines 16 bytes, or of 4 lines 8 floats.
  std::int64_t line_length(const ContractSide& s) const {
    if (has_depth_inside(s)) return tile_.k + 16 / size_;
    return s.length + 8;
  }
  std::int64_t elements(const ContractSide& s) const { return lines(s) * line_length(s); }
  std::string place(const ContractSide& s, const std::string& of_side, const std::string& k) const {
    const bool inside = has_depth_inside(s);
    return s.tile + "[(stage * " + count(lines(s)) + " + " + (inside ? of_side : k) + ") * " +
           count(line_length(s)) + " + " + (inside ? k : of_side) + "]";
  }

  /// How many elements of an operand can be copied at once, by cp.async; 0: not even one.
  std::int64_t pack(const ContractSide& s) const {
    if (is_turned_on_the_way(s)) return 0;
    const LoopNest::Operand& operand = nest_.inputs[s.input];
    const AxisList& inner = has_depth_inside(s) ? roles_.depth : s.axes;
    for (std::int64_t bytes = most_pack_bytes; bytes >= 4; bytes /= 2) {
      const std::int64_t width = bytes / size_;
      if (width == 1) return 1;
      if (inner.empty() || !ask_equal(operand.strides[inner.back()], 1)) continue;
      bool fits = ask_equal(nest_.axes[inner.back()].size % width, 0) &&
                  ask_equal(operand.offset % width, 0);
      for (std::size_t a = 0; a < nest_.axes.size(); ++a)
        fits &= a == inner.back() || ask_equal(operand.strides[a] % width, 0);
      if (fits) return width;
    }
    return 0;
  }

  void write_fetch(const ContractSide& s) {
    const bool along = is_along_depth(nest_, roles_, s);
    const std::int64_t width = std::max<std::int64_t>(1, pack(s)),
                       row = (along ? tile_.k : s.length) / width;
    const std::string inner = along ? "k" : s.name, outer = along ? s.name : "k";
    // Many addresses at once would take too many registers.
    const std::int64_t threads = 32 * tile_.warps_m * tile_.warps_n;
    w_.line(tile_.k * s.length / width / threads > 8 ? "#pragma unroll 4" : "#pragma unroll");
    w_.open(loop("u32", "t", "threadIdx.x", count(tile_.k * s.length / width), count(threads)));
    w_.line("const u32 " + inner + " = " + times(modulo("t", row), width) + ", " + outer + " = " +
            divided("t", row) + ";");
    const std::string at = s.name + "_first + " + s.name;
    w_.line("const bool inside = " + at + " < " + count(s.count) + " && k_first + k < " +
            count(roles_.k) + ";");
    const std::string to = place(s, s.name, "k"), from = s.place(at, "k_first + k");
    if (pack(s) > 0) {
      w_.line("copy_async<" + std::to_string(width) + ">(&" + to + ", inside ? " + s.base + " + " +
              from + " : " + s.base + ", inside);");
    } else {
      w_.line(to + " = inside ? " + s.base + "[" + from + "] : " + element_ + "{};");
    }
    w_.close();
  }

  void write_products() {
    const std::string each_m = std::to_string(each_m_), each_n = std::to_string(each_n_);
    // Two blocks to a multiprocessor leave a thread 128 registers, of which sums take 64. Where
    // places along several axes of depth want some as well, there are none for the next depths'
    // operands.
    const bool is_crowded = each_m_ * each_n_ == 16 && roles_.depth.size() > 1;
    const std::string depths = loop("u32", "k", "0", count(tile_.k), count(32 / size_));
    if (is_crowded) w_.line("#pragma unroll 1");
    is_crowded ? w_.open(depths) : w_.open_unrolled(depths);
    w_.line("u32 left[" + each_m + "][4], right[" + each_n + "][2];");
    w_.line("#pragma unroll");
    w_.line("for (int i = 0; i < " + each_m + "; ++i) " + load_left());
    w_.line("#pragma unroll");
    w_.line("for (int j = 0; j < " + each_n + (size_ == 4 ? "; ++j) " : "; j += 2) ") +
            load_right());
    w_.open_unrolled("for (int i = 0; i < " + each_m + "; ++i) {");
    w_.line("#pragma unroll");
    w_.line("for (int j = 0; j < " + each_n + "; ++j) multiply_add_" +
            (size_ == 4 ? "tf32" : element_) + "(sum[i][j], left[i], right[j]);");
    w_.close();
    w_.close();
  }

  /// Four 8 × 8 matrices (of pairs, if elements have 8 bits): rows 0 and 8 of the first half of the
  /// depths, then of the other half.
  std::string load_left() const {
    const std::string half = count(16 / size_);
    if (size_ == 4) {
      return "for (int r = 0; r < 4; ++r) left[i][r] = tf32_bits(" +
             place(left_, "warp_m + 16 * i + lane / 4u + r % 2 * 8", "k + lane % 4u + r / 2 * 4") +
             ");";
    }
    if (has_depth_inside(left_)) {
      return "load_matrices(left[i], &" +
             place(left_, "warp_m + 16 * i + lane % 16u", "k + lane / 16u * " + half) + ");";
    }
    return "load_matrices_turned(left[i], &" +
           place(left_, "warp_m + 16 * i + lane / 8u % 2u * 8u",
                 "k + lane % 8u + lane / 16u * 8u") +
           ");";
  }
  /// Four: both halves of the depths of columns 0, then of columns 8.
  std::string load_right() const {
    const std::string half = count(16 / size_);
    if (size_ == 4) {
      return "for (int r = 0; r < 2; ++r) right[j][r] = tf32_bits(" +
             place(right_, "warp_n + 8 * j + lane / 4u", "k + lane % 4u + r * 4") + ");";
    }
    if (has_depth_inside(right_)) {
      return "load_matrices(right[j], right[j + 1], &" +
             place(right_, "warp_n + 8 * j + lane % 8u + lane / 16u * 8u",
                   "k + lane / 8u % 2u * " + half) +
             ");";
    }
    return "load_matrices_turned(right[j], right[j + 1], &" +
           place(right_, "warp_n + 8 * j + lane / 16u * 8u", "k + lane % 16u") + ");";
  }

  void write_result() {
    const std::int64_t columns = std::min<std::int64_t>(32, 8 * each_n_),
                       parts = 8 * each_n_ / columns;
    w_.line("__syncthreads();");
    w_.line("Shared<float>* const out = shared_memory<float>() + warp * " +
            count(part_rows * part_row) + ";");
    w_.open_unrolled("for (int part = 0; part < " + std::to_string(each_m_ * parts) +
                     "; ++part) {");
    w_.line("const int i = part / " + std::to_string(parts) + ", first = part % " +
            std::to_string(parts) + " * " + std::to_string(columns / 8) + ";");
    w_.open_unrolled("for (int j = 0; j < " + std::to_string(columns / 8) + "; ++j) {");
    w_.line("const float(&c)[4] = sum[i][first + j];");
    const std::string row = count(part_row);
    w_.line("put(&out[lane / 4u * " + row + " + 8 * j + lane % 4u * 2u], c[0], c[1]);");
    w_.line("put(&out[(lane / 4u + 8u) * " + row + " + 8 * j + lane % 4u * 2u], c[2], c[3]);");
    w_.close();
    write_part(w_, nest_, roles_, tile_, columns, "m_first + warp_m + 16 * i",
               "n_first + warp_n + 8 * first");
    w_.close();
  }

  const LoopNest& nest_;
  const ContractRoles& roles_;
  const Tile& tile_;
  DType dtype_;
  std::int64_t size_;             // of an element
  std::int64_t each_m_, each_n_;  // a warp has so many times 16 rows and 8 columns
  std::string element_;
  ContractSide left_, right_;
  Writer w_;
};

}  // namespace

KernelSource emit_contract_mma(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                               const Context& context) {
  return MmaWriter(nest, roles, tile, context).write();
}

}  // namespace ein::codegen
