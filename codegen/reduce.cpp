// Reductions. Each result has `lanes` threads, which take turns along the reduced range and then
// combine what they have by halves. Where neighbours in memory are of one result, its lanes are
// neighbouring threads (rows); otherwise neighbouring threads have neighbouring results (columns).
// Few results of many elements are cut into splits, which a second kernel combines. The order of
// all additions follows from shapes alone.
#include <algorithm>
#include <bit>

#include "codegen/elements.hpp"
#include "codegen/forms.hpp"

namespace ein::codegen {
namespace {

/// Threads that keep a device busy: some blocks for each of about a hundred multiprocessors.
constexpr std::int64_t busy_blocks = 264;
/// A thread adds so many values in a row before it adds their sum to its total, so that errors stay
/// small.
constexpr std::int64_t run_length = 32;

struct Plan {
  AxisList kept, reduced;
  std::int64_t results = 1, elements = 1;  // of each result
  bool by_rows = true;
  Pack pack;
  std::int64_t lanes = 1, splits = 1, split_size = 1;
  std::int64_t results_per_block() const { return block_threads / lanes; }
  std::int64_t blocks() const { return ceil_div(results, results_per_block()); }
};

std::int64_t power_of_two(std::int64_t least) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, least))));
}

/// The input whose layout decides: the one with the most elements.
const LoopNest::Operand& guide(const LoopNest& nest) {
  const LoopNest::Operand* best = &nest.output;
  double most = 0;
  for (std::size_t i : inputs_of(nest.body)) {
    double elements = 1;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (nest.inputs[i].strides[a] != 0) elements *= static_cast<double>(nest.axes[a].size);
    }
    if (elements > most) best = &nest.inputs[i];
    most = std::max(most, elements);
  }
  return *best;
}

Plan plan_for(const LoopNest& nest) {
  Plan plan;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    (nest.axes[a].reduced ? plan.reduced : plan.kept).push_back(a);
  }
  const LoopNest::Operand& by = guide(nest);
  // Axes along which it does not move come first: those further in keep memory in order.
  plan.kept = by_stride(std::move(plan.kept), by);
  plan.reduced = by_stride(std::move(plan.reduced), by);
  for (AxisList* axes : {&plan.kept, &plan.reduced}) {
    const auto first_still =
        std::find_if(axes->begin(), axes->end(), [&](std::size_t a) { return by.strides[a] == 0; });
    std::rotate(axes->begin(), first_still, axes->end());
  }
  plan.results = size_of_axes(nest, plan.kept);
  plan.elements = size_of_axes(nest, plan.reduced);
  const auto step = [&](const AxisList& axes) {
    const std::int64_t stride = axes.empty() ? 0 : std::abs(by.strides[axes.back()]);
    return stride == 0 ? INT64_MAX : stride;
  };
  plan.by_rows = plan.results == 1 || step(plan.reduced) < step(plan.kept);
  if (plan.by_rows) {
    std::vector<const LoopNest::Operand*> operands;
    for (std::size_t i : inputs_of(nest.body)) operands.push_back(&nest.inputs[i]);
    const bool is_indirect = std::any_of(operands.begin(), operands.end(), [](const auto* operand) {
      return operand->is_indirect();
    });
    if (!asks_index(nest.body) && !is_indirect && !operands.empty() && !plan.reduced.empty()) {
      plan.pack = pack_along(nest, plan.reduced.back(), operands, false);
    }
    plan.lanes = std::clamp<std::int64_t>(power_of_two(plan.elements / plan.pack.width) / 4, 1,
                                          block_threads);
  } else {
    plan.lanes = std::clamp<std::int64_t>(power_of_two(plan.elements) / 16, 1, 8);
    // Few results leave threads idle otherwise.
    while (plan.lanes < block_threads && plan.results_per_block() / 2 >= plan.results)
      plan.lanes *= 2;
  }
  const std::int64_t per_lane = plan.elements / plan.lanes / plan.pack.width;
  plan.splits = std::clamp<std::int64_t>(
      std::min(busy_blocks / plan.blocks(), per_lane / run_length), 1, busy_blocks);
  const std::int64_t packs = ceil_div(plan.elements, plan.pack.width);
  plan.split_size = ceil_div(packs, plan.splits) * plan.pack.width;
  plan.splits =
      std::max<std::int64_t>(1, ceil_div(plan.elements, plan.split_size > 0 ? plan.split_size : 1));
  return plan;
}

