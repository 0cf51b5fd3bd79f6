#include "passes/find_attention.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "passes/attention_axes.hpp"
#include "passes/attention_match.hpp"
#include "passes/nest_order.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;
using attention::Match;
using attention::Uses;

struct Found {
  Match match;
  Attention attention;
};

using Takes = std::function<bool(const Attention&)>;

/// The attention that begins with the product of nest `first`.
std::optional<Found> find(const Program& program, const Uses& uses, std::span<const int> kept,
                          const Takes& takes, std::size_t first) {
  std::optional<Match> match = attention::match(program, uses, kept, first);
  if (!match) return std::nullopt;
  std::optional<Attention> attention = attention::describe(program, *match);
  if (!attention || !takes(*attention)) return std::nullopt;
  if (attention->gradients) {
    // These stay for the kernels of the gradients.
    std::erase_if(match->locals,
                  [&](int buffer) { return buffer == match->total || buffer == match->delta; });
  }
  return Found{std::move(*match), std::move(*attention)};
}

/// Whether results lie apart from what is read while they are written.
bool are_apart(const NestOrder& order, const Attention& a) {
  std::set<int> forward{order.memory_of(a.q.buffer), order.memory_of(a.k.buffer),
                        order.memory_of(a.v.buffer)};
  if (forward.contains(order.memory_of(a.out.buffer))) return false;
  if (!a.gradients) return true;
  forward.insert(order.memory_of(a.out.buffer));
  forward.insert(order.memory_of(a.gradients->dout.buffer));
  for (const auto* result : {&a.gradients->dq, &a.gradients->dk, &a.gradients->dv}) {
    if (*result && forward.contains(order.memory_of((*result)->buffer))) return false;
  }
  return true;
}

/// The first nests of the groups, of which the second is that of the gradients; none if there is no
/// place.
std::vector<std::size_t> place(NestOrder& order, const Found& found) {
  const Attention& a = found.attention;
  if (!are_apart(order, a)) return {};
  const std::vector<NestOrder::Item> before = order.items();
  const std::optional<std::size_t> forward = order.gather(found.match.forward);
  if (!forward) return {};
  if (!a.gradients) return {*forward};
  const std::optional<std::size_t> backward = order.gather(found.match.backward);
  if (backward && order.keeps(*forward, *backward, {&a.q, &a.k, &a.v, &a.out}))
    return {*forward, *backward};
  order.restore(before);
  return {};
}

/// Makes two nests of a product and what finishes it, which is then a map.
void split_epilogue(Program& program, std::size_t n) {
  LoopNest& product = program.nests[n];
  LoopNest map = product;
  Operand between{.buffer = static_cast<int>(program.buffers.size()), .dtype = product.compute};
  between.strides.assign(product.axes.size(), 0);
  std::vector<std::size_t> kept;
  for (std::size_t a = 0; a < product.axes.size(); ++a) {
    if (!product.axes[a].reduced) kept.push_back(a);
  }
  std::stable_sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
    return product.output.strides[a] < product.output.strides[b];
  });
  Size elements = 1;
  for (std::size_t a : kept) {
    between.strides[a] = elements;
    elements *= product.axes[a].size;
  }
  program.buffers.push_back({elements, between.dtype});
  product.output = between;
  product.inputs.resize(2);
  product.epilogue = {};

  map.inputs.erase(map.inputs.begin());
  map.inputs[0] = between;
  std::vector<ScalarExpr> values{Ex::input(0), Ex::input(0)};
  for (std::size_t i = 1; i < map.inputs.size(); ++i)
    values.push_back(Ex::input(static_cast<int>(i)));
  map.body = substitute(map.epilogue, values);
  map.epilogue = {};
  map.combine.reset();
  for (LoopNest::NestAxis& axis : map.axes) {
    // Nothing moves along it any more.
    if (axis.reduced) axis.size = 1;
    axis.reduced = false;
  }
  simplify(map);
  program.nests.insert(program.nests.begin() + static_cast<std::ptrdiff_t>(n) + 1, std::move(map));
}

/// The same for all products of attentions that are finished by their own nests.
void split_epilogues(Program& program, std::span<const int> kept, const Takes& takes) {
  Uses uses(program);
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    std::optional<Found> found = find(program, uses, kept, takes, n);
    if (!found || found->match.finished.empty()) continue;
    std::vector<std::size_t>& finished = found->match.finished;
    std::sort(finished.rbegin(), finished.rend());
    for (std::size_t product : finished) split_epilogue(program, product);
    uses = Uses(program);
  }
}

/// What a group is that begins with a nest.
using Starts = std::map<std::size_t, Attention>;

/// Puts the nests of attentions together, and makes what is in between local.
Starts gather(Program& program, std::span<const int> kept, const Takes& takes, NestOrder& order) {
  Starts starts;
  const Uses uses(program);
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    std::optional<Found> found = find(program, uses, kept, takes, n);
    if (!found) continue;
    const std::vector<std::size_t> firsts = place(order, *found);
    if (firsts.empty()) continue;
    if (firsts.size() > 1) {
      order.note(firsts[1], found->attention);
      starts.emplace(firsts[1], found->attention);
    }
    found->attention.gradients.reset();
    order.note(firsts[0], found->attention);
    starts.emplace(firsts[0], std::move(found->attention));
    for (int buffer : found->match.locals)
      program.buffers[static_cast<std::size_t>(buffer)].is_local = true;
  }
  return starts;
}

/// Makes a group of each item.
void make_groups(Program& program, const std::vector<NestOrder::Item>& items,
                 const Starts& starts) {
  std::vector<LoopNest> nests;
  program.groups.clear();
  for (const NestOrder::Item& item : items) {
    Program::Group group{.first = nests.size(), .count = item.size()};
    const auto start = starts.find(item.front());
    if (start != starts.end()) group.attention = std::make_shared<const Attention>(start->second);
    program.groups.push_back(std::move(group));
    for (std::size_t n : item) nests.push_back(std::move(program.nests[n]));
  }
  program.nests = std::move(nests);
}

}  // namespace

void find_attention(Program& program, std::span<const int> kept, std::span<const int> memory,
                    const Takes& takes) {
  split_epilogues(program, kept, takes);
  NestOrder order(program, memory);
  const Starts starts = gather(program, kept, takes, order);
  make_groups(program, order.items(), starts);
}

}  // namespace ein
