// Products of tiles in attention.
#include <algorithm>

#include "codegen/attention.hpp"
#include "codegen/expression.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

constexpr std::int64_t pack = 8;   // elements that are copied at once: 16 bytes
constexpr std::int64_t step = 16;  // of the summed axis, multiplied at once
constexpr unsigned side = 16;      // threads along each side of a tile, without tensor cores

std::string text(std::int64_t value) { return std::to_string(value); }

/// With tensor cores rows are filled up with zeros, as far as they multiply at once.
std::int64_t padded(std::int64_t width) { return ceil_div(width, step) * step; }

bool has_narrow_indices(const Attention& a) {
  // The last tile of an axis goes beyond its end.
  std::vector<LoopNest::NestAxis> axes = a.axes;
  for (LoopNest::NestAxis& axis : axes) axis.size += 128;
  const auto fits = [&](const LoopNest::Operand& operand) {
    return has_narrow_places(operand, axes);
  };
  bool all = fits(a.q) && fits(a.k) && fits(a.v) && fits(a.out);
  if (a.log_sums) all = all && fits(*a.log_sums);
  if (a.gradients) {
    all = all && fits(a.gradients->dout);
    for (const auto* result : {&a.gradients->dq, &a.gradients->dk, &a.gradients->dv})
      all = all && (!*result || fits(**result));
  }
  return all;
}

}  // namespace

std::int64_t AttentionTiles::slots_of(std::int64_t width) const {
  return by_mma ? padded(width) / 4 : ceil_div(width, side);
}

bool is_for_mma(const Attention& a, const GpuTarget& target) {
  const DType dtype = a.q.dtype;
  const bool is_short = dtype == DType::bf16 || dtype == DType::f16;
  return target.sm >= 80 && is_short && a.k.dtype == dtype && a.v.dtype == dtype &&
         (!a.gradients || a.gradients->dout.dtype == dtype);
}

AttentionWriter::AttentionWriter(const Attention& attention, const AttentionTiles& tiles,
                                 const std::string& name)
    : attention_(attention),
      tiles_(tiles),
      w_(name, tiles.threads, has_narrow_indices(attention), 65536 / 256 / tiles.threads),
      element_(tiles.by_mma ? element_type(attention.q.dtype) : "float") {
  shape_.axes = attention.axes;
}

std::string AttentionWriter::at(const std::string& array, const std::string& r,
                                const std::string& n) const {
  if (!tiles_.by_mma) return array + "[" + r + "][" + n + "]";
  return array + "[" + r + " / 2][" + n + " / 2][" + r + " % 2 * 2 + " + n + " % 2]";
}
std::string AttentionWriter::row(const std::string& r) const {
  return tiles_.by_mma ? "row + " + r + " / 2 * 16 + " + r + " % 2 * 8" : "row + 16 * " + r;
}
std::string AttentionWriter::column(const std::string& n) const {
  return tiles_.by_mma ? "column + " + n + " / 2 * 8 + " + n + " % 2" : "column + 16 * " + n;
}
std::string AttentionWriter::declared(const std::string& array, std::int64_t slots) const {
  const std::int64_t rows = tiles_.row_slots();
  const std::string extents = tiles_.by_mma ? "[" + text(rows / 2) + "][" + text(slots / 2) + "][4]"
                                            : "[" + text(rows) + "][" + text(slots) + "]";
  return "float " + array + extents + " = {};";
}

void AttentionWriter::open_rows() {
  w_.open_unrolled("for (int r = 0; r < " + text(tiles_.row_slots()) + "; ++r) {");
}
void AttentionWriter::open_columns(std::int64_t slots) {
  w_.open_unrolled("for (int n = 0; n < " + text(slots) + "; ++n) {");
}

std::string AttentionWriter::across_lanes(const std::string& value, const char* combination) const {
  return std::string("combine_lanes<") + (tiles_.by_mma ? "4" : "16") + ">(" + value +
         ", no_memory<float>(), [](float a, float b) { return " + combination + "; })";
}

void AttentionWriter::declare_arguments(const std::vector<const AttentionRows*>& rows) {
  for (const AttentionRows* r : rows)
    w_.pointer("const " + element_type(r->operand->dtype), r->name, *r->operand);
}

