// Emitted: numbers of code that is being made, with which functions.hpp writes down its steps.
#pragma once

#include <bit>
#include <cstddef>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu/assembler.hpp"
#include "cpu/functions.hpp"

namespace ein::host {

/// A vector in code that is being made, of numbers of type C (float or double). A value that is an
/// rvalue is not used again: its register may hold the result.
template <class C>
class Emitted {
 public:
  using Number = C;
  using Op = Assembler::Arithmetic;

  Emitted(Assembler& code, const Assembler::Vector& vector) : code_(&code), vector_(vector) {}

  Assembler& code() const { return *code_; }
  const Assembler::Vector& vector() const { return vector_; }
  Assembler::Operand operand() const& { return {vector_}; }
  Assembler::Operand operand() && { return {vector_, true}; }

  friend Emitted operator+(const Emitted& x, const Emitted& y) { return x.with(Op::add, y); }
  friend Emitted operator-(const Emitted& x, const Emitted& y) { return x.with(Op::subtract, y); }
  friend Emitted operator*(const Emitted& x, const Emitted& y) { return x.with(Op::multiply, y); }
  friend Emitted operator/(const Emitted& x, const Emitted& y) { return x.with(Op::divide, y); }
  friend Emitted operator+(const Emitted& x, C y) { return x.with(Op::add, y); }
  friend Emitted operator+(C x, const Emitted& y) { return y + x; }
  friend Emitted operator-(const Emitted& x, C y) { return x.with(Op::subtract, y); }
  friend Emitted operator-(C x, const Emitted& y) {
    return {y.code(), y.code().apply(Op::subtract, Assembler::Operand(x), y.operand())};
  }
  friend Emitted operator*(const Emitted& x, C y) { return x.with(Op::multiply, y); }
  friend Emitted operator*(C x, const Emitted& y) { return y * x; }
  friend Emitted operator/(C x, const Emitted& y) {
    return {y.code(), y.code().apply(Op::divide, Assembler::Operand(x), y.operand())};
  }
  friend Emitted operator-(const Emitted& x) { return x.with_bits(Op::bit_xor, sign_bit); }

  /// Comparisons give masks.
  friend Assembler::Mask operator<(const Emitted& x, C y) { return x.compare(ScalarOp::lt, y); }
  friend Assembler::Mask operator>(const Emitted& x, C y) { return x.compare(ScalarOp::gt, y); }
  friend Assembler::Mask operator==(const Emitted& x, C y) { return x.compare(ScalarOp::eq, y); }

  Emitted with(Op op, const Emitted& y) const {
    return {*code_, code_->apply(op, operand(), y.operand())};
  }
  Emitted with(Op op, C y) const {
    return {*code_, code_->apply(op, operand(), Assembler::Operand(y))};
  }
  Emitted with_bits(Op op, std::uint64_t bits) const {
    return {*code_, code_->apply(op, operand(), Assembler::Operand::of_bits(bits))};
  }
  static constexpr std::uint64_t sign_bit = std::uint64_t{1} << (8 * sizeof(C) - 1);

