// Random calls against two oracles: what the structure of the pattern says, index by index, and the
// reference interpreter on the graph of the call.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <iostream>
#include <numeric>
#include <optional>
#include <sstream>

#include <ein/ein.hpp>
#include <ein/graph.hpp>

#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "oracle/interpret.hpp"
#include "support/random_pattern.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {
namespace {

using Random = std::mt19937_64;
using Values = std::vector<double>;

std::uint64_t suite_seed() { return 20240611 + first_seed(); }

/// Calls f(sizes...) with as many arguments as there are sizes.
constexpr std::size_t most_given = 8;
template <class F, class... Sizes>
Tensor with_sizes(std::span<const AxisSize> sizes, const F& f, const Sizes&... sizes_so_far) {
  if constexpr (sizeof...(Sizes) < most_given) {
    if (sizeof...(Sizes) < sizes.size())
      return with_sizes(sizes, f, sizes_so_far..., sizes[sizeof...(Sizes)]);
  }
  return f(sizes_so_far...);
}

/// A result as it ought to be. Where sums are not exact, how large what was summed is.
struct Expected {
  Values values;
  Values error;  // absolute, before the rounding to the result's dtype
};

/// One call: a pattern, the numbers of its operands, and the tensors that hold them.
struct Case {
  TestPattern pattern;
  DType dtype = DType::f32;
  std::optional<DType> said{};  // the dtype of the result, by the call
  Reduction reduction = Reduction::sum;
  bool stacked = false;
  std::vector<Values> values;
  std::vector<Tensor> tensors;

  std::vector<AxisSize> sizes() const {
    std::vector<AxisSize> sizes;
    for (int id : pattern.given) {
      const TestAxis& axis = pattern.axes[static_cast<std::size_t>(id)];
      sizes.push_back({axis.text, axis.size});
    }
    return sizes;
  }
  std::string describe() const {
    std::ostringstream text;
    text << name(pattern.op) << " \"" << pattern.text << "\" " << name(dtype);
    if (said) text << " as " << name(*said);
    if (pattern.op == Operation::reduce) text << " " << name(reduction);
    if (stacked) text << " of a list";
    for (const Tensor& x : tensors)
      text << " " << x.shape().to_string() << " strides " << x.strides().to_string();
    for (const AxisSize& size : sizes()) text << " " << size.name << "=" << size.size;
    return text.str();
  }
};

/// Whether an axis of an input is not one of the output: those beside size 1, and any number of
/// axes under `...`.
bool drops_an_axis(const TestPattern& pattern) {
  const auto words = [](const std::string& text) {
    std::vector<std::string> found;
    std::string word;
    for (char c : text + " ") {
      if (!std::isspace(static_cast<unsigned char>(c)) && c != '(' && c != ')' && c != ',')
        word += c;
      else if (!word.empty()) {
        found.push_back(word.substr(0, word.find('=')));  // without its size
        word.clear();
      }
    }
    return found;
  };
  const std::size_t arrow = pattern.text.find("->");
  const std::vector<std::string> kept = words(pattern.text.substr(arrow + 2));
  for (const std::string& word : words(pattern.text.substr(0, arrow))) {
    const bool is_number = std::isdigit(static_cast<unsigned char>(word[0]));
    if ((is_number && std::stoll(word) == 1) ||
        (!is_number && word != "_" && std::find(kept.begin(), kept.end(), word) != kept.end()))
      continue;
    return true;
  }
  return false;
}

/// The dtype that the result of a call ought to have.
DType result_dtype_of(const Case& c) {
  if (c.said) return *c.said;
  const bool adds = c.pattern.op == Operation::einsum
                        ? drops_an_axis(c.pattern)
                        : c.pattern.op == Operation::reduce &&
                              (c.reduction == Reduction::sum || c.reduction == Reduction::prod);
  return adds && is_integral(c.dtype) && c.dtype != DType::u64 ? DType::i64 : c.dtype;
}

double compute_eps(DType dtype) {
  return dtype == DType::f64 ? finfo(DType::f64).eps : finfo(DType::f32).eps;
}

class OracleTest : public testing::Test {
 protected:
  void SetUp() override { std::cout << "seed " << suite_seed() << "\n"; }

