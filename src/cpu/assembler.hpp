// Assembler: one vocabulary for machine code on vectors, for each instruction set that code is made
// for at run time.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <asmjit/core.h>

#include <ein/dtype.hpp>
#include "machine/processor.hpp"
#include "nest/nest.hpp"

namespace ein::host {

/// Emits instructions of a function that is being made, on vectors of f32 or f64 and on 64-bit
/// integers. Registers are virtual: there are as many as are asked for. What an operation returns
/// is a new register.
class Assembler {
 public:
  /// Registers; a vector has lanes() numbers.
  struct Int {
    asmjit::BaseReg reg;
  };
  struct Vector {
    asmjit::BaseReg reg;
    std::uint32_t id() const { return reg.id(); }
  };
  /// Which lanes a comparison holds for: a mask register of AVX-512; elsewhere a vector whose bits
  /// are all set in these lanes, and none in others.
  struct Mask {
    asmjit::BaseReg reg;
  };
  /// The first lanes of a vector.
  struct Tail {
    Mask mask;
    Int count;
  };
  /// base + index · 2^shift + displacement, in bytes.
  struct Address {
    Int base;
    Int index{};
    std::uint32_t shift = 0;
    std::int32_t displacement = 0;
  };
  /// The argument of an operation: a register, which the operation may overwrite if it is not used
  /// again, or a number in all lanes.
  struct Operand {
    Vector vector{};
    std::uint64_t bits = 0;
    bool is_constant = false, is_last_use = false;
    Operand(const Vector& v, bool last_use = false) : vector(v), is_last_use(last_use) {}
    explicit Operand(float x) : bits(std::bit_cast<std::uint32_t>(x)), is_constant(true) {}
    explicit Operand(double x) : bits(std::bit_cast<std::uint64_t>(x)), is_constant(true) {}
    static Operand of_bits(std::uint64_t bits) {
      Operand operand{Vector()};
      operand.bits = bits;
      operand.is_constant = true;
      return operand;
    }
  };

  /// For an instruction set that has code; `compute` is f32 or f64.
  static std::unique_ptr<Assembler> make(Isa isa, DType compute, asmjit::CodeHolder& holder);
  /// Whether there is one.
  static bool has(Isa isa);
  /// Bytes of a vector, and how many vectors there are registers for.
  static int vector_bytes(Isa isa);
  static int registers(Isa isa);

  virtual ~Assembler() = default;
  DType compute() const { return compute_; }
  int lanes() const { return lanes_; }
  asmjit::BaseCompiler& compiler() { return compiler_; }

  // --- the function ---

  /// Begins a function of one pointer, which returns nothing.
  virtual Int begin() = 0;
  void end() { compiler_.endFunc(); }
  /// Constants that hold for the whole function are set where this is called: before all loops.
  void begin_constants() { entry_ = compiler_.cursor(); }
  /// Emits what `emit` does there.
  template <class Emit>
  void before_loops(const Emit& emit) {
    asmjit::BaseNode* const here = compiler_.setCursor(entry_);
    emit();
    const bool is_at_entry = here == entry_;
    entry_ = compiler_.cursor();
    if (!is_at_entry) compiler_.setCursor(here);
  }
  /// Emits what `emit` does behind this node, not here.
  template <class Emit>
  void emit_behind(asmjit::BaseNode* node, const Emit& emit) {
    asmjit::BaseNode* const here = compiler_.setCursor(node);
    emit();
    compiler_.setCursor(here);
  }
  /// Of sequences like that emitted since this node: how many to interleave, a power of two up to
  /// `most`. Fewer where they are long, or need more registers than there are, some of which may be
  /// in memory. 1 if they cannot be interleaved.
  int how_many_fit(asmjit::BaseNode* before, int most) const;
  /// Sequences of instructions were emitted one behind the other, each behind one of these nodes,
  /// the last until here. Of as many at a time as `together` says, puts the first instruction of
  /// each side by side, then the second, and so on; leaves those as they are of which one sets a
  /// register that another mentions.
  void interleave(std::span<asmjit::BaseNode* const> before, int together);
  /// Makes what was streamed visible before what is stored next.
  virtual void finish_streaming() = 0;

  // --- integers ---

