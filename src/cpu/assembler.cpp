#if EIN_ASMJIT
#include "cpu/assembler.hpp"

#include <stdexcept>

namespace ein::host {

bool Assembler::has(Isa isa) {
#if defined(__aarch64__)
  return isa == Isa::neon;
#elif defined(__x86_64__)
  return isa >= Isa::v3;
#else
  return static_cast<void>(isa), false;
#endif
}
int Assembler::vector_bytes(Isa isa) { return isa == Isa::neon ? 16 : isa == Isa::v3 ? 32 : 64; }
int Assembler::registers(Isa isa) { return isa == Isa::v3 ? 16 : 32; }

std::unique_ptr<Assembler> Assembler::make(Isa isa, DType compute, asmjit::CodeHolder& holder) {
  if (!has(isa)) throw std::logic_error("assembler: no code for this instruction set");
#if defined(__aarch64__)
  return make_neon_assembler(compute, holder);
#elif defined(__x86_64__)
  return make_x86_assembler(isa != Isa::v3, compute, holder);
#else
  return static_cast<void>(compute), static_cast<void>(holder), nullptr;
#endif
}

}  // namespace ein::host
#endif
