#include "cpu/rows.hpp"

#include <algorithm>
#include <cstdlib>

#include "cpu/cache.hpp"
#include "cpu/combine.hpp"
#include "cpu/loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/row_code.hpp"
#include "cpu/small_array.hpp"
#include "cpu/strip.hpp"

namespace ein::host {
namespace {

using Operand = LoopNest::Operand;

/// Fewer points are done before the code is compiled.
constexpr std::int64_t least_points = 2048;
/// Shorter rows leave lanes of a vector empty.
constexpr std::int64_t least_length = 16;

const Operand& operand(const LoopNest& nest, std::size_t o) { return o < nest.inputs.size() ? nest.inputs[o] : nest.output; }

/// A nest as rows: the axis along them, and the one that they follow each other on.
struct Walk {
  std::size_t along = no_axis, row = no_axis;
};

std::int64_t stride(const Operand& operand, std::size_t axis) { return axis == no_axis ? 0 : operand.strides[axis]; }

/// Whether all operands lie along the rows.
bool lies_along(const LoopNest& nest, std::size_t along) {
  for (const Operand& input : nest.inputs) {
    if (!RowCode::can_step(input.dtype, input.strides[along])) return false;
  }
  return nest.axes[along].reduced || nest.output.strides[along] == 1;
}

class RowsKernel final : public Kernel {
 public:
  /// Each part of a run is so many rows, or elements of the only row.
  struct Plan {
    RowProgram program;
    std::vector<Operand> places;  // an operand of each
    Loops outer;
    std::vector<std::size_t> offsets;  // of each place: which of the operands of `outer`
    std::size_t axes = 0;              // of a nest
    std::int64_t rows = 1, step = 1;   // rows of each outer point, or elements of the only row, and how many are a part
    bool cuts_along = false;
    std::vector<std::pair<std::size_t, float>> begin_as;  // places that begin with a row of such numbers
  };

  /// `streaming` does the same past the caches, with rows of memory as places behind the plan's; its code may be none.
  RowsKernel(Plan plan, std::unique_ptr<const RowCode> code, RowProgram streaming, std::unique_ptr<const RowCode> streaming_code)
      : plan_(std::move(plan)), code_(std::move(code)), streaming_(std::move(streaming)), streaming_code_(std::move(streaming_code)) {}

  void run(const Run& run) const override {
    const std::int64_t pieces = (plan_.rows + plan_.step - 1) / plan_.step, units = plan_.outer.count() * pieces;
    parallel_for(units, [&](std::int64_t unit) { run_unit(run, unit / pieces, unit % pieces); });
  }

 private:
  void run_unit(const Run& run, std::int64_t point, std::int64_t piece) const {
    const RowProgram& program = plan_.program;
    Loops::Cursor cursor(plan_.outer, plan_.axes);
    cursor.seek(point);
    const std::int64_t first = piece * plan_.step, count = std::min(plan_.step, plan_.rows - first);
    SmallArray<std::byte*, most_operands> places(streaming_.places.size());
    for (std::size_t p = 0; p < plan_.places.size(); ++p) {
      const RowProgram::Place& place = program.places[p];
      const std::int64_t elements = first * (plan_.cuts_along ? place.step : place.row_step);
      places[p] = base(plan_.places[p], run.buffers) + elements * static_cast<std::int64_t>(size_of(place.dtype));
      if (plan_.outer.count() > 1) places[p] += cursor.offset(plan_.offsets[p]);
    }
    for (const auto& [p, number] : plan_.begin_as) std::fill_n(reinterpret_cast<float*>(places[p]), program.length, number);
    const auto axis = plan_.cuts_along ? program.along_axis : program.row_axis;
    if (axis) cursor.index()[*axis] = first;
    const bool streams = streaming_code_ && are_aligned(places);
    if (streams) {
      auto* row = reinterpret_cast<std::byte*>(strip_scratch<float>(row_elements() * (places.size() - plan_.places.size())));
      for (std::size_t p = plan_.places.size(); p < places.size(); ++p, row += row_elements() * sizeof(float)) places[p] = row;
    }
    const RowCode& code = streams ? *streaming_code_ : *code_;
    code({places.data(), plan_.cuts_along ? count : program.length, plan_.cuts_along ? 1 : count, cursor.index().data()});
  }

  bool are_aligned(SmallArray<std::byte*, most_operands>& places) const {
    for (std::size_t p = 0; p < plan_.places.size(); ++p) {
      if (streaming_.places[p].streams && reinterpret_cast<std::uintptr_t>(places[p]) % line_bytes != 0) return false;
    }
    return true;
  }