 private:
  Assembler::Mask compare(ScalarOp op, C y) const {
    return code_->compare(op, vector_, Assembler::Operand(y));
  }
  Assembler* code_;
  Assembler::Vector vector_;
};

// --- the steps of functions.hpp ---

template <class C>
inline Assembler::Operand operand_of(const Emitted<C>& x) {
  return x.operand();
}
template <class C>
inline Assembler::Operand operand_of(Emitted<C>&& x) {
  return std::move(x).operand();
}
inline Assembler::Operand operand_of(float x) { return Assembler::Operand(x); }
inline Assembler::Operand operand_of(double x) { return Assembler::Operand(x); }

template <class T>
inline constexpr bool is_emitted = false;
template <class C>
inline constexpr bool is_emitted<Emitted<C>> = true;

template <class X, class... Rest>
auto& code_of(const X& x, const Rest&... rest) {
  if constexpr (is_emitted<X>)
    return x.code();
  else
    return code_of(rest...);
}
template <class... T>
struct FirstEmitted;
template <class C, class... Rest>
struct FirstEmitted<Emitted<C>, Rest...> {
  using type = Emitted<C>;
};
template <class T, class... Rest>
struct FirstEmitted<T, Rest...> : FirstEmitted<Rest...> {};
template <class... T>
using EmittedOf = typename FirstEmitted<std::remove_cvref_t<T>...>::type;

template <class X, class Y, class Z>
EmittedOf<X, Y, Z> multiply_add(X&& x, Y&& y, Z&& z) {
  Assembler& code = code_of(x, y, z);
  return {code, code.multiply_add(operand_of(std::forward<X>(x)), operand_of(std::forward<Y>(y)),
                                  operand_of(std::forward<Z>(z)), false, false)};
}
template <class X, class Y, class Z>
EmittedOf<X, Y, Z> minus_product(X&& x, Y&& y, Z&& z) {
  Assembler& code = code_of(x, y, z);
  return {code, code.multiply_add(operand_of(std::forward<X>(x)), operand_of(std::forward<Y>(y)),
                                  operand_of(std::forward<Z>(z)), true, false)};
}

template <class X, class Y, class Z>
EmittedOf<X, Y, Z> product_and(X&& x, Y&& y, Z&& z) {
  return multiply_add(std::forward<X>(x), std::forward<Y>(y), std::forward<Z>(z));
}
template <class X, class Y, class C>
Emitted<C> rest_of_product(const X& x, const Y& y, const Emitted<C>& product) {
  Assembler& code = product.code();
  return {code, code.multiply_add(operand_of(x), operand_of(y), product.operand(), false, true)};
}

template <class C>
Emitted<C> with_sign_of(const Emitted<C>& size, const Emitted<C>& x) {
  return {x.code(), x.code().with_sign_of(size.vector(), x.vector())};
}
template <class C>
Emitted<C> magnitude(const Emitted<C>& x) {
  return x.with_bits(Assembler::Arithmetic::bit_and, ~Emitted<C>::sign_bit);
}
template <class C>
Emitted<C> upper_half(const Emitted<C>& x) {
  using K = functions::Constants<C>;
  return x.with_bits(Assembler::Arithmetic::integer_add, K::half_unit)
      .with_bits(Assembler::Arithmetic::bit_and, K::upper_half);
}
// Where x is NaN, these take the second operand.
template <class C>
Emitted<C> at_most(const Emitted<C>& x, C most) {
  Assembler& code = x.code();
  return {code, code.apply(Assembler::Arithmetic::least, operand_of(most), x.operand())};
}
template <class C>
Emitted<C> at_least(const Emitted<C>& x, C least) {
  Assembler& code = x.code();
  return {code, code.apply(Assembler::Arithmetic::largest, operand_of(least), x.operand())};
}

template <class Yes, class No>
EmittedOf<Yes, No> choose(const Assembler::Mask& mask, const Yes& yes, const No& no) {
  Assembler& code = code_of(yes, no);
  const auto vector = [&](const auto& value) {
    if constexpr (is_emitted<std::remove_cvref_t<decltype(value)>>)
      return value.vector();
    else
      return code.constant(value);
  };
  const Assembler::Vector y = vector(yes), n = vector(no);
  return {code, code.select(mask, y, n)};
}

/// value · 2^k, where there is no instruction, as products with two powers that are normal;
/// `biased` is k + 2 · bias.
template <class C>
Emitted<C> scaled_by(const Emitted<C>& value, const Emitted<C>& biased) {
  Assembler& code = value.code();
  const auto power = [&](const Emitted<C>& exponent) {
    return Emitted<C>(code,
                      code.shift_left(exponent.vector(), functions::Constants<C>::mantissa_bits));
  };
  const Emitted<C> half(code, code.shift_right(biased.vector(), 1));
  return value * power(half) * power(biased.with(Assembler::Arithmetic::integer_subtract, half));
}
template <class C>
Emitted<C> scaled(const Emitted<C>& value, const functions::Whole<Emitted<C>>& k) {
  Assembler& code = value.code();
  if (code.has_scale()) return {code, code.scale(value.vector(), k.number.vector())};
  return scaled_by(value, k.shifted.with_bits(Assembler::Arithmetic::integer_subtract,
                                              functions::Constants<C>::biased_from));
}
/// value times the power of two of this exponent.
template <class C>
Emitted<C> times_power(const Emitted<C>& value, const Assembler::Vector& exponent) {
  Assembler& code = value.code();
  return value *
         Emitted<C>(code, code.shift_left(exponent, functions::Constants<C>::mantissa_bits));
}
template <class C>
Emitted<C> lifted(const Emitted<C>& value, const functions::Whole<Emitted<C>>& k) {
  return times_power(value, k.shifted
                                .with_bits(Assembler::Arithmetic::integer_subtract,
                                           functions::Constants<C>::lifted_from)
                                .vector());
}
template <class C>
Emitted<C> scaled_below(const Emitted<C>& value, const functions::Whole<Emitted<C>>& k) {
  return value.code().has_scale() ? scaled(value, k) : lifted(value, k) * functions::lowered<C>;
}
template <class C>
Emitted<C> minus_scaled_below(const Emitted<C>& value, const functions::Whole<Emitted<C>>& k,
                              const Emitted<C>& x) {
  if (value.code().has_scale()) return x - scaled(value, k);
  return minus_product(lifted(value, k), functions::lowered<C>, x);
}
template <class C>
Emitted<C> scaled_down(const Emitted<C>& value, const functions::Whole<Emitted<C>>& k) {
  Assembler& code = value.code();
  if (code.has_scale()) return {code, code.scale(value.vector(), (-k.number).vector())};
  const auto from = Assembler::Operand::of_bits(functions::Constants<C>::lowered_from);
  return times_power(value, code.apply(Assembler::Arithmetic::integer_subtract, from,
                                       k.shifted.operand())) *
         functions::lowered<C>;
}
template <class C>
Emitted<C> power_down(const functions::Whole<Emitted<C>>& k) {
  Assembler& code = k.number.code();
  return scaled_down(Emitted<C>(code, code.constant(1)), k);
}

template <class C>
functions::Split<Emitted<C>> split(const Emitted<C>& x) {
  using K = functions::Constants<C>;
  using Bits = typename K::Bits;
  using Op = Assembler::Arithmetic;
  Assembler& code = x.code();
  if (code.has_split()) {
    Assembler::Vector m, e;
    code.split(x.vector(), m, e);
    return {Emitted<C>(code, m) - C(1), {code, e}, true};
  }
  const Assembler::Mask is_subnormal = x < std::numeric_limits<C>::min();
  const auto constant = [&](C value) { return Emitted<C>(code, code.constant(value)); };
  const Emitted<C> normal =
      x * choose(is_subnormal, constant(C(Bits{1} << (K::mantissa_bits + 1))), constant(1));
  const Emitted<C> bits =
      normal.with_bits(Op::integer_subtract, std::bit_cast<Bits>(C(K::log_least)));
  const Emitted<C> whole(code, code.shift_right_signed(bits.vector(), K::mantissa_bits));
  const Emitted<C> exponent(code, code.shift_left(whole.vector(), K::mantissa_bits));
  const Emitted<C> e =
      whole.with_bits(Op::integer_add, std::bit_cast<Bits>(C(K::to_integer))) - K::to_integer;
  return {normal.with(Op::integer_subtract, exponent) - C(1),
          e - choose(is_subnormal, constant(C(K::mantissa_bits + 1)), constant(0)), false};
}

template <class C, std::size_t n>
Emitted<C> look_up(const C (&numbers)[n], const Emitted<C>& place) {
  return {place.code(), place.code().look_up(numbers, static_cast<int>(n), place.vector())};
}
inline Emitted<float> last_bits(const Emitted<float>& x) { return x; }
template <class Tail, class C>
Emitted<C> tail_piece(const Emitted<C>& s) {
  using K = functions::Constants<C>;
  using Op = Assembler::Arithmetic;
  Assembler& code = s.code();
  if constexpr (sizeof(C) == 4) {
    return {code, code.shift_right(s.vector(), Tail::shift)};
  } else {
    // NaN is in the last piece.
    const Emitted<C> number(code,
                            code.apply(Op::least, s.operand(), operand_of(C(K::tail_last + 1))));
    return Emitted<C>(code, code.shift_right(number.vector(), Tail::shift))
        .with_bits(Op::integer_subtract, static_cast<std::uint64_t>(K::bias) << 3);
  }
}
template <class Tail, class C>
Emitted<C> tail_place(const Emitted<C>& s, const Emitted<C>& piece) {
  if constexpr (requires { Tail::places; }) {
    return look_up(Tail::places, piece);
  } else {
    static_assert(Tail::middle == 0);
    return s.with_bits(Assembler::Arithmetic::bit_and, Tail::begin) - C(1);
  }
}
/// The numbers of f64 of each piece beside each other, in rows of 2^tail_row_shift bytes.
inline constexpr int tail_row_shift = 7;
template <class Tail>
inline constexpr auto tail_rows = [] {
  constexpr std::size_t numbers = std::size(Tail::numbers), pieces = std::size(Tail::numbers[0]);
  constexpr std::size_t row = (std::size_t{1} << tail_row_shift) / sizeof(double);
  static_assert(numbers <= row && numbers % 2 == 0);
  struct {
    alignas(64) double rows[pieces][row];
  } table{};
  for (std::size_t p = 0; p < pieces; ++p) {
    for (std::size_t n = 0; n < numbers; ++n) table.rows[p][n] = Tail::numbers[n][p];
  }
  return table;
}();

/// The numbers of each lane's piece, each to be asked for once, as its register may be reused, and
/// one after the other: rows give two, of which the second is kept until then.
template <class Tail, class C>
class TailNumbers {
 public:
  explicit TailNumbers(const Emitted<C>& piece) : piece_(piece) {
    if constexpr (std::is_same_v<C, double>)
      rows_ = piece.code().rows_of(&tail_rows<Tail>, tail_row_shift, piece.vector());
  }
  Emitted<C> operator[](std::size_t i) {
    if (rows_.empty()) return look_up(Tail::numbers[i], piece_);
    if (i / 2 != pair_) {
      pair_ = i / 2;
      two_ = piece_.code().two_of_rows(rows_, static_cast<int>(2 * pair_ * sizeof(C)));
    }
    return {piece_.code(), i % 2 == 0 ? two_.first : two_.second};
  }

 private:
  Emitted<C> piece_;
  std::vector<Assembler::Int> rows_;
  std::size_t pair_ = ~std::size_t{0};
  std::pair<Assembler::Vector, Assembler::Vector> two_;
};
template <class Tail, class C>
TailNumbers<Tail, C> tail_numbers(const Emitted<C>& /*s*/, const Emitted<C>& piece) {
  return TailNumbers<Tail, C>(piece);
}
template <class F>
auto with_tail(const Emitted<float>& x, const F& f) {
  using K = functions::Constants<float>;
  return x.code().looks_up_32() ? f(K::LongTail()) : f(K::ShortTail());
}
template <class F>
auto with_tail(const Emitted<double>&, const F& f) {
  return f(functions::Constants<double>::Tail());
}

}  // namespace ein::host
