// ein emit: what a pattern becomes.
#include <algorithm>
#include <chrono>
#include <memory>

#include <ein/cost.hpp>

#include "cuda/cubin_cache.hpp"
#include "draw/graph.hpp"
#include "kernels.hpp"
#include "passes/complex.hpp"
#include "passes/contraction_order.hpp"
#include "program.hpp"
#include "report.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein emit graph einsum 'b q d, b k d -> b q k' --shape 2,5,64 --shape 2,7,64
  ein emit graph einsum 'i j, j k, k l -> i l' --shape 9,100 --shape 100,100 --shape 100,2
  ein emit svg softmax 'b h q [k]' --shape 2,8,64,64 -o softmax.svg
  ein emit nest rearrange 'b s (h d) -> b h s d' --shape 2,128,512 --axis h=8
  ein emit nest reduce 'b c -> b' --shape 64,1000 --by logsumexp
  ein emit cuda einsum 'b q d, b k d -> b q k' --shape 8,512,64 --shape 8,512,64 --dtype bf16
  ein emit cubin reduce 'b c -> b' --shape 64,1000 --by sum --arch sm_80 -o sum.cubin

graph  the operations on named axes, and the floating-point operations they cost
svg    the same as a picture that browsers show
nest   the loops that run: contractions in their best order, operands without gaps
cuda   the CUDA kernels of these loops, with how they are launched; to a file with the vocabulary
       that they are written in, ready for a compiler
cubin  what each kernel takes of a GPU, compiled by NVRTC; to a file the machine code. No GPU is
       needed

Exit code: 0; 2 for a mistake in the call, the pattern or the shapes; 1 for files, a missing NVRTC
and the rest.)";

struct EmitWords {
  std::string form;
  CallWords call;
  std::string arch = "sm_90a";
  std::string output;
};

std::string emit_graph(const Graph& graph) {
  const Count written = cost(graph).model;
  const Count ordered = cost(order_contractions(graph)).model;
  std::string output = to_string(graph);
  if (!output.ends_with('\n')) output += '\n';
  output += "FLOPs: " + to_string(written);
  if (ordered != written)
    output += " as written, " + to_string(ordered) + " two operands at a time";
  return output + "\n";
}

// --- kernels ---

constexpr const char* nothing_to_do =
    "no kernel: the results are empty, or views of the operands\n";

std::string emit_cuda(const Kernels& kernels, const std::string& path) {
  if (!path.empty()) {
    save(path, kernels.text);
    return "";
  }
  std::string output;
  for (const codegen::KernelSource& kernel : kernels.sources) {
    output += (output.empty() ? "" : "\n") + launch_of(kernel);
    output += kernel.text.substr(kernel.kernel_begin);
  }
  return output.empty() ? "// " + std::string(nothing_to_do) : output;
}

std::string emit_cubin(const Kernels& kernels, const EmitWords& words) {
  if (kernels.sources.empty()) return nothing_to_do;
  const auto begin = std::chrono::steady_clock::now();
  const auto cache = gpu::CubinCache::of_user();
  const std::vector<gpu::Source> sources{{"kernels.cu", kernels.text, words.arch}};
  const gpu::Compiled compiled = gpu::compile_all(sources, cache ? &*cache : nullptr).front();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!words.output.empty()) save(words.output, compiled.cubin.image);

  ResourceTable table;
  table.add(compiled.cubin, kernels.sources);
  return table.text() + "\n" + words.arch + ", NVRTC " + to_string(gpu::nvrtc_version()) + ", " +
         (compiled.was_cached ? "from the cache in " : "compiled in ") + duration(seconds) + "; " +
         grouped(compiled.cubin.image.size()) + " bytes" +
         (words.output.empty() ? "" : " in " + printable_line(words.output)) + "\n" +
         ResourceTable::units + "\n";
}

// --- the command ---

std::string emit(const EmitWords& words) {
  const std::string& form = words.form;
  const bool makes_kernels = form == "cuda" || form == "cubin";
  if (form != "graph" && form != "svg" && form != "nest" && !makes_kernels) {
    throw UsageError("emit: unknown form '" + form +
                     "'; it may be graph, svg, nest, cuda or cubin");
  }
  if (form != "svg" && !makes_kernels && !words.output.empty())
    throw UsageError("emit: -o is for svg, cuda and cubin, not for " + form);
  const GpuTarget target = target_of(words.arch);
  const std::vector<OperandType> operands = operands_of(words.call);
  if (operands.empty()) throw UsageError("emit needs --shape, once for each operand");
  const Computation computation(words.call, operands.size());
  if (computation.computes_nothing()) throw UsageError("emit: parse_shape computes nothing");
  const Graph graph = without_complex(computation.graph(operands), "emit");
  if (form == "graph") return emit_graph(graph);
  if (form == "svg") {
    if (words.output.empty()) return to_svg(graph);
    save(words.output, to_svg(graph));
    return "";
  }
  const Program program = program_of(graph);
  if (form == "nest") {
    std::string output = to_string(program);
    if (!output.ends_with('\n')) output += '\n';
    return output;
  }
  const Kernels kernels = kernels_of(program, target);
  return form == "cuda" ? emit_cuda(kernels, words.output) : emit_cubin(kernels, words);
}

}  // namespace

void add_emit(CLI::App& app, std::string& output) {
  CLI::App* command = app.add_subcommand(
      "emit", "Print what a pattern becomes: its graph, the loops that run, CUDA kernels");
  const auto words = std::make_shared<EmitWords>();
  add_word(*command, "FORM", words->form, "graph, svg, nest, cuda or cubin")->required();
  add_call(*command, words->call);
  add_operands(*command, words->call);
  add_word(*command, "--arch", words->arch,
           "the GPU's architecture: sm_80, sm_90a (the default), sm_100a ...")
      ->type_name("ARCH");
  add_word(*command, "-o,--output", words->output, "for svg, cuda and cubin: the file to write")
      ->type_name("FILE");
  command->footer(examples);
  command->callback([words, &output] { output = emit(*words); });
}

}  // namespace ein::command
