// Random patterns with braces, and what they mean in plain loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace ein::test {

/// Σ coefficient · axis + constant; a plain axis where it is one with the coefficient 1 and no
/// constant. Its size has a name where it is given.
struct WindowDim {
  struct Term {
    int axis = 0;
    std::int64_t coefficient = 1;
  };
  std::vector<Term> terms;
  std::int64_t constant = 0, size = 0;
  bool is_brace = false, names_size = false;
};

/// A pattern of some operands, all sizes known.
struct WindowCase {
  std::vector<std::int64_t> sizes;  // of axes
  std::vector<char> given;          // whether the call says the size
  std::vector<std::vector<WindowDim>> inputs;
  std::vector<WindowDim> output;

  static std::string name(int axis) { return std::string(1, static_cast<char>('a' + axis)); }
  static std::string text_of(const WindowDim& dim, std::size_t d) {
    if (!dim.is_brace) return name(dim.terms[0].axis);
    std::string text = "{";
    for (const auto& [axis, coefficient] : dim.terms) {
      const std::int64_t size = std::abs(coefficient);
      text += coefficient < 0 ? (text.size() > 1 ? " - " : "-") : text.size() > 1 ? " + " : "";
      text += (size == 1 ? "" : std::to_string(size) + "*") + name(axis);
    }
    if (dim.constant != 0)
      text += (dim.constant < 0 ? " - " : " + ") + std::to_string(std::abs(dim.constant));
    return text + (dim.names_size ? " : size" + std::to_string(d) : "") + "}";
  }
  std::string text() const {
    std::string text;
    const auto add = [&](const std::vector<WindowDim>& dims) {
      for (std::size_t d = 0; d < dims.size(); ++d)
        text += (d > 0 ? " " : "") + text_of(dims[d], d);
    };
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      text += k > 0 ? ", " : "";
      add(inputs[k]);
    }
    text += " -> ";
    add(output);
    return text;
  }
  /// What the call gives beside the pattern.
  std::vector<std::pair<std::string, std::int64_t>> named_sizes() const {
    std::vector<std::pair<std::string, std::int64_t>> named;
    for (std::size_t a = 0; a < sizes.size(); ++a) {
      if (given[a]) named.emplace_back(name(static_cast<int>(a)), sizes[a]);
    }
    for (std::size_t d = 0; d < output.size(); ++d) {
      if (output[d].names_size) named.emplace_back("size" + std::to_string(d), output[d].size);
    }
    return named;
  }
  static std::int64_t elements(const std::vector<WindowDim>& dims) {
    std::int64_t n = 1;
    for (const WindowDim& dim : dims) n *= dim.size;
    return n;
  }

  /// Where the tuple `at` is in a value of these dimensions; -1 beside it. An axis that has a
  /// negative coefficient goes backwards, from the greatest index on.
  std::int64_t place(const std::vector<WindowDim>& dims,
                     const std::vector<std::int64_t>& at) const {
    std::int64_t place = 0;
    for (const WindowDim& dim : dims) {
      std::int64_t index = dim.constant;
      for (const auto& [axis, coefficient] : dim.terms) {
        const auto a = static_cast<std::size_t>(axis);
        index += coefficient > 0 ? coefficient * at[a] : -coefficient * (sizes[a] - 1 - at[a]);
      }
      if (index < 0 || index >= dim.size) return -1;
      place = place * dim.size + index;
    }
    return place;
  }
  /// Calls f(places in the inputs, place in the output) for each tuple that is inside of all.
  template <class F>
  void for_each_tuple(F&& f) const {
    std::vector<std::int64_t> at(sizes.size(), 0), places(inputs.size());
    for (const std::int64_t size : sizes) {
      if (size == 0) return;
    }
    for (;;) {
      bool is_inside = true;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        places[k] = place(inputs[k], at);
        is_inside &= places[k] >= 0;
      }
      const std::int64_t to = place(output, at);
      if (is_inside && to >= 0) f(places, to);
      std::size_t a = sizes.size();
      while (a > 0 && ++at[a - 1] == sizes[a - 1]) at[--a] = 0;
      if (a == 0) return;
    }
  }
};

