#include "cpu/parallel.hpp"

#define EIGEN_USE_THREADS
#include <sched.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unsupported/Eigen/CXX11/ThreadPool>
#include <utility>

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

/// The parts of one parallel_for, taken one by one. Helpers share it, because one may come only when all
/// parts are done: nobody waits for a thread that the scheduler has not started.
struct Job {
  Job(std::int64_t parts, const cpu::Task& task) : parts(parts), task(&task), unfinished(parts) {}

  void work() {
    inside_a_part = true;
    for (std::int64_t part; (part = next++) < parts;) {
      try {
        (*task)(part);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
      if (--unfinished == 0) unfinished.notify_one();
    }
    inside_a_part = false;
  }
  void wait() const {
    for (std::int64_t left; (left = unfinished) != 0;) unfinished.wait(left);
  }

  const std::int64_t parts;
  const cpu::Task* task;  // there until the last part is done
  std::atomic<std::int64_t> next{0}, unfinished;
  std::exception_ptr failure;
  std::mutex failure_mutex;
};

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
  const auto job = std::make_shared<Job>(parts, task);
  const std::int64_t helpers = pool->workers ? std::min<std::int64_t>(pool->threads - 1, parts - 1) : 0;
  for (std::int64_t i = 0; i < helpers; ++i) pool->workers->Schedule([job] { job->work(); });
  job->work();
  job->wait();
  // Taken out of the job, so that no helper that still holds it is the last to let go of the exception.
  if (std::exception_ptr failure = std::exchange(job->failure, nullptr)) std::rethrow_exception(std::move(failure));
}

}  // namespace cpu
}  // namespace ein
