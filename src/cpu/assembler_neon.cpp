// AArch64 with NEON.
#include "cpu/assembler.hpp"
#include "size/ask.hpp"
#if EIN_ASMJIT && (defined(__aarch64__) || EIN_NEON_ELSEWHERE)  // where a test reads it
#include <map>
#include <stdexcept>

#include <asmjit/arm/a64compiler.h>

namespace ein::host {
namespace {

namespace a64 = asmjit::a64;

/// A mask of the first n lanes begins n lanes before the end of the ones.
constexpr std::uint32_t all = ~0U;
alignas(16) constexpr std::uint32_t ones[8] = {all, all, all, all};

class NeonAssembler final : public Assembler {
 public:
  NeonAssembler(DType compute, asmjit::CodeHolder& holder)
      : Assembler(code_, compute, Isa::neon), code_(&holder) {}

  // --- the function ---

  Int begin() override {
    asmjit::FuncNode* const function = code_.addFunc(asmjit::FuncSignatureT<void, const void*>());
    const a64::Gp argument = code_.newIntPtr();
    function->setArg(0, argument);
    return {argument};
  }
  void finish_streaming() override {}

  // --- integers ---

  Int new_int() override { return {code_.newInt64()}; }
  void set(const Int& x, std::int64_t value) override { code_.mov(gp(x), value); }
  void set(const Int& x, const Int& y) override { code_.mov(gp(x), gp(y)); }
  void add(const Int& x, std::int64_t value) override { add(gp(x), gp(x), value); }
  void add(const Int& x, const Int& y) override { code_.add(gp(x), gp(x), gp(y)); }
  void subtract(const Int& x, const Int& y) override { code_.sub(gp(x), gp(x), gp(y)); }
  void round_down(const Int& x, std::uint32_t shift) override {
    if (shift > 0) code_.and_(gp(x), gp(x), -(std::int64_t{1} << shift));
  }
  void lower_to(const Int& x, const Int& y) override {
    code_.cmp(gp(x), gp(y));
    code_.csel(gp(x), gp(x), gp(y), asmjit::Imm(a64::CondCode::kLE));
  }
  Int load_int(const Int& base, std::int64_t displacement) override {
    const Int x = new_int();
    code_.ldr(gp(x),
              mem({.base = base, .displacement = static_cast<std::int32_t>(displacement)}, 8));
    return x;
  }
  void add_to_memory(const Int& base, std::int64_t displacement, const Int& by) override {
    const a64::Mem at =
        mem({.base = base, .displacement = static_cast<std::int32_t>(displacement)}, 8);
    const a64::Gp sum = code_.newInt64();
    code_.ldr(sum, at);
    code_.add(sum, sum, gp(by));
    code_.str(sum, at);
  }
  Int address(const Address& of) override {
    const a64::Gp x = code_.newIntPtr();
    add(x, of.index.reg.isValid() ? sum(of) : gp(of.base), of.displacement);
    return {x};
  }
  void jump(const asmjit::Label& to) override { code_.b(to); }
  void jump_if_less(const Int& x, const Int& y, const asmjit::Label& to) override {
    code_.cmp(gp(x), gp(y));
    code_.b_lt(to);
  }
  void jump_if_less(const Int& x, std::int64_t y, const asmjit::Label& to) override {
    if (is_small(y)) {
      code_.cmp(gp(x), y);
    } else {
      const Int number = new_int();
      set(number, y);
      code_.cmp(gp(x), gp(number));
    }
    code_.b_lt(to);
  }
  void jump_if_not_less(const Int& x, const Int& y, const asmjit::Label& to) override {
    code_.cmp(gp(x), gp(y));
    code_.b_ge(to);
  }

  // --- memory ---

  Tail tail(const Int& count) override {
    const Int most = new_int(), at_most = new_int();
    set(most, lanes());
    set(at_most, count);
    lower_to(at_most, most);
    const a64::Gp at = code_.newIntPtr();
    const a64::Vec mask = code_.newVecQ();
    code_.mov(at, reinterpret_cast<std::uintptr_t>(ones + 4));
    code_.sub(at, at, gp(at_most), a64::lsl(shift_of(width())));
    code_.ldr(mask, a64::ptr(at));
    return {{mask}, at_most};
  }

