// Contractions in any numbers, by threads alone: tiles of both operands come into shared memory,
// and a thread has some elements of the result.
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
      // A column more spreads the elements of a column over the banks.
      w_.line("__shared__ Shared<" + type_ + "> " + s->tile + "[" + std::to_string(side) + "][" +
              std::to_string(s->length + 1) + "];");
    }
    w_.block_number("block");
    write_tile_origin(w_, nest_, roles_, tile_, "block");
    write_places(w_, nest_, roles_, left, right);
    w_.line("const u32 across = threadIdx.x % 16u, down = threadIdx.x / 16u;");
    const std::string m_each = std::to_string(m_each_), n_each = std::to_string(n_each_);
    w_.line(type_ + " sum[" + m_each + "][" + n_each + "] = {};");
    w_.open(loop(w_.unsigned_type(), "k_first", "0", count(roles_.k), "16u"));
    write_tile(left);
    write_tile(right);
    w_.line("__syncthreads();");
    w_.open_unrolled("for (int k = 0; k < 16; ++k) {");
    w_.line(type_ + " left[" + m_each + "], right[" + n_each + "];");
    w_.line("for (int i = 0; i < " + m_each + "; ++i) left[i] = a_tile[k][down + 16 * i];");
    w_.line("for (int j = 0; j < " + n_each + "; ++j) right[j] = b_tile[k][across + 16 * j];");
    w_.open("for (int i = 0; i < " + m_each + "; ++i) {");
    w_.line("for (int j = 0; j < " + n_each + "; ++j) sum[i][j] " +
            (is_wrapped(nest_.compute) ? "= plus(sum[i][j], times(left[i], right[j]));"
                                       : "+= left[i] * right[j];"));
    w_.close();
    w_.close();
    w_.line("__syncthreads();");
    w_.close();
    write_result();
    return w_.finish(tile_.count(roles_));
  }

 private:
  void write_tile(const ContractSide& s) {
    const std::string length = count(s.length);
    w_.open_unrolled(loop("u32", "t", "threadIdx.x", "16u * " + length, count(block_threads)));
    w_.line(is_along_depth(nest_, roles_, s.input)
                ? "const u32 k = t % 16u, " + s.name + " = t / 16u;"
                : "const u32 " + s.name + " = t % " + length + ", k = t / " + length + ";");
    const std::string at = s.name + "_first + " + s.name;
    w_.line("const bool inside = " + at + " < " + count(s.count) + " && k_first + k < " +
            count(roles_.k) + ";");
    const std::string element = s.base + "[" + s.place(at, "k_first + k") + "]";
    w_.line(s.tile + "[k][" + s.name + "] = inside ? " +
            converted(element, nest_.inputs[s.input].dtype, nest_.compute) + " : " +
            literal(nest_.compute, 0, 0) + ";");
    w_.close();
  }

  void write_result() {
    w_.open("for (int i = 0; i < " + std::to_string(m_each_) + "; ++i) {");
    w_.line("const " + w_.unsigned_type() + " m = m_first + down + 16 * i;");
    w_.line("if (m >= " + count(roles_.m) + ") break;");
    w_.indices(nest_, roles_.rows, "m");
    w_.open("for (int j = 0; j < " + std::to_string(n_each_) + "; ++j) {");
    w_.line("const " + w_.unsigned_type() + " n = n_first + across + 16 * j;");
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
