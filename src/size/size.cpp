// Formulas of sizes: polynomials of named sizes and of quotients that do not divide.
#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <ein/error.hpp>
#include "machine/fork.hpp"
#include "size/size_scope.hpp"

namespace ein {

/// Formula i has the i-th of the words that are no numbers.
struct FormulaWords {
  static std::int64_t at(std::size_t i) {
    if (i >= Size::formulas)
      throw Error(ErrorKind::overflow, "there are more than 2^32 formulas of sizes");
    return Size::first_formula + static_cast<std::int64_t>(i);
  }
  static std::size_t index_of(std::int64_t word) {
    return static_cast<std::size_t>(word - Size::first_formula);
  }
};

namespace {

__extension__ using Wide = __int128;

constexpr Wide most = INT64_MAX;

std::int64_t narrow(Wide value) {
  if (value > most || value < -most)
    throw Error(ErrorKind::overflow, "a size that depends on lengths exceeds 63 bits");
  return static_cast<std::int64_t>(value);
}

/// Σ coefficient · product of atoms.
using Monomial = std::vector<int>;  // sorted
using Polynomial = std::map<Monomial, std::int64_t>;

/// A named size, or a / b of two formulas.
struct Atom {
  std::string name;
  Size a{}, b{};
  friend auto operator<=>(const Atom& x, const Atom& y) {
    return std::tuple(std::string_view(x.name), x.a.word(), x.b.word()) <=>
           std::tuple(std::string_view(y.name), y.a.word(), y.b.word());
  }
};

/// From `low` to `high`, where these are known.
struct Interval {
  Wide low, high;
};
constexpr Wide unbounded = most * most;

Interval operator+(const Interval& x, const Interval& y) {
  const auto bounded = [](Wide v) { return std::clamp(v, -unbounded / 2, unbounded / 2); };
  return {bounded(x.low) + bounded(y.low), bounded(x.high) + bounded(y.high)};
}
Interval operator*(const Interval& x, const Interval& y) {
  // Endpoints beyond 63 bits are as good as unbounded, so that products stay within 127.
  const auto bounded = [](Wide v) { return std::clamp(v, -most, most); };
  const Wide products[] = {bounded(x.low) * bounded(y.low), bounded(x.low) * bounded(y.high),
                           bounded(x.high) * bounded(y.low), bounded(x.high) * bounded(y.high)};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

/// Passes try each factor.
constexpr std::size_t most_factors = 16;

/// All formulas of the process. Equal ones have one word, so there are as many as programs differ.
class Formulas {
 public:
  Polynomial polynomial(Size size) const {
    if (!size.is_number()) return polynomials_[index_of(size)];
    Polynomial constant;
    if (size.word() != 0) constant[{}] = size.word();
    return constant;
  }

  Size size_of(Polynomial polynomial) {
    std::erase_if(polynomial, [](const auto& term) { return term.second == 0; });
    if (polynomial.empty()) return 0;
    if (polynomial.size() == 1 && polynomial.begin()->first.empty())
      return polynomial.begin()->second;
    if (const auto known = words_.find(polynomial); known != words_.end())
      return Size::of_word(known->second);
    const std::int64_t word = FormulaWords::at(words_.size());
    append_and(polynomials_, polynomial, [&] { words_.emplace(std::move(polynomial), word); });
    return Size::of_word(word);
  }

  Size of_atom(const Atom& atom) {
    if (const auto known = atom_of_.find(atom); known != atom_of_.end())
      return size_of_atom(known->second);
    const auto number = static_cast<int>(atoms_.size());
    const Size size = size_of({{{number}, 1}});
    append_and(atoms_, atom,
               [&] { append_and(sizes_of_atoms_, size, [&] { atom_of_.emplace(atom, number); }); });
    return size;
  }

  /// a + b, or a - b where `sign` is -1.
  Size sum(Size a, Size b, int sign) {
    return remembered(sign > 0 ? '+' : '-', a, b, [&] {
      Polynomial sum = polynomial(a);
      for (const auto& [monomial, coefficient] : polynomial(b)) {
        std::int64_t& c = sum[monomial];
        c = narrow(Wide{c} + Wide{coefficient} * sign);
      }
      return size_of(std::move(sum));
    });
  }

  Size product(Size a, Size b) {
    return remembered('*', a, b, [&] {
      Polynomial product;
      const Polynomial of_b = polynomial(b);
      for (const auto& [x, x_coefficient] : polynomial(a)) {
        for (const auto& [y, y_coefficient] : of_b) {
          Monomial monomial(x.size() + y.size());
          std::merge(x.begin(), x.end(), y.begin(), y.end(), monomial.begin());
          std::int64_t& c = product[monomial];
          c = narrow(Wide{c} + narrow(Wide{x_coefficient} * y_coefficient));
        }
      }
      return size_of(std::move(product));
    });
  }

  /// a / b where that is a polynomial.
  std::optional<Size> exact_quotient(Size a, Size b) {
    const auto exact = divided(polynomial(a), polynomial(b));
    return exact ? std::optional(size_of(*exact)) : std::nullopt;
  }
  /// `b` is not 0.
  Size quotient(Size a, Size b) { return of_atom({"", a, b}); }

  std::int64_t evaluate(Size size, const SizeValues& values) const {
    if (size.is_number()) return size.word();
    Wide sum = 0;
    for (const auto& [monomial, coefficient] : polynomials_[index_of(size)]) {
      std::int64_t product = coefficient;
      for (int atom : monomial) product = narrow(Wide{product} * evaluate_atom(atom, values));
      sum += product;
    }
    return narrow(sum);
  }

  /// Where its value exceeds 63 bits, that is taken to be large: above 0 if the formula grows.
  bool is_negative(Size size, const SizeValues& values, bool grows) const {
    try {
      return evaluate(size, values) < 0;
    } catch (const Error&) {
      return !grows;
    }
  }

  Interval interval(Size size, const std::vector<SizeGuards::Range>& ranges) const {
    if (size.is_number()) return {size.word(), size.word()};
    Interval sum{0, 0};
    for (const auto& [monomial, coefficient] : polynomials_[index_of(size)]) {
      Interval product{coefficient, coefficient};
      for (int atom : monomial) product = product * interval_of_atom(atom, ranges);
      sum = sum + product;
    }
    return sum;
  }

  std::vector<Size> factors(Size formula) {
    const Polynomial of = polynomial(formula);
    std::int64_t content = 0;
    Monomial common = of.begin()->first;
    for (const auto& [monomial, coefficient] : of) {
      content = std::gcd(content, coefficient);
      Monomial both;
      std::set_intersection(common.begin(), common.end(), monomial.begin(), monomial.end(),
                            std::back_inserter(both));
      common = std::move(both);
    }
    std::vector<Size> result;
    const auto add_quotients = [&](const Polynomial& whole) {
      for (std::int64_t by = 1; by <= content && result.size() < most_factors; ++by) {
        if (content % by == 0) result.push_back(size_of(*divided(whole, {{{}, by}})));
      }
    };
    add_quotients(of);
    // Without one of the sizes that all terms have.
    for (const int atom : common) {
      const Polynomial rest = *divided(of, {{{atom}, 1}});
      const bool is_number = rest.size() == 1 && rest.begin()->first.empty();
      if (!is_number) add_quotients(rest);
    }
    return result;
  }

  /// Of the same sign, without factors that all terms have and that are at least 1.
  Size with_same_sign(Size formula, const std::vector<SizeGuards::Range>& ranges) {
    Polynomial of = polynomial(formula);
    if (of.empty()) return formula;
    for (const int atom : Monomial(of.begin()->first)) {
      if (interval_of_atom(atom, ranges).low < 1) continue;
      if (auto less = divided(of, {{{atom}, 1}})) of = *std::move(less);
    }
    return size_of(std::move(of));
  }

  /// The one named size of a formula that only grows, or only falls, as that grows.
  struct Monotone {
    Size size{};
    bool grows = false;
  };
  std::optional<Monotone> as_monotone(Size formula,
                                      const std::vector<SizeGuards::Range>& ranges) const {
    std::optional<Monotone> result;
    for (const auto& [monomial, coefficient] : polynomial(formula)) {
      for (const int number : monomial) {
        const Atom& atom = atoms_[static_cast<std::size_t>(number)];
        if (interval_of_atom(number, ranges).low < 0) return std::nullopt;
        Size size = size_of_atom(number);
        if (atom.name.empty()) {
          const auto inner = as_monotone(atom.a, ranges);
          if (!atom.b.is_number() || atom.b < 1 || !inner || !inner->grows) return std::nullopt;
          size = inner->size;
        }
        if (!result) result = Monotone{size, coefficient > 0};
        if (!always_equal(result->size, size) || result->grows != (coefficient > 0))
          return std::nullopt;
      }
    }
    return result;
  }

  std::string show(Size size) const {
    if (size.is_number()) return std::to_string(size.word());
    const Polynomial& of = polynomials_[index_of(size)];
    std::vector<std::pair<Monomial, std::int64_t>> terms(of.begin(), of.end());
    std::stable_sort(terms.begin(), terms.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    std::string text;
    for (const auto& [monomial, coefficient] : terms) {
      const std::int64_t magnitude = std::abs(coefficient);
      text += text.empty() ? (coefficient < 0 ? "-" : "") : coefficient < 0 ? " - " : " + ";
      if (magnitude != 1 || monomial.empty()) text += std::to_string(magnitude);
      std::vector<std::string> factors;  // names in order, then quotients
      for (const int number : monomial) {
        const Atom& atom = atoms_[static_cast<std::size_t>(number)];
        factors.push_back(!atom.name.empty() ? atom.name
                                             : "(" + show(atom.a) + ") / (" + show(atom.b) + ")");
      }
      std::sort(factors.begin(), factors.end(), [](const std::string& a, const std::string& b) {
        return (a[0] == '(') != (b[0] == '(') ? b[0] == '(' : a < b;
      });
      for (std::size_t i = 0; i < factors.size(); ++i)
        text += (i > 0 || magnitude != 1 ? "·" : "") + factors[i];
    }
    return text;
  }

  std::mutex mutex;

 private:
  Size size_of_atom(int atom) const { return sizes_of_atoms_[static_cast<std::size_t>(atom)]; }

  static std::size_t index_of(Size size) { return FormulaWords::index_of(size.word()); }

  /// Adds `value` at the end and calls `then`; where that throws, nothing is added.
  template <class List, class Then>
  static void append_and(List& list, typename List::value_type value, const Then& then) {
    list.push_back(std::move(value));
    try {
      then();
    } catch (...) {
      list.pop_back();
      throw;
    }
  }

  template <class Make>
  Size remembered(char op, Size a, Size b, const Make& make) {
    const auto key = std::tuple(op, a.word(), b.word());
    if (const auto known = results_.find(key); known != results_.end()) return known->second;
    const Size result = make();
    results_.emplace(key, result);
    return result;
  }

  /// Where each term divides by the one term of the divisor.
  static std::optional<Polynomial> divided(const Polynomial& a, const Polynomial& b) {
    if (b.size() != 1) {
      if (a == b) return Polynomial{{{}, 1}};
      return std::nullopt;
    }
    const auto& [divisor, by] = *b.begin();
    Polynomial result;
    for (const auto& [monomial, coefficient] : a) {
      if (coefficient % by != 0 ||
          !std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end()))
        return std::nullopt;
      Monomial left;
      std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(),
                          std::back_inserter(left));
      result[left] = coefficient / by;
    }
    return result;
  }

  std::int64_t evaluate_atom(int number, const SizeValues& values) const {
    const Atom& atom = atoms_[static_cast<std::size_t>(number)];
    if (atom.name.empty()) {
      const std::int64_t divisor = evaluate(atom.b, values);
      if (divisor == 0)
        throw Error(ErrorKind::size, "a size is divided by " + show(atom.b) + " = 0");
      return evaluate(atom.a, values) / divisor;
    }
    const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) {
      return always_equal(value.first, size_of_atom(number));
    });
    if (found == values.end())
      throw Error(ErrorKind::value, "the size " + atom.name + " is not known here");
    return found->second;
  }

