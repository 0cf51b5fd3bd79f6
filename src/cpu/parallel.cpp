#include "cpu/parallel.hpp"

#define EIGEN_USE_THREADS
#include <sched.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unsupported/Eigen/CXX11/ThreadPool>

#include <ein/error.hpp>

namespace ein {
namespace {

/// The calling thread works too, so the pool has one thread less.
struct Pool {
  explicit Pool(int threads) : threads(threads), workers(threads > 1 ? std::make_unique<Eigen::ThreadPool>(threads - 1) : nullptr) {}
  int threads;
  std::unique_ptr<Eigen::ThreadPool> workers;
};

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return 1;
}

struct SharedPool {
  std::mutex mutex;
  std::shared_ptr<Pool> pool = std::make_shared<Pool>(available_processors());
  std::atomic<int> threads{pool->threads};
};
SharedPool& shared_pool() {
  static SharedPool shared;
  return shared;
}

std::shared_ptr<Pool> current_pool() {
  SharedPool& shared = shared_pool();
  const std::lock_guard lock(shared.mutex);
  return shared.pool;
}

thread_local bool inside_a_part = false;

}  // namespace

int num_threads() { return shared_pool().threads; }

void set_num_threads(int threads) {
  if (threads < 1 || threads > 1024) {
    throw Error(ErrorKind::value, "set_num_threads: " + std::to_string(threads) + " is not between 1 and 1024");
  }
  auto pool = std::make_shared<Pool>(threads);
  SharedPool& shared = shared_pool();
  const std::lock_guard lock(shared.mutex);
  shared.threads = threads;
  shared.pool.swap(pool);
}

namespace cpu {

void parallel_for(std::int64_t parts, const Task& task) {
  if (parts <= 1 || inside_a_part || num_threads() == 1) {
    for (std::int64_t part = 0; part < parts; ++part) task(part);
    return;
  }
  const std::shared_ptr<Pool> pool = current_pool();
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    inside_a_part = true;
    for (std::int64_t part; (part = next++) < parts;) {
      try {
        task(part);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
    }
    inside_a_part = false;
  };
  const int helpers = pool->workers ? static_cast<int>(std::min<std::int64_t>(pool->threads - 1, parts - 1)) : 0;
  Eigen::Barrier done(static_cast<unsigned>(helpers));
  for (int i = 0; i < helpers; ++i) {
    pool->workers->Schedule([&] {
      work();
      done.Notify();
    });
  }
  work();
  done.Wait();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace cpu
}  // namespace ein
