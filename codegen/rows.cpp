// Groups of nests that share their rows, as one kernel. A row has `lanes` threads, which walk it in
// the same way in every nest: what a nest makes at a point is used by the thread that made it, from
// a register or, in rows too long for that, computed again. Nests that need only what is there
// already share a pass over the row; between passes the totals of reductions are combined, and
// every thread has them. The order of all additions follows from shapes alone.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "codegen/elements.hpp"
#include "codegen/forms.hpp"

namespace ein::codegen {
namespace {

/// Threads that keep a device busy: a block of 256 for each of about a hundred multiprocessors.
constexpr std::int64_t busy_threads = 132 * 256;
/// A thread adds so many values in a row before it adds their sum to its total, so that errors stay
/// small.
constexpr std::int64_t run_length = 32;
constexpr std::int64_t most_lanes = 1024;

using Operand = LoopNest::Operand;

std::int64_t power_of_two(std::int64_t least) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, least))));
}

bool is_reduction(const LoopNest& nest) {
  return std::any_of(nest.axes.begin(), nest.axes.end(), [](const auto& a) { return a.reduced; });
}

struct Plan {
  AxisList row_axes, axes;              // of a row's number, and within it
  std::int64_t rows = 1, elements = 1;  // of each row
  int width = 1;                        // of what a thread reads at once
  bool by_rows = true;  // a row's lanes are neighbouring threads; else neighbours have other rows
  std::int64_t lanes = 1, threads = 128;
  std::int64_t packs = 1;    // of each lane
  bool is_unrolled = false;  // and may hold values in registers
  std::int64_t rows_per_block() const { return threads / lanes; }
};

/// Values from outside, in the type of a computation.
struct Source {
  const Operand* operand = nullptr;
  const Operand* positions = nullptr;
  DType compute = DType::f32;
  std::size_t pointer = 0, positions_pointer = 0;
  bool is_many = false;  // not the same for the whole row
  bool is_held = false;
  bool is_there = false;  // loaded, for as long as it is held
};

class RowsWriter {
 public:
  RowsWriter(std::span<const LoopNest> nests, std::size_t row_axes,
             const std::vector<bool>& is_local)
      : nests_(nests), is_local_(is_local) {
    for (std::size_t m = 0; m < nests.size(); ++m) maker_[nests[m].output.buffer] = m;
    find_levels();
    make_plan(row_axes);
  }

  KernelSource write(const std::string& name) {
    bool narrow = plan_.rows * plan_.lanes < 1 << 30;
    for (const LoopNest& nest : nests_) narrow &= is_narrow(nest);
    // A large block alone on a multiprocessor may have all its registers.
    Writer w(name, static_cast<unsigned>(plan_.threads), narrow, plan_.threads >= 512 ? 1 : 0);
    w_ = &w;
    declare();
    choose_held();
    begin();
    for (std::size_t level = 0; level <= levels_; ++level) {
      for (std::size_t m = 0; m < nests_.size(); ++m) {
        if (level_[m] == level && !is_many(m)) write_scalar(m);
      }
      write_pass(level);
      for (std::size_t m = 0; m < nests_.size(); ++m) {
        if (level_[m] == level && is_reduction(nests_[m])) finish_reduction(m);
      }
    }
    return w.finish(ceil_div(plan_.rows, plan_.rows_per_block()));
  }

 private:
  /// Whether the nest walks along the row.
  bool is_many(std::size_t m) const { return nests_[m].axes.size() > plan_.row_axes.size(); }
  const Operand* position_of(const LoopNest& nest, const Operand& operand) const {
    return operand.is_indirect()
               ? &nest.inputs[static_cast<std::size_t>(operand.indirection.positions)]
               : nullptr;
  }
  static std::string digits(std::size_t n) { return std::to_string(n); }
  static std::string type_of(DType compute) { return element_type(compute); }