/// Sizes of axes that only braces name are the largest with which all that name them read inside,
/// as far beside both ends as a negative constant says. Whether all are solved, and something is
/// read.
inline bool solve_windows(WindowCase& c, const std::vector<char>& is_known) {
  std::vector<char> known = is_known;
  const auto room_of = [&](const WindowDim& dim, int axis,
                           std::int64_t& coefficient) -> std::optional<std::int64_t> {
    std::int64_t room = dim.size - 1 + std::max<std::int64_t>(0, -dim.constant) - dim.constant;
    for (const auto& term : dim.terms) {
      if (term.axis == axis) {
        coefficient = std::abs(term.coefficient);
        continue;
      }
      if (!known[static_cast<std::size_t>(term.axis)]) return std::nullopt;
      room -= std::abs(term.coefficient) *
              std::max<std::int64_t>(0, c.sizes[static_cast<std::size_t>(term.axis)] - 1);
    }
    return room;
  };
  for (;;) {
    // Axes of which all braces say something; or else those of which some do; all at once.
    std::vector<std::pair<std::size_t, std::int64_t>> sure, other;
    for (std::size_t a = 0; a < c.sizes.size(); ++a) {
      if (known[a]) continue;
      std::int64_t least = INT64_MAX;
      bool are_ready = true;
      for (const auto& dims : c.inputs) {
        for (const WindowDim& dim : dims) {
          std::int64_t coefficient = 0;
          const bool has_it = std::any_of(dim.terms.begin(), dim.terms.end(), [&](auto& term) {
            return term.axis == static_cast<int>(a);
          });
          if (!has_it) continue;
          const auto room = room_of(dim, static_cast<int>(a), coefficient);
          are_ready &= room.has_value();
          if (!room) continue;
          if (*room < 0) return false;
          least = std::min(least, *room / coefficient + 1);
        }
      }
      if (least != INT64_MAX) (are_ready ? sure : other).emplace_back(a, least);
    }
    const auto& found = sure.empty() ? other : sure;
    for (const auto& [a, size] : found) {
      c.sizes[a] = size;
      known[a] = 1;
    }
    if (found.empty()) break;
  }
  if (std::find(known.begin(), known.end(), 0) != known.end()) return false;
  for (const auto& dims : c.inputs) {
    for (const WindowDim& dim : dims) {
      std::int64_t last = dim.constant;
      for (const auto& term : dim.terms)
        last += std::abs(term.coefficient) * (c.sizes[static_cast<std::size_t>(term.axis)] - 1);
      if (dim.is_brace && (last < 0 || dim.constant >= dim.size)) return false;
    }
  }
  return true;
}

inline bool repeats_an_axis(const std::vector<WindowDim>& dims) {
  std::vector<int> seen;
  for (const WindowDim& dim : dims) {
    for (const auto& term : dim.terms) {
      if (std::find(seen.begin(), seen.end(), term.axis) != seen.end()) return true;
      seen.push_back(term.axis);
    }
  }
  return false;
}

/// A pattern of `operands` inputs. Of what is reduced otherwise than by a sum, the output has no
/// braces, and an input each axis once.
inline WindowCase random_windows(std::mt19937& random, std::size_t operands, bool is_sum) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto random_brace = [&](std::vector<int> axes) {
    WindowDim dim;
    constexpr std::int64_t coefficients[] = {1, 1, 1, 2, 2, 3, -1, -2},
                           constants[] = {0, 0, -1, -1, -2, 1, 2};
    for (const int axis : axes) dim.terms.push_back({axis, coefficients[below(8)]});
    dim.constant = constants[below(7)];
    dim.is_brace = true;
    return dim;
  };
  for (;;) {
    WindowCase c;
    const int count = 2 + below(4);
    std::vector<char> known(static_cast<std::size_t>(count), 0), used = known;
    for (int a = 0; a < count; ++a) {
      c.sizes.push_back(1 + below(5));
      c.given.push_back(below(3) == 0);
    }
    for (std::size_t k = 0; k < operands; ++k) {
      std::vector<WindowDim> dims;
      for (int d = 1 + below(3); d > 0; --d) {
        const int first = below(count), second = below(count), third = below(count);
        if (below(5) < 2) {
          dims.push_back({{{first, 1}}, 0, c.sizes[static_cast<std::size_t>(first)], false, false});
          known[static_cast<std::size_t>(first)] = 1;
          used[static_cast<std::size_t>(first)] = 1;
          continue;
        }
        std::vector<int> axes{first};
        if (second != first && below(4) > 0) axes.push_back(second);
        if (third != first && third != second && below(4) == 0) axes.push_back(third);
        dims.push_back(random_brace(axes));
        dims.back().size = 1 + below(9);
        for (const int axis : axes) used[static_cast<std::size_t>(axis)] = 1;
      }
      c.inputs.push_back(std::move(dims));
    }
    std::vector<int> kept;
    if (!is_sum && repeats_an_axis(c.inputs[0])) continue;
    bool all_used = true;
    for (int a = 0; a < count; ++a) {
      const auto i = static_cast<std::size_t>(a);
      all_used &= used[i] != 0;
      known[i] |= c.given[i];
      if (below(5) < 3) kept.push_back(a);
    }
    if (!all_used || !solve_windows(c, known)) continue;
    std::shuffle(kept.begin(), kept.end(), random);
    while (!kept.empty()) {
      const int axis = kept.back();
      kept.pop_back();
      const auto size = c.sizes[static_cast<std::size_t>(axis)];
      if (!is_sum || below(2) == 0) {
        c.output.push_back({{{axis, 1}}, 0, size, false, false});
        continue;
      }
      std::vector<int> axes{axis};
      while (!kept.empty() && below(2) == 0) {
        axes.push_back(kept.back());
        kept.pop_back();
      }
      WindowDim dim = random_brace(axes);
      std::int64_t reach = 0;
      for (const auto& term : dim.terms)
        reach += std::abs(term.coefficient) * (c.sizes[static_cast<std::size_t>(term.axis)] - 1);
      dim.size = dim.constant + reach + 1 - std::max<std::int64_t>(0, -dim.constant);
      dim.names_size = dim.size < 0 || below(3) == 0;
      if (dim.names_size) dim.size = 1 + below(9);
      c.output.push_back(std::move(dim));
    }
    std::int64_t tuples = 1;
    for (const std::int64_t size : c.sizes) tuples *= size;
    if (tuples <= 20000 && WindowCase::elements(c.output) <= 20000) return c;
  }
}

}  // namespace ein::test
