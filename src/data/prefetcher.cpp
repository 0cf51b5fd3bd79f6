#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <ein/data.hpp>
#include <ein/error.hpp>
#include "machine/owning_process.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace {

struct Prepared {
  Batch batch;
  std::uint64_t position;  // of the source after this batch
};

constexpr std::size_t most_prepared = 2;

}  // namespace

struct Prefetcher::Worker {
  explicit Worker(std::unique_ptr<BatchSource> from) : source(std::move(from)) {
    try {
      thread = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      // The system starts no more threads: batches are made by who takes them.
    }
  }
  ~Worker() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    has_room.notify_one();
    if (thread.joinable()) thread.join();
  }

  Prepared next() {
    Batch batch = source->next();
    return {std::move(batch), source->position()};
  }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      has_room.wait(lock, [&] { return stopping || prepared.size() < most_prepared; });
      if (stopping) return;
      lock.unlock();
      try {
        Prepared made = next();
        lock.lock();
        prepared.push_back(std::move(made));
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        failure = std::current_exception();
        has_more.notify_one();
        return;
      }
      has_more.notify_one();
    }
  }

  Prepared take() {
    if (!thread.joinable()) return next();
    std::unique_lock lock(mutex);
    has_more.wait(lock, [&] { return failure || !prepared.empty(); });
    if (prepared.empty()) std::rethrow_exception(failure);
    Prepared taken = std::move(prepared.front());
    prepared.pop_front();
    has_room.notify_one();
    return taken;
  }

  /// Whether the thread is in the parent of this process.
  bool is_of_parent() const { return !owner.is_this(); }

  const OwningProcess owner;
  std::unique_ptr<BatchSource> source;
  std::mutex mutex;
  std::condition_variable has_room, has_more;
  std::deque<Prepared> prepared;
  std::exception_ptr failure;
  bool stopping = false;
  std::thread thread;  // last: it uses the rest
};

Prefetcher::Prefetcher(std::unique_ptr<BatchSource> source) {
  if (!source) throw Error(ErrorKind::value, "Prefetcher: there is no source");
  position_ = source->position();
  worker_ = std::make_unique<Worker>(std::move(source));
}

Prefetcher::Prefetcher(BatchSampler sampler)
    : Prefetcher(std::make_unique<BatchSampler>(std::move(sampler))) {}

Prefetcher::~Prefetcher() {
  // A thread of the parent can neither be joined nor be asked what it was about to change.
  if (worker_ && worker_->is_of_parent()) static_cast<void>(worker_.release());
}

Batch Prefetcher::next() {
  engine::require_no_trace("Prefetcher::next",
                           "call it outside of the function, and give x and y as arguments");
  if (worker_->is_of_parent()) {
    throw Error(ErrorKind::value,
                "Prefetcher::next: the thread that prepares batches stayed in the parent of this "
                "process, which "
                "called fork()\n  help: make another Prefetcher here, of a source at position " +
                    std::to_string(position_));
  }
  Prepared next = worker_->take();
  position_ = next.position;
  return std::move(next.batch);
}

}  // namespace ein
