// Random patterns with sizes, as structures: what each means is known without reading its text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ein/grammar/check.hpp>
#include <ein/shape.hpp>

namespace ein::test {

struct TestAxis {
  std::string text;  // in the pattern
  std::int64_t size = 1;
  enum Kind { named, unnamed, number, under_ellipsis } kind = named;
};

struct Item {
  enum Kind { axis, one, group, ellipsis } kind = one;
  int id = -1;                  // axis
  std::vector<Item> members{};  // group
};

/// One operand or the result.
struct TestSide {
  std::vector<Item> items;
  std::vector<char> stretched;  // of the axes under its ellipsis, the innermost ones
};

/// A call of einsum, reduce, rearrange or repeat.
struct TestPattern {
  Operation op = Operation::einsum;
  std::vector<TestAxis> axes;
  std::vector<int> ellipsis;  // axes under '...', outermost first
  std::vector<TestSide> inputs;
  TestSide output;
  std::vector<int> given;  // axes whose size comes with the call
  std::string text;

  /// For each dimension of a side the axes it is made of, outermost first.
  std::vector<std::vector<int>> dims(const TestSide& side) const {
    std::vector<std::vector<int>> dims;
    for (const Item& item : side.items) {
      if (item.kind != Item::ellipsis) {
        dims.emplace_back();
        collect(item, dims.back());
        continue;
      }
      const std::size_t skipped = ellipsis.size() - side.stretched.size();
      for (std::size_t e = 0; e < side.stretched.size(); ++e) {
        dims.emplace_back();
        if (!side.stretched[e]) dims.back().push_back(ellipsis[skipped + e]);
      }
    }
    return dims;
  }
  Shape shape(const TestSide& side) const {
    Shape shape;
    for (const std::vector<int>& dim : dims(side)) {
      shape.push_back(1);
      for (int id : dim) shape.back() *= axes[static_cast<std::size_t>(id)].size;
    }
    return shape;
  }
  /// By how many elements of a row-major array of this side an axis moves.
  std::vector<std::int64_t> steps(const TestSide& side) const {
    std::vector<std::int64_t> steps(axes.size(), 0);
    const auto all = dims(side);
    std::int64_t step = 1;
    for (std::size_t d = all.size(); d-- > 0;) {
      for (std::size_t i = all[d].size(); i-- > 0;) {
        const auto id = static_cast<std::size_t>(all[d][i]);
        steps[id] += step;
        step *= axes[id].size;
      }
    }
    return steps;
  }
  std::vector<char> used_by(const TestSide& side) const {
    std::vector<char> used(axes.size(), 0);
    for (const std::vector<int>& dim : dims(side)) {
      for (int id : dim) used[static_cast<std::size_t>(id)] = 1;
    }
    return used;
  }

  /// Calls f(places of the operands' elements, place of the result's) for each choice of all
  /// indices.
  template <class F>
  void for_each_choice(F&& f) const {
    std::vector<char> used = used_by(output);
    std::vector<std::vector<std::int64_t>> steps_of;
    for (const TestSide& input : inputs) {
      const std::vector<char> here = used_by(input);
      for (std::size_t a = 0; a < axes.size(); ++a) used[a] |= here[a];
      steps_of.push_back(steps(input));
    }
    steps_of.push_back(steps(output));
    std::vector<std::size_t> loops;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (!used[a]) continue;
      if (axes[a].size == 0) return;
      loops.push_back(a);
    }
    std::vector<std::int64_t> index(axes.size(), 0), place(steps_of.size(), 0);
    for (;;) {
      f(place);
      std::size_t l = loops.size();
      for (; l > 0; --l) {
        const std::size_t a = loops[l - 1];
        const std::int64_t by = ++index[a] < axes[a].size ? 1 : 1 - axes[a].size;
        for (std::size_t s = 0; s < place.size(); ++s) place[s] += by * steps_of[s][a];
        if (by == 1) break;
        index[a] = 0;
      }
      if (l == 0) return;
    }
  }

 private:
  void collect(const Item& item, std::vector<int>& ids) const {
    if (item.kind == Item::axis) ids.push_back(item.id);
    if (item.kind == Item::ellipsis) ids.insert(ids.end(), ellipsis.begin(), ellipsis.end());
    for (const Item& member : item.members) collect(member, ids);
  }
};

