// Emitted kernels through NVRTC, where there is one: every form and dtype, for each architecture.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <map>
#include <sstream>

#include "codegen/vocabulary.hpp"
#include "cuda/nvrtc.hpp"
#include "support/emitted_nests.hpp"
#include "support/nvrtc.hpp"
#include "support/open_sizes.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {
namespace {

/// Whether a kernel's name tells of floating-point numbers.
bool is_floating_name(const std::string& kernel) {
  const auto has = [&](const char* dtype) { return kernel.find(dtype) != std::string::npos; };
  return has("f16") || has("f32") || has("f64");
}

class NvrtcTextTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_WITHOUT_NVRTC_FOR(GetParam()); }
  int number() const { return std::stoi(GetParam().substr(3)); }
};

class NvrtcEmitTest : public NvrtcTextTest {
 protected:
  void expect_tiles_fit(std::initializer_list<DType> dtypes);
};

// Every tile of contractions by tensor cores: nothing is spilled, shared memory suffices, and the
// compiler does not put wgmma's products one after another.
void NvrtcEmitTest::expect_tiles_fit(std::initializer_list<DType> dtypes) {
  const GpuTarget target{.sm = number(), .accelerated = GetParam().back() == 'a', .tf32 = true};
  std::string text = codegen::vocabulary();
  std::map<std::string, std::size_t> dynamic;  // shared memory by kernel
  const auto add_nest = [&](const LoopNest& nest) {
    const std::string number_of_nest = std::to_string(dynamic.size());
    // With the nest's numbers, and with arguments for them.
    const auto named_by_tile = [&](const LoopNest& of, const std::string& with) {
      std::vector<codegen::KernelSource> kernels;
      for (codegen::Alternative& alternative : codegen::alternatives(of, target)) {
        std::string suffix = "_" + number_of_nest + with + "_";
        for (const char c : alternative.name)
          suffix += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
        for (codegen::KernelSource& kernel : alternative.kernels) {
          const std::string name = kernel.name + suffix;
          kernel.text.replace(kernel.text.find(kernel.name + "(", kernel.kernel_begin),
                              kernel.name.size(), name);
          kernel.name = name;
          kernels.push_back(std::move(kernel));
        }
      }
      return kernels;
    };
    for (const auto& kernels :
         {named_by_tile(nest, ""),
          emitted_open(nest, [&](const LoopNest& of) { return named_by_tile(of, "_open"); })}) {
      for (const codegen::KernelSource& kernel : kernels) {
        text += kernel.text.substr(kernel.kernel_begin);
        dynamic[kernel.name] = kernel.shared_bytes;
      }
    }
  };
  const auto einsum = [&](const std::string& pattern, const std::vector<Shape>& shapes,
                          DType dtype) {
    return lowered(graph_of_pattern(Operation::einsum, pattern, shapes, dtype)).nests.at(0);
  };
  const auto add = [&](const std::string& pattern, const std::vector<Shape>& shapes, DType dtype) {
    add_nest(einsum(pattern, shapes, dtype));
  };
  for (DType dtype : dtypes) {
    if (!is_wanted(static_cast<std::size_t>(dtype))) continue;
    add("m k, n k -> m n", {{4096, 4096}, {4096, 4096}}, dtype);
    add("b k h m, b k h n -> b h m n", {{4, 520, 6, 1000}, {4, 520, 6, 1032}}, dtype);
  }
  add("m k, k n -> m n", {{1027, 2049}, {2049, 1111}}, DType::bf16);
  // With bias, GELU and residual.
  LoopNest nest = einsum("m k, n k -> m n", {{4096, 1024}, {4096, 1024}}, DType::bf16);
  LoopNest::Operand bias = nest.output, residual = nest.output;
  bias.buffer = 3;
  for (Size& stride : bias.strides) stride = stride == 1 ? 1 : 0;
  residual.buffer = 4;
  nest.inputs.insert(nest.inputs.end(), {bias, residual});
  const Ex x = Ex::input(0) + Ex::input(2);
  nest.epilogue = Ex(0.5) * x * (Ex(1.0) + Ex::apply(ScalarOp::erf, x * Ex(0.70710678118654752))) +
                  Ex::input(3);
  add_nest(nest);
  const gpu::Cubin cubin = gpu::compile({"contract.cu", text, GetParam()});
  const bool has_wgmma = target.sm == 90 && target.accelerated;
  std::size_t by_wgmma = 0;
  for (const gpu::KernelResources& kernel : gpu::kernels_of(cubin)) {
    by_wgmma += kernel.name.starts_with("contract_wgmma");
    EXPECT_LE(static_cast<std::size_t>(kernel.shared_bytes) + dynamic.at(kernel.name),
              number() == 80 ? 163u << 10 : 227u << 10)
        << kernel.name;
    ASSERT_TRUE(kernel.spills) << kernel.name;
    const bool is_open = kernel.name.find("_open") != std::string::npos;
    // The one-stage tile of f8 without tensor cores keeps two registers in memory on sm_80.
    const int most = kernel.name.starts_with("contract_f8") && number() == 80 ? 8 : 0;
    EXPECT_LE(kernel.spills->stored, most + (is_open ? spilled_sizes : 0))
        << kernel.name << " with " << kernel.registers << " registers";
  }
  EXPECT_EQ(by_wgmma > 0, has_wgmma);
  // Whatever the compiler says beside its figures is a warning.
  std::istringstream log(cubin.log);
  for (std::string line; std::getline(log, line);)
    EXPECT_TRUE(line.starts_with("ptxas info    : ") || line.starts_with("ptxas         . "))
        << line;
}

