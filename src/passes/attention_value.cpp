#include "passes/attention_value.hpp"

#include <algorithm>
#include <cmath>

#include "size/ask.hpp"

namespace ein::attention {
namespace {

using Kind = Value::Kind;

bool is_polynomial(const Value& v) { return v.kind == Kind::polynomial; }

bool has_function(const ScalarExpr& expr) { return !expr.steps.empty(); }

Value sum(const Value& a, const Value& b, double sign) {
  // 0 has any factor.
  if (a.factor != b.factor && !a.terms.empty() && !b.terms.empty()) return {};
  Value result = a;
  if (a.terms.empty()) result.factor = b.factor;
  for (const auto& [powers, coefficient] : b.terms) {
    double& c = result.terms[powers];
    c += sign * coefficient;
    if (c == 0) result.terms.erase(powers);
  }
  return result;
}

ScalarExpr product_of(const ScalarExpr& a, const ScalarExpr& b) {
  if (!has_function(a)) return b;
  if (!has_function(b)) return a;
  return Ex::of(a) * Ex::of(b);
}

Value product_of(const Value& a, const Value& b) {
  Value result = Value::constant(0);
  result.factor = product_of(a.factor, b.factor);
  for (const auto& [p, x] : a.terms) {
    for (const auto& [q, y] : b.terms) {
      Powers powers{};
      for (std::size_t i = 0; i < atoms; ++i) powers[i] = p[i] + q[i];
      double& c = result.terms[powers];
      c += x * y;
      if (c == 0) result.terms.erase(powers);
    }
  }
  return result;
}

std::optional<Value> inverse(const Value& a) {
  if (!is_polynomial(a) || a.terms.size() != 1) return std::nullopt;
  Powers powers = a.terms.begin()->first;
  for (int& power : powers) power = -power;
  Value result = Value::of(powers, 1 / a.terms.begin()->second);
  if (has_function(a.factor)) result.factor = Ex(1.0) / Ex::of(a.factor);
  return result;
}

// --- positions ---

/// Constants are positions too.
std::optional<Value> as_position(const Value& v) {
  if (v.kind == Kind::position) return v;
  const std::optional<double> c = v.as_constant();
  if (!c) return std::nullopt;
  return Value{.kind = Kind::position, .offset = *c};
}

Value linear(const Value& a, const Value& b, double sign) {
  const auto x = as_position(a), y = as_position(b);
  if (!x || !y) return {};
  return {.kind = Kind::position,
          .key = x->key + sign * y->key,
          .query = x->query + sign * y->query,
          .offset = x->offset + sign * y->offset};
}

/// Whether a - b + more <= 0, of whole numbers.
Value at_most(const Value& a, const Value& b, double more) {
  const Value difference = linear(a, b, -1);
  const double offset = difference.offset + more;
  if (difference.kind != Kind::position || offset != std::floor(offset) || std::abs(offset) > 1e15)
    return {};
  const auto whole = static_cast<std::int64_t>(offset);
  if (difference.key == 1 && difference.query == -1)
    return {.kind = Kind::visible, .seen = {.reach = -whole}};
  if (difference.key == -1 && difference.query == 1)
    return {.kind = Kind::visible, .seen = {.back = -whole}};
  return {};
}

// --- masks ---

using Limit = std::optional<std::int64_t>;

Limit least(const Limit& a, const Limit& b) { return a && b ? std::min(*a, *b) : a ? a : b; }

Seen both(const Seen& a, const Seen& b) { return {least(a.reach, b.reach), least(a.back, b.back)}; }

/// Whether all that `a` sees `b` sees.
bool is_within(const Seen& a, const Seen& b) { return both(a, b) == a; }

Value opposite(Value v) {
  if (v.kind == Kind::hidden) {
    v.kind = Kind::visible;
  } else if (v.kind != Kind::visible) {
    return {};
  } else if (v.seen.reach && v.seen.back) {
    v.kind = Kind::hidden;
  } else if (v.seen.reach) {
    v.seen = {.back = -(*v.seen.reach + 1)};
  } else {
    v.seen = {.reach = -(*v.seen.back + 1)};
  }
  return v;
}

Value both(const Value& a, const Value& b) {
  if (a.kind != Kind::visible || b.kind != Kind::visible) return {};
  return {.kind = Kind::visible, .seen = both(a.seen, b.seen)};
}

// --- functions of the product ---

Ex position(double key, double query, double offset) {
  const auto term = [](double factor, int axis) {
    const Ex index = Ex::index(axis);
    return factor == 1 ? index : Ex(factor) * index;
  };
  if (key == 0 && query == 0) return Ex(offset);
  const Ex sum = key == 0     ? term(query, 0)
                 : query == 0 ? term(key, 1)
                              : term(query, 0) + term(key, 1);
  return offset == 0 ? sum : sum + Ex(offset);
}

Ex is_seen(const Seen& seen) {
  const Ex query = Ex::index(0), key = Ex::index(1);
  const auto limit = [](std::int64_t x) { return Ex(static_cast<double>(x)); };
  const auto to = [&] { return Ex::apply(ScalarOp::le, key, query + limit(*seen.reach)); };
  const auto from = [&] { return Ex::apply(ScalarOp::ge, key, query - limit(*seen.back)); };
  if (seen.reach && seen.back) return Ex::apply(ScalarOp::logical_and, to(), from());
  return seen.reach ? to() : from();
}

std::optional<Ex> as_function(const std::map<Powers, double>& terms) {
  if (terms.empty()) return Ex(0.0);
  std::optional<Ex> sum;
  for (const auto& [powers, coefficient] : terms) {
    for (std::size_t atom = 0; atom < atoms; ++atom) {
      if (powers[atom] < 0 || (atom != product && powers[atom] != 0)) return std::nullopt;
    }
    Ex term = coefficient;
    for (int i = 0; i < powers[product]; ++i) term = term * Ex::input(0);
    sum = sum ? *sum + term : term;
  }
  return sum;
}

/// Where a key is seen.
Ex unmasked(const Scores& scores) {
  return has_function(scores.function) ? Ex::of(scores.function) : Ex::input(0) * Ex(scores.scale);
}

/// What does not depend on more than the product, operands beside it and indices.
std::optional<Ex> as_function(const Value& v) {
  switch (v.kind) {
    case Kind::polynomial: {
      const std::optional<Ex> sum = as_function(v.terms);
      return sum && has_function(v.factor) ? *sum * Ex::of(v.factor) : sum;
    }
    case Kind::position:
      return position(v.key, v.query, v.offset);
    case Kind::visible:
      return is_seen(v.seen);
    case Kind::hidden:
      return Ex::apply(ScalarOp::logical_not, is_seen(v.seen));
    case Kind::scores:
      if (v.scores.seen != Seen{}) return std::nullopt;
      return unmasked(v.scores);
    default:
      return std::nullopt;
  }
}

Value function(ScalarExpr expr) {
  return {.kind = Kind::scores, .scores = {.function = std::move(expr)}};
}

/// The value of a step of known functions.
Value function_of(const ScalarStep& step, const std::vector<Value>& values) {
  std::vector<Ex> args;
  for (int i = 0; i < info(step.op).arity; ++i) {
    const std::optional<Ex> arg = as_function(values[static_cast<std::size_t>(step.args[i])]);
    if (!arg) return {};
    args.push_back(*arg);
  }
  switch (args.size()) {
    case 1:
      return function(Ex::apply(step.op, args[0]));
    case 2:
      return function(Ex::apply(step.op, args[0], args[1]));
    case 3:
      return function(Ex::apply(step.op, args[0], args[1], args[2]));
    default:
      return {};
  }
}

// --- steps ---

Value scaled(const Value& a, double by) {
  std::optional<Scores> scores = a.as_scores();
  if (!scores || !(by > 0)) return {};
  if (has_function(scores->function))
    scores->function = Ex::of(scores->function) * Ex(by);
  else
    scores->scale *= by;
  return {.kind = Kind::scores, .scores = *scores};
}

/// A polynomial of weights and the like, times a function.
Value with_factor(Value v, const ScalarExpr& factor) {
  v.factor = product_of(v.factor, factor);
  return v;
}

Value times(const Value& a, const Value& b) {
  if (is_polynomial(a) && is_polynomial(b)) return product_of(a, b);
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const std::optional<double> by = y->as_constant();
    if (x->kind == Kind::position && by)
      return {.kind = Kind::position,
              .key = x->key * *by,
              .query = x->query * *by,
              .offset = x->offset * *by};
  }
  const auto is_nothing = [](const Value& x, const Value& y) {
    return x.as_constant() == 0 && y.kind == Kind::is_maximum;
  };
  if (is_nothing(a, b) || is_nothing(b, a)) return Value::constant(0);
  if (a.kind == Kind::scores && b.as_constant()) return scaled(a, *b.as_constant());
  if (b.kind == Kind::scores && a.as_constant()) return scaled(b, *a.as_constant());
  if (is_polynomial(a) && !as_function(a)) {
    if (const auto factor = as_function(b)) return with_factor(a, *factor);
  }
  if (is_polynomial(b) && !as_function(b)) {
    if (const auto factor = as_function(a)) return with_factor(b, *factor);
  }
  return {};
}

Value divided(const Value& a, const Value& b) {
  if (a.as_constant() == 0 && b.kind == Kind::ties) return a;
  if (const std::optional<Value> by = inverse(b)) return times(a, *by);
  const std::optional<Ex> by = as_function(b);
  if (by && is_polynomial(a) && !as_function(a)) return with_factor(a, Ex(1.0) / *by);
  return {};
}

Value of_scores(Kind kind, const Value& like) { return {.kind = kind, .scores = like.scores}; }

Value total_of(const Value& a, const Value& b) {
  if (is_polynomial(a) && is_polynomial(b)) return sum(a, b, 1);
  if (a.kind == Kind::maximum && b.kind == Kind::log_total) return of_scores(Kind::log_sum, a);
  if (b.kind == Kind::maximum && a.kind == Kind::log_total) return of_scores(Kind::log_sum, b);
  return linear(a, b, 1);
}

Value difference(const Value& a, const Value& b) {
  if (is_polynomial(a) && is_polynomial(b)) return sum(a, b, -1);
  const bool is_same = a.as_scores() == b.scores;
  if (b.kind == Kind::maximum && is_same) return of_scores(Kind::shifted, b);
  if (b.kind == Kind::log_sum && is_same) return of_scores(Kind::log_weights, b);
  if (a.kind == Kind::shifted && b.kind == Kind::log_total) return of_scores(Kind::log_weights, a);
  // It is finite, or all results of the query are NaN anyway.
  if (a.kind == Kind::maximum && b.kind == Kind::maximum && a.scores == b.scores)
    return Value::constant(0);
  return linear(a, b, -1);
}

Value exponential(const Value& a) {
  if (a.kind == Kind::shifted) return Value::of(first_power(weight));
  if (a.kind != Kind::log_weights) return {};
  Powers powers = first_power(weight);
  powers[total] = -1;
  return Value::of(powers);
}

Value logarithm(const Value& a) {
  const bool is_total = is_polynomial(a) && !has_function(a.factor) &&
                        a.terms == std::map<Powers, double>{{first_power(total), 1.0}};
  return is_total ? Value{.kind = Kind::log_total} : Value{};
}

Value are_equal(const Value& a, const Value& b) {
  if (a.as_constant() && b.as_constant())
    return Value::constant(*a.as_constant() == *b.as_constant() ? 1 : 0);
  const Value &scores = a.kind == Kind::maximum ? b : a, &maximum = &scores == &a ? b : a;
  if (maximum.kind != Kind::maximum || scores.as_scores() != maximum.scores) return {};
  return of_scores(Kind::is_maximum, maximum);
}

/// Whether a function is -inf, and a weight 0, where a condition does not hold.
bool hides(ScalarExpr function, const ScalarExpr& condition) {
  const auto part = [&](int step) {
    ScalarExpr expr = function;
    expr.steps.resize(static_cast<std::size_t>(step) + 1);
    return Ex::of(expr).expr();
  };
  while (has_function(function) && function.steps.back().op == ScalarOp::where) {
    const ScalarStep& where = function.steps.back();
    const ScalarStep& otherwise = function.steps[static_cast<std::size_t>(where.args[2])];
    if (otherwise.op != ScalarOp::constant || otherwise.real != -INFINITY) return false;
    if (part(where.args[0]) == Ex::of(condition).expr()) return true;
    function = part(where.args[1]);
  }
  return false;
}

Value chosen(const Value& condition, const Value& yes, const Value& no,
             const std::optional<Scores>& known) {
  const std::optional<double> otherwise = no.as_constant();
  if (!otherwise) return {};
  // Neither side of it is anything else.
  if (condition.kind == Kind::is_maximum && yes.as_constant() == 0 && *otherwise == 0) return no;
  std::optional<Scores> scores = yes.as_scores();
  if (scores && *otherwise == -INFINITY) {
    if (condition.kind == Kind::visible) {
      scores->seen = both(scores->seen, condition.seen);
    } else if (const std::optional<Ex> is = as_function(condition)) {
      scores->function = where(*is, unmasked(*scores), Ex(-INFINITY));
      scores->scale = 1;
    } else {
      return {};
    }
    return {.kind = Kind::scores, .scores = *scores};
  }
  if (*otherwise != 0 || !is_polynomial(yes) || as_function(yes)) return {};
  // Weights are 0 anyway where a key is not seen.
  const std::optional<Ex> is = as_function(condition);
  const bool is_hidden =
      known && ((condition.kind == Kind::visible && is_within(known->seen, condition.seen)) ||
                (is && hides(known->function, *is)));
  const bool has_weights = std::all_of(yes.terms.begin(), yes.terms.end(),
                                       [](const auto& term) { return term.first[weight] > 0; });
  if (is_hidden && has_weights) return yes;
  return is ? with_factor(yes, where(*is, Ex(1.0), Ex(0.0))) : Value{};
}

/// With the constant behind.
Value chosen_of(const Value& condition, const Value& yes, const Value& no,
                const std::optional<Scores>& known) {
  if (condition.as_constant()) return *condition.as_constant() != 0 ? yes : no;
  if (!yes.as_constant() || no.as_constant()) return chosen(condition, yes, no, known);
  Value turned = opposite(condition);
  if (!turned.is_known()) {
    if (const auto function_of_it = as_function(condition))
      turned = function(Ex::apply(ScalarOp::logical_not, *function_of_it));
  }
  return chosen(turned, no, yes, known);
}

Value value_of(const ScalarStep& step, const std::vector<Value>& values,
               const std::optional<Scores>& scores) {
  const auto arg = [&](int i) -> const Value& {
    return values[static_cast<std::size_t>(step.args[i])];
  };
  switch (step.op) {
    case ScalarOp::as_bf16:
    case ScalarOp::as_f16:
      return arg(0);  // what is between the products stays in f32
    case ScalarOp::neg:
      return times(Value::constant(-1), arg(0));
    case ScalarOp::exp:
      return exponential(arg(0));
    case ScalarOp::log:
      return logarithm(arg(0));
    case ScalarOp::eq:
      return are_equal(arg(0), arg(1));
    case ScalarOp::logical_not:
      return opposite(arg(0));
    case ScalarOp::logical_and:
      return both(arg(0), arg(1));
    case ScalarOp::logical_or:
      return opposite(both(opposite(arg(0)), opposite(arg(1))));
    case ScalarOp::add:
      return total_of(arg(0), arg(1));
    case ScalarOp::sub:
      return difference(arg(0), arg(1));
    case ScalarOp::mul:
      return times(arg(0), arg(1));
    case ScalarOp::div:
      return divided(arg(0), arg(1));
    case ScalarOp::le:
    case ScalarOp::lt:
      return at_most(arg(0), arg(1), step.op == ScalarOp::lt);
    case ScalarOp::ge:
    case ScalarOp::gt:
      return at_most(arg(1), arg(0), step.op == ScalarOp::gt);
    case ScalarOp::where:
      return chosen_of(arg(0), arg(1), arg(2), scores);
    default:
      return {};
  }
}

}  // namespace

