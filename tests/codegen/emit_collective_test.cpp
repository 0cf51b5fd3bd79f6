// Collectives of a program between its kernels, and the copies that make values lie without gaps.
#include <gtest/gtest.h>

#include <stdexcept>

#include "codegen/units.hpp"

namespace ein {
namespace {

using codegen::CollectiveSource;
using codegen::workspace_buffer;

/// Of 2 processes and 3 × 5 numbers, with these strides.
LoopNest nest_of(Collective collective, std::vector<Size> from, std::vector<Size> to) {
  LoopNest nest;
  nest.along = LoopNest::Along::processes;
  nest.collective = collective;
  nest.mesh_axes = 2;
  if (collective != Collective::all_reduce) nest.axes.push_back({"p", 2});
  nest.axes.push_back({"i", 3});
  nest.axes.push_back({"j", 5});
  nest.inputs = {{.buffer = 0, .offset = 8, .strides = std::move(from)}};
  nest.output = {.buffer = 1, .offset = 4, .strides = std::move(to)};
  nest.body = Ex::input(0);
  if (combines(collective)) nest.combine = Combine::max;
  return nest;
}

CollectiveSource emitted(const LoopNest& nest) { return codegen::emit_collective(nest, {}, "_n"); }

TEST(EmitCollective, ValuesWithoutGapsAreTakenAsTheyLie) {
  const CollectiveSource source = emitted(nest_of(Collective::all_reduce, {5, 1}, {5, 1}));
  EXPECT_EQ(source.mesh_axes, 2u);
  EXPECT_EQ(source.combine, Combine::max);
  EXPECT_EQ(source.count, 15);
  EXPECT_EQ(source.from.buffer, 0);
  EXPECT_EQ(source.from.offset, 32);
  EXPECT_EQ(source.to.buffer, 1);
  EXPECT_EQ(source.to.offset, 16);
  EXPECT_TRUE(source.before.empty() && source.after.empty());
  // The one side has no dimension of processes.
  const CollectiveSource gather = emitted(nest_of(Collective::all_gather, {0, 5, 1}, {15, 5, 1}));
  EXPECT_EQ(gather.count, 15);
  EXPECT_TRUE(gather.before.empty() && gather.after.empty());
  const CollectiveSource scatter =
      emitted(nest_of(Collective::reduce_scatter, {15, 5, 1}, {0, 5, 1}));
  EXPECT_EQ(scatter.count, 15);
  EXPECT_TRUE(scatter.before.empty() && scatter.after.empty());
  EXPECT_EQ(emitted(nest_of(Collective::all_to_all, {15, 5, 1}, {15, 5, 1})).count, 15);
}

TEST(EmitCollective, OthersAreCopied) {
  const CollectiveSource source = emitted(nest_of(Collective::all_reduce, {1, 3}, {10, 2}));
  ASSERT_EQ(source.before.size(), 1u);
  ASSERT_EQ(source.after.size(), 1u);
  // Both have a place of their own in the workspace.
  EXPECT_EQ(source.from.buffer, workspace_buffer);
  EXPECT_EQ(source.from.offset, 0);
  EXPECT_EQ(source.to.buffer, workspace_buffer);
  EXPECT_EQ(source.to.offset, 256);
  EXPECT_EQ(source.before[0].workspace_bytes, 512);
  EXPECT_EQ(source.after[0].workspace_bytes, 512);
  // Rows of 5 in memory that is walked by columns.
  EXPECT_EQ(emitted(nest_of(Collective::all_gather, {0, 1, 3}, {15, 5, 1})).before.size(), 1u);
  EXPECT_EQ(emitted(nest_of(Collective::all_gather, {0, 5, 1}, {5, 10, 1})).after.size(), 1u);
}

TEST(EmitCollective, StandsBetweenKernels) {
  LoopNest nest = nest_of(Collective::all_reduce, {1, 3}, {10, 2});
  EXPECT_THROW(codegen::emit(nest), std::logic_error);
  Program program;
  program.buffers = {{.elements = 64}, {.elements = 64}};
  program.input_count = 1;
  LoopNest copy = nest;
  copy.along = LoopNest::Along::nothing;
  copy.combine.reset();
  program.nests = {copy, nest, copy};
  program.groups = {{.first = 0}, {.first = 1}, {.first = 2}};
  const codegen::Units units = codegen::emit_units(program);
  EXPECT_EQ(units.launches.size(), 4u);
  ASSERT_EQ(units.collectives.size(), 1u);
  EXPECT_EQ(units.collectives[0].first, 2u);  // after a kernel and the copy to the workspace
}

}  // namespace
}  // namespace ein
