// Contractions of 16-bit floats by tensor cores (mma.sync, from sm_80 on), summed in f32. Tiles of
// both operands come into shared memory while the tiles before them are multiplied. A tile keeps
// the order of its operand: ldmatrix turns what lies the other way round.
#include "codegen/contract.hpp"
#include "codegen/elements.hpp"

namespace ein::codegen {
namespace {

constexpr std::int64_t depth = 32;  // of a tile
constexpr std::int64_t pack = 8;    // elements that are copied at once: 16 bytes
constexpr std::int64_t warps_m = 2, warps_n = 4;
static_assert(32 * warps_m * warps_n == block_threads);

class MmaWriter {
 public:
  /// A warp has 16 rows and 8 columns times `each`.
  MmaWriter(const LoopNest& nest, const ContractRoles& roles, const Context& context,
            std::int64_t each)
      : nest_(nest),
        roles_(roles),
        each_(each),
        element_(element_type(nest.inputs[0].dtype)),
        left_{0, "a_tile", "a", "m", roles.rows, roles.m, 16 * each * warps_m},
        right_{1, "b_tile", "b", "n", roles.columns, roles.n, 8 * each * warps_n},
        w_("contract_mma_" + std::string(name(nest.inputs[0].dtype)) + context.suffix,
           block_threads, is_narrow(nest), 2) {}

  KernelSource write() {
    w_.input(nest_, 0, element_);
    w_.input(nest_, 1, element_);
    w_.output(nest_, element_type(nest_.output.dtype));
    for (const ContractSide* s : {&left_, &right_}) {
      // Eight more elements to a row put the rows that ldmatrix reads together into different
      // banks.
      const bool along = is_along_depth(nest_, roles_, *s);
      w_.line("__shared__ __align__(16) Shared<" + element_ + "> " + s->tile + "[2][" +
              std::to_string(along ? s->length : depth) + "][" +
              std::to_string((along ? depth : s->length) + pack) + "];");
    }
    write_origins(w_, nest_, roles_, left_, right_);
    const std::string type = w_.unsigned_type(), k = std::to_string(roles_.k) + "u",
                      step = std::to_string(depth) + "u";
    w_.open("const auto fetch = [&](u32 stage, " + type + " k_first) {");
    write_fetch(left_);
    write_fetch(right_);
    w_.close("};");
    w_.line("const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;");
    w_.line("const u32 warp_m = warp % 2u * " + std::to_string(16 * each_) +
            "u, warp_n = warp / 2u * " + std::to_string(8 * each_) + "u;");
    const std::string each = std::to_string(each_);
    w_.line("float sum[" + each + "][" + each + "][4] = {};");
    w_.line("fetch(0, 0);");
    w_.line("u32 stage = 0;");
    w_.open("for (" + type + " k_first = 0; k_first < " + k + "; k_first += " + step + ") {");
    w_.line("wait_for_copies();");
    w_.line("__syncthreads();");
    w_.line("if (k_first + " + step + " < " + k + ") fetch(stage ^ 1, k_first + " + step + ");");
    w_.line("#pragma unroll");
    w_.open("for (u32 k = 0; k < " + step + "; k += 16u) {");
    w_.line("u32 left[" + each + "][4], right[" + each + "][2];");
    w_.line("#pragma unroll");
    w_.line("for (int i = 0; i < " + each + "; ++i) " + load_left());
    w_.line("#pragma unroll");
    w_.line("for (int j = 0; j < " + each + "; j += 2) " + load_right());
    w_.line("#pragma unroll");
    w_.open("for (int i = 0; i < " + each + "; ++i) {");
    w_.line("#pragma unroll");
    w_.line("for (int j = 0; j < " + each + "; ++j) multiply_add_" + element_ +
            "(sum[i][j], left[i], right[j]);");
    w_.close();
    w_.close();
    w_.line("stage ^= 1;");
    w_.close();
    write_result();
    return w_.finish(roles_.batches * ceil_div(roles_.m, left_.length) *
                     ceil_div(roles_.n, right_.length));
  }

 private:
  /// Whether an operand is made of whole aligned packs.
  bool has_packs(const ContractSide& s) const {
    const LoopNest::Operand& operand = nest_.inputs[s.input];
    const AxisList& inner = is_along_depth(nest_, roles_, s) ? roles_.depth : s.axes;
    if (inner.empty() || operand.strides[inner.back()] != 1 ||
        nest_.axes[inner.back()].size % pack != 0)
      return false;
    if (operand.offset % pack != 0) return false;
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      if (a != inner.back() && operand.strides[a] % pack != 0) return false;
    }
    return true;
  }

