#include "machine/fork.hpp"

#include <pthread.h>

#include <array>
#include <cstdint>

namespace ein {
namespace {

/// How many threads have a NoFork, and whether fork() waits until none has. In one word, so that
/// neither overlooks the other.
constexpr std::uint32_t one_thread = 2, is_forking = 1;
std::atomic<std::uint32_t> gate{0};
std::atomic<unsigned> generation{0};
thread_local unsigned depth = 0;  // of this thread's NoForks

struct TakenInFork {
  std::atomic<void (*)()> take{nullptr};
  void (*give)() = nullptr;
  bool is_taken = false;  // by the fork under way
};
std::array<TakenInFork, static_cast<std::size_t>(StaticLock::count)> static_locks;

void before_fork() {
  // One fork at a time.
  std::uint32_t word = gate;
  for (;;) {
    if (word & is_forking) {
      gate.wait(word);
      word = gate;
    } else if (gate.compare_exchange_weak(word, word | is_forking)) {
      break;
    }
  }
  const std::uint32_t own = depth > 0 ? one_thread : 0;
  while ((word = gate) != (own | is_forking)) gate.wait(word);
  for (TakenInFork& lock : static_locks) {
    void (*const take)() = lock.take;
    if ((lock.is_taken = take != nullptr)) take();
  }
}

void give_static_locks() {
  for (std::size_t i = static_locks.size(); i-- > 0;) {
    if (static_locks[i].is_taken) static_locks[i].give();
  }
}

void after_fork_in_parent() {
  give_static_locks();
  gate &= ~is_forking;
  gate.notify_all();
}

void after_fork_in_child() {
  give_static_locks();
  gate &= ~is_forking;
  ++generation;
}

[[maybe_unused]] const int registered =
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

}  // namespace

unsigned fork_generation() { return generation.load(std::memory_order_relaxed); }

NoFork::NoFork() {
  if (depth++ > 0) return;
  std::uint32_t word = gate.load(std::memory_order_relaxed);
  for (;;) {
    if (word & is_forking) {
      gate.wait(word);
      word = gate;
    } else if (gate.compare_exchange_weak(word, word + one_thread)) {
      return;
    }
  }
}

NoFork::~NoFork() {
  if (--depth > 0) return;
  if ((gate -= one_thread) & is_forking) gate.notify_all();
}

void NoFork::is_had_by_another_thread() { ++depth; }

void hold_in_fork(StaticLock which, void (*take)(), void (*give)()) {
  const NoFork no_fork;
  TakenInFork& lock = static_locks[static_cast<std::size_t>(which)];
  lock.give = give;
  lock.take = take;
}

}  // namespace ein
