#include "passes/placement_classes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ein/error.hpp>
#include "graph/build.hpp"
#include "graph/op_kinds.hpp"
#include "passes/distribute.hpp"
#include "size/ask.hpp"

namespace ein {

using Split = Placement::Split;

PlacementClasses::PlacementClasses(const std::string& call, const Graph& graph,
                                   std::span<const MeshAxis> mesh,
                                   std::span<const Placement> inputs,
                                   std::span<const std::optional<Placement>> outputs)
    : call_(call), graph_(graph), mesh_(mesh) {
  std::size_t nodes = 0;
  for (const Op& op : graph.ops) {
    first_dim_.push_back(nodes);
    nodes += op.shape.rank();
    first_axis_.push_back(nodes);
    nodes += op.axes.size();
  }
  parent_.resize(nodes);
  std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  seeds_.resize(nodes);
  unite_all();
  seed_all(inputs, outputs);
  check_all();
}

// --- classes ---

std::size_t PlacementClasses::dim_node(ValueId value, std::size_t dim) const {
  return first_dim_[static_cast<std::size_t>(value)] + dim;
}
std::size_t PlacementClasses::axis_node(std::size_t op, std::size_t axis) const {
  return first_axis_[op] + axis;
}

std::size_t PlacementClasses::root(std::size_t node) const {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

void PlacementClasses::unite(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

void PlacementClasses::need_whole(std::size_t node, std::string why) {
  needs_.push_back({node, std::move(why)});
}

void PlacementClasses::unite_all() {
  for (std::size_t id = 0; id < graph_.ops.size(); ++id) unite_op(id);
  for (const Assignment& a : graph_.assignments) unite_values(a.target, a.value);
}

void PlacementClasses::unite_values(ValueId a, ValueId b) {
  for (std::size_t d = 0; d < graph_.op(a).shape.rank(); ++d) unite(dim_node(a, d), dim_node(b, d));
}

/// Dimension `free_dim` is met by positions, which say nothing of it.
void PlacementClasses::unite_access(std::size_t id, ValueId value, const Access& access,
                                    int free_dim) {
  const Op& op = graph_.ops[id];
  const Shape& shape = graph_.op(value).shape;
  for (std::size_t d = 0; d < access.size(); ++d) {
    const DimIndex& dim = access[d];
    const std::size_t node = dim_node(value, d);
    if (static_cast<int>(d) == free_dim && dim.terms.empty()) continue;
    const auto extent =
        always_equal(dim.offset, 0) ? extent_of(dim, op.axes) : std::optional<Size>();
    if (static_cast<int>(d) == free_dim || !extent || !ask_equal(*extent, shape[d])) {
      std::string why = "a part of it is taken";
      if (dim.terms.size() > 1) why = "its positions are functions of several indices";
      if (dim.terms.size() == 1 && goes_backwards({dim})) why = "it is gone along backwards";
      need_whole(node, why);
      for (const DimIndex::Term& term : dim.terms)
        need_whole(axis_node(id, static_cast<std::size_t>(term.axis)), why);
      continue;
    }
    // Of a composite dimension the outermost axis lies as the dimension does.
    bool is_outermost = true;
    for (const DimIndex::Term& term : dim.terms) {
      const auto axis = static_cast<std::size_t>(term.axis);
      if (is_one(op.axes[axis].size) && dim.terms.size() > 1) continue;
      for (std::size_t other = 0; other < access.size(); ++other) {
        if (other != d && uses({access[other]}, term.axis))
          need_whole(axis_node(id, axis), "it runs along a diagonal");
      }
      if (is_outermost)
        unite(node, axis_node(id, axis));
      else
        need_whole(axis_node(id, axis),
                   "it is an inner axis of a composite one, and only the "
                   "outermost axis of those can be split");
      is_outermost = false;
    }
  }
}

void PlacementClasses::unite_op(std::size_t id) {
  const Op& op = graph_.ops[id];
  const auto value = static_cast<ValueId>(id);
  const std::string why(info(op.kind).why_whole);
  if (op.kind == OpKind::input) return;
  if (op.kind == OpKind::reshard) {  // what it reads and what it gives lie as it says
    for (std::size_t d = 0; d < op.shape.rank(); ++d) {
      if (op.to.split(d) == Placement::same()) unite(dim_node(op.inputs[0], d), dim_node(value, d));
    }
    return;
  }
  if (op.kind == OpKind::concat) {
    for (const ValueId input : op.inputs) {
      for (std::size_t d = 0; d < op.shape.rank(); ++d) {
        if (static_cast<int>(d) == op.dim)
          need_whole(dim_node(input, d), why);
        else
          unite(dim_node(input, d), dim_node(value, d));
      }
    }
    return need_whole(dim_node(value, static_cast<std::size_t>(op.dim)), why);
  }
  const bool has_base = op.kind == OpKind::place && op.inputs.size() > 1;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (has_base && i == 1)
      unite_values(op.inputs[1], value);
    else
      unite_access(id, op.inputs[i], op.reads[i], reads_at_positions(op) && i == 0 ? op.dim : -1);
  }
  unite_access(id, value, op.write, writes_at_positions(op) ? op.dim : -1);
  if (info(op.kind).is_ordered) need_whole(axis_node(id, static_cast<std::size_t>(op.axis)), why);
  for (std::size_t a = 0; a < op.roles.size(); ++a) {
    if (op.roles[a] != MatrixAxis::batch && op.roles[a] != MatrixAxis::right)
      need_whole(axis_node(id, a), why);
  }
  if (op.kind == OpKind::scatter && op.combine != Combine::sum)
    need_whole(dim_node(value, static_cast<std::size_t>(op.dim)),
               "values that are not summed go to positions along it");
}

// --- where they lie ---

void PlacementClasses::seed(std::size_t node, Seed seed) {
  std::optional<Seed>& known = seeds_[root(node)];
  if (known && known->split != seed.split) refuse(*known, seed);
  if (!known) known = std::move(seed);
}

void PlacementClasses::seed_all(std::span<const Placement> inputs,
                                std::span<const std::optional<Placement>> outputs) {
  placed_inputs_.assign(inputs.begin(), inputs.end());
  const auto seed_value = [&](Seed::Kind kind, ValueId value, const Placement& placement,
                              std::size_t number) {
    for (std::size_t d = 0; d < graph_.op(value).shape.rank(); ++d) {
      if (placement.split(d) != Placement::same())
        seed(dim_node(value, d), {kind, placement.split(d), value, d, number, {}});
    }
  };
  std::size_t input = 0;
  for (std::size_t id = 0; id < graph_.ops.size(); ++id) {
    const Op& op = graph_.ops[id];
    const auto value = static_cast<ValueId>(id);
    if (op.kind == OpKind::input) {
      seed_value(Seed::input, value, input < inputs.size() ? inputs[input] : Placement(), input);
      ++input;
    } else if (op.kind == OpKind::reshard) {
      seed_value(Seed::reshard, op.inputs[0], op.from, id);
      seed_value(Seed::reshard, value, op.to, id);
    }
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o]) seed_value(Seed::output, graph_.outputs[o], *outputs[o], o);
  }
  for (const Need& need : needs_) {
    const std::optional<Seed>& known = seeds_[root(need.node)];
    if (known && !known->split.empty()) refuse(*known, {Seed::need, {}, -1, 0, 0, need.why});
  }
}

