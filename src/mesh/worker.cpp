#include "mesh/worker.hpp"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "machine/parallel.hpp"
#include "machine/system.hpp"
#include "size/ask.hpp"

namespace ein::mesh {
namespace {

/// A process gives a sign of life at every tick. Who looks for it counts ticks too and not seconds,
/// so that nobody seems dead after the whole machine has been halted.
constexpr int tick_milliseconds = 100;
constexpr int ticks_of_second = 1000 / tick_milliseconds;
constexpr int ticks_until_dead = 4 * ticks_of_second;

/// How often a thread looks at its bell, and then how often it first lets others run, before it
/// sleeps: 25 and then about 100 microseconds. A step of another process, of one slot, takes the
/// former. Waking a sleeper takes 30 microseconds or more, in which whoever wakes it should not
/// fall asleep too.
constexpr int usual_spins = 1000;
constexpr int yields = 250;

}  // namespace

void Operation::wait() {
  if (!is_done()) worker_->wait(*this);
  if (state_ == State::failed) throw *error_;
}

void Operation::has_failed(const Error& error) {
  error_ = error;
  state_.store(State::failed, std::memory_order_release);
}

// --- joining and leaving ---

// With fewer processors than processes, the one that is waited for needs this one's.
Worker::Worker(SharedMemory memory, int rank, ShmPatience patience)
    : memory_(std::move(memory)),
      rank_(rank),
      patience_(patience),
      spins_(memory_.size() <= memory_.header().processors ? usual_spins : 0),
      seen_life_(static_cast<std::size_t>(memory_.size())) {}

Worker::~Worker() {
  // In a child of fork() the thread is not there; its handle can neither be joined nor destroyed.
  if (helper_ && helper_->joinable()) static_cast<void>(helper_.release());
}

void Worker::join() {
  Presence absent = Presence::absent;
  if (!own().presence.compare_exchange_strong(absent, Presence::here))
    throw Error(
        ErrorKind::value,
        "shm: process " + std::to_string(rank_) +
            " has joined already\n  help: a process opens one transport, once; programs that "
            "it starts are to be started without EIN_SHM in their environment");
  try {
    helper_ = std::make_unique<std::thread>([this] { help(); });
  } catch (const std::exception& error) {
    own().presence = Presence::left;
    memory_.ring_all();
    throw Error(ErrorKind::memory, std::string("shm: no thread can be started: ") + error.what());
  }
  memory_.ring_all();
}

void Worker::wait_for_all() {
  const auto end = Clock::now() + std::chrono::seconds(patience_.to_come);
  for (;;) {
    const std::uint32_t seen = own().bell;
    std::vector<int> absent;
    for (int rank = 0; rank < memory_.size(); ++rank) {
      if (memory_.member(rank).presence == Presence::absent) absent.push_back(rank);
    }
    if (absent.empty()) return;
    if (const std::string failure = memory_.failure(); !failure.empty())
      throw Error(ErrorKind::peer, "shm: " + failure + help_for_peers());
    if (Clock::now() > end)
      throw Error(ErrorKind::peer, "shm: " + list_processes(absent) + " did not come within " +
                                       std::to_string(patience_.to_come) +
                                       " s\n  help: all processes that ein launch starts must open "
                                       "the transport; EIN_SHM_WAIT=600 waits for 600 s");
    memory_.sleep(rank_, seen, tick_milliseconds);
  }
}

void Worker::leave() {
  if (is_forked() || is_leaving_.exchange(true)) return;
  nudge_helper();
  memory_.ring(rank_);
  helper_->join();
  {
    const std::lock_guard lock(progress_);
    for (const auto& queue : queues_) queue->fault = {ErrorKind::peer, "this process has left"};
    while (advance()) {
    }
  }
  own().presence = Presence::left;
  memory_.ring_all();
}

// --- collectives ---

std::shared_ptr<Queue> Worker::make_queue(const std::vector<int>& ranks, PostsFor use) {
  auto queue = std::make_shared<Queue>();
  const auto own = std::lower_bound(ranks.begin(), ranks.end(), rank_) - ranks.begin();
  queue->posts = {memory_.posts_of(ranks, rank_, use), static_cast<std::size_t>(own), ranks};
  const std::lock_guard lock(progress_);
  queues_.push_back(queue);
  return queue;
}

void Worker::require_not_forked(const Request& request) const {
  if (is_forked())
    throw Error(ErrorKind::value,
                name_of(request) + ": a child of fork() is no process of the mesh");
}

std::shared_ptr<Queue> Worker::queue_between(int other, const Request& request) {
  require_not_forked(request);
  const std::lock_guard lock(between_lock_);
  std::shared_ptr<Queue>& queue = between_[{other, request.receives}];
  const bool is_up = (other > rank_) != request.receives;
  if (!queue)
    queue = make_queue({std::min(rank_, other), std::max(rank_, other)},
                       is_up ? PostsFor::up : PostsFor::down);
  return queue;
}

std::shared_ptr<Operation> Worker::start(Queue& queue, const Request& request, bool is_awaited) {
  require_not_forked(request);
  auto operation = std::make_shared<Operation>(request, shared_from_this());
  {
    const std::lock_guard lock(queue_lock_);
    queue.waiting.push_back(operation);
  }
  if (!is_awaited) {
    memory_.ring(rank_);
    nudge_helper();
  }
  return operation;
}

void Worker::wait(Operation& operation) {
  if (is_forked())
    throw Error(ErrorKind::value,
                name_of(operation.request) + ": it was started by the parent of this process");
  waiters_.fetch_add(1);
  while (!operation.is_done()) {
    const std::uint32_t seen = own().bell;
    {
      const std::unique_lock lock(progress_, std::try_to_lock);
      if (lock && advance()) continue;
    }
    for (int i = 0; i < spins_ && own().bell == seen; ++i) host::pause();
    for (int i = 0; i < yields && own().bell == seen; ++i) std::this_thread::yield();
    if (own().bell != seen) continue;
    {
      const std::unique_lock lock(progress_, std::try_to_lock);
      if (lock && give_up()) continue;
    }
    if (!operation.is_done()) memory_.sleep(rank_, seen, tick_milliseconds);
  }
  waiters_.fetch_sub(1);
  const std::lock_guard lock(progress_);
  if (has_work()) nudge_helper();
}

bool Worker::advance() {
  bool has_moved = false;
  for (const auto& queue : queues_) has_moved |= advance(*queue);
  return has_moved;
}

bool Worker::advance(Queue& queue) {
  if (!queue.current) {
    const std::lock_guard lock(queue_lock_);
    if (queue.waiting.empty()) return false;
    queue.current = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    queue.moved_at = ticks_;
  }
  if (!queue.fault) {
    const InFloatMode mode(queue.current->mode);
    try {
      if (!queue.steps) queue.steps.emplace(queue.current->request, queue.posts, queue.next_piece);
      if (!queue.steps->advance()) return false;
      queue.moved_at = ticks_;
      for (const int rank : queue.posts.ranks) {
        if (rank != rank_) memory_.ring(rank);
      }
    } catch (const Error& error) {
      queue.fault = {error.kind(), error.what()};
    }
  }
  if (queue.fault || queue.steps->is_done()) finish_current(queue);
  return true;
}

void Worker::finish_current(Queue& queue) {
  Operation& operation = *queue.current;
  if (queue.fault) {
    operation.has_failed(
        Error(queue.fault->kind, name_of(operation.request) + ": " + queue.fault->text));
  } else {
    queue.next_piece += queue.steps->pieces();
    operation.has_succeeded();
  }
  queue.current.reset();
  queue.steps.reset();
  memory_.ring(rank_);  // other threads that wait
}

bool Worker::give_up() {
  bool is_any = false;
  for (const auto& queue : queues_) {
    if (!queue->current || queue->fault) continue;
    const std::string failure = why_give_up(*queue);
    if (failure.empty()) continue;
    queue->fault = {ErrorKind::peer, failure};
    is_any = true;
  }
  return is_any;
}

std::string Worker::why_give_up(const Queue& queue) const {
  if (const std::string failure = memory_.failure(); !failure.empty())
    return failure + help_for_peers();
  if (!queue.steps) return "";
  // Whoever has left does nothing after that: to look in this order is right.
  std::vector<bool> is_gone;
  for (const int rank : queue.posts.ranks)
    is_gone.push_back(memory_.member(rank).presence != Presence::here);
  std::vector<int> late;
  for (const std::size_t i : queue.steps->waits_for()) {
    late.push_back(queue.posts.ranks[i]);
    if (is_gone[i]) return memory_.how_ended(late.back()) + help_for_peers();
  }
  const std::uint64_t most = static_cast<std::uint64_t>(patience_.to_take_part) * ticks_of_second;
  if (late.empty() || ticks_ - queue.moved_at <= most) return "";
  return list_processes(late) + " did not take part within " +
         std::to_string(patience_.to_take_part) +
         " s\n  help: all processes of a group start the same collectives; EIN_SHM_TIMEOUT=7200 "
         "waits for 7200 s";
}

bool Worker::has_work() {
  const std::lock_guard lock(queue_lock_);
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const auto& queue) { return queue->current || !queue->waiting.empty(); });
}

