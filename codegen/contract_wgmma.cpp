// Contractions by Hopper's wgmma (sm_90a), of 16-bit and 8-bit floats, summed in f32. Tiles of both
// operands are brought by TMA as tensor maps describe them; zeros stand for what is outside. A
// block stays on its multiprocessor and goes from tile to tile. One of its warpgroups does nothing
// but ask for the tiles of the next stages; two multiply, each 64 rows. Barriers say when a stage
// is full, and when all warps are done with it. Or the two have every other tile each, in turns:
// while one stores its sums, the other multiplies. One begins when the other has all of its stages,
// so that nobody waits for a stage before it is filled for the one before.
#include <algorithm>
#include <cassert>
#include <optional>

#include "codegen/contract.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

constexpr std::int64_t row_bytes = 128;      // of a tile in shared memory: what a swizzle spans
constexpr std::int64_t group_rows = 64;      // of a warpgroup
constexpr std::int64_t consumers = 2;        // warpgroups
constexpr std::int64_t most_dimensions = 5;  // of a tensor map
constexpr std::int64_t alignment = 1024;     // of tiles: the swizzle's pattern repeats

/// The layout of an operand's tiles: each box has rows of 128 bytes.
struct Boxes {
  bool has_depth_inside = true;        // K-major, as PTX says; otherwise MN-major
  std::vector<std::size_t> axes;       // of the map's dimensions
  std::vector<std::uint32_t> extents;  // of a box along them
  std::int64_t count = 1;              // boxes of a tile, side by side
};

/// None if the operand does not lie as a tensor map wants: one axis contiguous, and all else in
/// steps of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled).
std::optional<Boxes> boxes_of(const LoopNest& nest, const ContractRoles& roles, std::size_t input,
                              const Tile& tile) {
  const LoopNest::Operand& operand = nest.inputs[input];
  const auto size = static_cast<std::int64_t>(size_of(operand.dtype));
  const AxisList& side = input == roles.a ? roles.rows : roles.columns;
  const std::int64_t length = input == roles.a ? tile.m : tile.n;
  if (side.empty() || roles.depth.empty()) return std::nullopt;
  // A tile is a box only if it does not go on from the end of an inner axis to the next outer
  // index.
  const auto is_box = [&](const AxisList& axes, std::int64_t extent) {
    return axes.size() == 1 || ask_equal(nest.axes[axes.back()].size % extent, 0);
  };
  const std::size_t across = side.back(), along = roles.depth.back();
  if (!is_box(side, length) || !is_box(roles.depth, tile.k)) return std::nullopt;

  Boxes boxes;
  const auto row = static_cast<std::uint32_t>(row_bytes / size);
  if (ask_equal(operand.strides[along], 1)) {
    boxes.axes = {along, across};
    boxes.extents = {row, static_cast<std::uint32_t>(length)};
  } else if (ask_equal(operand.strides[across], 1) &&
             size == 2) {  // wgmma turns 16-bit elements alone
    boxes.has_depth_inside = false;
    boxes.axes = {across, along};
    boxes.extents = {row, static_cast<std::uint32_t>(tile.k)};
    boxes.count = length / row;
  } else {
    return std::nullopt;
  }
  bool fits = ask_equal(operand.offset * size % 16, 0);
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (always_equal(operand.strides[a], 0) || a == boxes.axes[0]) continue;
    const Size stride = operand.strides[a];
    fits &=
        stride > 0 && stride < (std::int64_t{1} << 40) / size && ask_equal(stride * size % 16, 0);
    if (a != boxes.axes[1]) {
      boxes.axes.push_back(a);
      boxes.extents.push_back(1);
    }
  }
  for (std::size_t a : boxes.axes)
    fits &= !always_equal(operand.strides[a], 0) && nest.axes[a].size < std::int64_t{1} << 31;
  fits &= static_cast<std::int64_t>(boxes.axes.size()) <= most_dimensions;
  return fits ? std::optional(boxes) : std::nullopt;
}

