#include "schedule/gpu_group_many.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <queue>
#include <set>
#include <string>

#include "graph/fields.hpp"
#include "nest/dependences.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using Group = Program::Group;
using Numbers = std::vector<std::size_t>;

constexpr std::size_t longest_chain = 8;

bool moves(const LoopNest& nest, const LoopNest::Operand& operand) {
  return !nest.axes.empty() && !ask_equal(operand.strides[0], 0);
}

/// A program's groups as nodes of a graph of what must come before what.
class GroupOrder {
 public:
  GroupOrder(const Program& program, std::span<const int> memory)
      : dependences_(memory), before_(program.groups.size()) {
    struct Use {
      Numbers writers, readers;  // the last group that wrote, and those that have read since
    };
    std::map<int, Use> uses;
    for (std::size_t g = 0; g < program.groups.size(); ++g) {
      std::set<std::size_t> found;
      const auto [read, written] = dependences_.touched_by(
          std::span(program.nests).subspan(program.groups[g].first, program.groups[g].count),
          program.groups[g].attention());
      for (int m : read) found.insert(uses[m].writers.begin(), uses[m].writers.end());
      for (int m : written) {
        found.insert(uses[m].writers.begin(), uses[m].writers.end());
        found.insert(uses[m].readers.begin(), uses[m].readers.end());
      }
      for (int m : read) uses[m].readers.push_back(g);
      for (int m : written) uses[m] = {{g}, {}};
      found.erase(g);
      before_[g].assign(found.begin(), found.end());
    }
    const std::size_t words = (before_.size() + 63) / 64;
    ancestors_.assign(before_.size(), std::vector<std::uint64_t>(words, 0));
    for (std::size_t g = 0; g < before_.size(); ++g) {
      for (std::size_t b : before_[g]) {
        for (std::size_t w = 0; w < words; ++w) ancestors_[g][w] |= ancestors_[b][w];
        ancestors_[g][b / 64] |= std::uint64_t{1} << b % 64;
      }
    }
  }

  const Numbers& before(std::size_t group) const { return before_[group]; }
  bool is_ancestor(std::size_t a, std::size_t of) const {
    return ancestors_[of][a / 64] >> a % 64 & 1;
  }

  /// Whether two flat nests, of which one follows the other, meet in the same elements at the same
  /// points only.
  bool in_step(const LoopNest& a, const LoopNest& b) const {
    const auto meet = [&](const LoopNest::Operand& x, const LoopNest::Operand& y) {
      if (memory_of(x.buffer) != memory_of(y.buffer)) return true;
      return x.buffer == y.buffer && ask_equal(x.offset, y.offset) && x.dtype == y.dtype &&
             moves(a, x) && moves(b, y);
    };
    return meet(a.output, b.output) &&
           std::all_of(a.inputs.begin(), a.inputs.end(),
                       [&](const auto& x) { return meet(x, b.output); }) &&
           std::all_of(b.inputs.begin(), b.inputs.end(),
                       [&](const auto& y) { return meet(a.output, y); });
  }

 private:
  int memory_of(int buffer) const { return dependences_.memory_of(buffer); }

  Dependences dependences_;
  std::vector<Numbers> before_;
  std::vector<std::vector<std::uint64_t>> ancestors_;
};

class Many {
 public:
  Many(Program& program, std::span<const int> memory) : program_(program), order_(program, memory) {
    for (std::size_t g = 0; g < program.groups.size(); ++g) nodes_.push_back({g});
  }

  /// Whether anything changed.
  bool run() {
    const std::vector<Numbers> alone = nodes_;
    make_chains();
    if (schedule()) return true;
    // Two chains that need each other.
    nodes_ = alone;
    return schedule();
  }

 private:
  const LoopNest& nest(std::size_t group) const {
    return program_.nests[program_.groups[group].first];
  }
  bool is_candidate(std::size_t group) const {
    return program_.groups[group].count == 1 && nest(group).phase == Phase::update &&
           is_flat(nest(group));
  }
  bool is_candidate(const Numbers& node) const { return is_candidate(node.front()); }

  // --- chains ---

