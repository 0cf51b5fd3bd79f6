// Contractions of two operands, as they lie, in tiles through shared memory. A block has a tile of
// the result, a thread some elements of it.
#include "codegen/contract.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <optional>

#include "codegen/elements.hpp"

namespace ein::codegen {
namespace {

ContractRoles roles_of(const LoopNest& nest) {
  ContractRoles roles;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const bool in_a = nest.inputs[0].strides[a] != 0, in_b = nest.inputs[1].strides[a] != 0;
    (nest.axes[a].reduced ? roles.depth
     : in_a == in_b       ? roles.batch
     : in_a               ? roles.rows
                          : roles.columns)
        .push_back(a);
  }
  // In the order in which the result, or the first operand, has them.
  roles.batch = by_stride(std::move(roles.batch), nest.output);
  roles.rows = by_stride(std::move(roles.rows), nest.output);
  roles.columns = by_stride(std::move(roles.columns), nest.output);
  roles.depth = by_stride(std::move(roles.depth), nest.inputs[0]);
  roles.batches = size_of_axes(nest, roles.batch);
  roles.m = size_of_axes(nest, roles.rows);
  roles.n = size_of_axes(nest, roles.columns);
  roles.k = size_of_axes(nest, roles.depth);
  return roles;
}

void write_place(Writer& w, const LoopNest& nest, const std::string& function,
                 const std::string& argument, const AxisList& axes,
                 const LoopNest::Operand& operand) {
  w.open("const auto " + function + " = [](" + w.unsigned_type() + " " + argument + ") -> " +
         w.index_type() + " {");
  w.indices(nest, axes, argument);
  w.line("return " + w.place(operand, axes) + ";");
  w.close("};");
}

constexpr std::int64_t side = 16;  // threads along each side of a tile, and depths of one

class ContractWriter {
 public:
  ContractWriter(const LoopNest& nest, const ContractRoles& roles, const Context& context)
      : nest_(nest),
        roles_(roles),
        type_(element_type(nest.compute)),
        m_each_(per_thread(roles.m)),
        n_each_(per_thread(roles.n)),
        w_("contract_" + std::string(name(nest.inputs[0].dtype)) + context.suffix, block_threads,
           is_narrow(nest), 2) {
    // Small results are cut finer, for the sake of more blocks, and eight times eight long numbers
    // are more than a thread's registers hold.
    if (size_of(nest.compute) == 8 ||
        roles.batches * ceil_div(roles.m, side * m_each_) * ceil_div(roles.n, side * n_each_) <
            132) {
      m_each_ = std::min<std::int64_t>(m_each_, 4);
      n_each_ = std::min<std::int64_t>(n_each_, 4);
    }
  }

  KernelSource write() {
    const ContractSide left{0, "a_tile", "a", "m", roles_.rows, roles_.m, side * m_each_};
    const ContractSide right{1, "b_tile", "b", "n", roles_.columns, roles_.n, side * n_each_};
    w_.input(nest_, 0, element_type(nest_.inputs[0].dtype));
    w_.input(nest_, 1, element_type(nest_.inputs[1].dtype));
    w_.output(nest_, element_type(nest_.output.dtype));
    for (const ContractSide* s : {&left, &right}) {
      // A column more spreads the elements of a column over the banks.
      w_.line("__shared__ Shared<" + type_ + "> " + s->tile + "[" + std::to_string(side) + "][" +
              std::to_string(s->length + 1) + "];");
    }
    write_origins(w_, nest_, roles_, left, right);
    w_.line("const u32 across = threadIdx.x % 16u, down = threadIdx.x / 16u;");
    const std::string m_each = std::to_string(m_each_), n_each = std::to_string(n_each_);
    w_.line(type_ + " sum[" + m_each + "][" + n_each + "] = {};");
    w_.open("for (" + w_.unsigned_type() + " k_first = 0; k_first < " + std::to_string(roles_.k) +
            "u; k_first += 16u) {");
    write_tile(left);
    write_tile(right);
    w_.line("__syncthreads();");
    w_.line("#pragma unroll");
    w_.open("for (int k = 0; k < 16; ++k) {");
    w_.line(type_ + " left[" + m_each + "], right[" + n_each + "];");
    w_.line("for (int i = 0; i < " + m_each + "; ++i) left[i] = a_tile[k][down + 16 * i];");
    w_.line("for (int j = 0; j < " + n_each + "; ++j) right[j] = b_tile[k][across + 16 * j];");
    w_.open("for (int i = 0; i < " + m_each + "; ++i) {");
    w_.line("for (int j = 0; j < " + n_each + "; ++j) sum[i][j] " +
            (nest_.compute == DType::i64 ? "= plus(sum[i][j], times(left[i], right[j]));"
                                         : "+= left[i] * right[j];"));
    w_.close();
    w_.close();
    w_.line("__syncthreads();");
    w_.close();
    write_result();
    return w_.finish(roles_.batches * ceil_div(roles_.m, left.length) *
                     ceil_div(roles_.n, right.length));
  }