  Vector load(const Address& at, DType dtype, const Tail* tail) override {
    const a64::Vec x = load_packed(at, static_cast<int>(size_of(dtype)), tail);
    switch (dtype) {
      case DType::f64:
        break;
      case DType::f32:
        if (is_f64()) code_.fcvtl(x.d2(), x.s2());
        break;
      case DType::bf16:
        code_.shll(x.s4(), x.h4(), 16);
        if (is_f64()) code_.fcvtl(x.d2(), x.s2());
        break;
      case DType::f16:
        code_.fcvtl(x.s4(), x.h4());
        if (is_f64()) code_.fcvtl(x.d2(), x.s2());
        break;
      case DType::i64:
        code_.scvtf(x.d2(), x.d2());
        break;
      case DType::i32:
        if (is_f64()) code_.sxtl(x.d2(), x.s2());
        code_.scvtf(typed(x), typed(x));
        break;
      default:
        code_.uxtl(x.h8(), x.b8());
        code_.uxtl(x.s4(), x.h4());
        if (dtype == DType::boolean) code_.umin(x.s4(), x.s4(), repeated(1).s4());
        if (is_f64()) code_.uxtl(x.d2(), x.s2());
        code_.ucvtf(typed(x), typed(x));
    }
    return {x};
  }

  Vector load_every_other(const Address& at, const Tail* tail) override {
    const a64::Vec x = zero();
    const Int from = address(at);
    for_lanes(tail, [&](int lane) { load_lane(x, lane, width(), from, 2 * lane * width()); });
    return {x};
  }

  Vector load_one(const Int& from, DType dtype) override {
    const a64::Vec x = code_.newVecQ();
    const a64::Mem at = a64::ptr(gp(from));
    const Int number = new_int();
    switch (dtype) {
      case DType::f32:
        code_.ldr(x.s(), at);
        if (is_f64()) code_.fcvt(x.d(), x.s());
        break;
      case DType::f64:
        code_.ldr(x.d(), at);
        if (!is_f64()) code_.fcvt(x.s(), x.d());
        break;
      case DType::bf16:
        code_.ldrh(gp(number).w(), at);
        code_.lsl(gp(number).w(), gp(number).w(), 16);
        code_.fmov(x.s(), gp(number).w());
        if (is_f64()) code_.fcvt(x.d(), x.s());
        break;
      case DType::f16:
        code_.ldr(x.h(), at);
        code_.fcvt(one(x), x.h());
        break;
      case DType::i64:
        code_.ldr(gp(number), at);
        return this->number(number);
      case DType::i32:
        code_.ldrsw(gp(number), at);
        return this->number(number);
      default:
        code_.ldrb(gp(number).w(), at);
        if (dtype == DType::boolean) {
          code_.cmp(gp(number).w(), 0);
          code_.cset(gp(number), asmjit::Imm(a64::CondCode::kNE));
        }
        return this->number(number);
    }
    return {in_all_lanes(x)};
  }

  Vector store(const Address& to, DType dtype, const Vector& value, const Tail* tail,
               bool is_read_again) override {
    const a64::Vec packed = converted(vec(value), dtype);
    const int bytes = static_cast<int>(size_of(dtype));
    if (!tail) {
      store_packed(packed, lanes() * bytes, mem(to, lanes() * bytes));
    } else {
      const Int begin = address(to);
      for_lanes(tail, [&, &from = packed](int lane) {
        const a64::Gp bits = code_.newInt64();
        const a64::Mem at = a64::ptr(gp(begin), lane * bytes);
        switch (bytes) {
          case 2:
            code_.umov(bits.w(), from.h(static_cast<unsigned>(lane)));
            return code_.strh(bits.w(), at);
          case 4:
            code_.umov(bits.w(), from.s(static_cast<unsigned>(lane)));
            return code_.str(bits.w(), at);
          default:
            code_.umov(bits, from.d(static_cast<unsigned>(lane)));
            return code_.str(bits, at);
        }
      });
    }
    return is_read_again ? as_loaded(packed, dtype) : Vector{};
  }

  void stream(const Address& to, const Vector& value) override {
    code_.str(vec(value), mem(to, 16));
  }

  Vector store_one(const Int& to, DType dtype, const Vector& value) override {
    const a64::Vec packed = converted(vec(value), dtype);
    store_packed(packed, static_cast<int>(size_of(dtype)), a64::ptr(gp(to)));
    return as_loaded(packed, dtype);
  }