  /// What an expression of a nest reads, of its body or its epilogue.
  std::vector<std::size_t> reads_of(const LoopNest& nest) const {
    std::vector<std::size_t> reads = inputs_of(nest.body);
    for (std::size_t i : inputs_of(nest.epilogue)) {
      if (i > 0) reads.push_back(i);
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    return reads;
  }

  // --- plan ---

  /// A nest's level is the number of combinations that have to be done before it.
  void find_levels() {
    for (const LoopNest& nest : nests_) {
      std::size_t level = 0;
      for (std::size_t i : reads_of(nest)) {
        const auto made = maker_.find(nest.inputs[i].buffer);
        if (made == maker_.end()) continue;
        const std::size_t m = made->second;
        level = std::max(level, level_[m] + (is_reduction(nests_[m]) ? 1 : 0));
      }
      level_.push_back(level);
      levels_ = std::max(levels_, level);
    }
  }

  /// Calls f with the nest and the operand for each operand in memory of nests along the row.
  template <class F>
  void each_in_memory(F&& f) const {
    for (std::size_t m = 0; m < nests_.size(); ++m) {
      if (!is_many(m)) continue;
      for (std::size_t i : inputs_of(nests_[m].body)) {
        if (!maker_.contains(nests_[m].inputs[i].buffer)) f(nests_[m], nests_[m].inputs[i]);
      }
      if (!is_local_[m] && !is_reduction(nests_[m])) f(nests_[m], nests_[m].output);
    }
  }

  /// The step in memory from an element to its next along some axes, of what moves along the most.
  std::int64_t step_along(const AxisList& axes) const {
    const Operand* guide = nullptr;
    double most = 0;
    each_in_memory([&](const LoopNest& nest, const Operand& operand) {
      double elements = 1;
      for (std::size_t a = 0; a < nest.axes.size(); ++a) {
        if (operand.strides[a] != 0) elements *= static_cast<double>(nest.axes[a].size);
      }
      if (elements > most) guide = &operand;
      most = std::max(most, elements);
    });
    std::int64_t step = INT64_MAX;
    for (std::size_t a : axes) {
      if (guide && guide->strides[a] != 0) step = std::min(step, std::abs(guide->strides[a]));
    }
    return step;
  }

  int widest_pack() const {
    int width = 16;
    bool is_any = false;
    const std::size_t axis = plan_.axes.back();
    each_in_memory([&](const LoopNest& nest, const Operand& operand) {
      if (operand.strides[axis] != 1 || !is_packed(nest, operand)) return;
      width = std::min(width, pack_along(nest, axis, {&operand}, false).width);
      is_any = true;
    });
    return is_any ? width : 1;
  }
  /// Whether neighbours along the row share their position, if they have one.
  bool is_packed(const LoopNest& nest, const Operand& operand) const {
    const Operand* const positions = position_of(nest, operand);
    return !positions || positions->strides[plan_.axes.back()] == 0;
  }

  void make_plan(std::size_t row_axes) {
    for (std::size_t a = 0; a < row_axes; ++a) plan_.row_axes.push_back(a);
    const auto whole = std::find_if(nests_.begin(), nests_.end(), [&](const LoopNest& nest) {
      return nest.axes.size() > row_axes;
    });
    for (std::size_t a = row_axes; a < whole->axes.size(); ++a) plan_.axes.push_back(a);
    whole_ = &*whole;
    plan_.rows = size_of_axes(*whole_, plan_.row_axes);
    const std::int64_t n = plan_.elements = size_of_axes(*whole_, plan_.axes);
    plan_.by_rows = plan_.rows == 1 || step_along(plan_.axes) < step_along(plan_.row_axes);
    if (plan_.by_rows) {
      plan_.width = widest_pack();
      const std::int64_t most = std::min(power_of_two(ceil_div(n, plan_.width)), most_lanes);
      const std::int64_t good = power_of_two(ceil_div(n, 16));
      // A warp needs no barrier.
      plan_.lanes = std::min(n <= 1024 ? std::min<std::int64_t>(good, 32) : good, most);
      while (plan_.lanes < std::min<std::int64_t>(most, 256) &&
             plan_.rows * plan_.lanes < busy_threads)
        plan_.lanes *= 2;
      plan_.threads = std::max<std::int64_t>(plan_.lanes, 128);
    } else {
      plan_.threads = 256;
      plan_.lanes = std::clamp<std::int64_t>(power_of_two(n) / 16, 1, 8);
      while (plan_.lanes < plan_.threads && plan_.rows_per_block() / 2 >= plan_.rows)
        plan_.lanes *= 2;
    }
    plan_.packs = ceil_div(n, plan_.lanes * plan_.width);
    plan_.is_unrolled = plan_.packs * plan_.width <= (plan_.threads > 512 ? 16 : 64);
  }

  // --- arguments and what is held ---

  std::size_t pointer(const Operand& operand) {
    const auto found = std::find_if(pointers_.begin(), pointers_.end(), [&](const Operand* p) {
      return p->buffer == operand.buffer && p->offset == operand.offset &&
             p->dtype == operand.dtype;
    });
    if (found != pointers_.end()) return static_cast<std::size_t>(found - pointers_.begin());
    w_->pointer("const " + element_type(operand.dtype), input_name(pointers_.size()), operand);
    pointers_.push_back(&operand);
    return pointers_.size() - 1;
  }

  bool moves_along(const Operand& operand, const AxisList& axes) const {
    return std::any_of(axes.begin(), axes.end(), [&](std::size_t a) {
      return a < operand.strides.size() && operand.strides[a] != 0;
    });
  }

  static bool is_same(const Operand* a, const Operand* b) {
    if (!a || !b) return a == b;
    // Those of a nest with one value per row have no strides within it.
    const auto is_still = [](std::int64_t s) { return s == 0; };
    const std::size_t rank = std::min(a->strides.size(), b->strides.size());
    const auto rest = static_cast<std::ptrdiff_t>(rank);
    return a->buffer == b->buffer && a->dtype == b->dtype && a->offset == b->offset &&
           a->indirection.stride == b->indirection.stride &&
           a->indirection.size == b->indirection.size &&
           std::equal(a->strides.begin(), a->strides.begin() + rest, b->strides.begin()) &&
           std::all_of(a->strides.begin() + rest, a->strides.end(), is_still) &&
           std::all_of(b->strides.begin() + rest, b->strides.end(), is_still);
  }

  void declare() {
    bool is_indirect = false;
    for (std::size_t m = 0; m < nests_.size(); ++m) {
      source_.emplace_back(nests_[m].inputs.size(), 0);
      for (std::size_t i : reads_of(nests_[m])) {
        const Operand& operand = nests_[m].inputs[i];
        if (maker_.contains(operand.buffer)) continue;
        Source source{&operand, position_of(nests_[m], operand), nests_[m].compute};
        const auto known = std::find_if(sources_.begin(), sources_.end(), [&](const Source& s) {
          return s.compute == source.compute && is_same(s.operand, source.operand) &&
                 is_same(s.positions, source.positions);
        });
        source_[m][i] = static_cast<std::size_t>(known - sources_.begin());
        if (known != sources_.end()) continue;
        source.is_many = moves_along(operand, plan_.axes);
        if (source.positions) {
          is_indirect = true;
          source.is_many |= moves_along(*source.positions, plan_.axes);
          source.positions_pointer = pointer(*source.positions);
        }
        source.pointer = pointer(operand);
        sources_.push_back(source);
      }
    }
    for (std::size_t m = 0; m < nests_.size(); ++m) {
      const Operand& y = nests_[m].output;
      if (is_local_[m]) continue;
      w_->pointer(element_type(y.dtype), "y" + digits(m), y);
    }
    if (is_indirect) w_->fault();
  }

  /// What a pass evaluates, and what it reads for that.
  struct Needs {
    std::set<std::size_t> nests, sources;
  };
  void add_needs(std::size_t m, std::size_t level, Needs& needs) const {
    if (!needs.nests.insert(m).second) return;
    for (std::size_t i : inputs_of(nests_[m].body)) {
      const auto made = maker_.find(nests_[m].inputs[i].buffer);
      if (made == maker_.end()) {
        if (sources_[source_[m][i]].is_many) needs.sources.insert(source_[m][i]);
        continue;
      }
      const std::size_t other = made->second;
      if (is_reduction(nests_[other]) || !is_many(other)) continue;
      if (!(held_.contains(other) && level_[other] < level)) add_needs(other, level, needs);
    }
  }
  Needs needs_of(std::size_t level) const {
    Needs needs;
    for (std::size_t m = 0; m < nests_.size(); ++m) {
      if (level_[m] == level && is_many(m)) add_needs(m, level, needs);
    }
    return needs;
  }

  /// What several passes use stays in registers, as far as there are any: first what would have to
  /// be computed again.
  void choose_held() {
    if (!plan_.is_unrolled) return;
    std::int64_t left = plan_.threads > 512 ? 32 : 64;
    const auto take = [&](DType compute) {
      const std::int64_t wanted =
          plan_.packs * plan_.width * static_cast<std::int64_t>(size_of(compute)) / 4;
      if (wanted > left) return false;
      left -= wanted;
      return true;
    };
    for (std::size_t m = 0; m < nests_.size(); ++m) {
      const auto is_needed_by = [&](std::size_t other) {
        const LoopNest& nest = nests_[other];
        const std::vector<std::size_t> reads = inputs_of(nest.body);
        return level_[other] > level_[m] &&
               std::any_of(reads.begin(), reads.end(), [&](std::size_t i) {
                 return nest.inputs[i].buffer == nests_[m].output.buffer;
               });
      };
      bool is_needed = false;
      for (std::size_t other = m + 1; other < nests_.size(); ++other)
        is_needed |= is_needed_by(other);
      if (is_many(m) && !is_reduction(nests_[m]) && is_needed && take(nests_[m].compute))
        held_.insert(m);
    }
    std::vector<int> passes(sources_.size(), 0);
    for (std::size_t level = 0; level <= levels_; ++level) {
      for (std::size_t s : needs_of(level).sources) ++passes[s];
    }
    for (std::size_t s = 0; s < sources_.size(); ++s)
      sources_[s].is_held = passes[s] > 1 && take(sources_[s].compute);
  }

  // --- text ---

  bool is_whole() const { return plan_.rows % plan_.rows_per_block() == 0; }
  std::string if_row() const { return is_whole() ? "" : "if (is_row) "; }

  void begin() {
    const std::int64_t per_block = plan_.rows_per_block();
    const std::string slot =
        plan_.by_rows ? divided("threadIdx.x", plan_.lanes) : modulo("threadIdx.x", per_block);
    const std::string lane =
        plan_.by_rows
            ? (plan_.lanes == plan_.threads ? "threadIdx.x" : modulo("threadIdx.x", plan_.lanes))
            : divided("threadIdx.x", per_block);
    w_->line("const u32 lane = " + lane + ";");
    const std::string number =
        added(times(w_->block_number(), per_block), per_block == 1 ? "0u" : slot);
    if (is_whole()) {
      w_->line("const " + w_->unsigned_type() + " row = " + number + ";");
    } else {
      // All threads come to the barriers; those of no row do what those of the last one do.
      const std::string rows = std::to_string(plan_.rows);
      w_->line("const " + w_->unsigned_type() + " number = " + number + ";");
      w_->line("const bool is_row = number < " + rows + "u;");
      w_->line("const " + w_->unsigned_type() +
               " row = is_row ? number : " + std::to_string(plan_.rows - 1) + "u;");
    }
    w_->indices(*whole_, plan_.row_axes, "row");
    const std::string packs = "[" + std::to_string(plan_.packs) + "]";
    for (std::size_t m : held_)
      w_->line(type_of(nests_[m].compute) + " h" + digits(m) + packs + pack() + ";");
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      if (!sources_[s].is_held) continue;
      w_->line(type_of(sources_[s].compute) + " s" + digits(s) + packs +
               (is_pack(sources_[s]) ? pack() : "") + ";");
    }
  }
  /// What follows the name of an array of a pack's elements.
  std::string pack() const {
    return plan_.width > 1 ? "[" + std::to_string(plan_.width) + "]" : "";
  }
  std::string at_j() const { return plan_.width > 1 ? "[j]" : ""; }
  /// Whether a thread reads several elements of a source at once, or one after the other.
  bool is_pack(const Source& source) const {
    const std::size_t axis = plan_.axes.back();
    return source.is_many && plan_.width > 1 &&
           (source.operand->strides[axis] != 0 ||
            (source.positions && source.positions->strides[axis] != 0));
  }
  /// Where an operand's element j of a pack lies.
  std::string place_of_j(const Operand& operand) const {
    const std::int64_t stride = plan_.width > 1 ? operand.strides[plan_.axes.back()] : 0;
    const std::string place = w_->place(operand);
    return stride == 0 ? place : added(place, stride == 1 ? "j" : "j * " + w_->number(stride));
  }