 private:
  static std::int64_t per_thread(std::int64_t count) {
    return count > 512 ? 8 : count > 32 ? 4 : count > 16 ? 2 : 1;
  }

  void write_tile(const ContractSide& s) {
    const std::string length = std::to_string(s.length) + "u";
    w_.line("#pragma unroll");
    w_.open("for (u32 t = threadIdx.x; t < 16u * " + length +
            "; t += " + std::to_string(block_threads) + "u) {");
    w_.line(is_along_depth(nest_, roles_, s)
                ? "const u32 k = t % 16u, " + s.name + " = t / 16u;"
                : "const u32 " + s.name + " = t % " + length + ", k = t / " + length + ";");
    const std::string at = s.name + "_first + " + s.name;
    w_.line("const bool inside = " + at + " < " + std::to_string(s.count) + "u && k_first + k < " +
            std::to_string(roles_.k) + "u;");
    const std::string element = s.base + "[" + s.place(at, "k_first + k") + "]";
    w_.line(s.tile + "[k][" + s.name + "] = inside ? " +
            converted(element, nest_.inputs[s.input].dtype, nest_.compute) + " : " +
            literal(nest_.compute, 0, 0) + ";");
    w_.close();
  }

  void write_result() {
    w_.open("for (int i = 0; i < " + std::to_string(m_each_) + "; ++i) {");
    w_.line("const " + w_.unsigned_type() + " m = m_first + down + 16 * i;");
    w_.line("if (m >= " + std::to_string(roles_.m) + "u) break;");
    w_.indices(nest_, roles_.rows, "m");
    w_.open("for (int j = 0; j < " + std::to_string(n_each_) + "; ++j) {");
    w_.line("const " + w_.unsigned_type() + " n = n_first + across + 16 * j;");
    w_.line("if (n >= " + std::to_string(roles_.n) + "u) break;");
    w_.indices(nest_, roles_.columns, "n");
    w_.line("y[" + w_.place(nest_.output) +
            "] = " + converted("sum[i][j]", nest_.compute, nest_.output.dtype) + ";");
    w_.close();
    w_.close();
  }

