#include "cost/scope.hpp"

#include <algorithm>
#include <utility>

#include "cost/tally.hpp"
#include "cost/traffic.hpp"
#include "machine/thread_end.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

thread_local CostScope* innermost = nullptr;
std::string& label_path() {
  return made_once_by_thread([] { return std::string(); });
}

/// `tally` has what is read.
template <class N>
Tally<N> cost_of_matrices(const LoopNest& nest, Tally<N> tally) {
  N matrices = 1, written = 1;
  Size rows = 1, columns = 1, right = 1;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const LoopNest::NestAxis& axis = nest.axes[a];
    if (axis.role == MatrixAxis::batch) matrices *= N(axis.size);
    if (axis.role == MatrixAxis::rows) rows = axis.size;
    if (axis.role == MatrixAxis::columns) columns = axis.size;
    if (axis.role == MatrixAxis::right) right *= axis.size;
    if (!ask_equal(nest.output.strides[a], 0)) written *= N(axis.size);
  }
  tally.bytes_written = written * N(std::uint64_t{size_of(nest.output.dtype)});
  add_matrix(tally, nest.function, matrices, rows, columns, right);
  return tally;
}

bool is_none(const Count& n) { return n == 0; }
bool is_none(Size n) { return ask_equal(n, 0); }

/// In numbers or in formulas of lengths.
template <class N>
Tally<N> cost_of(const LoopNest& nest, const Traffic& traffic) {
  Tally<N> tally;
  const auto product = [&](auto&& includes) {
    N n = 1;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (includes(a)) n *= N(nest.axes[a].size);
    }
    return n;
  };
  const N tuples = product([](std::size_t) { return true; });
  const N results = product([&](std::size_t a) { return !nest.axes[a].reduced; });
  for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
    const LoopNest::Operand& input = nest.inputs[i];
    const bool is_of_body =
        std::any_of(nest.body.steps.begin(), nest.body.steps.end(), [&](const ScalarStep& step) {
          return step.op == ScalarOp::input && step.which == static_cast<int>(i);
        });
    // Where nothing runs, nothing is read.
    if (!traffic.reads[i] || is_none(is_of_body ? tuples : results)) continue;
    const auto moves = [&](std::size_t a) {
      return !ask_equal(input.strides[a], 0) ||
             (input.is_indirect() &&
              !ask_equal(
                  nest.inputs[static_cast<std::size_t>(input.indirection.positions)].strides[a],
                  0));
    };
    tally.bytes_read += product(moves) * N(std::uint64_t{size_of(input.dtype)});
  }
  if (nest.is_matrix()) return cost_of_matrices(nest, std::move(tally));
  if (nest.is_collective()) {
    tally.bytes_written = results * N(std::uint64_t{size_of(nest.output.dtype)});
    return tally;
  }
  if (traffic.writes) tally.bytes_written = results * N(std::uint64_t{size_of(nest.output.dtype)});
  add_expr(tally, nest.body, tuples);
  const auto difference = [&](const N& combined) {
    return is_none(tuples) ? N(0) : tuples - combined;
  };
  if (nest.is_scatter() && nest.combine) {
    tally.bytes_written *= N(nest.output.indirection.size);
    add_combination(tally, *nest.combine, tuples, tuples);
  } else if (nest.along == LoopNest::Along::scan) {
    const N differ = difference(product([&](std::size_t a) { return !nest.axes[a].ordered; }));
    add_combination(tally, *nest.combine, tuples, differ);
    if (nest.inputs.size() == 2) add_combination(tally, Combine::prod, tuples, differ);
  } else if (nest.combine) {
    add_combination(tally, *nest.combine, nest.joins ? N(0) : tuples, difference(results));
  }
  if (nest.along == LoopNest::Along::argsort) {
    for (const LoopNest::NestAxis& axis : nest.axes) {
      if (axis.ordered) add_sort(tally, tuples, axis.size);
    }
  }
  if (nest.kind == OpKind::contract && nest.combine) tally.matmul_only = tally.model;
  add_expr(tally, nest.epilogue, results);
  return tally;
}

template <class N>
std::vector<Tally<N>> costs_of(const Program& program) {
  const std::vector<Traffic> traffic = traffic_of(program);
  std::vector<Tally<N>> costs;
  for (std::size_t n = 0; n < program.nests.size(); ++n)
    costs.push_back(cost_of<N>(program.nests[n], traffic[n]));
  return costs;
}

template <class N>
Tally<N> sum(const std::vector<Tally<N>>& costs) {
  Tally<N> total;
  for (const Tally<N>& cost : costs) total += cost;
  return total;
}

}  // namespace

std::vector<Cost> costs_of_nests(const Program& program) { return costs_of<Count>(program); }

Cost cost(const Program& program) { return sum(costs_of<Count>(program)); }
CostOfLengths cost_of_lengths(const Program& program) { return sum(costs_of<Size>(program)); }

CostScope::CostScope() : outer_(std::exchange(innermost, this)) {}
CostScope::~CostScope() { innermost = outer_; }

Cost CostScope::total() const { return total(""); }
Cost CostScope::total(const std::string& label) const {
  Cost sum;
  for (const Entry& entry : entries_) {
    if (entry.label.compare(0, label.size(), label) == 0) sum += entry.cost;
  }
  return sum;
}

CostLabel::CostLabel(const std::string& name) : length_before_(label_path().size()) {
  std::string& path = label_path();
  path += path.empty() ? name : '/' + name;
}
CostLabel::~CostLabel() {
  std::string& path = label_path();  // empty where the thread's own has been destroyed
  path.resize(std::min(length_before_, path.size()));
}

bool CostRecorder::is_active() { return innermost != nullptr; }

void CostRecorder::record(const std::string& call, const Cost& cost, std::size_t peak_bytes) {
  for (CostScope* scope = innermost; scope; scope = scope->outer_)
    scope->entries_.push_back({call, label_path(), cost, peak_bytes});
}

}  // namespace ein
