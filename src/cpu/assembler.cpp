#if EIN_ASMJIT
#include "cpu/assembler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <vector>
#include "size/ask.hpp"

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

namespace {

using Sequence = std::vector<asmjit::BaseNode*>;

/// The registers of a sequence of instructions.
struct Registers {
  enum Kind { general, vectors, masks, kinds };
  struct LiveRange {
    Kind kind;
    std::size_t first, last;  // instructions that mention it
    bool is_live_on_entry, is_set;
  };
  std::map<std::uint32_t, LiveRange> ranges;  // by register
  bool can_move = true;                       // no instruction jumps, is a target, or reads flags
  // How many of each kind it needs at once:
  std::array<int, kinds> temporaries{};   // that it sets before it reads them
  std::array<int, kinds> accumulators{};  // that are live on entry, and set
  std::array<int, kinds> constants{};     // that it only reads

  Registers(const Sequence& sequence, asmjit::Arch arch) {
    for (std::size_t i = 0; i < sequence.size() && can_move; ++i) {
      can_move = sequence[i]->type() == asmjit::NodeType::kInst;
      if (can_move) mention(*sequence[i]->as<asmjit::InstNode>(), i, arch);
    }
    std::array<std::vector<int>, kinds> change;
    for (std::vector<int>& of_kind : change) of_kind.resize(sequence.size() + 2);
    for (const auto& [id, range] : ranges) {
      if (range.is_live_on_entry) {
        ++(range.is_set ? accumulators : constants)[range.kind];
      } else {
        // The last instruction that reads it may set another in its place.
        ++change[range.kind][range.first];
        --change[range.kind][std::max(range.last, range.first + 1)];
      }
    }
    for (int kind = 0; kind < kinds; ++kind) {
      int now = 0;
      for (int by : change[kind]) temporaries[kind] = std::max(temporaries[kind], now += by);
    }
  }

 private:
  void mention(const asmjit::InstNode& instruction, std::size_t at, asmjit::Arch arch) {
    asmjit::InstRWInfo access;
    const std::span<const asmjit::Operand> operands(instruction.operands(), instruction.opCount());
    if (asmjit::InstAPI::queryRWInfo(arch, instruction.baseInst(), operands.data(), operands.size(),
                                     &access) != asmjit::kErrorOk ||
        access.readFlags() != asmjit::CpuRWFlags::kNone) {
      can_move = false;
      return;
    }
    // x ^ x and x == x do not depend on x.
    const bool is_of_one = operands.size() > 1 &&
                           std::all_of(operands.begin(), operands.end(), [&](const auto& operand) {
                             return operand.isReg() && operand.id() == operands[0].id();
                           });
    for (std::size_t o = 0; o < operands.size(); ++o) {
      if (operands[o].isReg()) {
        const auto& reg = operands[o].as<asmjit::BaseReg>();
        const asmjit::OpRWInfo& how = access.operand(o);
        mention(reg.id(), kind_of(reg.group()), at, how.isRead() && !is_of_one, how.isWrite());
      } else if (operands[o].isMem()) {
        const auto& memory = operands[o].as<asmjit::BaseMem>();
        if (memory.hasBaseReg()) mention(memory.baseId(), general, at, true, false);
        if (memory.hasIndexReg()) mention(memory.indexId(), general, at, true, false);
      }
    }
    if (instruction.hasExtraReg())
      mention(instruction.extraReg().id(), kind_of(instruction.extraReg().group()), at, true,
              false);
  }
  void mention(std::uint32_t id, Kind kind, std::size_t at, bool reads, bool sets) {
    LiveRange& range = ranges.try_emplace(id, LiveRange{kind, at, at, reads, sets}).first->second;
    range.is_live_on_entry |= range.first == at && reads;
    range.is_set |= sets;
    range.last = at;
  }
  static Kind kind_of(asmjit::RegGroup group) {
    return group == asmjit::RegGroup::kGp    ? general
           : group == asmjit::RegGroup::kVec ? vectors
                                             : masks;
  }
};

/// Whether one sets a register that another mentions, or one cannot move.
bool depend(std::span<const Registers> group) {
  std::map<std::uint32_t, bool> is_set;  // of all registers of those before
  for (const Registers& one : group) {
    if (!one.can_move) return true;
    for (const auto& [id, range] : one.ranges) {
      const auto known = is_set.find(id);
      if (known != is_set.end() && (known->second || range.is_set)) return true;
    }
    for (const auto& [id, range] : one.ranges) is_set[id] |= range.is_set;
  }
  return false;
}

Sequence nodes_between(asmjit::BaseNode* before, const asmjit::BaseNode* last) {
  Sequence nodes;
  while (before != last) nodes.push_back(before = before->next());
  return nodes;
}

/// The most sequences of this length to interleave. A processor looks some 400 instructions ahead,
/// and should see the next load; longer code would take long to compile.
int most_of_length(std::size_t instructions) {
  return instructions <= 45 ? 4 : instructions <= 150 ? 2 : 1;
}

}  // namespace

int Assembler::how_many_fit(asmjit::BaseNode* before, int most) const {
  const Sequence sequence = nodes_between(before, compiler_.cursor());
  int together = std::min(most, most_of_length(sequence.size()));
  if (together == 1) return 1;
  const Registers needs(sequence, compiler_.arch());
  if (!needs.can_move) return 1;
  const auto all = [&](Registers::Kind kind, int count) {
    return needs.constants[kind] + most * needs.accumulators[kind] +
           count * needs.temporaries[kind];
  };
  // Some may be in memory, where instructions read them. Where there are few registers, sums lose
  // more by that than they gain: measured on AVX2.
  const bool may_spill = vector_registers_ > 16 || needs.accumulators[Registers::vectors] == 0;
  const auto fit = [&](int count) {
    return all(Registers::vectors, count) <= (may_spill ? 2 : 1) * vector_registers_ &&
           all(Registers::masks, count) <= mask_registers;
  };
  while (together > 1 && !fit(together)) together /= 2;
  return together;
}

void Assembler::interleave(std::span<asmjit::BaseNode* const> before, int together) {
  std::vector<Sequence> sequences;
  std::vector<Registers> registers;
  for (std::size_t s = 0; s < before.size(); ++s) {
    sequences.push_back(
        nodes_between(before[s], s + 1 < before.size() ? before[s + 1] : compiler_.cursor()));
    registers.emplace_back(sequences.back(), compiler_.arch());
  }
  asmjit::BaseNode* last = before[0];
  const auto next = [&](asmjit::BaseNode* node) {
    if (last->next() != node) compiler_.addAfter(compiler_.removeNode(node), last);
    last = node;
  };
  for (std::size_t first = 0; first < sequences.size();
       first += static_cast<std::size_t>(together)) {
    const auto group = std::span(sequences).subspan(first, static_cast<std::size_t>(together));
    const auto of_group = std::span(registers).subspan(first, group.size());
    if (depend(of_group)) {
      for (const Sequence& sequence : group) std::for_each(sequence.begin(), sequence.end(), next);
      continue;
    }
    std::size_t longest = 0;
    for (const Sequence& sequence : group) longest = std::max(longest, sequence.size());
    for (std::size_t i = 0; i < longest; ++i) {
      for (const Sequence& sequence : group) {
        if (i < sequence.size()) next(sequence[i]);
      }
    }
  }
  compiler_.setCursor(last);
}

}  // namespace ein::host
#endif
