// fork(): what a child finds of the library's locks and threads. A child has one thread, the one
// that called fork(). A lock that another held would stay taken there, and what it guards half
// changed.
#pragma once

#include <atomic>
#include <mutex>
#include <type_traits>

namespace ein {

/// How many forks lie between this process and the first one. What remembers another number was
/// made by a parent, whose threads are not here.
unsigned fork_generation();

/// While one of these lives, fork() in another thread waits, so it is not for what may wait for
/// that thread: a caller's own code, a condition variable. It may be nested. A thread takes it
/// before any lock that it holds for longer than a few instructions.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;

  /// For a thread that works only while another, which it works for, has a NoFork.
  static void is_had_by_another_thread();
};

/// A lock_guard that fork() waits for.
template <class M>
class NoForkLock {
 public:
  explicit NoForkLock(M& mutex) : lock_(mutex) {}

 private:
  NoFork no_fork_;
  std::lock_guard<M> lock_;
};

/// What `make` gives, made by the first call and never destroyed: other static objects may use it
/// until the end. In place of a function's static, whose first call by another thread would stay
/// half done in a child.
template <class Make>
std::invoke_result_t<Make>& made_once(const Make& make) {
  static_assert(std::is_empty_v<Make> && std::is_class_v<Make>,
                "a lambda without captures: there is one value for each type of `make`");
  using T = std::invoke_result_t<Make>;
  static std::atomic<T*> made{nullptr};
  T* value = made.load(std::memory_order_acquire);
  if (!value) {
    static std::mutex mutex;
    const NoForkLock lock(mutex);
    value = made.load(std::memory_order_relaxed);
    if (!value) made.store(value = new T(make()), std::memory_order_release);
  }
  return *value;
}

/// Locks of static objects, under which nothing waits and no NoFork is taken, so that fork() takes
/// them itself. In the order in which it does: a thread that holds one takes only later ones.
enum class StaticLock { plan_cache, random_state, sizes, machine_code, host_memory, count };
/// `take` and `give` lock and unlock it.
void hold_in_fork(StaticLock which, void (*take)(), void (*give)());

/// The one T, made as made_once() does; fork() holds its member `mutex` and calls its
/// before_fork(), if it has one.
template <class T, StaticLock which>
T& made_once_with_lock() {
  return made_once([] {
    hold_in_fork(
        which,
        [] {
          T& one = made_once_with_lock<T, which>();
          one.mutex.lock();
          if constexpr (requires { one.before_fork(); }) one.before_fork();
        },
        [] { made_once_with_lock<T, which>().mutex.unlock(); });
    return T();
  });
}

/// A mutex under which a caller's own code runs, so that fork() cannot wait for it. In a child, one
/// that another thread held is free.
class CallerMutex {
 public:
  void lock() {
    const unsigned taken = 2 * fork_generation() + 1;
    for (;;) {
      unsigned word = free;
      if (word_.compare_exchange_strong(word, taken)) return;
      // Who took it before the fork is in the parent.
      if (word != taken && word_.compare_exchange_strong(word, taken)) return;
      if (word == taken) word_.wait(word);
    }
  }
  void unlock() {
    word_ = free;
    word_.notify_one();
  }

 private:
  static constexpr unsigned free = 0;
  std::atomic<unsigned> word_{free};
};

}  // namespace ein
