// ein draw: what a pattern does, as a picture.
#include <cstdio>
#include <memory>

#include "draw/call.hpp"
#include "draw/mistake.hpp"
#include "kernels.hpp"
#include "program.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein draw rearrange 'b s (h d) -> b h s d' -o split-heads.svg
  ein draw rearrange 'b s (h d) -> b h s d' --shape 2,128,512 --axis h=8 -o split-heads.svg
  ein draw reduce 'b c (h 2) (w 2) -> b c h w' --by max -o pooling.svg
  ein draw einsum 'b q d, b k d -> b q k' --shape 2,5,64 --shape 2,7,64 -o scores.svg
  ein draw repeat 'h w -> h (w 2)' -o wide.svg

OP is rearrange, repeat, reduce or einsum. The picture shows small tensors of the same pattern,
axes as colours and elements as cells; a browser shows it, and marks where an element goes when it
is pointed at. Of a mistake it shows the mistake.

Exit code: 0; 2 for a mistake in the call, the pattern or the shapes, which is drawn as well; 1 for
files and the rest.)";

struct DrawWords {
  CallWords call;
  std::string output;
};

std::string drawn(const DrawWords& words) {
  const Operation op =
      words.call.op == program_word ? Operation::pack : operation_of(words.call.op);
  if (op != Operation::rearrange && op != Operation::repeat && op != Operation::reduce &&
      op != Operation::einsum)
    throw UsageError("draw: it draws rearrange, repeat, reduce and einsum, not " + words.call.op);
  std::vector<Shape> shapes;
  for (const OperandType& operand : operands_of(words.call)) shapes.push_back(operand.shape);
  if (shapes.empty()) return draw::to_svg(Call(words.call).get(), shapes);
  return draw::to_svg(Call(words.call, shapes.size()).get(), shapes);
}

void write_picture(const DrawWords& words, const std::string& picture, std::string& output) {
  if (words.output.empty())
    output = picture;
  else
    save(words.output, picture);
}

void draw_call(const DrawWords& words, std::string& output) {
  try {
    write_picture(words, drawn(words), output);
  } catch (const Error& error) {
    if (error.spans().empty()) throw;
    write_picture(words, draw::to_svg(error), output);
    std::fwrite(output.data(), 1, output.size(), stdout);
    throw;
  }
}

}  // namespace

void add_draw(CLI::App& app, std::string& output) {
  CLI::App* command = app.add_subcommand("draw", "Draw what a pattern does, as SVG");
  const auto words = std::make_shared<DrawWords>();
  add_call(*command, words->call);
  add_operands(*command, words->call);
  add_word(*command, "-o,--output", words->output, "the file to write")->type_name("FILE");
  command->footer(examples);
  command->callback([words, &output] { draw_call(*words, output); });
}

}  // namespace ein::command
