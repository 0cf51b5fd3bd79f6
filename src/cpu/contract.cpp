// Contractions of two operands as matrix products.
//
// Each axis has a role: batch (in both operands and the result), row (in a and the result), column
// (in b and the result) or depth (summed). One axis of each of the last three makes a matrix
// product, and so do several, as runs of those that lie side by side; the remaining ones are loops
// around it. So the windows of a convolution are rows of a matrix that is nowhere in memory: where
// its elements lie is found as the product packs its blocks. Where no choice gives products large
// enough to be worth it, or a dtype must be converted, an operand is first packed, each of its
// elements once. Where the processor multiplies bf16, or one operand has
// few rows, such operands are not converted, and sums that are complete are rounded as they are
// stored, by the epilogue if there is one.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <ein/shape.hpp>
#include "cpu/gemm.hpp"
#include "cpu/kernel.hpp"
#include "cpu/level.hpp"
#include "cpu/loops.hpp"
#include "cpu/row_code.hpp"
#include "cpu/scheduled.hpp"
#include "cpu/tile_epilogue.hpp"
#include "machine/parallel.hpp"
#include "schedule/cpu_choose.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein::host {
namespace {

using AxisList = std::vector<std::size_t>;

std::int64_t size_of_axes(const LoopNest& nest, const AxisList& axes) {
  std::int64_t n = 1;
  for (std::size_t a : axes) n *= nest.axes[a].size;
  return n;
}

struct Roles {
  AxisList batch, rows, columns, depth;
};

Roles roles_of(const LoopNest& nest) {
  Roles roles;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const bool in_a = !ask_equal(nest.inputs[0].strides[a], 0),
               in_b = !ask_equal(nest.inputs[1].strides[a], 0);
    AxisList& role = nest.axes[a].reduced ? roles.depth
                     : in_a == in_b       ? roles.batch
                     : in_a               ? roles.rows
                                          : roles.columns;
    role.push_back(a);
  }
  // A sum over nothing is 0, however many other axes it has.
  for (std::size_t a : roles.depth) {
    if (ask_equal(nest.axes[a].size, 0)) {
      roles.depth = {a};
      break;
    }
  }
  return roles;
}

/// A group of axes walked as one: its size, and for the two operands that have it the single
/// stride.
struct Group {
  AxisList axes;
  std::int64_t size = 1;
};

/// The stride of a group in an operand, when its axes follow each other evenly.
std::optional<std::int64_t> joint_stride(const LoopNest& nest, const Group& group,
                                         const LoopNest::Operand& operand) {
  if (group.size <= 1 || group.axes.empty()) return 1;
  std::int64_t stride = operand.strides[group.axes.back()];
  std::int64_t expected = stride;
  for (std::size_t i = group.axes.size(); i-- > 0;) {
    if (!ask_equal(operand.strides[group.axes[i]], expected)) return std::nullopt;
    expected *= nest.axes[group.axes[i]].size;
  }
  return stride;
}

/// How a group lies in an operand: its last axes, as many as one stride walks, are runs.
struct GroupLie {
  std::int64_t stride = 1, run = 1;
  std::size_t outer = 0;  // axes that are no part of the runs

  bool is_even() const { return outer == 0; }
};

GroupLie lie_of(const LoopNest& nest, const Group& group, const std::vector<Size>& strides) {
  GroupLie lie;
  lie.outer = group.axes.size();
  while (lie.outer > 0) {
    const std::size_t axis = group.axes[lie.outer - 1];
    const std::int64_t size = nest.axes[axis].size, stride = strides[axis];
    if (size != 1) {
      if (lie.run == 1) lie.stride = stride;
      if (stride != lie.stride * lie.run) break;
      lie.run *= size;
    }
    --lie.outer;
  }
  return lie;
}

/// From the first element of a group to the last.
std::int64_t reach(const LoopNest& nest, const Group& group, const std::vector<Size>& strides) {
  std::int64_t reach = 1;
  for (std::size_t a : group.axes) reach += (nest.axes[a].size - 1) * magnitude(strides[a]);
  return reach;
}

/// Where each run begins.
std::vector<std::int64_t> starts_of(const LoopNest& nest, const Group& group,
                                    const std::vector<Size>& strides, std::size_t outer) {
  std::vector<std::int64_t> starts{0};
  for (std::size_t i = 0; i < outer; ++i) {
    const std::size_t axis = group.axes[i];
    const std::int64_t size = nest.axes[axis].size, stride = strides[axis];
    std::vector<std::int64_t> more;
    more.reserve(starts.size() * static_cast<std::size_t>(size));
    for (std::int64_t start : starts) {
      for (std::int64_t index = 0; index < size; ++index) more.push_back(start + index * stride);
    }
    starts = std::move(more);
  }
  return starts;
}

/// The elements that an operand's axes reach, each once: `axes` of other strides, of which those of
/// the nest are multiples.
struct Reach {
  struct Axis {
    std::int64_t stride, size;
  };
  std::vector<Axis> axes{};       // strides ascend
  std::vector<std::size_t> of{};  // of each axis of the nest, its place among them
  std::int64_t offset = 0;        // where the first of them lies, from that at index 0 on

  double elements() const {
    double n = 1;
    for (const Axis& axis : axes) n *= static_cast<double>(axis.size);
    return n;
  }
};

/// Axes that overlap, as those of a window and its places, become one.
Reach reach_of(const LoopNest& nest, const LoopNest::Operand& operand) {
  Reach reach;
  reach.of.assign(nest.axes.size(), 0);
  AxisList order = axes_where(nest, [&](std::size_t a) {
    return !ask_equal(operand.strides[a], 0) && nest.axes[a].size > 1;
  });
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    return magnitude(operand.strides[x]) < magnitude(operand.strides[y]);
  });
  for (std::size_t a : order) {
    const std::int64_t size = nest.axes[a].size, stride = magnitude(operand.strides[a]);
    if (operand.strides[a] < 0) reach.offset -= (size - 1) * stride;
    const auto meets = [&](const Reach::Axis& axis) { return stride < axis.stride * axis.size; };
    const auto found = std::find_if(reach.axes.begin(), reach.axes.end(), meets);
    reach.of[a] = static_cast<std::size_t>(found - reach.axes.begin());
    if (found == reach.axes.end()) {
      reach.axes.push_back({stride, size});
      continue;
    }
    const std::int64_t common = std::gcd(stride, found->stride);
    const std::int64_t last = (found->size - 1) * found->stride + (size - 1) * stride;
    *found = {common, last / common + 1};
  }
  return reach;
}

