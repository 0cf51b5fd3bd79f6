#include "runtime/range_plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <ein/error.hpp>
#include "graph/after_pass.hpp"
#include "graph/at_sizes.hpp"
#include "machine/fork.hpp"
#include "runtime/trace.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein::engine {
namespace {

constexpr std::int64_t least_open = 3;

/// The names of sizes, of which more stay numbers.
const std::vector<Size>& names() {
  return made_once([] {
    std::vector<Size> names;
    for (int i = 0; i < 32; ++i) names.push_back(Size::named("n" + std::to_string(i)));
    return names;
  });
}

}  // namespace

bool OpenSizes::add(PlanKey& kind, Operands operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [&](const Tensor* x) { return x->device() == cpu && add(kind, *x); });
}

bool OpenSizes::add(PlanKey& kind, const Tensor& x) {
  kind.add_kind(x);
  std::vector<std::size_t>& order = orders_.emplace_back();
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (x.shape()[d] == 0) return false;
    kind.add(name_of(x.shape()[d]).word());
    if (x.shape()[d] != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return x.strides()[a] > x.strides()[b]; });
  Size stride = 1;
  for (std::size_t i = order.size(); i-- > 0; stride *= x.shape()[order[i]]) {
    if (x.strides()[order[i]] != stride) return false;
    kind.add(static_cast<std::int64_t>(order[i]));
  }
  return true;
}

Size OpenSizes::name_of(Size size) {
  if (size < least_open) return size;
  for (const auto& [name, value] : values_) {
    if (value == size) return name;
  }
  if (values_.size() == names().size()) return size;
  values_.emplace_back(names()[values_.size()], size);
  return values_.back().first;
}

std::vector<Tensor> OpenSizes::named(Operands operands) const {
  std::vector<Tensor> named;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Tensor& x = *operands[k];
    Shape shape = x.shape();
    for (Size& size : shape) {
      const auto is_it = [&](const auto& of) { return of.second == size; };
      const auto name = std::find_if(values_.begin(), values_.end(), is_it);
      if (name != values_.end()) size = name->first;
    }
    Strides strides(x.rank(), 1);
    Size stride = 1;
    for (std::size_t i = orders_[k].size(); i-- > 0; stride *= shape[orders_[k][i]])
      strides[orders_[k][i]] = stride;
    named.emplace_back(std::make_shared<const detail::TensorData>(
        detail::TensorData{nullptr, shape, strides, 0, x.dtype(), {0, 0, x.device()}}));
  }
  return named;
}

namespace {

/// Whether a plan for a range of lengths gives the same bits as one for a single length. One
/// product or one move does: its engine decides by numbers alone. So does one map: whether its
/// functions run as row code or in strips, whose last bits differ, follows from comparisons of
/// sizes, which become guards, and from strides along a row, which are numbers here too. Other sums
/// use another order, and several nests may form other groups.
bool has_bits_of_numbers(const Program& program) {
  if (program.nests.size() > 1) return false;
  return std::all_of(program.nests.begin(), program.nests.end(), [](const LoopNest& nest) {
    return nest.sums_products() || (!nest.combine && nest.along == LoopNest::Along::nothing);
  });
}

SizeGuards guards_of_names(const SizeValues& values) {
  SizeGuards guards;
  for (const auto& [name, value] : values) guards.ranges.push_back({name, least_open});
  return guards;
}

/// For these sizes passes decide whatever they ask. None where plans would not have the bits of
/// those of numbers.
std::optional<Range> range_of(const OpenSizes& open, Operands like, const MakePlan& make) {
  const SizeScope scope(open.values(), SizeScope::Reading::is_guard,
                        guards_of_names(open.values()));
  const std::vector<Tensor> named = open.named(like);
  std::vector<const Tensor*> operands;
  for (const Tensor& x : named) operands.push_back(&x);
  Range range{make(operands), nullptr};
  const auto compiled = std::make_shared<Compiled>(range.plan->graph(), range.plan->job(),
                                                   open.values(), scope.guards());
  if (!has_bits_of_numbers(compiled->program())) return std::nullopt;
  compiled->load();
  range.compiled = compiled;
  return range;
}

/// The plan of these sizes; null where a program of numbers has simpler nests.
std::shared_ptr<const Plan> plan_at(const Range& range, const SizeValues& values) {
  auto bound = std::make_unique<const Bound>(range.compiled, values);
  Program program = bound->program();
  for (LoopNest& nest : program.nests) {
    const std::size_t axes = nest.axes.size();
    simplify(nest);
    if (nest.axes.size() != axes) return nullptr;
  }
  return std::make_shared<const Plan>(range.plan, std::move(bound));
}

}  // namespace

std::optional<Range> RangePlans::find(const SizeValues& values) {
  const NoForkLock lock(mutex_);
  const auto found = std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.compiled->guards().hold(values);
  });
  return found == ranges_.end() ? std::nullopt : std::optional(*found);
}

bool RangePlans::may_make() {
  const NoForkLock lock(mutex_);
  if (std::exchange(is_first_, false) || attempts_ >= most_attempts) return false;
  ++attempts_;
  return true;
}

void RangePlans::keep(const std::optional<Range>& made) {
  const NoForkLock lock(mutex_);
  if (made)
    ranges_.push_back(*made);
  else
    attempts_ = most_attempts;
}

namespace {

/// Throws where passes make something else of numbers alone.
void verify(const Plan& plan, const Plan& alone) {
  const auto nests = [](const Program& program) {
    std::string text;
    for (const LoopNest& nest : program.nests) text += to_string(nest) + "\n";
    return text;
  };
  const std::string ours = to_string(plan.graph()) + nests(plan.bound().program()),
                    theirs = to_string(alone.graph()) + nests(alone.bound().program());
  if (ours != theirs)
    throw std::logic_error(plan.call() + ": a plan of a range is\n" + ours + "not\n" + theirs);
}

}  // namespace

std::shared_ptr<const Plan> RangePlans::plan(const OpenSizes& open, Operands operands,
                                             const MakePlan& make) try {
  std::optional<Range> range = find(open.values());
  if (!range) {
    if (!may_make()) return nullptr;
    // Of numbers that is soon known.
    const auto numbers = make(operands);
    if (has_bits_of_numbers(lowered(numbers->graph(), numbers->job()).program))
      range = range_of(open, operands, make);
    keep(range);
    if (!range) return nullptr;
  }
  auto plan = plan_at(*range, open.values());
  if (plan && verifies_passes()) verify(*plan, *make(operands));
  return plan;
} catch (const Error&) {
  return nullptr;  // what is wrong with the call is said of its numbers
}

std::shared_ptr<const Plan> plan_of_range(std::span<const std::int64_t> kind_words,
                                          Operands operands, const MakePlan& make) {
  if (Trace::active()) return nullptr;  // which wants graphs alone
  PlanKey kind(kind_words);
  OpenSizes open;
  if (!open.add(kind, operands) || open.values().empty()) return nullptr;
  return range_plans(kind)->plan(open, operands, make);
}

}  // namespace ein::engine
