// The memory of a GPU that is kept to be used again, on a driver that is none:
// tests/support/fake_cuda.cpp.
#include "cuda/memory_pool.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ein/error.hpp>

namespace ein::gpu {
namespace {

int blocks_of_the_driver() {
  void* const library = ::dlopen(EIN_FAKE_CUDA, RTLD_NOW);
  return reinterpret_cast<int (*)()>(::dlsym(library, "fake_cuda_held"))();
}

class MemoryPoolTest : public testing::Test {
 protected:
  Driver driver_{{EIN_FAKE_CUDA}};
  Stream stream_{driver_, 1};
  MemoryPool pool_{driver_, 1, stream_};
};

TEST_F(MemoryPoolTest, GivesTheSameBlockAgain) {
  auto block = pool_.take(1000);
  const std::uint64_t address = block->address();
  EXPECT_GE(block->bytes(), 1000u);
  EXPECT_EQ(address % 256, 0u);
  pool_.give_back(std::move(block), 1000);
  auto smaller = pool_.take(990);  // of the same class
  EXPECT_EQ(smaller->address(), address);
  auto other = pool_.take(990);
  EXPECT_NE(other->address(), address);
  pool_.give_back(std::move(smaller), 990);
  pool_.give_back(std::move(other), 990);
}

TEST_F(MemoryPoolTest, CountsToTheByte) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int held = blocks_of_the_driver();
  std::vector<std::pair<MemoryPool::Block, std::size_t>> taken;
  std::size_t live = 0, most = 0, in_blocks = 0;
  for (int i = 0; i < 2000; ++i) {
    if (taken.empty() || random() % 5 < 3) {
      const std::size_t bytes = random() % (std::size_t{1} << random() % 16);
      taken.emplace_back(pool_.take(bytes), bytes);
      live += bytes;
      most = std::max(most, live);
      EXPECT_GE(taken.back().first->bytes(), bytes);
      // Rounded up by at most a quarter, beyond the smallest block.
      EXPECT_LE(taken.back().first->bytes(), std::max<std::size_t>(512, bytes * 5 / 4 + 64));
    } else {
      std::swap(taken[random() % taken.size()], taken.back());
      live -= taken.back().second;
      pool_.give_back(std::move(taken.back().first), taken.back().second);
      taken.pop_back();
    }
    EXPECT_EQ(pool_.count().live(), live);
    EXPECT_EQ(pool_.count().most(), most);
    EXPECT_GE(pool_.reserved(), live);
  }
  pool_.release();
  for (const auto& [block, bytes] : taken) in_blocks += block->bytes();
  EXPECT_EQ(pool_.reserved(), in_blocks);
  EXPECT_EQ(blocks_of_the_driver() - held, static_cast<int>(taken.size()));
  for (auto& [block, bytes] : taken) pool_.give_back(std::move(block), bytes);
  pool_.release();
  EXPECT_EQ(pool_.count().live(), 0u);
  EXPECT_EQ(pool_.reserved(), 0u);
  EXPECT_EQ(blocks_of_the_driver(), held);
}

TEST_F(MemoryPoolTest, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (std::size_t i = 1; i < 300; ++i) {
        const std::size_t bytes = i * (t + 1) * 100;
        auto block = pool_.take(bytes);
        // Two that had one block would see each other's bytes.
        auto* const memory = reinterpret_cast<unsigned char*>(block->address());
        std::memset(memory, static_cast<int>(t), bytes);
        EXPECT_EQ(memory[bytes / 2], t);
        pool_.give_back(std::move(block), bytes);
        if (i % 50 == 0) pool_.release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool_.count().live(), 0u);
  EXPECT_LE(pool_.count().most(), std::size_t{299 * 10 * 100});
}

TEST_F(MemoryPoolTest, ErrorsWhenThereIsNoMore) {
  auto block = pool_.take(1 << 20);
  pool_.give_back(std::move(block), 1 << 20);
  ::setenv("FAKE_CUDA", "cuMemAlloc_v2=2", 1);
  const auto again = pool_.take((1 << 20) - 5);  // what is there needs no driver
  EXPECT_EQ(pool_.reserved(), std::size_t{1} << 20);
  try {
    pool_.take(5 << 20);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    for (const char* part :
         {"cuda:1: cuMemAlloc of 5242880 bytes, of 85899345920 bytes 12345 are free",
          "1048571 bytes are in use by tensors of this process"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  EXPECT_EQ(pool_.count().live(), (std::size_t{1} << 20) - 5);
  ::unsetenv("FAKE_CUDA");
}

}  // namespace
}  // namespace ein::gpu
