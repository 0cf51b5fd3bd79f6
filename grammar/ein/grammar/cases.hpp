// Cases: how a pattern with sums of axes is taken apart. A case has one piece of each sum, and so
// is a pattern without sums: of "(a + b) c -> (b + a) c" the cases are "b c -> b c" and "a c -> a
// c". Constexpr: literals are checked so, and the run time computes case by case.
#pragma once

#include <ein/grammar/mistake.hpp>
#include <ein/grammar/operations.hpp>

namespace ein::grammar {

/// More cases of a side are refused, and more of them in all.
inline constexpr std::size_t max_cases = 256;

/// A side with one piece of each sum: the terms of these, an outer piece before those inside it.
struct Choice {
  std::uint32_t side = 0;
  List<std::uint32_t> pieces{};
};

/// A piece of an output and what makes it: of rearrange a piece of an operand, which is moved
/// there; else one of each operand, which are multiplied. Several cases of one place are added.
struct Case {
  List<Choice> inputs{};
  Choice output{};
};

struct Cases {
  /// Whether each term is a sum that stands everywhere with just the same pieces, whatever else
  /// does: it is one axis, and has no cases.
  List<char> is_whole{};
  /// Of each name, each such sum, and each number that is a piece of another the first term that is
  /// the same axis.
  List<std::uint32_t> same{};
  /// Whether a term is a sum of which each case has a piece, or holds one.
  constexpr bool holds_pieces(const Pattern& pattern, std::uint32_t term) const {
    for (std::uint32_t i = term; i < pattern.terms[term].next; ++i) {
      if (is_whole[i]) {
        i = pattern.terms[i].next - 1;
      } else if (pattern.terms[i].kind == TermKind::sum) {
        return true;
      }
    }
    return false;
  }

  /// In the order of the outputs and, in each, of the places of pieces.
  List<Case> cases{};
  Mistake mistake{};
};

/// Of each term the first one of its name, or itself. By a table of hashes, as compilers bound the
/// steps that the names of a long literal may take.
constexpr List<std::uint32_t> first_of_names(const Pattern& pattern) {
  constexpr std::uint32_t none = UINT32_MAX;
  const std::span<const Term> terms = pattern.terms;
  std::size_t room = 4;
  while (room < 2 * terms.size()) room *= 2;
  List<std::uint32_t> first(room, none), same(terms.size(), 0);
  for (std::uint32_t i = 0; i < terms.size(); ++i) {
    same[i] = i;
    if (terms[i].kind != TermKind::name) continue;
    const std::string_view name = pattern.name_of(terms[i]);
    std::size_t place = 0;
    for (char c : name) place = place * 31 + static_cast<unsigned char>(c);
    place %= room;
    while (first[place] != none && pattern.name_of(terms[first[place]]) != name)
      place = (place + 1) % room;
    if (first[place] == none) first[place] = i;
    same[i] = first[place];
  }
  return same;
}

namespace detail {

class CaseFinder {
 public:
  constexpr CaseFinder(Operation op, const Pattern& pattern)
      : pattern_(pattern), moves_(op == Operation::rearrange) {}

  constexpr Cases find() {
    found_.same = first_of_names(pattern_);
    find_whole();
    find_same_numbers();
    for (std::uint32_t s = 0; s < pattern_.sides.size() && !found_.mistake; ++s) {
      const Side& side = pattern_.sides[s];
      const List<List<std::uint32_t>> choices = choices_of(side.first, side.last);
      if (found_.mistake) break;  // they are not whole
      for (const List<std::uint32_t>& pieces : choices) {
        sides_.push_back({{s, pieces}, {}, {}, false});
        take(side.first, side.last, sides_.back());
      }
    }
    for (const Taken& output : sides_) {
      if (found_.mistake) break;
      if (output.choice.side < pattern_.inputs().size()) continue;
      const std::size_t before = found_.cases.size();
      if (moves_)
        find_source(output);
      else
        multiply(output, Case{{}, output.choice}, {});
      if (found_.cases.size() == before) complain_of(output, Complaint::piece_comes_from_nowhere);
    }
    for (const Taken& input : sides_) {
      if (input.choice.side < pattern_.inputs().size() && !input.is_used)
        complain_of(input, input.choice.pieces.empty() ? Complaint::operand_goes_nowhere
                                                       : Complaint::piece_goes_nowhere);
    }
    return found_;
  }