  Interval interval_of_atom(int number, const std::vector<SizeGuards::Range>& ranges) const {
    const Atom& atom = atoms_[static_cast<std::size_t>(number)];
    if (atom.name.empty()) {
      const Interval a = interval(atom.a, ranges), b = interval(atom.b, ranges);
      if (a.low < 0 || b.low <= 0) return {-unbounded, unbounded};
      return {a.low / b.high, a.high / b.low};
    }
    for (const SizeGuards::Range& range : ranges) {
      if (always_equal(range.size, size_of_atom(number))) return {range.low, range.high};
    }
    return {0, most};
  }

  std::deque<Polynomial> polynomials_;
  std::map<Polynomial, std::int64_t> words_;
  std::deque<Atom> atoms_;
  std::vector<Size> sizes_of_atoms_;
  std::map<Atom, int> atom_of_;
  std::map<std::tuple<char, std::int64_t, std::int64_t>, Size> results_;
};

Formulas& all_formulas() { return made_once_with_lock<Formulas, StaticLock::sizes>(); }

thread_local SizeScope* innermost = nullptr;

[[noreturn]] void not_known(Size formula) {
  throw Error(ErrorKind::value,
              "the size " + to_string(formula) +
                  " is known at a call only: the function is compiled for any length\n"
                  "  help: ein::size_of gives it as a size that can be computed with");
}

}  // namespace

