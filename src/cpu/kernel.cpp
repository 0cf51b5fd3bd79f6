#include "cpu/kernel.hpp"

#include <algorithm>
#include <stdexcept>

#include "cpu/loops.hpp"
#include "cpu/position.hpp"
#include "cpu/row_code.hpp"
#include "cpu/scheduled.hpp"
#include "cpu/strided_copy.hpp"
#include "graph/after_pass.hpp"
#include "graph/at_sizes.hpp"
#include "machine/parallel.hpp"
#include "size/ask.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein::host {
namespace {

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const LoopNest& nest)
      : from_(nest.inputs[0]),
        to_(nest.output),
        picks_classes_(nest.picks_classes),
        copy_(axes(nest), size_of(to_.dtype)) {
    if (nest.inputs.size() > 1) position_ = nest.inputs[1];
  }

  void run(const Run& run) const override {
    if (copy_.parts() == 0) return;  // not even a position
    std::byte* const to = base(to_, run.buffers) + moved_by(to_, run);
    const std::byte* const from = base(from_, run.buffers) + moved_by(from_, run);
    parallel_for(copy_.parts(), [&](std::int64_t part) { copy_.run(to, from, part); });
  }

 private:
  static std::vector<CopyAxis> axes(const LoopNest& nest) {
    std::vector<CopyAxis> axes;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      axes.push_back({nest.axes[a].size, nest.output.strides[a], nest.inputs[0].strides[a]});
    }
    return axes;
  }

  /// How many bytes further on the position says that an operand begins.
  std::int64_t moved_by(const LoopNest::Operand& operand, const Run& run) const {
    if (!operand.is_indirect()) return 0;
    const LoopNest::Indirection& axis = operand.indirection;
    const std::int64_t count = axis.count();
    std::int64_t position = 0;
    visit_positions(position_.dtype, [&]<class Position>(std::type_identity<Position>) {
      position = *reinterpret_cast<const Position*>(base(position_, run.buffers));
    });
    position = from_.is_indirect() && ask_equal(axis.length, 1)
                   ? checked_gather(picks_classes_, position, count, axis)
                   : checked_position("at", position, count, axis);
    return position * axis.stride * static_cast<std::int64_t>(size_of(operand.dtype));
  }

  LoopNest::Operand from_, to_, position_;
  bool picks_classes_;
  StridedCopy copy_;
};

}  // namespace

std::unique_ptr<Kernel> make_copy_kernel(const LoopNest& nest) {
  return std::make_unique<CopyKernel>(nest);
}

namespace {

/// Whether a nest copies from or to one position: all elements that it moves lie that much further
/// on.
bool copies_at_position(const LoopNest& nest) {
  if (!nest.is_gather() && !nest.writes_at_position()) return false;
  const std::vector<Size>& strides = nest.inputs[1].strides;
  return std::all_of(strides.begin(), strides.end(), [](Size s) { return ask_equal(s, 0); });
}

}  // namespace

namespace {
std::unique_ptr<Kernel> engine_of(const LoopNest& nest) {
  if (nest.is_matrix()) return make_matrix_kernel(nest);
  if (nest.is_collective()) return make_collective_kernel(nest);
  if (copies_at_position(nest)) return make_copy_kernel(nest);
  if (nest.is_gather()) return make_gather_kernel(nest);
  if (nest.is_scatter()) return make_scatter_kernel(nest);
  if (nest.along == LoopNest::Along::scan) return make_scan_kernel(nest);
  if (nest.along == LoopNest::Along::argsort) return make_sort_kernel(nest);
  if (nest.is_copy() && nest.inputs[0].dtype == nest.output.dtype) return make_copy_kernel(nest);
  if (nest.sums_products()) return make_contract_kernel(nest);
  throw std::logic_error("kernel: a nest that no engine is for");
}
}  // namespace

std::unique_ptr<Kernel> make_engine(const LoopNest& nest) {
  // What an engine keeps of a nest is about as much, and so are the copies that it makes of it.
  constexpr std::size_t bytes_of_engine = 1024;
  auto kernel = engine_of(nest);
  kernel->kept.add(bytes_of_engine + 2 * heap_bytes(nest));
  return kernel;
}

namespace {

bool is_one_engine(const Schedule& schedule) {
  return schedule.steps.size() == 1 && schedule.steps[0].parts.size() == 1 &&
         schedule.steps[0].parts[0].whole;
}

std::vector<Size> elements_of(std::span<const Program::Buffer> buffers) {
  std::vector<Size> elements;
  for (const Program::Buffer& buffer : buffers) elements.push_back(buffer.elements);
  return elements;
}

class EnginePlan final : public KernelPlan {
 public:
  explicit EnginePlan(const LoopNest& nest)
      : nest_(nest), kept_(sizeof *this + heap_bytes(nest_)) {}
  std::unique_ptr<Kernel> at(SizesAt& sizes) const override {
    return make_engine(at_sizes(nest_, sizes));
  }

 private:
  LoopNest nest_;
  KeptBytes kept_;
};

}  // namespace

std::unique_ptr<Kernel> KernelPlan::at_numbers() const {
  SizesAt sizes;
  return at(sizes);
}

std::unique_ptr<const KernelPlan> plan_kernel(const LoopNest& nest,
                                              std::span<const Program::Buffer> buffers) {
  for (const Target* target : {&RowCode::target(), &RowCode::target_without_code()}) {
    const Schedule schedule = after_pass("schedule", choose(nest, *target), elements_of(buffers));
    if (is_one_engine(schedule)) return std::make_unique<EnginePlan>(nest);
    if (auto plan = plan_kernel(schedule)) return plan;
  }
  throw std::logic_error("kernel: a schedule without code for rows needs some");
}

std::unique_ptr<const KernelPlan> plan_kernel(const Program& program, const Program::Group& group) {
  if (group.count == 1) return plan_kernel(program.nests[group.first], program.buffers);
  for (const Target* target : {&RowCode::target(), &RowCode::target_without_code()}) {
    const Schedule schedule =
        after_pass("schedule", choose(program, group, *target), elements_of(program.buffers));
    if (auto plan = plan_kernel(schedule)) return plan;
  }
  throw std::logic_error("kernel: a schedule without code for rows needs some");
}

std::string to_string_of_schedules(const Program& program) {
  std::string text;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const Schedule schedule = choose(program, program.groups[g], RowCode::target());
    text += "schedule of group " + std::to_string(g) + ":";
    text +=
        is_one_engine(schedule) ? " left to the engine of its kind\n" : "\n" + to_string(schedule);
  }
  return text;
}

}  // namespace ein::host
