#include "nest/dependences.hpp"

#include <algorithm>

#include "nest/attention.hpp"
#include "size/ask.hpp"

namespace ein {

void Touched::add(const Touched& other) {
  read.insert(other.read.begin(), other.read.end());
  written.insert(other.written.begin(), other.written.end());
}

bool Touched::conflicts(const Touched& other) const {
  const auto meets = [](const std::set<int>& a, const std::set<int>& b) {
    return std::any_of(a.begin(), a.end(), [&](int x) { return b.contains(x); });
  };
  return meets(read, other.written) || meets(written, other.written) || meets(written, other.read);
}

Touched Dependences::touched_by(std::span<const LoopNest> nests, const Attention* attention) const {
  Touched touched;
  for (const LoopNest& nest : nests) {
    for (const LoopNest::Operand& input : nest.inputs) touched.read.insert(memory_of(input.buffer));
    touched.written.insert(memory_of(nest.output.buffer));
  }
  if (!attention) return touched;
  for (const LoopNest::Operand* operand : read_by(*attention))
    touched.read.insert(memory_of(operand->buffer));
  if (!attention->gradients && attention->log_sums)
    touched.written.insert(memory_of(attention->log_sums->buffer));
  return touched;
}

}  // namespace ein