Split PlacementClasses::of_node(std::size_t node) const {
  const std::optional<Seed>& known = seeds_[root(node)];
  return known ? known->split : Split();
}
Split PlacementClasses::of_dim(ValueId value, std::size_t dim) const {
  return of_node(dim_node(value, dim));
}
Split PlacementClasses::of_axis(std::size_t op, std::size_t axis) const {
  return of_node(axis_node(op, axis));
}
Placement PlacementClasses::placement(std::size_t value) const {
  Placement placement;
  for (std::size_t d = 0; d < graph_.ops[value].shape.rank(); ++d)
    placement.dims.push_back(of_dim(static_cast<ValueId>(value), d));
  return placement;
}

void PlacementClasses::check_all() const {
  for (std::size_t id = 0; id < graph_.ops.size(); ++id) check_op(id);
}

void PlacementClasses::check_op(std::size_t id) const {
  const Op& op = graph_.ops[id];
  std::vector<std::optional<std::string>> splits(
      mesh_.size());  // of each mesh axis, what it splits
  const auto check = [&](const Split& split, Size size, const std::string& name) {
    for (const int m : split) {
      std::optional<std::string>& other = splits[static_cast<std::size_t>(m)];
      const std::string& mesh_axis = mesh_[static_cast<std::size_t>(m)].name;
      if (other) {
        complain(ErrorKind::placement,
                 "the mesh axis '" + mesh_axis + "' would split two axes, " + *other + " and " +
                     name + ", and every process has one part of each only",
                 places_of({*other, name}, text({m})), {way_out_of(id, name, m)});
      }
      other = name;
    }
    const std::int64_t parts = parts_of(split, mesh_);
    if (ask_equal(size % parts, 0)) return;
    complain(ErrorKind::divisibility,
             "axis " + name + " of size " + to_string(size) + " does not divide into the " +
                 std::to_string(parts) + " equal parts of " + name + text(split),
             places_of({name}, to_string(size)), {way_to_divide(size, parts)});
  };
  if (info(op.kind).has_accesses && op.kind != OpKind::reshard) {
    for (std::size_t a = 0; a < op.axes.size(); ++a)
      check(of_axis(id, a), op.axes[a].size, op.axes[a].name);
    // Nor may processes that look for the elements of a dimension have different positions.
    const auto dim = static_cast<std::size_t>(op.dim);
    const bool gathers = reads_at_positions(op) && !is_at_position(op);
    const ValueId searched = gathers ? op.inputs[0] : static_cast<ValueId>(id);
    if (gathers || op.kind == OpKind::scatter)
      check(of_dim(searched, dim), graph_.op(searched).shape[dim],
            "the one that positions are along");
    return;
  }
  const std::vector<std::string> names = names_of(static_cast<ValueId>(id));
  for (std::size_t d = 0; d < op.shape.rank(); ++d)
    check(of_dim(static_cast<ValueId>(id), d), op.shape[d],
          op.kind == OpKind::reshard ? op.axes[d].name : names[d]);
}

}  // namespace ein
