// Plans: calls understood once, kept so that a repeated call does no parsing, solving or planning.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/cost.hpp>
#include <ein/graph.hpp>
#include <ein/pattern.hpp>
#include <ein/tensor.hpp>
#include "autograd/vjp.hpp"
#include "compile/compiled.hpp"
#include "compile/passes.hpp"
#include "size/size_scope.hpp"
#include "tensor/kept.hpp"

namespace ein::detail {
struct MeshData;  // runtime/mesh.hpp
}
namespace ein::mesh {
class Process;
}

namespace ein::engine {

/// Tensors by address: a call copies none of its operands.
using Operands = std::span<const Tensor* const>;
using MeshPointer = std::shared_ptr<const detail::MeshData>;
/// Where results are to lie on a mesh, of those for which that is said.
struct ResultPlacements {
  MeshPointer mesh{};  // null: the operands say it
  std::vector<std::optional<Placement>> placements{};
};

/// Where the operands of a call lie: an Error of kind `device` that names them when that is not one
/// device.
Device common_device(const std::string& call, Operands operands);

class Plan;

/// How cotangents of a call's results become cotangents of some of its operands.
struct Backward {
  std::vector<bool> wanted;  // which operands'
  autograd::Vjp vjp;
  std::int64_t number = 0;  // of this one among all, for the keys of its plans
};

/// What a call means, its graph; and how it runs on operands that lie as those it was made for.
class Plan : public std::enable_shared_from_this<Plan> {
 public:
  /// An Error of kind `device` when they lie on several devices. Complex numbers of the graph
  /// become pairs.
  Plan(std::string call, const Graph& graph, Operands operands, const OrderOptions& options,
       ResultPlacements results = {});
  /// Without operands.
  Plan(std::string call, const Graph& graph, Device device);
  /// Without a graph: what is neither traced nor differentiated.
  Plan(std::string call, std::unique_ptr<Compiled> compiled);
  /// Of one whose sizes are formulas, for the lengths of `bound`.
  Plan(std::shared_ptr<const Plan> of_formulas, std::unique_ptr<const Bound> bound);

  const std::string& call() const { return call_; }  // for people
  const Graph& graph() const;
  Device device() const { return device_; }
  /// The mesh on which operands are placed; null where all are whole.
  const MeshPointer& mesh() const { return mesh_; }
  /// Of each result whether it is complex to the caller, where programs have pairs of real numbers;
  /// empty where none is.
  const std::vector<bool>& complex_results() const { return complex_results_; }
  /// What its graph is compiled for.
  Job job() const;
  /// Made when it is first wanted.
  const Bound& bound() const;
  /// Of the nests; counted when it is first wanted.
  const Cost& cost() const;
  const Backward& backward(const std::vector<bool>& wanted) const;

  LastUse last_use;

 private:
  Plan(std::string call, const Graph& graph, Device device, const OrderOptions& options);
  const Bound& make_bound() const;
  /// With the lock.
  const Graph& known_graph() const;

  std::string call_;
  mutable Graph graph_;  // of formulas, when it is first wanted
  std::shared_ptr<const Plan> of_formulas_;
  std::vector<bool> complex_results_;
  Device device_;
  std::vector<InputLayout> layouts_;
  MeshPointer mesh_;
  std::vector<Placement> operand_placements_;
  ResultPlacements result_placements_;
  OrderOptions options_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const Bound> bound_;
  mutable std::atomic<const Bound*> made_{nullptr};  // the same, found without the lock
  mutable std::optional<Cost> cost_;
  mutable std::vector<std::unique_ptr<const Backward>> backward_;
  KeptBytes kept_;
};

/// What a plan depends on, as a list of words; the first is the calling thread's floating-point
/// mode, in which numbers of the plan are computed. Kept per thread: one key at a time.
class PlanKey {
 public:
  PlanKey();
  /// Of these words, which another key had.
  explicit PlanKey(std::span<const std::int64_t> words);
  void add(std::int64_t word) { words_.push_back(word); }
  void add(std::string_view text);
  /// The dtype, rank and device; and what its plans depend on, settings and alignment.
  void add_kind(const Tensor& operand);
  /// That, its shape and strides.
  void add(const Tensor& operand);
  void add(Operands operands) {
    for (const Tensor* operand : operands) add(*operand);
  }
  void add(const Shape& shape);
  void add(const detail::PatternArgument& pattern, std::span<const AxisSize> sizes);
  std::span<const std::int64_t> words() const { return words_; }

 private:
  std::vector<std::int64_t>& words_;
};

/// The first words of keys that are no pattern calls.
enum class KeyKind : std::int64_t {
  map = -1,
  copy = -2,
  backward = -3,
  view = -4,
  slice = -5,
  broadcast = -6,
  slice_at = -7,
  einsum_into = -8,
  reduce_by = -9,
  reshard = -10,
  recorded = -11,
  points = -12,
  reduced_points = -13
};
inline void add(PlanKey& key, KeyKind kind) { key.add(static_cast<std::int64_t>(kind)); }

class RangePlans;
/// Those kept under the key of a kind of call, or new ones.
std::shared_ptr<RangePlans> range_plans(const PlanKey& kind);

/// The plan kept under a key, or null. Thread-safe.
std::shared_ptr<const Plan> find_plan(const PlanKey& key);
/// Keeps a plan under a key, within the limit of all plans (ein/memory.hpp).
void keep_plan(const PlanKey& key, std::shared_ptr<const Plan> plan);

/// Makes a call's plan, for operands like these.
using MakePlan = std::function<std::shared_ptr<const Plan>(Operands)>;
/// The plan of a call that has these words before its operands, from a plan for a range of sizes;
/// null where its shape has a plan of its own. See range_plan.hpp.
std::shared_ptr<const Plan> plan_of_range(std::span<const std::int64_t> words, Operands operands,
                                          const MakePlan& make);

/// The plan under `key` and the operands; if there is none, the one of the graph that `build`
/// returns, kept. call() says what it computes. A build(operands) may be asked for operands of
/// other shapes, a build() knows one.
template <class Call, class Build>
std::shared_ptr<const Plan> plan_for(PlanKey& key, Operands operands, Call&& call, Build&& build,
                                     const OrderOptions& options = {},
                                     const ResultPlacements* results = nullptr) {
  constexpr bool is_of_any_shape = std::is_invocable_v<Build&, Operands>;
  const auto make = [&](Operands like) {
    if constexpr (is_of_any_shape)
      return std::make_shared<const Plan>(call(), build(like), like, options,
                                          results ? *results : ResultPlacements());
    else
      return std::make_shared<const Plan>(call(), build(), like, options,
                                          results ? *results : ResultPlacements());
  };
  // What depends on lengths is built anew by each trace, which is to know what was compared.
  if (SizeScope::active()) return make(operands);
  const std::size_t count = key.words().size();
  key.add(operands);
  if (auto plan = find_plan(key)) return plan;
  // build() and the passes may call operations, which use the thread's key.
  const std::vector<std::int64_t> words(key.words().begin(), key.words().end());
  std::shared_ptr<const Plan> plan;
  if constexpr (is_of_any_shape) {
    const auto is_placed = [](const Tensor* x) { return x->is_placed(); };
    if (std::none_of(operands.begin(), operands.end(), is_placed))
      plan = plan_of_range({words.data(), count}, operands, make);
  }
  if (!plan) plan = make(operands);
  keep_plan(PlanKey(words), plan);
  return plan;
}

}  // namespace ein::engine
