// Groups of nests that share their rows, as one kernel. A row has `lanes` threads, which walk it in
// the same way in every nest: what a nest makes at a point is used by the thread that made it, from
// a register or, in rows too long for that, computed again. Nests that need only what is there
// already share a pass over the row; between passes the totals of reductions are combined, and
// every thread has them. The order of all additions follows from shapes alone.
#include "codegen/rows.hpp"

#include <algorithm>

#include "codegen/forms.hpp"
#include "graph/after_pass.hpp"
#include "schedule/gpu_choose.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

class RowsWriter {
 public:
  RowsWriter(const RowsGroup& group, const RowsPlan& plan, const std::string& name)
      : group_(group),
        plan_(plan),
        values_(group_, plan_),
        // A large block alone on a multiprocessor may have all its registers.
        w_(name, static_cast<unsigned>(plan_.threads), has_narrow_indices(),
           plan_.threads >= 512 ? 1 : 0),
        reader_(w_, group_, plan_, values_) {}

  KernelSource write() {
    reader_.declare_arguments();
    begin();
    for (std::size_t level = 0; level <= group_.levels; ++level) {
      for (std::size_t m = 0; m < group_.nests.size(); ++m) {
        if (group_.level[m] == level && !group_.is_many(m)) write_scalar(m);
      }
      write_pass(level);
      for (std::size_t m = 0; m < group_.nests.size(); ++m) {
        if (group_.level[m] == level && group_.is_reduction(m)) finish_reduction(m);
      }
    }
    return w_.finish(ceil_div(lines(), plan_.rows_per_block()));
  }

 private:
  /// A pass over the row, which computes the nests of a level.
  struct Pass {
    std::size_t level = 0;
    RowsValues::Needs needs;
    std::vector<std::size_t> reductions;
    std::set<std::size_t> runs;  // those of them that add run by run
  };

  bool has_narrow_indices() const {
    return is_narrow(std::array{lines(), Size(plan_.lanes)}) &&
           std::all_of(group_.nests.begin(), group_.nests.end(),
                       [](const LoopNest& nest) { return is_narrow(nest); });
  }

  // --- names ---

  const LoopNest& nest(std::size_t m) const { return group_.nests[m]; }
  std::string type_of(std::size_t m) const { return element_type(nest(m).compute); }
  static std::string named(const char* letter, std::size_t m) { return letter + std::to_string(m); }
  /// Of the variables of a nest's expressions.
  static std::string prefix(std::size_t m) { return named("n", m) + "_"; }

  // --- rows ---

  /// Rows, or their pieces.
  Size lines() const { return plan_.rows * plan_.pieces; }
  bool is_cut() const { return !is_one(plan_.pieces); }
  bool is_whole() const { return always_equal(lines() % plan_.rows_per_block(), 0); }
  std::string if_row() const { return is_whole() ? "" : "if (is_row) "; }

  void begin() {
    const std::int64_t per_block = plan_.rows_per_block();
    const std::string slot =
        plan_.by_rows ? divided("threadIdx.x", plan_.lanes) : modulo("threadIdx.x", per_block);
    const std::string lane =
        plan_.by_rows
            ? (plan_.lanes == plan_.threads ? "threadIdx.x" : modulo("threadIdx.x", plan_.lanes))
            : divided("threadIdx.x", per_block);
    w_.line("const u32 lane = " + lane + ";");
    const std::string number =
        added(times(w_.block_number(), per_block), per_block == 1 ? "0u" : slot);
    const std::string type = "const " + w_.unsigned_type();
    std::string line = number;
    if (!is_whole()) {
      // All threads come to the barriers; those of no row do what those of the last one do.
      w_.line(type + " number = " + number + ";");
      w_.line("const bool is_row = number < " + count(lines()) + ";");
      line = "is_row ? number : " + count(lines() - 1);
    }
    if (!is_cut()) {
      w_.line(type + " row = " + line + ";");
    } else {
      const std::string piece = count(plan_.piece), n = elements();
      w_.line(type + " line = " + line + ";");
      w_.line(type + " row = " + modulo("line", plan_.rows) +
              ", begin = " + divided("line", plan_.rows) + " * " + piece + ";");
      w_.line(type + " end = begin + " + piece + " < " + n + " ? begin + " + piece + " : " + n +
              ";");
    }
    w_.indices(*group_.whole, group_.row_axes, "row");
    reader_.declare_held();
  }

  // --- a value for each row ---

  /// The value as it would be read back: rounded to the dtype of the result.
  std::string rounded(std::size_t m, const std::string& value) const {
    const DType compute = nest(m).compute, stored = nest(m).output.dtype;
    return converted(converted(value, compute, stored), stored, compute);
  }

  void finish_scalar(std::size_t m, const std::string& value) {
    const std::string result = named("r", m);
    w_.line("const " + type_of(m) + " " + result + " = " + rounded(m, value) + ";");
    if (group_.is_local[m]) return;
    const std::string place = is_cut() ? "line" : w_.place(nest(m).output, group_.row_axes);
    w_.line(std::string("if (lane == 0") + (is_whole() ? "" : " && is_row") + ") " + named("y", m) +
            "[" + place + "] = " + converted(result, nest(m).compute, nest(m).output.dtype) + ";");
  }