 private:
  /// A choice, the axes that it has, and those that only the pieces have that it leaves. A number
  /// counts as an axis of its sum.
  struct Taken {
    Choice choice{};
    List<std::uint64_t> has{};
    List<std::uint64_t> leaves{};
    bool is_used = false;
  };

  constexpr void complain(Complaint complaint, SourceSpan span, std::int64_t argument = 0) {
    if (!found_.mistake) found_.mistake = {complaint, span, {}, argument};
  }
  constexpr void complain_of(const Taken& taken, Complaint complaint) {
    const bool is_whole = taken.choice.pieces.empty();
    complain(complaint,
             is_whole ? pattern_.sides[taken.choice.side].span
                      : pattern_.terms[taken.choice.pieces.back()].span,
             taken.choice.side);
  }

  constexpr bool are_alike(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t count = pattern_.terms[a].next - a;
    if (pattern_.terms[b].next - b != count) return false;
    for (std::uint32_t k = 0; k < count; ++k) {
      const Term &one = pattern_.terms[a + k], &other = pattern_.terms[b + k];
      if (one.kind != other.kind || one.next - a != other.next - b) return false;
      if (one.kind == TermKind::name && found_.same[a + k] != found_.same[b + k]) return false;
      if (one.kind == TermKind::number && one.value != other.value) return false;
    }
    return true;
  }
  constexpr void find_whole() {
    const std::span<const Term> terms = pattern_.terms;
    found_.is_whole = List<char>(terms.size(), 0);
    List<std::uint32_t> sums;
    for (std::uint32_t i = 0; i < terms.size(); ++i) {
      if (terms[i].kind == TermKind::sum) sums.push_back(i);
    }
    if (sums.size() > max_cases) complain(Complaint::sums_have_too_many_cases, terms[sums[0]].span);
    std::uint32_t end = 0;  // of a whole sum
    for (std::uint32_t i : sums) {
      if (found_.mistake || i < end || found_.is_whole[i]) continue;
      List<char> is_inside(terms.size(), 0);  // a sum like this one
      for (std::uint32_t j : sums) {
        for (std::uint32_t k = j; are_alike(i, j) && k < terms[j].next; ++k) is_inside[k] = 1;
      }
      List<char> is_name(terms.size(), 0);  // one of this sum, where it first stands
      bool has_names = false;
      for (std::uint32_t k = i; k < terms[i].next; ++k) {
        if (terms[k].kind != TermKind::name) continue;
        is_name[found_.same[k]] = 1;
        has_names = true;
      }
      bool is_whole = has_names;
      for (std::uint32_t k = 0; k < terms.size(); ++k)
        is_whole &= terms[k].kind != TermKind::name || !is_name[found_.same[k]] || is_inside[k];
      if (!is_whole) continue;
      end = terms[i].next;
      for (std::uint32_t j : sums) {
        if (!are_alike(i, j)) continue;
        found_.is_whole[j] = 1;
        found_.same[j] = i;
      }
    }
  }

  /// The same number at the same place among those of a sum with the same names is one axis.
  constexpr void find_same_numbers() {
    List<std::uint64_t> axes;
    List<std::uint32_t> first;
    for (std::uint32_t i = 0; i < pattern_.terms.size(); ++i) {
      if (!has_pieces(i)) continue;
      std::uint64_t number = axis_of_numbers(i);
      for (std::uint32_t p = i + 1; p < pattern_.terms[i].next; p = pattern_.terms[p].next) {
        if (pattern_.terms[p].kind != TermKind::number) continue;
        const std::uint64_t axis = number++;
        std::size_t k = 0;
        while (k < axes.size() &&
               (axes[k] != axis || pattern_.terms[first[k]].value != pattern_.terms[p].value))
          ++k;
        if (k == max_cases)
          return complain(Complaint::sums_have_too_many_cases, pattern_.terms[i].span);
        if (k == axes.size()) {
          axes.push_back(axis);
          first.push_back(p);
        }
        found_.same[p] = first[k];
      }
    }
  }