  std::size_t row_elements() const { return static_cast<std::size_t>(plan_.cuts_along ? plan_.step : plan_.program.length); }

  Plan plan_;
  std::unique_ptr<const RowCode> code_;
  RowProgram streaming_;
  std::unique_ptr<const RowCode> streaming_code_;
};

/// Whether what nest n writes could pass by the caches.
bool could_stream(const RowProgram& program, std::size_t n) {
  const RowProgram::Nest& nest = program.nests[n];
  const RowProgram::Place& place = program.places[nest.output];
  constexpr auto size = static_cast<std::int64_t>(sizeof(float));
  if (nest.combine || nest.is_scalar || place.dtype != DType::f32 || place.step != 1 || !place.is_kept) return false;
  if (place.row_step * size % line_bytes != 0) return false;
  // Of what was there before nothing may be needed.
  return std::none_of(program.nests.begin(), program.nests.end(), [&](const RowProgram::Nest& other) {
    const bool reads = std::find(other.inputs.begin(), other.inputs.end(), nest.output) != other.inputs.end();
    return (reads && &other <= &nest) || (&other != &nest && other.output == nest.output);
  });
}

/// Lets nest n write past the caches; those behind it that read the row again find it in a row's memory beside.
void stream(RowProgram& program, std::size_t n) {
  const std::size_t p = program.nests[n].output;
  program.places[p].streams = true;
  const auto reads = [&](const RowProgram::Nest& nest) { return std::find(nest.inputs.begin(), nest.inputs.end(), p) != nest.inputs.end(); };
  if (std::none_of(program.nests.begin(), program.nests.end(), reads)) return;
  const std::size_t beside = program.places.size();
  program.places.push_back({.step = 1, .is_kept = false});
  for (RowProgram::Nest& nest : program.nests) std::replace(nest.inputs.begin(), nest.inputs.end(), p, beside);
  program.nests[n].output = beside;
  program.nests.insert(program.nests.begin() + static_cast<std::ptrdiff_t>(n) + 1, {.inputs = {beside}, .output = p, .body = Ex::input(0)});
}

/// Of `blocks` runs together.
std::unique_ptr<Kernel> make(RowsKernel::Plan plan, std::int64_t blocks) {
  auto code = RowCode::compile(plan.program);
  if (!code) return nullptr;
  RowProgram streaming = plan.program;
  // Where all that is read and written is more than the cache holds, results leave it before they are read again, and
  // each line of them would first be read.
  const std::int64_t elements = blocks * plan.outer.count() * plan.rows * (plan.cuts_along ? 1 : plan.program.length);
  std::int64_t bytes = 0;
  for (const RowProgram::Place& place : plan.program.places) {
    if (place.is_kept && place.step != 0 && (place.row_step != 0 || plan.cuts_along)) bytes += elements * place.step * static_cast<std::int64_t>(size_of(place.dtype));
  }
  for (std::size_t n = 0; n < streaming.nests.size() && bytes >= last_level_cache_bytes(); ++n) {
    if (could_stream(streaming, n)) stream(streaming, n);
  }
  const bool streams = std::any_of(streaming.places.begin(), streaming.places.end(), [](const RowProgram::Place& place) { return place.streams; });
  auto past_caches = streams && streaming.places.size() <= most_operands ? RowCode::compile(streaming) : nullptr;
  if (!past_caches) streaming = plan.program;
  return std::make_unique<RowsKernel>(std::move(plan), std::move(code), std::move(streaming), std::move(past_caches));
}

std::optional<Walk> walk_of(const LoopNest& nest) {
  Walk walk;
  std::int64_t points = 1;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    points *= nest.axes[a].size;
    if (nest.axes[a].size == 0) return std::nullopt;
    if (nest.axes[a].reduced != nest.combine.has_value()) continue;
    if (nest.combine ? walk.along != no_axis : nest.output.strides[a] != 1) {
      if (nest.combine) return std::nullopt;  // two axes are reduced
      continue;
    }
    walk.along = a;
  }
  if (walk.along == no_axis || points < least_points || !lies_along(nest, walk.along)) return std::nullopt;
  const std::int64_t length = nest.axes[walk.along].size;
  // The rows follow each other on the longest of the axes left.
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (a != walk.along && (walk.row == no_axis || nest.axes[a].size > nest.axes[walk.row].size)) walk.row = a;
  }
  if (length < least_length && length < points) return std::nullopt;
  // Few long rows are combined by several threads.
  if (nest.combine && (length > longest_combined_row || (points > elements_per_part && points / length < 16))) return std::nullopt;
  return walk;
}

}  // namespace

