// Emitted kernels through NVRTC, where there is one: every form and dtype, for each architecture.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/nvrtc.hpp"
#include "codegen/vocabulary.hpp"
#include "support/emitted_nests.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {
namespace {

/// Whether a kernel's name tells of a contraction in floating-point numbers.
bool is_floating_name(const std::string& kernel) {
  const auto has = [&](const char* dtype) { return kernel.find(dtype) != std::string::npos; };
  return has("f16") || has("f32") || has("f64");
}

class NvrtcEmitTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string why;
    if (!codegen::nvrtc_is_available(&why)) GTEST_SKIP() << why;
    const std::vector<int> known = codegen::nvrtc_architectures();
    if (std::find(known.begin(), known.end(), number()) == known.end())
      GTEST_SKIP() << "this NVRTC does not know " << GetParam();
  }
  int number() const { return std::stoi(GetParam().substr(3)); }
};

TEST_P(NvrtcEmitTest, EveryFormOfEveryDtypeCompiles) {
  const codegen::Target target{number(), GetParam().back() == 'a'};
  std::string text = codegen::vocabulary();
  std::size_t count = 0;
  for (DType dtype : all_dtypes) {
    std::size_t p = 0;
    for (const NamedProgram& form : programs_of_every_form(dtype)) {
      std::string suffix("_");
      suffix.append(name(dtype)).append(std::to_string(p++));
      for (const codegen::KernelSource& kernel : emitted(form.program, target, suffix)) {
        text += kernel.text.substr(kernel.kernel_begin);
        ++count;
      }
    }
  }
  const codegen::Cubin cubin = codegen::compile({"emitted.cu", text, GetParam()});
  const auto kernels = codegen::kernels_of(cubin);
  EXPECT_EQ(kernels.size(), count);
  for (const codegen::KernelResources& kernel : kernels) {
    EXPECT_LE(kernel.shared_bytes, 48 << 10) << kernel.name;
    if (!kernel.spills) continue;
    // Calls of functions that are not inlined keep a few registers in memory.
    EXPECT_LE(kernel.spills->stored,
              kernel.name.starts_with("contract_") && is_floating_name(kernel.name) ? 0 : 16)
        << kernel.name << " with " << kernel.registers << " registers";
  }
}

// What one kernel's own text brings along is enough for it.
TEST_P(NvrtcEmitTest, EachTextIsComplete) {
  for (const NamedProgram& form : programs_of_every_form(DType::bf16)) {
    for (const codegen::KernelSource& kernel : emitted(form.program, {number(), true})) {
      EXPECT_NO_THROW(codegen::compile({kernel.name + ".cu", kernel.text, GetParam()}))
          << form.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvrtcEmitTest,
                         testing::Values("sm_80", "sm_90a", "sm_100a"));

}  // namespace
}  // namespace ein::test