  void prefetch(const Address& /*at*/) override {}  // asmjit 1.9 has no PRFM

  // --- numbers ---

  Vector rounded(const Vector& x, DType dtype) override {
    return as_loaded(converted(vec(x), dtype), dtype);
  }

  Vector copy(const Vector& x) override { return {copy(vec(x))}; }
  void set(const Vector& x, const Vector& y) override { code_.mov(vec(x).b16(), vec(y).b16()); }

  Vector constant(double value) override {
    return {in_register(is_f64() ? Operand(value) : Operand(static_cast<float>(value)))};
  }

  Vector number(const Int& x) override {
    const a64::Vec result = code_.newVecQ();
    code_.scvtf(one(result), gp(x));
    return {in_all_lanes(result)};
  }

  Vector count_from(const Int& first) override {
    static constexpr std::int32_t ramp_of_i32[4] = {0, 1, 2, 3};
    static constexpr std::int64_t ramp_of_i64[2] = {0, 1};
    a64::Vec& ramp = ramp_;
    if (!ramp.isValid()) {
      ramp = code_.newVecQ();
      before_loops([&] {
        const a64::Gp at = code_.newIntPtr();
        code_.mov(at, is_f64() ? reinterpret_cast<std::uintptr_t>(ramp_of_i64)
                               : reinterpret_cast<std::uintptr_t>(ramp_of_i32));
        code_.ldr(ramp, a64::ptr(at));
      });
    }
    const a64::Vec result = code_.newVecQ();
    is_f64() ? code_.dup(result.d2(), gp(first)) : code_.dup(result.s4(), gp(first).w());
    code_.add(typed(result), typed(result), typed(ramp));
    code_.scvtf(typed(result), typed(result));
    return {result};
  }

  Vector apply(Arithmetic op, const Operand& x, const Operand& y) override {
    const a64::Vec result = code_.newVecQ(), a = in_register(x), b = in_register(y);
    switch (op) {
      case Arithmetic::add:
        code_.fadd(typed(result), typed(a), typed(b));
        break;
      case Arithmetic::subtract:
        code_.fsub(typed(result), typed(a), typed(b));
        break;
      case Arithmetic::multiply:
        code_.fmul(typed(result), typed(a), typed(b));
        break;
      case Arithmetic::divide:
        code_.fdiv(typed(result), typed(a), typed(b));
        break;
      case Arithmetic::least:
        code_.fcmgt(typed(result), typed(b), typed(a));
        code_.bsl(result.b16(), a.b16(), b.b16());
        break;
      case Arithmetic::largest:
        code_.fcmgt(typed(result), typed(a), typed(b));
        code_.bsl(result.b16(), a.b16(), b.b16());
        break;
      case Arithmetic::bit_and:
        code_.and_(result.b16(), a.b16(), b.b16());
        break;
      case Arithmetic::bit_or:
        code_.orr(result.b16(), a.b16(), b.b16());
        break;
      case Arithmetic::bit_xor:
        code_.eor(result.b16(), a.b16(), b.b16());
        break;
      case Arithmetic::integer_add:
        code_.add(typed(result), typed(a), typed(b));
        break;
      case Arithmetic::integer_subtract:
        code_.sub(typed(result), typed(a), typed(b));
        break;
    }
    return {result};
  }

  Vector square_root(const Vector& x) override {
    const a64::Vec result = code_.newVecQ();
    code_.fsqrt(typed(result), typed(vec(x)));
    return {result};
  }

  Vector whole(Rounding how, const Vector& x) override {
    const a64::Vec result = code_.newVecQ();
    const auto to = typed(result), from = typed(vec(x));
    switch (how) {
      case Rounding::to_even:
        code_.frintn(to, from);
        break;
      case Rounding::down:
        code_.frintm(to, from);
        break;
      case Rounding::up:
        code_.frintp(to, from);
        break;
      case Rounding::to_zero:
        code_.frintz(to, from);
        break;
    }
    return {result};
  }

  Vector multiply_add(const Operand& x, const Operand& y, const Operand& z, bool minus_product,
                      bool minus_z) override {
    a64::Vec sum = in_register(z);
    if (minus_z) {
      sum = code_.newVecQ();
      code_.fneg(typed(sum), typed(in_register(z)));
    } else if (z.is_constant || !z.is_last_use) {
      sum = copy(sum);
    }
    if (minus_product)
      code_.fmls(typed(sum), typed(in_register(x)), typed(in_register(y)));
    else
      code_.fmla(typed(sum), typed(in_register(x)), typed(in_register(y)));
    return {sum};
  }

