// How two types of operands meet by the names of their axes.
#include <ein/grammar/align.hpp>

#include <gtest/gtest.h>

#include <string>

namespace ein::grammar {
namespace {

using enum Alignment::Wrong;

struct Case {
  const char *a, *b, *axes, *read_a = "", *read_b = "";
};

TEST(Align, Types) {
  for (const Case& c : {
           Case{"b s c", "b s c", "b s c"},
           Case{"b s c", "c", "b s c"},
           Case{"c", "b s c", "b s c"},
           Case{"b s c", "s", "b s c", "", "d0 -> d0 1"},
           Case{"s", "b s c", "b s c", "d0 -> d0 1"},
           Case{"b s c", "c b", "b s c", "", "d0 d1 -> d1 1 d0"},
           Case{"b s", "s b", "b s", "", "d0 d1 -> d1 d0"},
           Case{"b", "", "b"},
           Case{"h=64", "h", "h=64"},
           Case{"h", "h=64", "h=64"},
           Case{"b s 1", "b s c", "b s c"},
           Case{"b 1 c", "1 s c=4", "b s c=4"},
           Case{"n n", "1 1", "n n"},
           Case{"heads*d", "heads*d", "heads*d"},
           Case{"b heads*d", "heads*d", "b heads*d"},
           Case{"b s 64", "b s hidden=64", "b s hidden=64"},
           Case{"64", "64", "64"},
           Case{"_ c", "_ c", "_ c"},
           Case{"_ c", "c", "_ c"},
           Case{"c", "_ c", "_ c"},
           Case{"b", "1 b c", "1 b c", "d0 -> d0 1"},
           Case{"c", "... 4 c", "... 4 c"},
           Case{"... c", "c", "... c"},
           Case{"... c", "... c", "... c"},
           Case{"... h d", "h", "... h d", "", "d0 -> d0 1"},
           Case{"b ... c", "c b", "b ... c", "", "d0 d1 -> d1 # d0"},
           Case{"*batch c", "*batch c", "*batch c"},
           Case{"*batch h d", "*batch d", "*batch h d", "", "... d1 -> ... 1 d1"},
           Case{"b@data s", "b@data s", "b@data s"},
           Case{"b@data s=4", "s", "b@data s=4"},
       }) {
    SCOPED_TRACE(std::string(c.a) + " | " + c.b);
    const Alignment found = align(c.a, c.b);
    EXPECT_EQ(found.wrong, nothing);
    EXPECT_EQ(found.axes.view(), c.axes);
    EXPECT_EQ(found.read_a.view(), c.read_a);
    EXPECT_EQ(found.read_b.view(), c.read_b);
  }
}

TEST(Align, Mistakes) {
  struct Wrong {
    const char *a, *b;
    Alignment::Wrong why;
  };
  for (const Wrong& c : {
           Wrong{"b s", "s c", neither_has_all_axes},
           Wrong{"heads*d", "hidden", neither_has_all_axes},
           Wrong{"h", "4", axis_needs_a_name},
           Wrong{"... c", "... d", axis_needs_a_name},
           Wrong{"h=64", "h=32", axis_has_two_sizes},
           Wrong{"b h=64", "h=32", axis_has_two_sizes},
           Wrong{"64", "32", axis_has_two_sizes},
           Wrong{"b@data s", "b s", axis_is_placed_differently},
           Wrong{"b@data s", "b@model", axis_is_placed_differently},
           Wrong{"_ b c", "_ c b", axis_needs_a_name},
           Wrong{"b c", "_", axis_needs_a_name},
           Wrong{"b s c", "1 c", axis_needs_a_name},
           Wrong{"b b", "b", axis_is_repeated},
           Wrong{"b 1", "1 b", axis_is_repeated},
           Wrong{"1 b=2 c", "b 1 c", axis_is_repeated},
       }) {
    SCOPED_TRACE(std::string(c.a) + " | " + c.b);
    EXPECT_EQ(align(c.a, c.b).wrong, c.why);
  }
}

TEST(Align, DimensionsThatMeet) {
  const Alignment right = align("b ... c", "c b");
  ASSERT_EQ(right.meeting.size(), 2u);
  EXPECT_EQ(right.meeting[0].of_a, 0);
  EXPECT_EQ(right.meeting[0].of_b, 1);
  EXPECT_EQ(right.meeting[1].of_a, -1);  // behind `...`, from the right
  EXPECT_EQ(right.meeting[1].of_b, 0);
  EXPECT_TRUE(align("*batch c", "*batch c").has_open_pair);
  EXPECT_TRUE(align("b 1", "b c").meeting.size() == 1);  // 1 stretches
}

static_assert(align("b s c", "c b").wrong == nothing);

}  // namespace
}  // namespace ein::grammar