  /// Checks `count` calls that `make` makes, each from a seed of its own; stops at the third wrong
  /// one.
  template <class Make>
  void check_cases(std::uint64_t suite, unsigned count, Make make) {
    int failures = 0;
    for (unsigned i = 0; i < count && failures < 3; ++i) {
      Random random(suite_seed() + (suite << 32) + i);
      const std::optional<Case> c = make(random);
      if (!c) continue;
      const std::string wrong = check(*c);
      if (wrong.empty()) continue;
      ++failures;
      ADD_FAILURE() << "case " << i << ": " << c->describe() << "\n" << wrong;
    }
  }

  // --- making cases ---

  static std::int64_t below(Random& random, std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  }

  static DType random_dtype(Random& random) {
    return real_dtypes[below(random, std::size(real_dtypes))];
  }

  static double random_value(const Case& c, Random& random) {
    if (c.dtype == DType::boolean) return static_cast<double>(below(random, 2));
    if (is_unsigned(c.dtype))
      return static_cast<double>(below(random, below(random, 8) == 0 ? 200 : 4));
    const double whole = static_cast<double>(below(random, 5) - 2);
    return is_integral(c.dtype) ? whole : static_cast<double>(below(random, 9) - 4) / 2;
  }

  /// Numbers for each operand; equal along its dimensions marked in `constant`.
  static Values random_values(const Case& c, const Shape& shape, const std::vector<bool>& constant,
                              Random& random) {
    Values values(static_cast<std::size_t>(numel(shape)));
    const Strides strides = contiguous_strides(shape);
    std::int64_t factors = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::int64_t first = static_cast<std::int64_t>(i);
      for (std::size_t d = 0; d < shape.rank(); ++d) {
        if (constant[d]) first -= first / strides[d] % shape[d] * strides[d];
      }
      if (first < static_cast<std::int64_t>(i)) {
        values[i] = values[static_cast<std::size_t>(first)];
        continue;
      }
      values[i] = random_value(c, random);
      if (c.pattern.op != Operation::reduce || !is_product(c.reduction) ||
          c.dtype == DType::boolean)
        continue;
      // Products of few powers of two stay exact.
      if (++factors > 40 || std::abs(values[i]) == 1.5) values[i] = 1;
    }
    return values;
  }

  static void fill_operands(Case& c, Random& random) {
    for (const TestSide& input : c.pattern.inputs) {
      const Shape shape = c.pattern.shape(input);
      std::vector<bool> constant(shape.rank());
      // A repeated element would count many times in a product.
      const bool may_repeat = !is_product(c.reduction);
      for (std::size_t d = 0; d < constant.size(); ++d)
        constant[d] = may_repeat && below(random, 12) == 0;
      const Values values = random_values(c, shape, constant, random);
      if (!c.stacked) {
        c.tensors.push_back(scattered_tensor(shape, c.dtype, constant, random));
        set_values(c.tensors.back(), values);
      } else {
        const Shape one(std::span(shape.begin() + 1, shape.rank() - 1));
        const auto n = static_cast<std::size_t>(numel(one));
        for (std::size_t k = 0; k < static_cast<std::size_t>(shape[0]); ++k) {
          c.tensors.push_back(
              scattered_tensor(one, c.dtype, std::vector<bool>(one.rank()), random));
          set_values(c.tensors.back(),
                     Values(values.begin() + static_cast<std::ptrdiff_t>(k * n),
                            values.begin() + static_cast<std::ptrdiff_t>((k + 1) * n)));
        }
      }
      c.values.push_back(values);
    }
  }

