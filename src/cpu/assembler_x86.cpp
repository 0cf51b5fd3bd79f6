// AVX2 with FMA, and AVX-512.
#include "cpu/assembler.hpp"
#include "size/ask.hpp"
#if EIN_ASMJIT && defined(__x86_64__)
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <stdexcept>

#include <asmjit/x86.h>

namespace ein::host {
namespace {

namespace x86 = asmjit::x86;
using Id = x86::Inst::Id;

/// A comparison of cmpps that raises nothing: false for NaN, but for "not equal".
unsigned predicate(ScalarOp op) {
  switch (op) {
    case ScalarOp::lt:
      return 0x11;
    case ScalarOp::le:
      return 0x12;
    case ScalarOp::gt:
      return 0x1E;
    case ScalarOp::ge:
      return 0x1D;
    case ScalarOp::eq:
      return 0x00;
    case ScalarOp::ne:
      return 0x04;
    default:
      throw std::logic_error("assembler: not a comparison");
  }
}
constexpr unsigned unordered = 0x03;

/// Masks that begin with the last of the ones; and those of every other element, of 4 or 8 bytes.
constexpr std::uint32_t all = ~0U;
constexpr std::uint32_t ones[16] = {all, all, all, all, all, all, all, all};
constexpr std::uint32_t every_other_f32[32] = {all, 0, all, 0, all, 0, all, 0,
                                               all, 0, all, 0, all, 0, all, 0};
constexpr std::uint32_t every_other_f64[32] = {all, all, 0, 0, all, all, 0, 0,
                                               all, all, 0, 0, all, all, 0, 0};

class X86Assembler final : public Assembler {
 public:
  X86Assembler(bool wide, DType compute, asmjit::CodeHolder& holder)
      : Assembler(code_, compute, wide ? Isa::v4 : Isa::v3), code_(&holder), wide_(wide) {}

  // --- the function ---

  Int begin() override {
    asmjit::FuncNode* const function = code_.addFunc(asmjit::FuncSignatureT<void, const void*>());
    function->frame().setAvxEnabled();
    if (wide_) function->frame().setAvx512Enabled();
    function->frame().setAvxCleanup();
    const x86::Gp argument = code_.newIntPtr();
    function->setArg(0, argument);
    return {argument};
  }
  void finish_streaming() override { code_.sfence(); }

  // --- integers ---

  Int new_int() override { return {code_.newInt64()}; }
  void set(const Int& x, std::int64_t value) override {
    value == 0 ? code_.xor_(gp(x), gp(x)) : code_.mov(gp(x), value);
  }
  void set(const Int& x, const Int& y) override { code_.mov(gp(x), gp(y)); }
  void add(const Int& x, std::int64_t value) override { code_.add(gp(x), value); }
  void add(const Int& x, const Int& y) override { code_.add(gp(x), gp(y)); }
  void subtract(const Int& x, const Int& y) override { code_.sub(gp(x), gp(y)); }
  void round_down(const Int& x, std::uint32_t shift) override {
    code_.and_(gp(x), -(std::int64_t{1} << shift));
  }
  void lower_to(const Int& x, const Int& y) override {
    code_.cmp(gp(x), gp(y));
    code_.cmovg(gp(x), gp(y));
  }
  Int load_int(const Int& base, std::int64_t displacement) override {
    const x86::Gp x = code_.newInt64();
    code_.mov(x, x86::qword_ptr(gp(base), static_cast<std::int32_t>(displacement)));
    return {x};
  }
  void add_to_memory(const Int& base, std::int64_t displacement, const Int& by) override {
    code_.add(x86::qword_ptr(gp(base), static_cast<std::int32_t>(displacement)), gp(by));
  }
  Int address(const Address& of) override {
    const x86::Gp x = code_.newIntPtr();
    code_.lea(x, mem(of));
    return {x};
  }
  void jump(const asmjit::Label& to) override { code_.jmp(to); }
  void jump_if_less(const Int& x, const Int& y, const asmjit::Label& to) override {
    code_.cmp(gp(x), gp(y));
    code_.jl(to);
  }
  void jump_if_less(const Int& x, std::int64_t y, const asmjit::Label& to) override {
    code_.cmp(gp(x), y);
    code_.jl(to);
  }
  void jump_if_not_less(const Int& x, const Int& y, const asmjit::Label& to) override {
    code_.cmp(gp(x), gp(y));
    code_.jge(to);
  }

  // --- memory ---

  Tail tail(const Int& count) override {
    if (wide_) {
      const x86::Gp bits = code_.newInt64();
      const x86::KReg mask = code_.newKw();
      code_.mov(bits, -1);
      code_.bzhi(bits, bits, gp(count));
      code_.kmovw(mask, bits.r32());
      return {{mask}, count};
    }
    const x86::Vec mask = new_vec();
    const Int most = new_int(), at_most = new_int();
    set(most, lanes());
    set(at_most, count);
    lower_to(at_most, most);
    code_.vmovdqu(mask.as<x86::Ymm>(), in_table(ones, 32, at_most, width()));
    return {{mask}, at_most};
  }

  Vector load(const Address& at, DType dtype, const Tail* tail) override {
    if (dtype == DType::i64) return {load_i64(at, tail)};
    const x86::Mem from = tail && !wide_ && is_narrow(dtype) ? staged(at, dtype, *tail) : mem(at);
    const Tail* const masked = tail && !wide_ && is_narrow(dtype) ? nullptr : tail;
    const x86::Vec raw = half_if(is_f64() && dtype != DType::f64);
    switch (dtype) {
      case DType::f64:
      case DType::f32:
        if (masked && !wide_)
          code_.emit(dtype == DType::f64 ? Id::kIdVmaskmovpd : Id::kIdVmaskmovps, raw,
                     mask_for(dtype, masked), from);
        else
          emit_masked(dtype == DType::f64 ? Id::kIdVmovupd : Id::kIdVmovups, masked, raw, from);
        break;
      case DType::bf16:
        emit_masked(Id::kIdVpmovzxwd, masked, raw, from);
        code_.emit(Id::kIdVpslld, raw, raw, asmjit::Imm(16));
        break;
      case DType::f16:
        emit_masked(Id::kIdVcvtph2ps, masked, raw, from);
        break;
      case DType::i32:
        if (masked && !wide_)
          code_.emit(Id::kIdVpmaskmovd, raw, mask_for(dtype, masked), from);
        else
          emit_masked(wide_ ? Id::kIdVmovdqu32 : Id::kIdVmovdqu, masked, raw, from);
        return {from_integers(raw)};
      default:
        emit_masked(Id::kIdVpmovzxbd, masked, raw, from);
        if (dtype == DType::boolean) {
          const x86::Vec one = same(raw);
          code_.vpbroadcastd(one, code_.newUInt32Const(asmjit::ConstPoolScope::kLocal, 1));
          code_.vpminud(raw, raw, one);
        }
        return {from_integers(raw)};
    }
    return {is_f64() && dtype != DType::f64 ? to_f64(raw) : raw};
  }