  /// The value of input i of a nest, in the type of the nest.
  std::string input(std::size_t m, std::size_t i) const {
    const LoopNest& nest = nests_[m];
    const auto made = maker_.find(nest.inputs[i].buffer);
    if (made != maker_.end()) {
      const std::size_t other = made->second;
      std::string value = "r" + digits(other);
      if (is_many(other) && !is_reduction(nests_[other]))
        value = held_.contains(other) ? "h" + digits(other) + "[p]" + at_j() : "w" + digits(other);
      return converted(value, nests_[other].compute, nest.compute);
    }
    const Source& source = sources_[source_[m][i]];
    std::string value = "s" + digits(source_[m][i]);
    if (source.is_held) value += "[p]";
    return is_pack(source) ? value + "[j]" : value;
  }
  std::vector<std::string> inputs(std::size_t m, const std::vector<std::size_t>& reads) const {
    std::vector<std::string> values(std::max<std::size_t>(1, nests_[m].inputs.size()));
    for (std::size_t i : reads) values[i] = input(m, i);
    return values;
  }

  std::string element_of(std::size_t s, const std::string& place, const std::string& position) {
    const Source& source = sources_[s];
    const std::string element = converted(input_name(source.pointer) + "[" + place + "]",
                                          source.operand->dtype, source.compute);
    if (position.empty()) return element;
    return "is_inside(" + position + ", " + std::to_string(source.operand->indirection.size) +
           ", fault) ? " + element + " : " + literal(source.compute, 0, 0);
  }
  /// Where a source's elements begin that a position moves to.
  std::string moved(const Source& source, const std::string& position, const std::string& place) {
    return added(
        w_->index_type() + "(" + position + ") * " + w_->number(source.operand->indirection.stride),
        place);
  }