class ReduceWriter {
 public:
  ReduceWriter(const LoopNest& nest, const Plan& plan, const std::string& name)
      : nest_(nest),
        plan_(plan),
        combine_(*nest.combine),
        type_(element_type(nest.compute)),
        w_(name, block_threads, is_narrow(nest)) {}

  /// The first kernel, or the only one.
  KernelSource reduce() {
    declare_inputs(w_, nest_, false);
    const std::size_t bytes =
        size_of(nest_.compute) * static_cast<std::size_t>(plan_.splits * plan_.results);
    if (plan_.splits > 1)
      w_.workspace(type_, "partial", 0, bytes);
    else
      declare_result_operands(inputs_of(nest_.body));
    const std::int64_t per_block = plan_.results_per_block();
    begin(plan_.lanes, plan_.by_rows);
    const bool is_split = plan_.splits > 1;
    if (is_split) {
      w_.block_number("block");
      w_.line("const " + unsigned_type() +
              " result = " + added(times(modulo("block", plan_.blocks()), per_block), slot()) +
              ", split = " + divided("block", plan_.blocks()) + ";");
    } else {
      declare_result(per_block);
    }
    w_.indices(nest_, plan_.kept, "result");
    open_result();
    std::string first = "0", end = std::to_string(plan_.elements);
    if (is_split) {
      const std::string size = std::to_string(plan_.split_size);
      w_.line("const " + unsigned_type() + " begin = split * " + size + "u;");
      w_.line("const " + unsigned_type() + " end = begin + " + size + "u < " + end +
              "u ? begin + " + size + "u : " + end + "u;");
      first = "begin";
      end = "end";
    } else {
      end += "u";
    }
    accumulate(first, end, is_split ? plan_.split_size : plan_.elements);
    close_result();
    combine_threads();
    open_first_lane();
    if (is_split) {
      w_.line("partial[" + added(times("split", plan_.results), "result") + "] = total;");
    } else {
      finish_result();
    }
    close_result();
    return w_.finish(plan_.blocks() * plan_.splits);
  }

  /// The second kernel, which combines the splits.
  KernelSource finish() {
    w_.workspace("const " + type_, "partial", 0, 0);
    declare_result_operands({});
    const std::int64_t lanes = std::min<std::int64_t>(power_of_two(plan_.splits), block_threads);
    const std::int64_t per_block = block_threads / lanes;
    begin(lanes, true);
    declare_result(per_block);
    open_result();
    w_.open("for (u32 split = lane; split < " + std::to_string(plan_.splits) +
            "u; split += " + std::to_string(lanes) + "u) {");
    add("total", "partial[" + added(times("split", plan_.results), "result") + "]");
    w_.close();
    close_result();
    combine_threads();
    open_first_lane();
    w_.indices(nest_, plan_.kept, "result");
    finish_result();
    close_result();
    return w_.finish(ceil_div(plan_.results, per_block));
  }

 private:
  std::string unsigned_type() const { return w_.unsigned_type(); }
  /// Which of a block's results is this thread's.
  std::string slot() const {
    if (by_rows_) return lanes_ == block_threads ? "0u" : divided("threadIdx.x", lanes_);
    return modulo("threadIdx.x", block_threads / lanes_);
  }
  void begin(std::int64_t lanes, bool by_rows) {
    lanes_ = lanes;
    by_rows_ = by_rows;
    const std::string memory = std::to_string(by_rows ? block_threads / 32 : block_threads);
    if (lanes > (by_rows ? 32 : 1))
      w_.line("__shared__ Shared<" + type_ + "> memory[" + memory + "];");
    if (lanes == 1) return;
    const std::string lane = lanes == block_threads ? "threadIdx.x"
                             : by_rows              ? modulo("threadIdx.x", lanes)
                                                    : divided("threadIdx.x", block_threads / lanes);
    w_.line("const u32 lane = " + lane + ";");
  }
  void declare_result(std::int64_t per_block) {
    if (lanes_ == 1) return w_.thread_number("result", block_threads);
    w_.line("const " + unsigned_type() +
            " result = " + added(times(w_.block_number(), per_block), slot()) + ";");
  }
  /// Around what a thread does only if it has a result. All threads of a block come to its
  /// barriers.
  void open_result() {
    const std::string results = std::to_string(plan_.results) + "u";
    if (lanes_ == 1) w_.line("if (result >= " + results + ") return;");
    w_.line(type_ + " total = " + identity(combine_, nest_.compute) + ";");
    if (lanes_ > 1) w_.open("if (result < " + results + ") {");
  }
  void open_first_lane() {
    if (lanes_ > 1) w_.open("if (lane == 0 && result < " + std::to_string(plan_.results) + "u) {");
  }
  void close_result() {
    if (lanes_ > 1) w_.close();
  }
  void add(const std::string& to, const std::string& value) {
    w_.line(to + " = " + combined(combine_, nest_.compute, to, value) + ";");
  }

