#include "codegen/units.hpp"

#include <string_view>
#include <unordered_map>

#include "codegen/vocabulary.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

/// Stands in names for a kernel's number until it is known.
constexpr std::string_view mark = "_number_";

std::string numbered(std::string_view text, std::size_t number) {
  const std::string digits = "_" + std::to_string(number);
  std::string result;
  for (;;) {
    const std::size_t at = text.find(mark);
    result += text.substr(0, at);
    if (at == text.npos) return result;
    result += digits;
    text.remove_prefix(at + mark.size());
  }
}

}  // namespace

Units emit_units(const Program& program, const GpuTarget& target, std::size_t most_kernels,
                 const Emission& emission) {
  Units units;
  std::unordered_map<std::string, std::size_t> numbers;  // of distinct kernels, by text
  const auto add = [&](std::vector<KernelSource> kernels) {
    for (KernelSource& kernel : kernels) {
      std::string text = kernel.text.substr(kernel.kernel_begin);
      const auto [found, is_new] = numbers.emplace(std::move(text), numbers.size());
      const std::size_t number = found->second, unit = number / most_kernels;
      if (is_new) {
        if (unit == units.texts.size()) units.texts.emplace_back();
        std::string& all = units.texts[unit];
        if (!all.empty()) all += '\n';
        all += numbered(found->first, number);
      }
      kernel.name = numbered(kernel.name, number);
      kernel.text.clear();
      units.launches.push_back(std::move(kernel));
      units.unit_of.push_back(unit);
    }
  };
  for (const Program::Group& group : program.groups) {
    const LoopNest& nest = program.nests[group.first];
    if (!nest.is_collective()) {
      add(emission ? emission(program, group, target, mark) : emit(program, group, target, mark));
      continue;
    }
    CollectiveSource source = emit_collective(nest, target, mark);
    add(std::exchange(source.before, {}));
    const std::size_t next = units.launches.size();
    add(std::exchange(source.after, {}));
    units.collectives.emplace_back(next, std::move(source));
  }
  for (std::string& text : units.texts) text.insert(0, vocabulary_for(text));
  return units;
}

}  // namespace ein::codegen
