// The passes, in their order: from a graph to the program that a device runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ein/device.hpp>
#include <ein/graph.hpp>
#include "autograd/vjp.hpp"
#include "passes/contraction_order.hpp"
#include "passes/lower.hpp"
#include "passes/place_results.hpp"

namespace ein::engine {

/// What a graph is compiled for.
struct Job {
  /// A call is run as soon as it is planned. A function runs again and again, so that it takes all
  /// passes.
  enum class Of : std::uint8_t { call, function };

  std::string call{};  // what errors begin with
  Of of = Of::call;
  Device device = cpu;                 // need not be there
  std::vector<InputLayout> layouts{};  // of the graph's inputs, then of the places along mesh axes
  OrderOptions order{};
  std::vector<ResultPlace> places{};  // of a function's results
  std::vector<int> memory{};          // of each input the first whose memory it shares

  // On a mesh, which may have no axis: its axes, how operands lie, and how results are to lie where
  // that is said.
  std::optional<std::vector<MeshAxis>> mesh{};
  std::vector<Placement> operands{};
  std::vector<std::optional<Placement>> results{};
};

/// What the passes make of a graph.
struct Compilation {
  Graph graph;      // of real numbers, of one process; what was lowered
  Program program;  // its results are those of the graph, not what is assigned to inputs
  std::vector<Placement> placements{};  // of the results, on a mesh
  std::vector<AssignedInput> assigned{};
};

/// All passes but those of a device. An Error of kind `dtype`, `placement` or `memory`, as the
/// passes say.
Compilation lowered(Graph graph, const Job& job);
/// Those of the device: which nests run together, and how.
void group(Program& program, const Job& job);

/// Complex numbers as pairs of real ones; what a tape and a trace have of a call.
Graph real_graph(Graph graph, const std::string& call, const OrderOptions& order);
/// The same values by fewer operations.
Graph simple_graph(Graph graph, bool is_derivative = false);
/// The part of a graph that each process of the job's mesh computes.
Graph process_graph(const Graph& graph, const Job& job, std::vector<Placement>& placements);
/// The vector-Jacobian product of a graph, of all whose outputs there are cotangents.
autograd::Vjp derivative_of(const Graph& graph, const std::vector<bool>& wanted);

/// For a graph alone: its inputs are contiguous, and lie on the CPU.
Job job_of(const Graph& graph, Job::Of of = Job::Of::call);

}  // namespace ein::engine
