#if EIN_ASMJIT
#include "cpu/assembler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
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

namespace {

using Run = std::vector<asmjit::BaseNode*>;

/// The registers that a run of instructions mentions: those that it sets, and how many vectors and
/// masks it needs at once: of its own, which it sets before it reads them, and others.
struct Registers {
  enum Kind { vectors, masks, kinds };
  std::array<int, kinds> own{}, others{};
  std::set<std::uint32_t> all, set;

  explicit Registers(const Run& run) {
    struct Life {
      Kind kind;
      bool is_own;
      std::size_t first, last;
    };
    std::map<std::uint32_t, Life> lives;
    const auto mention = [&](const asmjit::BaseReg& reg, bool sets, std::size_t at) {
      all.insert(reg.id());
      if (sets) set.insert(reg.id());
      if (reg.group() == asmjit::RegGroup::kGp) return;
      const Kind kind = reg.group() == asmjit::RegGroup::kVec ? vectors : masks;
      lives.try_emplace(reg.id(), Life{kind, sets, at, at}).first->second.last = at;
    };
    for (std::size_t i = 0; i < run.size(); ++i) {
      const auto* const instruction = run[i]->as<asmjit::InstNode>();
      for (std::uint32_t o = instruction->opCount(); o-- > 0;) {
        const asmjit::Operand& operand = instruction->op(o);
        if (operand.isReg()) mention(operand.as<asmjit::BaseReg>(), o == 0, i);
        if (!operand.isMem()) continue;
        const auto& memory = operand.as<asmjit::BaseMem>();
        if (memory.hasBaseReg()) all.insert(memory.baseId());
        if (memory.hasIndexReg()) all.insert(memory.indexId());
      }
    }
    for (std::size_t i = 0; i < run.size(); ++i) {
      std::array<int, kinds> now{};
      for (const auto& [id, life] : lives)
        now[life.kind] += life.is_own && life.first <= i && (i < life.last || life.first == i);
      for (int kind = 0; kind < kinds; ++kind) own[kind] = std::max(own[kind], now[kind]);
    }
    for (const auto& [id, life] : lives) others[life.kind] += !life.is_own;
  }
};

bool share_what_is_set(const Registers& x, const Registers& y) {
  const auto is_in_y = [&](std::uint32_t id) { return y.all.contains(id); };
  const auto is_in_x = [&](std::uint32_t id) { return x.all.contains(id); };
  return std::any_of(x.set.begin(), x.set.end(), is_in_y) ||
         std::any_of(y.set.begin(), y.set.end(), is_in_x);
}

}  // namespace

void Assembler::put_side_by_side(std::span<asmjit::BaseNode* const> before_runs) {
  const std::size_t count = before_runs.size();
  std::vector<Run> runs(count);
  std::vector<Registers> registers;
  for (std::size_t r = 0; r < count; ++r) {
    asmjit::BaseNode* const end = r + 1 < count ? before_runs[r + 1] : compiler_.cursor();
    for (asmjit::BaseNode* node = before_runs[r]; node != end;) {
      node = node->next();
      if (node->type() != asmjit::NodeType::kInst) return;
      runs[r].push_back(node);
    }
    registers.emplace_back(runs[r]);
    for (std::size_t other = 0; other < r; ++other) {
      if (share_what_is_set(registers[other], registers[r])) return;
    }
  }
  std::size_t together = count;
  const auto fit = [&](const Registers& one) {
    const auto needs = [&](Registers::Kind kind) {
      return one.others[kind] + static_cast<int>(together) * one.own[kind];
    };
    return needs(Registers::vectors) <= vector_registers_ &&
           needs(Registers::masks) <= 7;  // of AVX-512, but k0
  };
  while (together > 1 &&
         !(count % together == 0 && std::all_of(registers.begin(), registers.end(), fit)))
    --together;
  Run in_order;
  for (std::size_t first = 0; first < count; first += together) {
    const std::span<const Run> group(&runs[first], together);
    const auto longest = std::max_element(group.begin(), group.end(),
                                          [](auto& x, auto& y) { return x.size() < y.size(); });
    for (std::size_t i = 0; i < longest->size(); ++i) {
      for (const Run& run : group) {
        if (i < run.size()) in_order.push_back(run[i]);
      }
    }
  }
  asmjit::BaseNode* last = before_runs[0];
  for (asmjit::BaseNode* node : in_order) {
    if (last->next() != node) compiler_.addAfter(compiler_.removeNode(node), last);
    last = node;
  }
  compiler_.setCursor(last);
}

}  // namespace ein::host
#endif