void AttentionWriter::declare_tiles(const std::vector<const AttentionRows*>& rows, bool has_sums) {
  const auto tile = [&](const std::string& name, const std::string& extents,
                        std::int64_t elements) {
    w_.line("Shared<" + element_ + "> " + name + extents + ";");
    shared_bytes_ += static_cast<std::size_t>(elements) * (tiles_.by_mma ? 2 : 4);
  };
  w_.open("struct Tiles {");
  if (tiles_.by_mma) {
    for (const AttentionRows* r : rows) {
      // Eight more elements to a row put the rows that ldmatrix reads together into different
      // banks.
      const std::int64_t width = padded(r->width) + pack;
      const std::int64_t length = r->is_kept ? tiles_.rows : tiles_.columns;
      const std::string extents = "[" + text(length) + "][" + text(width) + "]";
      tile(r->name, r->is_kept ? extents : "[2]" + extents, (r->is_kept ? 1 : 2) * length * width);
    }
  } else {
    // A column more spreads the elements of a column over the banks.
    std::int64_t widest = 0;
    for (const AttentionRows* r : rows) widest = std::max(widest, r->width);
    tile("left", "[16][" + text(tiles_.rows + 1) + "]", 16 * (tiles_.rows + 1));
    tile("right", "[16][" + text(tiles_.columns + 1) + "]", 16 * (tiles_.columns + 1));
    tile("weights", "[" + text(tiles_.rows) + "][" + text(tiles_.columns + 1) + "]",
         tiles_.rows * (tiles_.columns + 1));
    tile("rows", "[16][" + text(widest + 1) + "]", 16 * (widest + 1));
  }
  if (has_sums) {
    w_.line("Shared<float> log_sums[2][" + text(tiles_.columns) + "], delta[2][" +
            text(tiles_.columns) + "];");
    shared_bytes_ += static_cast<std::size_t>(4 * tiles_.columns) * sizeof(float);
  }
  w_.close("};");
  w_.line("Tiles& tiles = shared_tiles<Tiles>();");
}

void AttentionWriter::write_thread() {
  if (tiles_.by_mma) {
    w_.line("const u32 lane = threadIdx.x % 32u, warp_row = threadIdx.x / 32u * " +
            count(16 * tiles_.each) + ";");
    w_.line("const u32 row = warp_row + lane / 4u, column = lane % 4u * 2u;");
  } else {
    w_.line("const u32 row = threadIdx.x / 16u, column = threadIdx.x % 16u;");
  }
}

void AttentionWriter::write_base(const LoopNest::Operand& operand, const std::string& name,
                                 const AxisList& axes) {
  w_.line("const auto " + name + "_at = " + added(name, w_.place(operand, axes)) + ";");
}
void AttentionWriter::write_base(const AttentionRows& rows, const AxisList& axes) {
  write_base(*rows.operand, rows.name, axes);
}

std::string AttentionWriter::place(const AttentionRows& rows, const std::string& row,
                                   const std::string& column) const {
  const auto term = [&](const std::string& index, Size stride) -> std::string {
    if (always_equal(stride, 0)) return "0";
    const std::string value = w_.index_type() + "(" + index + ")";
    return is_one(stride) ? value : value + " * " + w_.number(stride);
  };
  return added(term(row, rows.step), term(column, rows.width_step));
}

bool AttentionWriter::has_packs(const AttentionRows& rows) const {
  const LoopNest::Operand& operand = *rows.operand;
  if (!is_one(rows.width_step) || !ask_equal(operand.offset % pack, 0) || rows.width % pack != 0)
    return false;
  for (std::size_t a = 0; a + 2 < operand.strides.size(); ++a) {
    if (!ask_equal(operand.strides[a] % pack, 0)) return false;
  }
  return true;
}

void AttentionWriter::write_fetch(const AttentionRows& rows) {
  const bool packs = has_packs(rows);
  const std::int64_t width = packs ? pack : 1, across = padded(rows.width) / width,
                     length = rows.is_kept ? tiles_.rows : tiles_.columns;
  w_.open_unrolled(loop("u32", "t", "threadIdx.x", count(length * across), count(tiles_.threads)));
  w_.line("const u32 r = " + divided("t", across) + ", c = " + times(modulo("t", across), width) +
          ";");
  const std::string from = rows.is_kept ? "kept_first + r" : "next + r";
  w_.line("const bool inside = " + from + " < " + count(rows.count) +
          (rows.width < padded(rows.width) ? " && c < " + count(rows.width) : "") + ";");
  const std::string to = "tiles." + rows.name + (rows.is_kept ? "" : "[into]") + "[r][c]";
  const std::string base = rows.name + "_at", where = place(rows, from, "c");
  w_.line(packs ? "copy_async<8>(&" + to + ", inside ? " + base + " + " + where + " : " + base +
                      ", inside);"
                : to + " = inside ? " + base + "[" + where + "] : " + element_ + "{0};");
  w_.close();
}