  constexpr bool has_pieces(std::uint32_t i) const {
    return pattern_.terms[i].kind == TermKind::sum && !found_.is_whole[i];
  }

  /// Each way to take one piece of each sum among the terms [first, last).
  constexpr List<List<std::uint32_t>> choices_of(std::uint32_t first, std::uint32_t last) {
    List<List<std::uint32_t>> all(1, {});
    for (std::uint32_t i = first; i < last && !found_.mistake; i = pattern_.terms[i].next) {
      List<List<std::uint32_t>> here;
      if (has_pieces(i)) {
        for (std::uint32_t p = i + 1; p < pattern_.terms[i].next; p = pattern_.terms[p].next) {
          for (const List<std::uint32_t>& inner : choices_of(p + 1, pattern_.terms[p].next)) {
            here.push_back({p});
            here.back().add(inner.begin(), inner.size());
          }
        }
      } else if (pattern_.terms[i].kind == TermKind::group) {
        here = choices_of(i + 1, pattern_.terms[i].next);
      } else {
        continue;
      }
      if (all.size() * here.size() > max_cases)
        return complain(Complaint::sums_have_too_many_cases, pattern_.terms[i].span), all;
      List<List<std::uint32_t>> product;
      for (const List<std::uint32_t>& before : all) {
        for (const List<std::uint32_t>& behind : here) {
          product.push_back(before);
          product.back().add(behind.begin(), behind.size());
        }
      }
      all = product;
    }
    return all;
  }

  /// The axis that the first number among the pieces of a sum counts as; the others follow. Sums
  /// with the same first name have the same ones.
  constexpr std::uint64_t axis_of_numbers(std::uint32_t sum) const {
    std::uint64_t least = UINT32_MAX;
    for (std::uint32_t k = sum; k < pattern_.terms[sum].next; ++k) {
      if (pattern_.terms[k].kind == TermKind::name && found_.same[k] < least)
        least = found_.same[k];
    }
    return (least + 1) << 32;
  }
  constexpr void take(std::uint32_t first, std::uint32_t last, Taken& taken) const {
    std::size_t next = 0;
    take(first, last, taken, next);
  }
  constexpr void take(std::uint32_t first, std::uint32_t last, Taken& taken,
                      std::size_t& next) const {
    for (std::uint32_t i = first; i < last; i = pattern_.terms[i].next) {
      const Term& term = pattern_.terms[i];
      if (term.kind == TermKind::name || found_.is_whole[i]) {
        taken.has.push_back(found_.same[i]);
      } else if (term.kind == TermKind::sum) {
        const std::uint32_t piece = taken.choice.pieces[next++];
        std::uint64_t number = axis_of_numbers(i);
        for (std::uint32_t p = i + 1; p < term.next; p = pattern_.terms[p].next) {
          List<std::uint64_t>& list = p == piece ? taken.has : taken.leaves;
          if (pattern_.terms[p].kind == TermKind::number) list.push_back(number++);
          if (p == piece) {
            take(p, pattern_.terms[p].next, taken, next);
            continue;
          }
          for (std::uint32_t k = p; k < pattern_.terms[p].next; ++k) {
            if (pattern_.terms[k].kind == TermKind::name) list.push_back(found_.same[k]);
          }
        }
      } else if (term.kind == TermKind::group) {
        take(i + 1, term.next, taken, next);
      }
    }
  }

  static constexpr bool has(const List<std::uint64_t>& list, std::uint64_t axis) {
    for (std::uint64_t other : list) {
      if (other == axis) return true;
    }
    return false;
  }
  /// Whether none has an axis that the other leaves.
  static constexpr bool agree(const Taken& a, const Taken& b) {
    for (std::uint64_t axis : a.has) {
      if (has(b.leaves, axis)) return false;
    }
    for (std::uint64_t axis : b.has) {
      if (has(a.leaves, axis)) return false;
    }
    return true;
  }
  static constexpr bool is_number(std::uint64_t axis) { return axis > UINT32_MAX; }