  Vector load_every_other(const Address& at, const Tail* tail) override {
    const x86::Mem from = mem(at);
    const x86::Mem behind = from.cloneAdjusted(wide_ ? 64 : 32);
    const x86::Vec low = new_vec(), high = new_vec();
    if (wide_) {
      static constexpr std::uint32_t even[16] = {0,  2,  4,  6,  8,  10, 12, 14,
                                                 16, 18, 20, 22, 24, 26, 28, 30};
      static constexpr std::uint64_t even_f64[8] = {0, 2, 4, 6, 8, 10, 12, 14};
      constexpr std::uint32_t first_of_two = 0x55555555;
      x86::KReg of_low, of_high;
      if (tail) {
        // Each of its bits becomes two, the second of them 0.
        const x86::Gp bits = code_.newInt32(), spread = code_.newInt32();
        code_.kmovw(bits, k(tail->mask));
        code_.mov(spread, first_of_two);
        code_.pdep(bits, bits, spread);
        of_low = code_.newKd();
        of_high = code_.newKd();
        code_.kmovd(of_low, bits);
        code_.kshiftrd(of_high, of_low, static_cast<unsigned>(lanes()));
      } else {
        if (!every_other_.isValid()) {
          every_other_ = code_.newKd();
          before_loops([&] {
            const x86::Gp bits = code_.newInt32();
            code_.mov(bits, first_of_two);
            code_.kmovd(every_other_, bits);
          });
        }
        of_low = of_high = every_other_;
      }
      code_.k(of_low).z().emit(move(), low, from);
      code_.k(of_high).z().emit(move(), high, behind);
      const void* const order = is_f64() ? static_cast<const void*>(even_f64) : even;
      code_.emit(is_f64() ? Id::kIdVpermt2pd : Id::kIdVpermt2ps, low, table(order), high);
      return {low};
    }
    const x86::Vec mask_low = new_vec(), mask_high = new_vec();
    Int count;
    if (tail) {
      count = tail->count;
    } else {
      count = new_int();
      set(count, lanes());
    }
    const x86::Mem masks =
        in_table(is_f64() ? every_other_f64 : every_other_f32, 64, count, 2 * width());
    code_.vmovdqu(mask_low.as<x86::Ymm>(), masks);
    code_.vmovdqu(mask_high.as<x86::Ymm>(), masks.cloneAdjusted(32));
    const Id masked = is_f64() ? Id::kIdVmaskmovpd : Id::kIdVmaskmovps;
    code_.emit(masked, low, mask_low, from);
    code_.emit(masked, high, mask_high, behind);
    const x86::Vec result = new_vec();
    if (is_f64())
      code_.vunpcklpd(result, low, high);
    else
      code_.vshufps(result, low, high, 0x88);
    code_.vpermpd(result, result, 0xD8);
    return {result};
  }

  Vector load_one(const Int& from, DType dtype) override {
    const x86::Vec result = new_vec();
    const x86::Gp at = gp(from), bits = code_.newInt32();
    const x86::Xmm one = code_.newXmm();
    DType has = DType::f32;  // what `one` holds
    switch (dtype) {
      case DType::f32:
        if (!is_f64()) {
          code_.vbroadcastss(result, x86::dword_ptr(at));
          return {result};
        }
        code_.vmovss(one, x86::dword_ptr(at));
        break;
      case DType::f64:
        if (is_f64()) {
          code_.vbroadcastsd(result, x86::qword_ptr(at));
          return {result};
        }
        code_.vmovsd(one, x86::qword_ptr(at));
        has = DType::f64;
        break;
      case DType::bf16:
        code_.movzx(bits, x86::word_ptr(at));
        code_.shl(bits, 16);
        code_.vmovd(one, bits);
        break;
      case DType::f16:
        code_.movzx(bits, x86::word_ptr(at));
        code_.vmovd(one, bits);
        code_.vcvtph2ps(one, one);
        break;
      case DType::i64: {
        const x86::Gp number = code_.newInt64();
        code_.mov(number, x86::qword_ptr(at));
        return this->number({number});
      }
      case DType::i32: {
        const x86::Gp number = code_.newInt64();
        code_.movsxd(number, x86::dword_ptr(at));
        return this->number({number});
      }
      default: {
        code_.movzx(bits, x86::byte_ptr(at));
        if (dtype == DType::boolean) {
          const x86::Gp one_of = code_.newInt32();
          code_.mov(one_of, 1);
          code_.cmp(bits, one_of);
          code_.cmova(bits, one_of);
        }
        return this->number({bits.r64()});
      }
    }
    if (has != compute()) {
      if (is_f64())
        code_.vcvtss2sd(one, one, one);
      else
        code_.vcvtsd2ss(one, one, one);
    }
    broadcast(result, one);
    return {result};
  }

  Vector store(const Address& at, DType dtype, const Vector& value, const Tail* tail,
               bool is_read_again) override {
    const x86::Vec x = vec(value);
    if (dtype == compute()) {
      if (tail && !wide_)
        code_.emit(is_f64() ? Id::kIdVmaskmovpd : Id::kIdVmaskmovps, mem(at), mask_for(dtype, tail),
                   x);
      else
        emit_masked(move(), tail, mem(at), x);
      return value;
    }
    if (dtype == DType::f32) {
      const x86::Vec floats = to_f32(x);
      if (tail && !wide_)
        code_.emit(Id::kIdVmaskmovps, mem(at), mask_for(dtype, tail), floats);
      else
        emit_masked(Id::kIdVmovups, tail, mem(at), floats);
      return is_read_again ? Vector{to_f64(floats)} : Vector{};
    }
    const Halved result = halved(x, dtype);
    const x86::Vec& halves = result.halves;
    if (wide_) {
      emit_masked(Id::kIdVmovdqu16, tail, mem(at), halves);
    } else if (!tail) {
      is_f64() ? code_.vmovq(mem(at), halves.as<x86::Xmm>())
               : code_.vmovdqu(mem(at), halves.as<x86::Xmm>());
    } else {
      const x86::Mem stage = staging();
      code_.vmovdqu(stage, halves.as<x86::Xmm>());
      const x86::Gp from = code_.newIntPtr(), to = code_.newIntPtr();
      code_.lea(from, stage);
      code_.lea(to, mem(at));
      copy_elements(from, to, 2, tail->count);
    }
    return is_read_again ? as_loaded(result) : Vector{};
  }

