#include "cost/exchange.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <ein/error.hpp>
#include <ein/plan.hpp>
#include "graph/build.hpp"
#include "size/ask.hpp"

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

double plan::bytes_sent(Collective way, std::int64_t n, double bytes) {
  if (n < 1)
    throw Error(ErrorKind::value,
                "plan: the number of devices is not positive: " + std::to_string(n));
  if (way == Collective::send) return bytes;
  const double part = static_cast<double>(n - 1) / static_cast<double>(n) * bytes;
  return way == Collective::all_reduce ? 2 * part : part;
}

double Exchange::sent_by_ring() const {
  if (collective == Collective::barrier) return 0;
  // The operand of an all_gather is a part of the whole value.
  const std::int64_t parts = collective == Collective::all_gather ? processes : 1;
  return plan::bytes_sent(collective, processes, static_cast<double>(bytes * parts));
}

namespace {

/// The product of sizes by their names, whose processes, where they stand above and below, cancel:
/// of "data", "s/data" and "h/model" it is s·h/model.
Polynomial product_of(const std::vector<Axis>& axes, std::span<const MeshAxis> mesh) {
  std::vector<std::pair<std::string, std::vector<std::string>>> factors;  // s, by data
  std::vector<std::string> processes;                                     // data
  Polynomial product = 1;
  const auto is_mesh_axis = [&](const std::string& name) {
    return std::any_of(mesh.begin(), mesh.end(),
                       [&](const MeshAxis& axis) { return axis.name == name; });
  };
  for (const Axis& axis : axes) {
    std::string_view rest = axis.name;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (rest.empty() || rest == "_" || is_digit(rest[0])) {
      product *= Polynomial(axis.size);
      continue;
    }
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(composite), rest.size());
      std::string_view factor = rest.substr(0, end);
      rest.remove_prefix(std::min(end + composite.size(), rest.size()));
      const std::size_t slash = std::min(factor.find('/'), factor.size());
      const std::string name(factor.substr(0, slash));
      if (is_mesh_axis(name)) {
        processes.push_back(name);
        continue;
      }
      factors.emplace_back(name, std::vector<std::string>());
      for (factor.remove_prefix(slash); !factor.empty();) {
        factor.remove_prefix(1);
        const std::size_t next = std::min(factor.find('/'), factor.size());
        factors.back().second.emplace_back(factor.substr(0, next));
        factor.remove_prefix(next);
      }
    }
  }
  for (auto& [name, parts] : factors) {
    for (const std::string& part : parts) {
      const auto above = std::find(processes.begin(), processes.end(), part);
      if (above == processes.end())
        name += "/" + part;
      else
        processes.erase(above);
    }
    product *= Polynomial::axis(name);
  }
  for (const std::string& name : processes) product *= Polynomial::axis(name);
  return product;
}

/// The whole line of an exchange.
std::string line_of(Collective collective, const std::vector<std::string>& over, std::int64_t calls,
                    const std::string& bytes) {
  std::string text = std::string(name(collective)) + " over";
  for (const std::string& axis : over) text += " " + axis;
  return text + ": " + std::to_string(calls) + (calls == 1 ? " call, " : " calls, ") + bytes +
         " bytes\n";
}

}  // namespace

std::vector<ExchangeFormula> exchange_formulas(const Graph& graph, std::span<const MeshAxis> mesh) {
  std::map<std::pair<std::uint32_t, Collective>, ExchangeFormula> found;
  for (const Op& op : graph.ops) {
    if (op.kind != OpKind::collective) continue;
    ExchangeFormula& formula = found[{op.mesh_axes, op.collective}];
    formula.collective = op.collective;
    formula.over = exchange_over(op.collective, op.mesh_axes, mesh).over;
    ++formula.calls;
    std::vector<Axis> read;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      if (uses(op.reads[0], static_cast<int>(a))) read.push_back(op.axes[a]);
    }
    formula.bytes += product_of(read, mesh) *
                     Polynomial(static_cast<std::int64_t>(size_of(graph.op(op.inputs[0]).dtype)));
  }
  std::vector<ExchangeFormula> exchanges;
  for (auto& [key, exchange] : found) exchanges.push_back(std::move(exchange));
  return exchanges;
}

std::string ExchangeFormula::sent_by_ring() const {
  if (collective == Collective::barrier) return "0";
  std::string n;
  for (const std::string& axis : over) n += (n.empty() ? "" : "·") + axis;
  const std::string value = "·(" + bytes.to_string() + ")";
  // The operand of an all_gather is a part of the whole value.
  if (collective == Collective::all_gather) return "(" + n + " - 1)" + value;
  const std::string times = collective == Collective::all_reduce ? "2·" : "";
  return times + "(" + n + " - 1)/" + (over.size() > 1 ? "(" + n + ")" : n) + value;
}

std::string to_string(const std::vector<ExchangeFormula>& exchanges) {
  std::string text;
  for (const ExchangeFormula& exchange : exchanges)
    text += line_of(exchange.collective, exchange.over, exchange.calls, exchange.bytes.to_string());
  return text;
}

std::string to_string(const std::vector<Exchange>& exchanges) {
  std::string text;
  for (const Exchange& exchange : exchanges)
    text +=
        line_of(exchange.collective, exchange.over, exchange.calls, std::to_string(exchange.bytes));
  return text;
}

}  // namespace ein
