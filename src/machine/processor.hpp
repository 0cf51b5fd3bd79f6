// The processor: which of the instruction sets that ein knows it has.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ein::host {

/// Instruction sets. On x86-64 each has those before it: the levels v2, v3 and v4 of its psABI, v4
/// with AVX512-BF16, and that with AMX. AArch64 has `neon`; what other architectures have is
/// `baseline`.
enum class Isa : std::uint8_t { baseline, neon, v2, v3, v4, v4_bf16, v4_amx };
std::string_view name(Isa isa);

/// Those of this processor and its operating system, the best last.
const std::vector<Isa>& isas_here();

/// The best of this processor that EIN_ISA, a name in the environment, allows; read once. Throws an
/// Error for a name that is none (`value`) and for what the processor lacks (`device`).
Isa isa();
/// The same for a text in place of EIN_ISA; an empty one allows all.
Isa isa_of(std::string_view text);

}  // namespace ein::host
