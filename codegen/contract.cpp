// Contractions of two operands, as they lie, in tiles of the result.
#include "codegen/contract.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>

namespace ein::codegen {
namespace {

ContractRoles roles_of(const LoopNest& nest) {
  ContractRoles roles;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const bool in_a = !always_equal(nest.inputs[0].strides[a], 0),
               in_b = !always_equal(nest.inputs[1].strides[a], 0);
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
  const auto step = [&](const AxisList& axes) {
    return axes.empty() ? Size(INT64_MAX) : magnitude(nest.output.strides[axes.back()]);
  };
  // Neighbouring threads store neighbouring columns.
  if (step(roles.rows) < step(roles.columns)) {
    std::swap(roles.rows, roles.columns);
    std::swap(roles.a, roles.b);
  }
  roles.depth = by_stride(std::move(roles.depth), nest.inputs[roles.a]);
  roles.batches = size_of_axes(nest, roles.batch);
  roles.m = size_of_axes(nest, roles.rows);
  roles.n = size_of_axes(nest, roles.columns);
  roles.k = size_of_axes(nest, roles.depth);
  return roles;
}

void write_place(Writer& w, const LoopNest& nest, const std::string& function,
                 const std::string& argument, const AxisList& axes,
                 const LoopNest::Operand& operand) {
  w.open("const auto " + function + " = [&](" + w.unsigned_type() + " " + argument + ") -> " +
         w.index_type() + " {");
  w.indices(nest, axes, argument);
  w.line("return " + w.place(operand, axes) + ";");
  w.close("};");
}

/// A large sum in pieces of which each makes a result of its own, in the workspace, and the sum of
/// those.
struct Pieces {
  LoopNest products, sum;
  Size bytes = 0;  // of workspace
};

Pieces cut_depth(const LoopNest& nest, const ContractRoles& roles, std::int64_t pieces) {
  Pieces cut{nest, {}, 0};
  const std::size_t axis = roles.depth.front(), piece = nest.axes.size();
  const Size length = nest.axes[axis].size / pieces;
  cut.products.axes[axis].size = length;
  cut.products.axes.push_back({"piece", pieces});
  cut.products.inputs.resize(2);
  cut.products.epilogue = {};
  for (LoopNest::Operand& input : cut.products.inputs)
    input.strides.push_back(input.strides[axis] * length);
  cut.products.output = {.buffer = workspace_buffer,
                         .dtype = nest.compute,
                         .strides = std::vector<Size>(piece + 1, 0)};
  AxisList kept;
  for (const AxisList* role : {&roles.batch, &roles.rows, &roles.columns})
    kept.insert(kept.end(), role->begin(), role->end());
  Size stride = 1;
  kept = by_stride(std::move(kept), nest.output);
  kept.insert(kept.begin(), piece);
  for (std::size_t i = kept.size(); i-- > 0;) {
    cut.products.output.strides[kept[i]] = stride;
    stride *= cut.products.axes[kept[i]].size;
  }
  cut.bytes = stride * size_of(nest.compute);

  cut.sum = cut.products;
  cut.sum.axes[axis].size = 1;
  for (std::size_t a : roles.depth) cut.sum.axes[a].size = 1;
  cut.sum.axes[piece].reduced = true;
  // The epilogue's inputs keep their numbers. It does not read the second operand.
  cut.sum.inputs = nest.inputs;
  for (LoopNest::Operand& input : cut.sum.inputs) input.strides.push_back(0);
  cut.sum.inputs[0] = cut.products.output;
  std::fill(cut.sum.inputs[1].strides.begin(), cut.sum.inputs[1].strides.end(), 0);
  cut.sum.body = Ex::input(0);
  cut.sum.epilogue = nest.epilogue;
  cut.sum.output = nest.output;
  cut.sum.output.strides.push_back(0);
  simplify(cut.sum);
  return cut;
}

KernelSource emit_product(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                          const Context& context) {
  switch (tile.by) {
    case Tile::By::wgmma:
      return emit_contract_wgmma(nest, roles, tile, context);
    case Tile::By::mma:
      return emit_contract_mma(nest, roles, tile, context);
    case Tile::By::threads:
      break;
  }
  return emit_contract_threads(nest, roles, tile, context);
}

Kernels emit_by(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                const Context& context) {
  const std::int64_t pieces = pieces_of(nest, roles, tile, context.target);
  if (pieces > 1) {
    const Pieces cut = cut_depth(nest, roles, pieces);
    const ContractRoles cut_roles = roles_of(cut.products);
    const bool fits = tile.by != Tile::By::wgmma || has_tensor_maps(cut.products, cut_roles, tile);
    if (fits) {
      Kernels kernels{emit_product(cut.products, cut_roles, tile, context)};
      kernels.front().workspace_bytes = cut.bytes;
      Kernels sum = emit_reduce(cut.sum, context);
      assert(sum.size() == 1);  // it does not need the workspace for itself
      kernels.push_back(std::move(sum.front()));
      return kernels;
    }
  }
  return {emit_product(nest, roles, tile, context)};
}

/// Whether it is better seen as a reduction: few rows or columns are read no more often by one.
bool is_reduction(const ContractRoles& roles) {
  constexpr std::int64_t few = 4;
  return roles.m < few || roles.n < few || roles.k == 0;
}

}  // namespace

bool is_contraction(const LoopNest& nest) {
  return nest.sums_products() && nest.along == LoopNest::Along::nothing && !nest.is_scatter() &&
         nest.body.steps[0].which == 0 && nest.body.steps[1].which == 1 &&
         !nest.inputs[0].is_indirect() && !nest.inputs[1].is_indirect();
}

bool has_narrow_indices(const LoopNest& nest, const ContractRoles& roles) {
  return is_narrow(std::array{roles.m, roles.n, roles.batches}) && is_narrow(std::array{roles.k}) &&
         has_narrow_places(nest);
}

bool is_along_depth(const LoopNest& nest, const ContractRoles& roles, std::size_t input) {
  const auto step = [&](const AxisList& axes) {
    return axes.empty() ? Size(INT64_MAX)
                        : std::max<Size>(1, magnitude(nest.inputs[input].strides[axes.back()]));
  };
  return step(roles.depth) < step(input == roles.a ? roles.rows : roles.columns);
}

void write_tile_origin(Writer& w, const LoopNest& nest, const ContractRoles& roles,
                       const Tile& tile, const std::string& number) {
  // Rows of tiles that are gone through column by column: what all multiprocessors work on at a
  // time is about square.
  const std::int64_t together = tile.n > tile.m ? 16 : 8;
  const Size m_tiles = ceil_div(roles.m, tile.m), n_tiles = ceil_div(roles.n, tile.n);
  const std::string type = "const " + w.unsigned_type();
  if (m_tiles <= together) {
    w.line(type + " m_first = " + times(modulo(number, m_tiles), tile.m) + ";");
    w.line(type + " n_first = " + times(modulo(divided(number, m_tiles), n_tiles), tile.n) + ";");
  } else {
    const Size group = together * n_tiles, rest = m_tiles % together;
    w.line(type + " tile = " + modulo(number, m_tiles * n_tiles) +
           ", group = " + divided("tile", group) + ";");
    std::string rows = count(together);
    if (!always_equal(rest, 0)) {
      w.line("const u32 rows = group < " + count(m_tiles / together) + " ? " + rows + " : " +
             count(rest) + ";");
      rows = "rows";
    }
    const std::string in_group = modulo("tile", group);
    w.line(type + " m_first = (group * " + count(together) + " + " + in_group + " % " + rows +
           ") * " + count(tile.m) + ";");
    w.line(type + " n_first = " + times(in_group + " / " + rows, tile.n) + ";");
  }
  w.indices(nest, roles.batch, divided(number, m_tiles * n_tiles));
}

void write_places(Writer& w, const LoopNest& nest, const ContractRoles& roles,
                  const ContractSide& left, const ContractSide& right) {
  for (const ContractSide* s : {&left, &right}) {
    const LoopNest::Operand& operand = nest.inputs[s->input];
    write_place(w, nest, s->base + "_" + s->name, s->name, s->axes, operand);
    write_place(w, nest, s->base + "_k", "k", roles.depth, operand);
    w.line("const " + element_type(operand.dtype) + "* const " + s->base + " = " +
           added(input_name(s->input), w.place(operand, roles.batch)) + ";");
  }
}

Kernels emit_contract(const LoopNest& nest, const Context& context) {
  const ContractRoles roles = roles_of(nest);
  if (is_reduction(roles)) return emit_reduce(nest, context);
  return emit_by(nest, roles, tiles_for(nest, roles, context.target).front(), context);
}

std::vector<Alternative> contract_alternatives(const LoopNest& nest, const Context& context) {
  const ContractRoles roles = roles_of(nest);
  if (is_reduction(roles)) return {{"", emit_reduce(nest, context)}};
  std::vector<Alternative> alternatives;
  for (const Tile& tile : tiles_for(nest, roles, context.target))
    alternatives.push_back({to_string(tile), emit_by(nest, roles, tile, context)});
  return alternatives;
}

}  // namespace ein::codegen
