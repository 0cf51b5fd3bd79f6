// Rows that no wide load could read are padded between kernels, and nobody notices.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>

namespace ein {
namespace {

/// The loss of a head with a vocabulary of `v`, and its gradients.
std::vector<Tensor> head(const Tensor& x, const Tensor& w, const Tensor& targets) {
  Tensor a = x.detach(), b = w.detach();
  a.requires_grad(true), b.requires_grad(true);
  const Tensor logits = einsum(a.to(DType::bf16), b.to(DType::bf16), "b t c, v c -> b t v");
  const Tensor loss = cross_entropy(logits.to(DType::f32), targets, "b t [v], b t");
  std::vector<Tensor> results = gradients(loss, std::vector<Tensor>{a, b});
  results.push_back(loss.detach());
  return results;
}

struct Head {
  Tensor x, w, targets;
  Head to(Device device) const { return {x.to(device), w.to(device), targets.to(device)}; }
};
Head random_head(std::int64_t batch, std::int64_t positions, std::int64_t vocabulary) {
  const auto end = static_cast<double>(vocabulary);
  return {randn({batch, positions, 48}), randn({vocabulary, 48}),
          (rand({batch, positions}) * end * 0.999).to(DType::i64)};
}

void expect_same(const std::vector<Tensor>& there, const std::vector<Tensor>& here) {
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_TRUE(all_close(there[i].to(cpu), here[i], 0.02, 0.002)) << i;
}

TEST(PaddedRows, OfALossAndItsGradients) {
  for (const std::int64_t vocabulary : {63, 64, 65, 101, 257, 2049}) {
    SCOPED_TRACE(vocabulary);
    const Head here = random_head(2, 33, vocabulary), there = here.to(cuda);
    auto on_cpu = compile(head), on_gpu = compile(head);
    expect_same(on_gpu(there.x, there.w, there.targets), on_cpu(here.x, here.w, here.targets));
    // bf16 rows of the gradient begin at multiples of 16 bytes, or of 128 where they are long.
    const std::int64_t padded = vocabulary < 64     ? vocabulary
                                : vocabulary < 2048 ? (vocabulary + 7) / 8 * 8
                                                    : (vocabulary + 63) / 64 * 64;
    EXPECT_NE(on_gpu.text().find(std::to_string(66 * padded) + " bf16"), std::string::npos)
        << on_gpu.text();
    EXPECT_NE(on_cpu.text().find(std::to_string(66 * vocabulary) + " bf16"), std::string::npos);
  }
}

TEST(PaddedRows, AreInThePlannedMemory) {
  const Head there = random_head(2, 33, 101).to(cuda);
  auto step = compile(head);
  const std::size_t before = memory_allocated(cuda);
  const std::vector<Tensor> results = step(there.x, there.w, there.targets);
  const MemoryPlan plan = step.memory();
  EXPECT_EQ(memory_allocated(cuda) - before, plan.results + plan.arena + plan.workspace);
}

TEST(PaddedRows, ForAnyLength) {
  auto there = compile(head, {"b t c=48", "v=101 c", "b t"});
  for (const std::int64_t positions : {16, 24, 33, 40}) {
    SCOPED_TRACE(positions);
    const Head here = random_head(2, positions, 101), moved = here.to(cuda);
    expect_same(there(moved.x, moved.w, moved.targets), head(here.x, here.w, here.targets));
  }
  EXPECT_NE(there.text().find("104"), std::string::npos) << there.text();
}

// Some nests go over rows and their elements as one axis, some begin within a row.
TEST(PaddedRows, OfNestsThatGoOverTheirEnds) {
  const auto f = [](const Tensor& x, const Tensor& y) {
    const Tensor h = einsum(x, y, "b i, i j -> b j");  // rows of 101
    const Tensor wide = relu(h) * 0.5;
    const Tensor shifted = h.at({every, slice(1, 101)}) + h.at({every, slice(0, 100)});
    const Tensor turned = rearrange(h, "b j -> j b");
    return std::vector<Tensor>{
        einsum(wide, h, "b j, c j -> b c"), einsum(shifted, shifted, "b j, b k -> j k"),
        reduce(turned * 2, "j b -> b", "max"), reduce(wide, "b j -> ", "sum")};
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const Tensor x = (randn({40, 24}) * 0.3).to(dtype), y = (randn({24, 101}) * 0.3).to(dtype);
    const double tolerance = dtype == DType::bf16 ? 0.1 : 1e-4;
    auto on_cpu = compile(f), on_gpu = compile(f);
    const std::vector<Tensor> here = on_cpu(x, y), there = on_gpu(x.to(cuda), y.to(cuda));
    for (std::size_t i = 0; i < here.size(); ++i)
      EXPECT_TRUE(all_close(there[i].to(cpu), here[i], tolerance, tolerance)) << i;
  }
}

}  // namespace
}  // namespace ein
