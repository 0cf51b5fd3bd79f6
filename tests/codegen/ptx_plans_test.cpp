// Kernels whose sizes are arguments, and some with their numbers, as plans for an interpreter of
// PTX that shares nothing with this project: kernels, memory, launches, and what they ought to
// leave. scripts/interpret-kernels has them written to the folder EIN_PTX_PLANS and runs them;
// otherwise each is written and checked here: no size is left in the text, and each argument has
// its parameter.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <ein/ein.hpp>
#include <ein/npy.hpp>
#include "backend/backend.hpp"
#include "codegen/vocabulary.hpp"
#include "support/attention_cases.hpp"
#include "support/emitted_nests.hpp"
#include "support/open_sizes.hpp"
#include "support/scratch.hpp"
#include "support/tensor_values.hpp"
#include "support/window_forms.hpp"

namespace ein::test {
namespace {

namespace fs = std::filesystem;
using codegen::KernelSource;

enum class Sizes { arguments, numbers };

std::string buffer_name(int buffer) {
  return buffer == codegen::workspace_buffer ? "\"workspace\""
                                             : "\"b" + std::to_string(buffer) + "\"";
}

/// The items between commas.
template <class Items>
std::string list(const Items& items) {
  std::string text;
  for (const auto& item : items) {
    std::ostringstream one;
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, Size>)
      one << to_string(item);
    else
      one << item;
    text += (text.empty() ? "" : ", ") + one.str();
  }
  return text;
}

std::string pointer_of(const KernelSource& kernel, std::size_t i) {
  return "{\"buffer\": " + buffer_name(kernel.buffers[i]) +
         ", \"offset\": " + to_string(kernel.offsets[i]) + "}";
}

/// A constant's bytes in memory, as many as its parameter has.
std::string constant_of(const KernelSource& kernel, std::size_t c) {
  const bool is_short = kernel.text.find("const float c" + std::to_string(c)) != std::string::npos;
  std::string hex;
  for (int byte = 0; byte < (is_short ? 4 : 8); ++byte) {
    for (const int digit : {8 * byte + 4, 8 * byte})
      hex += "0123456789abcdef"[kernel.constants[c] >> digit & 15];
  }
  return "{\"hex\": \"" + hex + "\"}";
}

/// A kernel's launch. It draws no random numbers.
std::string launch_of(const KernelSource& kernel) {
  std::vector<std::string> parameters;
  for (const codegen::TensorMap& map : kernel.maps) {
    parameters.push_back("{\"tensor_map\": {\"buffer\": " + buffer_name(map.buffer) +
                         ", \"offset\": " + to_string(map.offset) + ", \"dtype\": \"" +
                         std::string(name(map.dtype)) + "\", \"sizes\": [" + list(map.sizes) +
                         "], \"strides_bytes\": [" + list(map.strides) + "], \"box\": [" +
                         list(map.box) + "], \"swizzle\": 128}}");
  }
  std::vector<std::string> table;
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i)
    (i < kernel.table.pointers ? table : parameters).push_back(pointer_of(kernel, i));
  for (const Size& number : kernel.table.numbers)
    table.push_back("{\"value\": " + to_string(number) + ", \"bytes\": 8}");
  if (!table.empty()) {
    parameters.insert(parameters.begin() + static_cast<std::ptrdiff_t>(kernel.maps.size()),
                      "{\"struct\": [" + list(table) + "], \"align\": 8}");
  }
  if (kernel.checks_positions) parameters.push_back("{\"buffer\": \"fault\"}");
  for (std::size_t c = 0; c < kernel.constants.size(); ++c)
    parameters.push_back(constant_of(kernel, c));
  for (std::size_t s = 0; s < kernel.sizes.size(); ++s) {
    const bool is_short =
        kernel.text.find("const u32 size" + std::to_string(s)) != std::string::npos;
    parameters.push_back("{\"value\": " + to_string(kernel.sizes[s]) +
                         ", \"bytes\": " + (is_short ? "4" : "8") + "}");
  }
  return "{\"kernel\": \"" + kernel.name + "\", \"grid\": [" + list(kernel.grid()) +
         "], \"block\": [" + list(kernel.block) +
         "], \"shared_bytes\": " + std::to_string(kernel.shared_bytes) + ", \"params\": [" +
         list(parameters) + "]}";
}

