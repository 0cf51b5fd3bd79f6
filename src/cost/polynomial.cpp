#include <ein/detail/polynomial.hpp>

#include <algorithm>

#include <ein/error.hpp>
#include "size/ask.hpp"

namespace ein {
namespace {

std::int64_t checked(bool overflow, std::int64_t value) {
  if (overflow) throw Error(ErrorKind::overflow, "a coefficient of a cost formula exceeds 63 bits");
  return value;
}

}  // namespace

Polynomial::Polynomial(std::int64_t constant) {
  if (constant != 0) terms_[{}] = {constant, {}};
}

Polynomial Polynomial::axis(std::string name) {
  Polynomial p;
  p.terms_[{name}] = {1, {name}};
  return p;
}

void Polynomial::add(const Monomial& monomial, Term term) {
  const auto [found, is_new] = terms_.try_emplace(monomial, term);
  if (is_new) return;
  std::int64_t& sum = found->second.coefficient;
  checked(__builtin_add_overflow(sum, term.coefficient, &sum), sum);
  if (sum == 0) terms_.erase(found);
}

Polynomial& Polynomial::operator+=(const Polynomial& other) {
  for (const auto& [monomial, term] : other.terms_) add(monomial, term);
  return *this;
}
Polynomial& Polynomial::operator-=(const Polynomial& other) {
  for (const auto& [monomial, term] : other.terms_) add(monomial, {-term.coefficient, term.shown});
  return *this;
}
Polynomial& Polynomial::operator*=(const Polynomial& other) {
  Polynomial product;
  for (const auto& [a, x] : terms_) {
    for (const auto& [b, y] : other.terms_) {
      Monomial monomial(a.size() + b.size());
      std::merge(a.begin(), a.end(), b.begin(), b.end(), monomial.begin());
      Term term{0, x.shown};
      checked(__builtin_mul_overflow(x.coefficient, y.coefficient, &term.coefficient), 0);
      term.shown.insert(term.shown.end(), y.shown.begin(), y.shown.end());
      product.add(monomial, std::move(term));
    }
  }
  return *this = std::move(product);
}

Count Polynomial::evaluate(const std::map<std::string, std::int64_t, std::less<>>& sizes) const {
  Count plus = 0, minus = 0;
  for (const auto& [monomial, term] : terms_) {
    Count value = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    for (const std::string& axis : monomial) {
      const auto size = sizes.find(axis);
      if (size == sizes.end())
        throw Error(ErrorKind::axis_argument, "cost: the size of axis '" + axis + "' is not given");
      value *= Count(size->second);
    }
    (term.coefficient < 0 ? minus : plus) += value;
  }
  if (minus > plus)
    throw Error(ErrorKind::value, "cost: " + to_string() + " is negative for these sizes");
  return plus - minus;
}

int Polynomial::degree(std::string_view axis) const {
  std::ptrdiff_t most = 0;
  for (const auto& [monomial, term] : terms_)
    most = std::max(most, std::count(monomial.begin(), monomial.end(), axis));
  return static_cast<int>(most);
}

std::vector<std::string> Polynomial::axes() const {
  std::vector<std::string> axes;
  for (const auto& [monomial, term] : terms_)
    axes.insert(axes.end(), monomial.begin(), monomial.end());
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

std::string Polynomial::to_string() const {
  std::vector<std::pair<std::size_t, const Term*>> ordered;  // by degree, then as they are kept
  for (const auto& [monomial, term] : terms_) ordered.emplace_back(ordered.size(), &term);
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    const std::size_t p = a.second->shown.size(), q = b.second->shown.size();
    return p != q ? p > q : a.first < b.first;
  });
  std::string text;
  for (const auto& [place, term] : ordered) {
    const bool negative = term->coefficient < 0;
    const std::int64_t magnitude = negative ? -term->coefficient : term->coefficient;
    text += text.empty() ? (negative ? "-" : "") : negative ? " - " : " + ";
    if (magnitude != 1 || term->shown.empty()) text += std::to_string(magnitude);
    for (auto axis = term->shown.begin(); axis != term->shown.end(); ++axis) {
      if (std::find(term->shown.begin(), axis, *axis) != axis)
        continue;  // a power, written where it came first
      const auto power = std::count(axis, term->shown.end(), *axis);
      if (axis != term->shown.begin() || magnitude != 1) text += "·";
      text += *axis + (power > 1 ? "^" + std::to_string(power) : "");
    }
  }
  return text.empty() ? "0" : text;
}

}  // namespace ein
