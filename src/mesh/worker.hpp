// What moves the collectives of a process of shm on.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "machine/float_mode.hpp"
#include "machine/owning_process.hpp"
#include "machine/spin_lock.hpp"
#include "mesh/shared_memory.hpp"
#include "mesh/steps.hpp"

namespace ein::mesh {

class Worker;

/// A started collective.
class Operation final : public Running {
 public:
  Operation(const Request& started, std::shared_ptr<Worker> worker)
      : request(started), worker_(std::move(worker)) {}

  bool is_done() override { return state_.load(std::memory_order_acquire) != State::under_way; }
  void wait() override;

  void has_succeeded() { state_.store(State::succeeded, std::memory_order_release); }
  void has_failed(const Error& error);

  const Request request;
  const FloatMode mode = FloatMode::of_this_thread();  // any thread may take the next step

 private:
  enum class State { under_way, succeeded, failed };
  std::shared_ptr<Worker> worker_;
  std::atomic<State> state_{State::under_way};
  std::optional<Error> error_;
};

/// The collectives of a group that this process has started, or what it sends to another or
/// receives from it. They run in that order.
struct Queue {
  std::deque<std::shared_ptr<Operation>> waiting;  // under the worker's queue_lock_

  // Under the worker's progress_.
  Posts posts;
  std::shared_ptr<Operation> current;
  std::optional<Steps> steps;  // of `current`
  std::uint64_t next_piece = 0;
  std::uint64_t moved_at = 0;  // the tick in which `current` came or was last moved on
  struct Fault {
    ErrorKind kind;
    std::string text;
  };
  std::optional<Fault> fault;  // why nothing of this group can go on
};

/// Moves the collectives of a process on: those of different groups independently of each other.
/// Threads that wait for one do the work themselves; otherwise the helper thread does. The helper
/// thread also gives signs of life and looks for those of other processes.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  Worker(SharedMemory memory, int rank, ShmPatience patience);
  ~Worker();

  const SharedMemory& memory() const { return memory_; }
  int rank() const { return rank_; }

  /// An Error if process `rank` has joined already.
  void join();
  /// Returns when all processes have joined; an Error if not all do in time.
  void wait_for_all();
  /// What is under way fails, also that of others who wait for this process.
  void leave();

  std::shared_ptr<Queue> make_queue(const std::vector<int>& ranks,
                                    PostsFor use = PostsFor::collectives);
  /// Of a send between this process and that one, by its rank; the same for all groups.
  std::shared_ptr<Queue> queue_between(int other, const Request& request);
  std::shared_ptr<Operation> start(Queue& queue, const Request& request, bool is_awaited);
  void wait(Operation& operation);

 private:
  using Clock = std::chrono::steady_clock;
  struct SeenLife {
    std::uint32_t life = 0;
    int ticks = 0;  // since it changed
  };

  Member& own() const { return memory_.member(rank_); }
  /// Whether this is a child of the process that joined, in which no helper runs.
  bool is_forked() const { return !owner_.is_this(); }
  /// An Error there.
  void require_not_forked(const Request& request) const;

  void help();
  void tick();
  /// One step of each queue that can do one; whether any could.
  bool advance();
  bool advance(Queue& queue);
  /// Gives up what waits for processes that will not come, or has waited too long; whether there
  /// is such.
  bool give_up();
  /// Why; empty where it is to go on.
  std::string why_give_up(const Queue& queue) const;
  void finish_current(Queue& queue);
  /// Whether a collective is not done; under progress_.
  bool has_work();
  void nudge_helper();

  SharedMemory memory_;
  const int rank_;
  const ShmPatience patience_;
  const OwningProcess owner_;
  const int spins_;

  std::mutex progress_;  // of the thread that moves collectives on
  SpinLock queue_lock_;
  std::vector<std::shared_ptr<Queue>> queues_;  // under progress_
  std::mutex between_lock_;
  std::map<std::pair<int, bool>, std::shared_ptr<Queue>> between_;
  std::atomic<int> waiters_{0};           // threads in wait()
  std::atomic<std::uint32_t> nudges_{0};  // the helper sleeps on it while it has nothing to do
  std::atomic<bool> is_leaving_{false};
  std::atomic<std::uint64_t> ticks_{0};

  // The helper's own.
  std::vector<SeenLife> seen_life_;
  Clock::time_point next_tick_{};
  std::unique_ptr<std::thread> helper_;
};

}  // namespace ein::mesh