  void make_chains() {
    Numbers node_of(program_.groups.size());
    for (std::size_t g = 0; g < node_of.size(); ++g) node_of[g] = g;
    for (std::size_t g = 0; g < node_of.size(); ++g) {
      if (!is_candidate(g)) continue;
      std::set<std::size_t> joined{g};
      for (std::size_t b : order_.before(g)) {
        if (is_candidate(b) && is_over_same(nest(b), nest(g))) joined.insert(node_of[b]);
      }
      Numbers chain;
      for (std::size_t node : joined)
        chain.insert(chain.end(), nodes_[node].begin(), nodes_[node].end());
      std::sort(chain.begin(), chain.end());
      if (joined.size() == 1 || !is_chain(chain)) continue;
      for (std::size_t node : joined) nodes_[node].clear();
      for (std::size_t member : chain) node_of[member] = chain.front();
      nodes_[chain.front()] = std::move(chain);
    }
    std::erase_if(nodes_, [](const Numbers& node) { return node.empty(); });
  }

  static bool is_over_same(const LoopNest& a, const LoopNest& b) {
    return a.compute == b.compute && a.axes.size() == b.axes.size() &&
           (a.axes.empty() || ask_equal(a.axes[0].size, b.axes[0].size));
  }

  /// Of nests over the same elements.
  bool is_chain(const Numbers& chain) const {
    if (chain.size() > longest_chain) return false;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      for (std::size_t j = i + 1; j < chain.size(); ++j) {
        if (!order_.in_step(nest(chain[i]), nest(chain[j]))) return false;
      }
      // Nothing else may have to come between two of them.
      for (std::size_t b : order_.before(chain[i])) {
        if (std::binary_search(chain.begin(), chain.end(), b)) continue;
        for (std::size_t member : chain) {
          if (order_.is_ancestor(member, b)) return false;
        }
      }
    }
    return true;
  }

  // --- order ---

  /// What two chains that are one kernel agree in: all but sizes and buffers.
  std::string signature(const Numbers& chain) const {
    std::string text;
    const auto add = [&](auto value) {
      char bytes[sizeof value];
      std::memcpy(bytes, &value, sizeof value);
      text.append(bytes, sizeof value);
    };
    std::map<std::pair<int, std::int64_t>, int>
        places;  // by buffer and offset, in the order of their first use
    const auto add_operand = [&](const LoopNest& n, const LoopNest::Operand& operand) {
      add(places.emplace(std::pair(operand.buffer, operand.offset), static_cast<int>(places.size()))
              .first->second);
      add(operand.dtype);
      add(moves(n, operand));
    };
    for (std::size_t g : chain) {
      const LoopNest& n = nest(g);
      add(n.compute);
      add(n.axes.size());
      for (const LoopNest::Operand& input : n.inputs) add_operand(n, input);
      add_operand(n, n.output);
      for_each_word(n.body, add);
    }
    return text;
  }

  /// Orders the nodes: what is ready keeps its place, but chains wait until nothing else is ready,
  /// so that those that are alike come together.
  bool schedule() {
    Numbers node_of(program_.groups.size());
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      for (std::size_t g : nodes_[n]) node_of[g] = n;
    }
    std::vector<std::set<std::size_t>> before(nodes_.size());
    std::vector<Numbers> after(nodes_.size());
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      for (std::size_t g : nodes_[n]) {
        for (std::size_t b : order_.before(g)) {
          if (node_of[b] != n && before[n].insert(node_of[b]).second)
            after[node_of[b]].push_back(n);
        }
      }
    }
    std::priority_queue<std::size_t, Numbers, std::greater<>> ready;
    std::map<std::string, Numbers> waiting;  // by signature
    Numbers missing;
    for (const auto& list : before) missing.push_back(list.size());
    const auto release = [&](std::size_t n) {
      if (is_candidate(nodes_[n])) {
        waiting[signature(nodes_[n])].push_back(n);
      } else {
        ready.push(n);
      }
    };
    std::size_t count = 0;
    std::vector<Numbers> order;  // of nodes; those of one group together
    const auto place = [&](Numbers nodes) {
      for (std::size_t n : nodes) {
        for (std::size_t next : after[n]) {
          if (--missing[next] == 0) release(next);
        }
      }
      count += nodes.size();
      order.push_back(std::move(nodes));
    };
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (missing[n] == 0) release(n);
    }
    while (!ready.empty() || !waiting.empty()) {
      if (!ready.empty()) {
        const std::size_t n = ready.top();
        ready.pop();
        place({n});
        continue;
      }
      const auto most =
          std::max_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
            return a.second.size() != b.second.size() ? a.second.size() < b.second.size()
                                                      : a.second.front() > b.second.front();
          });
      Numbers alike = std::move(most->second);
      waiting.erase(most);
      std::sort(alike.begin(), alike.end());
      place(std::move(alike));
    }
    if (count < nodes_.size()) return false;
    apply(order);
    return true;
  }

  void apply(const std::vector<Numbers>& order) {
    std::vector<LoopNest> nests;
    std::vector<Group> groups;
    for (const Numbers& nodes : order) {
      const Numbers& first = nodes_[nodes.front()];
      Group group = program_.groups[first.front()];
      if (nodes.size() * first.size() > 1)
        group = {0, nodes.size() * first.size(), Group::Repeated{first.size()}};
      group.first = nests.size();
      for (std::size_t n : nodes) {
        for (std::size_t g : nodes_[n]) {
          const Group& old = program_.groups[g];
          for (std::size_t i = 0; i < old.count; ++i)
            nests.push_back(program_.nests[old.first + i]);
        }
      }
      groups.push_back(std::move(group));
    }
    program_.nests = std::move(nests);
    program_.groups = std::move(groups);
  }

  Program& program_;
  GroupOrder order_;
  std::vector<Numbers> nodes_;  // groups that are or become one, in order; named by the first
};

