// Random patterns with sums of axes, and what each element of each side is: by decoding positions,
// one by one, without the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <ein/shape.hpp>

namespace ein::test {

/// A name, a number, a group or a sum, with its size.
struct SumTerm {
  int axis = -1;  // of a name; of a number that is a piece, which stands for an axis of its sum
  bool is_number = false;
  bool is_sum = false;
  std::int64_t size = 0;
  std::vector<SumTerm> members{};

  std::string text() const {
    if (is_number) return std::to_string(size);
    if (members.empty()) return name_of(axis);
    std::string inner;
    for (const SumTerm& member : members)
      inner += (inner.empty() ? "" : is_sum ? " + " : " ") + member.text();
    return "(" + inner + ")";
  }
  static std::string name_of(int axis) { return std::string(1, static_cast<char>('a' + axis)); }
};

/// What an element is: its index along each axis that it has, or -1; and the axes of pieces that it
/// is not of.
struct SumElement {
  std::vector<std::int64_t> index;
  std::vector<bool> leaves;
  std::vector<std::vector<int>> named_pieces;  // the names of each piece that it is of
};

struct SumSide {
  std::vector<SumTerm> dims;

  std::int64_t elements() const { return numel(shape()); }
  Shape shape() const {
    Shape shape;
    for (const SumTerm& dim : dims) shape.push_back(dim.size);
    return shape;
  }
  std::string text() const {
    std::string text;
    for (const SumTerm& dim : dims) text += (text.empty() ? "" : " ") + dim.text();
    return text;
  }
  SumElement element(std::int64_t position, std::size_t axes) const {
    SumElement element{std::vector<std::int64_t>(axes, -1), std::vector<bool>(axes, false), {}};
    for (std::size_t d = dims.size(); d-- > 0; position /= dims[d].size)
      decode(dims[d], position % dims[d].size, element);
    return element;
  }

 private:
  static void add_axes(const SumTerm& term, std::vector<int>& axes, bool names_alone) {
    if (term.axis >= 0 && !(names_alone && term.is_number)) axes.push_back(term.axis);
    for (const SumTerm& member : term.members) add_axes(member, axes, names_alone);
  }
  static void decode(const SumTerm& term, std::int64_t at, SumElement& element) {
    if (term.axis >= 0) element.index[static_cast<std::size_t>(term.axis)] = at;
    if (term.is_sum) {
      for (const SumTerm& piece : term.members) {
        std::vector<int> axes;
        if (at >= 0 && at < piece.size) {
          decode(piece, at, element);
          add_axes(piece, axes, true);
          element.named_pieces.push_back(axes);
        } else {
          add_axes(piece, axes, false);
          for (int axis : axes) element.leaves[static_cast<std::size_t>(axis)] = true;
        }
        at -= piece.size;
      }
      return;
    }
    for (std::size_t m = term.members.size(); m-- > 0; at /= term.members[m].size)
      decode(term.members[m], at % term.members[m].size, element);
  }
};

/// Whether two elements may meet: along each axis that both have they are at one index, and none
/// has an axis that the other leaves.
inline bool agree(const SumElement& a, const SumElement& b) {
  for (std::size_t x = 0; x < a.index.size(); ++x) {
    if (a.index[x] >= 0 && b.index[x] >= 0 && a.index[x] != b.index[x]) return false;
    if ((a.index[x] >= 0 && b.leaves[x]) || (b.index[x] >= 0 && a.leaves[x])) return false;
  }
  return true;
}

struct SumCase {
  std::vector<SumSide> inputs, outputs;
  std::size_t axes = 0;
  std::vector<bool> is_number;  // of each axis
  std::vector<std::pair<std::string, std::int64_t>> given;

  std::string text() const {
    std::string text;
    for (const SumSide& side : inputs) text += (&side == inputs.data() ? "" : ", ") + side.text();
    text += " ->";
    for (const SumSide& side : outputs)
      text += (&side == outputs.data() ? " " : ", ") + side.text();
    return text;
  }