  virtual Int new_int() = 0;
  virtual void set(const Int& x, std::int64_t value) = 0;
  virtual void set(const Int& x, const Int& y) = 0;
  virtual void add(const Int& x, std::int64_t value) = 0;
  virtual void add(const Int& x, const Int& y) = 0;
  virtual void subtract(const Int& x, const Int& y) = 0;
  /// x = the largest multiple of 2^shift that is at most x.
  virtual void round_down(const Int& x, std::uint32_t shift) = 0;
  /// x = the smaller of x and y.
  virtual void lower_to(const Int& x, const Int& y) = 0;
  virtual Int load_int(const Int& base, std::int64_t displacement) = 0;
  /// Adds to an integer in memory.
  virtual void add_to_memory(const Int& base, std::int64_t displacement, const Int& by) = 0;
  virtual Int address(const Address& of) = 0;

  asmjit::Label new_label() { return compiler_.newLabel(); }
  void bind(const asmjit::Label& label) { compiler_.bind(label); }
  virtual void jump(const asmjit::Label& to) = 0;
  virtual void jump_if_less(const Int& x, const Int& y, const asmjit::Label& to) = 0;
  virtual void jump_if_less(const Int& x, std::int64_t y, const asmjit::Label& to) = 0;
  virtual void jump_if_not_less(const Int& x, const Int& y, const asmjit::Label& to) = 0;

  // --- memory ---

  /// The first `count` lanes, or all where that is more.
  virtual Tail tail(const Int& count) = 0;
  /// Elements side by side, of f32, bf16, f16, i32, u8, bool, or in code of f64 also f64 and i64;
  /// those outside of the tail, if there is one, are 0 and are not touched.
  virtual Vector load(const Address& from, DType dtype, const Tail* tail) = 0;
  /// The same of elements of type `compute` that lie two apart; those between are not touched.
  virtual Vector load_every_other(const Address& from, const Tail* tail) = 0;
  /// One element, also an i64 or f64, in all lanes.
  virtual Vector load_one(const Int& from, DType dtype) = 0;
  /// To elements side by side, those of the tail, of the type `compute`, f32, bf16 or f16, rounded
  /// once. If they are to be read again, returns what a load would give, else a register that is
  /// not to be read.
  virtual Vector store(const Address& to, DType dtype, const Vector& value, const Tail* tail,
                       bool is_read_again) = 0;
  /// Past the caches, to an address that is a multiple of vector_bytes().
  virtual void stream(const Address& to, const Vector& value) = 0;
  /// One element; returns what a load would give.
  virtual Vector store_one(const Int& to, DType dtype, const Vector& value) = 0;
  /// Where there is an instruction for it.
  virtual void prefetch(const Address& at) = 0;

  // --- numbers ---

  /// Says that every NaN that is rounded to bf16 is quiet, and its lower 16 bits 0: rounding is
  /// then shorter.
  void expect_bf16_nans() { has_bf16_nans_ = true; }
  /// What a store as f32, bf16 or f16 and a load of it would give.
  virtual Vector rounded(const Vector& x, DType dtype) = 0;

  virtual Vector copy(const Vector& x) = 0;
  virtual void set(const Vector& x, const Vector& y) = 0;
  /// A number in all lanes. The register holds for the whole function: it is not to be changed.
  virtual Vector constant(double value) = 0;
  /// An integer as a number in all lanes.
  virtual Vector number(const Int& x) = 0;
  /// first, first + 1, … as numbers.
  virtual Vector count_from(const Int& first) = 0;