  /// Adds to `total` this lane's part of the reduced range [first, end), of `count` elements.
  void accumulate(const std::string& first, const std::string& end, std::int64_t count) {
    if (count == 0) return;
    const std::string lane = lanes_ == 1 ? "0" : times("lane", plan_.pack.width);
    const std::int64_t step = lanes_ * plan_.pack.width;
    const bool rounds =
        is_floating(nest_.compute) && (combine_ == Combine::sum || combine_ == Combine::prod);
    const std::int64_t run = step * run_length / plan_.pack.width;
    const bool has_runs = rounds && count > 2 * run;
    const std::string begin = added(first, lane);
    if (!has_runs) {
      w_.open("for (" + unsigned_type() + " r = " + begin + "; r < " + end +
              "; r += " + std::to_string(step) + "u) {");
      add_element("total");
      w_.close();
      return;
    }
    const std::string length = std::to_string(run) + "u";
    w_.open("for (" + unsigned_type() + " first = " + begin + "; first < " + end +
            "; first += " + length + ") {");
    w_.line("const " + unsigned_type() + " last = first + " + length + " < " + end + " ? first + " +
            length + " : " + end + ";");
    w_.line(type_ + " run = " + identity(combine_, nest_.compute) + ";");
    w_.open("for (" + unsigned_type() + " r = first; r < last; r += " + std::to_string(step) +
            "u) {");
    add_element("run");
    w_.close();
    add("total", "run");
    w_.close();
  }

  void add_element(const std::string& to) {
    w_.indices(nest_, plan_.reduced, "r");
    ElementText at{write_loads(w_, nest_, plan_.pack, false, "", "continue")};
    if (plan_.pack.width > 1) {
      w_.line("#pragma unroll");
      w_.open("for (int j = 0; j < " + std::to_string(plan_.pack.width) + "; ++j) {");
    }
    add(to, taken(combine_, nest_.compute, write_expression(w_, nest_.body, nest_.compute, at)));
    if (plan_.pack.width > 1) w_.close();
  }

  void combine_threads() {
    if (lanes_ == 1) return;
    const std::string lanes = std::to_string(lanes_);
    const std::string function = "[](" + type_ + " a, " + type_ + " b) { return " +
                                 combined(combine_, nest_.compute, "a", "b") + "; }";
    if (by_rows_) {
      w_.line("total = combine_lanes<" + lanes + ">(total, " +
              (lanes_ > 32 ? "memory" : "no_memory<" + type_ + ">()") + ", " + function + ");");
    } else {
      w_.line("total = combine_rows<" + lanes + ", " + std::to_string(block_threads / lanes_) +
              ">(total, memory, " + function + ");");
    }
  }

  /// What the epilogue reads beside what is declared already, and the result.
  void declare_result_operands(const std::vector<std::size_t>& declared) {
    for (std::size_t i : epilogue_inputs(nest_)) {
      if (std::count(declared.begin(), declared.end(), i) == 0)
        w_.input(nest_, i, element_type(nest_.inputs[i].dtype));
    }
    w_.output(nest_, element_type(nest_.output.dtype));
  }

  void finish_result() {
    const std::string value = write_finished(w_, nest_, "total");
    w_.line("y[" + w_.place(nest_.output) +
            "] = " + converted(value, nest_.compute, nest_.output.dtype) + ";");
  }

  const LoopNest& nest_;
  const Plan& plan_;
  Combine combine_;
  std::string type_;
  Writer w_;
  std::int64_t lanes_ = 1;
  bool by_rows_ = true;
};

}  // namespace

Kernels emit_reduce(const LoopNest& nest, const Context& context) {
  const Plan plan = plan_for(nest);
  const std::string kind = std::string("reduce_") + (plan.splits > 1 ? "parts_"
                                                     : plan.by_rows  ? "rows_"
                                                                     : "columns_");
  const std::string type(name(nest.output.dtype));
  Kernels kernels;
  kernels.push_back(ReduceWriter(nest, plan, kind + type + context.suffix).reduce());
  if (plan.splits > 1)
    kernels.push_back(ReduceWriter(nest, plan, "reduce_finish_" + type + context.suffix).finish());
  return kernels;
}

}  // namespace ein::codegen
