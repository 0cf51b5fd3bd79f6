#if EIN_ASMJIT
#include "cpu/vector_code.hpp"

#include <bit>
#include <limits>
#include <stdexcept>

namespace ein::host {

namespace x86 = asmjit::x86;

namespace {

// Predicates of vcmpps that raise nothing: false for NaN, but for "not equal".
enum Predicate : unsigned {
  equal = 0x00,
  not_equal = 0x04,
  unordered = 0x03,
  less = 0x11,
  less_equal = 0x12,
  greater_equal = 0x1D,
  greater = 0x1E
};

Predicate predicate(ScalarOp op) {
  switch (op) {
    case ScalarOp::lt:
      return less;
    case ScalarOp::le:
      return less_equal;
    case ScalarOp::gt:
      return greater;
    case ScalarOp::ge:
      return greater_equal;
    case ScalarOp::eq:
      return equal;
    case ScalarOp::ne:
      return not_equal;
    default:
      throw std::logic_error("vector code: not a comparison");
  }
}

constexpr std::uint32_t sign_bit = 0x80000000U;

}  // namespace

x86::Mem VectorCode::constant_bits(std::uint32_t bits) {
  x86::Mem mem = code_.newUInt32Const(asmjit::ConstPoolScope::kLocal, bits);
  mem.setBroadcast(x86::Mem::Broadcast::k1To16);
  return mem;
}

x86::Mem VectorCode::constant(float value) {
  return constant_bits(std::bit_cast<std::uint32_t>(value));
}

template <class Emit>
void VectorCode::at_entry(const Emit& emit) {
  asmjit::BaseNode* const here = code_.setCursor(entry_);
  emit();
  const bool is_at_entry = here == entry_;
  entry_ = code_.cursor();
  if (!is_at_entry) code_.setCursor(here);
}

VectorCode::Vector VectorCode::constant_vector(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto [found, is_new] = constants_.try_emplace(bits);
  if (is_new) {
    found->second = code_.newZmm();
    at_entry([&] {
      code_.vbroadcastss(found->second, code_.newUInt32Const(asmjit::ConstPoolScope::kLocal, bits));
    });
  }
  return found->second;
}

VectorCode::Vector VectorCode::table(const void* sixteen) {
  const auto [found, is_new] = tables_.try_emplace(sixteen);
  if (is_new) {
    found->second = code_.newZmm();
    at_entry([&] {
      code_.vmovaps(found->second, code_.newConst(asmjit::ConstPoolScope::kLocal, sixteen, 64));
    });
  }
  return found->second;
}

VectorCode::Vector VectorCode::copy(const Vector& x) {
  const Vector y = code_.newZmm();
  code_.vmovaps(y, x);
  return y;
}

bool VectorCode::can_load(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::i32:
    case DType::u8:
    case DType::boolean:
      return true;
    default:
      return false;
  }
}
bool VectorCode::can_store(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

VectorCode::Vector VectorCode::load(const x86::Mem& from, DType dtype, const x86::KReg* mask) {
  const Vector result = code_.newZmm();
  const auto masked = [&]() -> x86::Compiler& {
    if (mask) code_.k(*mask).z();
    return code_;
  };
  switch (dtype) {
    case DType::f32:
      masked().vmovups(result, from);
      return result;
    case DType::bf16:
      masked().vpmovzxwd(result, from);
      code_.vpslld(result, result, 16);
      return result;
    case DType::f16:
      masked().vcvtph2ps(result, from);
      return result;
    case DType::i32:
      masked().vcvtdq2ps(result, from);
      return result;
    default:
      masked().vpmovzxbd(result, from);
      if (dtype == DType::boolean) code_.vpminud(result, result, constant_bits(1));
      code_.vcvtdq2ps(result, result);
      return result;
  }
}

VectorCode::Vector VectorCode::load_every_other(const x86::Mem& from, const x86::KReg* mask) {
  static constexpr std::uint32_t even[16] = {0,  2,  4,  6,  8,  10, 12, 14,
                                             16, 18, 20, 22, 24, 26, 28, 30};
  constexpr std::uint32_t first_of_two = 0x55555555;
  x86::KReg low, high;
  if (mask) {
    // Each of its bits becomes two, the second of them 0.
    const x86::Gp bits = code_.newInt32(), spread = code_.newInt32();
    code_.kmovw(bits, *mask);
    code_.mov(spread, first_of_two);
    code_.pdep(bits, bits, spread);
    low = code_.newKd();
    high = code_.newKd();
    code_.kmovd(low, bits);
    code_.kshiftrd(high, low, 16);
  } else {
    if (!every_other_.isValid()) {
      every_other_ = code_.newKd();
      at_entry([&] {
        const x86::Gp bits = code_.newInt32();
        code_.mov(bits, first_of_two);
        code_.kmovd(every_other_, bits);
      });
    }
    low = high = every_other_;
  }
  const Vector result = code_.newZmm(), behind = code_.newZmm();
  code_.k(low).z().vmovups(result, from);
  code_.k(high).z().vmovups(behind, from.cloneAdjusted(64));
  code_.vpermt2ps(result, table(even), behind);
  return result;
}

VectorCode::Vector VectorCode::load_one(const x86::Gp& from, DType dtype) {
  const Vector result = code_.newZmm();
  const x86::Gp bits = code_.newInt32();
  switch (dtype) {
    case DType::f32:
      code_.vbroadcastss(result, x86::dword_ptr(from));
      return result;
    case DType::bf16:
      code_.movzx(bits, x86::word_ptr(from));
      code_.shl(bits, 16);
      code_.vpbroadcastd(result, bits);
      return result;
    case DType::f16: {
      code_.movzx(bits, x86::word_ptr(from));
      const x86::Xmm half = code_.newXmm();
      code_.vmovd(half, bits);
      code_.vcvtph2ps(half, half);
      code_.vbroadcastss(result, half);
      return result;
    }
    case DType::i64: {
      const x86::Xmm number = code_.newXmm();
      code_.vxorps(number, number, number);
      code_.vcvtsi2ss(number, number, x86::qword_ptr(from));
      code_.vbroadcastss(result, number);
      return result;
    }
    case DType::i32:
      code_.vpbroadcastd(result, x86::dword_ptr(from));
      break;
    default:
      code_.movzx(bits, x86::byte_ptr(from));
      code_.vpbroadcastd(result, bits);
      if (dtype == DType::boolean) code_.vpminud(result, result, constant_bits(1));
  }
  code_.vcvtdq2ps(result, result);
  return result;
}

/// The nearest bf16, halves to even, in the upper half of each lane; NaN stays NaN.
VectorCode::Vector VectorCode::round_to_bf16(const Vector& value) {
  const Vector odd = code_.newZmm(), rounded = code_.newZmm(), quiet = code_.newZmm();
  const x86::KReg is_nan = code_.newKw();
  code_.vcmpps(is_nan, value, value, 0x03);
  code_.vpsrld(odd, value, 16);
  code_.vpandd(odd, odd, constant_bits(1));
  code_.vpaddd(rounded, value, constant_bits(0x7FFFU));
  code_.vpaddd(rounded, rounded, odd);
  code_.vpord(quiet, value, constant_bits(0x00400000U));
  code_.k(is_nan).vmovdqa32(rounded, quiet);
  return rounded;
}

VectorCode::Vector VectorCode::store(const x86::Mem& to, DType dtype, const Vector& value,
                                     const x86::KReg* mask) {
  const auto masked = [&]() -> x86::Compiler& {
    if (mask) code_.k(*mask);
    return code_;
  };
  if (dtype == DType::f32) {
    masked().vmovups(to, value);
    return value;
  }
  if (dtype == DType::f16) {
    const x86::Ymm halves = code_.newYmm();
    code_.vcvtps2ph(halves, value, 0);
    masked().vmovdqu16(to, halves);
    const Vector again = code_.newZmm();
    code_.vcvtph2ps(again, halves);
    return again;
  }
  const Vector rounded = round_to_bf16(value), upper = code_.newZmm();
  code_.vpsrld(upper, rounded, 16);
  masked().vpmovdw(to, upper);
  code_.vpslld(upper, upper, 16);
  return upper;
}

VectorCode::Vector VectorCode::store_one(const x86::Gp& to, DType dtype, const Vector& value) {
  if (dtype == DType::f32) {
    code_.vmovss(x86::ptr(to), value.xmm());
    return value;
  }
  const x86::KReg first = code_.newKw();
  const x86::Gp bit = code_.newInt32();
  code_.mov(bit, 1);
  code_.kmovw(first, bit);
  return store(x86::ptr(to), dtype, value, &first);
}

bool VectorCode::has(ScalarOp op) {
  switch (op) {
    case ScalarOp::input:
    case ScalarOp::constant:
    case ScalarOp::index:
    case ScalarOp::size:
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::logical_not:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
    case ScalarOp::exp:
    case ScalarOp::log:
    case ScalarOp::tanh:
    case ScalarOp::erf:
    case ScalarOp::sigmoid:
    case ScalarOp::silu:
    case ScalarOp::normal_cdf:
    case ScalarOp::gelu:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::div:
    case ScalarOp::min:
    case ScalarOp::max:
    case ScalarOp::lt:
    case ScalarOp::le:
    case ScalarOp::gt:
    case ScalarOp::ge:
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::where:
      return true;
    default:
      return false;
  }
}

bool VectorCode::is_comparison(ScalarOp op) { return op >= ScalarOp::lt && op <= ScalarOp::ne; }

x86::KReg VectorCode::compare(ScalarOp op, const Vector& x, const Vector& y) {
  const x86::KReg mask = code_.newKw();
  code_.vcmpps(mask, x, y, predicate(op));
  return mask;
}

x86::KReg VectorCode::is_nonzero(const Vector& x) {
  const x86::KReg mask = code_.newKw();
  code_.vcmpps(mask, x, constant(0), not_equal);
  return mask;
}

VectorCode::Vector VectorCode::select(const x86::KReg& mask, const Vector& yes, const Vector& no) {
  const Vector result = copy(no);
  code_.k(mask).vmovaps(result, yes);
  return result;
}

VectorCode::Vector VectorCode::from_mask(const x86::KReg& mask) {
  const Vector result = code_.newZmm(),
               one = constant_vector(1);  // before the mask, which the next instruction takes
  code_.k(mask).z().vmovaps(result, one);
  return result;
}

VectorCode::Vector VectorCode::multiply_add(const Vector& x, const Vector& y, const Vector& z,
                                            bool minus_product, bool minus_z) {
  const Vector result = copy(x);
  if (minus_product) {
    minus_z ? code_.vfnmsub213ps(result, y, z) : code_.vfnmadd213ps(result, y, z);
  } else {
    minus_z ? code_.vfmsub213ps(result, y, z) : code_.vfmadd213ps(result, y, z);
  }
  return result;
}

/// Of two numbers, where x is NaN or beyond y, x.
VectorCode::Vector VectorCode::extreme(bool is_max, const Vector& x, const Vector& y) {
  const Vector result = code_.newZmm();
  const x86::KReg is_nan = code_.newKw();
  is_max ? code_.vmaxps(result, x, y) : code_.vminps(result, x, y);
  code_.vcmpps(is_nan, x, x, unordered);
  code_.k(is_nan).vmovaps(result, x);
  return result;
}

VectorCode::Vector VectorCode::apply(ScalarOp op, const Vector& x, const Vector& y,
                                     const Vector& z) {
  if (is_comparison(op)) return from_mask(compare(op, x, y));
  const auto fresh = [&](auto&& emit) {
    const Vector result = code_.newZmm();
    emit(result);
    return result;
  };
  switch (op) {
    case ScalarOp::neg:
      return fresh([&](const Vector& r) { code_.vxorps(r, x, constant_bits(sign_bit)); });
    case ScalarOp::abs:
      return fresh([&](const Vector& r) { code_.vandps(r, x, constant_bits(~sign_bit)); });
    case ScalarOp::sqrt:
      return fresh([&](const Vector& r) { code_.vsqrtps(r, x); });
    case ScalarOp::rsqrt:
      return fresh([&](const Vector& r) {
        code_.vsqrtps(r, x);
        code_.vdivps(r, constant_vector(1), r);
      });
    case ScalarOp::exp:
      return exp(x);
    case ScalarOp::log:
      return log(x);
    case ScalarOp::tanh:
      return tanh(x);
    case ScalarOp::erf:
      return erf(x);
    case ScalarOp::sigmoid:
      return sigmoid(x);
    case ScalarOp::silu:
      return silu(x);
    case ScalarOp::normal_cdf:
      return normal_cdf(x);
    case ScalarOp::gelu:
      return gelu(x);
    case ScalarOp::add:
      return fresh([&](const Vector& r) { code_.vaddps(r, x, y); });
    case ScalarOp::sub:
      return fresh([&](const Vector& r) { code_.vsubps(r, x, y); });
    case ScalarOp::mul:
      return fresh([&](const Vector& r) { code_.vmulps(r, x, y); });
    case ScalarOp::div:
      return fresh([&](const Vector& r) { code_.vdivps(r, x, y); });
    case ScalarOp::min:
      return extreme(false, x, y);
    case ScalarOp::max:
      return extreme(true, x, y);
    case ScalarOp::logical_not: {
      const x86::KReg mask = code_.newKw();
      code_.vcmpps(mask, x, constant(0), equal);
      return from_mask(mask);
    }
    case ScalarOp::logical_and:
    case ScalarOp::logical_or: {
      const x86::KReg a = is_nonzero(x), b = is_nonzero(y), both = code_.newKw();
      op == ScalarOp::logical_and ? code_.kandw(both, a, b) : code_.korw(both, a, b);
      return from_mask(both);
    }
    case ScalarOp::where:
      return select(is_nonzero(x), y, z);
    default:
      throw std::logic_error("vector code: an operation that it lacks");
  }
}

void VectorCode::combine(Combine combine, const Vector& acc, const Vector& x,
                         const x86::KReg* mask) {
  if (mask) code_.k(*mask);
  switch (combine) {
    case Combine::sum:
      code_.vaddps(acc, acc, x);
      return;
    case Combine::prod:
      code_.vmulps(acc, acc, x);
      return;
    case Combine::max:
      code_.vmaxps(acc, x, acc);
      return;  // of NaN and another, the second operand is taken
    case Combine::min:
      code_.vminps(acc, x, acc);
      return;
    default:
      throw std::logic_error("vector code: a combination that it lacks");
  }
}

void VectorCode::note_nan(const x86::KReg& found, const Vector& x, const x86::KReg* mask) {
  const x86::KReg here = code_.newKw();
  code_.vcmpps(here, x, x, unordered);
  if (mask) code_.kandw(here, here, *mask);
  code_.korw(found, found, here);
}

void VectorCode::put_nan(const Vector& acc, const x86::KReg& found) {
  const asmjit::Label none = code_.newLabel();
  code_.kortestw(found, found);
  code_.jz(none);
  code_.vaddps(acc, constant_vector(std::numeric_limits<float>::quiet_NaN()), acc);
  code_.bind(none);
}

void VectorCode::add_product(const Vector& acc, const Vector& x, const Vector& y,
                             const x86::KReg* mask) {
  if (mask) code_.k(*mask);
  code_.vfmadd231ps(acc, x, y);
}

void VectorCode::combine_lanes(Combine how, const Vector& acc) {
  const Vector other = code_.newZmm();
  for (unsigned order : {0x4EU, 0xB1U}) {
    code_.vshuff64x2(other, acc, acc, order);
    combine(how, acc, other, nullptr);
  }
  for (unsigned order : {0x4EU, 0xB1U}) {
    code_.vpermilps(other, acc, order);
    combine(how, acc, other, nullptr);
  }
}

VectorCode::Vector VectorCode::combine_lanes_of(Combine how, std::span<const Vector> sixteen) {
  // Each level combines halves: of a vector, of its halves, of the quarters and of the pairs of
  // lanes; and takes two vectors to one.
  const auto join = [&](const Vector& x, const Vector& y, const auto& shuffle) {
    const Vector low = code_.newZmm(), high = code_.newZmm();
    shuffle(low, x, y, false);
    shuffle(high, x, y, true);
    combine(how, low, high, nullptr);
    return low;
  };
  const auto halves = [&](const Vector& to, const Vector& x, const Vector& y, bool high) {
    code_.vshuff64x2(to, x, y, high ? 0xEE : 0x44);
  };
  const auto quarters = [&](const Vector& to, const Vector& x, const Vector& y, bool high) {
    code_.vshuff64x2(to, x, y, high ? 0xDD : 0x88);
  };
  const auto pairs = [&](const Vector& to, const Vector& x, const Vector& y, bool high) {
    high ? code_.vunpckhpd(to, x, y) : code_.vunpcklpd(to, x, y);
  };
  const auto lanes = [&](const Vector& to, const Vector& x, const Vector& y, bool high) {
    code_.vshufps(to, x, y, high ? 0xDD : 0x88);
  };
  Vector four[4];
  for (std::size_t j = 0; j < 4; ++j) {
    const Vector first = join(sixteen[j], sixteen[j + 4], halves),
                 second = join(sixteen[j + 8], sixteen[j + 12], halves);
    four[j] = join(first, second, quarters);
  }
  return join(join(four[0], four[1], pairs), join(four[2], four[3], pairs), lanes);
}

}  // namespace ein::host
#endif