TEST_P(NvrtcEmitTest, EveryFormOfEveryDtypeCompiles) {
  const GpuTarget target{number(), GetParam().back() == 'a'};
  std::string text = codegen::vocabulary();
  std::size_t count = 0;
  for (DType dtype : real_dtypes) {
    if (!is_wanted(static_cast<std::size_t>(dtype))) continue;
    std::size_t p = 0;
    for (const NamedProgram& form : programs_of_every_form(dtype)) {
      std::string suffix("_");
      suffix.append(name(dtype)).append(std::to_string(p++));
      const auto emit = [&](const std::string& with) {
        return [&, with](const Program& of) { return emitted(of, target, suffix + with); };
      };
      for (const auto& kernels :
           {emit("")(form.program), emitted_open(form.program, emit("_open"))}) {
        for (const codegen::KernelSource& kernel : kernels) {
          text += kernel.text.substr(kernel.kernel_begin);
          ++count;
        }
      }
    }
  }
  const gpu::Cubin cubin = gpu::compile({"emitted.cu", text, GetParam()});
  const auto kernels = gpu::kernels_of(cubin);
  EXPECT_EQ(kernels.size(), count);
  for (const gpu::KernelResources& kernel : kernels) {
    EXPECT_LE(kernel.shared_bytes, 48 << 10) << kernel.name;
    if (!kernel.spills) continue;
    // Calls of functions that are not inlined keep a few registers in memory.
    const bool is_open = kernel.name.find("_open") != std::string::npos;
    const bool is_product = kernel.name.starts_with("contract_") && is_floating_name(kernel.name);
    const bool is_of_pairs = kernel.name.starts_with("pairs_");
    // So do the largest products of f32 on sm_100a: three addresses, which they store once and read
    // once in 1,024 multiplications.
    const int most = is_of_pairs || (is_product && number() < 100) ? 0 : 16;
    EXPECT_LE(kernel.spills->stored, most + (is_open ? spilled_sizes : 0))
        << kernel.name << " with " << kernel.registers << " registers";
  }
}

