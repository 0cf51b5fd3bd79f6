// What the system tells of the machine.
#include "tensor/system.hpp"

#include <gtest/gtest.h>

namespace ein::system {
namespace {

TEST(SystemTest, TellsWhatAMachineMayHave) {
  EXPECT_FALSE(processor_model().empty());
  EXPECT_GE(available_processors(), 1);
  EXPECT_GE(cores(), 0);
  EXPECT_GT(physical_memory(), 0x1p24);
  int level = 0;
  for (const Cache& cache : data_caches()) {
    EXPECT_GT(cache.level, level);
    level = cache.level;
    EXPECT_GE(cache.bytes, 1 << 10);
    EXPECT_EQ(cache_bytes(cache.level), cache.bytes);
    EXPECT_GE(cache.ways, 0);
    EXPECT_LE(cache.ways, cache.bytes);
  }
  EXPECT_EQ(cache_bytes(level + 1), 0);
}

TEST(SystemTest, LargePagesAreNoMoreThanAWish) {
  alignas(64) std::byte block[64] = {};
  prefer_large_pages(block, sizeof block);
  EXPECT_EQ(block[63], std::byte{0});
}

}  // namespace
}  // namespace ein::system
