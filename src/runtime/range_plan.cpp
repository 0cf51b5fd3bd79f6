#include "runtime/range_plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <ein/error.hpp>
#include "graph/after_pass.hpp"
#include "nest/at_sizes.hpp"
#include "nest/heap_bytes.hpp"
#include "runtime/trace.hpp"
#include "tensor/fork.hpp"

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

}  // namespace

RangePlan::RangePlan(const OpenSizes& open, Operands like, const MakePlan& make) {
  const SizeScope scope(open.values(), SizeScope::Reading::is_guard,
                        guards_of_names(open.values()));
  const std::vector<Tensor> named = open.named(like);
  std::vector<const Tensor*> operands;
  for (const Tensor& x : named) operands.push_back(&x);
  plan_ = make(operands);
  program_ = plan_->lowered();
  if (!has_bits_of_numbers(program_)) return;
  const Backend& backend = backend_of(plan_->device());
  backend.group(program_);
  kernels_ = backend.plan(program_);
  guards_ = scope.guards();
  kept_.add(sizeof *this + heap_bytes(program_));
}

std::shared_ptr<const Plan> RangePlan::at(const SizeValues& values) const {
  SizesAt sizes(values);
  // An Error where there are too many.
  for (const Program::Buffer& buffer : program_.buffers) sizes(buffer.bytes());
  Program program = at_sizes(program_, sizes);
  for (LoopNest& nest : program.nests) {
    const std::size_t axes = nest.axes.size();
    simplify(nest);
    if (nest.axes.size() != axes) return nullptr;
  }
  auto kernels = kernels_->at(sizes);
  return std::make_shared<const Plan>(
      plan_, values, std::make_unique<const Executable>(std::move(program), std::move(kernels)));
}

std::shared_ptr<const RangePlan> RangePlans::find(const SizeValues& values) {
  const NoForkLock lock(mutex_);
  const auto found = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const auto& plan) { return plan->holds(values); });
  return found == plans_.end() ? nullptr : *found;
}

bool RangePlans::may_make() {
  const NoForkLock lock(mutex_);
  if (std::exchange(is_first_, false) || attempts_ >= most_attempts) return false;
  ++attempts_;
  return true;
}

void RangePlans::keep(std::shared_ptr<const RangePlan> made) {
  const NoForkLock lock(mutex_);
  if (made && made->is_sound())
    plans_.push_back(std::move(made));
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
  const std::string ours = to_string(plan.graph()) + nests(plan.executable().program),
                    theirs = to_string(alone.graph()) + nests(alone.executable().program);
  if (ours != theirs)
    throw std::logic_error(plan.call() + ": a plan of a range is\n" + ours + "not\n" + theirs);
}

}  // namespace

std::shared_ptr<const Plan> RangePlans::plan(const OpenSizes& open, Operands operands,
                                             const MakePlan& make) try {
  auto range = find(open.values());
  if (!range) {
    if (!may_make()) return nullptr;
    // Of numbers that is soon known.
    if (has_bits_of_numbers(make(operands)->lowered()))
      range = std::make_shared<const RangePlan>(open, operands, make);
    keep(range);
    if (!range || !range->is_sound()) return nullptr;
  }
  auto plan = range->at(open.values());
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
