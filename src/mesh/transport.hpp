// How the processes of one program exchange values. A Transport is this process's end of a set of
// processes; a Group is some of them, this one among them; a collective is what all processes of a
// group do together. Nothing here knows of tensors: values are addresses, of the host's memory or,
// for nccl, of a GPU's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ein/dtype.hpp>
#include <ein/error.hpp>
#include <ein/graph.hpp>

namespace ein::mesh {

/// What was given to the collectives of a group, and sent to its processes, by kind.
struct Counters {
  struct Count {
    std::int64_t calls = 0;
    std::int64_t bytes = 0;  // of the operands of this process
  };
  std::array<Count, collective_count> counts{};
  const Count& of(Collective collective) const {
    return counts[static_cast<std::size_t>(collective)];
  }
};

/// A collective that is to be started. Its arguments are checked, and a complex number is two real
/// ones.
struct Request {
  Collective collective = Collective::barrier;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t count = 0;  // of elements, as Group's functions have it
  DType dtype = DType::u8;
  Combine combine = Combine::sum;  // of all_reduce and reduce_scatter
  // Of a send: the place of the other process, and whether this one receives.
  int peer = 0;
  bool receives = false;
};
/// "all_reduce", "receive".
std::string name_of(const Request& request);
/// "all_reduce sum of 12 f32", "receive of 12 f32".
std::string to_string(const Request& request);

/// A collective under way, as a transport has it.
class Running {
 public:
  virtual ~Running() = default;
  /// Whether wait() would return or throw at once.
  virtual bool is_done() = 0;
  /// Returns when the result is there. Throws what it failed with, at every call.
  virtual void wait() = 0;
};

/// A started collective. Until wait() returns, its operand must not be written and its result not
/// be read. The destructor waits too, as memory of the caller is in use, and keeps errors to
/// itself.
class [[nodiscard]] Ticket {
 public:
  Ticket() = default;  // of nothing, which is done
  explicit Ticket(std::shared_ptr<Running> running) : running_(std::move(running)) {}
  Ticket(Ticket&&) = default;
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket() { finish(); }

  bool is_done() const { return !running_ || running_->is_done(); }
  /// An Error of kind `peer` if a process has ended or gives no sign of life, of kind `value` if
  /// the processes started different collectives.
  void wait() {
    if (running_) running_->wait();
  }

 private:
  void finish();

  std::shared_ptr<Running> running_;
};

/// Processes that exchange values, in the order of their ranks: those that differ along one axis of
/// a mesh. All of them start the same collectives in the same order; a program with several groups
/// may start those of one group before or after those of another. The functions may be called by
/// any thread. A Group lives as long as its Transport.
///
/// Addresses are aligned as elements of the dtype are. Operand and result do not overlap, but those
/// of all_reduce may be the same. Results have the same bits on every process.
class Group {
 public:
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// The place of this process among those of the group.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  /// The processes, by their ranks in the transport.
  const std::vector<int>& ranks() const { return ranks_; }

  // Sums, products, maxima and minima are made element by element in the order of ranks,
  // ((r0 + r1) + r2) + ..., f64, f32 and integers in their own type, narrower floats in f32,
  // rounded once at the end. (Transports that leave this to another library say so.)

  /// (count) -> (count): to[i] = from[i] of all processes combined.
  Ticket start_all_reduce(const void* from, void* to, std::int64_t count, DType dtype,
                          Combine combine = Combine::sum);
  /// (size, count) -> (count): to[i] = from[rank][i] of all processes combined.
  Ticket start_reduce_scatter(const void* from, void* to, std::int64_t count, DType dtype,
                              Combine combine = Combine::sum);
  /// (count) -> (size, count): to[r][i] = from[i] of process r.
  Ticket start_all_gather(const void* from, void* to, std::int64_t count, DType dtype);
  /// (size, count) -> (size, count): to[r][i] = from[rank][i] of process r.
  Ticket start_all_to_all(const void* from, void* to, std::int64_t count, DType dtype);
  /// Done when all processes have started it.
  Ticket start_barrier();
  /// One of these.
  Ticket start(Collective collective, const void* from, void* to, std::int64_t count, DType dtype,
               Combine combine);
  /// (count) -> process `to`, by its place in the group, which receives as many of that dtype. What
  /// one process sends to another arrives in the order in which it was sent; neither waits for the
  /// collectives of the group, nor they for it. The ticket is done when the operand may be written,
  /// which may be before the other process receives it.
  Ticket start_send(const void* from, std::int64_t count, DType dtype, int to);
  /// (count) from process `from`.
  Ticket start_receive(void* to, std::int64_t count, DType dtype, int from);

