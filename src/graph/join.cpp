#include "graph/join.hpp"

#include <algorithm>

#include "graph/build.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using grammar::Pattern;
using grammar::Side;
using grammar::Term;
using grammar::TermKind;

/// One output, from its cases to the whole: sum by sum, the innermost first.
class Output {
 public:
  Output(Graph& graph, const Pattern& pattern, const Solved& solved, const Side& side)
      : graph_(graph), pattern_(pattern), solved_(solved), side_(side) {}

  void add(const grammar::Choice& choice, ValueId value) {
    pieces_.push_back({{choice.pieces.begin(), choice.pieces.end()}, value});
  }
  ValueId joined() {
    for (std::uint32_t i = side_.last; i-- > side_.first;) {
      const bool has_pieces =
          pattern_.terms[i].kind == TermKind::sum && !solved_.pieces.is_whole[i];
      if (has_pieces) join_pieces_of(i);
    }
    Piece& whole = pieces_.front();
    std::size_t dim = 0;
    for (std::uint32_t i = side_.first; i < side_.last; i = pattern_.terms[i].next) {
      std::size_t next = 0;
      const std::size_t dims = dims_of(i, whole.taken, next);
      // Those of an ellipsis stay apart.
      if (pattern_.terms[i].kind == TermKind::ellipsis)
        dim += dims;
      else
        whole.value = merged(whole.value, dim++, dims);
    }
    return whole.value;
  }

 private:
  struct Piece {
    std::vector<std::uint32_t> taken;  // of the sums that are not joined yet
    ValueId value;
  };

  /// How many dimensions a term has: its factors are apart as long as one of them has pieces.
  std::size_t dims_of(std::uint32_t i, const std::vector<std::uint32_t>& taken,
                      std::size_t& next) const {
    const Term& term = pattern_.terms[i];
    if (term.kind == TermKind::ellipsis) return solved_.under_ellipsis;
    if (!solved_.pieces.holds_pieces(pattern_, i)) return 1;
    if (term.kind == TermKind::sum) {
      const bool is_taken = next < taken.size() && i < taken[next] && taken[next] < term.next;
      return is_taken ? dims_of(taken[next++], taken, next) : 1;
    }
    return dims_between(i + 1, term.next, taken, next);
  }
  std::size_t dims_between(std::uint32_t first, std::uint32_t last,
                           const std::vector<std::uint32_t>& taken, std::size_t& next) const {
    std::size_t dims = 0;
    for (std::uint32_t i = first; i < last; i = pattern_.terms[i].next)
      dims += dims_of(i, taken, next);
    return dims;
  }
  /// How many dimensions stand before term `i`, of which the last taken piece is one.
  std::size_t dims_before(std::uint32_t i, const std::vector<std::uint32_t>& taken) const {
    std::size_t dims = 0, next = 0;
    std::uint32_t at = side_.first;
    while (at != i) {
      const Term& term = pattern_.terms[at];
      if (term.next <= i) {
        dims += dims_of(at, taken, next);
        at = term.next;
      } else if (term.kind == TermKind::sum) {
        at = taken[next++];
      } else {
        ++at;
      }
    }
    return dims;
  }

  void join_pieces_of(std::uint32_t sum) {
    std::vector<Piece> joined;
    for (std::size_t begin = 0; begin < pieces_.size();) {
      const auto is_of_sum = [&](const Piece& piece) {
        return !piece.taken.empty() && sum < piece.taken.back() &&
               piece.taken.back() < pattern_.terms[sum].next;
      };
      if (!is_of_sum(pieces_[begin])) {
        joined.push_back(std::move(pieces_[begin++]));
        continue;
      }
      std::vector<std::uint32_t> before = pieces_[begin].taken;
      before.pop_back();
      const std::size_t dim = dims_before(sum, before);
      std::vector<ValueId> values;
      for (; begin < pieces_.size() && is_of_sum(pieces_[begin]) &&
             std::equal(before.begin(), before.end(), pieces_[begin].taken.begin(),
                        pieces_[begin].taken.end() - 1);
           ++begin) {
        const Piece& piece = pieces_[begin];
        std::size_t next = piece.taken.size();
        values.push_back(merged(piece.value, dim, dims_of(piece.taken.back(), piece.taken, next)));
      }
      joined.push_back({std::move(before), concatenated(std::move(values), dim)});
    }
    pieces_ = std::move(joined);
  }

  ValueId concatenated(std::vector<ValueId> values, std::size_t dim) {
    if (values.size() == 1) return values.front();
    Op op{.kind = OpKind::concat,
          .dtype = graph_.op(values[0]).dtype,
          .shape = graph_.op(values[0]).shape};
    op.shape[dim] = 0;
    for (ValueId value : values) op.shape[dim] += graph_.op(value).shape[dim];
    op.inputs = std::move(values);
    op.dim = static_cast<int>(dim);
    return append(graph_, std::move(op));
  }
  /// Dimensions [first, first + count) of a value as one.
  ValueId merged(ValueId value, std::size_t first, std::size_t count) {
    if (count == 1) return value;
    const Shape from = graph_.op(value).shape;
    const std::vector<Axis> axes = axes_of(from);
    Access write = plain_access(first);
    write.push_back(joined_dim(axes, first, count));
    const Access behind = plain_access(axes.size() - first - count, first + count);
    write.insert(write.end(), behind.begin(), behind.end());
    const Shape shape = shape_of(write, axes);
    return append(graph_, move_op({value, plain_access(axes.size())}, axes, {write, shape},
                                  graph_.op(value).dtype));
  }

  Graph& graph_;
  const Pattern& pattern_;
  const Solved& solved_;
  const Side& side_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<ValueId> joined_cases(Graph& graph, const Pattern& pattern, const Solved& solved,
                                  std::span<const ValueId> cases) {
  std::vector<ValueId> outputs;
  const grammar::List<grammar::Case>& all = solved.pieces.cases;
  for (std::size_t p = 0; p < all.size();) {
    const std::uint32_t side = all[p].output.side;
    Output output(graph, pattern, solved, pattern.sides[side]);
    for (; p < all.size() && all[p].output.side == side; ++p) {
      const bool is_more = p > 0 && all[p].output.side == all[p - 1].output.side &&
                           all[p].output.pieces == all[p - 1].output.pieces;
      if (!is_more) output.add(all[p].output, cases[p]);
    }
    outputs.push_back(output.joined());
  }
  return outputs;
}

}  // namespace ein