/// How one operand takes part: as it lies, or through a packed copy in the type of the computation.
struct Part {
  bool packed = false;
  std::vector<Size> strides;  // per nest axis, of what the product reads or writes
  std::int64_t bytes = 0;     // of the packed copy
  std::int64_t first = 0;     // where in the packed copy the element at index 0 lies
  std::unique_ptr<Kernel>
      copy;  // between the packed copy (buffer 0), the operand (1) and the epilogue's (from 2 on)
};

/// Loops around the matrix products, with a stride per operand (a, b, c).
struct OuterLoop {
  std::size_t axis;
  std::int64_t size;
  std::int64_t strides[3];
};

/// Arithmetic on integers wraps, which unsigned types do without undefined behaviour.
template <class C>
using Wrapping =
    std::conditional_t<std::is_integral_v<C>, std::make_unsigned<C>, std::type_identity<C>>::type;

/// Computes in C, from operands in In.
/// Sums of matrices, of which 64 are added one by one, then such sums in the same way.
template <class T>
class CascadedSums {
 public:
  void add(const std::vector<T>& numbers) { add_to(0, numbers); }
  /// Of one at least.
  const std::vector<T>& total() {
    for (std::size_t l = 0; l + 1 < used_; ++l) {
      if (levels_[l].count > 0) add_to(l + 1, levels_[l].sums);
    }
    return levels_[used_ - 1].sums;
  }

 private:
  static constexpr int most = 64;
  struct Level {
    std::vector<T> sums;
    int count = 0;
  };

  void add_to(std::size_t l, const std::vector<T>& numbers) {
    used_ = std::max(used_, l + 1);
    Level& level = levels_[l];
    if (level.count == most) {
      add_to(l + 1, level.sums);
      level.count = 0;
    }
    if (level.count++ == 0) {
      level.sums = numbers;
    } else {
      for (std::size_t i = 0; i < numbers.size(); ++i) level.sums[i] += numbers[i];
    }
  }

  std::array<Level, 11> levels_;  // 64^11 is more than any number of matrices
  std::size_t used_ = 0;
};

template <class C, class In = C>
class ContractKernel final : public Kernel {
 public:
  using Number = Wrapping<C>;
  using Factor = Wrapping<In>;

  explicit ContractKernel(const LoopNest& nest)
      : operands_{nest.inputs[0], nest.inputs[1], nest.output},
        finish_operands_(nest.inputs.begin() + 2, nest.inputs.end()) {
    const Roles roles = roles_of(nest);
    is_empty_ = size_of_axes(nest, roles.batch) * size_of_axes(nest, roles.rows) *
                    size_of_axes(nest, roles.columns) ==
                0;
    if (is_empty_) return;
    for (int o = 0; o < 2; ++o) {
      reaches_[o] = reach_of(nest, operands_[o]);
      repeats_[o] = elements_of(nest, o) > reaches_[o].elements();
    }
    turn_windows(nest);
    const Plan plan = cheapest_plan(nest, roles);
    for (int o = 0; o < 3; ++o) {
      parts_[o].strides = operands_[o].strides;
      if (!plan.packs[o]) continue;
      if (o < 2 && repeats_[o] && takes_runs())
        pack_reach(nest, o);
      else
        pack(nest, plan.side(o, 0), plan.side(o, 1), o);
    }
    set_product(nest, roles, plan.m, plan.n, plan.k);
    if (!nest.epilogue.steps.empty() && !parts_[2].packed) set_epilogue(nest, plan.m, plan.n);
    const bool is_plain = are_plain(c_, a_, b_);
    is_tiny_ = std::is_floating_point_v<C> && std::is_same_v<C, In> && !rounds_ && is_plain &&
               m_ <= most_tiny && n_ <= most_tiny && k_ >= 1 && k_ <= most_tiny &&
               !outer_.empty() && sums_.empty() && !epilogue_ && !products_are_by_eigen();
    is_dot_ = m_ == 1 && n_ == 1 && is_plain && a_.col_stride == 1 && b_.row_stride == 1 &&
              sums_.empty() && !epilogue_;
  }

  /// Whether the products need no other kernel than that of few rows.
  bool has_few_rows() const { return is_empty_ || host::has_few_rows(c_, a_, b_); }

  std::size_t workspace_bytes(int threads) const override {
    std::size_t bytes = 0, most = 0;
    for (const Part& part : parts_) {
      if (!part.packed) continue;
      bytes += aligned_bytes(static_cast<std::size_t>(part.bytes));
      most = std::max(most, part.copy->workspace_bytes(threads));
    }
    return bytes + most;
  }

  void run(const Run& run) const override {
    if (is_empty_) return;
    std::byte* free = run.workspace;
    std::byte* spare = free;  // what copies need for themselves
    for (const Part& part : parts_)
      spare += part.packed ? aligned_bytes(static_cast<std::size_t>(part.bytes)) : 0;
    std::byte* data[3];
    for (int o = 0; o < 3; ++o) {
      const LoopNest::Operand& operand = operands_[o];
      if (!parts_[o].packed) {
        data[o] = base(operand, run.buffers);
        continue;
      }
      data[o] = free + parts_[o].first * static_cast<std::int64_t>(size_of(dtypes[o]));
      std::byte* const ends[] = {free, run.buffers[static_cast<std::size_t>(operand.buffer)]};
      free += aligned_bytes(static_cast<std::size_t>(parts_[o].bytes));
      if (o < 2) parts_[o].copy->run({ends, spare});
    }
    const auto* const a = reinterpret_cast<const Factor*>(data[0]);
    const auto* const b = reinterpret_cast<const Factor*>(data[1]);
    if (rounds_) {
      multiply(run.buffers, a, b, reinterpret_cast<Factor*>(data[2]));
    } else {
      multiply(run.buffers, a, b, reinterpret_cast<Number*>(data[2]));
    }
    if (parts_[2].packed) {
      SmallArray<std::byte*, 16> ends(2 + finish_operands_.size());
      ends[0] = data[2];
      ends[1] = run.buffers[static_cast<std::size_t>(operands_[2].buffer)];
      for (std::size_t i = 0; i < finish_operands_.size(); ++i)
        ends[2 + i] = run.buffers[static_cast<std::size_t>(finish_operands_[i].buffer)];
      parts_[2].copy->run({ends, spare});
    }
  }