/// That the kernel has sizes as arguments, if it is one of those, a parameter for each argument,
/// and names for all.
void expect_complete(const KernelSource& kernel, Sizes kind) {
  if (kernel.table.numbers.empty()) {
    EXPECT_EQ(kernel.sizes.empty(), kind == Sizes::numbers) << kernel.name;
  }
  EXPECT_EQ(kernel.text.find('$', kernel.kernel_begin), std::string::npos) << kernel.text;
  const std::size_t begin = kernel.text.find(kernel.name + "(", kernel.kernel_begin),
                    end = kernel.text.find(") {", begin);
  ASSERT_NE(end, std::string::npos) << kernel.name;
  std::size_t parameters = 1;
  int inside = 0;  // of a type's own brackets
  for (std::size_t at = begin; at < end; ++at) {
    const char c = kernel.text[at];
    inside += (c == '<') - (c == '>');
    parameters += c == ',' && inside == 0;
  }
  const std::size_t of_table = kernel.table.pointers, is_table = of_table > 0;
  EXPECT_EQ(parameters, kernel.maps.size() + is_table + kernel.buffers.size() - of_table +
                            kernel.checks_positions + kernel.constants.size() + kernel.sizes.size())
      << kernel.text.substr(begin, end - begin);
}

/// The plan of a program on these inputs in a folder of its own.
void write(const fs::path& folder, const Program& program, const std::vector<Tensor>& inputs,
           const std::vector<Values>& want, double tolerance, const GpuTarget& target, Sizes kind) {
  fs::create_directories(folder);
  std::vector<KernelSource> kernels;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const auto emit = [&](const Program& of) {
      return codegen::emit(of, of.groups[g], target, "_" + std::to_string(g));
    };
    for (KernelSource& kernel :
         kind == Sizes::numbers ? emit(program) : emitted_open(program, emit))
      kernels.push_back(std::move(kernel));
  }
  std::string text = codegen::vocabulary();
  std::vector<std::string> buffers{"{\"name\": \"fault\", \"bytes\": 32, \"fill\": 0}"}, launches,
      results;
  std::int64_t workspace = 16;
  for (const KernelSource& kernel : kernels) {
    expect_complete(kernel, kind);
    text += kernel.text.substr(kernel.kernel_begin);
    workspace = std::max<std::int64_t>(workspace, kernel.workspace_bytes);
    launches.push_back(launch_of(kernel));
  }
  buffers.push_back("{\"name\": \"workspace\", \"bytes\": " + std::to_string(workspace) + "}");
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].is_local) continue;
    const std::string file = "b" + std::to_string(b) + ".npy";
    const std::int64_t bytes = program.buffers[b].bytes();
    if (b < inputs.size()) {
      const Tensor as_bytes = empty({bytes}, DType::u8);
      std::memcpy(as_bytes.raw_data(), inputs[b].raw_data(), static_cast<std::size_t>(bytes));
      save_npy((folder / file).string(), as_bytes);
    }
    buffers.push_back("{\"name\": \"b" + std::to_string(b) +
                      "\", \"bytes\": " + std::to_string(bytes) +
                      (b < inputs.size() ? ", \"file\": \"" + file + "\"" : "") + "}");
  }
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    const Program::Result& result = program.results[r];
    ASSERT_EQ(to_string(result.offset), "0");
    // As it lies in memory: results are whole buffers.
    ASSERT_TRUE(result.strides == contiguous_strides(result.shape)) << to_string(program);
    const std::string file = "want" + std::to_string(r) + ".npy";
    save_npy((folder / file).string(), make_tensor(want[r], result.shape, DType::f64));
    results.push_back("{\"buffer\": \"b" + std::to_string(result.buffer) + "\", \"dtype\": \"" +
                      std::string(name(result.dtype)) + "\", \"shape\": [" + list(result.shape) +
                      "], \"expect\": \"" + file + "\", \"rtol\": " + std::to_string(tolerance) +
                      ", \"atol\": " + std::to_string(tolerance) + "}");
  }
  std::ofstream(folder / "kernels.cu") << text;
  std::ofstream(folder / "plan.json")
      << "{\"arch\": \"sm_" << target.sm << (target.accelerated ? "a" : "")
      << "\", \"cu\": \"kernels.cu\",\n\"buffers\": [" << list(buffers) << "],\n\"launches\": ["
      << list(launches) << "],\n\"results\": [" << list(results) << "]}\n";
}

class PtxPlans : public testing::Test {
 protected:
  /// Of what a function of tensors becomes on a GPU.
  void add(const std::string& name, const Function& function, const std::vector<Tensor>& arguments,
           double tolerance = 1e-5, const GpuTarget& target = {.sm = 80, .accelerated = false},
           Sizes kind = Sizes::arguments) {
    const CompiledProgram c = compiled(
        arguments, function,
        [](Program& program, std::span<const int>) { engine::backend_of(cuda).group(program); });
    std::vector<Values> values;
    for (const Tensor& x : c.inputs) values.push_back(get_values(x));
    write(folder() / name, c.program, c.inputs, Interpreter<>::run(c.graph, values), tolerance,
          target, kind);
  }