Size Size::named(std::string_view name) {
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  return all.of_atom({std::string(name)});
}

Size detail::sum(Size a, Size b) {
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  return all.sum(a, b, 1);
}

Size detail::difference(Size a, Size b) {
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  return all.sum(a, b, -1);
}

Size detail::product(Size a, Size b) {
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  return all.product(a, b);
}

Size detail::quotient(Size a, Size b) {
  const Size zero = 0;
  if (b.word() == 0) throw Error(ErrorKind::size, "the size " + to_string(a) + " is divided by 0");
  Formulas& all = all_formulas();
  {
    const std::lock_guard lock(all.mutex);
    if (const auto exact = all.exact_quotient(a, b)) return *exact;
  }
  if (b == zero) throw Error(ErrorKind::size, "the size " + to_string(a) + " is divided by 0");
  const std::lock_guard lock(all.mutex);
  return all.quotient(a, b);
}

namespace {

/// Of a formula and this or a larger number it is known which is larger: no size is so large.
constexpr std::int64_t huge = std::int64_t{1} << 62;
bool is_huge(Size size) {
  return size.is_number() && (size.word() >= huge || size.word() <= -huge);
}

SizeScope& scope_for(Size formula) {
  if (!innermost) not_known(formula);
  return *innermost;
}

}  // namespace