 private:
  /// What each operand has to be in: a and b in the type of the factors.
  static constexpr DType dtypes[3] = {dtype_of<In>, dtype_of<In>, dtype_of<C>};

  // --- preparing ---

  /// Walks windows of rows forwards: a sum has no order of its own, and what goes forwards makes
  /// longer runs. Where elements of a window lie side by side, the other operand's stay so.
  void turn_windows(const LoopNest& nest) {
    for (int o = 0; o < 2; ++o) {
      if (!repeats_[o]) continue;
      const std::vector<Size> strides = operands_[o].strides;
      const AxisList backwards =
          axes_where(nest, [&](std::size_t a) { return nest.axes[a].reduced && strides[a] < 0; });
      if (std::any_of(backwards.begin(), backwards.end(),
                      [&](std::size_t a) { return ask_equal(strides[a], -1); }))
        continue;
      for (std::size_t a : backwards) {
        for (LoopNest::Operand* operand : {&operands_[0], &operands_[1]}) {
          operand->offset += (nest.axes[a].size - 1) * operand->strides[a];
          operand->strides[a] = -operand->strides[a];
        }
      }
      for (int each : {0, 1}) reaches_[each] = reach_of(nest, operands_[each]);
    }
  }

  // --- planning ---

  /// The groups that make the matrix product, and which operands have to be packed for it.
  struct Plan {
    Group m, n, k;
    bool packs[3] = {};
    double cost = 0;

    /// The rows (0) and columns (1) of operand `o`; those of b are swapped.
    const Group& side(int o, int which) const {
      return which == 0 ? (o == 1 ? n : m) : (o == 2 ? n : k);
    }
  };

  // Times in multiply-adds of a large product, measured as orders of magnitude: what gemm moves to
  // and from its own packed blocks, per element, and what more if it lies alone; a call; and a copy
  // of an operand, per element and by itself.
  static constexpr double block_cost = 8, result_cost = 4, strided_cost = 64, call_cost = 2000;
  static constexpr double copied_cost = 32, copy_cost = 8000;
  /// Of what lies in runs, per element and per run; of an epilogue, per piece that lies evenly.
  static constexpr double in_runs_cost = 4, dense_run_cost = 30, sparse_run_cost = 200,
                          piece_cost = 1500;

  static double product_cost(const Group& m, const Group& n, const Group& k) {
    return multiply_adds(m.size, n.size, k.size) +
           block_cost * (multiply_adds(m.size, k.size, 1) + multiply_adds(n.size, k.size, 1)) +
           result_cost * multiply_adds(m.size, n.size, 1) + call_cost;
  }

  /// The extra cost of reading operand `o` in place: 0 if it is contiguous along an axis of the
  /// product.
  double lying_cost(const LoopNest& nest, const Plan& plan, int o) const {
    const GroupLie rows = lie_of(nest, plan.side(o, 0), operands_[o].strides),
                   columns = lie_of(nest, plan.side(o, 1), operands_[o].strides);
    const double elements = multiply_adds(plan.side(o, 0).size, plan.side(o, 1).size, 1);
    if (rows.is_even() && columns.is_even())
      return has_unit_stride(nest, plan.side(o, 0), plan.side(o, 1), o) ? 0
                                                                        : strided_cost * elements;
    double of_runs = sparse_run_cost;
    for (int side : {0, 1}) {
      const Group& group = plan.side(o, side);
      const GroupLie& lie = side == 0 ? rows : columns;
      if (lie.stride != 1) continue;
      // Runs that lie close together share cache lines.
      const bool is_dense = reach(nest, group, operands_[o].strides) <= 2 * group.size;
      const double cost = is_dense ? dense_run_cost : (o == 2 ? 3 : 1) * sparse_run_cost;
      of_runs = std::min(of_runs, cost / static_cast<double>(lie.run));
    }
    // Windows cannot be copied instead; tiles of the result are.
    const double times = o == 2 ? 8 : repeats_[o] ? 1 : 4;
    return elements * (times * in_runs_cost + of_runs);
  }

  /// The extra cost of an epilogue that has to be cut where the result, or what it reads, does not
  /// lie evenly.
  double epilogue_cost(const LoopNest& nest, const Plan& plan) const {
    if (nest.epilogue.steps.empty()) return 0;
    const Group &rows = plan.side(2, 0), &columns = plan.side(2, 1);
    const GroupLie by_rows = finish_lie(nest, rows), by_columns = finish_lie(nest, columns);
    if (by_rows.is_even() && by_columns.is_even()) return 0;
    return piece_cost * multiply_adds(rows.size, columns.size, 1) /
           multiply_adds(std::min<std::int64_t>(by_rows.run, 12),
                         std::min<std::int64_t>(by_columns.run, 256), 1);
  }

  /// The runs of a group that the result and all that the epilogue reads have in common; no stride.
  GroupLie finish_lie(const LoopNest& nest, const Group& group) const {
    GroupLie common = lie_of(nest, group, operands_[2].strides);
    for (const LoopNest::Operand& operand : finish_operands_) {
      const GroupLie lie = lie_of(nest, group, operand.strides);
      if (lie.outer > common.outer) common = lie;
    }
    return common;
  }

  /// Whether products take operands in runs.
  static bool takes_runs() {
    return gemm_takes_any_strides<Number>() && (!std::is_same_v<In, bf16> || multiplies_bf16());
  }

