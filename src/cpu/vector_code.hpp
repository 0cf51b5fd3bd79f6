// Vector code: the scalar vocabulary as AVX-512 instructions on sixteen floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include <asmjit/x86.h>

#include "nest/nest.hpp"

namespace ein::host {

/// Emits operations on vectors into a function that is being compiled. Results are new registers.
class VectorCode {
 public:
  using Vector = asmjit::x86::Zmm;

  explicit VectorCode(asmjit::x86::Compiler& code) : code_(code) {}
  /// Registers that hold for the whole function are set where this is called: before all loops.
  void begin() { entry_ = code_.cursor(); }

  /// A number in all lanes, as an operand in memory or in a register.
  asmjit::x86::Mem constant(float value);
  asmjit::x86::Mem constant_bits(std::uint32_t bits);
  Vector constant_vector(float value);
  Vector copy(const Vector& x);

  static bool can_load(DType dtype);
  static bool can_store(DType dtype);
  /// Sixteen elements that lie side by side as f32; those outside the mask, if there is one, are 0
  /// and are not touched.
  Vector load(const asmjit::x86::Mem& from, DType dtype, const asmjit::x86::KReg* mask);
  /// The same of f32 that lie two apart; those between are not touched.
  Vector load_every_other(const asmjit::x86::Mem& from, const asmjit::x86::KReg* mask);
  /// One element, also an i64, in all lanes.
  Vector load_one(const asmjit::x86::Gp& from, DType dtype);
  /// To elements side by side, those of the mask; returns what a load would give.
  Vector store(const asmjit::x86::Mem& to, DType dtype, const Vector& value,
               const asmjit::x86::KReg* mask);
  Vector store_one(const asmjit::x86::Gp& to, DType dtype, const Vector& value);

  static bool has(ScalarOp op);
  Vector apply(ScalarOp op, const Vector& x, const Vector& y, const Vector& z);
  /// The comparison x op y, or whether x is not 0.
  static bool is_comparison(ScalarOp op);
  asmjit::x86::KReg compare(ScalarOp op, const Vector& x, const Vector& y);
  asmjit::x86::KReg is_nonzero(const Vector& x);
  /// `yes` where the mask is set.
  Vector select(const asmjit::x86::KReg& mask, const Vector& yes, const Vector& no);
  /// x·y + z, with the signs of the product and of z.
  Vector multiply_add(const Vector& x, const Vector& y, const Vector& z, bool minus_product,
                      bool minus_z);

  /// acc = acc combined with x, in the lanes of `mask` where there is one. Extremes pass over NaN:
  /// it is noted, and put in at the end.
  void combine(Combine combine, const Vector& acc, const Vector& x, const asmjit::x86::KReg* mask);
  void add_product(const Vector& acc, const Vector& x, const Vector& y,
                   const asmjit::x86::KReg* mask);
  void note_nan(const asmjit::x86::KReg& found, const Vector& x, const asmjit::x86::KReg* mask);
  void put_nan(const Vector& acc, const asmjit::x86::KReg& found);
  /// All lanes combined, in each lane.
  void combine_lanes(Combine combine, const Vector& acc);
  /// Sixteen vectors to one: lane i is all lanes of vector i combined, in the same order as
  /// combine_lanes().
  Vector combine_lanes_of(Combine combine, std::span<const Vector> sixteen);

 private:
  /// Emits what `emit` does before all loops.
  template <class Emit>
  void at_entry(const Emit& emit);
  /// Sixteen numbers of a static table.
  Vector table(const void* sixteen);
  Vector round_to_bf16(const Vector& value);
  Vector polynomial(const Vector& x, std::span<const float> coefficients);  // of x^0, x^1, …
  Vector extreme(bool is_max, const Vector& x, const Vector& y);
  /// e^x as 2^k·(1 + p).
  struct ExpParts {
    Vector p, k;
  };
  ExpParts exp_parts(const Vector& x, const Vector* half_less);
  Vector magnitude(const Vector& x);
  Vector magnitude_at_most(const Vector& x, float most);
  Vector look_up(const float (&numbers)[32], const Vector& places);
  Vector logistic_tail(const Vector& t, bool times_t);
  Vector normal_tail(const Vector& t, bool times_t);
  Vector complement_unless_negative(const Vector& x, const Vector& tail);
  Vector positive_part_less(const Vector& x, const Vector& tail);
  Vector exp(const Vector& x);
  Vector log(const Vector& x);
  Vector tanh(const Vector& x);
  Vector erf(const Vector& x);
  Vector sigmoid(const Vector& x);
  Vector silu(const Vector& x);
  Vector normal_cdf(const Vector& x);
  Vector gelu(const Vector& x);
  Vector from_mask(const asmjit::x86::KReg& mask);

  asmjit::x86::Compiler& code_;
  asmjit::BaseNode* entry_ = nullptr;
  std::map<std::uint32_t, Vector> constants_;
  std::map<const void*, Vector> tables_;
  asmjit::x86::KReg every_other_;
};

}  // namespace ein::host