  void load(std::size_t s) {
    Source& source = sources_[s];
    if (source.is_there) return;
    source.is_there = source.is_held || !source.is_many;
    const std::string type = type_of(source.compute), name = "s" + digits(s),
                      to = source.is_held ? name + "[p]" : name;
    const std::string position = source.positions ? "p" + digits(s) : "";
    const auto read_position = [&](const std::string& place) {
      w_->line("const i64 " + position + " = " + input_name(source.positions_pointer) + "[" +
               place + "];");
    };
    if (!is_pack(source)) {
      std::string place = w_->place(*source.operand);
      if (source.positions) {
        read_position(w_->place(*source.positions));
        place = moved(source, position, place);
      }
      w_->line((source.is_held ? to : "const " + type + " " + to) + " = " +
               element_of(s, place, position) + ";");
      return;
    }
    if (!source.is_held) w_->line(type + " " + name + pack() + ";");
    const std::size_t axis = plan_.axes.back();
    if (!source.positions && source.operand->strides[axis] == 1) {
      w_->line("load(" + to + ", " + added(input_name(source.pointer), w_->place(*source.operand)) +
               ");");
      return;
    }
    if (source.positions && source.positions->strides[axis] == 0 &&
        source.operand->strides[axis] == 1) {
      read_position(w_->place(*source.positions));
      w_->open("if (is_inside(" + position + ", " +
               std::to_string(source.operand->indirection.size) + ", fault)) {");
      w_->line(
          "load(" + to + ", " +
          added(input_name(source.pointer), moved(source, position, w_->place(*source.operand))) +
          ");");
      w_->close("} else {");
      w_->line("  for (int j = 0; j < " + std::to_string(plan_.width) + "; ++j) " + to +
               "[j] = " + literal(source.compute, 0, 0) + ";");
      w_->line("}");
      return;
    }
    open_pack();
    std::string place = place_of_j(*source.operand);
    if (source.positions) {
      read_position(place_of_j(*source.positions));
      place = moved(source, position, place);
    }
    w_->line(to + "[j] = " + element_of(s, place, position) + ";");
    w_->close();
  }

