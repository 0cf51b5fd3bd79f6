// The table of operations: how each is chosen, run, and written.
#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <regex>
#include <sstream>

#include <ein/autocast.hpp>
#include <ein/complex.hpp>
#include <ein/linalg.hpp>
#include <ein/vmap.hpp>

#include "calls.hpp"

namespace ein::attack {
namespace {

int value_with_axes(Maker& maker) {
  return maker.value([&](int v) { return maker.shape(v).rank() > 0; });
}
/// Any of the numbers of the dimensions.
std::int64_t any_of(Maker& maker, const Shape& shape) {
  return maker.below(static_cast<std::int64_t>(shape.rank()));
}

bool make_unary(Maker& maker, Step& step) { return take(step, {maker.value()}); }
bool make_binary(Maker& maker, Step& step) {
  const int a = maker.value(), b = maker.beside(a);
  return maker.chance(50) ? take(step, {a, b}) : take(step, {b, a});
}
bool make_single_unary(Maker& maker, Step& step) {
  return maker.is_single() && make_unary(maker, step);
}
bool make_single_binary(Maker& maker, Step& step) {
  return maker.is_single() && make_binary(maker, step);
}
bool make_beside_number(Maker& maker, Step& step) {
  const int a = maker.value();
  step.numbers = {maker.number(maker.dtype(a))};
  return take(step, {a});
}

/// One that has its name and its arguments in common with the peers'.
template <class Run>
Operation named(const std::string& name, bool (*make)(Maker&, Step&), Run run,
                const std::string& arguments, int weight) {
  return {name, make, run, "ein::" + name + arguments, name + arguments, weight};
}
template <Tensor (*F)(const Tensor&)>
Operation unary(const std::string& name, int weight = 3, bool peers_have_it = true) {
  return {name,
          make_unary,
          [](const Step&, Args x) { return F(x[0]); },
          "ein::" + name + "($0)",
          peers_have_it ? name + "($0)" : "",
          weight};
}
template <Tensor (*F)(Operand, Operand)>
void add_binary(std::vector<Operation>& table, const std::string& name, int weight) {
  const std::string cpp = "ein::" + name;
  table.push_back({name, make_binary, [](const Step&, Args x) { return F(x[0], x[1]); },
                   cpp + "($0, $1)", name + "($0, $1)", weight});
  table.push_back({name + " number", make_beside_number,
                   [](const Step& s, Args x) { return F(x[0], s.numbers[0]); }, cpp + "($0, $n0)",
                   name + "($0, $n0)", weight / 2});
  table.push_back({"number " + name, make_beside_number,
                   [](const Step& s, Args x) { return F(s.numbers[0], x[0]); }, cpp + "($n0, $0)",
                   name + "($n0, $0)", std::max(weight / 3, 1)});
}

// --- patterns ---

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Now and then, `...` in place of an axis, or of two in a row, that every side has or lacks alike;
/// and another dtype for the result.
void vary(Maker& maker, Step& step, bool has_dtype) {
  if (maker.is_single()) return;
  if (has_dtype && maker.chance(8)) step.as = maker.any_dtype();
  if (!maker.chance(12)) return;
  std::vector<std::string> pattern = words(std::regex_replace(step.pattern, std::regex(","), " ,"));
  const auto is_axis = [](const std::string& word) {
    return std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c); });
  };
  const auto first =
      static_cast<std::size_t>(maker.below(static_cast<std::int64_t>(pattern.size())));
  std::vector<std::string> run;
  for (std::size_t i = first;
       i < pattern.size() && run.size() < 2 && is_axis(pattern[i]) && pattern[i] != "1"; ++i)
    run.push_back(pattern[i]);
  if (run.size() == 2 && maker.chance(50)) run.pop_back();
  if (run.empty()) return;
  std::string result;
  for (auto at = pattern.begin(); at != pattern.end();) {
    const bool is_here = static_cast<std::size_t>(pattern.end() - at) >= run.size() &&
                         std::equal(run.begin(), run.end(), at);
    result += (result.empty() || *at == "," ? "" : " ") + (is_here ? "..." : *at);
    at += is_here ? static_cast<std::ptrdiff_t>(run.size()) : 1;
  }
  step.pattern =
      result;  // where a name of the run is left over, the call is an Error and another is tried
}

std::int64_t points(const std::vector<Maker::Axis>& axes) {
  std::int64_t n = 1;
  for (const Maker::Axis& axis : axes) n *= std::max<std::int64_t>(axis.size, 1);
  return n;
}

template <int N>
bool make_einsum(Maker& maker, Step& step) {
  std::vector<Maker::Axis> axes;
  const int first = maker.value();
  if (first < 0) return false;
  step.pattern = maker.side(maker.shape(first), axes, step, true, true);
  step.args = {first};
  for (int k = 1; k < N; ++k) {
    int other = maker.chance(60)
                    ? maker.value([&](int v) { return maker.dtype(v) == maker.dtype(first); })
                    : -1;
    if (other < 0) {
      Shape shape;
      for (std::int64_t d = maker.below(4); d > 0; --d) {
        const bool shared = !axes.empty() && maker.chance(60);
        shape.push_back(shared ? axes[static_cast<std::size_t>(
                                          maker.below(static_cast<std::int64_t>(axes.size())))]
                                     .size
                               : maker.size());
      }
      if (numel(shape) > 20000) return false;
      other = maker.input(shape, maker.rather(maker.dtype(first)));
    }
    step.pattern += ", " + maker.side(maker.shape(other), axes, step, true, true);
    step.args.push_back(other);
  }
  if (points(axes) > most_points) return false;
  step.pattern += " -> " + maker.joined(maker.shuffled(maker.some(axes, 55)), true);
  vary(maker, step, true);
  return step.sizes.size() <= 5;
}
bool make_move(Maker& maker, Step& step, bool repeats) {
  std::vector<Maker::Axis> axes;
  const int x = maker.value();
  if (x < 0) return false;
  step.pattern = maker.side(maker.shape(x), axes, step, true, false);
  if (repeats) {
    for (std::int64_t n = 1 + maker.below(2); n > 0; --n) {
      axes.push_back({"r" + std::to_string(n), maker.size()});
      step.sizes.emplace_back(axes.back().name, axes.back().size);
    }
    if (points(axes) > most_points) return false;
  }
  step.pattern += " -> " + maker.joined(maker.shuffled(maker.some(axes, 100)), true);
  vary(maker, step, true);
  return take(step, {x}) && step.sizes.size() <= 5;
}
bool make_rearrange(Maker& maker, Step& step) { return make_move(maker, step, false); }
bool make_repeat(Maker& maker, Step& step) { return make_move(maker, step, true); }
Tensor run_repeat(const Step& s, Args x) {
  return with_sizes(
      s, [&](const auto&... sizes) { return repeat(x[0], runtime(s.pattern), sizes...); });
}

template <Reduction R>
bool make_reduce(Maker& maker, Step& step) {
  std::vector<Maker::Axis> axes;
  const int x = wants_floating(R) ? maker.floating() : maker.value();
  if (x < 0) return false;
  step.pattern = maker.side(maker.shape(x), axes, step, true, false);
  step.pattern += " -> " + maker.joined(maker.shuffled(maker.some(axes, 50)), true);
  vary(maker, step, true);
  return take(step, {x}) && step.sizes.size() <= 5;
}
template <Reduction R>
Operation reduction() {
  const std::string name(ein::name(R));
  return {"reduce " + name,
          make_reduce<R>,
          run_reduce<R>,
          "ein::reduce($0, $p, \"" + name + "\"$h)",
          "reduce($0, $p, \"" + name + "\"$h)",
          R == Reduction::sum ? 6 : 2};
}

