#if EIN_ASMJIT
#include "cpu/assembler.hpp"

#include <stdexcept>

namespace ein::host {

bool Assembler::has(Isa isa) { return isa == Isa::v3 || isa == Isa::v4 || isa == Isa::v4_bf16; }
int Assembler::vector_bytes(Isa isa) { return isa == Isa::neon ? 16 : isa == Isa::v3 ? 32 : 64; }
int Assembler::registers(Isa isa) { return isa == Isa::v3 ? 16 : 32; }

std::unique_ptr<Assembler> Assembler::make(Isa isa, DType compute, asmjit::CodeHolder& holder) {
  if (!has(isa)) throw std::logic_error("assembler: no code for this instruction set");
  return make_x86_assembler(isa != Isa::v3, compute, holder);
}

}  // namespace ein::host
#endif
