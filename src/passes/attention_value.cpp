#include "passes/attention_value.hpp"

#include <algorithm>
#include <cmath>

namespace ein::attention {
namespace {

using Kind = Value::Kind;

bool is_polynomial(const Value& v) { return v.kind == Kind::polynomial; }

Value sum(const Value& a, const Value& b, double sign) {
  Value result = a;
  for (const auto& [powers, coefficient] : b.terms) {
    double& c = result.terms[powers];
    c += sign * coefficient;
    if (c == 0) result.terms.erase(powers);
  }
  return result;
}

Value product_of(const Value& a, const Value& b) {
  Value result = Value::constant(0);
  for (const auto& [p, x] : a.terms) {
    for (const auto& [q, y] : b.terms) {
      Powers powers{};
      for (std::size_t i = 0; i < atoms; ++i) powers[i] = p[i] + q[i];
      result = sum(result, Value::of(powers, x * y), 1);
    }
  }
  return result;
}

std::optional<Value> inverse(const Value& a) {
  if (!is_polynomial(a) || a.terms.size() != 1) return std::nullopt;
  Powers powers = a.terms.begin()->first;
  for (int& power : powers) power = -power;
  return Value::of(powers, 1 / a.terms.begin()->second);
}

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
    return {.kind = Kind::visible, .reach = -whole};
  if (difference.key == -1 && difference.query == 1)
    return {.kind = Kind::hidden, .reach = whole - 1};
  return {};
}

Value scaled(const Value& a, double factor) {
  const std::optional<Scores> scores = a.as_scores();
  if (!scores || !(factor > 0)) return {};
  return {.kind = Kind::scores, .scores = {scores->scale * factor, scores->reach}};
}

Value times(const Value& a, const Value& b) {
  if (is_polynomial(a) && is_polynomial(b)) return product_of(a, b);
  if (a.kind == Kind::scores && b.as_constant()) return scaled(a, *b.as_constant());
  if (b.kind == Kind::scores && a.as_constant()) return scaled(b, *a.as_constant());
  return {};
}

Value difference(const Value& a, const Value& b) {
  if (is_polynomial(a) && is_polynomial(b)) return sum(a, b, -1);
  const std::optional<Scores> scores = a.as_scores();
  if (b.kind == Kind::maximum && scores == b.scores)
    return {.kind = Kind::shifted, .scores = b.scores};
  return linear(a, b, -1);
}

Value chosen(const Value& condition, const Value& seen, const Value& masked,
             const std::optional<Scores>& known) {
  const std::optional<double> otherwise = masked.as_constant();
  if (condition.kind != Kind::visible || !otherwise) return {};
  std::optional<Scores> scores = seen.as_scores();
  if (scores && *otherwise == -INFINITY) {
    if (scores->reach && scores->reach != condition.reach) return {};
    scores->reach = condition.reach;
    return {.kind = Kind::scores, .scores = *scores};
  }
  // Weights are 0 there anyway.
  const bool vanishes = is_polynomial(seen) && known && known->reach == condition.reach &&
                        std::all_of(seen.terms.begin(), seen.terms.end(),
                                    [](const auto& term) { return term.first[weight] > 0; });
  if (vanishes && *otherwise == 0) return seen;
  return {};
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

std::optional<double> Value::as_constant() const {
  if (kind != Kind::polynomial) return std::nullopt;
  if (terms.empty()) return 0;
  if (terms.size() > 1 || terms.begin()->first != Powers{}) return std::nullopt;
  return terms.begin()->second;
}

std::optional<Scores> Value::as_scores() const {
  if (kind == Kind::scores) return scores;
  if (kind != Kind::polynomial || terms.size() != 1 ||
      terms.begin()->first != first_power(product) || !(terms.begin()->second > 0))
    return std::nullopt;
  return Scores{terms.begin()->second, std::nullopt};
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
    const auto arg = [&](int i) -> const Value& {
      return values[static_cast<std::size_t>(step.args[i])];
    };
    const auto which = static_cast<std::size_t>(step.which);
    Value value;
    switch (step.op) {
      case ScalarOp::input:
        value = inputs[which];
        break;
      case ScalarOp::constant:
        value = Value::constant(step.real);
        break;
      case ScalarOp::index:
        value = indices[which];
        break;
      case ScalarOp::as_bf16:
      case ScalarOp::as_f16:
        value = arg(0);  // what is between the products stays in f32
        break;
      case ScalarOp::neg:
        value = times(Value::constant(-1), arg(0));
        break;
      case ScalarOp::exp:
        if (arg(0).kind == Kind::shifted) value = Value::of(first_power(weight));
        break;
      case ScalarOp::logical_not:
        value = arg(0);
        if (value.kind == Kind::visible)
          value.kind = Kind::hidden;
        else
          value.kind = value.kind == Kind::hidden ? Kind::visible : Kind::unknown;
        break;
      case ScalarOp::add:
        value = is_polynomial(arg(0)) && is_polynomial(arg(1)) ? sum(arg(0), arg(1), 1)
                                                               : linear(arg(0), arg(1), 1);
        break;
      case ScalarOp::sub:
        value = difference(arg(0), arg(1));
        break;
      case ScalarOp::mul:
        value = times(arg(0), arg(1));
        break;
      case ScalarOp::div:
        if (const std::optional<Value> by = inverse(arg(1))) value = times(arg(0), *by);
        break;
      case ScalarOp::le:
      case ScalarOp::lt:
        value = at_most(arg(0), arg(1), step.op == ScalarOp::lt);
        break;
      case ScalarOp::ge:
      case ScalarOp::gt:
        value = at_most(arg(1), arg(0), step.op == ScalarOp::gt);
        break;
      case ScalarOp::where: {
        Value condition = arg(0);
        const bool turned = condition.kind == Kind::hidden;
        if (turned) condition.kind = Kind::visible;
        value = chosen(condition, arg(turned ? 2 : 1), arg(turned ? 1 : 2), scores);
        break;
      }
      default:
        break;
    }
    values.push_back(std::move(value));
  }
  return values.empty() ? Value{} : values.back();
}

Value sum_of(const Value& value) {
  if (value.kind != Kind::polynomial || value.terms.size() != 1) return {};
  Powers powers = value.terms.begin()->first;
  const double coefficient = value.terms.begin()->second;
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

Value maximum_of(const Value& value) {
  const std::optional<Scores> scores = value.as_scores();
  if (!scores) return {};
  return {.kind = Kind::maximum, .scores = *scores};
}

bool is_probability(const Value& value) {
  Powers p = first_power(weight);
  p[total] = -1;
  return value.terms == std::map<Powers, double>{{p, 1.0}};
}

std::optional<double> as_score_gradient(const Value& value) {
  Powers first{}, second{};
  first[weight] = second[weight] = 1;
  first[total] = second[total] = -1;
  first[cotangent] = 1;
  second[delta] = 1;
  const auto found = value.terms.find(first);
  if (value.terms.size() != 2 || found == value.terms.end()) return std::nullopt;
  const auto other = value.terms.find(second);
  if (other == value.terms.end() || other->second != -found->second) return std::nullopt;
  return found->second;
}

}  // namespace ein::attention