  static std::optional<Case> make_case(Operation op, std::size_t operands, PatternMaker maker,
                                       Random& random) {
    Case c;
    c.dtype = random_dtype(random);
    c.pattern = maker.make(op, operands);
    if (c.pattern.given.size() > most_given) return std::nullopt;
    if (op == Operation::reduce) {
      c.reduction = static_cast<Reduction>(below(random, 20));
      const bool floats_only =
          c.reduction == Reduction::mean || c.reduction >= Reduction::logsumexp;
      if (floats_only && !is_floating(c.dtype)) c.dtype = DType::f32;
    }
    // Often another dtype of the same kind; floats and integers do not compare.
    if (below(random, 4) == 0) {
      const DType said = random_dtype(random);
      // Doubles do not hold what u64 makes of numbers below 0.
      const bool fits = said != DType::u64 || is_unsigned(c.dtype);
      if (is_floating(said) == is_floating(c.dtype) && fits) c.said = said;
    }
    if (op != Operation::einsum) {
      const Shape shape = c.pattern.shape(c.pattern.inputs[0]);
      c.stacked = below(random, 8) == 0 && shape.rank() > 0 && shape[0] > 0 && shape[0] < 6;
    }
    fill_operands(c, random);
    return c;
  }

  // --- what ought to come out ---

  static Expected expected_products(const Case& c) {
    const auto n = static_cast<std::size_t>(numel(c.pattern.shape(c.pattern.output)));
    Expected e{Values(n, 0), Values(n, 0)};
    Values magnitude(n, 0), terms(n, 0);
    const std::size_t operands = c.values.size();
    c.pattern.for_each_choice([&](const std::vector<std::int64_t>& place) {
      double product = 1;
      for (std::size_t k = 0; k < operands; ++k)
        product *= c.values[k][static_cast<std::size_t>(place[k])];
      const auto to = static_cast<std::size_t>(place[operands]);
      e.values[to] += product;
      magnitude[to] += std::abs(product);
      ++terms[to];
    });
    for (std::size_t i = 0; i < n; ++i) {
      // Halves up to 2: sums of products are whole multiples of 2^-operands, exact while below 2^24
      // of them.
      const bool exact = terms[i] * std::pow(4, operands) < 1 << 24;
      if (!exact) e.error[i] = (terms[i] + 6) * compute_eps(c.dtype) * magnitude[i];
    }
    return e;
  }

  static Expected expected_move(const Case& c) {
    const auto n = static_cast<std::size_t>(numel(c.pattern.shape(c.pattern.output)));
    Expected e{Values(n, NAN), Values(n, 0)};
    c.pattern.for_each_choice([&](const std::vector<std::int64_t>& place) {
      e.values[static_cast<std::size_t>(place[1])] =
          c.values[0][static_cast<std::size_t>(place[0])];
    });
    return e;
  }

  static bool is_product(Reduction reduction) {
    return reduction == Reduction::prod || reduction == Reduction::nanprod;
  }
  /// The value of a reduction, and how wrong a result may be before it is rounded.
  static std::pair<double, double> reduced(Reduction reduction, const Values& x, double eps) {
    const auto n = static_cast<double>(x.size());
    double sum = 0, prod = 1, max = -INFINITY, min = INFINITY, magnitude = 0;
    bool any = false, all = true;
    for (double v : x) {
      sum += v;
      prod *= v;
      max = std::max(max, v);
      min = std::min(min, v);
      magnitude = std::max(magnitude, std::abs(v));
      any |= v != 0;
      all &= v != 0;
    }
    const double mean = sum / n;
    double squares = 0, exps = 0, norm = 0;
    for (double v : x) {
      squares += (v - mean) * (v - mean);
      norm += v * v;
      exps += std::exp(v - max);
    }
    const double var = squares / n;
    // The library's own error, and that of the plain sums here.
    const double var_error =
        16 * eps * magnitude * std::sqrt(var) + n * finfo(DType::f64).eps * var;
    const auto root = [&](double value, double error) {
      return std::pair(std::sqrt(value),
                       value > 0 ? 4 * eps * std::sqrt(value) + error / std::sqrt(value) : 0.0);
    };
    switch (reduction) {
      case Reduction::sum:
      case Reduction::nansum:  // there is no NaN
        return {sum, x.size() * 16 < 1 << 24 ? 0 : 64 * eps * n * magnitude};
      case Reduction::mean:
      case Reduction::nanmean:
        return {mean, 4 * eps * magnitude};
      case Reduction::max:
      case Reduction::nanmax:
        return {max, 0};
      case Reduction::min:
      case Reduction::nanmin:
        return {min, 0};
      case Reduction::prod:
      case Reduction::nanprod:
        return {prod, 0};
      case Reduction::any:
        return {any, 0};
      case Reduction::all:
        return {all, 0};
      case Reduction::logsumexp:
        return {x.empty() ? -INFINITY : max + std::log(exps),
                8 * eps * (magnitude + 1 + std::log(std::max(n, 1.0)))};
      case Reduction::var:
      case Reduction::nanvar:
        return {var, var_error};
      case Reduction::std:
      case Reduction::nanstd:
        return root(var, var_error);
      case Reduction::sample_var:
        return {n > 1 ? squares / (n - 1) : NAN, var_error * n / (n - 1)};
      case Reduction::sample_std:
        return root(n > 1 ? squares / (n - 1) : NAN, var_error * n / (n - 1));
      case Reduction::norm:
        return {std::sqrt(norm), 16 * eps * std::sqrt(norm)};
    }
    return {NAN, 0};
  }