  void stream(const Address& to, const Vector& value) override {
    code_.emit(is_f64() ? Id::kIdVmovntpd : Id::kIdVmovntps, mem(to), vec(value));
  }

  Vector store_one(const Int& to, DType dtype, const Vector& value) override {
    const x86::Vec x = vec(value);
    if (dtype == DType::f32) {
      const x86::Vec floats = is_f64() ? to_f32(x) : x;
      code_.vmovss(x86::dword_ptr(gp(to)), floats.xmm());
      return is_f64() ? Vector{to_f64(floats)} : value;
    }
    if (dtype == DType::f64) {
      code_.vmovsd(x86::qword_ptr(gp(to)), x.xmm());
      return value;
    }
    const Halved result = halved(x, dtype);
    code_.vpextrw(x86::word_ptr(gp(to)), result.halves.xmm(), 0);
    return as_loaded(result);
  }

  void prefetch(const Address& at) override { code_.prefetcht0(mem(at)); }

  // --- numbers ---

  Vector rounded(const Vector& x, DType dtype) override {
    if (dtype == compute()) return x;
    if (dtype == DType::f32) return {to_f64(to_f32(vec(x)))};
    if (dtype == DType::bf16 && !is_f64()) return without_lower_half(upper_bf16(x, x));
    return as_loaded(halved(vec(x), dtype));
  }

  Vector copy(const Vector& x) override {
    const x86::Vec y = new_vec();
    code_.vmovaps(y, vec(x));
    return {y};
  }
  void set(const Vector& x, const Vector& y) override { code_.vmovaps(vec(x), vec(y)); }

  Vector constant(double value) override {
    const std::uint64_t bits = is_f64() ? std::bit_cast<std::uint64_t>(value)
                                        : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return {constant_register(bits)};
  }

  Vector number(const Int& x) override {
    const x86::Xmm one = code_.newXmm();
    const x86::Vec result = new_vec();
    code_.vxorps(one, one, one);
    if (is_f64())
      code_.vcvtsi2sd(one, one, gp(x));
    else
      code_.vcvtsi2ss(one, one, gp(x));
    broadcast(result, one);
    return {result};
  }

