// How two operands of an elementwise operation meet by the names of their axes. Constexpr; sizes
// that only run time knows are compared then (src/api/typed.cpp).
#pragma once

#include <ein/grammar/infer_type.hpp>

namespace ein::grammar {

/// Two types beside each other. The result has the axes of the operand that has all of them, in its
/// order, of the first if both do; an axis that the other lacks repeats in it.
struct Alignment {
  /// What is wrong, and at which dimension of either type, or -1.
  enum Wrong : std::uint8_t {
    nothing,
    neither_has_all_axes,
    axis_has_two_sizes,
    axis_is_placed_differently,
    axis_needs_a_name,
    axis_is_repeated
  };
  /// A dimension from the left, or, below 0, from the right.
  struct Pair {
    std::int8_t of_a = 0, of_b = 0;
  };
  Wrong wrong = nothing;
  int at_a = -1, at_b = -1;
  Text axes{};  // of the result, as a type says them
  /// As which rearrangement each operand is read; empty for one that lies as the result does. `#`
  /// stands for as many 1 as the other operand has dimensions under its `...`.
  Text read_a{}, read_b{};
  List<Pair> meeting{};        // dimensions whose sizes must be equal
  bool has_open_pair = false;  // so must those under `...`, of which both have as many
};

namespace detail {

class TypeAlignment {
 public:
  constexpr TypeAlignment(std::string_view a, std::string_view b)
      : specs_{read_shape_spec(a), read_shape_spec(b)} {
    for (std::size_t k = 0; k < 2; ++k) {
      for (const SpecDim& dim : specs_[k].dims) dims_[k].push_back(dim_of(specs_[k], dim));
    }
  }

  constexpr Alignment run() {
    if (lie_alike()) {
      for (std::size_t d = 0; d < dims_[0].size(); ++d) meet(d, d, dims_[1][d].is_one() ? 0u : 1u);
    } else if (!by_name(0) && !by_name(1)) {
      complain(lacks_a_name_ ? Alignment::axis_needs_a_name : Alignment::neither_has_all_axes);
    }
    return made_;
  }

 private:
  struct Dim {
    std::string_view name{};  // of a size; empty of a number, `_` and `...`
    std::string_view text{};  // all of it
    std::string_view placed{};
    std::int64_t size = -1;
    bool is_open = false, is_unnamed = false;
    constexpr bool is_one() const { return name.empty() && size == 1; }
    constexpr bool is_named() const { return !name.empty() && !is_open; }
  };

  static constexpr Dim dim_of(const SpecReading& spec, const SpecDim& dim) {
    Dim made{.text = spec.text_of(dim.span), .placed = spec.text_of(dim.placed), .size = dim.fixed};
    made.is_open = dim.is_open();
    made.is_unnamed = dim.kind == SpecDim::unnamed || dim.kind == SpecDim::open;
    if (dim.kind == SpecDim::variadic) made.name = made.text;
    if (dim.kind != SpecDim::size) return made;
    if (spec.is_name(dim))
      made.name = spec.name_of(dim);
    else if (dim.fixed < 0)
      made.name = made.text;  // a sum or a product of sizes
    return made;
  }

  constexpr void complain(Alignment::Wrong wrong, int at_a = -1, int at_b = -1) {
    if (made_.wrong == Alignment::nothing)
      made_.wrong = wrong, made_.at_a = at_a, made_.at_b = at_b;
  }

  /// Whether both have as many axes, and those at one place may be one.
  constexpr bool lie_alike() const {
    if (dims_[0].size() != dims_[1].size()) return false;
    for (std::size_t d = 0; d < dims_[0].size(); ++d) {
      const Dim &x = dims_[0][d], &y = dims_[1][d];
      if (x.is_open || y.is_open) {
        if (x.text != y.text || x.is_open != y.is_open) return false;
      } else if (x.is_unnamed || y.is_unnamed) {
        if (x.is_unnamed != y.is_unnamed && !x.is_one() && !y.is_one()) return false;
      } else if (x.name != y.name && !x.is_one() && !y.is_one()) {
        // A number beside a name is the same axis where the name has that size.
        const bool is_number = x.name.empty() || y.name.empty();
        if (!is_number || x.size < 0 || x.size != y.size) return false;
      }
    }
    return true;
  }

  /// Dimension d of the first and e of the second operand are one axis of the result, which says it
  /// as operand `as` does.
  constexpr void meet(std::size_t d, std::size_t e, unsigned as) {
    const Dim &x = dims_[0][d], &y = dims_[1][e];
    if (x.is_open) {
      made_.has_open_pair = true;
      return write(x);
    }
    const bool stretches = x.is_one() != y.is_one();
    // Of "b 1" and "1 b" the result would have an axis twice, in two sizes maybe.
    const Dim& stretched = x.is_one() ? y : x;
    if (stretches && stretched.is_named() && find(x.is_one() ? 0 : 1, stretched) != SIZE_MAX)
      complain(Alignment::axis_is_repeated, static_cast<int>(d), static_cast<int>(e));
    if (!stretches) {
      if (x.size >= 0 && y.size >= 0 && x.size != y.size)
        complain(Alignment::axis_has_two_sizes, static_cast<int>(d), static_cast<int>(e));
      made_.meeting.push_back({place(0, d), place(1, e)});
    }
    if (x.placed != y.placed && !x.is_one() && !y.is_one())
      complain(Alignment::axis_is_placed_differently, static_cast<int>(d), static_cast<int>(e));
    Dim both = as == 0 ? x : y;
    const Dim& other = as == 0 ? y : x;
    if (both.is_one() && !other.is_one()) both = other;
    if (!stretches && both.name.empty()) both = other;
    if (both.size < 0 && !stretches) both.size = other.size;
    write(both);
  }

