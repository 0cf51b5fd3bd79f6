// What the system tells of the machine.
#include "machine/system.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "io/file.hpp"

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

TEST(SystemTest, RunsOnTheProcessorsThatItIsGiven) {
  const std::vector<int> all = processors();
  if (all.empty()) {  // a system that does not tell binds nobody either
    run_on({0});
    EXPECT_TRUE(processors().empty());
    return;
  }
  EXPECT_EQ(static_cast<int>(all.size()), available_processors());
  run_on({all.back()});
  EXPECT_EQ(processors(), std::vector<int>{all.back()});
  EXPECT_EQ(available_processors(), 1);
  run_on(all);
  EXPECT_EQ(processors(), all);
}

/// A page that this process shares with its children.
struct SharedPage {
  explicit SharedPage(int descriptor)
      : address(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)) {
    ::close(descriptor);
  }
  ~SharedPage() { ::munmap(address, 4096); }
  void* address;
};

TEST(SystemTest, ProcessesShareMemoryAndWakeEachOther) {
  const int descriptor = create_shared_memory(1 << 20);
  ASSERT_GE(descriptor, 0);
  EXPECT_TRUE(reserve_shared_memory(descriptor, 0, 4096));
  const SharedPage page(descriptor);
  ASSERT_NE(page.address, MAP_FAILED);
  auto* const words = static_cast<std::atomic<std::uint32_t>*>(page.address);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // answers each number with the same
    for (std::uint32_t i = 0; i < 100; ++i) {
      while (words[0] == i) sleep_while(words[0], i, 1000);
      words[1] = i + 1;
      wake_sleepers(words[1]);
    }
    ::_exit(0);
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    words[0] = i + 1;
    wake_sleepers(words[0]);
    while (words[1] == i) sleep_while(words[1], i, 1000);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// The exit code of a child whose standard streams are closed, which runs f.
template <class F>
int without_streams(const F& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int stream : {0, 1, 2}) ::close(stream);
    ::_exit(f());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SystemTest, NoDescriptorIsAStandardStream) {
  const auto is_inherited = [](int descriptor) {
    return (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0;
  };
  EXPECT_EQ(beside_streams(-1), -1);
  EXPECT_EQ(without_streams([&] {
              const int memory = create_shared_memory(4096);
              const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
              const int beside = beside_streams(file);
              const io::Descriptor owned(::open("/dev/null", O_RDONLY | O_CLOEXEC));
              const bool are_closed = ::fcntl(0, F_GETFD) < 0 && ::fcntl(1, F_GETFD) < 0;
              return memory > 2 && is_inherited(memory) && file == 0 && beside > 2 &&
                             !is_inherited(beside) && owned.get() > 2 && are_closed
                         ? 0
                         : 1;
            }),
            0);
}

TEST(SystemTest, SleepsNoLongerThanAllowed) {
  const std::atomic<std::uint32_t> word{7};
  const auto begin = std::chrono::steady_clock::now();
  sleep_while(word, 8, 60000);  // which it is not
  sleep_while(word, 7, 20);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace ein::system
