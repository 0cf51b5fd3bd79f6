#include "passes/join_collectives.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "graph/rewrite.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

bool reads_all(const Op& op) { return op.collective != Collective::all_gather; }
/// How many of the first dimensions count processes.
std::size_t processes_of_operand(const Op& op) {
  return op.collective == Collective::reduce_scatter ? 1 : 0;
}
std::size_t processes_of_result(const Op& op) {
  return op.collective == Collective::all_gather ? 1 : 0;
}

class Joining {
 public:
  Joining(const Graph& graph, const JoinLimits& limits) : from_(graph), limits_(limits) {}

  Graph run() {
    find_groups();
    if (std::none_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return group.members.size() > 1; }))
      return from_;
    moved_.assign(from_.ops.size(), -1);
    for (std::size_t id = 0; id < from_.ops.size(); ++id) {
      waiting_.push_back(id);
      while (emit_waiting()) {
      }
    }
    move_results(from_, to_, moved_);
    verify(to_);
    return std::move(to_);
  }

 private:
  struct Group {
    Op like;
    std::vector<std::size_t> members{};
    std::int64_t bytes = 0;
    std::set<std::size_t> needs{};  // groups whose results its operands need
  };

  // --- which are joined ---

  /// Bytes of the operand, if it is small.
  std::optional<std::int64_t> small_bytes(const Op& op) const {
    if (op.kind != OpKind::collective) return {};
    const bool is_joined = combines(op.collective) || (op.collective == Collective::all_gather &&
                                                       op.marks.phase == Phase::update);
    const Size bytes =
        numel(from_.op(op.inputs[0]).shape) * static_cast<std::int64_t>(size_of(op.dtype));
    if (!is_joined || !bytes.is_number()) return {};
    const std::int64_t count = bytes;
    return count > 0 && count <= limits_.operand_bytes ? std::optional(count) : std::nullopt;
  }
  static auto key_of(const Op& op) {
    return std::tuple(op.collective, op.mesh_axes, op.dtype, op.combine, op.marks.phase,
                      op.marks.detached, op.marks.stationary, op.marks.again);
  }
  /// Whether what needs the results of `needs` needs those of `group`.
  bool depends(const std::set<std::size_t>& needs, std::size_t group) const {
    std::vector<std::size_t> open(needs.begin(), needs.end());
    std::set<std::size_t> seen = needs;
    while (!open.empty()) {
      const std::size_t next = open.back();
      open.pop_back();
      if (next == group) return true;
      for (const std::size_t needed : groups_[next].needs) {
        if (seen.insert(needed).second) open.push_back(needed);
      }
    }
    return false;
  }

  void find_groups() {
    group_of_.assign(from_.ops.size(), no_group);
    std::vector<std::set<std::size_t>> needs(from_.ops.size());
    for (std::size_t id = 0; id < from_.ops.size(); ++id) {
      const Op& op = from_.ops[id];
      for (const ValueId input : op.inputs) {
        const auto from = static_cast<std::size_t>(input);
        needs[id].insert(needs[from].begin(), needs[from].end());
      }
      const std::optional<std::int64_t> bytes = small_bytes(op);
      if (!bytes) continue;
      const std::size_t group = group_for(op, *bytes, needs[id]);
      group_of_[id] = group;
      groups_[group].members.push_back(id);
      groups_[group].bytes += *bytes;
      groups_[group].needs.insert(needs[id].begin(), needs[id].end());
      needs[id] = {group};
    }
  }
  std::size_t group_for(const Op& op, std::int64_t bytes, const std::set<std::size_t>& needs) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      if (key_of(group.like) == key_of(op) && group.bytes + bytes <= limits_.joined_bytes &&
          !depends(needs, g))
        return g;
    }
    groups_.push_back({op});
    return groups_.size() - 1;
  }

  // --- the graph with them joined ---

  bool is_moved(ValueId value) const { return moved_[static_cast<std::size_t>(value)] >= 0; }

  /// Adds what has all its inputs: an operation alone, or a group. False where nothing has.
  bool emit_waiting() {
    bool has_moved = false;
    std::vector<std::size_t> still;
    for (const std::size_t id : waiting_) {
      if (moved_[id] >= 0) continue;
      const Op& op = from_.ops[id];
      const std::size_t group = group_of_[id];
      const bool is_joined = group != no_group && groups_[group].members.size() > 1;
      const auto has_inputs = [&](std::size_t of) {
        const auto& inputs = from_.ops[of].inputs;
        return std::all_of(inputs.begin(), inputs.end(), [&](ValueId v) { return is_moved(v); });
      };
      if (is_joined) {
        const std::vector<std::size_t>& members = groups_[group].members;
        if (!std::all_of(members.begin(), members.end(), has_inputs)) {
          still.push_back(id);
          continue;
        }
        join(groups_[group]);
      } else if (has_inputs(id)) {
        Op copy = op;
        for (ValueId& input : copy.inputs) input = moved_[static_cast<std::size_t>(input)];
        moved_[id] = append(to_, std::move(copy));
      } else {
        still.push_back(id);
        continue;
      }
      has_moved = true;
    }
    waiting_ = std::move(still);
    return has_moved && !waiting_.empty();
  }

  static Size product(const Shape& shape, std::size_t first) {
    Size product = 1;
    for (std::size_t d = first; d < shape.rank(); ++d) product *= shape[d];
    return product;
  }
  /// The first dimensions, if they count processes, and one of all others.
  static Access flat_access(const Shape& shape, std::size_t processes, Size offset = 0) {
    Access access = plain_access(processes);
    DimIndex elements{offset, {}};
    Size step = product(shape, processes);
    for (std::size_t d = processes; d < shape.rank(); ++d) {
      step /= shape[d];
      elements.terms.push_back({static_cast<int>(d), step});
    }
    access.push_back(std::move(elements));
    return access;
  }
  Op with_marks(Op op, const Op& of) const {
    op.marks = of.marks;
    return op;
  }

  ValueId flat(ValueId value, std::size_t processes, const Op& like) {
    Op op = with_marks(plain_op(OpKind::reindex, like.dtype, to_.op(value).shape), like);
    op.inputs = {value};
    op.reads = {op.write};
    op.write = flat_access(op.shape, processes);
    op.shape = shape_of(op.write, op.axes);
    return append(to_, std::move(op));
  }

  void join(const Group& group) {
    const Op& like = group.like;
    const std::size_t of_operand = processes_of_operand(like),
                      of_result = processes_of_result(like);
    Op all{.kind = OpKind::concat, .dtype = like.dtype};
    all.dim = static_cast<int>(of_operand);
    Size elements = 0;
    for (const std::size_t member : group.members) {
      const ValueId operand = moved_[static_cast<std::size_t>(from_.ops[member].inputs[0])];
      all.inputs.push_back(flat(operand, of_operand, like));
      elements += product(to_.op(operand).shape, of_operand);
    }
    all.shape = to_.op(all.inputs.front()).shape;
    all.shape[of_operand] = elements;
    const ValueId operand = append(to_, with_marks(std::move(all), like));

    const ValueId result = append(to_, collective(like, operand, elements));
    Size offset = 0;
    for (const std::size_t member : group.members) {
      const Shape& shape = from_.ops[member].shape;
      Op part = with_marks(plain_op(OpKind::reindex, like.dtype, shape), like);
      part.inputs = {result};
      part.reads = {flat_access(shape, of_result, offset)};
      offset += product(shape, of_result);
      moved_[member] = append(to_, std::move(part));
    }
  }
  /// A collective of one dimension of `elements`, after that of the processes if there is one.
  Op collective(const Op& like, ValueId operand, Size elements) const {
    Shape space;
    if (like.collective != Collective::all_reduce) space.push_back(like.axes.front().size);
    space.push_back(elements);
    Op op = with_marks(plain_op(OpKind::collective, like.dtype, space), like);
    for (Axis& axis : op.axes) axis.name.clear();
    const Access of_each = plain_access(1, space.rank() - 1);
    op.inputs = {operand};
    op.reads = {reads_all(like) ? op.write : of_each};
    if (like.collective == Collective::reduce_scatter) {
      op.write = of_each;
      op.shape = shape_of(of_each, op.axes);
    }
    op.collective = like.collective;
    op.mesh_axes = like.mesh_axes;
    op.combine = like.combine;
    return op;
  }

  static constexpr std::size_t no_group = static_cast<std::size_t>(-1);

  const Graph& from_;
  const JoinLimits limits_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // of each operation of from_
  Graph to_;
  std::vector<ValueId> moved_;  // of each value of from_; -1 while it is not there
  std::vector<std::size_t> waiting_;
};

}  // namespace

Graph join_collectives(const Graph& graph, const JoinLimits& limits) {
  return Joining(graph, limits).run();
}

}  // namespace ein