/// Buffers that only one chain uses are local to its threads.
void find_local_buffers(Program& program, std::span<const int> kept) {
  constexpr std::size_t nobody = static_cast<std::size_t>(-1), several = nobody - 1;
  Numbers user(program.buffers.size(), nobody);  // the first nest of the chain
  std::vector<char> is_written_first(program.buffers.size(), 0);
  for (const Group& group : program.groups) {
    const Group::Repeated* repeated = group.repeated();
    for (std::size_t i = 0; i < group.count; ++i) {
      const LoopNest& nest = program.nests[group.first + i];
      const std::size_t chain =
          repeated ? group.first + i / repeated->each * repeated->each : several;
      const auto use = [&](const LoopNest::Operand& operand, bool is_write) {
        const auto b = static_cast<std::size_t>(operand.buffer);
        if (user[b] == nobody) is_written_first[b] = is_write;
        user[b] = user[b] == nobody || user[b] == chain ? chain : several;
      };
      for (const LoopNest::Operand& input : nest.inputs) use(input, false);
      use(nest.output, true);
    }
  }
  std::vector<char> is_local(program.buffers.size(), 0);
  for (std::size_t b = program.input_count; b < program.buffers.size(); ++b) {
    const bool is_kept = std::find(kept.begin(), kept.end(), static_cast<int>(b)) != kept.end();
    is_local[b] = user[b] < several && is_written_first[b] && !is_kept;
  }
  // The chains of a group are one kernel: what one of them must store, all do.
  for (bool changes = true; changes;) {
    changes = false;
    for (const Group& group : program.groups) {
      const std::size_t each = group.repeated() ? group.repeated()->each : 0;
      for (std::size_t n = 0; n < each; ++n) {
        std::size_t locals = 0;
        const auto output = [&](std::size_t i) {
          return static_cast<std::size_t>(program.nests[group.first + i].output.buffer);
        };
        for (std::size_t i = n; i < group.count; i += each) locals += is_local[output(i)] != 0;
        if (locals == 0 || locals == group.count / each) continue;
        for (std::size_t i = n; i < group.count; i += each) is_local[output(i)] = 0;
        changes = true;
      }
    }
  }
  for (std::size_t b = 0; b < is_local.size(); ++b) program.buffers[b].is_local |= is_local[b] != 0;
}

}  // namespace

bool is_flat(const LoopNest& nest) {
  const auto is_plain = [&](const LoopNest::Operand& operand) {
    return !operand.is_indirect() && (nest.axes.empty() || ask_equal(operand.strides[0], 0) ||
                                      ask_equal(operand.strides[0], 1));
  };
  return !nest.combine && nest.along == LoopNest::Along::nothing && nest.epilogue.steps.empty() &&
         nest.axes.size() <= 1 &&
         (nest.axes.empty() || (ask_equal(nest.output.strides[0], 1) && nest.axes[0].size > 0)) &&
         is_plain(nest.output) && std::all_of(nest.inputs.begin(), nest.inputs.end(), is_plain) &&
         !draws(nest.body) && !asks_index(nest.body);
}

void group_many(Program& program, std::span<const int> kept, std::span<const int> memory) {
  if (Many(program, memory).run()) find_local_buffers(program, kept);
}

}  // namespace ein