void AttentionWriter::write_multiply_add(const std::string& to) {
  w_.open_unrolled("for (int i = 0; i < " + text(tiles_.each) + "; ++i) {");
  for (const char* half : {"0", "1"})
    w_.line("multiply_add_" + element_ + "(" + to + "[i][j + " + half + "], left[i], right[" +
            half + "]);");
  w_.close();
}

void AttentionWriter::write_product(const std::string& scores, const AttentionRows& a,
                                    const AttentionRows& b) {
  w_.line(declared(scores, tiles_.column_slots()));
  if (tiles_.by_mma) {
    const std::string each = text(tiles_.each);
    w_.open_unrolled(loop("u32", "d", "0", count(padded(a.width)), "16u"));
    w_.line("u32 left[" + each + "][4];");
    unroll();
    w_.line("for (int i = 0; i < " + each + "; ++i) load_matrices(left[i], &tiles." + a.name +
            "[warp_row + 16 * i + lane % 16u][d + lane / 16u * 8u]);");
    w_.open_unrolled(loop("int", "j", "0", text(tiles_.columns / 8), "2"));
    w_.line("u32 right[2][2];");
    w_.line("load_matrices(right[0], right[1], &tiles." + b.name +
            "[stage][8 * j + lane % 8u + lane / 16u * 8u][d + lane / 8u % 2u * 8u]);");
    write_multiply_add(scores);
    w_.close();
    w_.close();
    return;
  }
  w_.open("for (u32 d_first = 0; d_first < " + count(a.width) + "; d_first += 16u) {");
  for (const AttentionRows* rows : {&a, &b}) {
    const std::int64_t length = rows->is_kept ? tiles_.rows : tiles_.columns;
    const bool along =
        !always_equal(rows->width_step, 0) && magnitude(rows->width_step) <= magnitude(rows->step);
    w_.open_unrolled(loop("u32", "t", "threadIdx.x", count(16 * length), count(tiles_.threads)));
    w_.line(along ? "const u32 d = t % 16u, r = t / 16u;"
                  : "const u32 r = t % " + count(length) + ", d = t / " + count(length) + ";");
    const std::string from = rows->is_kept ? "kept_first + r" : "first + r";
    const std::string element = rows->name + "_at[" + place(*rows, from, "d_first + d") + "]";
    w_.line("const bool inside = " + from + " < " + count(rows->count) + " && d_first + d < " +
            count(rows->width) + ";");
    w_.line(std::string("tiles.") + (rows->is_kept ? "left" : "right") + "[d][r] = inside ? " +
            converted(element, rows->operand->dtype, DType::f32) + " : 0.0f;");
    w_.close();
  }
  w_.line("__syncthreads();");
  w_.open_unrolled("for (int d = 0; d < 16; ++d) {");
  const std::string rows = text(tiles_.row_slots()), columns = text(tiles_.column_slots());
  w_.line("float left[" + rows + "], right[" + columns + "];");
  w_.line("for (int r = 0; r < " + rows + "; ++r) left[r] = tiles.left[d][row + 16 * r];");
  w_.line("for (int n = 0; n < " + columns + "; ++n) right[n] = tiles.right[d][column + 16 * n];");
  w_.open("for (int r = 0; r < " + rows + "; ++r) {");
  w_.line("for (int n = 0; n < " + columns + "; ++n) " + scores + "[r][n] += left[r] * right[n];");
  w_.close();
  w_.close();
  w_.line("__syncthreads();");
  w_.close();
}