bool is_direct_f32(const LoopNest& nest) {
  const bool is_direct = std::none_of(nest.inputs.begin(), nest.inputs.end(), [](const Operand& input) { return input.is_indirect(); });
  return is_direct && !nest.is_scatter() && nest.along == LoopNest::Along::nothing && nest.compute == DType::f32;
}

bool is_f32_reduction(const LoopNest& nest) {
  return nest.combine && RowCode::can_combine(*nest.combine) && is_direct_f32(nest);
}

std::unique_ptr<Kernel> make_rows_kernel(const LoopNest& nest) {
  if (!is_direct_f32(nest)) return nullptr;
  const auto walk = walk_of(nest);
  if (!walk) return nullptr;
  RowsKernel::Plan plan;
  RowProgram& program = plan.program;
  RowProgram::Nest row_nest{.body = nest.body, .combine = nest.combine, .epilogue = nest.epilogue};
  for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
    const Operand& of = operand(nest, o);
    const bool is_result = o == nest.inputs.size() && nest.combine;
    program.places.push_back({of.dtype, is_result ? 0 : of.strides[walk->along], stride(of, walk->row)});
    plan.places.push_back(of);
    plan.offsets.push_back(o);
    if (o < nest.inputs.size()) row_nest.inputs.push_back(o);
  }
  row_nest.output = nest.inputs.size();
  program.nests.push_back(std::move(row_nest));
  program.length = nest.axes[walk->along].size;
  program.along_axis = walk->along;
  plan.axes = nest.axes.size();
  plan.outer = Loops(nest, axes_where(nest, [&](std::size_t a) { return a != walk->along && a != walk->row; }));
  if (walk->row != no_axis) {
    program.row_axis = walk->row;
    plan.rows = nest.axes[walk->row].size;
    plan.step = std::max<std::int64_t>(1, elements_per_part / program.length);
  } else if (!nest.combine) {
    plan.cuts_along = true;
    plan.rows = program.length;
    plan.step = elements_per_part;
  }
  return make(std::move(plan), 1);
}

namespace {

/// The rows of a block.
struct Block {
  std::int64_t rows = 0, length = 0;  // no length: nothing but single elements so far
};

/// How the member's operands lie, if it can be among nests with such rows. Fills in the length.
struct MemberRows {
  std::vector<RowProgram::Place> places;  // of each operand
  bool is_scalar = false;
  bool is_down = false;  // combines the rows into one
};

/// Of a member that combines the rows of a block, by another axis than the one that was cut.
std::optional<MemberRows> rows_down(const RowMember& member, const Block& block) {
  const LoopNest& nest = *member.nest;
  std::size_t row = 0;
  while (row < 3 && !nest.axes[row].reduced) ++row;
  if (row == 3 || row == member.axis || !is_f32_reduction(nest) || !nest.epilogue.steps.empty()) return std::nullopt;
  const std::size_t along = 3 - row - member.axis;
  if (block.rows != nest.axes[row].size || block.length != nest.axes[along].size) return std::nullopt;
  if (nest.output.dtype != DType::f32 || !lies_along(nest, along)) return std::nullopt;
  MemberRows result;
  result.is_down = true;
  for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
    const Operand& of = operand(nest, o);
    result.places.push_back({of.dtype, of.strides[along], of.strides[row], member.is_kept[o]});
  }
  return result;
}

std::optional<MemberRows> rows_of(const RowMember& member, Block& block) {
  const LoopNest& nest = *member.nest;
  if (!is_direct_f32(nest)) return std::nullopt;
  if (nest.axes.size() == 3 && nest.axes[member.axis].size == 1) return rows_down(member, block);
  if (nest.axes.size() > 2) return std::nullopt;
  const std::int64_t size = nest.axes[member.axis].size;
  MemberRows result;
  if (nest.axes.size() == 2) {
    const std::size_t along = 1 - member.axis;
    if (!lies_along(nest, along) || nest.axes[along].reduced != nest.combine.has_value()) return std::nullopt;
    if (block.length != 0 && (block.rows != size || block.length != nest.axes[along].size)) return std::nullopt;
    block = {size, nest.axes[along].size};
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
      const Operand& of = operand(nest, o);
      result.places.push_back({of.dtype, of.strides[along], of.strides[member.axis], member.is_kept[o]});
    }
    return result;
  }
  if (nest.combine) return std::nullopt;
  result.is_scalar = block.length != 0 && size == block.rows;
  if (!result.is_scalar && block.length != 0 && size != block.rows * block.length) return std::nullopt;
  if (!result.is_scalar && !lies_along(nest, 0)) return std::nullopt;
  for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
    const Operand& of = operand(nest, o);
    const std::int64_t step = of.strides[0];
    result.places.push_back({of.dtype, result.is_scalar ? 0 : step, result.is_scalar ? step : step * block.length, member.is_kept[o]});
  }
  return result;
}

