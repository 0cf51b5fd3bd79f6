#include "passes/find_attention.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "passes/attention_axes.hpp"
#include "passes/attention_match.hpp"
#include "passes/inline_map.hpp"
#include "passes/nest_order.hpp"
#include "size/ask.hpp"

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
  if (!match || !match->out) return std::nullopt;
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

// --- what attention reads beside its product ---

/// The nest that computes a buffer element by element, if it is one that can be computed again.
std::optional<std::size_t> map_of(const Program& program, const Uses& uses, int buffer) {
  const std::vector<std::size_t>& writers = uses.writers[static_cast<std::size_t>(buffer)];
  const bool is_input = static_cast<std::size_t>(buffer) < program.input_count;
  if (is_input || writers.size() != 1 || !is_elementwise(program.nests[writers[0]]))
    return std::nullopt;
  return writers[0];
}

/// How many elements a buffer is computed of, by maps that have more than those. copy_maps() asks
/// for four times as many, as it saves memory's time alone; here any saving will do, since without
/// it no device takes the attention. Further back than `most` maps nothing is looked at.
Size sources_of(const Program& program, const Uses& uses, int buffer, int most = 6) {
  const Size own = program.buffers[static_cast<std::size_t>(buffer)].elements;
  const std::optional<std::size_t> map = map_of(program, uses, buffer);
  if (!map || most == 0) return own;
  Size sum = 0;
  for (const Operand& input : program.nests[*map].inputs)
    sum += sources_of(program, uses, input.buffer, most - 1);
  const bool are_numbers = sum.is_number() && own.is_number();
  return are_numbers && std::int64_t{sum} < std::int64_t{own} ? sum : own;
}
bool spreads(const Program& program, const Uses& uses, int buffer) {
  return !always_equal(sources_of(program, uses, buffer),
                       program.buffers[static_cast<std::size_t>(buffer)].elements);
}

/// A nest that computes what it reads of maps that spread few elements: of the inputs that `wants`
/// names, and of those that it gets instead.
LoopNest computing_maps(const Program& program, const Uses& uses, LoopNest nest,
                        const std::function<bool(int)>& wants, int most = 6) {
  std::set<int> instead;
  if (most == 0) return nest;
  for (std::size_t i = nest.inputs.size(); i-- > 0;) {
    const int buffer = nest.inputs[i].buffer;
    if ((!wants(buffer) && !instead.contains(buffer)) || !spreads(program, uses, buffer)) continue;
    const LoopNest map = computing_maps(
        program, uses, program.nests[*map_of(program, uses, buffer)], [](int) { return true; },
        most - 1);
    std::optional<LoopNest> merged = with_map(nest, i, map);
    if (!merged) continue;
    for (const Operand& input : map.inputs) instead.insert(input.buffer);
    nest = std::move(*merged);
    i = nest.inputs.size();
  }
  return nest;
}

/// Masks and biases that nests before attention make of indices and of few numbers are computed by
/// its own nests, where that is what lets a device take it. Whether there are any.
class MapsAgain {
 public:
  MapsAgain(Program& program, std::span<const int> kept, const Takes& takes)
      : program_(program), kept_(kept), takes_(takes), uses_(program) {}

  bool run() {
    bool are_any = false;
    for (std::size_t n = 0; n < program_.nests.size(); ++n) {
      const std::optional<Match> match = attention::match(program_, uses_, kept_, n);
      if (!match || match->operands.empty()) continue;
      const Program before = program_;
      split_readers(*match);
      uses_ = Uses(program_);
      if (merge(n)) {
        are_any = true;
      } else {
        program_ = before;
      }
      uses_ = Uses(program_);
    }
    return are_any;
  }

 private:
  static bool is_beside(const Match& match, int buffer) {
    return std::any_of(match.operands.begin(), match.operands.end(),
                       [&](const auto& part) { return part.operand->buffer == buffer; });
  }
  bool reads_beside(const Match& match, std::size_t n) const {
    const std::vector<Operand>& inputs = program_.nests[n].inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const Operand& input) { return is_beside(match, input.buffer); });
  }

  /// An epilogue asks for no index, while a map may.
  void split_readers(const Match& match) {
    std::vector<std::size_t> nests = match.forward;
    nests.insert(nests.end(), match.backward.begin(), match.backward.end());
    std::sort(nests.rbegin(), nests.rend());
    for (std::size_t n : nests) {
      if (!program_.nests[n].epilogue.steps.empty() && reads_beside(match, n))
        split_epilogue(program_, n);
    }
  }

  bool merge(std::size_t first) {
    const std::optional<Match> match = attention::match(program_, uses_, kept_, first);
    if (!match) return false;
    std::vector<LoopNest> nests = program_.nests;
    for (const auto* part : {&match->forward, &match->backward}) {
      for (std::size_t n : *part)
        nests[n] = computing_maps(program_, uses_, program_.nests[n],
                                  [&](int buffer) { return is_beside(*match, buffer); });
    }
    std::swap(nests, program_.nests);
    return find(program_, Uses(program_), kept_, takes_, first).has_value();
  }

  Program& program_;
  std::span<const int> kept_;
  const Takes& takes_;
  Uses uses_;
};