/// Two operands as einsum has them; `kept` percent of their axes are in the result.
template <int Kept>
bool make_map(Maker& maker, Step& step) {
  std::vector<Maker::Axis> axes;
  const int first = maker.value();
  if (first < 0) return false;
  step.pattern = maker.side(maker.shape(first), axes, step, true, false);
  const int second = maker.value([&](int v) { return maker.dtype(v) == maker.dtype(first); });
  step.pattern += ", " + maker.side(maker.shape(second), axes, step, true, false);
  if (points(axes) > most_points) return false;
  step.pattern += " -> " + maker.joined(maker.shuffled(maker.some(axes, Kept)), true);
  vary(maker, step, false);
  return take(step, {first, second}) && step.sizes.size() <= 5;
}
/// A function of two elements by the names of axes, and a reduction or none.
template <class F>
Operation map_of(const char* function, const F&, std::optional<Reduction> how = {}) {
  static std::optional<Reduction> reductions;  // of this F, of which there is one row
  reductions = how;
  const std::string by = how ? ", \"" + std::string(ein::name(*how)) + "\"" : "";
  return {"map " + std::string(function) + (how ? " " + std::string(ein::name(*how)) : ""),
          how ? make_map<50> : make_map<100>,
          [](const Step& s, Args x) {
            return with_sizes(s, [&](const auto&... sizes) {
              const std::optional<Reduction> by = reductions;
              return by ? map(x[0], x[1], runtime(s.pattern), F(), *by, sizes...)
                        : map(x[0], x[1], runtime(s.pattern), F(), sizes...);
            });
          },
          "ein::map($0, $1, $p, ein::fn::" + std::string(function) + by + "$h)",
          "map($0, $1, $p, \"" + std::string(function) + "\"" + by + "$h)",
          2};
}

// --- a function over one more axis ---

/// An argument of vmap that broadcasts to `one`, which is a tensor at one index, behind the axes
/// `own`; and has the axis of `count` indices at one of its ends, or not at all.
int make_vmap_argument(Maker& maker, Step& step, const Shape& one, const Shape& own,
                       std::int64_t count, DType dtype) {
  const auto rank = static_cast<std::int64_t>(one.rank());
  const std::int64_t skipped = own.rank() == 0 && maker.chance(30) ? maker.below(rank + 1) : 0;
  const bool is_first = maker.chance(40), is_last = !is_first && maker.chance(50);
  Shape shape;
  if (is_first) shape.push_back(count);
  for (const std::int64_t n : own) shape.push_back(n);
  for (std::int64_t d = skipped; d < rank; ++d)
    shape.push_back(maker.chance(15) ? Size(1) : one[static_cast<std::size_t>(d)]);
  if (is_last) shape.push_back(count);
  step.pattern += is_first ? ", n ..." : is_last ? ", ... n" : ", ...";
  return maker.like(shape, dtype);
}

/// The first of N arguments, which has the axis; then others, the last of them with `more` axes of
/// its own.
template <int N, int More = 0, bool WantsFloats = false>
bool make_vmap(Maker& maker, Step& step) {
  const int x = WantsFloats ? maker.floating() : maker.value();
  if (x < 0 || maker.shape(x).rank() == 0) return false;
  const Shape shape = maker.shape(x);
  const DType dtype = maker.dtype(x);
  const bool is_last = maker.chance(50);
  const std::int64_t count = is_last ? shape.back() : shape[0];
  Shape one;
  for (std::size_t d = is_last ? 0 : 1; d + (is_last ? 1 : 0) < shape.rank(); ++d)
    one.push_back(shape[d]);
  step.pattern = is_last ? "... n" : "n ...";
  step.args = {x};
  std::int64_t points = numel(shape);
  for (int k = 1; k < N; ++k) {
    Shape own;
    for (int m = 0; m < More && k == N - 1; ++m) own.push_back(maker.size());
    points *= std::max<std::int64_t>(numel(own), 1);
    if (points > most_points) return false;
    step.args.push_back(make_vmap_argument(maker, step, one, own, count, dtype));
  }
  if (maker.chance(50)) step.pattern += maker.chance(50) ? " -> n ..." : " -> ... n";
  return true;
}
template <class F>
Operation vmap_of(const std::string& name, bool (*make)(Maker&, Step&), const F&,
                  const std::string& cpp) {
  return {"vmap " + name,
          make,
          [](const Step& s, Args x) -> Tensor {
            const auto over_all = vmap(F(), s.pattern);
            if constexpr (std::is_invocable_v<F, Tensor>)
              return over_all(x[0]);
            else if constexpr (std::is_invocable_v<F, Tensor, Tensor>)
              return over_all(x[0], x[1]);
            else
              return over_all(x[0], x[1], x[2]);
          },
          "ein::vmap(" + cpp + ", $p)($a)",
          "vmap(\"" + name + "\", $p, [$a])",
          2};
}

/// A pattern with one axis in brackets, or some at the end; its size is step.whole[0].
bool make_bracketed(Maker& maker, Step& step, int x, bool may_be_many) {
  if (x < 0 || maker.shape(x).rank() == 0) return false;
  const Shape& shape = maker.shape(x);
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t first = maker.chance(50) ? rank - 1 : maker.below(rank);
  const std::int64_t last = may_be_many && maker.chance(25) ? rank - 1 : first;
  for (std::int64_t d = 0; d < rank; ++d) {
    step.pattern += (d > 0 ? " " : "") + std::string(d == first ? "[" : "") +
                    static_cast<char>('a' + d) + (d == last ? "]" : "");
  }
  step.whole = {shape[static_cast<std::size_t>(first)]};
  vary(maker, step, false);
  return take(step, {x});
}
bool make_softmax(Maker& maker, Step& step) {
  return make_bracketed(maker, step, maker.floating(), true);
}
bool make_scan_of_floats(Maker& maker, Step& step) {
  return make_bracketed(maker, step, maker.floating(), false);
}
bool make_order(Maker& maker, Step& step) {
  return make_bracketed(maker, step, maker.value(), false);
}
bool make_position(Maker& maker, Step& step) {
  return make_bracketed(maker, step, maker.value(), true);
}
bool make_moved(Maker& maker, Step& step) {
  if (!make_bracketed(maker, step, maker.value(), true)) return false;
  step.whole = {maker.below(9) - 4};
  return true;
}
bool make_padded(Maker& maker, Step& step) {
  const int x = maker.value();
  if (!make_bracketed(maker, step, x, true)) return false;
  if (numel(maker.shape(x)) > most_points / 16) return false;
  const bool is_small = step.whole[0] < 4;  // of one of the axes
  step.whole = {maker.below(4), maker.below(4)};
  step.numbers = {maker.number(maker.dtype(x))};
  return !is_small || maker.chance(50);
}
bool make_with_diagonal(Maker& maker, Step& step) {
  const int x = maker.value();
  if (!make_bracketed(maker, step, x, false)) return false;
  const std::int64_t size = step.whole[0] + 4;
  step.whole = {maker.below(7) - 3};
  return numel(maker.shape(x)) * size * 4 < most_points;
}
bool make_diagonal(Maker& maker, Step& step) {
  const int x = maker.value([&](int v) { return maker.shape(v).rank() > 1; });
  if (x < 0) return false;
  const auto rank = static_cast<std::int64_t>(maker.shape(x).rank());
  const std::int64_t first = maker.below(rank - 1);
  for (std::int64_t d = 0; d < rank; ++d) {
    step.pattern += (d > 0 ? " " : "") + std::string(d == first ? "[" : "") +
                    static_cast<char>('a' + d) + (d == first + 1 ? "]" : "");
  }
  step.whole = {maker.below(7) - 3};
  return take(step, {x});
}
bool make_quantile(Maker& maker, Step& step) {
  constexpr double fractions[] = {0, 0.25, 0.5, 0.3, 1};
  step.numbers = {maker.one_of(fractions)};
  return make_order(maker, step) && step.whole[0] > 0;
}
bool make_histogram(Maker& maker, Step& step) {
  if (!make_order(maker, step)) return false;
  step.whole = {1 + maker.below(8)};
  return true;
}
bool make_searchsorted(Maker& maker, Step& step) {
  const int x = maker.value([&](int v) { return maker.shape(v).rank() == 1; });
  return x >= 0 && take(step, {x, maker.like({maker.size()}, maker.dtype(x))});
}
bool make_top_k(Maker& maker, Step& step) {
  if (!make_order(maker, step)) return false;
  step.whole = {maker.below(step.whole[0] + 1)};
  return true;
}