/// The rows of a block of all members: as the first that has two axes says; else a block is one row.
Block block_of(std::span<const RowMember> members) {
  for (const RowMember& member : members) {
    const LoopNest& nest = *member.nest;
    if (nest.axes.size() == 2) return {nest.axes[member.axis].size, nest.axes[1 - member.axis].size};
  }
  return {1, members[0].nest->axes[members[0].axis].size};
}

/// Whether what one writes another reads or writes elsewhere in the row.
bool is_apart(const RowProgram::Place& a, const Operand& operand_a, const RowProgram::Place& b, const Operand& operand_b) {
  return a.dtype != b.dtype || a.step != b.step || a.row_step != b.row_step || operand_a.offset != operand_b.offset;
}

std::size_t count_with(std::span<const RowMember> members, Block block) {
  struct Use {
    RowProgram::Place place;
    const Operand* operand;
    int memory;
    bool is_written;
  };
  std::vector<Use> uses;
  std::size_t count = 0;
  for (const RowMember& member : members) {
    const auto rows = rows_of(member, block);
    if (!rows) break;
    const std::size_t inputs = member.nest->inputs.size();
    bool fits = uses.size() + inputs + 1 <= most_operands;
    for (std::size_t o = 0; o <= inputs; ++o) {
      const Use use{rows->places[o], &operand(*member.nest, o), member.memory[o], o == inputs};
      for (const Use& other : uses) {
        if (other.memory == use.memory && (other.is_written || use.is_written)) fits &= !is_apart(other.place, *other.operand, use.place, *use.operand);
      }
      uses.push_back(use);
    }
    if (!fits) break;
    ++count;
  }
  return count;
}

}  // namespace

std::size_t count_rows_together(std::span<const RowMember> members) {
  // A later member may say what the rows are; those before it must agree.
  for (std::size_t end = members.size(); end > 0; --end) {
    const Block block = block_of(members.first(end));
    const std::size_t count = count_with(members.first(end), block);
    if (count == end) return count;
    if (count > 0 && block_of(members.first(count)).length == block.length) return count;
  }
  return 0;
}

std::unique_ptr<Kernel> make_rows_kernel(std::span<const RowMember> members) {
  Block block = block_of(members);
  RowsKernel::Plan plan;
  RowProgram& program = plan.program;
  std::vector<int> memory;
  int next_buffer = 0;
  for (const RowMember& member : members) {
    const LoopNest& nest = *member.nest;
    const auto rows = rows_of(member, block);
    if (!rows) return nullptr;
    RowProgram::Nest row_nest{.body = nest.body, .combine = nest.combine, .epilogue = nest.epilogue, .is_scalar = rows->is_scalar};
    const auto has_index = [](const ScalarExpr& expr) {
      return std::any_of(expr.steps.begin(), expr.steps.end(), [](const ScalarStep& step) { return step.op == ScalarOp::index; });
    };
    if (has_index(nest.body) || has_index(nest.epilogue)) return nullptr;
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
      Operand of = operand(nest, o);
      of.buffer = next_buffer++;
      RowProgram::Place place = rows->places[o];
      if (!place.is_kept) place.row_step = 0;  // each row takes the last one's memory
      std::size_t p = 0;
      while (p < memory.size() && (memory[p] != member.memory[o] || is_apart(program.places[p], plan.places[p], place, of))) ++p;
      if (p == memory.size()) {
        memory.push_back(member.memory[o]);
        program.places.push_back(place);
        plan.places.push_back(of);
        plan.offsets.push_back(0);
      }
      if (o < nest.inputs.size()) row_nest.inputs.push_back(p);
      else row_nest.output = p;
    }
    if (rows->is_down) {
      row_nest.body = combined(*nest.combine, nest.body, row_nest.inputs.size());
      row_nest.combine.reset();
      row_nest.inputs.push_back(row_nest.output);
      plan.begin_as.emplace_back(row_nest.output, identity<float>(*nest.combine));
    }
    plan.axes = std::max(plan.axes, nest.axes.size());
    program.nests.push_back(std::move(row_nest));
  }
  program.length = block.length;
  plan.rows = plan.step = block.rows;
  return make(std::move(plan), members[0].blocks);
}

}  // namespace ein::host
