// Random compositions of public calls: gradients and second derivatives against central differences
// in f64, and compiled against eager.
#include <gtest/gtest.h>

#include <optional>

#include <ein/compile.hpp>
#include <ein/elementwise.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "support/differences.hpp"

namespace ein {
namespace {

using test::Tensors;

/// A function of some tensors: calls one after another, each on tensors that are there already.
struct Composition {
  struct Step {
    std::function<Tensor(const Tensors&)> call;
    std::string text;
  };
  Tensors inputs;
  std::vector<Step> steps;
  Tensors weights;  // of the results of the last calls, whose weighted sum is the value
  std::vector<std::size_t> weighted;

  Tensor operator()(const Tensors& arguments) const {
    Tensors all = arguments;
    for (const Step& step : steps) all.push_back(step.call(all));
    Tensor value = zeros({}, DType::f64);
    for (std::size_t i = 0; i < weighted.size(); ++i) {
      value = value + reduce(all[weighted[i]] * weights[i], "... ->", Reduction::sum);
    }
    return value;
  }
  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      text += "  x" + std::to_string(i) + ": " + inputs[i].shape().to_string() + "\n";
    for (std::size_t i = 0; i < steps.size(); ++i)
      text += "  x" + std::to_string(inputs.size() + i) + " = " + steps[i].text + "\n";
    return text;
  }
};

std::string name_of(std::size_t i) { return "x" + std::to_string(i); }

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  Composition make() {
    result_ = {};
    all_.clear();
    const int inputs = 1 + below(3);
    for (int i = 0; i < inputs; ++i) {
      Shape shape;
      for (int rank = below(8) == 0 ? 0 : 1 + below(3); rank > 0; --rank)
        shape.push_back(1 + below(4));
      result_.inputs.push_back(test::normal_values(random_, shape));
      all_.push_back(result_.inputs.back());
    }
    for (int calls = 3 + below(6); calls > 0; --calls) {
      add_call();
      // Where values grow, differences lose their digits.
      for (const double value : all_.back().to_vector<double>()) {
        if (std::abs(value) < 4) continue;
        const std::size_t last = all_.size() - 1;
        add("tanh(" + name_of(last) + ")", [last](const Tensors& x) { return tanh(x[last]); });
        break;
      }
    }
    for (std::size_t i = all_.size(); i-- > 0 && result_.weighted.size() < 3;) {
      result_.weighted.push_back(i);
      result_.weights.push_back(test::normal_values(random_, all_[i].shape()));
    }
    return result_;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  std::size_t any() { return static_cast<std::size_t>(below(static_cast<int>(all_.size()))); }
  std::optional<std::size_t> any_with_axes(std::size_t rank = 1) {
    for (int tries = 0; tries < 10; ++tries) {
      const std::size_t i = any();
      if (all_[i].rank() >= rank) return i;
    }
    return std::nullopt;
  }
  const Shape& shape(std::size_t i) const { return all_[i].shape(); }

  void add(std::string text, std::function<Tensor(const Tensors&)> call) {
    all_.push_back(call(all_));
    result_.steps.push_back({std::move(call), std::move(text)});
  }

  void add_call() {
    switch (below(16)) {
      case 0:
      case 1:
        return add_function();
      case 2:
      case 3:
        return add_binary();
      case 4:
        return add_choice();
      case 5:
      case 6:
        return add_reduction();
      case 7:
        return add_rearrange();
      case 8:
        return add_repeat();
      case 9:
      case 10:
      case 11:
        return add_einsum();
      case 12:
        return add_view();
      case 13:
        return add_pack();
      case 14:
        return add_named();
      default:
        return add_positions();
    }
  }

  void add_function() {
    struct Row {
      const char* text;
      Tensor (*f)(const Tensor&);
    };
    static const std::vector<Row> rows{
        {"tanh", [](const Tensor& x) { return tanh(x); }},
        {"exp tanh", [](const Tensor& x) { return exp(tanh(x)); }},
        {"log(x² + 1/2)", [](const Tensor& x) { return log(x * x + 0.5); }},
        {"sqrt(x² + 1/2)", [](const Tensor& x) { return sqrt(pow(x, 2) + 0.5); }},
        {"rsqrt(x² + 1/2)", [](const Tensor& x) { return rsqrt(x * x + 0.5); }},
        {"erf", [](const Tensor& x) { return erf(x); }},
        {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
        {"gelu", [](const Tensor& x) { return gelu(x); }},
        {"silu", [](const Tensor& x) { return silu(x); }},
        {"relu", [](const Tensor& x) { return relu(x); }},
        {"abs", [](const Tensor& x) { return abs(x); }},
        {"neg", [](const Tensor& x) { return -x; }},
        {"clamp", [](const Tensor& x) { return clamp(x, -0.8, 1.1); }},
        {"1 / (x² + 1)", [](const Tensor& x) { return 1 / (x * x + 1); }},
    };
    const std::size_t i = any();
    const Row& row = one_of(rows);
    add(row.text + (" of " + name_of(i)), [i, f = row.f](const Tensors& x) { return f(x[i]); });
  }

  void add_binary() {
    struct Row {
      const char* text;
      Tensor (*f)(const Tensor&, const Tensor&);
    };
    static const std::vector<Row> rows{
        {"a + b", [](const Tensor& a, const Tensor& b) { return a + b; }},
        {"a - b", [](const Tensor& a, const Tensor& b) { return a - b; }},
        {"a · b", [](const Tensor& a, const Tensor& b) { return a * b; }},
        {"a / (b² + 1/2)", [](const Tensor& a, const Tensor& b) { return a / (b * b + 0.5); }},
        {"(a² + 1/2) ^ tanh b",
         [](const Tensor& a, const Tensor& b) { return pow(a * a + 0.5, tanh(b)); }},
        {"min(a, b)", [](const Tensor& a, const Tensor& b) { return minimum(a, b); }},
        {"max(a, b)", [](const Tensor& a, const Tensor& b) { return maximum(a, b); }},
    };
    const std::size_t i = any();
    std::vector<std::size_t> partners;
    for (std::size_t j = 0; j < all_.size(); ++j) {
      if (do_broadcast(shape(i), shape(j))) partners.push_back(j);
    }
    const std::size_t j = one_of(partners);
    const Row& row = one_of(rows);
    add(row.text + (" of " + name_of(i)) + " and " + name_of(j),
        [i, j, f = row.f](const Tensors& x) { return f(x[i], x[j]); });
  }
  static bool do_broadcast(const Shape& a, const Shape& b) {
    const std::size_t common = std::min(a.rank(), b.rank());
    std::int64_t size = 1;
    for (std::size_t d = 1; d <= std::max(a.rank(), b.rank()); ++d) {
      const Size m = d <= a.rank() ? a[a.rank() - d] : Size(1),
                 n = d <= b.rank() ? b[b.rank() - d] : Size(1);
      if (d <= common && m != n && m != 1 && n != 1) return false;
      size *= std::max(m, n);
    }
    return size <= most_elements;
  }

  void add_choice() {
    const std::size_t i = any();
    if (all_[i].rank() >= 2 && below(2) == 0) {
      const int diagonal = below(5) - 2;
      if (below(2) == 0)
        return add("triu " + name_of(i),
                   [=](const Tensors& x) { return triu(x[i], "... [i j]", diagonal); });
      return add("tril " + name_of(i),
                 [=](const Tensors& x) { return tril(x[i], "... [i j]", diagonal); });
    }
    const Tensor condition = test::normal_values(random_, shape(i)) > 0.3;
    if (below(2) == 0) {
      return add("where of " + name_of(i),
                 [=](const Tensors& x) { return where(condition, x[i] * x[i], 0.5); });
    }
    add("where of " + name_of(i),
        [=](const Tensors& x) { return where(condition, -x[i], tanh(x[i])); });
  }

  /// "a b c" for the axes of a tensor, by number.
  static std::string axes(const std::vector<int>& which) {
    std::string text;
    for (int axis : which)
      text += (text.empty() ? "" : " ") + std::string(1, static_cast<char>('a' + axis));
    return text;
  }
  std::vector<int> all_axes(std::size_t i) const {
    std::vector<int> which(all_[i].rank());
    std::iota(which.begin(), which.end(), 0);
    return which;
  }
  /// Neighbours merged here and there: "a (b c)".
  std::string grouped(const std::vector<int>& which) {
    std::string text;
    for (std::size_t k = 0; k < which.size(); ++k) {
      const std::string axis(1, static_cast<char>('a' + which[k]));
      const bool merges = k + 1 < which.size() && below(3) == 0;
      text += merges
                  ? "(" + axis + " " + std::string(1, static_cast<char>('a' + which[k + 1])) + ") "
                  : axis + " ";
      k += merges;
    }
    return text;
  }

  void add_reduction() {
    static const std::vector<Reduction> reductions{
        Reduction::sum,  Reduction::mean,      Reduction::max, Reduction::min,
        Reduction::prod, Reduction::logsumexp, Reduction::var, Reduction::std};
    const auto i = any_with_axes();
    if (!i) return add_function();
    std::vector<int> kept;
    for (int axis : all_axes(*i)) {
      if (below(2) == 0) kept.push_back(axis);
    }
    std::shuffle(kept.begin(), kept.end(), random_);
    const std::string pattern = axes(all_axes(*i)) + " -> " + grouped(kept);
    const Reduction reduction = one_of(reductions);
    const std::string text =
        std::string(name(reduction)) + " " + name_of(*i) + " \"" + pattern + "\"";
    // A standard deviation of 0 has no slope.
    const bool reduces = numel_of(kept, *i) < all_[*i].numel();
    if (reduction == Reduction::std) {
      if (!reduces) return add_function();
      const Tensor noise = 2 * test::normal_values(random_, shape(*i));
      return add(text + " + noise", [=, i = *i](const Tensors& x) {
        return reduce(x[i] + noise, runtime(pattern), reduction);
      });
    }
    // Repeated elements tie for the greatest.
    if (reduction == Reduction::max || reduction == Reduction::min) {
      const Tensor noise = test::normal_values(random_, shape(*i));
      return add(text + " + noise", [=, i = *i](const Tensors& x) {
        return reduce(x[i] + noise, runtime(pattern), reduction);
      });
    }
    add(text, [=, i = *i](const Tensors& x) { return reduce(x[i], runtime(pattern), reduction); });
  }
  std::int64_t numel_of(const std::vector<int>& which, std::size_t i) const {
    std::int64_t count = 1;
    for (int axis : which) count *= shape(i)[static_cast<std::size_t>(axis)];
    return count;
  }

  void add_rearrange() {
    const std::size_t i = any();
    std::vector<int> order = all_axes(i);
    std::shuffle(order.begin(), order.end(), random_);
    std::string to = grouped(order);
    if (below(4) == 0) to += " 1";
    const std::string pattern = axes(all_axes(i)) + " -> " + to;
    add("rearrange " + name_of(i) + " \"" + pattern + "\"",
        [=](const Tensors& x) { return rearrange(x[i], runtime(pattern)); });
  }

  void add_repeat() {
    const std::size_t i = any();
    if (all_[i].numel() > most_elements / 3) return add_rearrange();
    std::vector<int> order = all_axes(i);
    order.push_back(static_cast<int>(order.size()));
    std::shuffle(order.begin(), order.end(), random_);
    const RuntimeAxisSize times =
        axis(std::string(1, static_cast<char>('a' + all_[i].rank())), 2 + below(2));
    const std::string pattern = axes(all_axes(i)) + " -> " + grouped(order);
    add("repeat " + name_of(i) + " \"" + pattern + "\"",
        [=](const Tensors& x) { return repeat(x[i], runtime(pattern), times); });
  }

  /// Operands whose axes have names that say their sizes, so that any may meet.
  void add_einsum() {
    std::vector<std::size_t> operands;
    std::vector<std::string> names;
    std::string pattern;
    for (int count = 1 + below(3); count > 0; --count) {
      const std::size_t i = any();
      if (operands.size() > 0) pattern += ", ";
      for (std::int64_t size : shape(i)) {
        const std::string name =
            std::string(1, static_cast<char>('p' + below(3))) + std::to_string(size);
        pattern += name + " ";
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
      operands.push_back(i);
    }
    std::shuffle(names.begin(), names.end(), random_);
    pattern += "->";
    std::int64_t elements = 1;
    for (const std::string& name : names) {
      const std::int64_t size = std::stoll(name.substr(1));
      if (below(2) == 0 || elements * size > most_elements) continue;
      pattern += " " + name;
      elements *= size;
    }
    std::string text = "einsum";
    for (std::size_t i : operands) text += " " + name_of(i);
    add(text + " \"" + pattern + "\"", [=](const Tensors& x) {
      Tensors given;
      for (std::size_t i : operands) given.push_back(x[i]);
      return einsum(given, runtime(pattern));
    });
  }

  void add_view() {
    const auto i = any_with_axes();
    if (!i) return add_function();
    const std::size_t k = *i;
    if (all_[k].rank() == 2 && below(3) == 0)
      return add("transpose " + name_of(k), [k](const Tensors& x) { return x[k].transpose(); });
    if (below(3) == 0)
      return add("reshape " + name_of(k), [k](const Tensors& x) {
        return x[k].reshape({1, x[k].numel()});
      });
    const std::int64_t size = shape(k)[0];
    const std::int64_t begin = below(static_cast<int>(size)), step = 1 + below(2);
    if (below(2) == 0)
      return add("position of " + name_of(k), [=](const Tensors& x) { return x[k].at({begin}); });
    add("slice of " + name_of(k),
        [=](const Tensors& x) { return x[k].at({slice(begin, size, step)}); });
  }

  void add_pack() {
    const std::size_t i = any(), j = any();
    if (shape(i) == shape(j) && all_[i].numel() * 2 <= most_elements) {
      return add("stack " + name_of(i) + " " + name_of(j), [=](const Tensors& x) {
        return rearrange(Tensors{x[i], x[j]}, "k ... -> ... k");
      });
    }
    if (all_[i].numel() + all_[j].numel() > most_elements) return add_function();
    if (below(2) == 0) {
      return add("pack " + name_of(i) + " " + name_of(j), [=](const Tensors& x) {
        return pack(Tensors{x[i], x[j]}, "*").tensor;
      });
    }
    add("repacked " + name_of(i) + " " + name_of(j), [=](const Tensors& x) {
      const Packed packed = pack(Tensors{x[i], x[j]}, "*");
      return unpack(packed.tensor * packed.tensor, packed.shapes, "*")[1];
    });
  }

  void add_named() {
    const auto i = any_with_axes();
    if (!i) return add_function();
    const std::size_t k = *i;
    const int rank = static_cast<int>(all_[k].rank()), marked = below(rank);
    std::string pattern;
    for (int axis = 0; axis < rank; ++axis) {
      const std::string name(1, static_cast<char>('a' + axis));
      pattern += axis == marked ? "[" + name + "] " : name + " ";
    }
    const auto step = [&](const char* what, Tensor (*f)(const Tensor&, const std::string&)) {
      add(what + (" " + name_of(k)) + " \"" + pattern + "\"",
          [=](const Tensors& x) { return f(x[k], pattern); });
    };
    switch (below(16)) {
      case 0:
        return step("softmax",
                    [](const Tensor& x, const std::string& p) { return softmax(x, runtime(p)); });
      case 1:
        return step("log_softmax", [](const Tensor& x, const std::string& p) {
          return log_softmax(x, runtime(p));
        });
      case 2:
        return step("layer_norm", [](const Tensor& x, const std::string& p) {
          return layer_norm(x, runtime(p), 0.1);
        });
      case 3:
        return step("rms_norm", [](const Tensor& x, const std::string& p) {
          return rms_norm(x, runtime(p), 0.1);
        });
      case 4:
        return step("sort", [](const Tensor& x, const std::string& p) {
          return sort(x, runtime(p)).values;
        });
      case 5:
      case 6:
        return step("flip",
                    [](const Tensor& x, const std::string& p) { return flip(x, runtime(p)); });
      case 7:
        return step("roll",
                    [](const Tensor& x, const std::string& p) { return roll(x, runtime(p), 2); });
      case 8:
        if (all_[k].numel() * 4 > most_elements) return add_function();
        return step("pad", [](const Tensor& x, const std::string& p) {
          return pad(x, runtime(p), 1, 2, 0.5);
        });
      case 9:
        if (all_[k].numel() * 4 > most_elements) return add_function();
        return step("pad, wrap", [](const Tensor& x, const std::string& p) {
          return pad(x, runtime(p), 1, 1, PadMode::wrap);
        });
      case 10:
        if (all_[k].numel() * 4 > most_elements) return add_function();
        return step("pad, replicate", [](const Tensor& x, const std::string& p) {
          return pad(x, runtime(p), 1, 2, PadMode::replicate);
        });
      case 11:
        if (all_[k].numel() * 5 > most_elements) return add_function();
        return step("from_diagonal", [](const Tensor& x, const std::string& p) {
          return from_diagonal(x, runtime(p), 1);
        });
      case 12:
        return step("quantile", [](const Tensor& x, const std::string& p) {
          return quantile(x, runtime(p), {0.3, 1});
        });
      default:
        return step("cumsum",
                    [](const Tensor& x, const std::string& p) { return cumsum(x, runtime(p)); });
    }
  }

  Tensor random_positions(std::int64_t count, std::int64_t size) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(below(static_cast<int>(size)));
    return from_vector(values);
  }

  void add_positions() {
    const auto i = any_with_axes();
    if (!i) return add_function();
    const std::size_t k = *i;
    const std::int64_t rows = shape(k)[0];
    switch (below(3)) {
      case 0: {
        const Tensor positions = random_positions(1 + below(4), rows);
        if (all_[k].numel() / rows * positions.numel() > most_elements) return add_function();
        return add("gather " + name_of(k), [=](const Tensors& x) {
          return gather(x[k], positions, "[v] ..., s -> s ...");
        });
      }
      case 1: {
        const RuntimeAxisSize size = axis("v", 1 + below(4));
        const Tensor positions = random_positions(rows, size.size);
        if (below(3) == 0) {
          return add("cumprod " + name_of(k),
                     [=](const Tensors& x) { return cumprod(x[k], runtime("[s] ...")); });
        }
        return add("scatter_add " + name_of(k), [=](const Tensors& x) {
          return scatter_add(x[k], positions, runtime("s ..., s -> [v] ..."), size);
        });
      }
      default: {
        const std::int64_t classes = shape(k)[all_[k].rank() - 1];
        const std::size_t rank = all_[k].rank();
        const Tensor targets = random_positions(all_[k].numel() / classes, classes);
        return add("cross_entropy " + name_of(k), [=](const Tensors& x) {
          const Tensor logits =
              rank == 1 ? x[k].view({1, classes}) : x[k].reshape({targets.numel(), classes});
          return cross_entropy(logits, targets, "b [v], b");
        });
      }
    }
  }

  static constexpr std::int64_t most_elements = 64;
  std::mt19937_64 random_;
  Composition result_;
  Tensors all_;
};

/// x + t · direction for each tensor.
Tensors moved(const Tensors& x, const Tensors& directions, double t) {
  Tensors result;
  for (std::size_t i = 0; i < x.size(); ++i) result.push_back(x[i] + t * directions[i]);
  return result;
}

/// Of f along a direction, or nothing where the function has a kink within reach: there two step
/// lengths disagree.
template <class F>
std::optional<double> slope(F&& f, double size) {
  const double wide = test::central_difference(f, 8e-4), narrow = test::central_difference(f, 2e-4);
  if (std::abs(wide - narrow) > 1e-7 * std::abs(narrow) + 1e-8 * size) return std::nullopt;
  return narrow;
}

struct Checked {
  int compared = 0, at_kinks = 0;
};

/// <gradient, direction> against the slope along it.
template <class F>
void compare(F&& value, const Tensors& gradient, const Tensors& directions, Checked& checked) {
  double expected = 0, size = 0.1;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    expected += test::inner_product(gradient[i], directions[i]);
    size += test::inner_product(abs(gradient[i].detach()), abs(directions[i]));
  }
  const std::optional<double> found = slope(value, size);
  if (!found) {
    ++checked.at_kinks;
    return;
  }
  ++checked.compared;
  EXPECT_NEAR(expected, *found, test::relative_error * size);
}

Tensors random_directions(const Tensors& like, std::mt19937_64& random) {
  Tensors directions;
  for (const Tensor& x : like) directions.push_back(test::normal_values(random, x.shape()));
  return directions;
}

Tensors gradient_of(const Composition& f, const Tensors& at, bool create_graph = false) {
  Tensors leaves;
  for (const Tensor& x : at) leaves.push_back(create_graph ? x : x.detach().requires_grad(true));
  return gradients(f(leaves), leaves, create_graph);
}

TEST(GradientOfRandomGraphs, First) {
  Checked checked;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Composition f = Maker(seed).make();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + f.text());
    std::mt19937_64 random(seed);
    const Tensors gradient = gradient_of(f, f.inputs);
    for (int i = 0; i < 3; ++i) {
      const Tensors directions = random_directions(f.inputs, random);
      compare([&](double t) { return f(moved(f.inputs, directions, t)).item(); }, gradient,
              directions, checked);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(checked.compared, 1450) << checked.at_kinks << " at kinks";
}

TEST(GradientOfRandomGraphs, Second) {
  Checked checked;
  for (std::uint64_t seed = 1001; seed <= 1050; ++seed) {
    const Composition f = Maker(seed).make();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + f.text());
    std::mt19937_64 random(seed);
    const Tensors v = random_directions(f.inputs, random);
    Tensors leaves;
    for (const Tensor& x : f.inputs) leaves.push_back(x.clone().requires_grad(true));
    const Tensors first = gradient_of(f, leaves, true);
    Tensor product = zeros({}, DType::f64);
    for (std::size_t i = 0; i < v.size(); ++i)
      product = product + reduce(first[i] * v[i], "... ->", Reduction::sum);
    Tensors second;
    if (product.requires_grad()) {
      second = gradients(product, leaves);
    } else {  // f is linear
      for (const Tensor& x : f.inputs) second.push_back(zeros(x.shape(), DType::f64));
    }
    for (int i = 0; i < 3; ++i) {
      const Tensors directions = random_directions(f.inputs, random);
      const auto along_v = [&](double t) {
        const Tensors gradient = gradient_of(f, moved(f.inputs, directions, t));
        double sum = 0;
        for (std::size_t k = 0; k < v.size(); ++k) sum += test::inner_product(gradient[k], v[k]);
        return sum;
      };
      compare(along_v, second, directions, checked);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(checked.compared, 140) << checked.at_kinks << " at kinks";
}

TEST(CompiledRandomGraphs, AgreeWithEager) {
  for (std::uint64_t seed = 2001; seed <= 2200; ++seed) {
    const Composition f = Maker(seed).make();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + f.text());
    const auto value_and_gradient = [&](const Tensors& at) {
      Tensors leaves;
      for (const Tensor& x : at) leaves.push_back(x.detach().requires_grad(true));
      const Tensor value = f(leaves);
      Tensors all = gradients(value, leaves);
      all.push_back(value.detach());
      return all;
    };
    const Tensors& x = f.inputs;
    const Tensors eager = value_and_gradient(x);
    Tensors compiled;
    if (x.size() == 1)
      compiled = compile([&](const Tensor& a) { return value_and_gradient({a}); })(x[0]);
    if (x.size() == 2) {
      compiled = compile([&](const Tensor& a, const Tensor& b) {
        return value_and_gradient({a, b});
      })(x[0], x[1]);
    }
    if (x.size() == 3) {
      compiled = compile([&](const Tensor& a, const Tensor& b, const Tensor& c) {
        return value_and_gradient({a, b, c});
      })(x[0], x[1], x[2]);
    }
    ASSERT_EQ(compiled.size(), eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i) {
      EXPECT_TRUE(all_close(compiled[i], eager[i], 1e-10, 1e-12))
          << "result " << i << ": " << to_string(compiled[i]) << "\nnot " << to_string(eager[i]);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ein
