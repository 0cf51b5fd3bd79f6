// Types that say where axes lie across processes: how they are read, what they refuse, and the
// types of results.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/call.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include "ein/grammar/infer_type.hpp"
#include "ein/grammar/match.hpp"

namespace {

using namespace ein::literals;
using ein::Float;
using ein::ones;
using ein::SourceSpan;
using ein::Tensor;
using ein::grammar::Complaint;
using ein::grammar::Mistake;
using ein::grammar::Moves;
using ein::grammar::read_shape_spec;
using ein::grammar::SpecDim;
using ein::grammar::SpecReading;

// Each dimension's mesh axes, those of one apart by '/'.
std::vector<std::string> mesh_axes(std::string_view text) {
  const SpecReading reading = read_shape_spec(text);
  EXPECT_FALSE(reading.mistake) << text;
  std::vector<std::string> all;
  for (const SpecDim& dim : reading.dims) {
    std::string axes;
    reading.for_each_mesh_axis(dim, [&](SourceSpan axis) {
      axes += (axes.empty() ? "" : "/") + std::string(reading.text_of(axis));
    });
    all.push_back(axes);
  }
  return all;
}

TEST(PlacedTypes, AreRead) {
  using Axes = std::vector<std::string>;
  EXPECT_EQ(mesh_axes("batch@data seq hidden"), (Axes{"data", "", ""}));
  EXPECT_EQ(mesh_axes("h@model=64 b@data@pod"), (Axes{"model", "data/pod"}));
  EXPECT_EQ(mesh_axes("4 n+1 _ ... b@x"), (Axes{"", "", "", "", "x"}));
  const SpecReading reading = read_shape_spec("a h@model@pod=64");
  const SpecDim& dim = reading.dims[1];
  EXPECT_TRUE(reading.is_name(dim));
  EXPECT_EQ(dim.fixed, 64);
  EXPECT_EQ(reading.text_of(dim.span), "h@model@pod=64");
  EXPECT_EQ(reading.text_of(dim.placed), "@model@pod");
  EXPECT_TRUE(reading.dims[0].says_place());
  EXPECT_FALSE(read_shape_spec("_").dims[0].says_place());
}

TEST(PlacedTypes, RefusesWithThePlace) {
  using enum Complaint;
  const struct {
    std::string_view text;
    Complaint complaint;
    SourceSpan span, other{};
  } table[] = {
      {"b@", mesh_axis_is_missing, {1, 2}},
      {"b@ data", mesh_axis_is_missing, {1, 2}},
      {"b@4", mesh_axis_is_missing, {1, 2}},
      {"b@=4", mesh_axis_is_missing, {1, 2}},
      {"a b @data", placed_axis_is_missing, {4, 9}},
      {"a _@data", only_a_named_axis_is_placed, {2, 8}},
      {"...@data", only_a_named_axis_is_placed, {0, 8}},
      {"4@data", only_a_named_axis_is_placed, {0, 6}},
      {"*a@data", only_a_named_axis_is_placed, {0, 7}},
      {"h=4@data", only_a_named_axis_is_placed, {2, 8}},
      {"n n+1@data", only_a_named_axis_is_placed, {2, 10}},
      {"(n+1)@data=3", only_a_named_axis_is_placed, {0, 12}},
      {"h*d@data", only_a_named_axis_is_placed, {0, 8}},
      {"b@x s@x", mesh_axis_is_repeated, {6, 7}, {2, 3}},
      {"b@x@y@x", mesh_axis_is_repeated, {6, 7}, {2, 3}},
  };
  for (const auto& row : table) {
    const Mistake mistake = read_shape_spec(row.text).mistake;
    EXPECT_EQ(mistake.complaint, row.complaint) << row.text;
    EXPECT_EQ(mistake.span, row.span)
        << row.text << " at " << mistake.span.begin << ", " << mistake.span.end;
    EXPECT_EQ(mistake.other, row.other) << row.text;
  }
}

// --- the types of results ---

struct Inferred {
  std::string axes;
  Complaint complaint = Complaint::none;
  SourceSpan span{}, other{};
};

Inferred infer(std::string_view text, const std::vector<std::string_view>& types,
               Moves moves = Moves::no) {
  const auto reading = ein::grammar::match_pattern(text);
  EXPECT_FALSE(reading.mistake) << text;
  std::vector<SpecReading> readings;
  for (std::string_view type : types) readings.push_back(read_shape_spec(type));
  std::vector<ein::grammar::OperandSpec> operands;
  for (const SpecReading& type : readings) {
    EXPECT_FALSE(type.mistake) << type.text;
    operands.push_back({&type, 1});
  }
  const auto result = ein::grammar::infer_type(ein::Operation::einsum, reading.buffer.pattern(text),
                                               operands, {}, moves);
  return {std::string(result.axes.view()), result.mistake.complaint, result.mistake.span,
          result.mistake.other};
}

TEST(PlacedTypes, OfResults) {
  const struct {
    std::string_view pattern;
    std::vector<std::string_view> operands;
    std::string_view result;
  } table[] = {
      {"b s -> s b", {"batch@data seq"}, "seq batch@data"},
      {"b s h, h n -> b s n", {"b@data seq d=8", "d=8 h@model=6"}, "b@data seq h@model=6"},
      {"b h, h n -> b n", {"b@data k@model", "k@model n"}, "b@data n"},
      {"b ... -> ... b", {"b@data s@x@y c"}, "s@x@y c b@data"},
      {"... k, k -> ...", {"b@data s k", "k"}, "b@data s"},
      {"..., ... -> ...", {"b@data s", "s"}, "b@data s"},
      {"..., ... -> ...", {"b@data s@x=4", "1 s@x"}, "b@data s@x=4"},
      {"..., ... -> ...", {"b@data s", "b@data s"}, "b@data s"},
      {"b s -> b s 3", {"b@data _"}, "b@data s 3"},
      {"b -> b (1)", {"b@data=4"}, "b@data=4 1"},
      // Parts of a group are parts of its outermost axis.
      {"b (h d), d -> b h d", {"b hidden@model", "d=64"}, "b h@model d=64"},
      {"b h d -> b (h d)", {"b@data h@model d"}, "b@data _"},
      {"b h d -> b (h d)", {"b@data h@model=8 d=64"}, "b@data _"},
      {"b h d -> b (h d)", {"b@data h d"}, "b@data h*d"},
      {"b h -> (b h) ()", {"b h"}, "b*h 1"},
      {"b ... -> (b ...)", {"b@data s"}, "_"},
      // The pattern may say it, too, and of an axis that no type describes it alone does.
      {"b@data s -> b@data", {"batch@data seq"}, "batch@data"},
      {"b s@x -> s@x", {"b _"}, "s@x"},
      {"b s -> b@data s", {"b@data s"}, "b@data s"},
  };
  for (const auto& row : table) {
    const Inferred found = infer(row.pattern, row.operands);
    EXPECT_EQ(found.complaint, Complaint::none) << row.pattern;
    EXPECT_EQ(found.axes, row.result) << row.pattern;
    EXPECT_FALSE(read_shape_spec(found.axes).mistake) << found.axes;
  }
}

TEST(PlacedTypes, OfWhatIsMoved) {
  EXPECT_EQ(infer("b@data s c -> b s c@model", {"b@data seq c=8"}, Moves::yes).axes,
            "b seq c@model=8");
  EXPECT_EQ(infer("b ... c -> b@x ... c", {"b s@y c@x"}, Moves::yes).axes, "b@x s@y c");
  EXPECT_EQ(infer("b@data s -> b s", {"b s"}, Moves::yes).complaint,
            Complaint::axis_is_placed_differently);
  EXPECT_EQ(infer("b ... -> b@y ...", {"b s@y"}, Moves::yes).complaint,
            Complaint::mesh_axis_is_repeated);
}

TEST(PlacedTypes, ThatDoNotGoTogether) {
  using enum Complaint;
  const struct {
    std::string_view pattern;
    std::vector<std::string_view> operands;
    Complaint complaint;
    SourceSpan span, other{};
  } table[] = {
      {"b h, h n -> b n", {"b k@x", "k n"}, axis_is_placed_differently, {5, 6}, {2, 3}},
      {"b h, h n -> b n", {"b k@x", "k@x@y n"}, axis_is_placed_differently, {5, 6}, {2, 3}},
      {"i i -> i", {"n@x n"}, axis_is_placed_differently, {2, 3}, {0, 1}},
      {"b@x s -> b", {"b@y s"}, axis_is_placed_differently, {0, 1}},
      {"b@x s -> b", {"b s"}, axis_is_placed_differently, {0, 1}},
      {"b s -> b@x", {"b s"}, axis_is_placed_differently, {0, 1}, {7, 8}},
      {"b 3 -> b 3", {"b c@x=3"}, none, {}},
      {"..., ... -> ...", {"b@x", "b"}, axis_is_placed_differently, {4, 9}},
      {"..., ... -> ...", {"b@x=4", "4"}, axis_is_placed_differently, {4, 9}},
      {"..., ... -> ...", {"b@x", "4"}, axis_is_placed_differently, {4, 9}},
      {"..., ... -> ...", {"b@x", "1"}, none, {}},
      {"..., ... -> ...", {"b@x", "_"}, none, {}},
      {"(h d), d -> h", {"n@x", "d@y"}, axis_is_placed_differently, {3, 4}, {7, 8}},
      {"a, b -> a b", {"a@x", "b@x"}, mesh_axis_is_repeated, {10, 11}, {8, 9}},
      {"a, ... -> a ...", {"a@x", "c b@y@x"}, mesh_axis_is_repeated, {12, 15}, {10, 11}},
      {"a, b -> b", {"a@x", "b@x"}, none, {}},
      {"h d -> (h d)", {"h d@x"}, inner_axis_of_a_group_is_placed, {10, 11}},
      {"h d -> (h (1 d))", {"h@y d@x"}, inner_axis_of_a_group_is_placed, {13, 14}},
      {"a ... -> (a ...)", {"a b c@x"}, inner_axis_of_a_group_is_placed, {12, 15}},
      {"a ... -> a (...)", {"a b@x c"}, none, {}},
      {"a ... -> a (...)", {"a b c@x"}, inner_axis_of_a_group_is_placed, {12, 15}},
  };
  for (const auto& row : table) {
    const Inferred found = infer(row.pattern, row.operands);
    std::string shown = std::string(row.pattern) + " at " + std::to_string(found.span.begin) +
                        ", " + std::to_string(found.span.end) + "; " +
                        std::to_string(found.other.begin) + ", " + std::to_string(found.other.end);
    EXPECT_EQ(found.complaint, row.complaint) << shown;
    EXPECT_EQ(found.span, row.span) << shown;
    EXPECT_EQ(found.other, row.other) << shown;
  }
}

// --- the public face ---

const ein::Mesh& mesh() {
  static const ein::Mesh mesh({{"data", 2}, {"model", 2}}, "loop");
  return mesh;
}

TEST(PlacedTypes, OfCalls) {
  const Float<"batch@data seq hidden=8"> x = ein::place(ones({2, 3, 8}), mesh(), "b@data s h");
  const Float<"hidden=8 out@model=6"> w = ein::place(ones({8, 6}), mesh(), "h o@model");
  const auto y = ein::einsum(x, w, "b s h, h o -> b s o"_p);
  static_assert(std::is_same_v<decltype(y), const Float<"batch@data seq out@model=6">>);
  EXPECT_EQ(y.shape(), (ein::Shape{2, 3, 6}));
  const auto z = ein::rearrange<"b s h -> h b@data s">(x);
  static_assert(std::is_same_v<decltype(z), const Float<"hidden=8 batch@data seq">>);
  const Float<"out@model=6 hidden=8"> turned = ein::rearrange(w, "h o@model -> o@model h");
  EXPECT_EQ(turned.shape(), (ein::Shape{6, 8}));
}

constexpr bool lie_alike(std::string_view from, std::string_view to) {
  return ein::detail::places_agree(ein::grammar::read_shape_spec(from),
                                   ein::grammar::read_shape_spec(to));
}
static_assert(lie_alike("b@x s c=4", "a@x t 4"));
static_assert(!lie_alike("b@x s", "b s"));
static_assert(!lie_alike("b@x s", "b@x@y s"));
static_assert(!lie_alike("b@x s", "4 s"));
static_assert(lie_alike("b@x _", "_ s@y"));
static_assert(lie_alike("b@x s", "b@x ..."));
static_assert(!lie_alike("b@x s c", "b ... c"));
static_assert(!lie_alike("*many c@x", "b s c"));
static_assert(!lie_alike("b ... s c@x", "*many c@y"));
static_assert(lie_alike("b ... s@y c@x", "*many c@x"));
static_assert(lie_alike("b@x ... c@y", "c@x ... d@y"));

TEST(PlacedTypes, OfConversions) {
  const Float<"batch@data seq"> x = ein::place(ones({2, 3}), mesh(), "b@data s");
  const Float<"b@data s=3"> same = x;
  const Float<"... s"> open = x;
  const Float<"_ s"> unnamed = x;
  const Float<"b@data s"> again = unnamed;
  EXPECT_TRUE(again.same_storage(x) && same.same_storage(x) && open.same_storage(x));
}

TEST(PlacedTypes, GraphsAreNotOfAMesh) {
  for (const ein::Operation op : {ein::Operation::place, ein::Operation::reshard}) {
    EXPECT_TRUE(ein::is_of_a_mesh(op));
    EXPECT_THROW(ein::graph_of(op, ein::runtime("b@x"), {{4}}), ein::Error);
  }
}

}  // namespace