  void open_pack() {
    w_->line("#pragma unroll");
    w_->open("for (int j = 0; j < " + std::to_string(plan_.width) + "; ++j) {");
  }

  /// The value as it would be read back: rounded to the dtype of the result.
  std::string rounded(const LoopNest& nest, const std::string& value) const {
    return converted(converted(value, nest.compute, nest.output.dtype), nest.output.dtype,
                     nest.compute);
  }
  std::string prefix(std::size_t m) const { return "n" + digits(m) + "_"; }

  void load_scalars(std::size_t m) {
    for (std::size_t i : reads_of(nests_[m])) {
      if (maker_.contains(nests_[m].inputs[i].buffer)) continue;
      if (!sources_[source_[m][i]].is_many) load(source_[m][i]);
    }
  }

  void finish_scalar(std::size_t m, const std::string& value) {
    const LoopNest& nest = nests_[m];
    w_->line("const " + type_of(nest.compute) + " r" + digits(m) + " = " + rounded(nest, value) +
             ";");
    if (is_local_[m]) return;
    w_->line(std::string("if (lane == 0") + (is_whole() ? "" : " && is_row") + ") y" + digits(m) +
             "[" + w_->place(nest.output, plan_.row_axes) +
             "] = " + converted("r" + digits(m), nest.compute, nest.output.dtype) + ";");
  }

