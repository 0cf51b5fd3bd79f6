#include "kernels.hpp"

#include <charconv>
#include <string_view>
#include <utility>

#include "call.hpp"
#include "codegen/vocabulary.hpp"
#include "passes/contraction_order.hpp"
#include "passes/lower.hpp"

namespace ein::command {

Program program_of(const Graph& graph, std::span<const OperandType> operands) {
  std::vector<InputLayout> layouts;
  for (const OperandType& operand : operands)
    layouts.push_back({contiguous_strides(operand.shape), 0});
  return lower(order_contractions(graph), layouts);
}

codegen::Target target_of(const std::string& arch) {
  std::string_view digits = arch;
  const bool has_prefix = digits.starts_with("sm_");
  if (has_prefix) digits.remove_prefix(3);
  codegen::Target target;
  target.accelerated = digits.ends_with('a');
  if (target.accelerated) digits.remove_suffix(1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), target.sm);
  if (!has_prefix || error != std::errc() || end != digits.data() + digits.size()) {
    throw UsageError("--arch: '" + arch + "' is no architecture such as sm_80, sm_90a or sm_100a");
  }
  if (target.sm < 80) throw UsageError("--arch: kernels are made for sm_80 and newer, not " + arch);
  return target;
}

Kernels kernels_of(const Program& program, const codegen::Target& target) {
  Kernels kernels;
  for (std::size_t i = 0; i < program.nests.size(); ++i) {
    for (codegen::KernelSource& kernel :
         codegen::emit(program.nests[i], target, "_" + std::to_string(i))) {
      if (!kernels.sources.empty()) kernels.text += '\n';
      kernels.text += kernel.text.substr(kernel.kernel_begin);
      kernels.sources.push_back(std::move(kernel));
    }
  }
  kernels.text = codegen::vocabulary_for(kernels.text) + kernels.text;
  return kernels;
}

}  // namespace ein::command