  const LoopNest& nest_;
  const ContractRoles& roles_;
  std::string type_;
  std::int64_t m_each_, n_each_;  // rows and columns of a thread
  Writer w_;
};

/// A large sum in pieces of which each makes a result of its own, in the workspace, and the sum of
/// those.
struct Pieces {
  LoopNest products, sum;
  std::size_t bytes = 0;  // of workspace
};

/// Cuts the depth of a contraction whose result has too few tiles to keep a device busy; none if
/// there is nothing to gain, or no cut into equal pieces.
std::optional<Pieces> cut_depth(const LoopNest& nest, const ContractRoles& roles) {
  constexpr std::int64_t tile = 64, busy_blocks = 264, least_depth = 256;
  const std::int64_t blocks = roles.batches * ceil_div(roles.m, tile) * ceil_div(roles.n, tile);
  const std::int64_t axis_size = roles.depth.empty() ? 1 : nest.axes[roles.depth.front()].size;
  std::int64_t pieces = std::min({busy_blocks / blocks, roles.k / least_depth, axis_size});
  while (pieces > 1 && axis_size % pieces != 0) --pieces;
  if (pieces <= 1) return std::nullopt;

  Pieces cut{nest, {}, 0};
  const std::size_t axis = roles.depth.front(), piece = nest.axes.size();
  const std::int64_t length = axis_size / pieces;
  cut.products.axes[axis].size = length;
  cut.products.axes.push_back({"piece", pieces});
  for (LoopNest::Operand& input : cut.products.inputs)
    input.strides.push_back(input.strides[axis] * length);
  cut.products.output = {.buffer = workspace_buffer,
                         .dtype = nest.compute,
                         .strides = std::vector<std::int64_t>(piece + 1, 0)};
  AxisList kept;
  for (const AxisList* role : {&roles.batch, &roles.rows, &roles.columns})
    kept.insert(kept.end(), role->begin(), role->end());
  std::int64_t stride = 1;
  kept = by_stride(std::move(kept), nest.output);
  kept.insert(kept.begin(), piece);
  for (std::size_t i = kept.size(); i-- > 0;) {
    cut.products.output.strides[kept[i]] = stride;
    stride *= cut.products.axes[kept[i]].size;
  }
  cut.bytes = static_cast<std::size_t>(stride) * size_of(nest.compute);

  cut.sum = cut.products;
  cut.sum.axes[axis].size = 1;
  for (std::size_t a : roles.depth) cut.sum.axes[a].size = 1;
  cut.sum.axes[piece].reduced = true;
  cut.sum.inputs = {cut.products.output};
  cut.sum.body = Ex::input(0);
  cut.sum.output = nest.output;
  cut.sum.output.strides.push_back(0);
  simplify(cut.sum);
  return cut;
}

}  // namespace

void write_origins(Writer& w, const LoopNest& nest, const ContractRoles& roles,
                   const ContractSide& left, const ContractSide& right) {
  for (const ContractSide* s : {&left, &right}) {
    write_place(w, nest, s->base + "_" + s->name, s->name, s->axes, nest.inputs[s->input]);
    write_place(w, nest, s->base + "_k", "k", roles.depth, nest.inputs[s->input]);
  }
  const std::int64_t m_tiles = ceil_div(roles.m, left.length),
                     n_tiles = ceil_div(roles.n, right.length);
  const std::string type = "const " + w.unsigned_type();
  w.block_number("block");
  w.line(type + " n_first = " + times(modulo("block", n_tiles), right.length) + ";");
  w.line(type + " m_first = " + times(modulo(divided("block", n_tiles), m_tiles), left.length) +
         ";");
  w.indices(nest, roles.batch, divided("block", m_tiles * n_tiles));
  for (const ContractSide* s : {&left, &right}) {
    w.line("const " + element_type(nest.inputs[s->input].dtype) + "* const " + s->base + " = " +
           added(input_name(s->input), w.place(nest.inputs[s->input], roles.batch)) + ";");
  }
}

bool is_along_depth(const LoopNest& nest, const ContractRoles& roles, const ContractSide& s) {
  const auto step = [&](const AxisList& axes) {
    return axes.empty()
               ? INT64_MAX
               : std::max<std::int64_t>(1, std::abs(nest.inputs[s.input].strides[axes.back()]));
  };
  return step(roles.depth) < step(s.axes);
}

namespace {

Kernels emit_product(const LoopNest& nest, const ContractRoles& roles, const Context& context) {
  Kernels kernels = emit_contract_mma(nest, roles, context);
  if (kernels.empty()) kernels.push_back(ContractWriter(nest, roles, context).write());
  return kernels;
}

}  // namespace

Kernels emit_contract(const LoopNest& nest, const Context& context) {
  const ContractRoles roles = roles_of(nest);
  // Few rows or columns are read no more often by a reduction.
  constexpr std::int64_t few = 4;
  const bool is_product = nest.body.steps[0].which == 0 && nest.body.steps[1].which == 1;
  if (!is_product || roles.m < few || roles.n < few || roles.k == 0)
    return emit_reduce(nest, context);
  if (const std::optional<Pieces> cut = cut_depth(nest, roles)) {
    Kernels kernels = emit_product(cut->products, roles_of(cut->products), context);
    kernels.front().workspace_bytes = cut->bytes;
    Kernels sum = emit_reduce(cut->sum, context);
    assert(kernels.size() == 1 && sum.size() == 1);  // neither needs the workspace for itself
    kernels.push_back(std::move(sum.front()));
    return kernels;
  }
  return emit_product(nest, roles, context);
}

}  // namespace ein::codegen
