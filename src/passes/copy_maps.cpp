#include "passes/copy_maps.hpp"

#include <algorithm>
#include <vector>

#include <ein/count.hpp>
#include "graph/build.hpp"
#include "graph/op_kinds.hpp"
#include "graph/rewrite.hpp"
#include "nest/nest.hpp"
#include "passes/fusion.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

class CopyMaps {
 public:
  explicit CopyMaps(const Graph& graph)
      : from_(graph),
        sources_(graph.ops.size(), 0),
        sizes_(graph.ops.begin(), graph.ops.end()),
        readers_(graph.ops.size(), 0),
        may_be_copied_(graph.ops.size(), 1) {
    for (std::size_t id = 0; id < graph.ops.size(); ++id) note_reads(id);
    for (const ValueId output : graph.outputs) may_be_copied_[at(output)] = 0;
    for (const Assignment& a : graph.assignments) may_be_copied_[at(a.value)] = 0;
    for (std::size_t id = 0; id < graph.ops.size(); ++id) {
      if (spreads(id)) is_any_ |= readers_[id] > 1;
    }
  }

  Graph run() {
    if (!is_any_) return from_;
    for (std::size_t id = 0; id < from_.ops.size(); ++id) {
      const bool is_copied = is_spread(id) && readers_[id] > 0;
      moved_.push_back(is_copied ? -1 : append(to_, with_inputs(from_.ops[id])));
    }
    move_results(from_, to_, moved_);
    return std::move(to_);
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }
  bool is_spread(std::size_t id) const { return !always_equal(sources_[id], 0); }

  void note_reads(std::size_t id) {
    const Op& reader = from_.ops[id];
    for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
      const std::size_t input = at(reader.inputs[i]);
      const auto here = reader.inputs.begin() + static_cast<std::ptrdiff_t>(i);
      const bool is_first = std::find(reader.inputs.begin(), here, *here) == here;
      if (is_first) ++readers_[input];
      may_be_copied_[input] &=
          static_cast<char>(info(reader.kind).has_accesses &&
                            takes_in_by_nest(from_, reader, from_.ops[input], reader.reads[i]));
    }
  }

  /// Notes how many elements it is computed of.
  bool spreads(std::size_t id) {
    const Op& op = from_.ops[id];
    if (op.kind != OpKind::map || !may_be_copied_[id]) return false;
    Size sum = 0;
    FusedSize size = sizes_[id];
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::size_t input = at(op.inputs[i]);
      if (!reduces(op.reads[i], op.axes) && !is_spread(input)) return false;
      sum += is_spread(input) ? sources_[input] : numel(from_.ops[input].shape);
      if (!is_spread(input)) continue;
      if (!size.has_room_for(sizes_[input])) return false;
      size += sizes_[input];
    }
    if (always_equal(sum, 0) || 4 * sum > numel(op.shape)) return false;
    sources_[id] = sum;
    sizes_[id] = size;
    return true;
  }

  Op with_inputs(Op op) {
    // What is read twice is one copy.
    std::vector<std::pair<ValueId, ValueId>> known;
    for (ValueId& input : op.inputs) {
      const auto found = std::find_if(known.begin(), known.end(),
                                      [&](const auto& pair) { return pair.first == input; });
      if (found != known.end()) {
        input = found->second;
      } else {
        known.emplace_back(input, value(input));
        input = known.back().second;
      }
    }
    return op;
  }
  ValueId value(ValueId id) {
    return is_spread(at(id)) ? append(to_, with_inputs(from_.op(id))) : moved_[at(id)];
  }

  const Graph& from_;
  Graph to_;
  std::vector<Size> sources_;     // of a map that spreads: the elements that it is computed of
  std::vector<FusedSize> sizes_;  // with those of the maps that it takes in
  std::vector<int> readers_;
  std::vector<char> may_be_copied_;
  std::vector<ValueId> moved_;
  bool is_any_ = false;
};

}  // namespace

Graph copy_maps(const Graph& graph) { return CopyMaps(graph).run(); }

}  // namespace ein