  Vector shift_left(const Vector& x, int by) override {
    const a64::Vec result = code_.newVecQ();
    code_.shl(typed(result), typed(vec(x)), by);
    return {result};
  }
  Vector shift_right(const Vector& x, int by) override {
    const a64::Vec result = code_.newVecQ();
    code_.ushr(typed(result), typed(vec(x)), by);
    return {result};
  }
  Vector shift_right_signed(const Vector& x, int by) override {
    const a64::Vec result = code_.newVecQ();
    code_.sshr(typed(result), typed(vec(x)), by);
    return {result};
  }

  Vector with_sign_of(const Vector& size, const Vector& x) override {
    const a64::Vec result = copy(vec(size));
    const a64::Vec sign =
        in_register(Operand::of_bits(std::uint64_t{1} << (8 * static_cast<unsigned>(width()) - 1)));
    code_.bit(result.b16(), vec(x).b16(), sign.b16());
    return {result};
  }

  Vector look_up(const void* numbers, int count, const Vector& places) override {
    if (!is_f64() && count == 8) return look_up_in_eight(numbers, places);
    const Int base = new_int();
    code_.mov(gp(base), reinterpret_cast<std::uintptr_t>(numbers));
    const a64::Vec result = code_.newVecQ();
    for (int lane = 0; lane < lanes(); ++lane) {
      const a64::Gp place = code_.newInt64();
      take_lane(place, vec(places), lane);
      if (count == 32) code_.and_(place, place, 31);
      code_.add(place, gp(base), place, a64::lsl(shift_of(width())));
      load_lane(result, lane, width(), {place}, 0);
    }
    return {result};
  }

  // --- masks ---

  Mask compare(ScalarOp op, const Vector& x, const Operand& y) override {
    const a64::Vec result = code_.newVecQ(), a = vec(x), b = in_register(y);
    switch (op) {
      case ScalarOp::lt:
        code_.fcmgt(typed(result), typed(b), typed(a));
        break;
      case ScalarOp::le:
        code_.fcmge(typed(result), typed(b), typed(a));
        break;
      case ScalarOp::gt:
        code_.fcmgt(typed(result), typed(a), typed(b));
        break;
      case ScalarOp::ge:
        code_.fcmge(typed(result), typed(a), typed(b));
        break;
      case ScalarOp::eq:
      case ScalarOp::ne:
        code_.fcmeq(typed(result), typed(a), typed(b));
        if (op == ScalarOp::ne) code_.mvn(result.b16(), result.b16());
        break;
      default:
        throw std::logic_error("assembler: not a comparison");
    }
    return {result};
  }
  Mask is_nan(const Vector& x, const Vector& y) override {
    const Mask of_x = compare(ScalarOp::ne, x, x);
    return x.id() == y.id() ? of_x : either(of_x, compare(ScalarOp::ne, y, y));
  }
  Mask both(const Mask& x, const Mask& y) override {
    const a64::Vec result = code_.newVecQ();
    code_.and_(result.b16(), vec(x).b16(), vec(y).b16());
    return {result};
  }
  Mask either(const Mask& x, const Mask& y) override {
    const a64::Vec result = code_.newVecQ();
    code_.orr(result.b16(), vec(x).b16(), vec(y).b16());
    return {result};
  }
  Mask none() override { return {zero()}; }
  void note(const Mask& found, const Mask& x, const Tail* tail) override {
    const Mask noted = tail ? both(x, tail->mask) : x;
    code_.orr(vec(found).b16(), vec(found).b16(), vec(noted).b16());
  }
  void jump_if_none(const Mask& mask, const asmjit::Label& to) override {
    const a64::Vec largest = code_.newVecQ();
    const a64::Gp bits = code_.newInt64();
    code_.umaxv(largest.s(), vec(mask).s4());
    code_.fmov(bits.w(), largest.s());
    code_.cbz(bits.w(), to);
  }
  Vector select(const Mask& mask, const Vector& yes, const Vector& no) override {
    const a64::Vec result = copy(vec(mask));
    code_.bsl(result.b16(), vec(yes).b16(), vec(no).b16());
    return {result};
  }

