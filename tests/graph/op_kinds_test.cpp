// The rows of kinds of operations.
#include "graph/op_kinds.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

namespace ein {
namespace {

/// What verify() says of an operation of this kind with so many inputs, of which else nothing is
/// there.
std::string complaint(OpKind kind, std::size_t inputs) {
  Graph graph;
  graph.ops.push_back({.kind = OpKind::input, .shape = {2}});
  graph.ops.push_back({.kind = kind, .shape = {2}, .inputs = std::vector<ValueId>(inputs, 0)});
  try {
    verify(graph);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(OpKinds, HaveAsManyInputsAsTheirRowSays) {
  const std::string wrong = "graph: operation %1: more or fewer inputs than its kind has";
  for (const OpKindInfo& kind : op_kinds) {
    if (kind.least_inputs > 0) {
      EXPECT_EQ(complaint(kind.kind, kind.least_inputs - 1), wrong);
    }
    EXPECT_NE(complaint(kind.kind, kind.least_inputs), wrong) << kind.name;
    if (kind.most_inputs == OpKindInfo::any_number) continue;
    EXPECT_NE(complaint(kind.kind, kind.most_inputs), wrong) << kind.name;
    EXPECT_EQ(complaint(kind.kind, kind.most_inputs + 1), wrong) << kind.name;
  }
}

TEST(OpKinds, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const OpKindInfo& kind : op_kinds) {
    EXPECT_TRUE(names.insert(name(kind.kind)).second) << kind.name;
    EXPECT_EQ(name(kind.kind), kind.name);
  }
}

TEST(OpKinds, PositionsAreTheLastInput) {
  const Op gather{.kind = OpKind::gather, .inputs = {0, 1}};
  const Op place{.kind = OpKind::place, .inputs = {0, 1}};
  const Op moved{.kind = OpKind::place, .inputs = {0, 1, 2}};
  const Op scatter{.kind = OpKind::scatter, .inputs = {0, 1}};
  EXPECT_TRUE(reads_at_positions(gather) && !writes_at_positions(gather));
  EXPECT_TRUE(!reads_at_positions(place) && !writes_at_positions(place));
  EXPECT_TRUE(!reads_at_positions(moved) && writes_at_positions(moved));
  EXPECT_TRUE(!reads_at_positions(scatter) && writes_at_positions(scatter));
  EXPECT_EQ(combination_of({.kind = OpKind::contract, .combine = Combine::max}), Combine::sum);
  EXPECT_EQ(combination_of({.kind = OpKind::reduce, .combine = Combine::max}), Combine::max);
}

}  // namespace
}  // namespace ein