/// The axes of `shape` as a list; dimension `special`, if there is one, as it is said.
std::vector<std::string> names_of(const Shape& shape, std::int64_t special = -1,
                                  const char* said = "[v]") {
  std::vector<std::string> names;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(shape.rank()); ++d) {
    names.push_back(d == special ? said : std::string(1, static_cast<char>('a' + d)));
  }
  return names;
}

constexpr DType position_types[] = {DType::i64, DType::i64, DType::i32, DType::u8,
                                    DType::u64, DType::u16, DType::i16};

/// Positions along an axis of `size`, over some of the axes that `names` has and maybe one more;
/// their names.
int make_positions(Maker& maker, const Shape& shape, std::vector<std::string>& names,
                   std::int64_t size, int percent_shared) {
  Shape of;
  std::vector<std::string> own;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (names[d].front() == '[' || !maker.chance(percent_shared)) continue;
    own.push_back(names[d]);
    of.push_back(shape[d]);
  }
  if (percent_shared < 100 && maker.chance(60)) {
    own.push_back("p");
    of.push_back(maker.size());
  }
  names = own;
  DType dtype = maker.one_of(position_types);
  if (dtype == DType::u8 && size > 255) dtype = DType::i32;
  if (size == 0 || numel(of) > 5000) return -1;
  return maker.input(of, dtype, size);
}

/// A value's axes, one of them [v], and positions along that one, over some of the others.
struct Lookup {
  std::vector<std::string> names, positions;
  std::int64_t size = 0;
  int at = -1;
};
Lookup make_lookup(Maker& maker, const Shape& shape, int percent_shared) {
  const std::int64_t dim = any_of(maker, shape);
  Lookup lookup{names_of(shape, dim), names_of(shape, dim), shape[static_cast<std::size_t>(dim)]};
  lookup.at = make_positions(maker, shape, lookup.positions, lookup.size, percent_shared);
  return lookup;
}

bool make_gather(Maker& maker, Step& step) {
  const int x = value_with_axes(maker);
  if (x < 0) return false;
  const Shape shape = maker.shape(x);
  const auto [names, positions, size, at] = make_lookup(maker, shape, 35);
  if (at < 0) return false;
  std::vector<std::string> result;
  for (const std::string& name : names) {
    if (name != "[v]") result.push_back(name);
  }
  if (!positions.empty() && positions.back() == "p") result.push_back("p");
  step.pattern = maker.joined(names, false) + ", " + maker.joined(positions, false) + " -> " +
                 maker.joined(maker.shuffled(result), false);
  take(step, {x, at});
  return numel(maker.shape(at)) * numel(shape) / std::max<std::int64_t>(size, 1) < most_points;
}

bool make_scatter(Maker& maker, Step& step) {
  const int x = value_with_axes(maker);
  if (x < 0) return false;
  const std::vector<std::string> names = names_of(maker.shape(x));
  std::vector<std::string> positions = names;
  const std::int64_t size = std::max<std::int64_t>(maker.size(), 1);
  const Shape shape = maker.shape(x);
  const int at = make_positions(maker, shape, positions, size, 100);
  if (at < 0 || numel(shape) * size > most_points) return false;
  std::vector<std::string> result{"[v]"};
  for (const std::string& name : names) {
    if (maker.chance(50)) result.push_back(name);
  }
  step.pattern = maker.joined(names, false) + ", " + maker.joined(positions, false) + " -> " +
                 maker.joined(maker.shuffled(result), false);
  step.sizes = {{"v", size}};
  return take(step, {x, at});
}

bool make_one_hot(Maker& maker, Step& step) {
  Shape shape;
  for (std::int64_t d = maker.below(3); d > 0; --d) shape.push_back(maker.size());
  const std::int64_t size = std::max<std::int64_t>(maker.size(), 1);
  if (numel(shape) * size > most_points) return false;
  std::vector<std::string> names = names_of(shape);
  std::vector<std::string> result = names;
  result.push_back("[v]");
  step.pattern = maker.joined(names, false) + " -> " + maker.joined(maker.shuffled(result), false);
  step.sizes = {{"v", size}};
  step.dtype = maker.any_dtype();
  return take(step, {maker.input(shape, DType::i64, size)});
}

bool make_cross_entropy(Maker& maker, Step& step) {
  const int x =
      maker.value([&](int v) { return is_floating(maker.dtype(v)) && maker.shape(v).rank() > 0; });
  if (x < 0) return false;
  const auto [names, targets, size, at] = make_lookup(maker, maker.shape(x), 100);
  if (at < 0) return false;
  step.pattern = maker.joined(names, false) + ", " + maker.joined(targets, false);
  if (maker.chance(50)) {
    std::vector<std::string> kept;
    for (const std::string& name : targets) {
      if (maker.chance(60)) kept.push_back(name);
    }
    step.pattern += " -> " + maker.joined(maker.shuffled(kept), false);
  }
  return take(step, {x, at});
}

/// With a class that is ignored, maybe one that there is not, and weights of the classes.
bool make_cross_entropy_with_options(Maker& maker, Step& step) {
  if (!make_cross_entropy(maker, step)) return false;
  const int x = step.args[0];
  const std::string logits = step.pattern.substr(0, step.pattern.find(','));
  std::int64_t classes = 0;
  std::size_t dim = 0;
  for (const std::string& word : words(logits)) {
    if (word.front() == '[') classes = maker.shape(x)[dim];
    ++dim;
  }
  step.whole = {maker.below(classes + 1) - 1};
  constexpr double parts[] = {0, 0.125, 0.5, 1};
  step.numbers = {maker.one_of(parts)};
  step.args.push_back(maker.like({classes}, maker.dtype(x)));
  return true;
}
/// Probabilities that need not be any: floats of the logits' shape.
bool make_cross_entropy_of_probabilities(Maker& maker, Step& step) {
  const int x =
      maker.value([&](int v) { return is_floating(maker.dtype(v)) && maker.shape(v).rank() > 0; });
  if (x < 0 || !make_bracketed(maker, step, x, false)) return false;
  std::string plain = step.pattern;
  std::erase_if(plain, [](char c) { return c == '[' || c == ']'; });
  step.pattern += ", " + plain;
  step.whole.clear();
  constexpr double parts[] = {0, 0.125, 1};
  step.numbers = {maker.one_of(parts)};
  return take(step, {x, maker.like(maker.shape(x), maker.dtype(x))});
}

bool make_layer_norm(Maker& maker, Step& step) {
  const int x = maker.floating();
  if (!make_bracketed(maker, step, x, false)) return false;
  const Shape weights{step.whole[0]};
  return take(step, {x, maker.like(weights, maker.dtype(x)), maker.like(weights, maker.dtype(x))});
}

// --- views ---

bool make_at(Maker& maker, Step& step) {
  const int x = value_with_axes(maker);
  if (x < 0) return false;
  const Shape& shape = maker.shape(x);
  const auto entries =
      static_cast<std::size_t>(1 + maker.below(static_cast<std::int64_t>(shape.rank())));
  for (std::size_t d = 0; d < entries; ++d) {
    const std::int64_t n = shape[d];
    if (n > 0 && maker.chance(30)) {
      const std::int64_t position = maker.below(2 * n) - n;
      step.whole.insert(step.whole.end(), {position, position, 0});
      continue;
    }
    const std::int64_t begin = maker.below(n + 1),
                       end = maker.chance(40) ? n : begin + maker.below(n - begin + 1);
    step.whole.insert(step.whole.end(), {begin, end, maker.chance(70) ? 1 : 1 + maker.below(4)});
  }
  return take(step, {x});
}
Tensor run_at(const Step& s, Args x) {
  std::vector<Index> indices;
  for (std::size_t i = 0; i < s.whole.size(); i += 3) {
    indices.push_back(s.whole[i + 2] == 0
                          ? Index(s.whole[i])
                          : Index(slice(s.whole[i], s.whole[i + 1], s.whole[i + 2])));
  }
  return x[0].at(indices);
}