class WgmmaWriter {
 public:
  WgmmaWriter(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
              const Context& context)
      : nest_(nest),
        roles_(roles),
        tile_(tile),
        sms_(context.target.sms),
        element_(element_type(nest.inputs[roles.a].dtype)),
        a_(*boxes_of(nest, roles, roles.a, tile)),
        b_(*boxes_of(nest, roles, roles.b, tile)),
        w_("contract_wgmma_" + element_ + context.suffix, 128 * (consumers + 1),
           has_narrow_indices(nest, roles), 1) {
    assert(tile.m == consumers * group_rows);
  }

  KernelSource write() {
    const std::string stages = count(tile_.stages), a_bytes = count(tile_.m * row_bytes),
                      b_bytes = count(tile_.n * row_bytes);
    w_.map("a_map", map(roles_.a, a_));
    w_.map("b_map", map(roles_.b, b_));
    declare_operands(w_, nest_, {});
    w_.line("unsigned char* const a_tiles = swizzled_memory();");
    w_.line("unsigned char* const b_tiles = a_tiles + " + stages + " * " + a_bytes + ";");
    w_.line("__shared__ Barrier full[" + std::to_string(tile_.stages) + "], empty[" +
            std::to_string(tile_.stages) + "]" + (tile_.in_turns ? ", turn[2]" : "") + ";");
    w_.open("if (threadIdx.x == 0) {");
    w_.open("for (u32 s = 0; s < " + stages + "; ++s) {");
    w_.line("begin_barrier(&full[s], 1);");
    w_.line("begin_barrier(&empty[s], " + std::to_string(4 * consumers / turns()) + ");");
    w_.close();
    if (tile_.in_turns) w_.line("for (u32 s = 0; s < 2u; ++s) begin_barrier(&turn[s], 4);");
    w_.line("end_of_beginning();");
    w_.close();
    w_.line("__syncthreads();");
    w_.line("u32 stage = 0, phase = 0;");
    w_.open("const auto advance = [&] {");
    w_.line("if (++stage == " + stages + ") stage = 0, phase ^= 1u;");
    w_.close("};");

    w_.open("if (threadIdx.x < 128u) {");
    w_.line("give_registers<40>();");
    w_.line("if (threadIdx.x != 0) return;");
    open_tiles("blockIdx.x", "gridDim.x");
    w_.indices(nest_, roles_.rows, "m_first");
    w_.indices(nest_, roles_.columns, "n_first");
    open_depth();
    w_.indices(nest_, roles_.depth, "k_first");
    w_.line("wait_for(&empty[stage], phase ^ 1u);");
    w_.line("arrive_expecting(&full[stage], " + a_bytes + " + " + b_bytes + ");");
    write_load("a", a_, a_bytes);
    write_load("b", b_, b_bytes);
    w_.line("advance();");
    w_.close();
    w_.close();
    w_.line("return;");
    w_.close();

    w_.line("take_registers<232>();");
    w_.line("const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u - 4u;");
    w_.line("const u32 " +
            std::string(tile_.in_turns ? "own = warp / 4u;"
                                       : "rows_before = warp / 4u * " + count(group_rows) + ";"));
    w_.line("Shared<float>* const out = shared_memory<float>() + " + count(out_begin() / 4) +
            " + warp * " + count(part_rows * part_row) + ";");
    if (tile_.in_turns) {
      // The stages of a tile of the other's.
      w_.open("const auto pass = [&] {");
      w_.line("const " + w_.unsigned_type() + " at = stage + " +
              count(ceil_div(roles_.k, tile_.k)) + ";");
      w_.line("stage = u32(at % " + stages + "), phase ^= u32(at / " + stages + ") & 1u;");
      w_.close("};");
      w_.line("if (own == 1u) pass();");
      w_.line("u32 round = own;");
      open_tiles("blockIdx.x + own * gridDim.x", "2u * gridDim.x");
      w_.line("wait_for(&turn[own], ++round & 1u);");
    } else {
      open_tiles("blockIdx.x", "gridDim.x");
    }
    const std::string sums = std::to_string(tile_.n / 2);
    w_.line("float sum" + std::string(tile_.in_turns ? "[2]" : "") + "[" + sums + "] = {};");
    w_.line("u32 before = stage;");
    open_depth();
    w_.line("const unsigned char* const a = a_tiles + stage * " + a_bytes +
            (tile_.in_turns ? "" : " + rows_before * " + count(row_bytes)) + ";");
    w_.line("const unsigned char* const b = b_tiles + stage * " + b_bytes + ";");
    w_.line("wait_for(&full[stage], phase);");
    for (const std::string& sum : all_sums()) w_.line("begin_products(" + sum + ");");
    w_.open_unrolled("for (u32 step = 0; step < 4u; ++step) {");
    std::string rows = "a";
    for (const std::string& sum : all_sums()) {
      w_.line("multiply_add_group_" + element_ + turned() + "(" + sum + ", " + matrix(rows, a_) +
              ", " + matrix("b", b_) + ");");
      rows += " + " + count(group_rows * row_bytes);
    }
    w_.close();
    w_.line("commit_products();");
    // The products of this stage go on while those of the one before are known to be done.
    w_.open("if (k_first > 0) {");
    w_.line("wait_for_products<1>();");
    w_.line("if (lane == 0) arrive(&empty[before]);");
    w_.close();
    w_.line("before = stage;");
    w_.line("advance();");
    w_.close();
    if (tile_.in_turns) w_.line("if (lane == 0) arrive(&turn[1u - own]);");
    w_.line("wait_for_products<0>();");
    for (const std::string& sum : all_sums()) w_.line("end_products(" + sum + ");");
    w_.line("if (lane == 0) arrive(&empty[before]);");
    if (tile_.in_turns) w_.line("pass();");
    write_result();
    w_.close();

    KernelSource kernel = w_.finish(std::min<Size>(tile_.count(roles_), sms_));
    kernel.shared_bytes =
        static_cast<std::size_t>(out_begin() + 4 * consumers * part_rows * part_row * 4);
    return kernel;
  }

