// What values inside an attention mean, as far as its patterns go: an algebra that expressions are
// evaluated in, so that it does not matter how they are cut into nests.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <ein/scalar_expr.hpp>

namespace ein::attention {

/// What polynomials are made of, each for a query and key or for a query.
enum Atom : std::size_t {
  product,    // q · k
  weight,     // exp(score - maximum)
  total,      // the sum of weights of a query
  cotangent,  // dout · v
  delta,      // the sum along the keys of cotangent · weight / total
  atoms
};
using Powers = std::array<int, atoms>;
inline Powers first_power(Atom atom) {
  Powers powers{};
  powers[atom] = 1;
  return powers;
}

/// Which keys a query sees: those with key <= query + reach and key >= query - back. Without a
/// number the side is open.
struct Seen {
  std::optional<std::int64_t> reach{}, back{};
  friend bool operator==(const Seen&, const Seen&) = default;
};

/// Function of the product, or product * scale where there is none; -inf where a key is not seen.
/// The function's input 0 is the product, input 1 + i operand i beside it; its index 0 is the
/// query's, index 1 the key's.
struct Scores {
  double scale = 1;
  ScalarExpr function{};
  Seen seen{};
  friend bool operator==(const Scores&, const Scores&) = default;
};

struct Value {
  enum class Kind : std::uint8_t {
    unknown,
    polynomial,  // factor · Σ coefficient · Π atom^power
    position,    // key · index of the key + query · index of the query + offset
    visible,     // whether a key is seen
    hidden,      // the opposite
    scores,
    maximum,      // of the scores of a query
    shifted,      // scores less their maximum
    log_total,    // log of total
    log_sum,      // maximum + log_total
    log_weights,  // scores less their log_sum
    is_maximum,   // whether a score is the maximum
    ties,         // how many are
  };
  Kind kind = Kind::unknown;
  std::map<Powers, double> terms{};
  ScalarExpr factor{};  // a function as that of scores; none: 1
  double key = 0, query = 0, offset = 0;
  Seen seen{};
  Scores scores{};

  static Value constant(double value);
  static Value of(const Powers& powers, double coefficient = 1);
  /// Operand i beside the product.
  static Value operand(std::size_t i);
  bool is_known() const { return kind != Kind::unknown; }
  std::optional<double> as_constant() const;
  /// Functions of the product are scores without a mask.
  std::optional<Scores> as_scores() const;
  /// Whether the gradient of the result is in it.
  bool is_backward() const;
};

/// The value of an expression whose inputs and axes' indices have these values; `scores` are those
/// that weights are of, once they are known.
Value evaluate(const ScalarExpr& expr, const std::vector<Value>& inputs,
               const std::vector<Value>& indices, const std::optional<Scores>& scores);

/// The sum and the maximum along the keys.
Value sum_of(const Value& value);
Value maximum_of(const Value& value);

/// Whether a value is weight / total.
bool is_probability(const Value& value);
/// The c and f of c f (weight / total) (cotangent - delta); none for other values.
struct ScoreGradient {
  double scale = 1;
  ScalarExpr slope{};
  friend bool operator==(const ScoreGradient&, const ScoreGradient&) = default;
};
std::optional<ScoreGradient> as_score_gradient(const Value& value);

}  // namespace ein::attention
