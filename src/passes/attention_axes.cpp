#include "passes/attention_axes.hpp"

#include <iterator>
#include <tuple>
#include <utility>

#include "size/ask.hpp"

namespace ein::attention {
namespace {

using Operand = LoopNest::Operand;

class Description {
 public:
  Description(const Program& program, const Match& match) : program_(program), match_(match) {}

  std::optional<Attention> run() {
    if (!find_axes()) return std::nullopt;
    return attention();
  }

 private:
  const LoopNest& nest(std::size_t n) const { return program_.nests[n]; }

  // --- axes ---

  /// The axes of the matrix, from the innermost: where any nest has a boundary there is one.
  bool find_axes() {
    if (!ask_equal(*match_.boundaries.rbegin(), match_.elements)) return false;
    for (auto at = match_.boundaries.begin(); std::next(at) != match_.boundaries.end(); ++at) {
      if (!ask_equal(*std::next(at) % *at, 0)) return false;
      axes_.push_back({*at, *std::next(at) / *at});
    }
    if (!ask_equal(axes_.front(), {1, match_.keys})) return false;
    // Of those along which keys and values stand still, the one that is masked along, or the
    // longest.
    for (std::size_t i = 1; i < axes_.size(); ++i) {
      if (match_.query && !ask_equal(axes_[i], *match_.query)) continue;
      if (!ask_equal(stride_of(match_.k[0], i), 0) || !ask_equal(stride_of(match_.v[0], i), 0))
        continue;
      if (query_axis_ == 0 || axes_[i].second > axes_[query_axis_].second) query_axis_ = i;
    }
    return query_axis_ != 0;
  }

  std::size_t axis_of(const Part& part, std::size_t i) const {
    std::size_t a = 0;
    while (ask_equal(part.matrix[a], 0) || part.matrix[a] > axes_[i].first ||
           axes_[i].first >= part.matrix[a] * nest(part.nest).axes[a].size)
      ++a;
    return a;
  }
  Size stride_of(const Part& part, std::size_t i) const {
    const std::size_t a = axis_of(part, i);
    return part.operand->strides[a] * (axes_[i].first / part.matrix[a]);
  }
  bool is_reduced(const Part& part, std::size_t i) const {
    return nest(part.nest).axes[axis_of(part, i)].reduced;
  }
  Size depth_of(const Part& part) const { return nest(part.nest).axes[part.depth].size; }
  bool sums_along_keys(const Part& part) const {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (is_reduced(part, i) != (i == 0)) return false;
    }
    return true;
  }

  // --- operands ---

  /// The operand along all axes; `last`: depth is 0, width is 1.
  Operand operand(const Part& part, std::size_t last) const {
    Operand result = operand_beside(part);
    result.strides[result.strides.size() - 2 + last] = part.operand->strides[part.depth];
    return result;
  }
  /// One that moves along the matrix alone.
  Operand operand_beside(const Part& part) const {
    Operand result{part.operand->buffer, part.operand->dtype, part.operand->offset};
    for (std::size_t i = axes_.size(); i-- > 1;) {
      if (i != query_axis_) result.strides.push_back(stride_of(part, i));
    }
    result.strides.push_back(stride_of(part, query_axis_));
    result.strides.push_back(stride_of(part, 0));
    result.strides.resize(result.strides.size() + 2, 0);
    return result;
  }
  std::optional<Operand> operand(const std::vector<Part>& parts, std::size_t last) const {
    const Operand first = operand(parts[0], last);
    for (const Part& part : parts) {
      if (operand(part, last) != first || !ask_equal(depth_of(part), depth_of(parts[0])))
        return std::nullopt;
    }
    return first;
  }

  /// A value for each query, where that value of the nests lies.
  Operand row_operand(int buffer) const {
    Operand result{buffer, DType::f32};
    for (std::size_t i = axes_.size(); i-- > 1;) {
      if (i != query_axis_) result.strides.push_back(axes_[i].first / match_.keys);
    }
    result.strides.push_back(axes_[query_axis_].first / match_.keys);
    result.strides.resize(result.strides.size() + 3, 0);
    return result;
  }