 private:
  /// That of the interpreter, or one that goes with the test.
  fs::path folder() const {
    const char* const wanted = std::getenv("EIN_PTX_PLANS");
    return wanted ? wanted : scratch_.path("");
  }
  ScratchDirectory scratch_;
};

TEST_F(PtxPlans, AreWritten) {
  using namespace literals;
  using Tensors = std::vector<Tensor>;
  using Arguments = std::span<const Tensor>;
  const auto of_x = [](auto f) { return [f](Arguments x) { return Tensors{f(x[0])}; }; };
  // So small a GPU that few tiles keep it busy.
  const GpuTarget hopper{.sm = 90, .accelerated = true, .sms = 2};
  const auto halves = [](const Shape& shape, DType dtype) {
    return ((rand(shape) * 9.0).to(DType::i32).to(DType::f32) * 0.5 - 2.0).to(dtype);
  };
  manual_seed(3);
  const auto product = [](const char* pattern) {
    return [pattern](Arguments x) { return Tensors{einsum(x[0], x[1], RuntimeText{pattern})}; };
  };
  const auto rows = product("m k, k n -> m n"), columns = product("m k, n k -> m n");
  add("product_f32", rows, {halves({70, 36}, DType::f32), halves({36, 75}, DType::f32)});
  add("product_bf16", rows, {halves({72, 48}, DType::bf16), halves({48, 88}, DType::bf16)}, 0.01);
  add("product_wgmma", columns, {halves({264, 256}, DType::bf16), halves({136, 256}, DType::bf16)},
      0.01, hopper);
  add("product_in_pieces", rows, {halves({18, 600}, DType::f32), halves({600, 20}, DType::f32)});
  // So small a GPU that few results are computed in tiles.
  const GpuTarget in_tiles{.sm = 80,
                           .accelerated = false,
                           .sms = 1,
                           .least_tile_side = 1,
                           .least_tile_depth = 1,
                           .least_tiles = 1};
  const auto pairs = [](const char* pattern, const auto& f, const char* reduction) {
    return [pattern, f, reduction](Arguments x) {
      return Tensors{map(x[0], x[1], RuntimeText{pattern}, f, RuntimeText{reduction})};
    };
  };
  const auto squared = [](const Tensor& x, const Tensor& y) { return (x - y) * (x - y); };
  const auto near = [](const Tensor& x, const Tensor& y) { return exp(-abs(x - y)); };
  add("pairs_sum_f32", pairs("i d, j d -> i j", squared, "sum"),
      {halves({70, 36}, DType::f32), halves({75, 36}, DType::f32)}, 1e-5, in_tiles);
  add("pairs_of_numbers", pairs("b i d, b j d -> b j i", squared, "sum"),
      {halves({2, 70, 36}, DType::f16), halves({2, 75, 36}, DType::f16)}, 0.01, in_tiles,
      Sizes::numbers);
  add("pairs_max_f32", pairs("i k, k j -> j i", fn::add, "max"),
      {halves({130, 20}, DType::f32), halves({20, 66}, DType::f32)}, 1e-5, in_tiles);
  add("pairs_min_f64", pairs("b i k, b k j -> b i j", fn::add, "min"),
      {halves({2, 33, 17}, DType::f64), halves({2, 17, 40}, DType::f64)}, 1e-5, in_tiles);
  add("pairs_exp_bf16", pairs("i d, j d -> i j", near, "sum"),
      {halves({70, 40}, DType::bf16), halves({34, 40}, DType::bf16)}, 0.01, in_tiles);
  add("pairs_sum_i64", pairs("i d, j d -> i j", squared, "sum"),
      {(rand({40, 21}) * 9).to(DType::i64), (rand({35, 21}) * 9).to(DType::i64)}, 1e-5, in_tiles);
  add("pairs_in_runs", pairs("i d, j d -> i j", fn::maximum, "sum"),
      {halves({40, 600}, DType::f32), halves({70, 600}, DType::f32)}, 1e-4, in_tiles);
  add("pairs_in_pieces", pairs("i d, j d -> i j", squared, "sum"),
      {halves({20, 512}, DType::f32), halves({18, 512}, DType::f32)}, 1e-4, in_tiles);
  add(
      "pairs_gradient",
      [&](Arguments x) {
        Tensor leaf = x[0].detach();
        leaf.requires_grad(true);
        const Tensors leaves{leaf};
        return Tensors{
            gradients(map(leaf, x[1], "i d, j d -> i j", near, "sum"), x[2], leaves).front()};
      },
      {halves({40, 19}, DType::f32), halves({50, 19}, DType::f32), halves({40, 50}, DType::f32)},
      1e-4, in_tiles);
  add("softmax", of_x([](const Tensor& x) { return softmax(x, "b [s]"); }), {randn({5, 300})});
  add("layer_norm", of_x([](const Tensor& x) { return layer_norm(x, "b [s]"); }),
      {randn({3, 2100})});
  add("sum_of_all", of_x([](const Tensor& x) { return reduce(x, "b s -> ", "sum"); }),
      {halves({70, 1001}, DType::f32)});
  add("columns", of_x([](const Tensor& x) { return reduce(x, "b s -> s", "max"); }),
      {randn({300, 41})});
  add("transposed",
      of_x([](const Tensor& x) { return rearrange(x, "(b s) d -> (s b) d", "b"_a = 2); }),
      {randn({90, 67})});
  add("cumsum", of_x([](const Tensor& x) { return cumsum(x, "b [s]"); }),
      {halves({3, 700}, DType::f32)});
  add("sorted", of_x([](const Tensor& x) { return sort(x, "b [s]").positions; }),
      {randn({2, 300})});
  add("gathered", [](Arguments x) { return Tensors{gather(x[0], x[1], "[v] d, n -> n d")}; },
      {randn({11, 24}), (rand({37}) * 11).to(DType::i64)});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    add(
        "attention_" + std::string(name(dtype)),
        [](Arguments x) {
          const Tensor scores = einsum(x[0], x[1], "b q d, b k d -> b q k") * 0.25;
          return Tensors{einsum(softmax(tril(scores, "... [i j]", 0, -INFINITY), "b q [k]"), x[2],
                                "b q k, b k d -> b q d")};
        },
        {halves({2, 70, 16}, dtype), halves({2, 70, 16}, dtype), halves({2, 70, 16}, dtype)},
        dtype == DType::bf16 ? 0.03 : 1e-5);
  }
}

