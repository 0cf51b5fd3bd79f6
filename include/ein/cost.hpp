// Cost: what a graph costs, exactly, before it runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ein/count.hpp>
#include <ein/detail/polynomial.hpp>
#include <ein/graph.hpp>

namespace ein {

namespace detail {
struct CountedOp {
  ScalarOp op;
  CostClass cost;
};
inline constexpr CountedOp counted_ops[] = {
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  {ScalarOp::name, CostClass::transcendental},
#define EIN_ROUNDING(name, reference, host, adjoint, cuda)
#define EIN_CONVERSION(name, reference, host, adjoint, cuda)
#include <ein/detail/scalar_functions.hpp>
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  {ScalarOp::name, CostClass::cost},
#include <ein/detail/binary_functions.hpp>
    {ScalarOp::normal, CostClass::transcendental}};
constexpr bool is_transcendental(const CountedOp& counted) {
  return counted.cost == CostClass::transcendental;
}
}  // namespace detail

/// The functions that are counted one by one.
inline constexpr auto transcendental_ops = [] {
  std::array<ScalarOp, static_cast<std::size_t>(
                           std::ranges::count_if(detail::counted_ops, detail::is_transcendental))>
      ops{};
  std::size_t size = 0;
  for (const detail::CountedOp& counted : detail::counted_ops) {
    if (detail::is_transcendental(counted)) ops[size++] = counted.op;
  }
  return ops;
}();

/// Operations on elements by class, and bytes. N is Count for numbers, Polynomial for formulas in
/// the names of axes, or Size for formulas in the lengths that a compiled function leaves open.
///
/// A minimum, a maximum, an absolute value, a selection and a logical operation are each one
/// comparison; a negation is an addition; conversions, moves and random bits are free. Bytes are of
/// distinct elements: each operation reads every element that it uses once, and writes its result
/// once. Positions are taken to be distinct: a gather reads as many elements as it makes. An
/// argsort is counted as ceil(log2 n) comparisons for each of n values. Decompositions and
/// solutions of linear systems are counted by textbooks' formulas, half of it as multiplications
/// and half as additions; `estimated` says how much of the counts that is.
template <class N>
struct Tally {
  N mul{}, add{}, div{}, compare{};
  std::array<N, transcendental_ops.size()> transcendental{};
  N bytes_read{}, bytes_written{};
  /// The textbook count: a multiply-add is 2 for each index tuple, so a contraction of n operands
  /// counts n per tuple (n - 1 if it sums nothing), a reduction 1, any other operation on an
  /// element 1.
  N model{};
  /// The part of `model` that is contractions which sum something.
  N matmul_only{};
  /// The part of `model` and of strict() that is no count but an estimate.
  N estimated{};

  /// The operations that really happen: K - 1 additions for a sum of K numbers.
  N strict() const {
    N sum = mul + add + div + compare;
    for (const N& n : transcendental) sum += n;
    return sum;
  }
  N bytes() const { return bytes_read + bytes_written; }
  const N& count(ScalarOp op) const;

  Tally& operator+=(const Tally& other);
  friend bool operator==(const Tally&, const Tally&) = default;
};

using Cost = Tally<Count>;
using CostFormula = Tally<Polynomial>;
using CostOfLengths = Tally<Size>;

/// The cost of one operation of a graph, and of all of them.
Cost cost(const Graph& graph, ValueId id);
Cost cost(const Graph& graph);

/// The same as formulas in the names of the axes, which at the sizes of the graph are what it
/// costs. What is no product of axes is a number: axes of one name that have several sizes, as
/// parts of an axis do; elements that are joined or written in place; how often a sort goes over a
/// line. In the graph of one process the part of an axis b that is split over data is `b/data`.
CostFormula cost_formula(const Graph& graph, ValueId id);
CostFormula cost_formula(const Graph& graph);

/// What a process gives to the collectives of a kind over some mesh axes, as formulas: sizes are
/// named as in cost_formula, the part of an axis b that is split over data is `b/data`, and the
/// number of processes along it is `data`.
struct ExchangeFormula {
  Collective collective = Collective::all_reduce;
  std::vector<std::string> over{};
  std::int64_t calls = 0;
  Polynomial bytes{};  ///< of the operands of one process

  /// Bytes that a process sends where values go round in a ring, "2·(data - 1)/data·(4·b/data·s)":
  /// Exchange::sent_by_ring.
  std::string sent_by_ring() const;
};
/// Of the graph that one process of a mesh runs, such as that of a compiled function.
std::vector<ExchangeFormula> exchange_formulas(const Graph& graph, std::span<const MeshAxis> mesh);
/// "all_reduce over data: 3 calls, 4·b/data·s bytes", a line for each.
std::string to_string(const std::vector<ExchangeFormula>& exchanges);

/// Counts what this thread's calls cost while it lives, from the loop nests that run. Scopes nest;
/// each counts everything inside.
class CostScope {
 public:
  CostScope();
  ~CostScope();
  CostScope(const CostScope&) = delete;
  CostScope& operator=(const CostScope&) = delete;

  /// One call: what was called, the labels around it ("block 0/attention"), its cost, and the bytes
  /// that it allocates at its peak, its result included.
  struct Entry {
    std::string call;
    std::string label;
    Cost cost;
    std::size_t peak_bytes = 0;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  Cost total() const;
  /// The total under labels that begin with `label`.
  Cost total(const std::string& label) const;

 private:
  friend struct CostRecorder;
  CostScope* outer_;
  std::vector<Entry> entries_;
};

/// Names a part of the program, a module or a phase, for the cost scopes around it; labels nest.
class CostLabel {
 public:
  explicit CostLabel(const std::string& name);
  ~CostLabel();
  CostLabel(const CostLabel&) = delete;
  CostLabel& operator=(const CostLabel&) = delete;

 private:
  std::size_t length_before_;
};

}  // namespace ein