  /// Calls f(input, its element, output, its element) for each element of a result that is moved.
  template <class F>
  void for_each_move(F&& f) const {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      for (std::int64_t to = 0; to < outputs[o].elements(); ++to) {
        const SumElement wanted = outputs[o].element(to, axes);
        std::size_t from_input = 0, most = 0;
        std::int64_t from = -1;
        for (std::size_t k = 0; k < inputs.size(); ++k) {
          for (std::int64_t e = 0; e < inputs[k].elements(); ++e) {
            const SumElement element = inputs[k].element(e, axes);
            if (!may_be(element, wanted)) continue;
            std::size_t names = 1;
            for (std::size_t x = 0; x < axes; ++x) names += element.index[x] >= 0 && !is_number[x];
            if (names <= most) continue;
            most = names;
            from_input = k;
            from = e;
          }
        }
        f(from_input, from, o, to);
      }
    }
  }

 private:
  bool may_be(const SumElement& element, const SumElement& wanted) const {
    if (!agree(element, wanted)) return false;
    for (std::size_t x = 0; x < axes; ++x) {
      if (!is_number[x] && element.index[x] >= 0 && wanted.index[x] < 0) return false;
    }
    for (const std::vector<int>& piece : wanted.named_pieces) {
      const bool names_it = std::any_of(piece.begin(), piece.end(), [&](int axis) {
        return element.index[static_cast<std::size_t>(axis)] >= 0;
      });
      if (!piece.empty() && !names_it) return false;
    }
    return true;
  }
};

/// Sums of two or three pieces, of which a side has all, or, where it is split, one.
class RandomSums {
 public:
  explicit RandomSums(std::mt19937& random) : random_(random) {}