/// Sizes of axes, the more often listed the more likely.
inline constexpr std::int64_t small_sizes[] = {1, 1, 1, 2, 2, 2, 2, 2, 2,  3,  3, 3,
                                               3, 4, 4, 5, 5, 6, 7, 7, 11, 19, 27};
/// Beyond strips of 512 elements, vector widths and the blocks of matrix products.
inline constexpr std::int64_t large_sizes[] = {1,   2,   3,   16,  17,  31,   61,  67,
                                               127, 257, 509, 512, 521, 1031, 2053};

/// Makes patterns. `budget` bounds the number of choices of all indices.
class PatternMaker {
 public:
  PatternMaker(std::mt19937_64& random, std::int64_t budget,
               std::span<const std::int64_t> sizes = small_sizes, int most_axes = 12)
      : random_(random), budget_(budget), sizes_(sizes), most_axes_(most_axes) {}

  TestPattern make(Operation op, std::size_t operands = 1) {
    p_ = {};
    p_.op = op;
    const std::int64_t named = below(chance(10) ? most_axes_ : std::min(most_axes_, 7));
    for (std::int64_t i = 0; i < named; ++i) new_axis(TestAxis::named);
    make_ellipsis();
    for (std::size_t k = 0; k < operands; ++k) make_input();
    trim_ellipsis();
    make_output();
    make_solvable();
    write();
    return std::move(p_);
  }