  void write_scalar(std::size_t m) {
    reader_.load_scalars(m);
    ElementText at{reader_.inputs(m, inputs_of(nest(m).body))};
    at.place = w_.place(nest(m).output);
    finish_scalar(m, write_expression(w_, nest(m).body, nest(m).compute, at, prefix(m)));
  }

  // --- reductions ---

  void declare_total(std::size_t m, const std::string& total) {
    w_.line(type_of(m) + " " + total + " = " + identity(*nest(m).combine, nest(m).compute) + ";");
  }
  /// `total` combined with `value`.
  void combine(std::size_t m, const std::string& total, const std::string& value) {
    w_.line(total + " = " + combined(*nest(m).combine, nest(m).compute, total, value) + ";");
  }

  /// Makes the totals of a row's lanes one, which all of them have.
  void combine_lanes(std::size_t m, const std::string& total) {
    const std::string type = type_of(m), memory = named("memory", m),
                      lanes = std::to_string(plan_.lanes);
    const bool needs_memory = !plan_.by_rows || plan_.lanes > 32;
    const std::int64_t slots = plan_.by_rows ? plan_.threads / 32 : plan_.threads;
    if (needs_memory)
      w_.line("__shared__ Shared<" + type + "> " + memory + "[" + std::to_string(slots) + "];");
    const std::string function = combining(*nest(m).combine, nest(m).compute);
    if (plan_.by_rows) {
      w_.line(total + " = combine_lanes<" + lanes + ">(" + total + ", " +
              (needs_memory ? memory : "no_memory<" + type + ">()") + ", " + function + ");");
    } else {
      const std::string step = std::to_string(plan_.rows_per_block());
      w_.line("combine_rows<" + lanes + ", " + step + ">(" + total + ", " + memory + ", " +
              function + ");");
      w_.line(total + " = " + memory + "[" + modulo("threadIdx.x", plan_.rows_per_block()) + "];");
    }
  }

  void finish_reduction(std::size_t m) {
    const ScalarExpr& epilogue = nest(m).epilogue;
    std::string value = named("t", m);
    if (plan_.lanes > 1) combine_lanes(m, value);
    if (!epilogue.steps.empty()) {
      ElementText at{reader_.inputs(m, {})};
      at.inputs[0] = value;
      for (std::size_t i : inputs_of(epilogue)) {
        if (i > 0) at.inputs[i] = reader_.input(m, i);
      }
      value = write_expression(w_, epilogue, nest(m).compute, at, prefix(m));
    }
    finish_scalar(m, value);
  }

  // --- passes ---

  void write_pass(std::size_t level) {
    Pass pass{level, values_.needs_of(level), {}, {}};
    if (pass.needs.nests.empty()) return;
    // What is read at all had better be on its way before the first barrier.
    for (std::size_t s = 0; s < values_.sources().size(); ++s) {
      if (values_.sources()[s].is_held) pass.needs.sources.insert(s);
    }
    for (std::size_t m : pass.needs.nests) {
      reader_.load_scalars(m);
      if (!group_.is_reduction(m)) continue;
      pass.reductions.push_back(m);
      if (rounds(*nest(m).combine, nest(m).compute) && !plan_.is_unrolled) pass.runs.insert(m);
    }
    for (std::size_t m : pass.reductions) declare_total(m, named("t", m));
    if (plan_.is_unrolled) {
      write_unrolled(pass);
    } else if (pass.runs.empty()) {
      write_loop(pass, lane_begin(), end());
    } else {
      write_runs(pass);
    }
  }

  std::string elements() const { return count(plan_.elements); }
  /// Of a lane's elements.
  std::string lane_begin() const {
    return added(is_cut() ? "begin" : "0u", times("lane", plan_.width));
  }
  std::string end() const { return is_cut() ? "end" : elements(); }
  /// From an element of a lane to its next.
  std::int64_t step() const { return plan_.lanes * plan_.width; }

  void write_unrolled(const Pass& pass) {
    w_.open_unrolled("for (int p = 0; p < " + std::to_string(plan_.packs) + "; ++p) {");
    w_.line("const " + w_.unsigned_type() + " e = " + added("p * " + count(step()), lane_begin()) +
            ";");
    const bool is_ragged = !always_equal(plan_.elements, step() * plan_.packs);
    if (is_ragged) w_.open("if (e < " + elements() + ") {");
    write_element(pass);
    if (is_ragged) w_.close();
    w_.close();
  }

  void write_loop(const Pass& pass, const std::string& first, const std::string& last) {
    // A thread that reads single elements asks for many at once.
    const bool is_column = !plan_.by_rows && group_.nests.size() == 1,
               has_one_source = pass.needs.sources.size() < 2;
    int turns = 4;
    if (is_column)
      turns = has_one_source ? 16 : 8;
    else if (plan_.width == 1 && has_one_source)
      turns = 8;
    w_.line("#pragma unroll " + std::to_string(turns));
    w_.open(loop(w_.unsigned_type(), "e", first, last, count(step())));
    write_element(pass);
    w_.close();
  }