  /// Moved by rearrange: operands are joined, split, put in another order.
  SumCase moved() {
    SumCase made;
    const std::vector<SumTerm> commons = names(pick(3), made);
    const std::size_t count = 1 + pick(2);
    std::vector<bool> is_split_from(count), is_split_to(count);
    std::vector<SumTerm> sums;
    for (std::size_t s = 0; s < count; ++s) {
      is_split_from[s] = pick(2) == 0;
      is_split_to[s] = pick(2) == 0;
      sums.push_back(sum(made, is_split_from[s] && !is_split_to[s] ? 2 : 1));
    }
    // Of several results each could have another operand's elements, repeated.
    const bool has_one_result = std::none_of(is_split_to.begin(), is_split_to.end(),
                                             [](bool is_split) { return is_split; });
    for (const auto& pieces : splits(sums, is_split_from)) {
      const bool may_lack = has_one_result && !made.inputs.empty();
      made.inputs.push_back(side(commons, pieces, is_split_from, may_lack ? 3 : 0));
    }
    for (const auto& pieces : splits(sums, is_split_to))
      made.outputs.push_back(side(commons, pieces, is_split_to, 0));
    give_sizes(made);
    return made;
  }
  /// Multiplied by einsum; or, of one operand, reduced.
  SumCase multiplied(std::size_t operands) {
    SumCase made;
    const std::vector<SumTerm> commons = names(1 + pick(2), made);
    std::vector<SumTerm> sums;
    for (std::size_t s = 0; s < 1 + pick(2); ++s) sums.push_back(sum(made, 2));
    const std::vector<bool> whole(sums.size(), false);
    std::vector<bool> has_sum(sums.size(), false);
    for (std::size_t k = 0; k < operands; ++k) {
      std::vector<SumTerm> some;
      for (std::size_t s = 0; s < sums.size(); ++s) {
        if (k + 1 < operands ? pick(3) == 0 : has_sum[s] && pick(3) == 0) continue;
        some.push_back(sums[s]);
        has_sum[s] = true;
      }
      made.inputs.push_back(side(commons, some, whole, k == 0 ? 0 : 3));
    }
    std::vector<SumTerm> kept;
    for (const SumTerm& s : sums) {
      if (pick(3) > 0) kept.push_back(s);
    }
    made.outputs.push_back(side(commons, kept, whole, 3));
    give_sizes(made);
    return made;
  }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }
  SumTerm axis(SumCase& made, std::int64_t size, bool is_number = false) {
    made.is_number.push_back(is_number);
    return {static_cast<int>(made.axes++), is_number, false, size, {}};
  }
  std::vector<SumTerm> names(std::size_t count, SumCase& made) {
    std::vector<SumTerm> terms;
    for (std::size_t i = 0; i < count; ++i)
      terms.push_back(axis(made, static_cast<std::int64_t>(1 + pick(3))));
    return terms;
  }
  SumTerm sum(SumCase& made, std::size_t most_of_number) {
    SumTerm sum{-1, false, true, 0, {}};
    bool has_number = false;
    for (std::size_t pieces = 2 + pick(2); sum.members.size() < pieces;) {
      const std::size_t kind = pick(4);
      SumTerm piece;
      if (kind == 0 && !has_number && !sum.members.empty()) {
        has_number = true;
        piece = axis(made, static_cast<std::int64_t>(1 + pick(most_of_number)), true);
      } else if (kind == 1) {
        piece = {-1, false, false, 1, names(2, made)};
        for (const SumTerm& member : piece.members) piece.size *= member.size;
      } else {
        piece = axis(made, static_cast<std::int64_t>(pick(10) == 0 ? 0 : 1 + pick(3)));
      }
      sum.size += piece.size;
      sum.members.push_back(std::move(piece));
    }
    return sum;
  }

  /// Each way to take one piece of each sum that is split.
  static std::vector<std::vector<SumTerm>> splits(const std::vector<SumTerm>& sums,
                                                  const std::vector<bool>& is_split) {
    std::vector<std::vector<SumTerm>> all(1);
    for (std::size_t s = 0; s < sums.size(); ++s) {
      std::vector<std::vector<SumTerm>> longer;
      for (const auto& before : all) {
        const std::size_t ways = is_split[s] ? sums[s].members.size() : 1;
        for (std::size_t w = 0; w < ways; ++w) {
          longer.push_back(before);
          longer.back().push_back(is_split[s] ? sums[s].members[w] : sums[s]);
        }
      }
      all = std::move(longer);
    }
    return all;
  }
  /// A side in random order. It lacks each common axis once in `lacks` times, if that is not 0.
  SumSide side(const std::vector<SumTerm>& commons, const std::vector<SumTerm>& pieces,
               const std::vector<bool>& is_split, std::size_t lacks) {
    SumSide side;
    for (const SumTerm& common : commons) {
      if (lacks == 0 || pick(lacks) > 0) side.dims.push_back(common);
    }
    for (std::size_t s = 0; s < pieces.size(); ++s) {
      if (is_split[s]) {
        if (pieces[s].is_number) continue;  // what names no piece
        side.dims.push_back(pieces[s]);
        continue;
      }
      SumTerm sum = pieces[s];
      std::shuffle(sum.members.begin(), sum.members.end(), random_);
      if (!side.dims.empty() && side.dims.back().members.empty() && pick(4) == 0) {
        SumTerm group{-1, false, false, side.dims.back().size * sum.size, {side.dims.back(), sum}};
        if (pick(2) == 0) std::swap(group.members[0], group.members[1]);
        side.dims.back() = std::move(group);
      } else {
        side.dims.push_back(std::move(sum));
      }
    }
    std::shuffle(side.dims.begin(), side.dims.end(), random_);
    return side;
  }
  static void give(const SumTerm& term, SumCase& made) {
    if (term.axis >= 0 && !term.is_number) {
      const std::string name = SumTerm::name_of(term.axis);
      const bool is_there = std::any_of(made.given.begin(), made.given.end(),
                                        [&](const auto& given) { return given.first == name; });
      if (!is_there) made.given.emplace_back(name, term.size);
    }
    for (const SumTerm& member : term.members) give(member, made);
  }
  static void give_sizes(SumCase& made) {
    for (const SumSide& side : made.inputs) {
      for (const SumTerm& dim : side.dims) give(dim, made);
    }
  }

  std::mt19937& random_;
};

}  // namespace ein::test
