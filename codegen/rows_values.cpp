// What nests that share their rows read from outside, what each pass over a row needs, and what
// stays in registers between passes.
#include <algorithm>

#include "codegen/contract.hpp"
#include "codegen/rows.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

using Operand = LoopNest::Operand;

bool is_same(const Operand* a, const Operand* b) {
  if (!a || !b) return a == b;
  // Those of a nest with one value per row have no strides within it.
  const auto is_still = [](Size s) { return always_equal(s, 0); };
  const std::size_t rank = std::min(a->strides.size(), b->strides.size());
  const auto rest = static_cast<std::ptrdiff_t>(rank);
  return a->buffer == b->buffer && a->dtype == b->dtype && always_equal(a->offset, b->offset) &&
         always_equal(a->indirection.stride, b->indirection.stride) &&
         always_equal(a->indirection.size, b->indirection.size) &&
         std::equal(a->strides.begin(), a->strides.begin() + rest, b->strides.begin(),
                    [](Size x, Size y) { return always_equal(x, y); }) &&
         std::all_of(a->strides.begin() + rest, a->strides.end(), is_still) &&
         std::all_of(b->strides.begin() + rest, b->strides.end(), is_still);
}

bool is_same(const RowsSource& a, const RowsSource& b) {
  return a.compute == b.compute && is_same(a.operand, b.operand) &&
         is_same(a.positions, b.positions);
}

}  // namespace

RowsValues::RowsValues(const RowsGroup& group, const RowsPlan& plan) : group_(group) {
  find_sources();
  if (plan.is_unrolled) choose_held(plan);
}

void RowsValues::find_sources() {
  for (std::size_t m = 0; m < group_.nests.size(); ++m) {
    const LoopNest& nest = group_.nests[m];
    source_.emplace_back(nest.inputs.size(), 0);
    for (std::size_t i : group_.reads_of(m)) {
      const Operand& operand = nest.inputs[i];
      if (group_.maker.contains(operand.buffer)) continue;
      RowsSource source{&operand, positions_of(nest, operand), nest.compute};
      const auto known =
          std::find_if(sources_.begin(), sources_.end(),
                       [&](const RowsSource& other) { return is_same(other, source); });
      source_[m][i] = static_cast<std::size_t>(known - sources_.begin());
      if (known != sources_.end()) continue;
      source.is_many = moves_along(operand, group_.axes) ||
                       (source.positions && moves_along(*source.positions, group_.axes));
      sources_.push_back(source);
    }
  }
}

void RowsValues::add_needs(std::size_t m, std::size_t level, Needs& needs) const {
  if (!needs.nests.insert(m).second) return;
  const LoopNest& nest = group_.nests[m];
  for (std::size_t i : inputs_of(nest.body)) {
    const auto made = group_.maker.find(nest.inputs[i].buffer);
    if (made == group_.maker.end()) {
      if (sources_[source_[m][i]].is_many) needs.sources.insert(source_[m][i]);
      continue;
    }
    const std::size_t other = made->second;
    if (group_.is_reduction(other) || !group_.is_many(other)) continue;
    if (!(held_.contains(other) && group_.level[other] < level)) add_needs(other, level, needs);
  }
}

RowsValues::Needs RowsValues::needs_of(std::size_t level) const {
  Needs needs;
  for (std::size_t m = 0; m < group_.nests.size(); ++m) {
    if (group_.level[m] == level && group_.is_many(m)) add_needs(m, level, needs);
  }
  return needs;
}

/// Whether a nest of a later level reads it.
bool RowsValues::is_needed_later(std::size_t m) const {
  for (std::size_t other = m + 1; other < group_.nests.size(); ++other) {
    if (group_.level[other] <= group_.level[m]) continue;
    const LoopNest& nest = group_.nests[other];
    const std::vector<std::size_t> reads = inputs_of(nest.body);
    if (std::any_of(reads.begin(), reads.end(), [&](std::size_t i) {
          return nest.inputs[i].buffer == group_.nests[m].output.buffer;
        }))
      return true;
  }
  return false;
}

/// What several passes use stays in registers, as far as there are any: first what would have to
/// be computed again.
void RowsValues::choose_held(const RowsPlan& plan) {
  std::int64_t left = plan.threads > 512 ? 32 : 64;
  const auto take = [&](DType compute) {
    const std::int64_t wanted =
        plan.packs * plan.width * static_cast<std::int64_t>(size_of(compute)) / 4;
    if (wanted > left) return false;
    left -= wanted;
    return true;
  };
  for (std::size_t m = 0; m < group_.nests.size(); ++m) {
    if (group_.is_many(m) && !group_.is_reduction(m) && is_needed_later(m) &&
        take(group_.nests[m].compute))
      held_.insert(m);
  }
  std::vector<int> passes(sources_.size(), 0);
  for (std::size_t level = 0; level <= group_.levels; ++level) {
    for (std::size_t s : needs_of(level).sources) ++passes[s];
  }
  for (std::size_t s = 0; s < sources_.size(); ++s)
    sources_[s].is_held = passes[s] > 1 && take(sources_[s].compute);
}

}  // namespace ein::codegen