Value Value::constant(double value) {
  Value v{.kind = Kind::polynomial};
  if (value != 0) v.terms[Powers{}] = value;
  return v;
}

Value Value::of(const Powers& powers, double coefficient) {
  Value v{.kind = Kind::polynomial};
  if (coefficient != 0) v.terms[powers] = coefficient;
  return v;
}

Value Value::operand(std::size_t i) { return function(Ex::input(static_cast<int>(i) + 1)); }

std::optional<double> Value::as_constant() const {
  if (kind != Kind::polynomial) return std::nullopt;
  if (terms.empty()) return 0;
  if (has_function(factor) || terms.size() > 1 || terms.begin()->first != Powers{})
    return std::nullopt;
  return terms.begin()->second;
}

std::optional<Scores> Value::as_scores() const {
  if (kind == Kind::scores) return scores;
  if (kind != Kind::polynomial || as_constant()) return std::nullopt;
  const bool is_scaled = !has_function(factor) && terms.size() == 1 &&
                         terms.begin()->first == first_power(product) && terms.begin()->second > 0;
  if (is_scaled) return Scores{.scale = terms.begin()->second};
  const std::optional<Ex> expr = as_function(*this);
  return expr ? std::optional(Scores{.function = *expr}) : std::nullopt;
}

bool Value::is_backward() const {
  return std::any_of(terms.begin(), terms.end(), [](const auto& term) {
    return term.first[cotangent] != 0 || term.first[delta] != 0;
  });
}

