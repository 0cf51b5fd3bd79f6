#include "io/xxh64.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace ein::io {
namespace {

std::uint64_t hash(const std::string& bytes) {
  Xxh64 checksum;
  checksum.update(bytes.data(), bytes.size());
  return checksum.digest();
}

TEST(Xxh64Test, AsTheReferenceComputes) {
  // Python's xxhash (which wraps the reference implementation) of bytes (7 i + 3 (i // 256) + 1)
  // mod 256.
  const std::pair<std::size_t, std::uint64_t> sums[] = {
      {0, 0xef46db3751d8e999},   {1, 0x8a4127811b21e730},   {3, 0xb6e6c910c2fd373a},
      {4, 0x22eda2cf6af4c124},   {7, 0x34084d91a233a751},   {8, 0xc6f1803a5e0b3222},
      {12, 0x9178b724dce384c0},  {31, 0x6ab1c40e29f50073},  {32, 0x5a0756fbe9ecd3d1},
      {33, 0xdc50cdc37bb9c183},  {63, 0x10dd94885c71894a},  {64, 0x90083da9cdb9d795},
      {100, 0xd248bfc5208b0b16}, {1000, 0x0e17ad48a61f72d9}};
  for (const auto& [size, sum] : sums) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 7 + i / 256 * 3 + 1);
    EXPECT_EQ(hash(bytes), sum) << size;
  }
  EXPECT_EQ(hash("abc"), 0x44bc2cf5ad770999u);
}

TEST(Xxh64Test, PiecesDoNotMatter) {
  constexpr std::uint32_t seed = 8;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    Xxh64 checksum;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = std::min<std::size_t>(random() % 80, bytes.size() - at);
      checksum.update(bytes.data() + at, n);
      at += n;
    }
    EXPECT_EQ(checksum.digest(), hash(bytes));
  }
}

}  // namespace
}  // namespace ein::io
