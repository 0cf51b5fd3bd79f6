// Polynomial: a cost as a formula in the names of axes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ein/count.hpp>

namespace ein {

/// A sum of products of axis names with integer coefficients, always simplified: `2·b·s1·s2·h -
/// b·s1·s2`.
class Polynomial {
 public:
  Polynomial() = default;
  Polynomial(std::int64_t constant);
  /// The axis itself.
  static Polynomial axis(std::string name);

  Polynomial& operator+=(const Polynomial& other);
  Polynomial& operator-=(const Polynomial& other);
  Polynomial& operator*=(const Polynomial& other);
  friend Polynomial operator+(Polynomial a, const Polynomial& b) { return a += b; }
  friend Polynomial operator-(Polynomial a, const Polynomial& b) { return a -= b; }
  friend Polynomial operator*(Polynomial a, const Polynomial& b) { return a *= b; }
  friend bool operator==(const Polynomial&, const Polynomial&) = default;

  /// Its value; an Error of kind `axis_argument` for an axis without a size, `overflow` beyond 127
  /// bits, `value` for a negative result.
  Count evaluate(const std::map<std::string, std::int64_t, std::less<>>& sizes) const;
  /// The highest power of the axis: doubling its size multiplies the bill by at most 2 to that.
  int degree(std::string_view axis) const;
  /// All axes in it, in order of name.
  std::vector<std::string> axes() const;
  bool is_zero() const { return terms_.empty(); }

  /// Terms of higher degree first; `0` for none.
  std::string to_string() const;

 private:
  /// Axis names in order, each as often as its power.
  using Monomial = std::vector<std::string>;
  /// Written as 2·b·s1, in the order in which the axes of a pattern usually come: as they were
  /// multiplied.
  struct Term {
    std::int64_t coefficient = 0;
    std::vector<std::string> shown;
    friend bool operator==(const Term& a, const Term& b) { return a.coefficient == b.coefficient; }
  };
  void add(const Monomial& monomial, Term term);
  std::map<Monomial, Term> terms_;
};

}  // namespace ein