  /// Whether `input` may be moved to `output`: it has no other axes, and names each piece there
  /// that has a name.
  constexpr bool fits(const Taken& input, const Taken& output) const {
    if (!agree(input, output)) return false;
    for (std::uint64_t axis : input.has) {
      if (!is_number(axis) && !has(output.has, axis)) return false;
    }
    for (std::uint32_t piece : output.choice.pieces) {
      bool has_names = false, is_named = false;
      for (std::uint32_t k = piece; k < pattern_.terms[piece].next; ++k) {
        const bool is_axis = pattern_.terms[k].kind == TermKind::name || found_.is_whole[k];
        if (!is_axis) continue;
        has_names = true;
        is_named |= has(input.has, found_.same[k]);
      }
      if (has_names && !is_named) return false;
    }
    return true;
  }
  /// Of the operands' choices that fit one with the most axes, as others are repeated along those
  /// they lack; the first that nothing has yet. An output that is no sum may have another's again.
  constexpr void find_source(const Taken& output) {
    Taken* source = nullptr;
    for (std::size_t t = 0; t < sides_.size(); ++t) {
      Taken& input = sides_[t];
      if (input.choice.side >= pattern_.inputs().size() || !fits(input, output)) continue;
      if (input.is_used && !output.choice.pieces.empty()) continue;
      const std::size_t axes = names_of(input), most = source ? names_of(*source) : 0;
      const bool is_fresh = source && source->is_used && !input.is_used;
      if (!source || axes > most || (axes == most && is_fresh)) source = &input;
    }
    if (!source) return;
    source->is_used = true;
    found_.cases.push_back({{source->choice}, output.choice});
  }
  static constexpr std::size_t names_of(const Taken& taken) {
    std::size_t names = 0;
    for (std::uint64_t axis : taken.has) names += !is_number(axis);
    return names;
  }

  /// Of each operand in turn the cases that agree with what is chosen so far.
  constexpr void multiply(const Taken& output, const Case& so_far,
                          const List<std::size_t>& chosen) {
    if (found_.mistake) return;
    const std::size_t operand = so_far.inputs.size();
    if (operand == pattern_.inputs().size()) return add_product(output, so_far, chosen);
    for (std::size_t t = 0; t < sides_.size(); ++t) {
      if (sides_[t].choice.side != operand || !agree(sides_[t], output)) continue;
      bool agrees = true;
      for (std::size_t other : chosen) agrees &= agree(sides_[t], sides_[other]);
      if (!agrees) continue;
      Case longer = so_far;
      longer.inputs.push_back(sides_[t].choice);
      List<std::size_t> with = chosen;
      with.push_back(t);
      multiply(output, longer, with);
    }
  }
  constexpr void add_product(const Taken& output, const Case& so_far,
                             const List<std::size_t>& chosen) {
    for (std::uint64_t axis : output.has) {
      bool is_there = is_number(axis);
      for (std::size_t t : chosen) is_there |= has(sides_[t].has, axis);
      if (!is_there) return;
    }
    if (found_.cases.size() == max_cases)
      return complain(Complaint::sums_have_too_many_cases, pattern_.sides.back().span);
    for (std::size_t t : chosen) sides_[t].is_used = true;
    found_.cases.push_back(so_far);
  }

  const Pattern& pattern_;
  bool moves_;
  List<Taken> sides_;  // each choice of each side
  Cases found_;
};

}  // namespace detail

/// Whether a pattern has cases to look for: sums, or more than one operand or result of what moves.
constexpr bool has_cases(Operation op, const Pattern& pattern) {
  return pattern.has_sums() || pattern.output_count > 1 ||
         (op == Operation::rearrange && pattern.inputs().size() > 1);
}
/// Precondition: the pattern has an arrow, and of check_pattern() no other mistake.
constexpr Cases find_cases(Operation op, const Pattern& pattern) {
  return detail::CaseFinder(op, pattern).find();
}

}  // namespace ein::grammar