  void write_scalar(std::size_t m) {
    const LoopNest& nest = nests_[m];
    load_scalars(m);
    ElementText at{inputs(m, inputs_of(nest.body))};
    at.place = w_->place(nest.output);
    finish_scalar(m, write_expression(*w_, nest.body, nest.compute, at, prefix(m)));
  }

  void finish_reduction(std::size_t m) {
    const LoopNest& nest = nests_[m];
    const std::string type = type_of(nest.compute), total = "t" + digits(m),
                      memory = "memory" + digits(m), lanes = std::to_string(plan_.lanes);
    if (plan_.lanes > 1) {
      const bool needs_memory = !plan_.by_rows || plan_.lanes > 32;
      const std::int64_t slots = plan_.by_rows ? plan_.threads / 32 : plan_.threads;
      if (needs_memory)
        w_->line("__shared__ Shared<" + type + "> " + memory + "[" + std::to_string(slots) + "];");
      const std::string function = "[](" + type + " a, " + type + " b) { return " +
                                   combined(*nest.combine, nest.compute, "a", "b") + "; }";
      const std::string step = std::to_string(plan_.rows_per_block());
      if (plan_.by_rows) {
        w_->line(total + " = combine_lanes<" + lanes + ">(" + total + ", " +
                 (needs_memory ? memory : "no_memory<" + type + ">()") + ", " + function + ");");
      } else {
        w_->line("combine_rows<" + lanes + ", " + step + ">(" + total + ", " + memory + ", " +
                 function + ");");
        w_->line(total + " = " + memory + "[" + modulo("threadIdx.x", plan_.rows_per_block()) +
                 "];");
      }
    }
    std::string value = total;
    if (!nest.epilogue.steps.empty()) {
      ElementText at{inputs(m, {})};
      at.inputs[0] = total;
      for (std::size_t i : inputs_of(nest.epilogue)) {
        if (i > 0) at.inputs[i] = input(m, i);
      }
      value = write_expression(*w_, nest.epilogue, nest.compute, at, prefix(m));
    }
    finish_scalar(m, value);
  }

