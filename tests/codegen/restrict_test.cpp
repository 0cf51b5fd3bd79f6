// `__restrict__`, from which the compiler concludes that it may load past the cache that writes go
// to (ld.global.nc): only on pointers to memory that the kernel does not write through another.
#include <gtest/gtest.h>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>
#include "api/compile.hpp"
#include "codegen/writer.hpp"
#include "nest/nest.hpp"

namespace ein::codegen {
namespace {

/// y[i] = a[i] + b[i] over these buffers.
Program sum_of(int a, int b, int y, const std::vector<int>& memory) {
  Program program;
  program.buffers.resize(3, {64, DType::f32});
  for (std::size_t i = 0; i < memory.size(); ++i) program.buffers[i].memory = memory[i];
  program.input_count = 3;
  LoopNest nest;
  nest.axes = {{"i", 64, false}};
  for (int buffer : {a, b}) nest.inputs.push_back({buffer, DType::f32, 0, {1}});
  nest.output = {y, DType::f32, 0, {1}};
  nest.body = Ex::input(0) + Ex::input(1);
  nest.compute = DType::f32;
  program.nests = {nest};
  program.groups = {{.first = 0, .count = 1}};
  return program;
}

std::size_t restricted_in(const Program& program) {
  std::size_t count = 0;
  std::vector<int> memory = memory_of(program);
  for (const KernelSource& kernel : emit(program, program.groups[0])) {
    std::size_t words = 0;
    for (std::size_t at = kernel.kernel_begin;
         (at = kernel.text.find("__restrict__", at)) != kernel.text.npos; ++at)
      ++words;
    for (std::size_t p = 0; p < kernel.pointers.size(); ++p) {
      if (!kernel.pointers[p].is_restricted) continue;
      ++count;
      EXPECT_TRUE(is_apart(kernel, p, memory)) << kernel.text.substr(kernel.kernel_begin);
    }
    EXPECT_EQ(words, count);
  }
  return count;
}

TEST(Restrict, BuffersOfTheirOwn) { EXPECT_EQ(restricted_in(sum_of(0, 1, 2, {})), 3u); }
TEST(Restrict, ABufferThatIsReadTwice) { EXPECT_EQ(restricted_in(sum_of(0, 0, 2, {})), 3u); }
TEST(Restrict, ABufferThatIsReadAndWritten) { EXPECT_EQ(restricted_in(sum_of(0, 1, 1, {})), 1u); }
TEST(Restrict, BuffersOfOneMemoryThatAreRead) {
  EXPECT_EQ(restricted_in(sum_of(0, 1, 2, {0, 0, 2})), 3u);
}
TEST(Restrict, BuffersOfOneMemoryOfWhichOneIsWritten) {
  EXPECT_EQ(restricted_in(sum_of(0, 1, 2, {0, 1, 1})), 0u);
}

TEST(Restrict, AWholeTrainingStep) {
  const Tensor w = randn({64, 64}).requires_grad(true), b = randn({64}).requires_grad(true),
               x = randn({32, 64});
  optim::AdamW optimizer({w, b});
  const Program program = engine::lowered(
      [&](std::span<const Tensor> given) {
        optimizer.zero_grad();
        const Tensor loss =
            reduce(softmax(matmul(given[0], w) + b, "b [s]") * given[0], "b s ->", "sum");
        loss.backward();
        optimizer.step();
        return std::vector<Tensor>{loss};
      },
      std::vector<Tensor>{x}, cuda);
  const std::vector<int> memory = memory_of(program);
  std::size_t kernels = 0, restricted = 0;
  for (const Program::Group& group : program.groups) {
    for (const KernelSource& kernel : emit(program, group)) {
      ++kernels;
      ASSERT_EQ(kernel.pointers.size(), kernel.buffers.size());
      for (std::size_t p = 0; p < kernel.pointers.size(); ++p) {
        restricted += kernel.pointers[p].is_restricted;
        EXPECT_TRUE(!kernel.pointers[p].is_restricted || is_apart(kernel, p, memory))
            << kernel.text.substr(kernel.kernel_begin);
      }
    }
  }
  EXPECT_GT(kernels, 3u);
  EXPECT_GT(restricted, 5u);
}

}  // namespace
}  // namespace ein::codegen