 private:
  /// Bytes before what the warps store by, beyond any alignment.
  std::int64_t out_begin() const {
    return alignment + tile_.stages * (tile_.m + tile_.n) * row_bytes;
  }

  TensorMap map(std::size_t input, const Boxes& boxes) const {
    const LoopNest::Operand& operand = nest_.inputs[input];
    const auto size = static_cast<std::int64_t>(size_of(operand.dtype));
    TensorMap map{.buffer = operand.buffer,
                  .offset = operand.offset * size,
                  .dtype = operand.dtype,
                  .sizes = {},
                  .strides = {},
                  .box = boxes.extents};
    for (std::size_t a : boxes.axes) {
      map.sizes.push_back(nest_.axes[a].size);
      if (a != boxes.axes[0]) map.strides.push_back(operand.strides[a] * size);
    }
    return map;
  }

  /// Warpgroups that multiply one after the other.
  std::int64_t turns() const { return tile_.in_turns ? consumers : 1; }
  /// What a warpgroup sums to, 64 rows each.
  std::vector<std::string> all_sums() const {
    return tile_.in_turns ? std::vector<std::string>{"sum[0]", "sum[1]"}
                          : std::vector<std::string>{"sum"};
  }

  void open_tiles(const std::string& first, const std::string& step) {
    w_.open("for (" + w_.unsigned_type() + " number = " + first + "; number < " +
            count(tile_.count(roles_)) + "; number += " + step + ") {");
    write_tile_origin(w_, nest_, roles_, tile_, "number");
  }
  void open_depth() {
    w_.open(loop(w_.unsigned_type(), "k_first", "0", count(roles_.k), count(tile_.k)));
  }