  /// Where dimension d of operand k is: from the right if it stands behind `...`.
  constexpr std::int8_t place(std::size_t k, std::size_t d) const {
    for (std::size_t o = 0; o < d; ++o) {
      if (dims_[k][o].is_open)
        return static_cast<std::int8_t>(static_cast<int>(d) - static_cast<int>(dims_[k].size()));
    }
    return static_cast<std::int8_t>(d);
  }

  constexpr void write(const Dim& dim) {
    Text& text = made_.axes;
    if (!text.empty()) text.add(" ");
    if (dim.is_open && !dim.name.empty()) text.add("*");
    if (dim.is_open || dim.is_unnamed || dim.size < 0) {
      text.add(dim.text);
    } else if (dim.name.empty()) {
      text.add(dim.size);
    } else {
      text.add(dim.name);
      text.add(dim.placed);
      text.add("=");
      text.add(dim.size);
    }
  }

  /// The dimension of operand k that has this name; SIZE_MAX where there is none.
  constexpr std::size_t find(std::size_t k, const Dim& dim) {
    std::size_t found = SIZE_MAX;
    for (std::size_t d = 0; d < dims_[k].size(); ++d) {
      if (dims_[k][d].name != dim.name || dims_[k][d].is_open != dim.is_open) continue;
      if (found != SIZE_MAX) complain(Alignment::axis_is_repeated, static_cast<int>(d));
      found = d;
    }
    return found;
  }

  /// Whether operand `all` has all axes of the other; then the result is as that one.
  constexpr bool by_name(std::size_t all) {
    const std::size_t part = 1 - all;
    List<std::size_t> found;  // of each dimension of `part`
    for (const Dim& dim : dims_[part]) {
      if (dim.name.empty()) {
        lacks_a_name_ = true;
        return false;
      }
      found.push_back(find(all, dim));
      if (found.back() == SIZE_MAX) return false;
    }
    for (std::size_t e = 0; e < found.size(); ++e) {
      for (std::size_t other = 0; other < e; ++other) {
        if (found[other] == found[e]) complain(Alignment::axis_is_repeated);
      }
    }
    for (std::size_t d = 0; d < dims_[all].size(); ++d) {
      std::size_t at = SIZE_MAX;
      for (std::size_t e = 0; e < found.size(); ++e) {
        if (found[e] == d) at = e;
      }
      if (at == SIZE_MAX)
        write(dims_[all][d]);
      else
        meet(all == 0 ? d : at, all == 0 ? at : d, static_cast<unsigned>(all));
    }
    write_read(all, found);
    return true;
  }

  /// How the other operand is read along the axes of `all`.
  constexpr void write_read(std::size_t all, const List<std::size_t>& found) {
    const std::size_t part = 1 - all;
    Text from, to;
    for (std::size_t e = 0; e < found.size(); ++e) {
      if (e > 0) from.add(" ");
      add_axis(from, dims_[part][e], e);
    }
    bool is_same = true, has_begun = false;
    std::size_t next = 0;
    for (std::size_t d = 0; d < dims_[all].size(); ++d) {
      std::size_t at = SIZE_MAX;
      for (std::size_t e = 0; e < found.size(); ++e) {
        if (found[e] == d) at = e;
      }
      if (at == SIZE_MAX && !has_begun) continue;  // dimensions at the left are not needed
      is_same &= at == next;
      ++next;
      if (has_begun) to.add(" ");
      has_begun = true;
      if (at == SIZE_MAX)
        to.add(dims_[all][d].is_open ? "#" : "1");
      else
        add_axis(to, dims_[part][at], at);
    }
    if (is_same) return;
    Text& read = part == 0 ? made_.read_a : made_.read_b;
    read.add(from.view());
    read.add(" -> ");
    read.add(to.view());
  }
  static constexpr void add_axis(Text& text, const Dim& dim, std::size_t number) {
    if (dim.is_open) return text.add("...");
    text.add("d");
    text.add(static_cast<std::int64_t>(number));
  }

  SpecReading specs_[2];
  List<Dim> dims_[2];
  bool lacks_a_name_ = false;  // an axis of an operand that has fewer
  Alignment made_;
};

}  // namespace detail

/// Precondition: both types can be read.
constexpr Alignment align(std::string_view a, std::string_view b) {
  return detail::TypeAlignment(a, b).run();
}

}  // namespace ein::grammar