// --- the helper thread ---

void Worker::nudge_helper() {
  nudges_.fetch_add(1);
  system::wake_sleepers(nudges_);
}

void Worker::help() {
  next_tick_ = Clock::now();
  bool has_moved = false;  // something since a waiter was told
  while (!is_leaving_) {
    const std::uint32_t nudges = nudges_, seen = own().bell;
    if (Clock::now() >= next_tick_) tick();
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(next_tick_ - Clock::now());
    const int milliseconds =
        static_cast<int>(std::clamp<std::int64_t>(rest.count(), 1, tick_milliseconds));
    bool is_needed = waiters_ == 0;
    if (is_needed) {
      const std::lock_guard lock(progress_);
      if (advance() || give_up()) {
        has_moved = true;
        continue;
      }
      is_needed = has_work();
    } else if (std::exchange(has_moved, false)) {
      memory_.ring(rank_);  // a waiter that came meanwhile may sleep although there is more to do
    }
    // Where it is not needed, what others do must not wake it.
    if (is_needed)
      memory_.sleep(rank_, seen, milliseconds);
    else
      system::sleep_while(nudges_, nudges, milliseconds);
  }
}

void Worker::tick() {
  next_tick_ = Clock::now() + std::chrono::milliseconds(tick_milliseconds);
  own().life.fetch_add(1, std::memory_order_relaxed);
  for (int rank = 0; rank < memory_.size(); ++rank) {
    const Member& member = memory_.member(rank);
    SeenLife& seen = seen_life_[static_cast<std::size_t>(rank)];
    const std::uint32_t life = member.life;
    if (rank == rank_ || member.presence != Presence::here || life != seen.life) {
      seen = {life, 0};
    } else if (++seen.ticks >= ticks_until_dead) {
      memory_.has_failed(rank);
    }
  }
  if (++ticks_ % ticks_of_second == 0 && memory_.launcher_has_ended())
    memory_.has_failed(memory_.size());
}

}  // namespace ein::mesh