  /// The groups that `axes` of one role can make: those that lie side by side in an operand, and
  /// all of them, in the order of one, or but for the outermost.
  std::vector<Group> groups_of(const LoopNest& nest, const AxisList& axes,
                               std::initializer_list<int> having) const {
    if (axes.empty()) return {Group{}};
    std::vector<Group> groups;
    const auto add = [&](AxisList chosen) {
      if (std::any_of(groups.begin(), groups.end(),
                      [&](const Group& group) { return group.axes == chosen; }))
        return;
      const std::int64_t size = size_of_axes(nest, chosen);
      groups.push_back({std::move(chosen), size});
    };
    for (int o : having) {
      AxisList sorted = axes;
      const std::vector<Size>& strides = operands_[o].strides;
      std::sort(sorted.begin(), sorted.end(), [&](std::size_t x, std::size_t y) {
        const Size of_x = magnitude(strides[x]), of_y = magnitude(strides[y]);
        return !ask_equal(of_x, of_y) ? of_x > of_y : x < y;
      });
      for (auto begin = sorted.begin(); begin != sorted.end(); ++begin) {
        for (auto end = begin + 1; end <= sorted.end(); ++end) {
          AxisList chosen(begin, end);
          const bool lies =
              joint_stride(nest, {chosen, size_of_axes(nest, chosen)}, operands_[o]).has_value();
          const bool in_runs = end == sorted.end() && takes_runs();
          if (lies || in_runs || chosen.size() == axes.size()) add(std::move(chosen));
        }
      }
    }
    return groups;
  }

  /// The groups of a product, with loops over the other axes, such that it costs least.
  Plan cheapest_plan(const LoopNest& nest, const Roles& roles) const {
    std::optional<Plan> best;
    for (const Group& m : groups_of(nest, roles.rows, {0, 2})) {
      for (const Group& n : groups_of(nest, roles.columns, {1, 2})) {
        for (const Group& k : groups_of(nest, roles.depth, {0, 1})) {
          Plan plan = plan_of(nest, roles, m, n, k);
          if (!best || plan.cost < best->cost) best = std::move(plan);
        }
      }
    }
    return *best;
  }

  /// What is packed for these groups: operands that do not lie as matrices, or whose elements lie
  /// too far apart.
  Plan plan_of(const LoopNest& nest, const Roles& roles, const Group& m, const Group& n,
               const Group& k) const {
    Plan plan{m, n, k};
    const std::int64_t depth = size_of_axes(nest, roles.depth);
    const double products =
        static_cast<double>(size_of_axes(nest, roles.batch)) /
        multiply_adds(m.size, n.size, k.size) *
        multiply_adds(size_of_axes(nest, roles.rows), size_of_axes(nest, roles.columns), depth);
    plan.cost = products * product_cost(m, n, k);
    for (int o = 0; o < 3; ++o) {
      const Group &rows = plan.side(o, 0), &columns = plan.side(o, 1);
      double copied = copied_cost * elements_of(nest, o) + copy_cost;
      const double lying =
          products * (lying_cost(nest, plan, o) + (o == 2 ? epilogue_cost(nest, plan) : 0));
      const bool fits = o == 2 ? can_store(k.size == depth ? depth : most_terms + 1) &&
                                     (takes_runs() || has_even_epilogue(nest, rows, columns))
                               : operands_[o].dtype == dtypes[o];
      const bool can_lie = takes_runs() || is_matrix(nest, rows, columns, o);
      if (o < 2 && repeats_[o]) {
        // A copy of what it reaches lies as the operand does. One of windows is for integers alone,
        // where nothing else is left.
        copied = can_lie ? copied_cost * reaches_[o].elements() + copy_cost + lying : 100 * copied;
        plan.packs[o] = !fits || !can_lie;
      } else {
        plan.packs[o] = !fits || !can_lie || copied < lying;
      }
      plan.cost += plan.packs[o] ? copied : lying;
    }
    return plan;
  }