TEST_F(PtxPlans, OfWindowsAreWritten) {
  using Arguments = std::span<const Tensor>;
  const GpuTarget ampere{.sm = 80, .accelerated = false},
      hopper{.sm = 90, .accelerated = true, .sms = 2};
  manual_seed(4);
  const auto numbers = [](const Shape& shape, DType dtype) {
    return ((rand(shape) * 9.0).to(DType::i32).to(DType::f32) * 0.5 - 2.0).to(dtype);
  };
  const auto add_form = [&](const WindowForm& form, DType dtype, double tolerance,
                            const GpuTarget& target, Sizes kind) {
    std::vector<Tensor> arguments;
    for (const Shape& shape : form.shapes) arguments.push_back(numbers(shape, dtype));
    const std::string name = "windows_" + form.name + "_" + std::string(ein::name(dtype));
    for (const bool is_gradient : {false, true}) {
      if (is_gradient) arguments.push_back(numbers(form.function(arguments).shape(), dtype));
      const auto function = [&](Arguments x) {
        std::vector<Tensor> results = run_form(form, x, is_gradient);
        for (Tensor& result : results) result = result * 2;  // so that it is no view of a buffer
        return results;
      };
      add(is_gradient ? name + "_gradient" : name, function, arguments, tolerance, target, kind);
    }
  };
  std::size_t number = 0;
  for (const WindowForm& form : window_forms({.b = 2, .side = 7, .c = 6, .o = 10}))
    add_form(form, DType::f32, 1e-4, ampere, number++ % 2 == 0 ? Sizes::arguments : Sizes::numbers);
  // By tensor cores: of convolutions and their gradients.
  for (const WindowForm& form : window_forms({.b = 2, .side = 8, .c = 16, .o = 24})) {
    if (form.shapes.size() == 2 && form.shapes[1].rank() == 4)
      add_form(form, DType::bf16, 0.02, ampere, Sizes::numbers);
  }
  // Hopper copies by tensor maps what lies in steps: whole tiles of a line.
  for (const WindowForm& form : window_forms({.b = 2, .side = 16, .c = 64, .o = 64})) {
    if (form.name == "causal") add_form(form, DType::f16, 0.01, hopper, Sizes::numbers);
  }
}

}  // namespace
}  // namespace ein::test