  // --- combinations ---

  void combine(Combine how, const Vector& acc, const Vector& x, const Tail* tail) override {
    const a64::Vec to = tail ? code_.newVecQ() : vec(acc), a = vec(acc), b = vec(x);
    switch (info(how).operation) {
      case ScalarOp::add:
        code_.fadd(typed(to), typed(a), typed(b));
        break;
      case ScalarOp::mul:
        code_.fmul(typed(to), typed(a), typed(b));
        break;
      case ScalarOp::max:
        code_.fmaxnm(typed(to), typed(a), typed(b));
        break;
      case ScalarOp::min:
        code_.fminnm(typed(to), typed(a), typed(b));
        break;
      default:
        throw std::logic_error("assembler: a combination that it lacks");
    }
    if (tail) code_.bit(a.b16(), to.b16(), vec(tail->mask).b16());
  }
  void add_product(const Vector& acc, const Vector& x, const Vector& y, const Tail* tail) override {
    const a64::Vec to = tail ? copy(vec(acc)) : vec(acc);
    code_.fmla(typed(to), typed(vec(x)), typed(vec(y)));
    if (tail) code_.bit(vec(acc).b16(), to.b16(), vec(tail->mask).b16());
  }
  void combine_lanes(Combine how, const Vector& acc) override {
    const a64::Vec other = code_.newVecQ(), x = vec(acc);
    code_.ext(other.b16(), x.b16(), x.b16(), 8);
    combine(how, acc, {other}, nullptr);
    if (is_f64()) return;
    code_.rev64(other.s4(), x.s4());
    combine(how, acc, {other}, nullptr);
  }
  Vector combine_lanes_of(Combine how, std::span<const Vector> of) override {
    // As combine_lanes(): the halves of two vectors, then what is side by side.
    const auto halves = [&](const Vector& x, const Vector& y) {
      const a64::Vec low = code_.newVecQ(), high = code_.newVecQ();
      code_.zip1(low.d2(), vec(x).d2(), vec(y).d2());
      code_.zip2(high.d2(), vec(x).d2(), vec(y).d2());
      combine(how, {low}, {high}, nullptr);
      return low;
    };
    if (is_f64()) return {halves(of[0], of[1])};
    const a64::Vec a = halves(of[0], of[2]), b = halves(of[1], of[3]);
    const a64::Vec even = code_.newVecQ(), odd = code_.newVecQ();
    code_.trn1(even.s4(), a.s4(), b.s4());
    code_.trn2(odd.s4(), a.s4(), b.s4());
    combine(how, {even}, {odd}, nullptr);
    return {even};
  }

 private:
  static a64::Gp gp(const Int& x) { return x.reg.as<a64::Gp>(); }
  static a64::Vec vec(const Vector& x) { return x.reg.as<a64::Vec>(); }
  static a64::Vec vec(const Mask& x) { return x.reg.as<a64::Vec>(); }
  int width() const { return static_cast<int>(size_of(compute())); }
  static unsigned shift_of(int bytes) {
    return static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(bytes)));
  }
  /// As numbers of type `compute`: all lanes, or the first.
  a64::Vec typed(const a64::Vec& x) const {
    if (is_f64()) return x.d2();
    return x.s4();
  }
  a64::Vec one(const a64::Vec& x) const {
    if (is_f64()) return x.d();
    return x.s();
  }

  /// What instructions take as a part of themselves.
  static bool is_small(std::int64_t value) { return value >= 0 && value < 4096; }
  void add(const a64::Gp& to, const a64::Gp& x, std::int64_t value) {
    if (is_small(value)) {
      code_.add(to, x, value);
    } else if (is_small(-value)) {
      code_.sub(to, x, -value);
    } else {
      const a64::Gp number = code_.newInt64();
      code_.mov(number, value);
      code_.add(to, x, number);
    }
  }
  /// base + index · 2^shift.
  a64::Gp sum(const Address& a) {
    const a64::Gp x = code_.newIntPtr();
    code_.add(x, gp(a.base), gp(a.index), a64::lsl(a.shift));
    return x;
  }
  /// For an access of `bytes`.
  a64::Mem mem(const Address& a, int bytes) {
    if (a.index.reg.isValid() && a.displacement == 0 &&
        (a.shift == 0 || a.shift == shift_of(bytes)))
      return a64::ptr(gp(a.base), gp(a.index), a64::lsl(a.shift));
    const a64::Gp base = a.index.reg.isValid() ? sum(a) : gp(a.base);
    if (a.displacement % bytes == 0 && is_small(a.displacement / bytes))
      return a64::ptr(base, a.displacement);
    const a64::Gp x = code_.newIntPtr();
    add(x, base, a.displacement);
    return a64::ptr(x);
  }

