// Kernels of braces through NVRTC, where there is one: they fit into registers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "codegen/vocabulary.hpp"
#include "cuda/nvrtc.hpp"
#include "support/attention_cases.hpp"
#include "support/emitted_nests.hpp"
#include "support/nvrtc.hpp"
#include "support/open_sizes.hpp"
#include "support/seeds.hpp"
#include "support/window_forms.hpp"

namespace ein::test {
namespace {

class NvrtcWindowsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_WITHOUT_NVRTC_FOR(GetParam()); }
  GpuTarget target() const {
    return {.sm = std::stoi(GetParam().substr(3)), .accelerated = GetParam().back() == 'a'};
  }
  /// What a compiled function of this form, or its gradient, becomes.
  static Program program_of(const WindowForm& form, DType dtype, bool is_gradient) {
    std::vector<Tensor> arguments;
    for (const Shape& shape : form.shapes) arguments.push_back(empty(shape, dtype));
    if (is_gradient) {
      const Graph graph = compiled_graph(form, arguments, false).graph;
      arguments.push_back(empty(graph.op(graph.outputs.at(0)).shape, dtype));
    }
    return compiled_graph(form, arguments, is_gradient).program;
  }

 private:
  static CompiledProgram compiled_graph(const WindowForm& form,
                                        const std::vector<Tensor>& arguments, bool is_gradient) {
    return compiled(
        arguments, [&](std::span<const Tensor> x) { return run_form(form, x, is_gradient); },
        [](Program& program, std::span<const int>) { engine::backend_of(cuda).group(program); });
  }
};

/// Of ResNet's sizes, and with sizes that are arguments.
TEST_P(NvrtcWindowsTest, NothingIsSpilled) {
  std::string text = codegen::vocabulary();
  std::size_t number = 0, count = 0;
  for (const WindowForm& form : window_forms({.b = 8, .side = 56, .c = 64, .o = 128})) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (!is_wanted(number++)) continue;
      for (const bool is_gradient : {false, true}) {
        const Program program = program_of(form, dtype, is_gradient);
        for (std::size_t g = 0; g < program.groups.size(); ++g) {
          const std::string suffix = "_" + form.name + "_" + std::string(name(dtype)) +
                                     (is_gradient ? "_gradient" : "") + std::to_string(g);
          const auto emit = [&](const std::string& with) {
            return [&, with](const Program& of) {
              return codegen::emit(of, of.groups[g], target(), suffix + with);
            };
          };
          for (const auto& kernels : {emit("")(program), emitted_open(program, emit("_open"))}) {
            for (const codegen::KernelSource& kernel : kernels) {
              text += kernel.text.substr(kernel.kernel_begin);
              ++count;
            }
          }
        }
      }
    }
  }
  const gpu::Cubin cubin = gpu::compile({"windows.cu", text, GetParam()});
  const auto kernels = gpu::kernels_of(cubin);
  EXPECT_EQ(kernels.size(), count);
  for (const gpu::KernelResources& kernel : kernels) {
    EXPECT_LE(kernel.shared_bytes, 48 << 10) << kernel.name;
    ASSERT_TRUE(kernel.spills) << kernel.name;
    const bool is_open = kernel.name.find("_open") != std::string::npos;
    EXPECT_LE(kernel.spills->stored, is_open ? spilled_sizes : 0)
        << kernel.name << " with " << kernel.registers << " registers";
  }
}

/// The tiles that a device may try for a convolution, and for its gradients.
TEST_P(NvrtcWindowsTest, EveryTileFits) {
  const WindowForm form = window_forms({.b = 8, .side = 56, .c = 64, .o = 128}).front();
  std::size_t tiles = 0;
  for (std::size_t alternative = 0;; ++alternative) {
    std::string text = codegen::vocabulary();
    std::size_t number = 0;
    bool is_any = false;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const bool is_gradient : {false, true}) {
        for (const LoopNest& nest : program_of(form, dtype, is_gradient).nests) {
          const auto all = codegen::alternatives(nest, target(), "_" + std::to_string(number++));
          if (alternative >= all.size()) continue;
          is_any = true;
          tiles += !all[alternative].name.empty();
          for (const codegen::KernelSource& kernel : all[alternative].kernels)
            text += kernel.text.substr(kernel.kernel_begin);
        }
      }
    }
    if (!is_any) break;
    const gpu::Cubin cubin = gpu::compile({"tiles.cu", text, GetParam()});
    for (const gpu::KernelResources& kernel : gpu::kernels_of(cubin)) {
      ASSERT_TRUE(kernel.spills) << kernel.name;
      EXPECT_EQ(kernel.spills->stored, 0) << kernel.name << " with " << kernel.registers
                                          << " registers, alternative " << alternative;
    }
  }
  EXPECT_GT(tiles, 10u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvrtcWindowsTest, testing::Values("sm_90a"));
INSTANTIATE_TEST_SUITE_P(SlowArchitectures, NvrtcWindowsTest, testing::Values("sm_80", "sm_100a"));

}  // namespace
}  // namespace ein::test