  double elements_of(const LoopNest& nest, int o) const {
    double elements = 1;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (!ask_equal(operands_[o].strides[a], 0))
        elements *= static_cast<double>(nest.axes[a].size);
    }
    return elements;
  }

  /// The least depth whose parts are added up each by itself, and the most elements of such a
  /// product. The products' engines add about so many numbers one by one, but Eigen's with a vector
  /// all.
  static constexpr std::int64_t least_cascaded_depth = 1 << 18, most_cascaded = 1 << 20,
                                added_at_once = 512, most_of_eigen = 8192;
  /// A product as large as the whole sum may be rounded to the type of the factors as it is stored.
  static constexpr std::int64_t most_terms = std::is_same_v<In, bf16> ? most_bf16_terms : 0;

  /// Whether results of products with `terms` multiply-adds can be written where the result lies.
  bool can_store(std::int64_t terms) const {
    if (operands_[2].dtype == dtypes[2]) return true;
    return operands_[2].dtype == dtypes[0] && terms <= most_terms;
  }

  bool is_matrix(const LoopNest& nest, const Group& rows, const Group& columns, int operand) const {
    const auto r = joint_stride(nest, rows, operands_[operand]),
               c = joint_stride(nest, columns, operands_[operand]);
    if (!r || !c || *r <= 0 || *c <= 0) return false;
    return gemm_takes_any_strides<Number>() || has_unit_stride(nest, rows, columns, operand);
  }

  bool has_unit_stride(const LoopNest& nest, const Group& rows, const Group& columns,
                       int operand) const {
    const LoopNest::Operand& o = operands_[operand];
    return rows.size <= 1 || columns.size <= 1 || joint_stride(nest, rows, o) == 1 ||
           joint_stride(nest, columns, o) == 1;
  }

  /// Whether the epilogue can walk rows and columns of the product along with all that it reads.
  bool has_even_epilogue(const LoopNest& nest, const Group& rows, const Group& columns) const {
    return std::all_of(
        finish_operands_.begin(), finish_operands_.end(), [&](const LoopNest::Operand& operand) {
          return joint_stride(nest, rows, operand) && joint_stride(nest, columns, operand);
        });
  }

  /// Gives operand `o` a contiguous copy of the elements that it reaches, which lies as it does.
  void pack_reach(const LoopNest& nest, int o) {
    Part& part = parts_[o];
    const Reach& reach = reaches_[o];
    part.packed = true;
    part.strides.assign(nest.axes.size(), 0);
    LoopNest copy;
    copy.compute = dtype_of<C>;
    LoopNest::Operand packed{.dtype = dtypes[o]}, lying = operands_[o];
    lying.buffer = 1;
    lying.offset += reach.offset;
    lying.strides.clear();
    std::int64_t elements = 1;
    for (const Reach::Axis& axis : reach.axes) {
      copy.axes.push_back({"r" + std::to_string(copy.axes.size()), axis.size});
      lying.strides.push_back(axis.stride);
      packed.strides.push_back(elements);
      elements *= axis.size;
    }
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      const std::int64_t stride = operands_[o].strides[a], size = nest.axes[a].size;
      if (stride == 0 || size <= 1) continue;
      const std::size_t r = reach.of[a];
      part.strides[a] = stride / reach.axes[r].stride * packed.strides[r];
      if (stride < 0) part.first -= (size - 1) * part.strides[a];
    }
    part.bytes = checked_numel({elements}, sizeof(In)) * static_cast<std::int64_t>(sizeof(In));
    copy.inputs = {lying};
    copy.output = packed;
    copy.body = Ex::input(0);
    simplify(copy);
    part.copy = make_kernel(copy);
  }

  /// Gives operand `o` a contiguous copy: the axes around a product, then its rows and columns, or
  /// columns and rows where rows lie more closely.
  void pack(const LoopNest& nest, const Group& rows, const Group& columns, int o) {
    Part& part = parts_[o];
    part.packed = true;
    part.strides.assign(nest.axes.size(), 0);
    std::int64_t stride = 1;
    const LoopNest::Operand& operand = operands_[o];
    const auto closest = [&](const Group& group) {
      Size least = INT64_MAX;
      for (std::size_t a : group.axes) least = std::min(least, magnitude(operand.strides[a]));
      return least;
    };
    const bool is_turned = closest(rows) < closest(columns);
    AxisList order = axes_where(nest, [&](std::size_t a) {
      const auto in = [&](const Group& group) {
        return std::find(group.axes.begin(), group.axes.end(), a) != group.axes.end();
      };
      return !ask_equal(operand.strides[a], 0) && !in(rows) && !in(columns);
    });
    for (const Group* group : {is_turned ? &columns : &rows, is_turned ? &rows : &columns}) {
      order.insert(order.end(), group->axes.begin(), group->axes.end());
    }
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::size_t axis = order[i];
      if (ask_equal(operand.strides[axis], 0))
        continue;  // broadcast: every position reads the same copy
      part.strides[axis] = stride;
      stride *= nest.axes[axis].size;
    }
    // A group must have one stride: a broadcast axis among others has to be written out.
    if (!joint_in(nest, rows, part.strides) || !joint_in(nest, columns, part.strides)) {
      stride = 1;
      for (std::size_t i = order.size(); i-- > 0;) {
        part.strides[order[i]] = stride;
        stride *= nest.axes[order[i]].size;
      }
    }
    const std::size_t element_size = o < 2 ? sizeof(In) : sizeof(C);
    part.bytes = checked_numel({stride}, element_size) * static_cast<std::int64_t>(element_size);
    LoopNest copy;
    copy.compute = dtype_of<C>;
    LoopNest::Operand packed{.dtype = dtypes[o], .strides = part.strides}, lying = operand;
    lying.buffer = 1;
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
      copy.axes.push_back(
          {nest.axes[a].name, ask_equal(part.strides[a], 0) ? Size(1) : nest.axes[a].size});
    copy.inputs = {o < 2 ? lying : packed};
    copy.output = o < 2 ? packed : lying;
    copy.body = Ex::input(0);
    if (o == 2 && !nest.epilogue.steps.empty()) {
      copy.body = finishing_expr(nest.epilogue);
      for (LoopNest::Operand input : finish_operands_) {
        input.buffer = static_cast<int>(copy.inputs.size()) + 1;
        copy.inputs.push_back(std::move(input));
      }
    }
    simplify(copy);
    part.copy = make_kernel(copy);
  }
  static bool joint_in(const LoopNest& nest, const Group& group, const std::vector<Size>& strides) {
    return group.size <= 1 || (joint_stride(nest, group, {.strides = strides}).value_or(0) > 0);
  }

  /// Of operand `o`, with these rows and columns.
  void set_matrix(const LoopNest& nest, MatrixRef<Number>& matrix, int o, const Group& rows,
                  const Group& columns) {
    const auto set = [&](const Group& group, std::int64_t& stride, Runs& runs,
                         std::vector<std::int64_t>& starts) {
      const GroupLie lie = lie_of(nest, group, parts_[o].strides);
      stride = lie.stride;
      if (lie.is_even()) return;
      starts = starts_of(nest, group, parts_[o].strides, lie.outer);
      runs = {lie.run, starts.data()};
    };
    matrix = {nullptr, rows.size, columns.size, 1, 1};
    set(rows, matrix.row_stride, matrix.row_runs, starts_[o][0]);
    set(columns, matrix.col_stride, matrix.col_runs, starts_[o][1]);
  }

  void set_product(const LoopNest& nest, const Roles& roles, const Group& m, const Group& n,
                   const Group& k) {
    m_ = m.size;
    n_ = n.size;
    k_ = k.size;
    set_matrix(nest, a_, 0, m, k);
    set_matrix(nest, b_, 1, k, n);
    set_matrix(nest, c_, 2, m, n);
    rounds_ = !parts_[2].packed && operands_[2].dtype != dtypes[2];
    const auto add_loops = [&](const AxisList& axes, const Group& in_product,
                               std::vector<OuterLoop>& loops) {
      for (std::size_t axis : axes) {
        if (std::find(in_product.axes.begin(), in_product.axes.end(), axis) !=
            in_product.axes.end())
          continue;
        loops.push_back(
            {axis,
             nest.axes[axis].size,
             {parts_[0].strides[axis], parts_[1].strides[axis], parts_[2].strides[axis]}});
      }
    };
    add_loops(roles.batch, {}, outer_);
    add_loops(roles.rows, m, outer_);
    add_loops(roles.columns, n, outer_);
    add_loops(roles.depth, k, sums_);
    // One product after the other walks along the largest operand.
    int largest = 0;
    for (int o : {1, 2}) {
      if (elements_of(nest, o) > elements_of(nest, largest)) largest = o;
    }
    for (std::vector<OuterLoop>* loops : {&outer_, &sums_}) {
      std::stable_sort(loops->begin(), loops->end(), [&](const OuterLoop& x, const OuterLoop& y) {
        return x.strides[largest] > y.strides[largest];
      });
    }
    for (const OuterLoop& loop : outer_) products_ *= loop.size;
    for (const OuterLoop& loop : sums_) sum_count_ *= loop.size;
    set_terms();
  }

  /// Where the depth is great and the product small, parts of the depth are added up each by
  /// itself.
  void set_terms() {
    depth_part_ = k_;
    if (!std::is_floating_point_v<C> || rounds_ || k_ == 0 ||
        multiply_adds(m_, n_, 1) > most_cascaded)
      return;
    const bool by_eigen = is_small_vector_product();
    const std::int64_t least = by_eigen ? 2 * most_of_eigen : least_cascaded_depth;
    cascades_ = static_cast<double>(k_) * static_cast<double>(sum_count_) >= least;
    if (k_ >= least) {
      const std::int64_t part = by_eigen ? most_of_eigen : root(k_ * added_at_once),
                         step = std::lcm(a_.col_runs ? a_.col_runs.length : 1,
                                         b_.row_runs ? b_.row_runs.length : 1);
      depth_part_ = std::min(k_, ceil_div(part, step) * step);
      depth_parts_ = ceil_div(k_, depth_part_);
    }
    if (depth_parts_ == 1) terms_at_once_ = std::max(std::int64_t{1}, added_at_once / k_);
  }
  /// A vector times a few numbers per step of the depth, which lie side by side.
  bool is_small_vector_product() const {
    const bool across = (m_ == 1 && b_.row_stride != 1) || (n_ == 1 && a_.col_stride != 1);
    return across &&
           m_ * n_ * most_of_eigen * static_cast<std::int64_t>(sizeof(In)) < 2 * caches().l2;
  }
  static std::int64_t root(std::int64_t x) {
    return static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(x))));
  }

  void set_epilogue(const LoopNest& nest, const Group& m, const Group& n) {
    const GroupLie rows = finish_lie(nest, m), columns = finish_lie(nest, n);
    finish_runs_[0] = rows.is_even() ? 0 : rows.run;
    finish_runs_[1] = columns.is_even() ? 0 : columns.run;
    std::vector<std::size_t> outer;
    for (const OuterLoop& loop : outer_) outer.push_back(loop.axis);
    const auto add_axes = [&](const Group& group, const GroupLie& lie,
                              std::vector<std::int64_t>& sizes) {
      for (std::size_t i = 0; i < lie.outer; ++i) {
        outer.push_back(group.axes[i]);
        sizes.push_back(nest.axes[group.axes[i]].size);
      }
    };
    add_axes(m, rows, finish_sizes_[0]);
    add_axes(n, columns, finish_sizes_[1]);
    std::vector<typename TileEpilogue<C>::Strides> strides;
    const auto add = [&](const LoopNest::Operand& operand) {
      strides.push_back(
          {stride_in_runs(nest, m, rows, operand), stride_in_runs(nest, n, columns, operand)});
      for (std::size_t axis : outer) strides.back().outer.push_back(operand.strides[axis]);
    };
    add(operands_[2]);
    for (const LoopNest::Operand& operand : finish_operands_) add(operand);
    epilogue_.emplace(nest, std::move(strides));
  }
  /// Of a group in an operand whose own runs are as long, or longer.
  static std::int64_t stride_in_runs(const LoopNest& nest, const Group& group, const GroupLie& runs,
                                     const LoopNest::Operand& operand) {
    for (std::size_t i = group.axes.size(); i-- > runs.outer;) {
      if (!ask_equal(nest.axes[group.axes[i]].size, 1)) return operand.strides[group.axes[i]];
    }
    return 1;
  }

  // --- running ---

  static void advance(const std::vector<OuterLoop>& loops, std::int64_t linear,
                      std::int64_t (&offset)[3]) {
    for (std::size_t l = loops.size(); l-- > 0;) {
      // A division costs as much as a small product's arithmetic; the slowest loop needs none.
      const std::int64_t index = l == 0 ? linear : linear % loops[l].size;
      if (l > 0) linear /= loops[l].size;
      for (int o = 0; o < 3; ++o) offset[o] += index * loops[l].strides[o];
    }
  }

  template <class Out>
  void multiply(std::span<std::byte* const> buffers, const Factor* a, const Factor* b,
                Out* c) const {
    const double work = multiply_adds(m_, n_, k_) * static_cast<double>(sum_count_);
    // All threads at each product, which takes some work for each, or each product by one thread.
    const std::int64_t threads = num_threads();
    const double shared = static_cast<double>(products_) *
                          (work / static_cast<double>(threads) + least_multiply_adds);
    if (shared < static_cast<double>(ceil_div(products_, threads)) * work) {
      for (std::int64_t p = 0; p < products_; ++p) product(buffers, a, b, c, p);
      return;
    }
    std::int64_t group = products_;
    if (work * static_cast<double>(products_) > least_multiply_adds) {
      const auto worthwhile_group = static_cast<std::int64_t>(least_multiply_adds / work) + 1;
      group = std::max<std::int64_t>(1, std::min(products_ / (4 * threads), worthwhile_group));
    }
    parallel_for(ceil_div(products_, group), [&](std::int64_t part) {
      const std::int64_t end = std::min(products_, (part + 1) * group);
      if constexpr (std::is_floating_point_v<C> && std::is_same_v<C, In> &&
                    std::is_same_v<Out, C>) {
        if (is_tiny_) return multiply_tiny(a, b, c, part * group, end);
      }
      for (std::int64_t p = part * group; p < end; ++p) product(buffers, a, b, c, p);
    });
  }

  /// Products [begin, end), which are tiny.
  void multiply_tiny(const Factor* a, const Factor* b, Number* c, std::int64_t begin,
                     std::int64_t end) const {
    const OuterLoop& inner = outer_.back();
    while (begin < end) {
      const std::int64_t count = std::min(end - begin, inner.size - begin % inner.size);
      std::int64_t at[3] = {0, 0, 0};
      advance(outer_, begin, at);
      tiny_products<Number>({c + at[2], m_, n_, c_.row_stride, c_.col_stride},
                            {a + at[0], m_, k_, a_.row_stride, a_.col_stride},
                            {b + at[1], k_, n_, b_.row_stride, b_.col_stride}, inner.strides,
                            count);
      begin += count;
    }
  }

  /// Product `p`.
  template <class Out>
  void product(std::span<std::byte* const> buffers, const Factor* a, const Factor* b, Out* c,
               std::int64_t p) const {
    std::int64_t at[3] = {0, 0, 0};
    advance(outer_, p, at);
    if constexpr (!std::is_same_v<In, bf16>) {
      if (is_dot_) {
        c[at[2]] = dot(a + at[0], b + at[1], k_);
        return;
      }
    }
    const std::size_t in_rows = finish_sizes_[0].size(), in_columns = finish_sizes_[1].size();
    // Indices of these loops, and, where the epilogue is cut, of the runs of rows and columns.
    SmallArray<std::int64_t, 16> outer(epilogue_ ? outer_.size() + in_rows + in_columns : 0);
    std::fill(outer.begin(), outer.end(), 0);
    for (std::size_t l = epilogue_ ? outer_.size() : 0; l-- > 0; p /= outer_[l].size)
      outer[l] = p % outer_[l].size;
    const auto to = placed(c_, c + at[2]);
    const bool is_cut = finish_runs_[0] != 0 || finish_runs_[1] != 0;
    const auto finish_part = [&](std::int64_t row, std::int64_t rows, std::int64_t col,
                                 std::int64_t cols, const float* sums) {
      // Sums are in f32, as C is then.
      C* const part =
          sums ? reinterpret_cast<C*>(const_cast<float*>(sums)) : reinterpret_cast<C*>(to.data);
      if (is_cut) return finish_pieces(buffers, outer, part, sums, {row, rows}, {col, cols});
      epilogue_->run(buffers, outer, part, row, rows, col, cols);
    };
    if constexpr (std::is_same_v<Out, Number> && std::is_floating_point_v<C>) {
      if (cascades_) {
        cascade(at, a, b, to);
        if (epilogue_) finish_part(0, m_, 0, n_, nullptr);
        return;
      }
    }
    for (std::int64_t t = 0; t + 1 < terms(); ++t) add_term(at, a, b, t, to, t > 0, {});
    std::vector<Finish::Read> far;
    Finish finish;
    if (epilogue_) {
      if (!is_cut) far = epilogue_->far_reads(buffers, outer, m_, n_);
      finish = Finish(finish_part, epilogue_->order(), far);
    }
    add_term(at, a, b, terms() - 1, to, terms() > 1, finish);
  }

  /// A product is a sum of so many products: of each step of the loops around the depth, those of
  /// parts of the depth.
  std::int64_t terms() const { return sum_count_ * depth_parts_; }
  /// Term `t` of the product that begins `at`, written to c or added to it.
  template <class Out>
  void add_term(const std::int64_t (&at)[3], const Factor* a, const Factor* b, std::int64_t t,
                const MatrixRef<Out>& c, bool accumulate, const Finish& finish) const {
    std::int64_t from[3] = {at[0], at[1], at[2]};
    advance(sums_, t / depth_parts_, from);
    const auto left = placed(a_, a + from[0]);
    const auto right = placed(b_, b + from[1]);
    if (depth_parts_ == 1) return one_product(c, left, right, accumulate, finish);
    const std::int64_t first = t % depth_parts_ * depth_part_,
                       depth = std::min(depth_part_, k_ - first);
    one_product(c, left.columns_from(first, depth),
                right.transposed().columns_from(first, depth).transposed(), accumulate, finish);
  }

  /// The sum of all terms, `terms_at_once_` of them at once.
  void cascade(const std::int64_t (&at)[3], const Factor* a, const Factor* b,
               const MatrixRef<Number>& c) const {
    const bool by_columns = c.is_column_major();
    const std::int64_t to_row = by_columns ? 1 : n_, to_col = by_columns ? m_ : 1;
    std::vector<Number> part(static_cast<std::size_t>(m_ * n_));
    CascadedSums<Number> sums;
    for (std::int64_t first = 0; first < terms(); first += terms_at_once_) {
      const std::int64_t end = std::min(first + terms_at_once_, terms());
      for (std::int64_t t = first; t < end; ++t)
        add_term(at, a, b, t, MatrixRef<Number>{part.data(), m_, n_, to_row, to_col}, t > first,
                 {});
      sums.add(part);
    }
    const Number* const total = sums.total().data();
    for (std::int64_t i = 0; i < m_; ++i) {
      for (std::int64_t j = 0; j < n_; ++j)
        c.data[c.row_at(i) + c.col_at(j)] = total[i * to_row + j * to_col];
    }
  }

  /// The matrix at `data`.
  template <class T>
  static MatrixRef<T> placed(const MatrixRef<Number>& m, T* data) {
    return {data, m.rows, m.cols, m.row_stride, m.col_stride, m.row_runs, m.col_runs};
  }

  struct Span {
    std::int64_t begin, count;
  };

  /// The epilogue of a part of a product, for each piece of it that all operands walk evenly.
  /// `outer` has the indices of the loops around the product.
  void finish_pieces(std::span<std::byte* const> buffers, std::span<const std::int64_t> outer,
                     C* part, const float* sums, const Span& rows, const Span& columns) const {
    SmallArray<std::int64_t, 16> indices(outer.size());
    std::copy(outer.begin(), outer.end(), indices.begin());
    const auto piece_of = [&](int side, const Span& span, std::int64_t at) {
      const std::int64_t run = finish_runs_[side];
      return run == 0 ? Span{at, span.begin + span.count - at}
                      : Span{at % run, std::min(span.begin + span.count - at, run - at % run)};
    };
    const auto set_indices = [&](int side, std::int64_t at, std::size_t first) {
      const std::vector<std::int64_t>& sizes = finish_sizes_[side];
      if (finish_runs_[side] == 0) return;
      std::int64_t run = at / finish_runs_[side];
      for (std::size_t i = sizes.size(); i-- > 0; run /= sizes[i])
        indices[first + i] = run % sizes[i];
    };
    const bool by_rows = epilogue_->order() == Order::row_major;
    const std::int64_t line = by_rows ? columns.count : rows.count;
    for (std::int64_t row = rows.begin; row < rows.begin + rows.count;) {
      const Span down = piece_of(0, rows, row);
      set_indices(0, row, outer_.size());
      for (std::int64_t col = columns.begin; col < columns.begin + columns.count;) {
        const Span along = piece_of(1, columns, col);
        set_indices(1, col, outer_.size() + finish_sizes_[0].size());
        const std::int64_t i = row - rows.begin, j = col - columns.begin;
        C* const piece = sums ? part + (by_rows ? i * line + j : j * line + i)
                              : part + c_.row_at(row - down.begin) + c_.col_at(col - along.begin);
        epilogue_->run(buffers, indices, piece, down.begin, down.count, along.begin, along.count,
                       line);
        col += along.count;
      }
      row += down.count;
    }
  }

  template <class Out>
  static void one_product(const MatrixRef<Out>& c, const MatrixRef<const Factor>& a,
                          const MatrixRef<const Factor>& b, bool accumulate, const Finish& finish) {
    if constexpr (std::is_same_v<In, bf16>)
      bf16_product(c, a, b, accumulate, finish);
    else
      gemm(c, a, b, accumulate, finish);
  }

  LoopNest::Operand operands_[3];                   // a, b, c
  std::vector<LoopNest::Operand> finish_operands_;  // that the epilogue reads
  Part parts_[3];
  Reach reaches_[2];
  bool repeats_[2] = {};                    // windows of an operand overlap
  std::vector<std::int64_t> starts_[3][2];  // of runs of rows and of columns
  bool is_empty_ = false, rounds_ = false;
  bool is_tiny_ = false;  // there are many products of tiny matrices, and nothing else
  bool is_dot_ = false;   // each product is that of two vectors that lie side by side
  std::int64_t m_ = 1, n_ = 1, k_ = 1;
  MatrixRef<Number> a_{}, b_{}, c_{};  // without addresses
  std::vector<OuterLoop> outer_, sums_;
  std::int64_t products_ = 1, sum_count_ = 1;
  std::int64_t depth_part_ = 1, depth_parts_ = 1, terms_at_once_ = 1;
  bool cascades_ = false;                    // the terms of a product
  std::optional<TileEpilogue<C>> epilogue_;  // where the result is not packed
  // How far its operands walk rows and columns evenly (0: all), and the sizes of the axes around.
  std::int64_t finish_runs_[2] = {0, 0};
  std::vector<std::int64_t> finish_sizes_[2];
};