  a64::Vec copy(const a64::Vec& x) {
    const a64::Vec y = code_.newVecQ();
    code_.mov(y.b16(), x.b16());
    return y;
  }
  a64::Vec zero() {
    const a64::Vec x = code_.newVecQ();
    code_.movi(x.d2(), 0);
    return x;
  }
  a64::Vec in_all_lanes(const a64::Vec& x) {
    is_f64() ? code_.dup(x.d2(), x.d(0)) : code_.dup(x.s4(), x.s(0));
    return x;
  }
  a64::Vec in_register(const Operand& x) {
    if (!x.is_constant) return vec(x.vector);
    return is_f64() ? constant_register(x.bits) : repeated(static_cast<std::uint32_t>(x.bits));
  }
  /// 32 bits again and again.
  a64::Vec repeated(std::uint32_t bits) {
    return constant_register(bits | static_cast<std::uint64_t>(bits) << 32);
  }
  a64::Vec constant_register(std::uint64_t bits) {
    const auto [found, is_new] = constants_.try_emplace(bits);
    if (is_new) {
      found->second = code_.newVecQ();
      before_loops([&] {
        const a64::Gp number = code_.newInt64();
        code_.mov(number, bits);
        code_.dup(found->second.d2(), number);
      });
    }
    return found->second;
  }

  // --- lanes one by one ---

  /// Emits what `emit` does for each lane, or for the lanes of the tail.
  template <class Emit>
  void for_lanes(const Tail* tail, const Emit& emit) {
    const asmjit::Label end = code_.newLabel();
    for (int lane = 0; lane < lanes(); ++lane) {
      if (tail) jump_if_less(tail->count, lane + 1, end);
      emit(lane);
    }
    code_.bind(end);
  }
  /// The element at base + displacement, of 1, 2, 4 or 8 bytes.
  void load_lane(const a64::Vec& to, int lane, int bytes, const Int& base, int displacement) {
    const a64::Gp bits = code_.newInt64();
    const a64::Mem at = a64::ptr(gp(base), displacement);
    const auto place = static_cast<unsigned>(lane);
    switch (bytes) {
      case 1:
        code_.ldrb(bits.w(), at);
        code_.ins(to.b(place), bits.w());
        break;
      case 2:
        code_.ldrh(bits.w(), at);
        code_.ins(to.h(place), bits.w());
        break;
      case 4:
        code_.ldr(bits.w(), at);
        code_.ins(to.s(place), bits.w());
        break;
      default:
        code_.ldr(bits, at);
        code_.ins(to.d(place), bits);
    }
  }
  /// By the bytes of the 8 numbers, of which 16 are a table: TBL gives 0 for a byte outside of it.
  Vector look_up_in_eight(const void* numbers, const Vector& places) {
    if (bytes_of_.id != places.id()) {
      const a64::Vec low = code_.newVecQ(), high = code_.newVecQ();
      code_.and_(low.b16(), vec(places).b16(), repeated(7).b16());
      code_.mul(low.s4(), low.s4(), repeated(0x04040404U).s4());
      code_.add(low.s4(), low.s4(), repeated(0x03020100U).s4());
      code_.sub(high.b16(), low.b16(), repeated(0x10101010U).b16());
      bytes_of_ = {places.id(), low, high};
    }
    const Int base = new_int();
    code_.mov(gp(base), reinterpret_cast<std::uintptr_t>(numbers));
    const a64::Vec first = code_.newVecQ(), second = code_.newVecQ();
    const a64::Vec of_first = code_.newVecQ(), of_second = code_.newVecQ(),
                   result = code_.newVecQ();
    code_.ldr(first, a64::ptr(gp(base)));
    code_.ldr(second, a64::ptr(gp(base), 16));
    code_.tbl(of_first.b16(), first.b16(), bytes_of_.first.b16());
    code_.tbl(of_second.b16(), second.b16(), bytes_of_.second.b16());
    code_.orr(result.b16(), of_first.b16(), of_second.b16());
    return {result};
  }
  void take_lane(const a64::Gp& to, const a64::Vec& from, int lane) {
    const auto place = static_cast<unsigned>(lane);
    is_f64() ? code_.umov(to, from.d(place)) : code_.umov(to.w(), from.s(place));
  }

