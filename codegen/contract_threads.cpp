// Contractions in any numbers, by threads alone: tiles of both operands come into shared memory,
// two of each, and a thread has some elements of the result, neighbours in groups of 16 bytes.
#include <algorithm>

#include "codegen/contract.hpp"
#include "codegen/expression.hpp"

namespace ein::codegen {
namespace {

constexpr std::int64_t side = 16;  // threads along each side of a tile, and depths of one

class ThreadsWriter {
 public:
  ThreadsWriter(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                const Context& context)
      : nest_(nest),
        roles_(roles),
        tile_(tile),
        type_(element_type(nest.compute)),
        m_each_(tile.m / side),
        n_each_(tile.n / side),
        w_("contract_" + std::string(name(nest.inputs[roles.a].dtype)) + context.suffix,
           block_threads, has_narrow_indices(nest, roles), 2) {}

  KernelSource write() {
    const ContractSide left{roles_.a, "a_tile", "a", "m", roles_.rows, roles_.m, tile_.m};
    const ContractSide right{roles_.b, "b_tile", "b", "n", roles_.columns, roles_.n, tile_.n};
    declare_operands(w_, nest_, roles_, true);
    for (const ContractSide* s : {&left, &right}) {
      // Some columns more spread the elements of a column over the banks.
      w_.line("alignas(16) __shared__ Shared<" + type_ + "> " + s->tile + "[2][" +
              std::to_string(side) + "][" + std::to_string(s->length + together(*s)) + "];");
    }
    w_.block_number("block");
    write_tile_origin(w_, nest_, roles_, tile_, "block");
    write_places(w_, nest_, roles_, left, right);
    w_.line("const u32 across = threadIdx.x % 16u, down = threadIdx.x / 16u;");
    const std::string m_each = std::to_string(m_each_), n_each = std::to_string(n_each_),
                      depth = count(roles_.k);
    w_.line(type_ + " sum[" + m_each + "][" + n_each + "] = {}, a_next[" + m_each + "], b_next[" +
            n_each + "];");
    w_.open("const auto fetch = [&](" + w_.unsigned_type() + " k_first) {");
    write_fetch(left);
    write_fetch(right);
    w_.close("};");
    w_.open("const auto keep = [&](u32 stage) {");
    write_keep(left);
    write_keep(right);
    w_.close("};");
    w_.line("fetch(0);");
    w_.line("keep(0);");
    w_.line("__syncthreads();");
    w_.line("u32 stage = 0;");
    w_.open(loop(w_.unsigned_type(), "k_first", "0", depth, "16u"));
    // The next tiles are on their way while these are multiplied; with comparisons, too, threads
    // would have too few registers for that.
    const std::string fetch_next = "if (k_first + 16u < " + depth + ") fetch(k_first + 16u);";
    const bool is_ahead = fills(left) && fills(right);
    if (is_ahead) w_.line(fetch_next);
    w_.open_unrolled("for (int k = 0; k < 16; ++k) {");
    w_.line(type_ + " left[" + m_each + "], right[" + n_each + "];");
    w_.line("for (int i = 0; i < " + m_each + "; ++i) left[i] = a_tile[stage][k][" +
            place_of("down", "i", left) + "];");
    w_.line("for (int j = 0; j < " + n_each + "; ++j) right[j] = b_tile[stage][k][" +
            place_of("across", "j", right) + "];");
    w_.open("for (int i = 0; i < " + m_each + "; ++i) {");
    w_.line("for (int j = 0; j < " + n_each + "; ++j) sum[i][j] " +
            (is_wrapped(nest_.compute) ? "= plus(sum[i][j], times(left[i], right[j]));"
                                       : "+= left[i] * right[j];"));
    w_.close();
    w_.close();
    w_.line("stage ^= 1u;");
    if (!is_ahead) w_.line(fetch_next);
    w_.line("if (k_first + 16u < " + depth + ") keep(stage);");
    w_.line("__syncthreads();");
    w_.close();
    write_result(left, right);
    return w_.finish(tile_.count(roles_));
  }