  static Expected expected_reduction(const Case& c) {
    const auto n = static_cast<std::size_t>(numel(c.pattern.shape(c.pattern.output)));
    std::vector<Values> elements(n);
    c.pattern.for_each_choice([&](const std::vector<std::int64_t>& place) {
      elements[static_cast<std::size_t>(place[1])].push_back(
          c.values[0][static_cast<std::size_t>(place[0])]);
    });
    Expected e{Values(n), Values(n)};
    for (std::size_t i = 0; i < n; ++i) {
      std::tie(e.values[i], e.error[i]) = reduced(c.reduction, elements[i], compute_eps(c.dtype));
    }
    return e;
  }

  static Expected expected(const Case& c) {
    switch (c.pattern.op) {
      case Operation::einsum:
        return expected_products(c);
      case Operation::reduce:
        return expected_reduction(c);
      default:
        return expected_move(c);
    }
  }

  /// Whether the reduction has no value: a largest or smallest of no elements.
  static bool is_undefined(const Case& c) {
    if (c.pattern.op != Operation::reduce ||
        (c.reduction != Reduction::max && c.reduction != Reduction::min &&
         c.reduction != Reduction::nanmax && c.reduction != Reduction::nanmin))
      return false;
    return numel(c.pattern.shape(c.pattern.output)) > 0 &&
           numel(c.pattern.shape(c.pattern.inputs[0])) == 0;
  }

  // --- checking ---

  static Tensor run_as(const Case& c, RuntimeText pattern, std::span<const Tensor> list,
                       ResultDType said) {
    const std::vector<AxisSize> sizes = c.sizes();
    return with_sizes(sizes, [&](const auto&... s) {
      switch (c.pattern.op) {
        case Operation::einsum:
          return einsum(list, pattern, s..., said);
        case Operation::reduce:
          return c.stacked ? reduce(list, pattern, c.reduction, said, s...)
                           : reduce(list[0], pattern, c.reduction, s..., said);
        case Operation::rearrange:
          return c.stacked ? rearrange(list, pattern, s..., said)
                           : rearrange(list[0], pattern, said, s...);
        default:
          return c.stacked ? repeat(list, pattern, s..., said)
                           : repeat(list[0], pattern, said, s...);
      }
    });
  }

  static Tensor run(const Case& c) {
    const std::vector<AxisSize> sizes = c.sizes();
    const auto pattern = runtime(c.pattern.text);
    const std::span<const Tensor> list(c.tensors);
    if (c.said) return run_as(c, pattern, list, as(*c.said));
    switch (c.pattern.op) {
      case Operation::einsum:
        return with_sizes(sizes, [&](const auto&... s) { return einsum(list, pattern, s...); });
      case Operation::reduce:
        return with_sizes(sizes, [&](const auto&... s) {
          return c.stacked ? reduce(list, pattern, c.reduction, s...)
                           : reduce(list[0], pattern, c.reduction, s...);
        });
      case Operation::rearrange:
        return with_sizes(sizes, [&](const auto&... s) {
          return c.stacked ? rearrange(list, pattern, s...) : rearrange(list[0], pattern, s...);
        });
      default:
        return with_sizes(sizes, [&](const auto&... s) {
          return c.stacked ? repeat(list, pattern, s...) : repeat(list[0], pattern, s...);
        });
    }
  }

