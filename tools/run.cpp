// ein run: a pattern on .npy files.
#include <filesystem>
#include <memory>
#include <set>

#include <ein/npy.hpp>

#include "io/file.hpp"
#include "io/npy_header.hpp"
#include "program.hpp"
#include "runtime/call.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

namespace fs = std::filesystem;

constexpr const char* examples = R"(Examples:
  ein run rearrange 'h w c -> c h w' photo.npy -o planes.npy
  ein run einsum 'i j, j k -> i k' a.npy b.npy -o product.npy
  ein run reduce 'h w c -> c' photo.npy --by mean          no -o: the result is printed
  ein run rearrange 'b h w -> h (b w)' 1.npy 2.npy 3.npy -o row.npy
                                                 several files: stacked on a new first axis
  ein run pack 'b *' x.npy y.npy -o packed.npy
  ein run unpack 'b *' packed.npy --packed 3 --packed 4,5 -o x.npy -o y.npy
  ein run parse_shape 'batch _ h' x.npy
  ein run softmax 'b h q [k]' scores.npy -o weights.npy
  ein run layer_norm 'b s [c]' x.npy weight.npy bias.npy --eps 1e-6 -o y.npy
  ein run top_k 'b [v]' logits.npy -k 5 -o values.npy -o positions.npy
  ein run program attention.ein q.npy k.npy v.npy -o y.npy

A program is a file whose lines are calls: RESULT = OP 'PATTERN' OPERANDS, between a line of inputs
and one of outputs. It is compiled as a whole:
  inputs q k v
  s = einsum 'b h q d, b h k d -> b h q k' q k
  p = softmax 'b h q [k]' s
  y = einsum 'b h q k, b h k d -> b h q d' p v
  outputs y

Results have the dtype of the files, or that of --as. They are written once all of them are computed.
Exit code: 0; 2 for a mistake in the call, the pattern or the shapes; 1 for files and the rest.)";

std::string shown(const Tensor& x) {
  return x.shape().to_string() + " " + std::string(name(x.dtype())) + "\n" + to_string(x) + "\n";
}

/// So that no result is written, or even computed, where one cannot be.
void check_types(const Graph& graph, const std::vector<std::string>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Op& result = graph.op(graph.outputs[i]);
    const std::string where = "-o '" + outputs[i] + "': NumPy has no ";
    if (!io::has_npy_type(result.dtype))
      throw UsageError(where + std::string(name(result.dtype)) +
                       "; say another dtype with --as, such as f32");
    if (result.shape.rank() > io::npy_max_rank)
      throw UsageError(where + "arrays of more than " + std::to_string(io::npy_max_rank) + " axes");
  }
}

/// Asks first whether every file can be written, so that none is when one cannot.
void save(const std::vector<Tensor>& results, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) io::ReplacementFile("save_npy", path);
  for (std::size_t i = 0; i < paths.size(); ++i) save_npy(paths[i], results[i]);
}

void check_outputs(const std::string& op, std::size_t results,
                   const std::vector<std::string>& outputs) {
  if (outputs.empty()) return;
  if (results != outputs.size()) {
    throw UsageError(op + " has " + std::to_string(results) +
                     (results == 1 ? " result" : " results") + ", -o is given " +
                     std::to_string(outputs.size()) + (outputs.size() == 1 ? " time" : " times"));
  }
  std::set<fs::path> places;
  for (const std::string& path : outputs) {
    if (path.empty()) throw UsageError("-o '' names no file");
    if (!places.insert(fs::absolute(path).lexically_normal()).second) {
      throw UsageError("-o '" + path + "' is given twice");
    }
  }
}

std::string run(const CallWords& words, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs) {
  const Computation computation(words, inputs.size());
  const Call* const call = computation.call();
  check_outputs(words.op, computation.result_count(), outputs);
  std::vector<Tensor> operands;
  std::vector<const Tensor*> addresses;
  std::vector<OperandType> types;
  std::vector<Shape> shapes;
  for (const std::string& path : inputs) operands.push_back(load_npy(path));
  for (const Tensor& operand : operands) {
    addresses.push_back(&operand);
    types.push_back({operand.shape(), operand.dtype()});
    shapes.push_back(operand.shape());
  }
  if (computation.computes_nothing()) return sizes_line(call->get().pattern, shapes[0]);

  const Graph graph = computation.graph(types);
  check_types(graph, outputs);
  const auto plan = std::make_shared<const engine::Plan>("run", graph, addresses, OrderOptions());
  const std::vector<Tensor> results = engine::run(*plan, addresses);
  std::string output;
  if (outputs.empty()) {
    for (const Tensor& result : results) output += shown(result);
  } else {
    save(results, outputs);
  }
  if (call && call->op() == Operation::pack)
    output += packed_line(packed_shapes(call->get().pattern, shapes));
  return output;
}

}  // namespace

void add_run(CLI::App& app, std::string& output) {
  CLI::App* command = app.add_subcommand("run", "Run a pattern on .npy files");
  const auto words = std::make_shared<CallWords>();
  const auto inputs = std::make_shared<std::vector<std::string>>();
  const auto outputs = std::make_shared<std::vector<std::string>>();
  add_call(*command, *words);
  add_words(*command, "IN", *inputs, "the operands, .npy files")->required()->allow_extra_args();
  add_words(*command, "-o,--output", *outputs,
            "where a result goes, once for each; without: stdout")
      ->type_name("OUT.npy");
  command->footer(examples);
  command->callback([words, inputs, outputs, &output] { output = run(*words, *inputs, *outputs); });
}

}  // namespace ein::command