 private:
  /// Whether there is nothing outside of the operand in any of its tiles.
  bool fills(const ContractSide& s) const {
    return always_equal(s.count % s.length, 0) && always_equal(roles_.k % std::int64_t{side}, 0);
  }
  /// Neighbours that a thread has, which it reads at once.
  std::int64_t together(const ContractSide& s) const {
    return std::min<std::int64_t>(s.length / side,
                                  16 / static_cast<std::int64_t>(size_of(nest_.compute)));
  }
  /// Where row or column `each` of a thread lies in a tile.
  std::string place_of(const std::string& thread, const std::string& each,
                       const ContractSide& s) const {
    const std::string near = std::to_string(together(s)), step = std::to_string(side * together(s));
    if (together(s) == 1) return thread + " + 16 * " + each;
    return thread + " * " + near + " + " + each + " / " + near + " * " + step + " + " + each +
           " % " + near;
  }

  /// Declares where element p of a thread's part of a tile lies.
  void write_element_of_tile(const ContractSide& s) {
    const std::string length = count(s.length);
    w_.line("const u32 t = threadIdx.x + " + count(block_threads) + " * p;");
    w_.line(is_along_depth(nest_, roles_, s.input)
                ? "const u32 k = t % 16u, " + s.name + " = t / 16u;"
                : "const u32 " + s.name + " = t % " + length + ", k = t / " + length + ";");
  }
  void open_elements(const ContractSide& s) {
    w_.open_unrolled("for (u32 p = 0; p < " + count(s.length / side) + "; ++p) {");
    write_element_of_tile(s);
  }
  void write_fetch(const ContractSide& s) {
    open_elements(s);
    const std::string at = s.name + "_first + " + s.name;
    const std::string element = converted(s.base + "[" + s.place(at, "k_first + k") + "]",
                                          nest_.inputs[s.input].dtype, nest_.compute);
    if (!fills(s))
      w_.line("const bool inside = " + at + " < " + count(s.count) + " && k_first + k < " +
              count(roles_.k) + ";");
    w_.line(s.base + "_next[p] = " +
            (fills(s) ? element : "inside ? " + element + " : " + literal(nest_.compute, 0, 0)) +
            ";");
    w_.close();
  }
  void write_keep(const ContractSide& s) {
    open_elements(s);
    w_.line(s.tile + "[stage][k][" + s.name + "] = " + s.base + "_next[p];");
    w_.close();
  }

  void write_result(const ContractSide& left, const ContractSide& right) {
    w_.open("for (int i = 0; i < " + std::to_string(m_each_) + "; ++i) {");
    w_.line("const " + w_.unsigned_type() + " m = m_first + " + place_of("down", "i", left) + ";");
    w_.line("if (m >= " + count(roles_.m) + ") break;");
    w_.indices(nest_, roles_.rows, "m");
    w_.open("for (int j = 0; j < " + std::to_string(n_each_) + "; ++j) {");
    w_.line("const " + w_.unsigned_type() + " n = n_first + " + place_of("across", "j", right) +
            ";");
    w_.line("if (n >= " + count(roles_.n) + ") break;");
    w_.indices(nest_, roles_.columns, "n");
    write_element(w_, nest_, "sum[i][j]");
    w_.close();
    w_.close();
  }

  const LoopNest& nest_;
  const ContractRoles& roles_;
  const Tile& tile_;
  std::string type_;
  std::int64_t m_each_, n_each_;  // rows and columns of a thread
  Writer w_;
};

}  // namespace

KernelSource emit_contract_threads(const LoopNest& nest, const ContractRoles& roles,
                                   const Tile& tile, const Context& context) {
  return ThreadsWriter(nest, roles, tile, context).write();
}

}  // namespace ein::codegen