bool detail::is_less(Size a, Size b) {
  if (is_huge(a)) return a.word() < 0;
  if (is_huge(b)) return b.word() > 0;
  const Size difference = a - b;
  return difference.is_number() ? difference.word() < 0
                                : scope_for(difference).is_negative(difference);
}
bool detail::is_equal(Size a, Size b) {
  if (is_huge(a) || is_huge(b)) return false;
  const Size difference = a - b;
  return difference.is_number() ? difference.word() == 0
                                : scope_for(difference).is_zero(difference);
}
std::int64_t detail::number_of(Size formula) { return scope_for(formula).number_of(formula); }

std::string to_string(Size size) {
  if (size.is_number()) return std::to_string(size.word());
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  std::string text = all.show(size);
  if (innermost && innermost->is_traced())
    text += " = " + std::to_string(all.evaluate(size, innermost->values()));
  return text;
}

std::int64_t evaluate(Size formula, const SizeValues& values) {
  if (formula.is_number()) return formula.word();
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  return all.evaluate(formula, values);
}

std::int64_t number_at_hand(Size size) {
  if (size.is_number()) return size.word();
  const std::int64_t number = evaluate(size, scope_for(size).values());
  scope_for(size).is_zero(size - number);
  return number;
}

std::int64_t about(Size size) {
  if (size.is_number()) return size.word();
  const std::int64_t value = evaluate(size, scope_for(size).values());
  const auto least = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
  // Both comparisons, for the guards that they leave.
  const bool is_large = size >= least, is_small = size < 2 * std::max<std::int64_t>(least, 1);
  return is_large && is_small ? value : least;
}

std::int64_t at_most(Size size) {
  return size.is_number() ? size.word() : power_of_two_above(size);
}
std::int64_t at_least(Size size) {
  return size.is_number() ? size.word() : power_of_two_above(size + 1) / 2;
}

std::int64_t power_of_two_above(Size size, std::int64_t most) {
  if (size <= 1) return 1;
  if (size > most / 2) return most;
  return 2 * static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(about(size - 1))));
}

std::vector<Size> factors_of(Size formula) {
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  return all.factors(formula);
}

std::int64_t SizesAt::operator()(Size formula) {
  if (formula.is_number()) return formula.word();
  const auto [known, is_new] = known_.try_emplace(formula.word(), 0);
  if (is_new) known->second = evaluate(formula, values_);
  return known->second;
}

bool SizeGuards::hold(const SizeValues& values) const {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (values[i].second < ranges[i].low || values[i].second > ranges[i].high) return false;
  }
  return std::all_of(negative.begin(), negative.end(),
                     [&](Size formula) { return evaluate(formula, values) < 0; });
}