Value evaluate(const ScalarExpr& expr, const std::vector<Value>& inputs,
               const std::vector<Value>& indices, const std::optional<Scores>& scores) {
  std::vector<Value> values;
  for (const ScalarStep& step : expr.steps) {
    const auto which = static_cast<std::size_t>(step.which);
    Value value = step.op == ScalarOp::input      ? inputs[which]
                  : step.op == ScalarOp::index    ? indices[which]
                  : step.op == ScalarOp::constant ? Value::constant(step.real)
                                                  : value_of(step, values, scores);
    if (!value.is_known()) value = function_of(step, values);
    values.push_back(std::move(value));
  }
  return values.empty() ? Value{} : values.back();
}

namespace {

Value sum_of_term(Powers powers, double coefficient) {
  if (powers[product] != 0 || powers[delta] != 0 || powers[weight] != 1) return {};
  powers[weight] = 0;
  if (powers[cotangent] == 0) {
    ++powers[total];
    return Value::of(powers, coefficient);
  }
  if (powers[cotangent] != 1) return {};
  // cotangent · weight adds up to total · delta.
  powers[cotangent] = 0;
  powers[delta] = 1;
  ++powers[total];
  return Value::of(powers, coefficient);
}

}  // namespace

Value sum_of(const Value& value) {
  if (value.kind == Kind::is_maximum) return of_scores(Kind::ties, value);
  if (value.kind != Kind::polynomial || has_function(value.factor)) return {};
  Value all = Value::constant(0);
  for (const auto& [powers, coefficient] : value.terms) {
    // What does not depend on the key stands before the sum.
    Powers of_key = powers, of_query{};
    std::swap(of_key[delta], of_query[delta]);
    const Value term = sum_of_term(of_key, coefficient);
    if (!term.is_known()) return {};
    all = sum(all, product_of(term, Value::of(of_query)), 1);
  }
  return all;
}

Value maximum_of(const Value& value) {
  const std::optional<Scores> scores = value.as_scores();
  if (!scores) return {};
  return {.kind = Kind::maximum, .scores = *scores};
}

bool is_probability(const Value& value) {
  Powers p = first_power(weight);
  p[total] = -1;
  return !has_function(value.factor) && value.terms == std::map<Powers, double>{{p, 1.0}};
}

std::optional<ScoreGradient> as_score_gradient(const Value& value) {
  Powers first{}, second{};
  first[weight] = second[weight] = 1;
  first[total] = second[total] = -1;
  first[cotangent] = 1;
  second[delta] = 1;
  const auto found = value.terms.find(first);
  if (value.terms.size() != 2 || found == value.terms.end()) return std::nullopt;
  const auto other = value.terms.find(second);
  if (other == value.terms.end() || other->second != -found->second) return std::nullopt;
  return ScoreGradient{found->second, value.factor};
}

}  // namespace ein::attention