/// Rows from a position on.
bool make_slice_of(Maker& maker, Step& step) {
  const int x = value_with_axes(maker);
  if (x < 0) return false;
  const std::int64_t n = maker.shape(x)[0], count = n == 0 ? 0 : 1 + maker.below(n);
  step.whole = {count};
  return take(step, {x, maker.input({}, DType::i64, n - count + 1)});
}

bool make_reshape(Maker& maker, Step& step) {
  const int x = maker.value();
  if (x < 0) return false;
  for (std::int64_t n : maker.shape(x)) {
    const bool merges = !step.whole.empty() && maker.chance(40);
    if (merges)
      step.whole.back() *= n;
    else if (n > 3 && n % 2 == 0 && maker.chance(25))
      step.whole.insert(step.whole.end(), {2, n / 2});
    else
      step.whole.push_back(n);
  }
  if (maker.chance(15)) step.whole.push_back(1);
  return take(step, {x});
}

bool make_pack(Maker& maker, Step& step) {
  const int x = value_with_axes(maker);
  if (x < 0) return false;
  const Shape shape = maker.shape(x);
  const std::int64_t dim = any_of(maker, shape);
  step.pattern = maker.joined(names_of(shape, dim, "*"), false);
  step.args = {x};
  for (std::int64_t n = 1 + maker.below(2); n > 0; --n) {
    Shape other = shape;
    if (maker.chance(50)) other[static_cast<std::size_t>(dim)] = maker.size();
    if (numel(other) > 10000) return false;
    step.args.push_back(maker.like(other, maker.dtype(x)));
  }
  if (maker.chance(50)) std::reverse(step.args.begin(), step.args.end());
  return true;
}
bool make_unpack(Maker& maker, Step& step) {
  const int x = value_with_axes(maker);
  if (x < 0) return false;
  const Shape& shape = maker.shape(x);
  const std::int64_t dim = any_of(maker, shape);
  step.pattern = maker.joined(names_of(shape, dim, "*"), false);
  const std::int64_t n = shape[static_cast<std::size_t>(dim)], first = maker.below(n + 1);
  step.whole = {first, n - first, maker.below(2)};
  return take(step, {x});
}
bool make_stack(Maker& maker, Step& step) {
  const int x = maker.value([&](int v) { return maker.shape(v).rank() < 4; });
  if (x < 0) return false;
  const Shape shape = maker.shape(x);
  std::vector<std::string> names = names_of(shape);
  names.insert(names.begin(), "n");
  step.pattern = maker.joined(names, false) + " -> " + maker.joined(maker.shuffled(names), true);
  return take(step, {x, maker.like(shape, maker.dtype(x))});
}

// --- new tensors, state, gradients ---

bool make_shape(Maker& maker, Step& step) {
  for (std::int64_t d = maker.below(4); d > 0; --d) step.whole.push_back(maker.size());
  step.dtype = maker.any_dtype();
  step.numbers = {maker.number(step.dtype)};
  return numel(Shape(std::span<const std::int64_t>(step.whole))) < 20000;
}
bool make_random(Maker& maker, Step& step) {
  return make_shape(maker, step) && is_floating(step.dtype);
}
Shape shape_of(const Step& s) { return Shape(std::span<const std::int64_t>(s.whole)); }

bool make_assignment(Maker& maker, Step& step) {
  const int x = maker.value();
  int state =
      maker.value([&](int v) { return maker.is_state(v) && maker.shape(v) == maker.shape(x); });
  if (state < 0)
    state =
        maker.input(maker.shape(x), maker.chance(80) ? maker.dtype(x) : maker.any_dtype(), 0, true);
  return take(step, {state, x});
}
/// Writes to rows of a state.
/// A state and a value that fits into its rows; two of -1 where there is none.
std::pair<int, int> state_and_rows(Maker& maker) {
  const int x = maker.value([&](int v) { return maker.shape(v).rank() > 0; });
  if (x < 0) return {-1, -1};
  const Shape part = maker.shape(x);
  int state = maker.value([&](int v) {
    if (!maker.is_state(v) || maker.shape(v).rank() != part.rank()) return false;
    Shape same = maker.shape(v);
    const std::int64_t rows = std::exchange(same[0], part[0]);
    return same == part && rows >= part[0];
  });
  if (state < 0) {
    Shape whole = part;
    whole[0] += maker.below(4);
    state = maker.input(whole, maker.chance(80) ? maker.dtype(x) : maker.any_dtype(), 0, true);
  }
  return {state, x};
}
bool make_assignment_of_rows(Maker& maker, Step& step) {
  const auto [state, x] = state_and_rows(maker);
  if (x < 0) return false;
  const std::int64_t rows = maker.shape(x)[0],
                     first = maker.below(maker.shape(state)[0] - rows + 1);
  step.whole = {first, first + rows};
  return take(step, {state, x});
}
bool make_assignment_at_position(Maker& maker, Step& step) {
  const auto [state, x] = state_and_rows(maker);
  if (x < 0) return false;
  const std::int64_t rows = maker.shape(x)[0], more = maker.shape(state)[0] - rows;
  step.whole = {rows};
  return take(step, {state, x, maker.input({}, DType::i64, more + 1)});
}
bool make_fill(Maker& maker, Step& step) {
  const int state = maker.value([&](int v) { return maker.is_state(v); });
  if (state < 0) return false;
  step.numbers = {maker.number(maker.dtype(state))};
  return take(step, {state});
}

bool make_gradient(Maker& maker, Step& step) {
  const int x =
      maker.value([&](int v) { return maker.is_argument(v) && is_floating(maker.dtype(v)); });
  const int y = maker.floating();
  if (x < 0 || y < 0 || maker.is_argument(y) || maker.is_state(y)) return false;
  return take(step, {y, maker.like(maker.shape(y), maker.dtype(y)), x});
}

/// Of a few elements.
bool make_gradient_again(Maker& maker, Step& step) {
  constexpr std::int64_t most = 300;
  if (!make_gradient(maker, step)) return false;
  const int y = step.args[0], x = step.args[2];
  step.args.push_back(maker.like(maker.shape(x), maker.dtype(x)));
  return maker.shape(x).rank() > 0 && numel(maker.shape(x)) <= most &&
         numel(maker.shape(y)) <= most;
}
/// The gradient with respect to x[2] of the sum of x[0] by x[1], and those of the sum of such a
/// gradient by x[3].
Tensor gradient_of_order(int order, Args x) {
  Tensor found = gradients(x[0], x[1], std::array{x[2]}, true).front();
  for (int k = 1; k < order; ++k) found = gradients(found, x[3], std::array{x[2]}, true).front();
  return found;
}

