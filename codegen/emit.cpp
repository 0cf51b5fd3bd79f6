#include "codegen/emit.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <ein/error.hpp>
#include "codegen/elements.hpp"
#include "codegen/forms.hpp"
#include "graph/fields.hpp"
#include "size/ask.hpp"
#include "size/size_arithmetic.hpp"

namespace ein::codegen {

namespace {

bool writes_nothing(const LoopNest& nest) {
  return std::any_of(nest.axes.begin(), nest.axes.end(),
                     [](const LoopNest::NestAxis& axis) {
                       return ask_equal(axis.size, 0) && !axis.reduced;
                     }) ||
         (nest.is_scatter() && nest.combine && ask_equal(nest.output.indirection.size, 0));
}

}  // namespace

std::array<unsigned, 3> KernelSource::grid() const {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const std::int64_t count = blocks;
  return {static_cast<unsigned>(std::min(count, most)),
          static_cast<unsigned>(ceil_div(count, most)), 1};
}

bool operator==(const TensorMap& a, const TensorMap& b) { return equal_fields(a, b); }

std::vector<KernelSource> emit(const LoopNest& nest, const GpuTarget& target,
                               std::string_view suffix) {
  const Context context{target, std::string(suffix)};
  if (nest.is_matrix()) {
    throw Error(ErrorKind::device, std::string(name(nest.function)) +
                                       ": runs on the CPU alone; copy the operands there first, "
                                       "with .to(ein::cpu)");
  }
  if (nest.is_collective()) throw std::logic_error("a collective is no kernel");
  if (writes_nothing(nest)) return {};
  if (nest.is_scatter() && nest.combine) return emit_scatter(nest, context);
  if (nest.along == LoopNest::Along::scan) return emit_scan(nest, context);
  if (nest.along == LoopNest::Along::argsort) return emit_sort(nest, context);
  if (nest.is_gather() || nest.writes_at_position() || only_moves(nest))
    return emit_copy(nest, context);
  if (is_contraction(nest)) return emit_contract(nest, context);
  if (nest.combine) {
    if (std::optional<Kernels> in_tiles = emit_pairs(nest, context)) return std::move(*in_tiles);
    return emit_reduce(nest, context);
  }
  return emit_map(nest, context);
}

std::vector<Alternative> alternatives(const LoopNest& nest, const GpuTarget& target,
                                      std::string_view suffix) {
  if (!writes_nothing(nest) && is_contraction(nest))
    return contract_alternatives(nest, {target, std::string(suffix)});
  return {{"", emit(nest, target, suffix)}};
}

}  // namespace ein::codegen
