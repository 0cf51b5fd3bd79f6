#include <ein/scalar_expr.hpp>

#include <algorithm>
#include <cassert>
#include <cstdio>

#include <ein/dtype.hpp>
#include "graph/fields.hpp"
#include "size/ask.hpp"

namespace ein {

const ScalarOpInfo& info(ScalarOp op) {
  using enum CostClass;
  static constexpr ScalarOpInfo table[] = {
      {"x", 0, none},           {"constant", 0, none},  {"size", 0, none},
      {"index", 0, none},       {"uniform", 0, none},   {"normal", 0, transcendental},
      {"neg", 1, addition},     {"abs", 1, comparison}, {"not", 1, comparison},
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) {#name, 1, transcendental},
#define EIN_ROUNDING(name, reference, host, adjoint, cuda) {#name, 1, comparison},
#define EIN_CONVERSION(name, reference, host, adjoint, cuda) {#name, 1, none},
#include <ein/detail/scalar_functions.hpp>
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  {text, 2, cost},
#include <ein/detail/binary_functions.hpp>
      {"where", 3, comparison},
  };
  static_assert(std::size(table) == static_cast<std::size_t>(ScalarOp::where) + 1);
  return table[static_cast<std::size_t>(op)];
}

namespace {

/// Appends `step` unless an equal one is there to share; returns its position. Leaves are always
/// shared.
int add(ScalarExpr& expr, const ScalarStep& step, bool share) {
  const auto found = std::find(expr.steps.begin(), expr.steps.end(), step);
  if (found != expr.steps.end() && (share || info(step.op).arity == 0))
    return static_cast<int>(found - expr.steps.begin());
  expr.steps.push_back(step);
  return static_cast<int>(expr.steps.size()) - 1;
}

/// Appends all steps of `from`; returns the position of its value.
int append(ScalarExpr& to, const ScalarExpr& from, bool share,
           const std::vector<ScalarExpr>* inputs = nullptr) {
  std::vector<int> place;
  for (ScalarStep step : from.steps) {
    if (inputs && step.op == ScalarOp::input) {
      place.push_back(append(to, (*inputs)[static_cast<std::size_t>(step.which)], share));
      continue;
    }
    step.move_arguments(place);
    place.push_back(add(to, step, share));
  }
  return place.back();
}

}  // namespace

Ex::Ex(double value)
    : Ex(ScalarStep{
          .op = ScalarOp::constant, .real = value, .integer = convert<std::int64_t>(value)}) {}

Ex Ex::input(int which) { return Ex(ScalarStep{.op = ScalarOp::input, .which = which}); }
Ex Ex::index(int axis) { return Ex(ScalarStep{.op = ScalarOp::index, .which = axis}); }
Ex Ex::integer(std::int64_t value) {
  return Ex(
      ScalarStep{.op = ScalarOp::constant, .real = static_cast<double>(value), .integer = value});
}
Ex Ex::size(Size value) {
  return value.is_number() ? integer(value.word())
                           : Ex(ScalarStep{.op = ScalarOp::size, .size = value});
}
Ex Ex::unsigned_integer(std::uint64_t value) {
  return Ex(ScalarStep{.op = ScalarOp::constant,
                       .real = static_cast<double>(value),
                       .integer = static_cast<std::int64_t>(value)});
}
Ex Ex::of(const ScalarExpr& expr) {
  std::vector<char> needed(expr.steps.size(), 0);
  needed.back() = 1;
  for (std::size_t s = expr.steps.size(); s-- > 0;) {
    for (int arg : expr.steps[s].args) {
      if (needed[s] && arg >= 0) needed[static_cast<std::size_t>(arg)] = 1;
    }
  }
  ScalarExpr kept;
  std::vector<int> place(expr.steps.size(), -1);
  for (std::size_t s = 0; s < expr.steps.size(); ++s) {
    if (!needed[s]) continue;
    ScalarStep step = expr.steps[s];
    step.move_arguments(place);
    place[s] = static_cast<int>(kept.steps.size());
    kept.steps.push_back(step);
  }
  return Ex(std::move(kept));
}
Ex Ex::random(ScalarOp distribution, std::uint64_t seed, std::uint64_t stream) {
  return Ex(ScalarStep{.op = distribution, .seed = seed, .stream = stream});
}
Ex Ex::random_of_run(ScalarOp distribution, std::uint64_t stream) {
  return Ex(ScalarStep{.op = distribution, .stream = stream, .of_run = true});
}

Ex Ex::random_at(ScalarStep random, const Ex& position) {
  ScalarExpr expr = position.expr_;
  random.args[0] = static_cast<int>(expr.steps.size()) - 1;
  expr.steps.push_back(random);
  return Ex(std::move(expr));
}

namespace {
ScalarExpr applied(ScalarOp op, std::initializer_list<const ScalarExpr*> args) {
  assert(static_cast<int>(args.size()) == info(op).arity);
  ScalarExpr expr;
  ScalarStep step{.op = op};
  std::size_t i = 0;
  for (const ScalarExpr* arg : args) step.args[i++] = append(expr, *arg, true);
  const int last = add(expr, step, true);
  if (last + 1 != static_cast<int>(expr.steps.size()))
    expr.steps.resize(static_cast<std::size_t>(last) + 1);
  return expr;
}
}  // namespace

Ex Ex::apply(ScalarOp op, const Ex& a) { return Ex(applied(op, {&a.expr_})); }
Ex Ex::apply(ScalarOp op, const Ex& a, const Ex& b) {
  return Ex(applied(op, {&a.expr_, &b.expr_}));
}
Ex Ex::apply(ScalarOp op, const Ex& a, const Ex& b, const Ex& c) {
  return Ex(applied(op, {&a.expr_, &b.expr_, &c.expr_}));
}

bool draws(const ScalarExpr& expr) {
  return std::any_of(expr.steps.begin(), expr.steps.end(), [](const ScalarStep& step) {
    return step.op == ScalarOp::uniform || step.op == ScalarOp::normal;
  });
}

bool operator==(const ScalarStep& a, const ScalarStep& b) { return equal_fields(a, b); }

ScalarExpr substitute(const ScalarExpr& outer, const std::vector<ScalarExpr>& inner) {
  ScalarExpr expr;
  // Work that two operations both do stays counted twice: fusion changes bytes, never operations.
  const int last = append(expr, outer, false, &inner);
  // The value must be the last step; steps after it were only needed by nothing.
  expr.steps.resize(static_cast<std::size_t>(last) + 1);
  return expr;
}

ScalarExpr without_slopes(const ScalarExpr& expr) {
  const auto has_slope = [](const ScalarStep& step) { return step.op == ScalarOp::with_slope; };
  if (std::none_of(expr.steps.begin(), expr.steps.end(), has_slope)) return expr;
  ScalarExpr values;
  std::vector<int> place;
  for (ScalarStep step : expr.steps) {
    step.move_arguments(place);
    if (has_slope(step)) {
      place.push_back(step.args[0]);
      continue;
    }
    place.push_back(static_cast<int>(values.steps.size()));
    values.steps.push_back(step);
  }
  values.steps.resize(static_cast<std::size_t>(place.back()) + 1);
  return Ex::of(values);
}

std::string to_string(const ScalarExpr& with_derivatives) {
  const ScalarExpr expr = without_slopes(with_derivatives);
  constexpr std::size_t longest_repeated =
      100;  // characters of a part that is written each time it is used
  std::vector<int> uses(expr.steps.size(), 0);
  for (const ScalarStep& step : expr.steps) {
    for (int arg : step.args) {
      if (arg >= 0) ++uses[static_cast<std::size_t>(arg)];
    }
  }
  std::vector<std::string> text;
  std::string named;  // long parts that are used more than once
  int names = 0;
  const auto give_name = [&] {
    if (uses[text.size() - 1] < 2 || text.back().size() <= longest_repeated) return;
    const std::string name = "t" + std::to_string(names++);
    named += (named.empty() ? " with " : ", ") + name + " = " + text.back();
    text.back() = name;
  };
  for (const ScalarStep& step : expr.steps) {
    if (!text.empty()) give_name();
    const auto arg = [&](int i) -> const std::string& {
      return text[static_cast<std::size_t>(step.args[i])];
    };
    const ScalarOpInfo& row = info(step.op);
    const std::string word = std::string(row.name) + (step.short_form ? "_of_16_bits" : "");
    switch (row.arity) {
      case 0:
        if (step.op == ScalarOp::input) text.push_back("x" + std::to_string(step.which));
        if (step.op == ScalarOp::index) text.push_back("i" + std::to_string(step.which));
        if (step.op == ScalarOp::uniform || step.op == ScalarOp::normal)
          text.push_back(step.args[0] < 0 ? word : word + "(" + arg(0) + ")");
        if (step.op == ScalarOp::size) text.push_back(to_string(step.size));
        if (step.op == ScalarOp::constant) {
          char number[32];
          std::snprintf(number, sizeof number, "%.7g", step.real);
          text.push_back(number);
        }
        break;
      case 2:
        if (word.size() <= 2 && word != "or") {
          std::string binary = "(" + arg(0) + " " + word + " " + arg(1) + ")";
          text.push_back(std::move(binary));
          break;
        }
        [[fallthrough]];
      default: {
        std::string call = word + "(" + arg(0);
        for (int i = 1; i < row.arity; ++i) call += ", " + arg(i);
        text.push_back(call + ")");
      }
    }
  }
  return text.back() + named;
}

}  // namespace ein