  static Values interpret(const Case& c) {
    const auto reading = grammar::parse_pattern(c.pattern.text);
    const std::vector<AxisSize> sizes = c.sizes();
    std::vector<OperandType> types;
    std::vector<Values> inputs;
    for (const Tensor& x : c.tensors) {
      types.push_back({x.shape(), x.dtype()});
      inputs.push_back(get_values(x));
    }
    const Graph graph = build_graph({c.pattern.op,
                                     reading.buffer.pattern(c.pattern.text),
                                     sizes,
                                     c.reduction,
                                     {},
                                     c.stacked,
                                     false,
                                     {},
                                     c.said},
                                    types);
    return Interpreter<>::run(graph, inputs)[0];
  }

  static std::string compare(const Values& got, const Expected& e, DType dtype) {
    const double eps = is_floating(dtype) ? finfo(dtype).eps : 0;
    const double tiny = is_floating(dtype) ? finfo(dtype).smallest_subnormal : 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = stored(e.values[i], dtype);
      if (got[i] == want || (std::isnan(got[i]) && std::isnan(want))) continue;
      if (e.error[i] > 0 && std::abs(got[i] - want) <= e.error[i] + eps * std::abs(want) + tiny)
        continue;
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", ought to be " +
             std::to_string(want);
    }
    return "";
  }

  /// Whether strides can express the result: a moved element's address must be linear in its
  /// indices.
  static bool has_view(const Case& c) {
    const Shape shape = c.pattern.shape(c.pattern.output);
    std::vector<std::int64_t> from(static_cast<std::size_t>(c.tensors[0].numel()));
    const auto* first = static_cast<const std::byte*>(c.tensors[0].raw_data());
    for_each_element(c.tensors[0],
                     [&](const std::byte* at, std::size_t i) { from[i] = at - first; });
    std::vector<std::int64_t> address(static_cast<std::size_t>(numel(shape)));
    c.pattern.for_each_choice([&](const std::vector<std::int64_t>& place) {
      address[static_cast<std::size_t>(place[1])] = from[static_cast<std::size_t>(place[0])];
    });
    const Strides steps = contiguous_strides(shape);
    for (std::size_t i = 0; i < address.size(); ++i) {
      std::int64_t linear = address[0];
      for (std::size_t d = 0; d < shape.rank(); ++d) {
        if (shape[d] < 2) continue;
        linear += static_cast<std::int64_t>(i) / steps[d] % shape[d] *
                  (address[static_cast<std::size_t>(steps[d])] - address[0]);
      }
      if (linear != address[i]) return false;
    }
    return true;
  }

  /// What is wrong with the library's answer; nothing, if it is right.
  static std::string check(const Case& c) {
    Tensor result;
    try {
      result = run(c);
    } catch (const Error& error) {
      if (is_undefined(c) && error.kind() == ErrorKind::reduction) return "";
      return std::string("an Error: ") + error.what();
    }
    if (is_undefined(c)) return "no Error for a reduction over no elements";
    const Shape shape = c.pattern.shape(c.pattern.output);
    if (!(result.shape() == shape))
      return "the shape is " + result.shape().to_string() + ", ought to be " + shape.to_string();
    const DType dtype = result_dtype_of(c);
    if (result.dtype() != dtype)
      return "the dtype is " + std::string(name(result.dtype())) + ", ought to be " +
             std::string(name(dtype));
    const Expected e = expected(c);
    if (const std::string wrong = compare(get_values(result), e, dtype); !wrong.empty())
      return "the result's " + wrong;

    const bool only_moves =
        c.pattern.op == Operation::rearrange || c.pattern.op == Operation::repeat;
    if (only_moves && !c.stacked && dtype == c.dtype && result.numel() > 0 &&
        result.same_storage(c.tensors[0]) != has_view(c)) {
      return has_view(c) ? "a copy, where a view would do" : "a view, where there is none";
    }

    std::int64_t elements = result.numel();
    for (const Values& values : c.values) elements += static_cast<std::int64_t>(values.size());
    if (elements > 100000) return "";  // the interpreter takes its time
    Values interpreted = interpret(c);
    Expected exact = e;
    for (std::size_t i = 0; i < interpreted.size(); ++i) {
      interpreted[i] = is_integral(dtype) ? stored(interpreted[i], dtype) : interpreted[i];
      exact.values[i] = is_integral(dtype) ? stored(e.values[i], dtype) : e.values[i];
      // Both compute in f64, in orders of their own.
      exact.error[i] = 1e-12 * (1 + std::abs(e.values[i]));
    }
    const std::string wrong = compare(interpreted, exact, is_floating(dtype) ? DType::f64 : dtype);
    return wrong.empty() ? "" : "the interpreter's " + wrong;
  }

  // --- pack and unpack ---

  /// Tensors whose axes under '*' differ, beside the one that they make together.
  struct PackCase {
    DType dtype;
    std::string text;
    std::vector<Shape> middles;
    std::vector<Values> parts;
    Shape before, after;
    Values whole;
    Shape shape_of(const Shape& middle) const {
      Shape shape = before;
      for (std::int64_t n : middle) shape.push_back(n);
      for (std::int64_t n : after) shape.push_back(n);
      return shape;
    }
  };

  static PackCase make_pack_case(Random& random) {
    const auto size = [&] { return below(random, 30) == 0 ? 0 : 1 + below(random, 5); };
    PackCase c{.dtype = random_dtype(random),
               .text = "",
               .middles = {},
               .parts = {},
               .before = {},
               .after = {},
               .whole = {}};
    for (std::int64_t n = below(random, 3); n > 0; --n) c.before.push_back(size());
    for (std::int64_t n = below(random, 3); n > 0; --n) c.after.push_back(size());
    const char* const names[] = {"b", "c", "h1", "\u03c9"};
    for (std::size_t d = 0; d < c.before.rank(); ++d) c.text += std::string(names[d]) + " ";
    c.text += "*";
    for (std::size_t d = 0; d < c.after.rank(); ++d) c.text += std::string(" ") + names[2 + d];

    std::int64_t total = 0;
    for (std::int64_t n = 1 + below(random, 4); n > 0; --n) {
      Shape middle;
      for (std::int64_t d = below(random, 4); d > 0; --d) middle.push_back(size());
      total += numel(middle);
      c.middles.push_back(middle);
    }
    Case element;
    element.dtype = c.dtype;
    const std::int64_t inner = numel(c.after);
    c.whole.resize(static_cast<std::size_t>(numel(c.before) * total * inner));
    std::int64_t done = 0;
    for (const Shape& middle : c.middles) {
      const std::int64_t run = numel(middle) * inner;
      Values part(static_cast<std::size_t>(numel(c.before) * run));
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(part.size()); ++i) {
        part[static_cast<std::size_t>(i)] = random_value(element, random);
        c.whole[static_cast<std::size_t>(i / run * total * inner + done * inner + i % run)] =
            part[static_cast<std::size_t>(i)];
      }
      done += numel(middle);
      c.parts.push_back(std::move(part));
    }
    return c;
  }

  static Tensor scattered(const Values& values, const Shape& shape, DType dtype, Random& random) {
    const Tensor x = scattered_tensor(shape, dtype, std::vector<bool>(shape.rank()), random);
    set_values(x, values);
    return x;
  }

  static void check_pack(const PackCase& c, Random& random) {
    std::vector<Tensor> tensors;
    for (std::size_t k = 0; k < c.parts.size(); ++k) {
      tensors.push_back(scattered(c.parts[k], c.shape_of(c.middles[k]), c.dtype, random));
    }
    const Packed packed = pack(tensors, runtime(c.text));
    std::int64_t total = 0;
    for (const Shape& middle : c.middles) total += numel(middle);
    EXPECT_EQ(packed.shapes, c.middles);
    EXPECT_EQ(packed.tensor.shape(), c.shape_of({total}));
    EXPECT_EQ(get_values(packed.tensor), c.whole);

    // The way back, with one size left to be found.
    std::vector<Shape> pieces = c.middles;
    Shape& open =
        pieces[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(pieces.size())))];
    if (open.rank() > 0 && numel(open) > 0 && below(random, 2) == 0) open[0] = -1;
    const Tensor whole = scattered(c.whole, c.shape_of({total}), c.dtype, random);
    const std::vector<Tensor> unpacked = unpack(whole, pieces, runtime(c.text));
    ASSERT_EQ(unpacked.size(), c.parts.size());
    for (std::size_t k = 0; k < unpacked.size(); ++k) {
      EXPECT_EQ(unpacked[k].shape(), c.shape_of(c.middles[k]));
      EXPECT_EQ(get_values(unpacked[k]), c.parts[k]);
      EXPECT_TRUE(unpacked[k].same_storage(whole));
    }

    std::vector<OperandType> types;
    for (const Tensor& x : tensors) types.push_back({x.shape(), x.dtype()});
    const auto reading = grammar::parse_pattern(c.text);
    const Graph packing =
        build_graph({.op = Operation::pack, .pattern = reading.buffer.pattern(c.text)}, types);
    EXPECT_EQ(Interpreter<>::run(packing, c.parts)[0], c.whole);
    const OperandType type{whole.shape(), c.dtype};
    const Graph unpacking = build_graph({.op = Operation::unpack,
                                         .pattern = reading.buffer.pattern(c.text),
                                         .packed_shapes = pieces},
                                        {&type, 1});
    EXPECT_EQ(Interpreter<>::run(unpacking, {c.whole}), c.parts);
  }

  // --- the suites ---

  void check_einsum(unsigned count) {
    check_cases(1, count, [](Random& random) {
      const auto operands = static_cast<std::size_t>(1 + below(random, 6) * below(random, 7) / 6);
      return make_case(Operation::einsum, operands, {random, below(random, 20) == 0 ? 40000 : 2000},
                       random);
    });
  }
  void check_reduce(unsigned count) {
    check_cases(2, count, [](Random& random) {
      return make_case(Operation::reduce, 1, {random, below(random, 20) == 0 ? 60000 : 3000},
                       random);
    });
  }
  void check_moves(unsigned count) {
    check_cases(3, count, [](Random& random) {
      const Operation op = below(random, 2) == 0 ? Operation::rearrange : Operation::repeat;
      return make_case(op, 1, {random, below(random, 20) == 0 ? 60000 : 3000}, random);
    });
  }
  void check_large(unsigned count) {
    check_cases(4, count, [](Random& random) {
      constexpr Operation operations[] = {Operation::einsum, Operation::reduce,
                                          Operation::rearrange, Operation::repeat};
      const Operation op = operations[below(random, 4)];
      const std::int64_t budget = op == Operation::einsum ? 3000000 : 800000;
      const auto operands =
          static_cast<std::size_t>(op == Operation::einsum ? 2 + below(random, 5) / 4 : 1);
      return make_case(op, operands, {random, budget, large_sizes, 6}, random);
    });
  }
  void check_packing(unsigned count) {
    for (unsigned i = 0; i < count && !HasFailure(); ++i) {
      Random random(suite_seed() + (std::uint64_t{5} << 32) + i);
      const PackCase c = make_pack_case(random);
      SCOPED_TRACE("case " + std::to_string(i) + ": \"" + c.text + "\" before " +
                   c.before.to_string() + " after " + c.after.to_string());
      try {
        check_pack(c, random);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
};

TEST_F(OracleTest, Einsum) { check_einsum(seeds_or(40000)); }
TEST_F(OracleTest, Reduce) { check_reduce(seeds_or(20000)); }
TEST_F(OracleTest, RearrangeAndRepeat) { check_moves(seeds_or(20000)); }
TEST_F(OracleTest, PackAndUnpack) { check_packing(seeds_or(5000)); }
TEST_F(OracleTest, LargeSizes) { check_large(seeds_or(240)); }

}  // namespace
}  // namespace ein::test
