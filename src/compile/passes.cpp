#include "compile/passes.hpp"

#include <algorithm>
#include <utility>

#include "backend/backend.hpp"
#include "graph/after_pass.hpp"
#include "passes/complex.hpp"
#include "passes/copy_maps.hpp"
#include "passes/distribute.hpp"
#include "passes/gather_again.hpp"
#include "passes/join_collectives.hpp"
#include "passes/short_forms.hpp"
#include "passes/simplify.hpp"
#include "passes/slopes.hpp"
#include "passes/windows.hpp"
#include "size/ask.hpp"

namespace ein::engine {
namespace {

/// With the values that are assigned as results after those of the function.
Graph with_assigned_values(Graph graph) {
  for (const Assignment& a : graph.assignments) graph.outputs.push_back(a.value);
  return graph;
}

std::vector<AssignedInput> assigned_inputs(const Graph& graph, const Job& job) {
  std::vector<AssignedInput> assigned;
  const auto is_input = [](const Op& op) { return op.kind == OpKind::input; };
  for (const Assignment& a : graph.assignments) {
    const auto input = std::count_if(graph.ops.begin(), graph.ops.begin() + a.target, is_input);
    assigned.push_back({static_cast<int>(input), job.layouts[static_cast<std::size_t>(input)]});
  }
  return assigned;
}

/// Parts of results are no views of parts of inputs.
std::vector<ResultPlace> places_of(const Graph& graph, const Job& job) {
  if (!job.mesh) return job.places;
  std::vector<ResultPlace> places;
  for (const ValueId output : graph.outputs)
    places.push_back({output, std::nullopt, {contiguous_strides(graph.op(output).shape)}});
  return places;
}

}  // namespace

Compilation lowered(Graph graph, const Job& job) {
  const bool is_function = job.of == Job::Of::function;
  Compilation made;
  graph = real_graph(std::move(graph), job.call, job.order);
  // Errors of placements have the names of the call's axes, which are gone without windows.
  if (job.mesh) graph = process_graph(graph, job, made.placements);
  graph = after_pass("without_windows", without_windows(std::move(graph)));
  const std::vector<ResultPlace> places = places_of(graph, job);
  graph = after_pass("without_slopes", without_slopes(std::move(graph)));
  graph = is_function ? simple_graph(std::move(graph))
                      : after_pass("with_short_forms", with_short_forms(std::move(graph)));
  graph = after_pass("order_contractions", order_contractions(graph, job.order));
  graph = after_pass("copy_maps", copy_maps(graph));

  Program& program = made.program;
  program = after_pass("lower", lower(with_assigned_values(graph), job.layouts));
  if (is_function) {
    place_results(program, places);
    after_pass("place_results", program);
  }
  if (is_function || !graph.assignments.empty()) {
    made.assigned = assigned_inputs(graph, job);
    assign_inputs(program, made.assigned, places, job.memory);
    after_pass("assign_inputs", program);
  }
  made.graph = std::move(graph);
  return made;
}

void group(Program& program, const Job& job) { backend_of(job.device).group(program, job.memory); }

Graph real_graph(Graph graph, const std::string& call, const OrderOptions& order) {
  if (!has_complex(graph)) return graph;
  graph = without_windows(std::move(graph));
  return after_pass("without_complex", without_complex(graph, call, order));
}

Graph process_graph(const Graph& graph, const Job& job, std::vector<Placement>& placements) {
  const bool is_function = job.of == Job::Of::function;
  ProcessGraph own = is_function
                         ? distribute(job.call, after_pass("gather_again", gather_again(graph)),
                                      *job.mesh, job.operands, job.results)
                         : distribute(job.call, graph, *job.mesh, job.operands, job.results);
  placements = std::move(own.outputs);
  after_pass("distribute", own.graph);
  if (!is_function) return std::move(own.graph);
  return after_pass("join_collectives", join_collectives(own.graph));
}

autograd::Vjp derivative_of(const Graph& graph, const std::vector<bool>& wanted) {
  const std::vector<bool> given(graph.outputs.size(), true);
  autograd::Vjp vjp = autograd::vjp(graph, wanted, given);
  after_pass("vjp", vjp.graph);
  vjp.graph = simple_graph(std::move(vjp.graph), true);
  return vjp;
}

Graph simple_graph(Graph graph, bool is_derivative) {
  graph = after_pass("with_short_forms", with_short_forms(std::move(graph)));
  return after_pass("simplify", simplify(graph, is_derivative));
}

Job job_of(const Graph& graph, Job::Of of) {
  Job job{.of = of};
  for (const Op& op : graph.ops) {
    if (op.kind == OpKind::input) job.layouts.push_back({contiguous_strides(op.shape), 0});
  }
  return job;
}

}  // namespace ein::engine