TEST_P(NvrtcEmitTest, EveryTileOfContractionsOfTwoBytesFits) {
  expect_tiles_fit({DType::bf16, DType::f16});
}
TEST_P(NvrtcEmitTest, EveryTileOfOtherContractionsFits) {
  expect_tiles_fit({DType::f8e4m3, DType::f8e5m2, DType::f32});
}

// Tiles of pairs, however long the expression is and whatever it reads: two blocks have room on a
// multiprocessor, nothing is spilled, and no array is in memory.
TEST_P(NvrtcEmitTest, TilesOfPairsFit) {
  const GpuTarget target{.sm = number(), .accelerated = GetParam().back() == 'a'};
  const Ex x = Ex::input(0), y = Ex::input(1), z = Ex::input(2);
  const Ex difference = x - y;
  const std::pair<const char*, Ex> bodies[] = {
      {"squared", difference * difference + z},
      {"exponential", Ex::apply(ScalarOp::exp, difference) * z},
      {"power", Ex::apply(ScalarOp::pow, Ex::apply(ScalarOp::abs, difference), z)},
      {"masked", Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::le, Ex::index(1), Ex::index(0)),
                           difference + z, Ex(-1.0))}};
  // Where the third input lies.
  const std::vector<int> places[] = {{0}, {2}, {0, 1}, {0, 2}};
  std::string text = codegen::vocabulary();
  std::size_t count = 0;
  for (const DType dtype : {DType::f32, DType::f64}) {
    if (!is_wanted(static_cast<std::size_t>(dtype))) continue;
    for (const auto& [name, body] : bodies) {
      for (const std::vector<int>& place : places) {
        for (const std::int64_t depth : {64, 1000}) {
          if (name == std::string("power") && depth != 64) continue;  // its text is long
          const Graph graph = graph_of_pairs(dtype, dtype, {2048, 2050, depth}, body,
                                             depth == 64 ? Combine::max : Combine::sum, {place});
          const std::string suffix = "_" + std::string(name) + std::to_string(count++);
          for (const codegen::KernelSource& kernel : emitted(lowered(graph), target, suffix)) {
            EXPECT_TRUE(kernel.name.starts_with("pairs_")) << kernel.name;
            text += kernel.text.substr(kernel.kernel_begin);
          }
        }
      }
    }
  }
  const gpu::Cubin cubin = gpu::compile({"pairs.cu", text, GetParam()});
  for (const gpu::KernelResources& kernel : gpu::kernels_of(cubin)) {
    EXPECT_LE(kernel.registers, 128) << kernel.name;
    EXPECT_LE(kernel.shared_bytes, 48 << 10) << kernel.name;
    EXPECT_EQ(kernel.stack_bytes, 0) << kernel.name;
    ASSERT_TRUE(kernel.spills) << kernel.name;
    EXPECT_EQ(kernel.spills->stored, 0)
        << kernel.name << " with " << kernel.registers << " registers";
  }
}

// What one kernel's own text brings along is enough for it.
TEST_P(NvrtcTextTest, EachTextIsComplete) {
  for (const NamedProgram& form : programs_of_every_form(DType::bf16)) {
    for (const codegen::KernelSource& kernel : emitted(form.program, {number(), true})) {
      EXPECT_NO_THROW(gpu::compile({kernel.name + ".cu", kernel.text, GetParam()})) << form.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvrtcTextTest, testing::Values("sm_80", "sm_90a"));
INSTANTIATE_TEST_SUITE_P(SlowArchitectures, NvrtcTextTest, testing::Values("sm_100a"));
// What kernels are made of is the same for all, but for Hopper's own instructions.
INSTANTIATE_TEST_SUITE_P(Architectures, NvrtcEmitTest, testing::Values("sm_90a"));
INSTANTIATE_TEST_SUITE_P(SlowArchitectures, NvrtcEmitTest, testing::Values("sm_80", "sm_100a"));

}  // namespace
}  // namespace ein::test
