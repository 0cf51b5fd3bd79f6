// A pool of threads for many short pieces of work: nothing is allocated for a call, and a thread
// gets the same part of an array in one call after another, so that it finds there what it left in
// its cache.
#include "machine/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <ein/error.hpp>

#include "machine/float_mode.hpp"
#include "machine/fork.hpp"
#include "machine/system.hpp"
#include "machine/thread_end.hpp"

namespace ein {
namespace {

thread_local bool inside_a_part = false;
constexpr int most_threads = 1024;
thread_local int thread_limit = most_threads;

/// Some tens of microseconds, as long as the pieces between two calls often take; then a thread
/// sleeps.
constexpr int spins = 1000;

/// The calling thread works too, so the pool has one thread less. One call at a time uses it.
class Pool {
 public:
  /// Of fewer threads where the system starts no more.
  explicit Pool(int threads) : ranges_(static_cast<std::size_t>(threads)) {
    workers_.reserve(ranges_.size() - 1);
    try {
      for (int i = 1; i < threads; ++i)
        workers_.emplace_back([this, i] { serve(static_cast<std::size_t>(i)); });
    } catch (const std::system_error& error) {
      why_no_more_ = error.code();
    } catch (const std::bad_alloc&) {
      why_no_more_ = std::make_error_code(std::errc::not_enough_memory);
    }
  }
  ~Pool() { stop(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  /// Why there are fewer threads than were wanted, if there are.
  std::error_code why_no_more() const { return why_no_more_; }

  /// On at most this number of threads; false if another call has the pool.
  bool run(std::int64_t parts, const host::Task& task, std::int64_t most, int threads) {
    const std::unique_lock lock(calling_, std::try_to_lock);
    if (!lock) return false;
    const NoFork no_fork;  // for the workers, too
    task_ = &task;
    most_ = most;
    mode_ = FloatMode::of_this_thread();
    const std::int64_t count = std::min(size(), threads);
    count_.store(static_cast<std::size_t>(count), std::memory_order_relaxed);
    for (std::int64_t i = 0; i < count; ++i) {
      Range& range = ranges_[static_cast<std::size_t>(i)];
      range.next.store(parts * i / count, std::memory_order_relaxed);
      range.end = parts * (i + 1) / count;
    }
    state_ = ((state_ | members) ^ members) + one_call + is_open;
    state_.notify_all();
    inside_a_part = true;
    work(0);
    inside_a_part = false;
    // All parts are taken. Threads that have not come yet need not; those that have are at their
    // last part.
    state_ &= ~is_open;
    await([](std::uint32_t state) { return (state & members) == 0; });
    // Taken out, so that the exception ends with the caller.
    if (std::exception_ptr failure = std::exchange(failure_, nullptr))
      std::rethrow_exception(std::move(failure));
    return true;
  }

 private:
  /// Parts [next, end) wait for a thread; each thread begins with its own range and then helps the
  /// others.
  struct alignas(64) Range {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  // The state counts the threads that are at work, says whether others may join them, and counts
  // calls.
  static constexpr std::uint32_t members = (1U << 11) - 1, is_open = 1U << 11, one_call = 1U << 12;
  static std::uint32_t call_of(std::uint32_t state) { return state / one_call; }

  template <class Holds>
  std::uint32_t await(Holds holds) const {
    std::uint32_t state;
    for (int spin = 0; !holds(state = state_); ++spin) {
      if (spin < spins) {
        host::pause();
      } else {
        state_.wait(state);
      }
    }
    return state;
  }

  void serve(std::size_t me) {
    inside_a_part = true;
    NoFork::is_had_by_another_thread();
    std::uint32_t last = 0;
    for (;;) {
      std::uint32_t state = await([&](std::uint32_t now) {
        return ((now & is_open) && call_of(now) != last) || stopping_;
      });
      if (stopping_) return;
      if (me >= count_.load(std::memory_order_relaxed)) {  // this call does without
        if (state_ == state) last = call_of(state);
        continue;
      }
      if (!state_.compare_exchange_weak(state, state + 1)) continue;
      last = call_of(state);
      mode_.use();
      work(me);
      if (((--state_) & (members | is_open)) == 0) state_.notify_all();
    }
  }

  void stop() {
    stopping_ = true;
    state_ += one_call;
    state_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void work(std::size_t me) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
      Range& range = ranges_[(me + i) % count];
      std::int64_t next = range.next.load(std::memory_order_relaxed);
      while (next < range.end) {
        const std::int64_t end = next + std::clamp<std::int64_t>((range.end - next) / 2, 1, most_);
        if (!range.next.compare_exchange_weak(next, end, std::memory_order_relaxed)) continue;
        try {
          (*task_)(next, end);
        } catch (...) {
          const std::lock_guard lock(failing_);
          if (!failure_) failure_ = std::current_exception();
        }
        next = range.next.load(std::memory_order_relaxed);
      }
    }
  }

  std::vector<Range> ranges_;
  std::atomic<std::size_t> count_{0};  // threads of the call: the first of them
  std::vector<std::thread> workers_;
  std::error_code why_no_more_;
  std::atomic<std::uint32_t> state_{0};
  std::atomic<bool> stopping_{false};
  std::mutex calling_, failing_;
  const host::Task* task_ = nullptr;  // there until the last part is done
  std::int64_t most_ = 1;
  FloatMode mode_;  // of the caller, for all threads
  std::exception_ptr failure_;
};

struct SharedPool {
  SharedPool(int count, SharedPool* in_parent) : threads(count), of_parent(in_parent) {}

  const unsigned generation = fork_generation();
  std::mutex mutex;
  std::shared_ptr<Pool> pool;  // none until it is needed
  bool is_closed = false;      // the process ends, or the library is unloaded
  std::atomic<int> threads;
  SharedPool* const of_parent;  // whose threads are not here and cannot be joined
};

/// At exit, other threads may still work.
SharedPool& shared_pool() {
  auto& current = made_once([] {
    return std::atomic<SharedPool*>(new SharedPool(system::available_processors(), nullptr));
  });
  SharedPool* shared = current;
  while (shared->generation != fork_generation()) {
    auto of_child = std::make_unique<SharedPool>(shared->threads, shared);
    if (current.compare_exchange_strong(shared, of_child.get())) shared = of_child.release();
  }
  return *shared;
}

std::shared_ptr<Pool> close_pool() {
  SharedPool& shared = shared_pool();
  std::shared_ptr<Pool> pool;
  const std::lock_guard lock(shared.mutex);
  shared.is_closed = true;
  shared.pool.swap(pool);
  return pool;
}

/// Ends the threads when static objects are destroyed. A call that runs keeps them to its end;
/// later ones do without. The only static object of the library that has a destructor.
struct EndOfPool {
  ~EndOfPool() {
    close_pool().reset();  // its threads destroy what they own
    forget_thread_ends();
  }
};
const EndOfPool end_of_pool;

/// None at the end of the process.
std::shared_ptr<Pool> current_pool() {
  SharedPool& shared = shared_pool();
  const std::lock_guard lock(shared.mutex);
  if (!shared.pool && !shared.is_closed) shared.pool = std::make_shared<Pool>(shared.threads);
  return shared.pool;
}

}  // namespace

namespace {

void require_possible(const char* call, int threads) {
  if (threads >= 1 && threads <= most_threads) return;
  throw Error(ErrorKind::value, std::string(call) + ": " + std::to_string(threads) +
                                    " is not between 1 and " + std::to_string(most_threads));
}

}  // namespace

int num_threads() { return std::min<int>(shared_pool().threads, thread_limit); }

ThreadLimit::ThreadLimit(int threads) : before_(thread_limit) {
  require_possible("ThreadLimit", threads);
  thread_limit = std::min(before_, threads);
}
ThreadLimit::~ThreadLimit() { thread_limit = before_; }

void set_num_threads(int threads) {
  require_possible("set_num_threads", threads);
  auto pool = std::make_shared<Pool>(threads);
  if (pool->size() < threads)
    throw Error(ErrorKind::memory, "set_num_threads: " + std::to_string(threads) +
                                       " threads are wanted, and the system starts no more than " +
                                       std::to_string(pool->size()) + " (" +
                                       pool->why_no_more().message() + ")");
  SharedPool& shared = shared_pool();
  const std::lock_guard lock(shared.mutex);
  shared.threads = threads;
  if (!shared.is_closed) shared.pool.swap(pool);
}

namespace host {

void parallel_for(std::int64_t parts, const Task& task, std::int64_t most) {
  if (parts > 1 && runs_in_parallel()) {
    const std::shared_ptr<Pool> pool = current_pool();
    if (pool && pool->run(parts, task, most, num_threads())) return;
  }
  task(0, parts);
}

int started_threads() {
  const std::shared_ptr<Pool> pool = current_pool();
  return pool ? std::min(pool->size(), num_threads()) : 1;
}

bool runs_in_parallel() { return !inside_a_part && num_threads() > 1; }

}  // namespace host
}  // namespace ein