  bool rounds(std::size_t m) const {
    const LoopNest& nest = nests_[m];
    return is_reduction(nest) && nest.compute != DType::i64 &&
           (nest.combine == Combine::sum || nest.combine == Combine::prod);
  }

  void write_pass(std::size_t level) {
    Needs needs = needs_of(level);
    if (needs.nests.empty()) return;
    // What is read at all had better be on its way before the first barrier.
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      if (sources_[s].is_held) needs.sources.insert(s);
    }
    std::vector<std::size_t> reductions;
    for (std::size_t m : needs.nests) {
      load_scalars(m);
      if (is_reduction(nests_[m])) reductions.push_back(m);
    }
    for (std::size_t m : reductions) {
      w_->line(type_of(nests_[m].compute) + " t" + digits(m) + " = " +
               identity(*nests_[m].combine, nests_[m].compute) + ";");
    }
    const std::string n = std::to_string(plan_.elements) + "u", width = std::to_string(plan_.width);
    const std::string lane = times("lane", plan_.width);
    const std::int64_t step = plan_.lanes * plan_.width;
    if (plan_.is_unrolled) {
      w_->line("#pragma unroll");
      w_->open("for (int p = 0; p < " + std::to_string(plan_.packs) + "; ++p) {");
      w_->line("const " + w_->unsigned_type() +
               " e = " + added("p * " + std::to_string(step) + "u", lane) + ";");
      const bool is_ragged = step * plan_.packs != plan_.elements;
      if (is_ragged) w_->open("if (e < " + n + ") {");
      write_element(level, needs, {});
      if (is_ragged) w_->close();
      w_->close();
      return;
    }
    std::set<std::size_t> runs;
    for (std::size_t m : reductions) {
      if (rounds(m)) runs.insert(m);
    }
    const std::string advance = "; e += " + std::to_string(step) + "u) {";
    if (runs.empty()) {
      w_->line("#pragma unroll 4");
      w_->open("for (" + w_->unsigned_type() + " e = " + lane + "; e < " + n + advance);
      write_element(level, needs, runs);
      w_->close();
      return;
    }
    const std::string run =
        std::to_string(plan_.lanes * std::max<std::int64_t>(run_length, plan_.width)) + "u";
    w_->open("for (" + w_->unsigned_type() + " first = " + lane + "; first < " + n +
             "; first += " + run + ") {");
    w_->line("const " + w_->unsigned_type() + " last = first + " + run + " < " + n + " ? first + " +
             run + " : " + n + ";");
    for (std::size_t m : runs) {
      w_->line(type_of(nests_[m].compute) + " u" + digits(m) + " = " +
               identity(*nests_[m].combine, nests_[m].compute) + ";");
    }
    w_->line("#pragma unroll 4");
    w_->open("for (" + w_->unsigned_type() + " e = first; e < last" + advance);
    write_element(level, needs, runs);
    w_->close();
    for (std::size_t m : runs) {
      const std::string total = "t" + digits(m);
      w_->line(total + " = " +
               combined(*nests_[m].combine, nests_[m].compute, total, "u" + digits(m)) + ";");
    }
    w_->close();
  }

  /// One pack at `e`: loads, the nests in order, stores.
  void write_element(std::size_t level, const Needs& needs, const std::set<std::size_t>& runs) {
    w_->indices(*whole_, plan_.axes, "e");
    for (std::size_t s : needs.sources) load(s);
    const std::size_t axis = plan_.axes.back();
    const auto is_stored = [&](std::size_t m) {
      return level_[m] == level && !is_local_[m] && !is_reduction(nests_[m]);
    };
    const auto is_stored_at_once = [&](std::size_t m) {
      return plan_.width > 1 && is_stored(m) && nests_[m].output.strides[axis] == 1;
    };
    for (std::size_t m : needs.nests) {
      if (is_stored_at_once(m) && !held_.contains(m))
        w_->line(type_of(nests_[m].compute) + " o" + digits(m) + pack() + ";");
    }
    if (plan_.width > 1) open_pack();
    for (std::size_t m : needs.nests) {
      const LoopNest& nest = nests_[m];
      ElementText at{inputs(m, inputs_of(nest.body))};
      at.place = place_of_j(nest.output);
      if (plan_.width > 1) {
        at.moved_axis = axis;
        at.moved_index = axis_name(axis) + " + j";
      }
      const std::string value = write_expression(*w_, nest.body, nest.compute, at, prefix(m));
      if (is_reduction(nest)) {
        const std::string to = (runs.contains(m) ? "u" : "t") + digits(m);
        w_->line(
            to + " = " +
            combined(*nest.combine, nest.compute, to, taken(*nest.combine, nest.compute, value)) +
            ";");
        continue;
      }
      std::string result = "w" + digits(m);
      if (held_.contains(m)) {
        result = "h" + digits(m) + "[p]" + at_j();
        w_->line(result + " = " + rounded(nest, value) + ";");
      } else {
        w_->line("const " + type_of(nest.compute) + " " + result + " = " + rounded(nest, value) +
                 ";");
        if (is_stored_at_once(m)) w_->line("o" + digits(m) + "[j] = " + result + ";");
      }
      if (is_stored(m) && !is_stored_at_once(m)) {
        w_->line(if_row() + "y" + digits(m) + "[" + at.place +
                 "] = " + converted(result, nest.compute, nest.output.dtype) + ";");
      }
    }
    if (plan_.width > 1) w_->close();
    for (std::size_t m : needs.nests) {
      if (!is_stored_at_once(m)) continue;
      w_->line(if_row() + "store(" + added("y" + digits(m), w_->place(nests_[m].output)) + ", " +
               (held_.contains(m) ? "h" + digits(m) + "[p]" : "o" + digits(m)) + ");");
    }
  }

  std::span<const LoopNest> nests_;
  const std::vector<bool>& is_local_;
  std::map<int, std::size_t> maker_;  // of each buffer that the group writes
  std::vector<std::size_t> level_;
  std::size_t levels_ = 0;  // the last
  Plan plan_;
  const LoopNest* whole_ = nullptr;  // a nest with all axes
  Writer* w_ = nullptr;
  std::vector<const Operand*> pointers_;
  std::vector<Source> sources_;
  std::vector<std::vector<std::size_t>> source_;  // of each nest's inputs that come from outside
  std::set<std::size_t> held_;                    // nests whose values stay in registers
};

}  // namespace

Kernels emit_rows(std::span<const LoopNest> nests, std::size_t row_axes,
                  const std::vector<bool>& is_local, const Context& context) {
  const std::string type(name(nests.back().output.dtype));
  return {RowsWriter(nests, row_axes, is_local).write("rows_" + type + context.suffix)};
}

}  // namespace ein::codegen