  // --- the whole ---

  std::optional<Attention> attention() const {
    Attention a;
    for (std::size_t i = axes_.size(); i-- > 1;) {
      if (i != query_axis_) a.axes.push_back({"batch", axes_[i].second});
    }
    const Size depth = depth_of(match_.q[0]), width = depth_of(match_.v[0]);
    a.axes.push_back({"query", axes_[query_axis_].second});
    a.axes.push_back({"key", match_.keys});
    a.axes.push_back({"depth", depth});
    a.axes.push_back({"width", width});
    const auto q = operand(match_.q, 0), k = operand(match_.k, 0), v = operand(match_.v, 1);
    if (!q || !k || !v || !match_.scores) return std::nullopt;
    const auto [reach, back] = match_.scores->seen;
    if (reach.value_or(0) < 0 || back.value_or(0) < 0) return std::nullopt;
    a.q = *q;
    a.k = *k;
    a.v = *v;
    a.out = operand(*match_.out, 1);
    a.scale = match_.scores->scale;
    a.reach = reach;
    a.back = back;
    a.function = match_.scores->function;
    for (const Part& part : match_.operands) a.operands.push_back(operand_beside(part));
    const std::size_t query = a.axes.size() - 4, key = query + 1;
    if (!ask_equal(q->strides[key], 0) || !ask_equal(k->strides[query], 0) ||
        !ask_equal(v->strides[query], 0) || !ask_equal(a.out.strides[key], 0) ||
        !ask_equal(depth_of(*match_.out), width) || !sums_along_keys(*match_.out))
      return std::nullopt;
    if (!match_.backward.empty() && !add_gradients(a, query, key)) return std::nullopt;
    return a;
  }

  /// `query` and `key` are the numbers of these axes.
  bool add_gradients(Attention& a, std::size_t query, std::size_t key) const {
    if (match_.dout.empty() || match_.total < 0 || match_.delta < 0) return false;
    // The gradients' nests do not read the result: what a caller's tensor holds may change before.
    if (static_cast<std::size_t>(a.out.buffer) < program_.input_count) return false;
    const auto dout = operand(match_.dout, 1);
    if (!dout || !ask_equal(dout->strides[key], 0) ||
        !ask_equal(depth_of(match_.dout[0]), depth_of(match_.v[0])))
      return false;
    const ScoreGradient gradient = match_.gradient.value_or(ScoreGradient{});
    Attention::Gradients g{
        gradient.scale, gradient.slope, *dout, row_operand(match_.delta), {}, {}, {}};
    if (match_.dq) {
      g.dq = operand(*match_.dq, 0);
      if (!sums_along_keys(*match_.dq) || !ask_equal(depth_of(*match_.dq), depth_of(match_.q[0])))
        return false;
    }
    for (const auto& [part, to, like] :
         {std::tuple{&match_.dk, &g.dk, &match_.k[0]}, {&match_.dv, &g.dv, &match_.v[0]}}) {
      if (!*part) continue;
      *to = operand(**part, part == &match_.dv);
      if (!ask_equal((*to)->strides[query], 0) || !ask_equal(depth_of(**part), depth_of(*like)))
        return false;
      // Summed along the queries, and where keys and values stand still.
      for (std::size_t i = 0; i < axes_.size(); ++i) {
        const bool still = ask_equal(stride_of(match_.k[0], i), 0);
        if (still != ask_equal(stride_of(match_.v[0], i), 0) || is_reduced(**part, i) != still)
          return false;
      }
    }
    a.log_sums = row_operand(match_.total);
    a.gradients = std::move(g);
    return true;
  }

  const Program& program_;
  const Match& match_;
  std::vector<std::pair<Size, Size>> axes_;  // of the matrix: stride and size
  std::size_t query_axis_ = 0;
};

}  // namespace

std::optional<Attention> describe(const Program& program, const Match& match) {
  return Description(program, match).run();
}

}  // namespace ein::attention