bool make_cast(Maker& maker, Step& step) {
  step.dtype = maker.any_dtype();
  return take(step, {maker.value()});
}
bool make_where(Maker& maker, Step& step) {
  const int a = maker.value(), condition = maker.beside(a), b = maker.beside(a);
  return take(step, {condition, a, b});
}
bool make_clamp(Maker& maker, Step& step) {
  const int x = maker.value();
  if (x < 0) return false;
  step.numbers = {maker.number(maker.dtype(x)), maker.number(maker.dtype(x))};
  if (!(step.numbers[0].real() <= step.numbers[1].real()))
    std::swap(step.numbers[0], step.numbers[1]);
  return take(step, {x});
}
bool make_clamp_by_tensors(Maker& maker, Step& step) {
  const int x = maker.value();
  return take(step, {x, maker.beside(x), maker.like({}, maker.dtype(x))});
}
bool make_matrix(Maker& maker, Step& step) {
  return take(step, {maker.value([&](int v) { return maker.shape(v).rank() == 2; })});
}
/// Matrices of n rows and m columns, "[n m]", or a batch of them.
bool make_matrices(Maker& maker, Step& step, bool are_square, bool may_be_many) {
  constexpr std::int64_t sizes[] = {0, 1, 2, 2, 3, 3, 4, 5, 8};
  const std::int64_t rows = maker.one_of(sizes), columns = are_square ? rows : maker.one_of(sizes);
  const bool are_many = may_be_many && maker.chance(40);
  step.pattern = are_many ? "b [n m]" : "[n m]";
  const Shape shape = are_many ? Shape{1 + maker.below(3), rows, columns} : Shape{rows, columns};
  return take(step, {maker.input(shape, maker.rather(maker.chance(50) ? DType::f32 : DType::f64))});
}
bool make_square(Maker& maker, Step& step) { return make_matrices(maker, step, true, true); }
bool make_rectangle(Maker& maker, Step& step) { return make_matrices(maker, step, false, true); }
/// A matrix and right-hand sides, maybe a single one without an axis.
bool make_right_sides(Maker& maker, Step& step) {
  const int a = step.args[0];
  const Shape of = maker.shape(a);
  const bool has_batch = of.rank() > 2;
  Shape right;
  for (std::size_t d = 0; d + 1 < of.rank(); ++d) right.push_back(of[d]);
  const std::string batch = has_batch ? "b " : "";
  const std::string columns = has_batch || maker.chance(50) ? " k" : "";
  if (!columns.empty()) right.push_back(1 + maker.below(3));
  step.pattern += ", " + batch + "[n]" + columns + " -> " + batch + "[m]" + columns;
  return take(step, {a, maker.like(right, maker.dtype(a))});
}
bool make_solve(Maker& maker, Step& step) {
  return make_matrices(maker, step, true, true) && make_right_sides(maker, step);
}
bool make_lstsq(Maker& maker, Step& step) {  // NumPy's takes one matrix
  return make_matrices(maker, step, false, false) && make_right_sides(maker, step);
}
bool make_range(Maker& maker, Step& step) {
  step.numbers = {maker.below(9) - 4, maker.below(40) - 10, 1 + maker.below(3)};
  if (maker.chance(40)) step.numbers[0] = 0.5 * static_cast<double>(maker.below(9));
  if (maker.chance(30)) step.numbers[2] = 0.25 * static_cast<double>(1 + maker.below(9));
  return true;
}

bool make_triangle(Maker& maker, Step& step) {
  const int x = maker.value([&](int v) { return maker.shape(v).rank() > 1; });
  if (x < 0) return false;
  step.whole = {maker.below(7) - 3};
  step.numbers = {maker.number(maker.dtype(x))};
  return take(step, {x});
}
bool make_matmul(Maker& maker, Step& step) {
  const int a = value_with_axes(maker);
  if (a < 0) return false;
  const std::int64_t columns = maker.size();
  const Shape other =
      maker.chance(25) ? Shape{maker.shape(a).back()} : Shape{maker.shape(a).back(), columns};
  if (numel(maker.shape(a)) * std::max<std::int64_t>(columns, 1) > most_points) return false;
  return take(step, {a, maker.like(other, maker.dtype(a))});
}
bool make_mse(Maker& maker, Step& step) {
  const int a = maker.floating();
  return a >= 0 && take(step, {a, maker.like(maker.shape(a), maker.dtype(a))});
}
bool make_dropout(Maker& maker, Step& step) {
  constexpr double probabilities[] = {0, 0.25, 0.5, 0.9};
  step.numbers = {maker.one_of(probabilities)};
  return take(step, {maker.floating()});
}

#define EIN_NAMED(call) \
  []([[maybe_unused]] const Step& s, [[maybe_unused]] Args x) -> Tensor { return call; }
