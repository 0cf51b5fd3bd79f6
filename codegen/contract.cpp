// Contractions of two operands, as they lie, in tiles of the result.
#include "codegen/contract.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>

#include "size/ask.hpp"

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
  if (settle(roles, nest)) std::swap(roles.a, roles.b);
  roles.depth = by_stride(std::move(roles.depth), nest.inputs[roles.a]);
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
  const PairRoles pairs{roles, {roles.a}, {roles.b}, {}, {}};
  return emit_pairs_by_threads(
      nest, pairs, tile, "contract_" + std::string(name(nest.inputs[roles.a].dtype)), context);
}

Kernels emit_by(const LoopNest& nest, const ContractRoles& roles, const Tile& tile,
                const Context& context) {
  const std::int64_t pieces = pieces_of(nest, roles, tile, context.target);
  if (pieces > 1) {
    ContractRoles of_part = roles;
    const Pieces cut = cut_depth(nest, of_part, pieces);
    const bool fits = tile.by != Tile::By::wgmma || has_tensor_maps(cut.parts, of_part, tile);
    if (fits) return emit_pieces(emit_product(cut.parts, of_part, tile, context), cut, context);
  }
  return {emit_product(nest, roles, tile, context)};
}

/// Whether it is better seen as a reduction: few rows or columns are read no more often by one.
bool is_reduction(const ContractRoles& roles) {
  constexpr std::int64_t few = 4;
  return roles.m < few || roles.n < few || ask_equal(roles.k, 0);
}

}  // namespace

bool is_contraction(const LoopNest& nest) {
  return nest.sums_products() && nest.along == LoopNest::Along::nothing && !nest.is_scatter() &&
         nest.body.steps[0].which == 0 && nest.body.steps[1].which == 1 &&
         !nest.inputs[0].is_indirect() && !nest.inputs[1].is_indirect();
}

bool has_narrow_indices(const LoopNest& nest, const TileRoles& roles) {
  return is_narrow(std::array{roles.m, roles.n, roles.batches}) && is_narrow(std::array{roles.k}) &&
         has_narrow_places(nest);
}

bool moves_along(const LoopNest::Operand& operand, const AxisList& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](std::size_t axis) {
    return axis < operand.strides.size() && !always_equal(operand.strides[axis], 0);
  });
}

bool settle(TileRoles& roles, const LoopNest& nest) {
  for (AxisList* axes : {&roles.batch, &roles.rows, &roles.columns, &roles.depth})
    *axes = by_stride(std::move(*axes), nest.output);
  const auto step = [&](const AxisList& axes) {
    return axes.empty() ? Size(INT64_MAX) : magnitude(nest.output.strides[axes.back()]);
  };
  const bool changes = step(roles.rows) < step(roles.columns);
  if (changes) std::swap(roles.rows, roles.columns);
  roles.batches = size_of_axes(nest, roles.batch);
  roles.m = size_of_axes(nest, roles.rows);
  roles.n = size_of_axes(nest, roles.columns);
  roles.k = size_of_axes(nest, roles.depth);
  return changes;
}

Pieces cut_depth(const LoopNest& nest, TileRoles& roles, std::int64_t pieces) {
  Pieces cut{nest, {}, 0};
  const std::size_t axis = roles.depth.front(), piece = nest.axes.size();
  const Size length = nest.axes[axis].size / pieces;
  cut.parts.axes[axis].size = length;
  cut.parts.axes.push_back({"piece", pieces});
  cut.parts.epilogue = {};
  const std::vector<std::size_t> body = inputs_of(nest.body), epilogue = epilogue_inputs(nest);
  const auto stands_still = [](LoopNest::Operand& input) {
    std::fill(input.strides.begin(), input.strides.end(), 0);
  };
  for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
    LoopNest::Operand& input = cut.parts.inputs[i];
    input.strides.push_back(input.strides[axis] * length);
    if (std::count(body.begin(), body.end(), i) == 0) stands_still(input);
  }
  cut.parts.output = {.buffer = workspace_buffer,
                      .dtype = nest.compute,
                      .strides = std::vector<Size>(piece + 1, 0)};
  AxisList kept;
  for (const AxisList* role : {&roles.batch, &roles.rows, &roles.columns})
    kept.insert(kept.end(), role->begin(), role->end());
  Size stride = 1;
  kept = by_stride(std::move(kept), nest.output);
  kept.insert(kept.begin(), piece);
  for (std::size_t i = kept.size(); i-- > 0;) {
    cut.parts.output.strides[kept[i]] = stride;
    stride *= cut.parts.axes[kept[i]].size;
  }
  cut.bytes = stride * size_of(nest.compute);

  cut.whole = cut.parts;
  for (std::size_t a : roles.depth) cut.whole.axes[a].size = 1;
  cut.whole.axes[piece].reduced = true;
  // The epilogue's inputs keep their numbers.
  cut.whole.inputs = nest.inputs;
  for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
    LoopNest::Operand& input = cut.whole.inputs[i];
    input.strides.push_back(0);
    if (std::count(epilogue.begin(), epilogue.end(), i) == 0) stands_still(input);
  }
  cut.whole.inputs[0] = cut.parts.output;
  cut.whole.body = Ex::input(0);
  cut.whole.epilogue = nest.epilogue;
  cut.whole.output = nest.output;
  cut.whole.output.strides.push_back(0);
  simplify(cut.whole);

  roles.batch.insert(roles.batch.begin(), piece);
  roles.batches *= pieces;
  roles.k = size_of_axes(cut.parts, roles.depth);
  return cut;
}

Kernels emit_pieces(KernelSource parts, const Pieces& cut, const Context& context) {
  Kernels kernels{std::move(parts)};
  kernels.front().workspace_bytes = cut.bytes;
  Kernels whole = emit_reduce(cut.whole, context);
  assert(whole.size() == 1);  // it does not need the workspace for itself
  kernels.push_back(std::move(whole.front()));
  return kernels;
}

bool is_along_depth(const LoopNest& nest, const TileRoles& roles, const ContractSide& side) {
  const auto step = [&](const AxisList& axes) {
    return axes.empty()
               ? Size(INT64_MAX)
               : std::max<Size>(1, magnitude(nest.inputs[side.input].strides[axes.back()]));
  };
  return step(roles.depth) < step(side.axes);
}

void write_tile_origin(Writer& w, const LoopNest& nest, const TileRoles& roles, const Tile& tile,
                       const std::string& number) {
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

void write_places(Writer& w, const LoopNest& nest, const TileRoles& roles,
                  std::span<const ContractSide> sides) {
  for (const ContractSide& s : sides) {
    const LoopNest::Operand& operand = nest.inputs[s.input];
    write_place(w, nest, s.base + "_" + s.name, s.name, s.axes, operand);
    write_place(w, nest, s.base + "_k", "k", roles.depth, operand);
    w.line("const " + element_type(operand.dtype) + "* const " + s.base + " = " +
           added(input_name(s.input), w.place(operand, roles.batch)) + ";");
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