/// Maps that no nest reads any more.
void drop_unread_maps(Program& program, std::span<const int> kept) {
  const std::vector<LoopNest> all = std::move(program.nests);
  std::vector<char> is_read(program.buffers.size(), 0), is_dropped(all.size(), 0);
  for (int buffer : kept) is_read[static_cast<std::size_t>(buffer)] = 1;
  for (std::size_t n = all.size(); n-- > 0;) {
    const auto output = static_cast<std::size_t>(all[n].output.buffer);
    is_dropped[n] = output >= program.input_count && program.buffers[output].memory < 0 &&
                    !is_read[output] && is_elementwise(all[n]);
    if (is_dropped[n]) {
      program.buffers[output].is_local = true;
      continue;
    }
    for (const Operand& input : all[n].inputs) is_read[static_cast<std::size_t>(input.buffer)] = 1;
  }
  program.nests.clear();
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (!is_dropped[n]) program.nests.push_back(all[n]);
  }
}

// --- gradients without a result ---

/// The result of an attention whose gradients alone are wanted: they are computed of it.
LoopNest result_of(const Program& program, const Match& match, int buffer) {
  const attention::Part& values = match.v[0];
  LoopNest nest = program.nests[values.nest];
  const Operand weights{match.weights,
                        program.buffers[static_cast<std::size_t>(match.weights)].dtype, 0,
                        values.matrix};
  nest.inputs = {weights, *values.operand};
  nest.output = {buffer, DType::f32, 0, std::vector<Size>(nest.axes.size(), 0)};
  nest.body = Ex::input(0) * Ex::input(1);
  nest.epilogue = {};
  std::vector<std::size_t> kept;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    nest.axes[a].reduced = is_one(values.matrix[a]) && a != values.depth;
    if (!nest.axes[a].reduced && a != values.depth) kept.push_back(a);
  }
  std::stable_sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
    return values.matrix[a] < values.matrix[b];
  });
  Size stride = nest.axes[values.depth].size;
  nest.output.strides[values.depth] = 1;
  for (std::size_t a : kept) {
    nest.output.strides[a] = stride;
    stride *= nest.axes[a].size;
  }
  return nest;
}

void add_results(Program& program, std::span<const int> kept, const Takes& takes) {
  Uses uses(program);
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    const std::optional<Match> match = attention::match(program, uses, kept, n);
    if (!match || match->out) continue;
    const std::vector<LoopNest> before = program.nests;
    const auto buffer = static_cast<int>(program.buffers.size());
    LoopNest result = result_of(program, *match, buffer);
    Size elements = 1;
    for (const LoopNest::NestAxis& axis : result.axes) {
      if (!axis.reduced) elements *= axis.size;
    }
    program.buffers.push_back({elements, DType::f32});
    const std::size_t behind =
        std::max(match->v[0].nest, uses.writers[static_cast<std::size_t>(match->weights)][0] + 1);
    program.nests.insert(program.nests.begin() + static_cast<std::ptrdiff_t>(behind),
                         std::move(result));
    Uses after(program);
    if (find(program, after, kept, takes, n)) {
      uses = std::move(after);
      continue;
    }
    program.nests = before;
    program.buffers.pop_back();
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
    if (start != starts.end()) group.form = std::make_shared<const Attention>(start->second);
    program.groups.push_back(std::move(group));
    for (std::size_t n : item) nests.push_back(std::move(program.nests[n]));
  }
  program.nests = std::move(nests);
}

}  // namespace

void find_attention(Program& program, std::span<const int> kept, std::span<const int> memory,
                    const Takes& takes) {
  add_results(program, kept, takes);
  if (MapsAgain(program, kept, takes).run()) drop_unread_maps(program, kept);
  split_epilogues(program, kept, takes);
  NestOrder order(program, memory);
  const Starts starts = gather(program, kept, takes, order);
  make_groups(program, order.items(), starts);
}

}  // namespace ein
