// What lies in the memory of shm's processes, and how they tell each other of it.
//
//   header     who is there; which groups there are
//   members    of each process: its bell, and whether it is alive
//   posts      of each process of each group: how far it is, and room for values to be handed over
//
// All of it is zeros at first. A process writes its own members and posts only; others read them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mesh/shm.hpp"

namespace ein::mesh {

/// Bytes of values that a process hands over at a time, and how many such slots it has: while some
/// are read, it fills others. Slots of a pair of processes stay in the caches; an all_reduce of 64
/// MiB by two took 13 % longer with slots of 256 KiB.
inline constexpr std::size_t slot_bytes = std::size_t{512} << 10;
inline constexpr std::size_t slot_count = 4;

/// Where a process is, as it says itself; `ended` is what the launcher says.
enum class Presence : std::uint32_t { absent, here, left, ended };

/// What there is of each process.
struct alignas(64) Member {
  /// Counts what others have told this process; it sleeps on that.
  std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleepers;          // its threads that do, or are about to
  alignas(64) std::atomic<std::uint32_t> life;  // counts while the process lives
  std::atomic<Presence> presence;
  std::atomic<std::int32_t> exit_code, signal;  // how it ended, by the launcher
};

/// What a process started, for others to compare with.
struct Signature {
  std::uint64_t operation;  // collective, dtype and combine
  std::int64_t count;
};

/// What there is of each process of a group. A collective is done in pieces, which are counted as
/// long as the group lives; piece `k` is handed over in slot k % slot_count.
struct alignas(4096) Post {
  alignas(64) std::atomic<std::uint64_t> staged;    // pieces that lie here for others
  alignas(64) std::atomic<std::uint64_t> combined;  // pieces of which the result lies here
  alignas(64) std::atomic<std::uint64_t> taken;     // pieces that this process needs no longer
  /// Of the collective that begins with piece k, at k % slot_count.
  alignas(64) std::array<Signature, slot_count> signatures;
  alignas(4096) std::array<std::array<std::byte, slot_bytes>, slot_count> slots;
};

/// A set of ranks.
using RankSet = std::array<std::uint64_t, most_shm_processes / 64>;

/// What the posts of some processes are for: their collectives, or what one of two sends to the
/// other.
enum class PostsFor : std::uint64_t { collectives, up, down };  // the ranks

struct GroupEntry {
  RankSet ranks;
  PostsFor use;
  std::uint64_t posts;  // from the beginning of the memory to the first one's
};

struct Header {
  static constexpr std::uint64_t right_magic = 0x32'6d'68'73'6e'69'65;  // "einshm2"

  std::uint64_t magic;
  std::uint64_t layout;               // of the build: programs of another one cannot take part
  std::uint64_t bytes;                // of the whole memory
  std::int32_t size;                  // processes
  std::int32_t processors;            // that all of them together may use
  std::int32_t launcher;              // its process id
  std::uint32_t launcher_has_lock;    // of this memory
  std::atomic<std::uint32_t> failed;  // 1 + rank of a process that died; 1 + size for the launcher
  /// 1 + rank of the process that changes what follows.
  std::atomic<std::uint32_t> group_lock;
  std::uint64_t used;  // bytes
  std::uint32_t groups;
  std::array<GroupEntry, 1024> entries;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<Presence>::is_always_lock_free);

/// The mapping of that memory in this process.
class SharedMemory {
 public:
  /// Makes it for so many processes; an Error if the system does not give it.
  static SharedMemory make(int size);
  /// What another process has made; an Error if it is no such thing.
  static SharedMemory open(int descriptor);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  /// Closed at the end.
  int descriptor() const { return descriptor_; }
  Header& header() const { return *static_cast<Header*>(address_); }
  int size() const { return header().size; }
  Member& member(int rank) const;
  /// The posts of the group of `ranks`, one of which is `rank`, in their order, for that use; an
  /// Error where there is no room for them, or a process has failed.
  std::vector<Post*> posts_of(std::span<const int> ranks, int rank, PostsFor use) const;

  /// Tells the process that something has changed.
  void ring(int rank) const;
  void ring_all() const;
  /// Sleeps unless process `rank`, this one, has been told something since its bell was `seen`.
  void sleep(int rank, std::uint32_t seen, int milliseconds) const;

  /// From now on all that anybody waits for fails: because of process `rank` or, if that is the
  /// size, of the launcher. The first one counts.
  void has_failed(int rank) const;
  bool launcher_has_ended() const;
  /// What failed, or "".
  std::string failure() const;
  /// "process 2 was ended by signal 9 (Killed)".
  std::string how_ended(int rank) const;

 private:
  SharedMemory(int descriptor, std::size_t bytes);  // which does not own the descriptor yet
  Post* post_at(std::uint64_t offset) const;

  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  void* address_ = nullptr;
};

/// What to do when another process has failed, as the end of a message.
std::string help_for_peers();

}  // namespace ein::mesh
