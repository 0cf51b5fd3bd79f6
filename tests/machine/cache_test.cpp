// What copies and products take the caches to be, from what a system tells of them.
#include "machine/cache.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.hpp"

namespace ein::host {
namespace {

constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;

Caches told(std::vector<system::Cache> each) { return caches_of(each); }

TEST(CacheTest, AreWhatTheSystemTells) {
  EXPECT_EQ(told({{1, 32 * kib, 8}, {2, 1 * mib, 8}, {3, 32 * mib, 16}}),
            (Caches{.l1 = 32 * kib, .l2 = 1 * mib, .l3 = 32 * mib, .l1_way = 4 * kib}));
  EXPECT_EQ(told({{1, 48 * kib, 12}, {2, 2 * mib, 16}, {3, 8 * mib, 16}}),
            (Caches{.l1 = 48 * kib, .l2 = 2 * mib, .l3 = 8 * mib, .l1_way = 4 * kib}));
}

TEST(CacheTest, TheLastLevelIsOfOneDie) {
  EXPECT_EQ(told({{1, 32 * kib, 8}, {2, 1 * mib, 8}, {3, 384 * mib, 16}}).l3, 32 * mib);
}

TEST(CacheTest, WithoutAThirdLevelTheSecondIsTheLast) {
  const Caches caches = told({{1, 64 * kib, 4}, {2, 4 * mib, 16}});
  EXPECT_EQ(caches.l1_way, 16 * kib);
  EXPECT_EQ(caches.l3, 4 * mib);
}

TEST(CacheTest, WhatIsNotToldIsAsInCommonProcessors) {
  const Caches none = told({});
  EXPECT_EQ(none.l1, 32 * kib);
  EXPECT_EQ(none.l1_way, 4 * kib);
  const Caches no_ways = told({{1, 48 * kib, 0}});
  EXPECT_EQ(no_ways.l1, 48 * kib);
  EXPECT_EQ(no_ways.l1_way, 4 * kib);
  EXPECT_EQ(no_ways.l2, none.l2);
  EXPECT_EQ(no_ways.l3, none.l3);
}

TEST(CacheTest, EachLevelHoldsTheOneBefore) {
  for (const Caches& caches : {caches(), told({}), told({{1, 512 * kib, 8}}), told({{1, 64, 64}}),
                               told({{2, 8 * kib, 1}, {3, 4 * kib, 1}})}) {
    EXPECT_GE(caches.l1_way, line_bytes);
    EXPECT_GE(caches.l1, caches.l1_way);
    EXPECT_GE(caches.l2, caches.l1);
    EXPECT_GE(caches.l3, caches.l2);
  }
}

TEST(CacheTest, SizesCanBeNamed) {
  EXPECT_EQ(caches_of(caches_named("48K,512K,16M")),
            (Caches{.l1 = 48 * kib, .l2 = 512 * kib, .l3 = 16 * mib, .l1_way = 4 * kib}));
  for (const char* text : {",", "48K", "48K,512K", "48,512,16", "48K,512K,16M,", "48K,512K,16G",
                           "48K;512K;16M", "0K,512K,16M", "-48K,512K,16M", "48K,512K,9999999999M",
                           "99999999999999999999K,512K,16M", " 48K,512K,16M"})
    test::expect_error([&] { caches_named(text); }, ErrorKind::value,
                       {"'" + std::string(text) + "'", "EIN_CACHES", "32K,512K,16M"});
}

}  // namespace
}  // namespace ein::host