  Vector count_from(const Int& first) override {
    static constexpr double ramp_f64[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static constexpr std::int32_t ramp[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const x86::Vec result = new_vec();
    if (is_f64()) {
      code_.vaddpd(result, vec(number(first)), table(ramp_f64));
      return {result};
    }
    const x86::Xmm one = code_.newXmm();
    code_.vmovd(one, gp(first).r32());
    code_.vpbroadcastd(result, one);
    code_.vpaddd(result, result, table(ramp));
    code_.vcvtdq2ps(result, result);
    return {result};
  }

  Vector apply(Arithmetic op, const Operand& x, const Operand& y) override {
    // Of two numbers of which one is NaN, the processor's extremes take the second.
    const x86::Vec result = new_vec(), first = in_register(x);
    if (wide_ && op >= Arithmetic::integer_add) {
      const Id id = op == Arithmetic::integer_add ? (is_f64() ? Id::kIdVpaddq : Id::kIdVpaddd)
                                                  : (is_f64() ? Id::kIdVpsubq : Id::kIdVpsubd);
      code_.emit(id, result, first, last(y));
      return {result};
    }
    code_.emit(id_of(op), result, first, last(y));
    return {result};
  }

  Vector square_root(const Vector& x) override {
    const x86::Vec result = new_vec();
    code_.emit(is_f64() ? Id::kIdVsqrtpd : Id::kIdVsqrtps, result, vec(x));
    return {result};
  }

  Vector whole(Rounding how, const Vector& x) override {
    const x86::Vec result = new_vec();
    const Id id = wide_ ? (is_f64() ? Id::kIdVrndscalepd : Id::kIdVrndscaleps)
                        : (is_f64() ? Id::kIdVroundpd : Id::kIdVroundps);
    constexpr int without_exceptions = 8;
    code_.emit(id, result, vec(x), static_cast<int>(how) | without_exceptions);
    return {result};
  }

  Vector multiply_add(const Operand& x, const Operand& y, const Operand& z, bool minus_product,
                      bool minus_z) override {
    if (x.is_constant) return multiply_add(y, x, z, minus_product, minus_z);
    // Order 132: first · third + second; 213: second · first + third; 231: second · third + first.
    // A constant comes third; the first is overwritten.
    const auto own = [&](const Operand& operand) {
      if (operand.is_last_use) return vec(operand.vector);
      const x86::Vec fresh = new_vec();
      code_.vmovaps(fresh, in_register(operand));
      return fresh;
    };
    const bool z_first = !z.is_constant && (z.is_last_use || (!x.is_last_use && !y.is_last_use) ||
                                            (y.is_constant && !x.is_last_use));
    if (z_first) {
      const x86::Vec to = own(z);
      code_.emit(fma(231, minus_product, minus_z), to, vec(x.vector), last(y));
      return {to};
    }
    if (y.is_constant) {
      const x86::Vec to = own(x);
      if (z.is_constant)
        code_.emit(fma(213, minus_product, minus_z), to, in_register(y), last(z));
      else
        code_.emit(fma(132, minus_product, minus_z), to, vec(z.vector), last(y));
      return {to};
    }
    const bool takes_y = !x.is_last_use && y.is_last_use;
    const x86::Vec to = own(takes_y ? y : x);
    code_.emit(fma(213, minus_product, minus_z), to, vec((takes_y ? x : y).vector), last(z));
    return {to};
  }

  Vector shift_left(const Vector& x, int by) override {
    return shifted(is_f64() ? Id::kIdVpsllq : Id::kIdVpslld, x, by);
  }
  Vector shift_right(const Vector& x, int by) override {
    return shifted(is_f64() ? Id::kIdVpsrlq : Id::kIdVpsrld, x, by);
  }
  Vector shift_right_signed(const Vector& x, int by) override {
    if (!is_f64()) return shifted(Id::kIdVpsrad, x, by);
    if (wide_) return shifted(Id::kIdVpsraq, x, by);
    // With the sign turned, which is taken off again.
    const std::uint64_t sign = std::uint64_t{1} << 63;
    const Vector turned = apply(Arithmetic::bit_xor, x, Operand::of_bits(sign));
    return apply(Arithmetic::integer_subtract, shift_right(turned, by),
                 Operand::of_bits(sign >> by));
  }

  Vector with_sign_of(const Vector& size, const Vector& x) override {
    const std::uint64_t sign = std::uint64_t{1} << (8 * width() - 1);
    if (wide_) {
      constexpr unsigned sign_of_second = 0xD8;  // where the third operand is set
      const x86::Vec result = new_vec();
      code_.vmovaps(result, vec(size));
      code_.emit(is_f64() ? Id::kIdVpternlogq : Id::kIdVpternlogd, result, vec(x),
                 constant_memory(sign), asmjit::Imm(sign_of_second));
      return {result};
    }
    const Vector of_x = apply(Arithmetic::bit_and, x, Operand::of_bits(sign)),
                 rest = apply(Arithmetic::bit_and, size, Operand::of_bits(~sign));
    return apply(Arithmetic::bit_or, of_x, rest);
  }

  bool has_scale() const override { return wide_; }
  Vector scale(const Vector& x, const Vector& k) override {
    const x86::Vec result = new_vec();
    code_.emit(is_f64() ? Id::kIdVscalefpd : Id::kIdVscalefps, result, vec(x), vec(k));
    return {result};
  }
  bool has_split() const override { return wide_ && !is_f64(); }
  void split(const Vector& x, Vector& m, Vector& e) override {
    constexpr unsigned from_three_quarters = 3, nan_if_negative = 2 << 2;
    const x86::Zmm mantissa = code_.newZmm(), exponent = code_.newZmm(), of_m = code_.newZmm();
    code_.vgetmantps(mantissa, vec(x).as<x86::Zmm>(), from_three_quarters | nan_if_negative);
    code_.vgetexpps(exponent, vec(x).as<x86::Zmm>());
    code_.vgetexpps(of_m, mantissa);
    code_.vsubps(exponent, exponent, of_m);
    m = {mantissa};
    e = {exponent};
  }

  Vector look_up(const void* numbers, int count, const Vector& places) override {
    const auto* const bytes = static_cast<const std::byte*>(numbers);
    if (wide_ && !is_f64() && count == 32) {
      const x86::Vec result = new_vec();
      code_.vmovaps(result, table(bytes));
      code_.vpermt2ps(result, vec(places), table(bytes + 64));
      return {result};
    }
    if (!wide_ && !is_f64() && count == 32) return look_up_by_eights(bytes, places);
    if (!is_f64() && count == 8) return look_up_in_eight(bytes, places);
    const x86::Gp base = code_.newIntPtr();
    code_.mov(base, reinterpret_cast<std::uintptr_t>(numbers));
    x86::Vec at = vec(places);
    if (count == 32) at = vec(apply(Arithmetic::bit_and, places, Operand::of_bits(31)));
    const x86::Vec result = new_vec();
    code_.vxorps(result.xmm(), result.xmm(), result.xmm());
    const x86::Mem from = x86::ptr(base, at, width() == 8 ? 3U : 2U);
    const Id id = is_f64() ? Id::kIdVgatherqpd : Id::kIdVgatherdps;
    if (wide_) {
      const x86::KReg every = code_.newKw();
      code_.kxnorw(every, every, every);
      code_.k(every).emit(id, result, from);
    } else {
      const x86::Vec every = new_vec();
      code_.vpcmpeqd(every, every, every);
      code_.emit(id, result, from, every);
    }
    return {result};
  }

  bool looks_up_32() const override { return wide_; }
  std::vector<Int> rows_of(const void* table, int shift, const Vector& places) override {
    const Vector at = apply(
        Arithmetic::integer_add, shift_left(places, shift),
        Operand::of_bits(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(table))));
    std::vector<Int> rows;
    for (unsigned pair = 0; pair < (wide_ ? 4U : 2U); ++pair) {
      x86::Xmm two = vec(at).xmm();
      if (pair > 0) {
        two = code_.newXmm();
        wide_ ? code_.vextracti64x2(two, vec(at).as<x86::Zmm>(), pair)
              : code_.vextracti128(two, vec(at).as<x86::Ymm>(), pair);
      }
      rows.push_back(new_int());
      code_.vmovq(gp(rows.back()), two);
      rows.push_back(new_int());
      code_.vpextrq(gp(rows.back()), two, 1);
    }
    return rows;
  }
  std::pair<Vector, Vector> two_of_rows(const std::vector<Int>& rows, int displacement) override {
    // Of the rows of even lanes, and of odd ones.
    const auto pairs = [&](std::size_t first) {
      const auto from = [&](std::size_t row) { return x86::ptr(gp(rows[row]), displacement); };
      const x86::Vec all = new_vec();
      code_.vmovups(all.xmm(), from(first));
      for (std::size_t row = first + 2; row < rows.size(); row += 2) {
        const auto at = static_cast<unsigned>(row / 2);
        wide_ ? code_.vinsertf64x2(all.as<x86::Zmm>(), all.as<x86::Zmm>(), from(row), at)
              : code_.vinsertf128(all.as<x86::Ymm>(), all.as<x86::Ymm>(), from(row), at);
      }
      return all;
    };
    const x86::Vec even = pairs(0), odd = pairs(1), low = new_vec(), high = new_vec();
    code_.emit(Id::kIdVunpcklpd, low, even, odd);
    code_.emit(Id::kIdVunpckhpd, high, even, odd);
    return {{low}, {high}};
  }

  // --- masks ---

  Mask compare(ScalarOp op, const Vector& x, const Operand& y) override {
    return compared(predicate(op), vec(x), last(y));
  }
  Mask is_nan(const Vector& x, const Vector& y) override {
    return compared(unordered, vec(x), vec(y));
  }
  Mask both(const Mask& x, const Mask& y) override {
    const Mask result = new_mask();
    wide_ ? code_.kandw(k(result), k(x), k(y)) : code_.vandps(vec(result), vec(x), vec(y));
    return result;
  }
  Mask either(const Mask& x, const Mask& y) override {
    const Mask result = new_mask();
    set_either(result, x, y);
    return result;
  }
  Mask none() override {
    const Mask result = new_mask();
    if (wide_)
      code_.kxorw(k(result), k(result), k(result));
    else
      code_.vxorps(vec(result), vec(result), vec(result));
    return result;
  }
  void note(const Mask& found, const Mask& x, const Tail* tail) override {
    set_either(found, found, tail ? both(x, tail->mask) : x);
  }
  void jump_if_none(const Mask& mask, const asmjit::Label& to) override {
    wide_ ? code_.kortestw(k(mask), k(mask)) : code_.vtestps(vec(mask), vec(mask));
    code_.jz(to);
  }
  Vector select(const Mask& mask, const Vector& yes, const Vector& no) override {
    const x86::Vec result = new_vec();
    if (wide_) {
      code_.k(k(mask)).emit(is_f64() ? Id::kIdVblendmpd : Id::kIdVblendmps, result, vec(no),
                            vec(yes));
    } else {
      blend(result, vec(no), vec(yes), vec(mask));
    }
    return {result};
  }

  // --- combinations ---

  void combine(Combine how, const Vector& acc, const Vector& x, const Tail* tail) override {
    const bool takes_acc = info(how).selects;  // where x is NaN
    const x86::Vec first = takes_acc ? vec(x) : vec(acc), second = takes_acc ? vec(acc) : vec(x);
    if (tail && !wide_) {
      const x86::Vec both = new_vec();
      code_.emit(id_of(arithmetic(how)), both, first, second);
      blend(vec(acc), vec(acc), both, vec(tail->mask));
    } else {
      emit_masked_into(id_of(arithmetic(how)), tail, vec(acc), first, second);
    }
  }
  void add_product(const Vector& acc, const Vector& x, const Vector& y, const Tail* tail) override {
    const Id id = fma(231, false, false);
    if (tail && !wide_) {
      const x86::Vec sum = vec(copy(acc));
      code_.emit(id, sum, vec(x), vec(y));
      blend(vec(acc), vec(acc), sum, vec(tail->mask));
    } else {
      emit_masked_into(id, tail, vec(acc), vec(x), vec(y));
    }
  }
  void combine_lanes(Combine how, const Vector& acc) override {
    const x86::Vec other = new_vec(), x = vec(acc);
    const auto join = [&] { combine(how, acc, {other}, nullptr); };
    if (wide_) {
      for (unsigned order : {0x4EU, 0xB1U}) {
        code_.vshuff64x2(other, x, x, order);
        join();
      }
    } else {
      code_.vperm2f128(other, x, x, 1);
      join();
    }
    if (is_f64()) {
      code_.vpermilpd(other, x, 0x55);
      return join();
    }
    for (unsigned order : {0x4EU, 0xB1U}) {
      code_.vpermilps(other, x, order);
      join();
    }
  }
  Vector combine_lanes_of(Combine how, std::span<const Vector> of) override {
    // Each level combines halves: of a vector, of its halves, and so on; and takes two vectors to
    // one.
    const auto join = [&](const Vector& x, const Vector& y, const auto& shuffle) {
      const Vector low{new_vec()}, high{new_vec()};
      shuffle(vec(low), vec(x), vec(y), false);
      shuffle(vec(high), vec(x), vec(y), true);
      combine(how, low, high, nullptr);
      return low;
    };
    const auto halves = [&](const x86::Vec& to, const x86::Vec& x, const x86::Vec& y, bool high) {
      if (wide_)
        code_.vshuff64x2(to, x, y, high ? 0xEE : 0x44);
      else
        code_.vperm2f128(to, x, y, high ? 0x31 : 0x20);
    };
    const auto quarters = [&](const x86::Vec& to, const x86::Vec& x, const x86::Vec& y, bool high) {
      code_.vshuff64x2(to, x, y, high ? 0xDD : 0x88);
    };
    const auto pairs = [&](const x86::Vec& to, const x86::Vec& x, const x86::Vec& y, bool high) {
      high ? code_.vunpckhpd(to, x, y) : code_.vunpcklpd(to, x, y);
    };
    const auto singles = [&](const x86::Vec& to, const x86::Vec& x, const x86::Vec& y, bool high) {
      code_.vshufps(to, x, y, high ? 0xDD : 0x88);
    };
    // Vectors of which each 128 bits hold one.
    const auto lanes_of_128 = [&](std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
      if (!wide_) return join(of[a], of[b], halves);
      return join(join(of[a], of[b], halves), join(of[c], of[d], halves), quarters);
    };
    if (is_f64()) {
      if (wide_) return join(lanes_of_128(0, 2, 4, 6), lanes_of_128(1, 3, 5, 7), pairs);
      return join(lanes_of_128(0, 2, 0, 0), lanes_of_128(1, 3, 0, 0), pairs);
    }
    Vector four[4];
    for (std::size_t j = 0; j < 4; ++j) four[j] = lanes_of_128(j, j + 4, j + 8, j + 12);
    return join(join(four[0], four[1], pairs), join(four[2], four[3], pairs), singles);
  }

 private:
  static x86::Gp gp(const Int& x) { return x.reg.as<x86::Gp>(); }
  static x86::Vec vec(const Vector& x) { return x.reg.as<x86::Vec>(); }
  static x86::Vec vec(const Mask& x) { return x.reg.as<x86::Vec>(); }
  static x86::KReg k(const Mask& x) { return x.reg.as<x86::KReg>(); }
  x86::Mem mem(const Address& a) {
    if (!a.index.reg.isValid()) return x86::ptr(gp(a.base), a.displacement);
    if (a.shift <= 3) return x86::ptr(gp(a.base), gp(a.index), a.shift, a.displacement);
    const x86::Gp twice = code_.newInt64();  // the processor takes shifts up to 3
    code_.lea(twice, x86::ptr(gp(a.index), gp(a.index)));
    return x86::ptr(gp(a.base), twice, a.shift - 1, a.displacement);
  }
  int width() const { return static_cast<int>(size_of(compute())); }
  static bool is_narrow(DType dtype) { return size_of(dtype) < 4; }
  Id move() const { return is_f64() ? Id::kIdVmovupd : Id::kIdVmovups; }

  x86::Vec new_vec() {
    if (wide_) return code_.newZmm();
    return code_.newYmm();
  }
  /// A vector of half the bytes, if `half`.
  x86::Vec half_if(bool half) {
    if (!half) return new_vec();
    if (wide_) return code_.newYmm();
    return code_.newXmm();
  }
  x86::Vec same(const x86::Vec& x) {
    if (x.isZmm()) return code_.newZmm();
    if (x.isYmm()) return code_.newYmm();
    return code_.newXmm();
  }
  Mask new_mask() { return wide_ ? Mask{code_.newKw()} : Mask{new_vec()}; }

  x86::Mem constant_memory(std::uint64_t bits) {
    if (wide_) {
      x86::Mem mem =
          code_.newConst(asmjit::ConstPoolScope::kLocal, &bits, static_cast<std::size_t>(width()));
      mem.setBroadcast(is_f64() ? x86::Mem::Broadcast::k1To8 : x86::Mem::Broadcast::k1To16);
      return mem;
    }
    if (!is_f64()) bits = (bits & 0xFFFFFFFFU) | bits << 32;
    std::array<std::uint64_t, 4> four{};
    four.fill(bits);
    return code_.newConst(asmjit::ConstPoolScope::kLocal, four.data(), 32);
  }
  x86::Vec constant_register(std::uint64_t bits) {
    const auto [found, is_new] = constants_.try_emplace(bits);
    if (is_new) {
      found->second = new_vec();
      before_loops([&] {
        const x86::Mem from = code_.newConst(asmjit::ConstPoolScope::kLocal, &bits,
                                             static_cast<std::size_t>(width()));
        is_f64() ? code_.vbroadcastsd(found->second, from)
                 : code_.vbroadcastss(found->second, from);
      });
    }
    return found->second;
  }
  /// A vector of a static table.
  x86::Vec table(const void* numbers) {
    const auto [found, is_new] = tables_.try_emplace(numbers);
    if (is_new) {
      found->second = new_vec();
      before_loops([&] {
        code_.vmovaps(found->second,
                      code_.newConst(asmjit::ConstPoolScope::kLocal, numbers, wide_ ? 64 : 32));
      });
    }
    return found->second;
  }
  /// Where `count` times `step` bytes of a static table are left up to `end`.
  x86::Mem in_table(const std::uint32_t* numbers, std::int32_t end, const Int& count, int step) {
    const x86::Gp at = code_.newIntPtr(), moved = code_.newInt64();
    code_.mov(at, reinterpret_cast<std::uintptr_t>(numbers));
    code_.imul(moved, gp(count), step);
    code_.sub(at, moved);
    return x86::ptr(at, end);
  }
  x86::Vec in_register(const Operand& x) {
    return x.is_constant ? constant_register(x.bits) : vec(x.vector);
  }
  asmjit::Operand last(const Operand& x) {
    if (x.is_constant) return constant_memory(x.bits);
    return vec(x.vector);
  }

  /// AVX-512 looks among 16, so the table stands there twice.
  Vector look_up_in_eight(const std::byte* numbers, const Vector& places) {
    std::array<std::byte, 64> twice;
    std::copy_n(numbers, 32, twice.begin());
    std::copy_n(numbers, 32, twice.begin() + 32);
    const x86::Vec result = new_vec();
    code_.emit(Id::kIdVpermps, result, vec(places),
               code_.newConst(asmjit::ConstPoolScope::kLocal, twice.data(), wide_ ? 64 : 32));
    return {result};
  }
  /// Of 32 floats, eight at a time, and of these by the next bits of the place. A gather takes
  /// several times as long.
  Vector look_up_by_eights(const std::byte* numbers, const Vector& places) {
    if (bits_of_.id != places.id()) {
      bits_of_.id = places.id();
      bits_of_.third = shift_left(places, 28);
      bits_of_.fourth = shift_left(places, 27);
    }
    const auto eight = [&](std::size_t which) {
      return vec(look_up_in_eight(numbers + 32 * which, places));
    };
    const x86::Vec low = eight(0), high = eight(2);
    // The sign decides, which is bit 3 of the place, then bit 4.
    blend(low, low, eight(1), vec(bits_of_.third));
    blend(high, high, eight(3), vec(bits_of_.third));
    blend(low, low, high, vec(bits_of_.fourth));
    return {low};
  }

  template <class To, class From>
  void emit_masked(Id id, const Tail* tail, const To& to, const From& from) {
    if (tail && wide_) {
      if constexpr (std::is_same_v<To, x86::Mem>)
        code_.k(k(tail->mask)).emit(id, to, from);
      else
        code_.k(k(tail->mask)).z().emit(id, to, from);
    } else {
      code_.emit(id, to, from);
    }
  }
  void emit_masked_into(Id id, const Tail* tail, const x86::Vec& to, const x86::Vec& x,
                        const x86::Vec& y) {
    if (tail)
      code_.k(k(tail->mask)).emit(id, to, x, y);
    else
      code_.emit(id, to, x, y);
  }
  void blend(const x86::Vec& to, const x86::Vec& no, const x86::Vec& yes, const x86::Vec& mask) {
    code_.emit(is_f64() ? Id::kIdVblendvpd : Id::kIdVblendvps, to, no, yes, mask);
  }
  void broadcast(const x86::Vec& to, const x86::Xmm& one) {
    is_f64() ? code_.vbroadcastsd(to, one) : code_.vbroadcastss(to, one);
  }
  Mask compared(unsigned how, const x86::Vec& x, const asmjit::Operand& y) {
    const Mask result = new_mask();
    code_.emit(is_f64() ? Id::kIdVcmppd : Id::kIdVcmpps, result.reg, x, y, asmjit::Imm(how));
    return result;
  }
  void set_either(const Mask& to, const Mask& x, const Mask& y) {
    wide_ ? code_.korw(k(to), k(x), k(y)) : code_.vorps(vec(to), vec(x), vec(y));
  }
  Vector shifted(Id id, const Vector& x, int by) {
    const x86::Vec result = new_vec();
    code_.emit(id, result, vec(x), asmjit::Imm(by));
    return {result};
  }

  static Arithmetic arithmetic(Combine how) {
    switch (info(how).operation) {
      case ScalarOp::add:
        return Arithmetic::add;
      case ScalarOp::mul:
        return Arithmetic::multiply;
      case ScalarOp::max:
        return Arithmetic::largest;
      case ScalarOp::min:
        return Arithmetic::least;
      default:
        throw std::logic_error("assembler: a combination that it lacks");
    }
  }
  Id id_of(Arithmetic op) const {
    const bool d = is_f64();
    switch (op) {
      case Arithmetic::add:
        return d ? Id::kIdVaddpd : Id::kIdVaddps;
      case Arithmetic::subtract:
        return d ? Id::kIdVsubpd : Id::kIdVsubps;
      case Arithmetic::multiply:
        return d ? Id::kIdVmulpd : Id::kIdVmulps;
      case Arithmetic::divide:
        return d ? Id::kIdVdivpd : Id::kIdVdivps;
      case Arithmetic::least:
        return d ? Id::kIdVminpd : Id::kIdVminps;
      case Arithmetic::largest:
        return d ? Id::kIdVmaxpd : Id::kIdVmaxps;
      case Arithmetic::bit_and:
        return d ? Id::kIdVandpd : Id::kIdVandps;
      case Arithmetic::bit_or:
        return d ? Id::kIdVorpd : Id::kIdVorps;
      case Arithmetic::bit_xor:
        return d ? Id::kIdVxorpd : Id::kIdVxorps;
      case Arithmetic::integer_add:
        return d ? Id::kIdVpaddq : Id::kIdVpaddd;
      case Arithmetic::integer_subtract:
        return d ? Id::kIdVpsubq : Id::kIdVpsubd;
    }
    throw std::logic_error("assembler: an operation that it lacks");
  }
  Id fma(int order, bool minus_product, bool minus_z) const {
    using Of = std::array<Id, 6>;
    static constexpr Of plus = {Id::kIdVfmadd132ps, Id::kIdVfmadd213ps, Id::kIdVfmadd231ps,
                                Id::kIdVfmadd132pd, Id::kIdVfmadd213pd, Id::kIdVfmadd231pd},
                        minus = {Id::kIdVfmsub132ps, Id::kIdVfmsub213ps, Id::kIdVfmsub231ps,
                                 Id::kIdVfmsub132pd, Id::kIdVfmsub213pd, Id::kIdVfmsub231pd},
                        negative_plus = {Id::kIdVfnmadd132ps, Id::kIdVfnmadd213ps,
                                         Id::kIdVfnmadd231ps, Id::kIdVfnmadd132pd,
                                         Id::kIdVfnmadd213pd, Id::kIdVfnmadd231pd},
                        negative_minus = {Id::kIdVfnmsub132ps, Id::kIdVfnmsub213ps,
                                          Id::kIdVfnmsub231ps, Id::kIdVfnmsub132pd,
                                          Id::kIdVfnmsub213pd, Id::kIdVfnmsub231pd};
    const Of& of =
        minus_product ? (minus_z ? negative_minus : negative_plus) : (minus_z ? minus : plus);
    return of[(order == 132 ? 0U : order == 213 ? 1U : 2U) + (is_f64() ? 3U : 0U)];
  }

  // --- conversions ---

  x86::Vec from_integers(const x86::Vec& x) {
    if (is_f64()) {
      const x86::Vec result = new_vec();
      code_.vcvtdq2pd(result, x);
      return result;
    }
    code_.vcvtdq2ps(x, x);
    return x;
  }
  x86::Vec to_f64(const x86::Vec& x) {
    const x86::Vec result = new_vec();
    code_.vcvtps2pd(result, x);
    return result;
  }
  x86::Vec to_f32(const x86::Vec& x) {
    const x86::Vec result = half_if(true);
    code_.vcvtpd2ps(result, x);
    return result;
  }
  /// Of f64 alone: i64 side by side.
  x86::Vec load_i64(const Address& at, const Tail* tail) {
    const x86::Vec result = new_vec();
    if (wide_) {
      emit_masked(Id::kIdVcvtqq2pd, tail, result, mem(at));
      return result;
    }
    if (tail)
      code_.vpmaskmovq(result, vec(tail->mask), mem(at));
    else
      code_.vmovdqu(result.as<x86::Ymm>(), mem(at));
    // Its halves as the last bits of 2^52 and of 2^84, the upper one with its sign turned: both are
    // exact, and so is the sum of what is above 2^32 and -2^84 - 2^63 - 2^52.
    const auto bits_of = [](double x) { return std::bit_cast<std::uint64_t>(x); };
    const Vector number{result};
    const Vector low =
        apply(Arithmetic::bit_or, apply(Arithmetic::bit_and, number, Operand::of_bits(0xFFFFFFFFU)),
              Operand::of_bits(bits_of(0x1p52)));
    const Vector high = apply(Arithmetic::bit_xor, shift_right(number, 32),
                              Operand::of_bits(bits_of(0x1p84) | 0x80000000U));
    return vec(apply(Arithmetic::add,
                     apply(Arithmetic::subtract, high, Operand(0x1p84 + 0x1p63 + 0x1p52)), low));
  }
  /// The lower halves of lanes of 64 bits, side by side.
  x86::Vec lower_halves(const x86::Vec& x) {
    if (wide_) {
      const x86::Ymm packed = code_.newYmm();
      code_.vpmovqd(packed, x);
      return packed;
    }
    const x86::Ymm packed = code_.newYmm();
    static constexpr std::uint32_t even[8] = {0, 2, 4, 6, 0, 2, 4, 6};
    code_.vpermd(packed, table(even).as<x86::Ymm>(), x.as<x86::Ymm>());
    return packed.xmm();
  }
  /// The tail's mask for elements of a dtype: those of half the bytes have one of half the bytes.
  x86::Vec mask_for(DType dtype, const Tail* tail) {
    const x86::Vec mask = vec(tail->mask);
    return is_f64() && dtype != DType::f64 ? lower_halves(mask) : mask;
  }
  /// An f64 with 14 bits, the last of them set where any behind it is: of bf16 and f16 this has the
  /// same nearest one, and an f32 holds all that they tell apart.
  Vector rounded_to_odd(const Vector& x) {
    constexpr std::uint64_t last_bit = std::uint64_t{1} << 39, behind = last_bit - 1;
    const Vector carry =
        apply(Arithmetic::integer_add, apply(Arithmetic::bit_and, x, Operand::of_bits(behind)),
              Operand::of_bits(behind));
    const Vector sticky = apply(Arithmetic::bit_and, carry, Operand::of_bits(last_bit));
    return apply(Arithmetic::bit_and, apply(Arithmetic::bit_or, x, sticky),
                 Operand::of_bits(~behind));
  }

  /// Of f32 numbers the nearest bf16, halves to even, in the upper half of the lower 32 bits of
  /// each lane; what is behind it is of no use. `number` is what `value` was made of: where it is
  /// NaN, so is the result. The additions leave a NaN whose lower half is 0 as it is.
  Vector upper_bf16(const Vector& value, const Vector& number) {
    const auto constant_of = [](std::uint32_t bits) { return Operand::of_bits(bits); };
    const Vector odd = apply(Arithmetic::bit_and, shift_right(value, 16), constant_of(1));
    const Vector nearest = apply(Arithmetic::integer_add,
                                 apply(Arithmetic::integer_add, value, constant_of(0x7FFFU)), odd);
    if (has_bf16_nans()) return nearest;
    const Operand quiet = constant_of(0x00400000U);
    if (!wide_ || is_f64())
      return select(is_nan(number, number), apply(Arithmetic::bit_or, value, quiet), nearest);
    code_.k(k(is_nan(number, number))).emit(Id::kIdVpord, vec(nearest), vec(value), last(quiet));
    return nearest;
  }
  Vector without_lower_half(const Vector& x) {
    return apply(Arithmetic::bit_and, x, Operand::of_bits(0xFFFF0000U));
  }

  /// Numbers of bf16 or f16 side by side, and for `as_loaded` the bf16 in the upper half of 32
  /// bits.
  struct Halved {
    DType dtype;
    x86::Vec halves;
    Vector upper;
  };
  Halved halved(const x86::Vec& x, DType dtype) {
    const x86::Vec floats = is_f64() ? to_f32(vec(rounded_to_odd({x}))) : x;
    x86::Vec halves = half_if(true);
    if (is_f64()) halves = code_.newXmm();
    if (dtype == DType::f16) {
      code_.emit(Id::kIdVcvtps2ph, halves, floats, asmjit::Imm(0));
      return {dtype, halves, {}};
    }
    Vector value{floats};
    if (is_f64()) {
      value = {new_vec()};
      code_.vpmovzxdq(vec(value), floats);
    }
    const Vector nearest = upper_bf16(value, {x});
    if (wide_ && !is_f64()) {
      alignas(64) static constexpr auto odd_words = [] {
        std::array<std::uint16_t, 32> words{};
        for (std::size_t i = 0; i < 16; ++i) words[i] = static_cast<std::uint16_t>(2 * i + 1);
        return words;
      }();
      const x86::Vec packed = new_vec();
      code_.vpermw(packed, table(odd_words.data()), vec(nearest));
      return {dtype, packed.ymm(), nearest};
    }
    const Vector shifted = shift_right(nearest, 16);
    if (is_f64()) {
      if (wide_) {
        code_.vpmovqw(halves, vec(shifted));
      } else {
        const x86::Vec packed = lower_halves(vec(shifted));
        code_.vpackusdw(halves, packed, packed);
      }
      return {dtype, halves, nearest};
    }
    const x86::Ymm packed = code_.newYmm();
    code_.vpackusdw(packed, vec(shifted), vec(shifted));
    code_.vpermq(packed, packed, 0x08);
    code_.vmovdqa(halves, packed.xmm());
    return {dtype, halves, nearest};
  }
  /// What a load of them would give.
  Vector as_loaded(const Halved& x) {
    if (x.dtype == DType::f16) {
      const x86::Vec floats = half_if(is_f64());
      code_.emit(Id::kIdVcvtph2ps, floats, x.halves);
      return {is_f64() ? to_f64(floats) : floats};
    }
    const Vector floats = without_lower_half(x.upper);
    return is_f64() ? Vector{to_f64(lower_halves(vec(floats)))} : floats;
  }

  // --- tails of small elements, without masks: through memory of the function's own ---

  x86::Mem staging() {
    if (!staging_.hasBase()) staging_ = code_.newStack(32, 32);
    return staging_;
  }
  /// Where the first elements of a tail are, and zeros behind them.
  x86::Mem staged(const Address& at, DType dtype, const Tail& tail) {
    const x86::Mem stage = staging();
    const x86::Ymm zero = code_.newYmm();
    code_.vxorps(zero, zero, zero);
    code_.vmovaps(stage, zero);
    const x86::Gp from = code_.newIntPtr(), to = code_.newIntPtr();
    code_.lea(from, mem(at));
    code_.lea(to, stage);
    copy_elements(from, to, static_cast<int>(size_of(dtype)), tail.count);
    return stage;
  }
  /// Copies `count` <= 8 elements of at most two bytes, eight, four, two and one of them. Changes
  /// the addresses.
  void copy_elements(const x86::Gp& from, const x86::Gp& to, int bytes, const Int& count) {
    const x86::Gp piece = code_.newInt64();
    for (int elements = 8; elements > 0; elements /= 2) {
      const asmjit::Label next = code_.newLabel();
      code_.test(gp(count), elements);
      code_.jz(next);
      const int size = elements * bytes;
      if (size == 16) {
        const x86::Xmm eight = code_.newXmm();
        code_.vmovdqu(eight, x86::xmmword_ptr(from));
        code_.vmovdqu(x86::xmmword_ptr(to), eight);
      } else if (size == 8) {
        code_.mov(piece, x86::qword_ptr(from));
        code_.mov(x86::qword_ptr(to), piece);
      } else if (size == 4) {
        code_.mov(piece.r32(), x86::dword_ptr(from));
        code_.mov(x86::dword_ptr(to), piece.r32());
      } else if (size == 2) {
        code_.movzx(piece.r32(), x86::word_ptr(from));
        code_.mov(x86::word_ptr(to), piece.r16());
      } else {
        code_.movzx(piece.r32(), x86::byte_ptr(from));
        code_.mov(x86::byte_ptr(to), piece.r8());
      }
      code_.add(from, size);
      code_.add(to, size);
      code_.bind(next);
    }
  }

  x86::Compiler code_;
  bool wide_;
  std::map<std::uint64_t, x86::Vec> constants_;
  std::map<const void*, x86::Vec> tables_;
  x86::KReg every_other_;
  x86::Mem staging_;
  /// Places with their bits 3 and 4 as signs.
  struct {
    std::uint32_t id = ~0U;
    Vector third{}, fourth{};
  } bits_of_;
};

}  // namespace

std::unique_ptr<Assembler> make_x86_assembler(bool wide, DType compute,
                                              asmjit::CodeHolder& holder) {
  return std::make_unique<X86Assembler>(wide, compute, holder);
}

}  // namespace ein::host
#endif