 private:
  std::int64_t below(std::int64_t n) {
    return n <= 0 ? 0 : std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  bool chance(int percent) { return below(100) < percent; }
  bool sums() const { return p_.op == Operation::einsum || p_.op == Operation::reduce; }
  TestAxis& axis(int id) { return p_.axes[static_cast<std::size_t>(id)]; }

  std::int64_t new_size(bool may_be_zero) {
    const std::int64_t size =
        sizes_[static_cast<std::size_t>(below(static_cast<std::int64_t>(sizes_.size())))];
    if (may_be_zero && chance(2)) return 0;
    if (size > budget_) return 1;
    budget_ /= size;
    return size;
  }
  int new_axis(TestAxis::Kind kind) {
    static const char* const names[] = {"a",   "b",  "h",      "w",        "batch", "head_dim",
                                        "s1",  "s2", "\u00e9", "\u03b1_1", "I",     "ii",
                                        "zZ9", "K",  "x__y",   "\u8ef8"};
    TestAxis axis{"", new_size(kind == TestAxis::named || kind == TestAxis::under_ellipsis), kind};
    if (kind == TestAxis::number && axis.size < 2) {
      if (budget_ < 2) return -1;
      axis.size = 2;
      budget_ /= 2;
    }
    const std::size_t n = p_.axes.size();
    axis.text = kind == TestAxis::named ? n < std::size(names) ? names[n] : "n" + std::to_string(n)
                : kind == TestAxis::unnamed ? "_"
                : kind == TestAxis::number  ? std::to_string(axis.size)
                                            : "...";
    p_.axes.push_back(std::move(axis));
    return static_cast<int>(n);
  }

  void make_ellipsis() {
    has_ellipsis_ = chance(30);
    if (!has_ellipsis_) return;
    for (std::int64_t e = below(4); e > 0; --e)
      p_.ellipsis.push_back(new_axis(TestAxis::under_ellipsis));
  }

  void add_extras(std::vector<Item>& items, bool is_input) {
    const auto insert = [&](Item item) {
      items.insert(items.begin() + below(static_cast<std::int64_t>(items.size()) + 1), item);
    };
    const bool numbers =
        is_input ? sums() : p_.op == Operation::einsum || p_.op == Operation::repeat;
    if (numbers && chance(12)) {
      if (const int id = new_axis(TestAxis::number); id >= 0) insert({Item::axis, id});
    }
    if (is_input && p_.op == Operation::einsum && chance(12))
      insert({Item::axis, new_axis(TestAxis::unnamed)});
    for (int i = 0; i < 2; ++i) {
      if (chance(10)) insert({Item::one});
    }
  }

  /// Puts runs of items into groups, some of which are empty or nested.
  std::vector<Item> grouped(std::vector<Item> items, int percent) {
    std::vector<Item> result;
    for (std::size_t i = 0; i < items.size() || chance(3);) {
      if (!chance(percent)) {
        if (i < items.size()) result.push_back(items[i++]);
        continue;
      }
      const auto end = std::min<std::size_t>(items.size(), i + static_cast<std::size_t>(below(4)));
      std::vector<Item> members(items.begin() + static_cast<std::ptrdiff_t>(i),
                                items.begin() + static_cast<std::ptrdiff_t>(end));
      result.push_back({Item::group, -1, grouped(std::move(members), percent / 2)});
      i = end;
    }
    return result;
  }

  void make_input() {
    TestSide side;
    std::vector<int> names;
    for (std::size_t a = 0; a < p_.axes.size(); ++a) {
      if (p_.axes[a].kind == TestAxis::named) names.push_back(static_cast<int>(a));
    }
    std::shuffle(names.begin(), names.end(), random_);
    const auto most = static_cast<std::int64_t>(names.size());
    // With many operands, all axes in each would be one large product.
    const std::int64_t count =
        p_.op == Operation::einsum ? std::min(most, below(chance(10) ? 10 : 5)) : most;
    for (std::int64_t i = 0; i < count; ++i) {
      side.items.push_back({Item::axis, names[static_cast<std::size_t>(i)]});
      if (p_.op == Operation::einsum && chance(5))
        side.items.push_back(side.items[static_cast<std::size_t>(below(i + 1))]);
    }
    add_extras(side.items, true);
    side.items = grouped(std::move(side.items), chance(40) ? 35 : 0);
    if (has_ellipsis_ && (p_.op != Operation::einsum || chance(75))) {
      const auto under = static_cast<std::int64_t>(p_.ellipsis.size());
      const std::int64_t own = p_.op == Operation::einsum ? below(under + 1) : under;
      for (std::int64_t e = 0; e < own; ++e)
        side.stretched.push_back(p_.op == Operation::einsum && chance(25));
      side.items.insert(
          side.items.begin() + below(static_cast<std::int64_t>(side.items.size()) + 1),
          {Item::ellipsis});
      input_has_ellipsis_ = true;
    }
    p_.inputs.push_back(std::move(side));
  }

  /// Forgets axes that no operand's ellipsis has; one that all have with size 1 has that size.
  void trim_ellipsis() {
    std::size_t most = 0;
    for (const TestSide& side : p_.inputs) most = std::max(most, side.stretched.size());
    p_.ellipsis.erase(p_.ellipsis.begin(), p_.ellipsis.end() - static_cast<std::ptrdiff_t>(most));
    for (std::size_t e = 0; e < most; ++e) {
      bool is_one = true;
      for (const TestSide& side : p_.inputs) {
        if (e + side.stretched.size() >= most)
          is_one &= side.stretched[e + side.stretched.size() - most] != 0;
      }
      if (is_one) axis(p_.ellipsis[e]).size = 1;
    }
  }

  void make_output() {
    std::vector<char> available(p_.axes.size(), 0);
    for (const TestSide& side : p_.inputs) {
      const std::vector<char> used = p_.used_by(side);
      for (std::size_t a = 0; a < used.size(); ++a) available[a] |= used[a];
    }
    std::vector<Item> items;
    for (std::size_t a = 0; a < available.size(); ++a) {
      if (p_.axes[a].kind != TestAxis::named || !available[a]) continue;
      if (!sums() || chance(55)) items.push_back({Item::axis, static_cast<int>(a)});
    }
    if (p_.op == Operation::repeat) {
      for (std::int64_t n = below(3); n > 0; --n) {
        const int id = new_axis(TestAxis::named);
        p_.given.push_back(id);
        items.push_back({Item::axis, id});
      }
    }
    if (!chance(25)) std::shuffle(items.begin(), items.end(), random_);
    add_extras(items, false);
    if (input_has_ellipsis_ && (!sums() || chance(80))) {
      items.insert(items.begin() + below(static_cast<std::int64_t>(items.size()) + 1),
                   {Item::ellipsis});
      p_.output.stretched.assign(p_.ellipsis.size(), 0);
    }
    p_.output.items = grouped(std::move(items), chance(40) ? 35 : 0);
  }

  bool is_given(int id) const {
    return std::find(p_.given.begin(), p_.given.end(), id) != p_.given.end();
  }
  void give(int id) {
    if (axis(id).kind == TestAxis::unnamed) {
      axis(id).kind = TestAxis::named;
      axis(id).text = "u" + std::to_string(id);
    }
    if (!is_given(id)) p_.given.push_back(id);
  }

  /// Gives sizes with the call until each group of an input has at most one unknown.
  void make_solvable() {
    std::vector<char> known(p_.axes.size(), 0);
    for (std::size_t a = 0; a < known.size(); ++a) known[a] = p_.axes[a].kind == TestAxis::number;
    for (int id : p_.given) known[static_cast<std::size_t>(id)] = 1;
    std::vector<std::vector<int>> groups;
    for (const TestSide& side : p_.inputs) {
      for (const Item& item : side.items) {
        if (item.kind == Item::axis) known[static_cast<std::size_t>(item.id)] = 1;
        if (item.kind == Item::group) groups.push_back(p_.dims({{item}, {}})[0]);
      }
    }
    const auto give_unknown = [&](int id) {
      give(id);
      known[static_cast<std::size_t>(id)] = 1;
    };
    for (const std::vector<int>& group : groups) {
      for (std::size_t zero = 0; zero < group.size(); ++zero) {
        if (axis(group[zero]).size != 0) continue;
        // Beside a size of 0 any size would do, so none can be found.
        for (std::size_t i = 0; i < group.size(); ++i) {
          if (i != zero && !known[static_cast<std::size_t>(group[i])]) give_unknown(group[i]);
        }
      }
    }
    for (bool progress = true; progress;) {
      progress = false;
      for (const std::vector<int>& group : groups) {
        std::vector<int> unknown;
        for (int id : group) {
          if (!known[static_cast<std::size_t>(id)]) unknown.push_back(id);
        }
        if (unknown.empty()) continue;
        const int id =
            unknown[static_cast<std::size_t>(below(static_cast<std::int64_t>(unknown.size())))];
        if (unknown.size() > 1) give(id);
        known[static_cast<std::size_t>(id)] = 1;
        progress = true;
      }
    }
    std::vector<char> used = p_.used_by(p_.output);
    for (const TestSide& side : p_.inputs) {
      const std::vector<char> here = p_.used_by(side);
      for (std::size_t a = 0; a < used.size(); ++a) used[a] |= here[a];
    }
    for (std::size_t a = 0; a < used.size(); ++a) {
      if (used[a] && p_.axes[a].kind == TestAxis::named && chance(6)) give(static_cast<int>(a));
    }
    std::shuffle(p_.given.begin(), p_.given.end(), random_);
  }

  // --- text ---

  void write() {
    for (const TestSide& side : p_.inputs) {
      if (&side != &p_.inputs.front()) p_.text += chance(80) ? ", " : ",";
      write(side.items);
    }
    p_.text += chance(90) ? " -> " : "->";
    write(p_.output.items);
  }
  void write(const std::vector<Item>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool touches =
          i > 0 && (items[i].kind == Item::group || items[i - 1].kind == Item::group);
      if (i > 0 && !(touches && chance(10))) p_.text += chance(5) ? " \t " : " ";
      switch (items[i].kind) {
        case Item::axis:
          p_.text += axis(items[i].id).text;
          if (axis(items[i].id).kind == TestAxis::named && axis(items[i].id).size > 0 && chance(4))
            p_.text += "=" + std::to_string(axis(items[i].id).size);
          break;
        case Item::one:
          p_.text += chance(90) ? "1" : "01";
          break;
        case Item::ellipsis:
          p_.text += "...";
          break;
        case Item::group:
          p_.text += chance(90) ? "(" : "( ";
          write(items[i].members);
          p_.text += chance(90) ? ")" : " )";
          break;
      }
    }
  }

  std::mt19937_64& random_;
  std::int64_t budget_;
  std::span<const std::int64_t> sizes_;
  int most_axes_;
  TestPattern p_;
  bool has_ellipsis_ = false, input_has_ellipsis_ = false;
};

}  // namespace ein::test
