#include "cost/exchange.hpp"

#include <map>
#include <utility>

#include <ein/plan.hpp>

namespace ein {
namespace {

/// Bytes of what one process gives to a collective.
std::int64_t bytes_given(const LoopNest& nest) {
  const bool gives_to_each =
      nest.collective == Collective::reduce_scatter || nest.collective == Collective::all_to_all;
  const std::size_t first = nest.collective == Collective::all_reduce || gives_to_each ? 0 : 1;
  auto bytes = static_cast<std::int64_t>(size_of(nest.inputs[0].dtype));
  for (std::size_t a = first; a < nest.axes.size(); ++a) bytes *= nest.axes[a].size;
  return bytes;
}

}  // namespace

Exchange exchange_over(Collective collective, std::uint32_t mesh_axes,
                       std::span<const MeshAxis> mesh) {
  Exchange exchange{.collective = collective};
  for (std::size_t m = 0; m < mesh.size(); ++m) {
    if (!(mesh_axes >> m & 1u)) continue;
    exchange.over.push_back(mesh[m].name);
    exchange.processes *= mesh[m].size;
  }
  return exchange;
}

std::vector<Exchange> exchanges_of(const Program& program, std::span<const MeshAxis> mesh) {
  std::map<std::pair<std::uint32_t, Collective>, Exchange> found;
  for (const LoopNest& nest : program.nests) {
    if (!nest.is_collective()) continue;
    const auto [place, is_new] = found.try_emplace({nest.mesh_axes, nest.collective});
    if (is_new) place->second = exchange_over(nest.collective, nest.mesh_axes, mesh);
    ++place->second.calls;
    place->second.bytes += bytes_given(nest);
  }
  std::vector<Exchange> exchanges;
  for (auto& [key, exchange] : found) exchanges.push_back(std::move(exchange));
  return exchanges;
}

double Exchange::sent_by_ring() const {
  if (collective == Collective::barrier) return 0;
  // The operand of an all_gather is a part of the whole value.
  const std::int64_t parts = collective == Collective::all_gather ? processes : 1;
  return plan::bytes_sent(collective, processes, static_cast<double>(bytes * parts));
}

std::string to_string(const std::vector<Exchange>& exchanges) {
  std::string text;
  for (const Exchange& exchange : exchanges) {
    text += std::string(name(exchange.collective)) + " over";
    for (const std::string& axis : exchange.over) text += " " + axis;
    text += ": " + std::to_string(exchange.calls) + (exchange.calls == 1 ? " call, " : " calls, ") +
            std::to_string(exchange.bytes) + " bytes\n";
  }
  return text;
}

}  // namespace ein
