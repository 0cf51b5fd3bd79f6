// Who holds memory from when to when, beside memory() and bill() of the same programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>
#include "support/expect_error.hpp"
#include "support/xml.hpp"

namespace ein {
namespace {

using Value = MemoryTimeline::Value;

/// A step of a few layers of attention, with or without a checkpoint around each.
MemoryTimeline timeline_of(bool checkpointed, std::int64_t sequence, StepBill& bill,
                           MemoryPlan& plan) {
  const Tensor w = (randn({16, 16}) * 0.1).detach().requires_grad(true);
  optim::Adam optimizer({w}, {});
  auto step = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const auto layer = [&](const Tensor& a) {
      const Tensor h = tanh(einsum(a, w, "b s d, d e -> b s e"));
      const Tensor scores = einsum(h, h, "b q d, b k d -> b q k");
      return einsum(softmax(scores * 0.25 + tanh(scores), "b q [k]"), h, "b q k, b k d -> b q d");
    };
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = checkpointed ? checkpoint(layer, y) : layer(y);
    const Tensor loss = reduce(y * y, "b s d ->", Reduction::mean);
    loss.backward();
    optimizer.step();
    return loss;
  });
  step.prepare(ones({2, sequence, 16}));
  bill = step.bill();
  plan = step.memory();
  return step.timeline();
}

void expect_sound(const MemoryTimeline& timeline, const StepBill& bill, const MemoryPlan& plan) {
  EXPECT_EQ(timeline.arena, plan.arena);
  EXPECT_EQ(timeline.others, plan.arguments + plan.state + plan.results);
  // Values that are alive together lie apart, inside the block, which ends with one of them.
  std::size_t end = 0;
  for (const Value& value : timeline.values) end = std::max(end, value.offset + value.what.bytes);
  EXPECT_GT(end + 256, timeline.arena);
  std::size_t kept = 0;
  for (const Value& a : timeline.values) {
    EXPECT_LE(a.offset + a.what.bytes, timeline.arena);
    EXPECT_LE(a.first, a.last);
    EXPECT_LT(a.last, timeline.phases.size());
    std::int64_t elements = 1;
    for (const Size size : a.what.shape) elements *= std::int64_t{size};
    EXPECT_EQ(a.what.bytes, static_cast<std::size_t>(elements) * size_of(a.what.dtype));
    if (a.role == MemoryTimeline::Role::activation) kept += a.what.bytes;
    for (const Value& b : timeline.values) {
      if (&a == &b || a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.offset + a.what.bytes <= b.offset || b.offset + b.what.bytes <= a.offset);
    }
  }
  EXPECT_EQ(kept, bill.activations);
  EXPECT_TRUE(
      std::is_sorted(timeline.values.begin(), timeline.values.end(),
                     [](const Value& a, const Value& b) { return a.what.bytes > b.what.bytes; }));
  for (std::size_t step = 0; step < timeline.phases.size(); ++step) {
    EXPECT_LE(timeline.alive_at(step), timeline.alive_at(timeline.fullest_step()));
    EXPECT_LE(timeline.alive_at(step), timeline.arena);
  }
}

TEST(MemoryTimeline, AgreesWithTheBillAndTheMemoryPlan) {
  for (const bool checkpointed : {false, true}) {
    StepBill bill;
    MemoryPlan plan;
    const MemoryTimeline timeline = timeline_of(checkpointed, 24, bill, plan);
    expect_sound(timeline, bill, plan);
    std::size_t kept = 0;
    for (const KeptValue& value : bill.kept) kept += value.bytes;
    EXPECT_EQ(kept, bill.activations);
  }
}

TEST(MemoryTimeline, ScoresWaitUnlessTheyAreComputedAgain) {
  const auto scores = [](const StepBill& bill) {
    return std::count_if(bill.kept.begin(), bill.kept.end(), [](const KeptValue& value) {
      return value.shape == Shape{2, 24, 24} && value.bytes == 2u * 24 * 24 * 4;
    });
  };
  StepBill bill, less;
  MemoryPlan plan, less_plan;
  const MemoryTimeline whole = timeline_of(false, 24, bill, plan);
  const MemoryTimeline again = timeline_of(true, 24, less, less_plan);
  EXPECT_GE(scores(bill), 3);
  for (const KeptValue& value : bill.kept) {
    // A softmax runs over rows b q as one axis; they are told apart.
    const bool is_exp = value.operation.starts_with("map exp");
    EXPECT_TRUE(!is_exp || value.axes == "b q k") << value.axes;
  }
  EXPECT_EQ(bill.kept.front().shape, (Shape{2, 24, 24}));
  EXPECT_LT(scores(less), scores(bill));
  EXPECT_LT(again.alive_at(again.fullest_step()), whole.alive_at(whole.fullest_step()));
  EXPECT_EQ(std::count(whole.phases.begin(), whole.phases.end(), Phase::recompute), 0);
  EXPECT_GT(std::count(again.phases.begin(), again.phases.end(), Phase::recompute), 0);
}

TEST(MemoryTimeline, IsDrawn) {
  StepBill bill;
  MemoryPlan plan;
  const MemoryTimeline timeline = timeline_of(false, 24, bill, plan);
  const std::string svg = timeline.svg();
  EXPECT_EQ(test::XmlCheck(svg).mistake(), "");
  EXPECT_EQ(test::count(svg, "<g><title>"), timeline.values.size());
  for (const char* label : {">forward<", ">backward<", " are alive:<", "for the backward pass<"})
    EXPECT_EQ(test::count(svg, label), 1u) << label;
  EXPECT_EQ(svg, timeline.svg());
}

// Names that a graph may have, and more values than a picture shows.
TEST(MemoryTimeline, APictureIsBoundedAndEscaped) {
  MemoryTimeline timeline;
  timeline.phases.assign(5000, Phase::forward);
  timeline.arena = 5000 * 64;
  for (std::size_t v = 0; v < 5000; ++v)
    timeline.values.push_back({{"map <\"x\">&\x01", "<a>", {16}, DType::f32, 64},
                               MemoryTimeline::Role::passing,
                               v * 64,
                               v,
                               4999});
  const std::string svg = timeline.svg();
  EXPECT_EQ(test::XmlCheck(svg).mistake(), "");
  EXPECT_EQ(test::count(svg, "<g><title>"), 400u);
  EXPECT_LT(svg.size(), 250'000u);
  EXPECT_EQ(test::XmlCheck(MemoryTimeline().svg()).mistake(), "");
}

TEST(MemoryTimeline, ThereIsNoneBeforeTheFirstCall) {
  auto f = compile([](const Tensor& x) { return x + 1; });
  test::expect_error([&] { f.timeline(); }, ErrorKind::value, {"has not been called yet"});
}

}  // namespace
}  // namespace ein