#define EIN_OF_PATTERN(name, make, weight) \
  named(#name, make, EIN_NAMED(name(x[0], runtime(s.pattern))), "($0, $p)", weight)
#define EIN_SCATTER(name, weight)                                                          \
  named(#name, make_scatter,                                                               \
        EIN_NAMED(name(x[0], x[1], runtime(s.pattern), AxisSize{"v", s.sizes[0].second})), \
        "($0, $1, $p$h)", weight)
#define EIN_TRIANGLE(name)                                                                  \
  named(#name, make_triangle, EIN_NAMED(name(x[0], "... [i j]", s.whole[0], s.numbers[0])), \
        "($0, $w0, $n0)", 1)

std::vector<Operation> make_table() {
  std::vector<Operation> t;
  // Elementwise.
  add_binary<add>(t, "add", 9);
  add_binary<sub>(t, "sub", 9);
  add_binary<mul>(t, "mul", 12);
  add_binary<div>(t, "div", 6);
  add_binary<pow>(t, "pow", 3);
  add_binary<atan2>(t, "atan2", 2);
  add_binary<hypot>(t, "hypot", 2);
  add_binary<remainder>(t, "remainder", 2);
  add_binary<floor_divide>(t, "floor_divide", 2);
  add_binary<logaddexp>(t, "logaddexp", 2);
  add_binary<bitwise_and>(t, "bitwise_and", 2);
  add_binary<bitwise_or>(t, "bitwise_or", 2);
  add_binary<bitwise_xor>(t, "bitwise_xor", 2);
  add_binary<left_shift>(t, "left_shift", 2);
  add_binary<right_shift>(t, "right_shift", 2);
  add_binary<minimum>(t, "minimum", 3);
  add_binary<maximum>(t, "maximum", 3);
  add_binary<less>(t, "less", 3);
  add_binary<less_equal>(t, "less_equal", 3);
  add_binary<greater>(t, "greater", 3);
  add_binary<greater_equal>(t, "greater_equal", 3);
  add_binary<equal>(t, "equal", 3);
  add_binary<not_equal>(t, "not_equal", 3);
  add_binary<logical_and>(t, "logical_and", 3);
  add_binary<logical_or>(t, "logical_or", 3);
  t.push_back(unary<logical_not>("logical_not", 1));
  t.push_back(unary<abs>("abs"));
  t.push_back(unary<sqrt>("sqrt"));
  t.push_back(unary<rsqrt>("rsqrt"));
  t.push_back(unary<exp>("exp"));
  t.push_back(unary<log>("log"));
  t.push_back(unary<tanh>("tanh"));
  t.push_back(unary<erf>("erf"));
  t.push_back(unary<sigmoid>("sigmoid"));
  t.push_back(unary<softplus>("softplus", 2));
  t.push_back(unary<log_sigmoid>("log_sigmoid", 2));
  t.push_back(unary<exp2>("exp2", 1));
  t.push_back(unary<expm1>("expm1", 1));
  t.push_back(unary<log2>("log2", 1));
  t.push_back(unary<log1p>("log1p", 1));
  t.push_back(unary<sin>("sin", 1));
  t.push_back(unary<cos>("cos", 1));
  t.push_back(unary<tan>("tan", 1));
  t.push_back(unary<asin>("asin", 1));
  t.push_back(unary<acos>("acos", 1));
  t.push_back(unary<atan>("atan", 1));
  t.push_back(unary<sinh>("sinh", 1));
  t.push_back(unary<cosh>("cosh", 1));
  t.push_back(unary<erfinv>("erfinv", 1, false));
  t.push_back(unary<floor>("floor", 1));
  t.push_back(unary<ceil>("ceil", 1));
  t.push_back(unary<round>("round", 1));
  t.push_back(unary<trunc>("trunc", 1));
  t.push_back(unary<sign>("sign", 1));
  t.push_back(unary<isnan>("isnan", 1));
  t.push_back(unary<isinf>("isinf", 1));
  t.push_back(unary<isfinite>("isfinite", 1));
  t.push_back(unary<bitwise_not>("bitwise_not", 1));
  // Of single calls alone: programs have no complex numbers.
  t.push_back(named("real", make_single_unary, EIN_NAMED(real(x[0])), "($0)", 1));
  t.push_back(named("imag", make_single_unary, EIN_NAMED(imag(x[0])), "($0)", 1));
  t.push_back(named("conj", make_single_unary, EIN_NAMED(conj(x[0])), "($0)", 1));
  t.push_back(named("angle", make_single_unary, EIN_NAMED(angle(x[0])), "($0)", 1));
  t.push_back(named("complex", make_single_binary, EIN_NAMED(complex(x[0], x[1])), "($0, $1)", 1));
  t.push_back(unary<relu>("relu"));
  t.push_back(unary<gelu>("gelu"));
  t.push_back(unary<silu>("silu"));
  t.push_back({"negate", make_unary, EIN_NAMED(-x[0]), "-$0", "negate($0)"});
  t.push_back({"where", make_where, EIN_NAMED(where(x[0], x[1], x[2])), "ein::where($0, $1, $2)",
               "where($0, $1, $2)"});
  t.push_back({"clamp", make_clamp, EIN_NAMED(clamp(x[0], s.numbers[0], s.numbers[1])),
               "ein::clamp($0, $n0, $n1)", "clamp($0, $n0, $n1)", 2});
  t.push_back({"clamp by tensors", make_clamp_by_tensors, EIN_NAMED(clamp(x[0], x[1], x[2])),
               "ein::clamp($0, $1, $2)", "clamp($0, $1, $2)", 2});
  t.push_back(EIN_TRIANGLE(triu));
  t.push_back(EIN_TRIANGLE(tril));
  t.push_back({"cast", make_cast, EIN_NAMED(x[0].to(s.dtype)), "$0.to(ein::DType::$d)",
               "cast($0, \"$d\")", 6});

  // Patterns.
  t.push_back({"einsum of one", make_einsum<1>, run_einsum, "ein::einsum($0, $p$h)",
               "einsum([$0], $p$h)", 4});
  t.push_back({"einsum", make_einsum<2>, run_einsum, "ein::einsum($0, $1, $p$h)",
               "einsum([$0, $1], $p$h)", 10});
  t.push_back({"einsum of three", make_einsum<3>, run_einsum, "ein::einsum($0, $1, $2, $p$h)",
               "einsum([$0, $1, $2], $p$h)", 3});
  t.push_back({"einsum of four", make_einsum<4>, run_einsum, "ein::einsum($0, $1, $2, $3, $p$h)",
               "einsum([$0, $1, $2, $3], $p$h)", 1});
  t.push_back({"matmul", make_matmul, EIN_NAMED(matmul(x[0], x[1])), "ein::matmul($0, $1)",
               "matmul($0, $1)", 3});
  t.insert(t.end(), {reduction<Reduction::sum>(),        reduction<Reduction::mean>(),
                     reduction<Reduction::max>(),        reduction<Reduction::min>(),
                     reduction<Reduction::prod>(),       reduction<Reduction::any>(),
                     reduction<Reduction::all>(),        reduction<Reduction::logsumexp>(),
                     reduction<Reduction::var>(),        reduction<Reduction::std>(),
                     reduction<Reduction::sample_var>(), reduction<Reduction::sample_std>(),
                     reduction<Reduction::norm>(),       reduction<Reduction::nansum>(),
                     reduction<Reduction::nanmean>(),    reduction<Reduction::nanmax>(),
                     reduction<Reduction::nanmin>(),     reduction<Reduction::nanprod>(),
                     reduction<Reduction::nanvar>(),     reduction<Reduction::nanstd>()});
  t.push_back(map_of("sub", fn::sub));
  t.push_back(map_of("add", fn::add, Reduction::max));
  t.push_back(map_of("mul", fn::mul, Reduction::sum));
  t.push_back(map_of("maximum", fn::maximum, Reduction::sum));
  t.push_back(map_of("minimum", fn::minimum, Reduction::max));
#define EIN_VMAP(name, make, ...) t.push_back(vmap_of(name, make, __VA_ARGS__, #__VA_ARGS__))
  EIN_VMAP("shifted", make_vmap<1>,
           [](const ein::Tensor& x) { return ein::tanh(x) + ein::reduce(x, "... ->", "sum"); });
  EIN_VMAP("scaled", make_vmap<2>, [](const ein::Tensor& x, const ein::Tensor& y) {
    return x * y - ein::reduce(x * y, "... ->", "sum");
  });
  EIN_VMAP("chosen", make_vmap<3>,
           [](const ein::Tensor& x, const ein::Tensor& y, const ein::Tensor& z) {
             return ein::where(x < y, z, ein::maximum(x, ein::reduce(y, "... ->", "sum")));
           });
  EIN_VMAP("pairs", (make_vmap<2, 1>), [](const ein::Tensor& x, const ein::Tensor& ys) {
    return ein::vmap(
        [&](const ein::Tensor& y) { return ein::reduce((x - y) * (x - y), "... ->", "sum"); },
        "m")(ys);
  });
  EIN_VMAP("gradient", (make_vmap<2, 0, true>), [](const ein::Tensor& x, const ein::Tensor& y) {
    return ein::grad([&](const ein::Tensor& w) {
      return ein::reduce(ein::tanh(x * w) * w, "... ->", "sum");
    })(y);
  });
  EIN_VMAP("gradients of pairs", (make_vmap<2, 1, true>),
           [](const ein::Tensor& x, const ein::Tensor& ys) {
             return ein::vmap(ein::grad([&](const ein::Tensor& y) {
                                return ein::reduce(ein::sin(x * y), "... ->", "sum");
                              }),
                              "m")(ys);
           });
#undef EIN_VMAP
  t.push_back({"rearrange", make_rearrange, run_rearrange, "ein::rearrange($0, $p$h)",
               "rearrange($0, $p$h)", 6});
  t.push_back(
      {"repeat", make_repeat, run_repeat, "ein::repeat($0, $p$h)", "rearrange($0, $p$h)", 3});
  t.push_back({"stack", make_stack, EIN_NAMED(rearrange(x, runtime(s.pattern))),
               "ein::rearrange(std::vector{$0, $1}, $p)", "stack([$0, $1], $p)", 2});
  t.push_back({"pack", make_pack, EIN_NAMED(pack(x, runtime(s.pattern)).tensor),
               "ein::pack(std::vector{$a}, $p).tensor", "pack([$a], $p)", 3});
  t.push_back({"unpack", make_unpack,
               EIN_NAMED(unpack(x[0], std::array{Shape{s.whole[0]}, Shape{s.whole[1]}},
                                runtime(s.pattern))[static_cast<std::size_t>(s.whole[2])]),
               "ein::unpack($0, std::array{ein::Shape{$w0}, ein::Shape{$w1}}, $p)[$w2]",
               "unpack($0, $w, $p)", 2});

  add_sums(t);
  add_windows(t);

  // Views and copies.
  t.push_back({"at", make_at, run_at, "$0.at($i)", "at($0, $w)", 6});
  t.push_back({"slice_of", make_slice_of, EIN_NAMED(x[0].at({slice_of(x[1], s.whole[0])})),
               "$0.at({ein::slice_of($1, $w0)})", "slice_of($0, $1, $w0)", 4});
  t.push_back({"reshape", make_reshape, EIN_NAMED(x[0].reshape(shape_of(s))), "$0.reshape({$w})",
               "reshape($0, $w)", 3});
  t.push_back({"transpose", make_matrix, EIN_NAMED(x[0].transpose()), "$0.transpose()",
               "rearrange($0, \"a b -> b a\")", 2});
  t.push_back({"clone", make_unary, EIN_NAMED(x[0].clone()), "$0.clone()", "clone($0)", 2});
  t.push_back(
      {"contiguous", make_unary, EIN_NAMED(x[0].contiguous()), "$0.contiguous()", "clone($0)", 1});

  // Named operations.
  t.push_back(EIN_OF_PATTERN(softmax, make_softmax, 3));
  t.push_back(EIN_OF_PATTERN(log_softmax, make_softmax, 2));
  t.push_back(EIN_OF_PATTERN(layer_norm, make_softmax, 2));
  t.push_back({"layer_norm with weights", make_layer_norm,
               EIN_NAMED(layer_norm(x[0], x[1], x[2], runtime(s.pattern))),
               "ein::layer_norm($0, $1, $2, $p)", "layer_norm($0, $p, $1, $2)", 2});
  t.push_back(EIN_OF_PATTERN(rms_norm, make_softmax, 2));
  t.push_back(EIN_OF_PATTERN(argmax, make_position, 2));
  t.push_back(EIN_OF_PATTERN(argmin, make_position, 2));
  t.push_back(EIN_OF_PATTERN(cumsum, make_order, 3));
  t.push_back(EIN_OF_PATTERN(cumprod, make_order, 2));
  t.push_back(EIN_OF_PATTERN(cummax, make_order, 2));
  t.push_back(EIN_OF_PATTERN(cummin, make_order, 2));
  t.push_back(EIN_OF_PATTERN(logcumsumexp, make_scan_of_floats, 2));
  t.push_back({"sort", make_order, EIN_NAMED(sort(x[0], runtime(s.pattern)).values),
               "ein::sort($0, $p).values", "sort($0, $p)", 2});
  t.push_back({"sort descending", make_order,
               EIN_NAMED(sort(x[0], runtime(s.pattern), true).values),
               "ein::sort($0, $p, true).values", "sort($0, $p, True)", 1});
  t.push_back({"argsort", make_order, EIN_NAMED(sort(x[0], runtime(s.pattern)).positions),
               "ein::sort($0, $p).positions", "argsort($0, $p)", 2});
  t.push_back({"top_k", make_top_k, EIN_NAMED(top_k(x[0], runtime(s.pattern), s.whole[0]).values),
               "ein::top_k($0, $p, $w0).values", "top_k($0, $p, $w0)", 2});
  t.push_back({"top_k least", make_top_k,
               EIN_NAMED(top_k(x[0], runtime(s.pattern), s.whole[0], true).values),
               "ein::top_k($0, $p, $w0, true).values", "top_k($0, $p, $w0, True)", 1});
  t.push_back(EIN_OF_PATTERN(flip, make_moved, 2));
  t.push_back(named("roll", make_moved, EIN_NAMED(roll(x[0], runtime(s.pattern), s.whole[0])),
                    "($0, $p, $w0)", 2));
  t.push_back(named("pad", make_padded,
                    EIN_NAMED(pad(x[0], runtime(s.pattern), s.whole[0], s.whole[1], s.numbers[0])),
                    "($0, $p, $w0, $w1, $n0)", 2));
#define EIN_PAD(mode)                                                               \
  {"pad by " #mode,                                                                 \
   make_padded,                                                                     \
   EIN_NAMED(pad(x[0], runtime(s.pattern), s.whole[0], s.whole[1], PadMode::mode)), \
   "ein::pad($0, $p, $w0, $w1, ein::PadMode::" #mode ")",                           \
   "pad_by($0, $p, $w0, $w1, \"" #mode "\")",                                       \
   1}
  t.push_back(EIN_PAD(reflect));
  t.push_back(EIN_PAD(replicate));
  t.push_back(EIN_PAD(wrap));
  t.push_back(named("diagonal", make_diagonal,
                    EIN_NAMED(diagonal(x[0], runtime(s.pattern), s.whole[0])), "($0, $p, $w0)", 2));
  t.push_back(named("from_diagonal", make_with_diagonal,
                    EIN_NAMED(from_diagonal(x[0], runtime(s.pattern), s.whole[0])), "($0, $p, $w0)",
                    2));
  t.push_back(named("quantile", make_quantile,
                    EIN_NAMED(quantile(x[0], runtime(s.pattern), s.numbers[0].real())),
                    "($0, $p, $n0)", 2));
#define EIN_QUANTILE(interpolation)                                                            \
  {"quantile " #interpolation,                                                                 \
   make_quantile,                                                                              \
   EIN_NAMED(                                                                                  \
       quantile(x[0], runtime(s.pattern), s.numbers[0].real(), Interpolation::interpolation)), \
   "ein::quantile($0, $p, $n0, ein::Interpolation::" #interpolation ")",                       \
   "quantile($0, $p, $n0, \"" #interpolation "\")",                                            \
   1}
  t.push_back(EIN_QUANTILE(lower));
  t.push_back(EIN_QUANTILE(higher));
  t.push_back(EIN_QUANTILE(nearest));
  t.push_back(EIN_QUANTILE(midpoint));
#undef EIN_QUANTILE
  t.push_back(EIN_OF_PATTERN(median, make_order, 1));
  t.push_back(named("histogram", make_histogram,
                    EIN_NAMED(histogram(x[0], runtime(s.pattern), s.whole[0], -2, 3)),
                    "($0, $p, $w0, -2, 3)", 1));
  t.push_back({"searchsorted", make_searchsorted,
               EIN_NAMED(searchsorted(sort(x[0], "[v]").values, x[1], "[v], n -> n")),
               "ein::searchsorted(ein::sort($0, \"[v]\").values, $1, \"[v], n -> n\")",
               "searchsorted($0, $1)", 1});
  t.push_back({"gather", make_gather, EIN_NAMED(gather(x[0], x[1], runtime(s.pattern))),
               "ein::gather($0, $1, $p)", "gather($0, $1, $p)", 4});
  t.push_back(EIN_SCATTER(scatter_add, 4));
  t.push_back(EIN_SCATTER(scatter_prod, 2));
  t.push_back(EIN_SCATTER(scatter_max, 2));
  t.push_back(EIN_SCATTER(scatter_min, 2));
  t.push_back(
      {"one_hot", make_one_hot,
       EIN_NAMED(one_hot(x[0], runtime(s.pattern), AxisSize{"v", s.sizes[0].second}, s.dtype)),
       "ein::one_hot($0, $p$h, ein::DType::$d)", "one_hot($0, $p, \"$d\"$h)", 2});
  t.push_back({"cross_entropy", make_cross_entropy,
               EIN_NAMED(cross_entropy(x[0], x[1], runtime(s.pattern))),
               "ein::cross_entropy($0, $1, $p)", "cross_entropy($0, $1, $p)", 2});
  t.push_back(
      {"cross_entropy with options", make_cross_entropy_with_options,
       EIN_NAMED(cross_entropy(
           x[0], x[1], runtime(s.pattern),
           {.ignored = s.whole[0], .weights = abs(x[2]), .smoothing = s.numbers[0].real()})),
       "ein::cross_entropy($0, $1, $p, {.ignored = $w0, .weights = ein::abs($2), "
       ".smoothing = $n0})",
       "cross_entropy_with($0, $1, $p, self.abs($2), $w0, $n0)", 2});
  t.push_back(
      {"cross_entropy of probabilities", make_cross_entropy_of_probabilities,
       EIN_NAMED(cross_entropy(x[0], x[1], runtime(s.pattern), {.smoothing = s.numbers[0].real()})),
       "ein::cross_entropy($0, $1, $p, {.smoothing = $n0})", "cross_entropy_of($0, $1, $p, $n0)",
       2});
  t.push_back({"mse_loss", make_mse, EIN_NAMED(mse_loss(x[0], x[1])), "ein::mse_loss($0, $1)",
               "mse_loss($0, $1)", 1});
  t.push_back({"dropout", make_dropout, EIN_NAMED(dropout(x[0], s.numbers[0].real())),
               "ein::dropout($0, $n0)", "", 1});

  // Of matrices.
#define EIN_OF_MATRICES(name, make, part)                                         \
  t.push_back({#name #part, make, EIN_NAMED(name(x[0], runtime(s.pattern)) part), \
               "ein::" #name "($0, $p)" #part, #name "($0)" #part, 1})
  EIN_OF_MATRICES(inverse, make_square, );
  EIN_OF_MATRICES(det, make_square, );
  EIN_OF_MATRICES(qr, make_rectangle, .q);
  EIN_OF_MATRICES(qr, make_rectangle, .r);
  EIN_OF_MATRICES(svd, make_rectangle, .u);
  EIN_OF_MATRICES(svd, make_rectangle, .s);
  EIN_OF_MATRICES(svd, make_rectangle, .vt);
  EIN_OF_MATRICES(eigh, make_square, .values);
  EIN_OF_MATRICES(eigh, make_square, .vectors);
  t.push_back({"cholesky", make_square,
               EIN_NAMED(cholesky(x[0] * x[0] + 8 * eye(x[0].shape().back(), x[0].dtype()),
                                  runtime(s.pattern))),
               "ein::cholesky($0 * $0 + 8 * ein::eye($0.shape().back(), $0.dtype()), $p)",
               "cholesky($0)", 1});
  t.push_back({"solve", make_solve, EIN_NAMED(solve(x[0], x[1], runtime(s.pattern))),
               "ein::solve($0, $1, $p)", "solve($0, $1)", 1});
  t.push_back({"lstsq", make_lstsq, EIN_NAMED(lstsq(x[0], x[1], runtime(s.pattern))),
               "ein::lstsq($0, $1, $p)", "lstsq($0, $1)", 1});

  // Whose results' sizes are data.
  t.push_back(
      {"nonzero", make_unary, EIN_NAMED(nonzero(x[0])), "ein::nonzero($0)", "nonzero($0)", 0});
#define EIN_UNIQUE(part)                                                  \
  t.push_back({"unique." #part, make_unary, EIN_NAMED(unique(x[0]).part), \
               "ein::unique($0)." #part, "unique($0)." #part, 0})
  EIN_UNIQUE(values);
  EIN_UNIQUE(positions);
  EIN_UNIQUE(counts);

  // New tensors.
  t.push_back({"randn", make_random, EIN_NAMED(randn(shape_of(s), s.dtype)),
               "ein::randn({$w}, ein::DType::$d)", "", 1});
  t.push_back({"trunc_normal", make_random,
               EIN_NAMED(trunc_normal(shape_of(s), 1.5, -2, 1, s.dtype)),
               "ein::trunc_normal({$w}, 1.5, -2, 1, ein::DType::$d)", "", 1});
  t.push_back({"rand", make_random, EIN_NAMED(rand(shape_of(s), s.dtype)),
               "ein::rand({$w}, ein::DType::$d)", "", 1});
  t.push_back({"full", make_shape, EIN_NAMED(full(shape_of(s), s.numbers[0], s.dtype)),
               "ein::full({$w}, $n0, ein::DType::$d)", "full($w, $n0, \"$d\")", 3});
  t.push_back({"arange",
               [](Maker& maker, Step& step) {
                 step.whole = {maker.size()};
                 return true;
               },
               EIN_NAMED(arange(s.whole[0])), "ein::arange($w0)", "arange($w0)", 1});
  t.push_back({"arange from to", make_range,
               EIN_NAMED(arange(s.numbers[0], s.numbers[1], s.numbers[2])),
               "ein::arange($n0, $n1, $n2)", "arange_from($n0, $n1, $n2)", 1});
  t.push_back({"eye",
               [](Maker& maker, Step& step) {
                 step.whole = {maker.below(9)};
                 step.dtype = maker.any_dtype();
                 return true;
               },
               EIN_NAMED(eye(s.whole[0], s.dtype)), "ein::eye($w0, ein::DType::$d)",
               "eye($w0, \"$d\")", 2});

  // State and gradients.
  t.push_back({"copy_from", make_assignment, EIN_NAMED((NoGrad(), x[0].copy_from(x[1]), x[0])),
               "(ein::NoGrad(), $0.copy_from($1), $0)", "copy_from($0, $1)", 5, true});
  t.push_back(
      {"copy_from to rows", make_assignment_of_rows,
       EIN_NAMED((NoGrad(), x[0].at({slice(s.whole[0], s.whole[1])}).copy_from(x[1]), x[0])),
       "(ein::NoGrad(), $0.at({ein::slice($w)}).copy_from($1), $0)",
       "copy_from_to_rows($0, $1, $w)", 5, true});
  t.push_back(
      {"copy_from to rows at a position", make_assignment_at_position,
       EIN_NAMED((NoGrad(), x[0].at({slice(x[2], x[2] + s.whole[0])}).copy_from(x[1]), x[0])),
       "(ein::NoGrad(), $0.at({ein::slice($2, $2 + $w0)}).copy_from($1), $0)",
       "copy_from_at_position($0, $1, $2, $w0)", 5, true});
  t.push_back({"fill", make_fill, EIN_NAMED((NoGrad(), x[0].fill(s.numbers[0]), x[0])),
               "(ein::NoGrad(), $0.fill($n0), $0)", "fill($0, $n0)", 2, true});
  t.push_back({"matmul under autocast", make_matmul,
               EIN_NAMED((Autocast(DType::bf16), matmul(x[0], x[1]))),
               "(ein::Autocast(ein::DType::bf16), ein::matmul($0, $1))", "", 2});
  t.push_back(
      {"checkpoint", make_unary,
       EIN_NAMED(checkpoint([](const Tensor& y) { return mul(tanh(y), y); }, x[0])),
       "ein::checkpoint([](const ein::Tensor& y) { return ein::mul(ein::tanh(y), y); }, $0)",
       "checkpoint($0)", 2});
  t.push_back({"detach", make_unary, EIN_NAMED(x[0].detach()), "$0.detach()", "detach($0)", 1});
  t.push_back({"gradient", make_gradient,
               EIN_NAMED(gradients(x[0], x[1], std::array{x[2]}, true).front()),
               "ein::gradients($0, $1, std::array{$2}, true).front()", "gradient($0, $1, $2)", 8});
  const std::string again =
      "ein::gradients(ein::gradients($0, $1, std::array{$2}, true).front(), "
      "$3, std::array{$2}, true).front()";
  t.push_back({"gradient of order 2", make_gradient_again, EIN_NAMED(gradient_of_order(2, x)),
               again, "gradient(self.gradient($0, $1, $2), $3, $2)", 4});
  t.push_back({"gradient of order 3", make_gradient_again, EIN_NAMED(gradient_of_order(3, x)),
               "ein::gradients(" + again + ", $3, std::array{$2}, true).front()",
               "gradient(self.gradient(self.gradient($0, $1, $2), $3, $2), $3, $2)", 4});
  return t;
}

}  // namespace

bool is_of_windows(const Operation& op) { return op.name.starts_with("windows "); }

bool is_in_numpy(const Operation& op) {
  // Reductions by other names, or with an argument.
  constexpr std::string_view reductions[] = {"reduce norm", "reduce sample_", "reduce nan"};
  for (const std::string_view begin : reductions) {
    if (op.name.starts_with(begin)) return false;
  }
  if (is_of_windows(op)) return false;
  if (op.name.starts_with("quantile ") || op.name == "top_k least" || op.name.starts_with("vmap "))
    return false;
  constexpr std::string_view others[] = {"erf",
                                         "sigmoid",
                                         "relu",
                                         "gelu",
                                         "silu",
                                         "softmax",
                                         "log_softmax",
                                         "layer_norm",
                                         "rms_norm",
                                         "layer_norm with weights",
                                         "mse_loss",
                                         "cross_entropy",
                                         "checkpoint",
                                         "detach",
                                         "gradient",
                                         "one_hot",
                                         "rsqrt",
                                         "contiguous",
                                         "from_diagonal",
                                         "scatter_add",
                                         "scatter_prod",
                                         "scatter_max",
                                         "scatter_min",
                                         "reduce logsumexp",
                                         "slice_of",
                                         "clone",
                                         "softplus",
                                         "log_sigmoid",
                                         "logcumsumexp",
                                         "gradient of order 2",
                                         "gradient of order 3",
                                         "cross_entropy with options",
                                         "cross_entropy of probabilities"};
  return !op.peer.empty() && !op.writes &&
         std::find(std::begin(others), std::end(others), op.name) == std::end(others);
}

bool is_smooth(const Operation& op) {
  // What draws; what is computed in other dtypes; what gives gradients, or hides them; and
  // functions of matrices whose gradients are those of symmetric ones, or none at singular ones.
  constexpr std::string_view others[] = {
      "randn",       "rand",  "trunc_normal", "dropout",  "matmul under autocast",
      "detach",      "lstsq", "det",          "cholesky", "qr.q",
      "qr.r",        "svd.u", "svd.s",        "svd.vt",   "eigh.values",
      "eigh.vectors"};
  return !op.writes && !op.name.starts_with("gradient") &&
         std::find(std::begin(others), std::end(others), op.name) == std::end(others);
}

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = make_table();
  return table;
}

}  // namespace ein::attack