  /// As many elements as there are lanes, side by side; those outside of the tail are 0.
  a64::Vec load_packed(const Address& at, int bytes, const Tail* tail) {
    if (tail) {
      const a64::Vec x = zero();
      const Int from = address(at);
      for_lanes(tail, [&](int lane) { load_lane(x, lane, bytes, from, lane * bytes); });
      return x;
    }
    const a64::Vec x = code_.newVecQ();
    const a64::Mem from = mem(at, lanes() * bytes);
    switch (lanes() * bytes) {
      case 16:
        code_.ldr(x, from);
        break;
      case 8:
        code_.ldr(x.d(), from);
        break;
      case 4:
        code_.ldr(x.s(), from);
        break;
      default:
        code_.ldr(x.h(), from);
    }
    return x;
  }
  /// The first `bytes` of x: 2, 4, 8 or 16.
  void store_packed(const a64::Vec& x, int bytes, const a64::Mem& to) {
    switch (bytes) {
      case 16:
        code_.str(x, to);
        break;
      case 8:
        code_.str(x.d(), to);
        break;
      case 4:
        code_.str(x.s(), to);
        break;
      default:
        code_.str(x.h(), to);
    }
  }

  /// Numbers rounded to a dtype, side by side.
  a64::Vec converted(const a64::Vec& x, DType dtype) {
    if (dtype == compute()) return x;
    const a64::Vec packed = code_.newVecQ();
    if (dtype == DType::f32) {
      code_.fcvtn(packed.s2(), x.d2());
      return packed;
    }
    a64::Vec floats = x;
    if (is_f64()) {
      // Rounded to odd: what is then rounded to fewer bits is as if rounded once.
      floats = code_.newVecQ();
      code_.fcvtxn(floats.s2(), x.d2());
    }
    if (dtype == DType::f16) {
      code_.fcvtn(packed.h4(), floats.s4());
      return packed;
    }
    // The nearest bf16, halves to even; NaN stays NaN, one whose lower half is 0 as it is.
    const a64::Vec odd = code_.newVecQ(), rounded = code_.newVecQ(), is_number = code_.newVecQ();
    code_.shl(odd.s4(), floats.s4(), 15);
    code_.ushr(odd.s4(), odd.s4(), 31);
    code_.add(rounded.s4(), floats.s4(), repeated(0x7FFFU).s4());
    code_.add(rounded.s4(), rounded.s4(), odd.s4());
    if (has_bf16_nans()) {
      code_.shrn(packed.h4(), rounded.s4(), 16);
      return packed;
    }
    code_.fcmeq(is_number.s4(), floats.s4(), floats.s4());
    code_.orr(packed.b16(), floats.b16(), repeated(0x00400000U).b16());
    code_.bsl(is_number.b16(), rounded.b16(), packed.b16());
    code_.shrn(packed.h4(), is_number.s4(), 16);
    return packed;
  }
  /// What a load of what `converted` gave would give.
  Vector as_loaded(const a64::Vec& packed, DType dtype) {
    if (dtype == compute()) return {packed};
    const a64::Vec result = code_.newVecQ();
    if (dtype == DType::f16) {
      code_.fcvtl(result.s4(), packed.h4());
    } else if (dtype == DType::bf16) {
      code_.shll(result.s4(), packed.h4(), 16);
    } else {
      code_.fcvtl(result.d2(), packed.s2());
      return {result};
    }
    if (is_f64()) code_.fcvtl(result.d2(), result.s2());
    return {result};
  }

  a64::Compiler code_;
  std::map<std::uint64_t, a64::Vec> constants_;
  a64::Vec ramp_;
  struct {
    std::uint32_t id = UINT32_MAX;
    a64::Vec first, second;
  } bytes_of_;  // where the last places that were looked up are in the two halves of a table
};

}  // namespace

std::unique_ptr<Assembler> make_neon_assembler(DType compute, asmjit::CodeHolder& holder) {
  return std::make_unique<NeonAssembler>(compute, holder);
}

}  // namespace ein::host
#endif