  enum class Arithmetic : std::uint8_t {
    add,
    subtract,
    multiply,
    divide,
    least,    ///< x where x < y, else y
    largest,  ///< x where x > y, else y
    bit_and,
    bit_or,
    bit_xor,
    integer_add,  ///< of the bits, as integers
    integer_subtract
  };
  virtual Vector apply(Arithmetic op, const Operand& x, const Operand& y) = 0;
  virtual Vector square_root(const Vector& x) = 0;
  enum class Rounding : std::uint8_t { to_even, down, up, to_zero };
  /// A whole number near x.
  virtual Vector whole(Rounding how, const Vector& x) = 0;
  /// x · y + z, rounded once; with the signs of the product and of z.
  virtual Vector multiply_add(const Operand& x, const Operand& y, const Operand& z,
                              bool minus_product, bool minus_z) = 0;
  /// Shifts of the bits; the last one takes copies of the sign in.
  virtual Vector shift_left(const Vector& x, int by) = 0;
  virtual Vector shift_right(const Vector& x, int by) = 0;
  virtual Vector shift_right_signed(const Vector& x, int by) = 0;
  /// `size` with the sign of x.
  virtual Vector with_sign_of(const Vector& size, const Vector& x) = 0;
  /// x · 2^k for whole numbers k; where there is an instruction for it.
  virtual bool has_scale() const { return false; }
  virtual Vector scale(const Vector& /*x*/, const Vector& /*k*/) { return {}; }
  /// x = m · 2^e with 3/4 <= m < 3/2; of 0 and infinity e is infinite, of negative numbers m is
  /// NaN. Where there are instructions for it.
  virtual bool has_split() const { return false; }
  virtual void split(const Vector& /*x*/, Vector& /*m*/, Vector& /*e*/) {}
  /// numbers[place] for places, as integers in the lanes, from 0 on; `count` is that of the table.
  /// If it is 8 or 32, of floats, the last three or five bits of a place count alone.
  virtual Vector look_up(const void* numbers, int count, const Vector& places) = 0;
  /// Whether tables of 32 floats are as fast as tables of 8.
  virtual bool looks_up_32() const { return false; }
  /// Of a table of f64 in rows of 2^shift bytes: where the row of each lane's place begins. None
  /// where looking numbers up one by one is as fast.
  virtual std::vector<Int> rows_of(const void* /*table*/, int /*shift*/, const Vector& /*places*/) {
    return {};
  }
  /// Two numbers of each lane's row, side by side from so many bytes on: the first ones, and the
  /// second ones.
  virtual std::pair<Vector, Vector> two_of_rows(const std::vector<Int>& /*rows*/,
                                                int /*displacement*/) {
    return {};
  }

  // --- masks ---

  /// The comparison x op y: from lt to ne. That with NaN is false, but for ne.
  virtual Mask compare(ScalarOp op, const Vector& x, const Operand& y) = 0;
  /// Where either is NaN.
  virtual Mask is_nan(const Vector& x, const Vector& y) = 0;
  virtual Mask both(const Mask& x, const Mask& y) = 0;
  virtual Mask either(const Mask& x, const Mask& y) = 0;
  virtual Mask none() = 0;
  /// found = found or x, in the lanes of the tail.
  virtual void note(const Mask& found, const Mask& x, const Tail* tail) = 0;
  /// Jumps where no lane is set.
  virtual void jump_if_none(const Mask& mask, const asmjit::Label& to) = 0;
  /// `yes` where the mask is set.
  virtual Vector select(const Mask& mask, const Vector& yes, const Vector& no) = 0;

  // --- combinations ---

  /// acc = acc combined with x, in the lanes of `tail` where there is one. Extremes pass over NaN.
  virtual void combine(Combine how, const Vector& acc, const Vector& x, const Tail* tail) = 0;
  /// acc = acc + x · y, rounded once.
  virtual void add_product(const Vector& acc, const Vector& x, const Vector& y,
                           const Tail* tail) = 0;
  /// acc = all its lanes combined, in each lane.
  virtual void combine_lanes(Combine how, const Vector& acc) = 0;
  /// As many vectors as there are lanes to one: lane i is all lanes of vector i combined, in the
  /// same order as combine_lanes().
  virtual Vector combine_lanes_of(Combine how, std::span<const Vector> vectors) = 0;

 protected:
  Assembler(asmjit::BaseCompiler& compiler, DType compute, Isa isa)
      : compiler_(compiler),
        compute_(compute),
        lanes_(vector_bytes(isa) / static_cast<int>(size_of(compute))),
        vector_registers_(registers(isa)) {}
  bool is_f64() const { return compute_ == DType::f64; }
  bool has_bf16_nans() const { return has_bf16_nans_; }

  asmjit::BaseCompiler& compiler_;

 private:
  DType compute_;
  static constexpr int mask_registers = 7;  // of AVX-512, but k0
  int lanes_, vector_registers_;
  bool has_bf16_nans_ = false;
  asmjit::BaseNode* entry_ = nullptr;
};

/// Defined for AArch64.
std::unique_ptr<Assembler> make_neon_assembler(DType compute, asmjit::CodeHolder& holder);
#if defined(__x86_64__)
/// AVX-512 if `wide`, else AVX2.
std::unique_ptr<Assembler> make_x86_assembler(bool wide, DType compute, asmjit::CodeHolder& holder);
#endif

}  // namespace ein::host