  void write_fetch(const ContractSide& s) {
    const bool along = is_along_depth(nest_, roles_, s), packs = has_packs(s);
    const std::int64_t width = packs ? pack : 1, row = (along ? depth : s.length) / width;
    const std::string inner = along ? "k" : s.name, outer = along ? s.name : "k";
    w_.line("#pragma unroll");
    w_.open("for (u32 t = threadIdx.x; t < " + std::to_string(depth * s.length / width) +
            "u; t += " + std::to_string(block_threads) + "u) {");
    w_.line("const u32 " + inner + " = " + times(modulo("t", row), width) + ", " + outer + " = " +
            divided("t", row) + ";");
    const std::string at = s.name + "_first + " + s.name;
    w_.line("const bool inside = " + at + " < " + std::to_string(s.count) + "u && k_first + k < " +
            std::to_string(roles_.k) + "u;");
    const std::string to = s.tile + "[stage][" + outer + "][" + inner + "]",
                      from = s.place(at, "k_first + k");
    if (packs) {
      w_.line("copy_async(&" + to + ", inside ? " + s.base + " + " + from + " : " + s.base +
              ", inside);");
    } else {
      w_.line(to + " = inside ? " + s.base + "[" + from + "] : " + element_ + "{0};");
    }
    w_.close();
  }

  /// Four 8 × 8 matrices: rows 0 and 8 of depths 0, then of depths 8.
  std::string load_left() const {
    if (is_along_depth(nest_, roles_, left_)) {
      return "load_matrices(left[i], &a_tile[stage][warp_m + 16 * i + lane % 16u][k + lane / 16u * "
             "8u]);";
    }
    return "load_matrices_turned(left[i], &a_tile[stage][k + lane % 8u + lane / 16u * 8u][warp_m + "
           "16 * i + lane / 8u % 2u * 8u]);";
  }
  /// Four: depths 0 and 8 of columns 0, then of columns 8.
  std::string load_right() const {
    if (is_along_depth(nest_, roles_, right_)) {
      return "load_matrices(right[j], right[j + 1], &b_tile[stage][warp_n + 8 * j + lane % 8u + "
             "lane / 16u * 8u][k + lane / 8u % 2u * 8u]);";
    }
    return "load_matrices_turned(right[j], right[j + 1], &b_tile[stage][k + lane % 16u][warp_n + 8 "
           "* j + lane / 16u * 8u]);";
  }

  void write_result() {
    const std::string each = std::to_string(each_), type = w_.unsigned_type();
    w_.line("#pragma unroll");
    w_.open("for (int e = 0; e < " + std::to_string(4 * each_ * each_) + "; ++e) {");
    w_.line("const int i = e / " + std::to_string(4 * each_) + ", j = e / 4 % " + each +
            ", c = e % 4;");
    w_.line("const " + type + " m = m_first + warp_m + 16 * i + lane / 4u + c / 2 * 8;");
    w_.line("const " + type + " n = n_first + warp_n + 8 * j + lane % 4u * 2u + c % 2;");
    w_.line("if (m >= " + std::to_string(roles_.m) + "u || n >= " + std::to_string(roles_.n) +
            "u) continue;");
    w_.indices(nest_, roles_.rows, "m");
    w_.indices(nest_, roles_.columns, "n");
    w_.line("y[" + w_.place(nest_.output) +
            "] = " + converted("sum[i][j][c]", nest_.compute, nest_.output.dtype) + ";");
    w_.close();
  }

  const LoopNest& nest_;
  const ContractRoles& roles_;
  std::int64_t each_;
  std::string element_;
  ContractSide left_, right_;
  Writer w_;
};

}  // namespace

Kernels emit_contract_mma(const LoopNest& nest, const ContractRoles& roles,
                          const Context& context) {
  const DType dtype = nest.inputs[0].dtype;
  const bool has_instruction = context.target.sm >= 80 && nest.compute == DType::f32 &&
                               nest.inputs[1].dtype == dtype &&
                               (dtype == DType::f16 || dtype == DType::bf16);
  constexpr std::int64_t least = 16;
  if (!has_instruction || roles.m < least || roles.n < least || roles.k < least) return {};
  // Large tiles, where they leave no multiprocessor idle.
  const bool large = roles.batches * ceil_div(roles.m, 128) * ceil_div(roles.n, 128) >= 132;
  return {MmaWriter(nest, roles, context, large ? 4 : 2).write()};
}

}  // namespace ein::codegen