/// Whether an operand of a nest is read by windows that overlap.
bool repeats(const LoopNest& nest, const LoopNest::Operand& operand) {
  double elements = 1;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (!ask_equal(operand.strides[a], 0)) elements *= static_cast<double>(nest.axes[a].size);
  }
  return elements > reach_of(nest, operand).elements();
}

/// Whether each value is a sum over a small window of one channel, or of a stencil: rows of code
/// keep it in registers, and products with a vector have nothing to share.
bool is_of_single_channels(const LoopNest& nest, const Roles& roles, const Target& target) {
  if (!roles.rows.empty() && !roles.columns.empty()) return false;
  return size_of_axes(nest, roles.depth) <= target.most_window_points &&
         (repeats(nest, nest.inputs[0]) || repeats(nest, nest.inputs[1]));
}

/// Whether a nest has no matrix products in it, only one dot product, or those of numbers that are
/// far apart, few, or to be converted: a reduction, which cuts one sum for all threads or runs
/// along the batch, is faster then.
bool is_better_reduced(const LoopNest& nest) {
  const Roles roles = roles_of(nest);
  if (!roles.rows.empty() && !roles.columns.empty()) return false;
  // Products with vectors whose batch lies closest, as that of channels: lanes are along it.
  constexpr std::int64_t least_lanes = 8;
  const bool is_along_batch =
      std::any_of(roles.batch.begin(), roles.batch.end(), [&](std::size_t a) {
        return ask_equal(nest.inputs[0].strides[a], 1) && ask_equal(nest.inputs[1].strides[a], 1) &&
               nest.axes[a].size >= least_lanes;
      });
  if (!roles.rows.empty() || !roles.columns.empty()) return is_along_batch;
  if (roles.batch.empty()) return true;
  std::int64_t longest_run = 0;
  for (std::size_t a : roles.depth) {
    if (ask_equal(nest.inputs[0].strides[a], 1) && ask_equal(nest.inputs[1].strides[a], 1))
      longest_run = nest.axes[a].size;
  }
  const bool converts =
      nest.inputs[0].dtype != nest.compute || nest.inputs[1].dtype != nest.compute;
  return converts || longest_run < 32;
}

bool has_bf16_factors(const LoopNest& nest) {
  return nest.inputs[0].dtype == DType::bf16 && nest.inputs[1].dtype == DType::bf16;
}

}  // namespace

std::unique_ptr<Kernel> make_contract_kernel(const LoopNest& nest) {
  if (is_better_reduced(nest) || is_of_single_channels(nest, roles_of(nest), RowCode::target()))
    return make_kernel(choose_as_reduction(nest, RowCode::target()));
  if (nest.compute == DType::f32 && has_bf16_factors(nest) && !products_are_by_eigen()) {
    auto kernel = std::make_unique<ContractKernel<float, bf16>>(nest);
    if (multiplies_bf16() || kernel->has_few_rows()) return kernel;
  }
  return visit_compute_type(nest.compute,
                            [&]<class C>(std::type_identity<C>) -> std::unique_ptr<Kernel> {
                              return std::make_unique<ContractKernel<C>>(nest);
                            });
}

}  // namespace ein::host
