// ein check: is this pattern right, and what shape does it make?
#include <memory>

#include "passes/complex.hpp"
#include "program.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein check rearrange 'b s (h d) -> b h s d' --shape 2,128,512 --axis h=8
      (2, 8, 128, 64)
  ein check einsum 'b q d, b k d -> b q k' --shape 2,5,64 --shape 2,7,64
      (2, 5, 7)
  ein check reduce 'b c (h 2) (w 2) -> b c h w' --shape 8,3,32,32 --by max
      (8, 3, 16, 16)
  ein check repeat 'h w -> h w 3' --shape 30,40
      (30, 40, 3)
  ein check pack 'b *' --shape 2,3 --shape 2 --shape 2,4,5
      (2, 24)
      packed: (3,), (), (4, 5)
  ein check unpack 'b *' --shape 2,24 --packed 3 --packed '' --packed -1,5
      (2, 3)
      (2,)
      (2, 4, 5)
  ein check parse_shape 'batch _ h' --shape 2,3,5
      batch=2 h=5
  ein check einsum 'i j, j k -> i k'
      ok                        without shapes, the pattern alone is checked

Exit code: 0; 2 for a mistake in the call, the pattern or the shapes; 1 for a program's file that
cannot be read, and the rest.)";

std::string check(const CallWords& words) {
  const std::vector<OperandType> operands = operands_of(words);
  if (operands.empty()) {
    const Computation computation(words);
    return "ok\n";
  }
  const Computation computation(words, operands.size());
  const Call* const call = computation.call();
  if (computation.computes_nothing()) return sizes_line(call->get().pattern, operands[0].shape);

  const Graph graph = computation.graph(operands);
  without_complex(graph, "check");  // an Error where complex numbers lack an operation
  std::string output;
  for (ValueId result : graph.outputs) output += graph.op(result).shape.to_string() + "\n";
  if (call && call->op() == Operation::pack) {
    std::vector<Shape> shapes;
    for (const OperandType& operand : operands) shapes.push_back(operand.shape);
    output += packed_line(packed_shapes(call->get().pattern, shapes));
  }
  return output;
}

}  // namespace

void add_check(CLI::App& app, std::string& output) {
  CLI::App* command =
      app.add_subcommand("check", "Check a pattern against shapes; prints the result's shape");
  const auto words = std::make_shared<CallWords>();
  add_call(*command, *words);
  add_operands(*command, *words);
  command->footer(examples);
  command->callback([words, &output] { output = check(*words); });
}

}  // namespace ein::command