void AttentionWriter::write_accumulation(const std::string& sum, const std::string& weights,
                                         const AttentionRows& b) {
  if (tiles_.by_mma) {
    // A thread's elements of the scores are those that it needs for the left operand.
    w_.open_unrolled("for (int k = 0; k < " + text(tiles_.columns / 16) + "; ++k) {");
    w_.line("u32 left[" + text(tiles_.each) + "][4];");
    w_.open_unrolled("for (int e = 0; e < " + text(4 * tiles_.each) + "; ++e) {");
    w_.line("const float(&pair)[4] = " + weights + "[e / 4][2 * k + e % 4 / 2];");
    w_.line("left[e / 4][e % 4] = packed_" + element_ + "(pair[e % 2 * 2], pair[e % 2 * 2 + 1]);");
    w_.close();
    w_.open_unrolled(loop("int", "j", "0", text(padded(b.width) / 8), "2"));
    w_.line("u32 right[2][2];");
    w_.line("load_matrices_turned(right[0], right[1], &tiles." + b.name +
            "[stage][16 * k + lane % 16u][8 * j + lane / 16u * 8u]);");
    write_multiply_add(sum);
    w_.close();
    w_.close();
    return;
  }
  open_rows();
  open_columns(tiles_.column_slots());
  w_.line("tiles.weights[" + row("r") + "][" + column("n") + "] = " + at(weights, "r", "n") + ";");
  w_.close();
  w_.close();
  w_.open("for (u32 k_first = 0; k_first < " + count(tiles_.columns) + "; k_first += 16u) {");
  w_.open(loop("u32", "t", "threadIdx.x", count(16 * b.width), count(tiles_.threads)));
  w_.line("const u32 k = " + divided("t", b.width) + ", c = " + modulo("t", b.width) + ";");
  w_.line("tiles.rows[k][c] = first + k_first + k < " + count(b.count) + " ? " +
          converted(b.name + "_at[" + place(b, "first + k_first + k", "c") + "]", b.operand->dtype,
                    DType::f32) +
          " : 0.0f;");
  w_.close();
  w_.line("__syncthreads();");
  w_.open("for (int k = 0; k < 16; ++k) {");
  const std::string rows = text(tiles_.row_slots());
  const std::int64_t slots = tiles_.slots_of(b.width);
  w_.line("float left[" + rows + "];");
  w_.line("for (int r = 0; r < " + rows + "; ++r) left[r] = tiles.weights[" + row("r") +
          "][k_first + k];");
  open_columns(slots);
  if (slots * side != b.width) w_.line("if (" + column("n") + " >= " + count(b.width) + ") break;");
  w_.line("const float right = tiles.rows[k][" + column("n") + "];");
  w_.line("for (int r = 0; r < " + rows + "; ++r) " + sum + "[r][n] += left[r] * right;");
  w_.close();
  w_.close();
  w_.line("__syncthreads();");
  w_.close();
}

void AttentionWriter::write_result(const AttentionRows& to, const std::string& sum,
                                   const std::string& factor) {
  const std::int64_t slots = tiles_.slots_of(to.width);
  const bool is_ragged = tiles_.by_mma ? padded(to.width) != to.width : slots * side != to.width;
  bool has_pairs = tiles_.by_mma && is_one(to.width_step) && ask_equal(to.operand->offset % 2, 0);
  for (std::size_t a = 0; a + 2 < to.operand->strides.size(); ++a)
    has_pairs = has_pairs && ask_equal(to.operand->strides[a] % 2, 0);
  const DType dtype = to.operand->dtype;
  open_rows();
  w_.line("if (kept_first + " + row("r") + " >= " + count(to.count) + ") continue;");
  const std::string by = factor.empty() ? "" : " * " + factor;
  w_.open_unrolled("for (int n = 0; n < " + text(slots) + (has_pairs ? "; n += 2) {" : "; ++n) {"));
  if (is_ragged) w_.line("if (" + column("n") + " >= " + count(to.width) + ") break;");
  const std::string where = place(to, "kept_first + " + row("r"), column("n"));
  if (has_pairs) {
    w_.line("const float pair[2] = {" + at(sum, "r", "n") + by + ", " + at(sum, "r", "(n + 1)") +
            by + "};");
    w_.line("store(" + to.name + "_at + " + where + ", pair);");
  } else {
    w_.line(to.name + "_at[" + where +
            "] = " + converted(at(sum, "r", "n") + by, DType::f32, dtype) + ";");
  }
  w_.close();
  w_.close();
}

}  // namespace ein::codegen