  void write_runs(const Pass& pass) {
    const std::string n = end(), run = count(plan_.lanes * std::max(plan_.run, plan_.width));
    w_.open(loop(w_.unsigned_type(), "first", lane_begin(), n, run));
    w_.line("const " + w_.unsigned_type() + " last = first + " + run + " < " + n + " ? first + " +
            run + " : " + n + ";");
    for (std::size_t m : pass.runs) declare_total(m, named("u", m));
    write_loop(pass, "first", "last");
    for (std::size_t m : pass.runs) combine(m, named("t", m), named("u", m));
    w_.close();
  }

  // --- elements ---

  bool is_held(std::size_t m) const { return values_.held().contains(m); }
  bool is_stored(const Pass& pass, std::size_t m) const {
    return group_.level[m] == pass.level && !group_.is_local[m] && !group_.is_reduction(m);
  }
  /// Whether a thread stores a whole pack with one access.
  bool is_stored_at_once(const Pass& pass, std::size_t m) const {
    return plan_.width > 1 && is_stored(pass, m) &&
           is_one(nest(m).output.strides[group_.axes.back()]);
  }

  /// One pack at `e`: loads, the nests in order, stores.
  void write_element(const Pass& pass) {
    w_.indices(*group_.whole, group_.axes, "e");
    for (std::size_t s : pass.needs.sources) reader_.load(s);
    for (std::size_t m : pass.needs.nests) {
      if (is_stored_at_once(pass, m) && !is_held(m))
        w_.line(type_of(m) + " " + named("o", m) + reader_.pack() + ";");
    }
    if (plan_.width > 1) reader_.open_pack();
    for (std::size_t m : pass.needs.nests) write_nest(pass, m);
    if (plan_.width > 1) w_.close();
    for (std::size_t m : pass.needs.nests) {
      if (!is_stored_at_once(pass, m)) continue;
      w_.line(if_row() + "store(" + added(named("y", m), w_.place(nest(m).output)) + ", " +
              (is_held(m) ? named("h", m) + "[p]" : named("o", m)) + ");");
    }
  }

  /// What a nest computes at an element.
  void write_nest(const Pass& pass, std::size_t m) {
    ElementText at{reader_.inputs(m, inputs_of(nest(m).body))};
    at.place = reader_.place_of_j(nest(m).output);
    if (plan_.width > 1) {
      at.moved_axis = group_.axes.back();
      at.moved_index = axis_name(at.moved_axis) + " + j";
    }
    const std::string value = write_expression(w_, nest(m).body, nest(m).compute, at, prefix(m));
    if (group_.is_reduction(m)) {
      combine(m, named(pass.runs.contains(m) ? "u" : "t", m),
              taken(*nest(m).combine, nest(m).compute, value));
      return;
    }
    const std::string result = reader_.value_of(m);
    w_.line((is_held(m) ? result : "const " + type_of(m) + " " + result) + " = " +
            rounded(m, value) + ";");
    if (is_stored_at_once(pass, m)) {
      if (!is_held(m)) w_.line(named("o", m) + "[j] = " + result + ";");
    } else if (is_stored(pass, m)) {
      w_.line(if_row() + named("y", m) + "[" + at.place +
              "] = " + converted(result, nest(m).compute, nest(m).output.dtype) + ";");
    }
  }

  const RowsGroup& group_;
  const RowsPlan& plan_;
  const RowsValues values_;
  Writer w_;
  RowsReader reader_;
};

/// The name of a step's kernel, by what it does.
std::string kind_of(const RowsGroup& group, const RowsPlan& plan) {
  if (group.nests.size() > 1) return "rows_";
  if (!is_one(plan.pieces)) return "reduce_parts_";
  const LoopNest& nest = group.nests.front();
  if (!nest.inputs.empty() && nest.inputs[0].buffer == workspace_buffer) return "reduce_finish_";
  return plan.by_rows ? "reduce_rows_" : "reduce_columns_";
}

}  // namespace

Kernels emit_rows(const Schedule& schedule, const Context& context, int workspace) {
  Kernels kernels;
  for (const Schedule::Step& step : schedule.steps) {
    const RowsGroup group(schedule, step, workspace);
    const RowsPlan plan(group, step);
    const std::string type(name(group.nests.back().output.dtype));
    kernels.push_back(
        RowsWriter(group, plan, kind_of(group, plan) + type + context.suffix).write());
  }
  return kernels;
}

Kernels emit_reduce(const LoopNest& nest, const Context& context) {
  // What other kernels left in the workspace is to the schedule a buffer like others.
  LoopNest named = nest;
  int workspace = nest.output.buffer + 1;
  for (const LoopNest::Operand& input : nest.inputs)
    workspace = std::max(workspace, input.buffer + 1);
  for (LoopNest::Operand& input : named.inputs) {
    if (input.buffer == workspace_buffer) input.buffer = workspace;
  }
  return emit_rows(after_pass("schedule", choose(named, context.target)), context, workspace);
}

}  // namespace ein::codegen