  // The same, and wait for it.
  void all_reduce(const void* from, void* to, std::int64_t count, DType dtype,
                  Combine combine = Combine::sum);
  void reduce_scatter(const void* from, void* to, std::int64_t count, DType dtype,
                      Combine combine = Combine::sum);
  void all_gather(const void* from, void* to, std::int64_t count, DType dtype);
  void all_to_all(const void* from, void* to, std::int64_t count, DType dtype);
  void barrier();
  void send(const void* from, std::int64_t count, DType dtype, int to);
  void receive(void* to, std::int64_t count, DType dtype, int from);

  /// (bytes) -> (size, bytes), between the hosts, for what transports tell each other. Not counted.
  virtual void tell(const void* from, void* to, std::int64_t bytes);
  /// A check while debugging: an Error of kind `value` on all processes unless all give the same
  /// `hash`. It names `what` ("the program") and which processes differ. Not counted.
  void require_same(std::uint64_t hash, std::string_view what);

  Counters counters() const;

 protected:
  Group(std::vector<int> ranks, int rank_in_transport);

 private:
  /// Starts it. `is_awaited`: the caller will wait for it at once.
  virtual std::shared_ptr<Running> begin(const Request& request, bool is_awaited) = 0;
  /// What a collective is where this process is the only one.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  Ticket start(Request request, bool is_awaited);
  Ticket start_between(Request request, int peer, bool is_awaited);

  struct AtomicCount {
    std::atomic<std::int64_t> calls{0}, bytes{0};
  };
  std::vector<int> ranks_;
  int rank_ = 0;
  std::array<AtomicCount, collective_count> counts_{};
  friend class Transport;
  const std::atomic<bool>* has_left_ = nullptr;  // the transport's
};

/// What a collective combines by where a nest does by this: any of bool is its maximum, all its
/// minimum.
Combine for_collective(Combine combine);

/// This process's end of a set of processes. Its end is this process's leaving: what others still
/// wait for fails there.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// "shm", "mpi", "nccl", "loop".
  virtual std::string_view name() const = 0;
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The group of these processes, in ascending order, with this one among them. The same ranks
  /// give the same group. All of them ask for it; transports may wait until they do.
  Group& group(std::span<const int> ranks);
  Group& all();

  /// This process leaves the others before the transport ends. From now on what its groups are to
  /// start, and a group that it has not asked for, is an Error of kind `peer`.
  void leave();

 protected:
  Transport() = default;
  /// Once, by the constructor of a transport.
  void set_place(int rank, int size) { rank_ = rank, size_ = size; }
  /// For the destructor of a transport whose groups need what it has.
  void end_groups() { groups_.clear(); }

 private:
  virtual std::unique_ptr<Group> make_group(std::vector<int> ranks) = 0;
  virtual void tell_others_of_leaving() {}

  int rank_ = 0, size_ = 1;
  std::atomic<bool> has_left_{false};
  std::mutex mutex_;  // of groups_
  std::map<std::vector<int>, std::unique_ptr<Group>> groups_;
};

/// What to say where process `sender` sent something else than is received.
std::string different_message(int sender, const Request& sent, const Request& received);

/// "process 2", "processes 0, 1 and 3".
std::string list_processes(const std::vector<int>& ranks);

}  // namespace ein::mesh