std::string SizeGuards::to_string() const {
  std::string text;
  for (const Range& range : ranges) {
    if (range.low == 0 && range.high == INT64_MAX) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(range.low) +
            " <= " + ein::to_string(range.size);
    if (range.high < INT64_MAX) text += " <= " + std::to_string(range.high);
  }
  for (Size formula : negative)
    text += (text.empty() ? "" : ", ") + ein::to_string(formula) + " < 0";
  return text;
}

SizeScope::SizeScope(SizeValues values, Reading reading, SizeGuards known)
    : outer_(innermost), values_(std::move(values)), guards_(std::move(known)), reading_(reading) {
  if (guards_.ranges.empty()) {
    for (const auto& [size, value] : values_)
      guards_.ranges.push_back({size, value < 0 ? INT64_MIN : 0});
  }
  innermost = this;  // when nothing can fail any more
}
SizeScope::~SizeScope() { innermost = outer_; }
SizeScope* SizeScope::active() { return innermost; }

SizeGuards SizeScope::guards() const {
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  SizeGuards guards = guards_;
  std::erase_if(guards.negative,
                [&](Size formula) { return all.interval(formula, guards.ranges).high < 0; });
  return guards;
}

bool SizeScope::is_negative(Size asked) {
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  const Size formula = all.with_same_sign(asked, guards_.ranges);
  const Interval interval = all.interval(formula, guards_.ranges);
  if (interval.high < 0) return true;
  if (interval.low >= 0) return false;
  const bool is_it = all.evaluate(formula, values_) < 0;
  // f >= 0 is -f - 1 < 0.
  keep_negative(is_it ? formula : all.sum(Size(-1), formula, -1));
  return is_it;
}

bool SizeScope::is_zero(Size asked) {
  Formulas& all = all_formulas();
  const std::lock_guard lock(all.mutex);
  const Size formula = all.with_same_sign(asked, guards_.ranges);
  const Interval interval = all.interval(formula, guards_.ranges);
  if (interval.high < 0 || interval.low > 0) return false;
  if (interval.low == 0 && interval.high == 0) return true;
  const std::int64_t value = all.evaluate(formula, values_);
  const Size minus = all.sum(Size(0), formula, -1);
  if (value != 0) {
    keep_negative(value < 0 ? formula : minus);
  } else {  // neither f >= 1 nor f <= -1
    keep_negative(all.sum(formula, Size(-1), 1));
    keep_negative(all.sum(minus, Size(-1), 1));
  }
  return value == 0;
}

std::int64_t SizeScope::number_of(Size formula) {
  if (reading_ == Reading::is_error) not_known(formula);
  const std::int64_t number = evaluate(formula, values_);
  if (!is_paused_) is_zero(formula - number);
  return number;
}

/// With the lock of the formulas.
void SizeScope::keep_negative(Size formula) {
  if (is_paused_) return;
  const Formulas& all = all_formulas();
  const auto monotone = all.as_monotone(formula, guards_.ranges);
  if (!monotone) {
    const auto same = [&](Size known) { return always_equal(known, formula); };
    if (std::none_of(guards_.negative.begin(), guards_.negative.end(), same))
      guards_.negative.push_back(formula);
    return;
  }
  const auto is_of = [&](const auto& of) { return always_equal(of.size, monotone->size); };
  SizeGuards::Range& range = *std::find_if(guards_.ranges.begin(), guards_.ranges.end(), is_of);
  const auto i = static_cast<std::size_t>(&range - guards_.ranges.data());
  SizeValues values = values_;
  const auto is_negative_at = [&](std::int64_t value) {
    values[i].second = value;
    return all.is_negative(formula, values, monotone->grows);
  };
  // The last value beyond which the answer changes, between one that has it and one that may not.
  std::int64_t good = values_[i].second, bad = monotone->grows ? range.high : range.low;
  if (is_negative_at(bad)) return;
  while (monotone->grows ? good < bad - 1 : bad < good - 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (is_negative_at(middle) ? good : bad) = middle;
  }
  (monotone->grows ? range.high : range.low) = good;
}

SizeScopePause::SizeScopePause() : scope_(innermost) {
  if (scope_) before_ = std::exchange(scope_->is_paused_, true);
}
SizeScopePause::~SizeScopePause() {
  if (scope_) scope_->is_paused_ = before_;
}

}  // namespace ein