  void write_load(const std::string& operand, const Boxes& boxes, const std::string& bytes) {
    for (std::int64_t box = 0; box < boxes.count; ++box) {
      // Boxes of rows that are neighbours in memory lie one after another.
      const std::int64_t before = box * boxes.extents[0];
      std::string text = "load_tile(" + operand + "_tiles + stage * " + bytes;
      if (box > 0) text += " + " + count(box * tile_.k * row_bytes);
      text += ", " + operand + "_map, &full[stage]";
      for (std::size_t d = 0; d < boxes.axes.size(); ++d) {
        text += ", int(" + axis_name(boxes.axes[d]) + ")";
        if (d == 0 && before > 0) text += " + " + std::to_string(before);
      }
      w_.line(text + ");");
    }
  }

  /// The descriptor of what a step multiplies: 32 bytes of each row, or a quarter of the rows.
  std::string matrix(const std::string& base, const Boxes& boxes) const {
    const std::int64_t box_bytes = tile_.k * row_bytes;
    return boxes.has_depth_inside ? "matrix(" + base + " + 32u * step, 16u)"
                                  : "matrix(" + base + " + " + count(box_bytes / 4) + " * step, " +
                                        count(box_bytes) + ")";
  }
  /// Whether the instruction turns a and b.
  std::string turned() const {
    if (element_.starts_with("f8")) return "";
    const auto digit = [](const Boxes& boxes) { return boxes.has_depth_inside ? "0" : "1"; };
    return std::string("<") + digit(a_) + ", " + digit(b_) + ">";
  }

  /// Part after part of a warp's rows goes through shared memory. The text of a long epilogue is
  /// there once, as a processor keeps little text at hand; then each part's sums are picked out of
  /// the registers by branches that all lanes take together.
  void write_result() {
    const std::string row = count(part_row), across = std::to_string(tile_.n / 32),
                      parts = std::to_string(tile_.n / 32 * turns());
    const bool is_long = nest_.epilogue.steps.size() > 12;
    const std::string loop = "for (int part = 0; part < " + parts + "; ++part) {";
    std::string part = "part";
    if (is_long) {
      w_.line("#pragma unroll 1");
      w_.open(loop);
      part = "p";
      w_.open_unrolled("for (int p = 0; p < " + parts + "; ++p) {");
      w_.line("if (p != part) continue;");
    } else {
      w_.open_unrolled(loop);
    }
    std::string sum = "sum", m = "rows_before", n = "part";
    if (tile_.in_turns) {
      sum += "[" + part + " / " + across + "]";
      m = "part / " + across + " * 64";
      n += " % " + across;
      part += " % " + across;
    }
    w_.open_unrolled("for (int j = 0; j < 4; ++j) {");
    w_.line("const int c = " + part + " * 16 + 4 * j;");
    w_.line("put(&out[lane / 4u * " + row + " + 8 * j + lane % 4u * 2u], " + sum + "[c], " + sum +
            "[c + 1]);");
    w_.line("put(&out[(lane / 4u + 8u) * " + row + " + 8 * j + lane % 4u * 2u], " + sum +
            "[c + 2], " + sum + "[c + 3]);");
    w_.close();
    if (is_long) w_.close();
    write_part(w_, nest_, roles_, tile_, 32, "m_first + " + m + " + warp % 4u * 16u",
               "n_first + " + n + " * 32");
    w_.close();
  }

  const LoopNest& nest_;
  const ContractRoles& roles_;
  const Tile& tile_;
  int sms_;
  std::string element_;
  Boxes a_, b_;
  Writer w_;
};

}  // namespace

bool has_tensor_maps(const LoopNest& nest, const ContractRoles& roles, const Tile& tile) {
  return boxes_of(nest, roles, roles.a, tile) && boxes_of(nest, roles, roles.b, tile);
}

KernelSource emit_contract_wgmma(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                                 const Context& context) {
  return WgmmaWriter(nest, roles, tile, context).write();
}

}  // namespace ein::codegen
