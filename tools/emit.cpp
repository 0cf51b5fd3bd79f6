// ein emit: what a pattern becomes.
#include <memory>

#include <ein/cost.hpp>

#include "call.hpp"
#include "passes/contraction_order.hpp"
#include "passes/lower.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein emit graph einsum 'b q d, b k d -> b q k' --shape 2,5,64 --shape 2,7,64
  ein emit graph einsum 'i j, j k, k l -> i l' --shape 9,100 --shape 100,100 --shape 100,2
  ein emit nest rearrange 'b s (h d) -> b h s d' --shape 2,128,512 --axis h=8
  ein emit nest reduce 'b c -> b' --shape 64,1000 --by logsumexp

graph  the operations on named axes, and the floating-point operations they cost
nest   the loops that run: contractions in their best order, operands without gaps

Exit code: 0, or 2 for a mistake in the call, the pattern or the shapes.)";

std::string emit_graph(const Graph& graph) {
  const Count written = cost(graph).model;
  const Count ordered = cost(order_contractions(graph)).model;
  std::string output = to_string(graph);
  if (!output.ends_with('\n')) output += '\n';
  output += "FLOPs: " + to_string(written);
  if (ordered != written)
    output += " as written, " + to_string(ordered) + " two operands at a time";
  return output + "\n";
}

std::string emit_nest(const Graph& graph, std::span<const OperandType> operands) {
  std::vector<InputLayout> layouts;
  for (const OperandType& operand : operands)
    layouts.push_back({contiguous_strides(operand.shape), 0});
  std::string output = to_string(lower(order_contractions(graph), layouts));
  if (!output.ends_with('\n')) output += '\n';
  return output;
}

std::string emit(const std::string& form, const CallWords& words) {
  if (form != "graph" && form != "nest") {
    throw UsageError("emit: unknown form '" + form + "'; it may be graph or nest");
  }
  const std::vector<OperandType> operands = operands_of(words);
  if (operands.empty()) throw UsageError("emit needs --shape, once for each operand");
  const Call call(words, operands.size());
  if (call.op() == Operation::parse_shape) throw UsageError("emit: parse_shape computes nothing");
  const Graph graph = build_graph(call.get(), operands);
  return form == "graph" ? emit_graph(graph) : emit_nest(graph, operands);
}

}  // namespace

void add_emit(CLI::App& app, std::string& output) {
  CLI::App* command =
      app.add_subcommand("emit", "Print what a pattern becomes: its graph, or the loops that run");
  const auto form = std::make_shared<std::string>();
  const auto words = std::make_shared<CallWords>();
  add_word(*command, "FORM", *form, "graph or nest")->required();
  add_call(*command, *words);
  add_operands(*command, *words);
  command->footer(examples);
  command->callback([form, words, &output] { output = emit(*form, *words); });
}

}  // namespace ein::command
