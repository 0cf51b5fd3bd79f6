#include "mesh/shared_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "machine/protection.hpp"
#include "machine/system.hpp"
#include "size/ask.hpp"

namespace ein::mesh {
namespace {

/// Groups that each process may be in, on average.
constexpr std::size_t groups_of_process = 32;

/// Of two builds with different layouts these differ.
constexpr std::uint64_t layout = sizeof(Header) ^ sizeof(Member) << 20 ^ sizeof(Post) << 40;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
std::size_t begin_of_members() { return round_up(sizeof(Header), alignof(Member)); }
std::size_t begin_of_posts(int size) {
  return round_up(begin_of_members() + static_cast<std::size_t>(size) * sizeof(Member),
                  alignof(Post));
}

/// What the launcher holds as long as it lives. The system takes it back at the end of the process,
/// also while nobody has waited for that; the processes that it starts do not inherit it.
struct flock lock_of_launcher() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

[[noreturn]] void no_memory(const std::string& what) {
  throw Error(ErrorKind::memory, "shm: " + what + ": " + std::strerror(errno));
}

}  // namespace

SharedMemory::SharedMemory(int descriptor, std::size_t bytes) : bytes_(bytes) {
  address_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address_ == MAP_FAILED) no_memory("the shared memory cannot be mapped");
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      address_(std::exchange(other.address_, nullptr)) {}

SharedMemory::~SharedMemory() {
  if (address_) ::munmap(address_, bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedMemory SharedMemory::make(int size) {
  if (size < 1 || size > most_shm_processes)
    throw Error(ErrorKind::value, "shm: " + std::to_string(size) +
                                      " processes are not between 1 and " +
                                      std::to_string(most_shm_processes));
  const std::size_t head = begin_of_posts(size);
  const std::size_t bytes =
      head + static_cast<std::size_t>(size) * groups_of_process * sizeof(Post);
  const int descriptor = system::create_shared_memory(bytes);
  if (descriptor < 0) no_memory("there is no shared memory");
  if (!system::reserve_shared_memory(descriptor, 0, head)) {
    const int error = errno;
    ::close(descriptor);
    errno = error;
    no_memory("there is no shared memory");
  }
  SharedMemory memory(descriptor, bytes);
  memory.descriptor_ = descriptor;
  Header& header = memory.header();
  header.magic = Header::right_magic;
  header.layout = layout;
  header.bytes = bytes;
  header.size = size;
  header.processors = system::available_processors();
  header.launcher = static_cast<std::int32_t>(::getpid());
  struct flock lock = lock_of_launcher();
  header.launcher_has_lock = ::fcntl(descriptor, F_SETLK, &lock) == 0;
  header.used = head;
  return memory;
}

SharedMemory SharedMemory::open(int descriptor) {
  const auto refuse = [](const std::string& why) {
    throw Error(
        ErrorKind::peer,
        "shm: what EIN_SHM names is no memory of ein launch: " + why +
            "\n  help: start all processes by one ein launch, of the same build as the program");
  };
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) refuse(std::strerror(errno));
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || bytes < sizeof(Header)) refuse("it is something else");
  if (!system::keeps_its_size(descriptor)) refuse("its size could change");
  SharedMemory memory(descriptor, bytes);
  const Header& header = memory.header();
  if (header.magic != Header::right_magic) refuse("it is something else");
  if (header.layout != layout || header.bytes != bytes) refuse("it is of another version of ein");
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);  // what this process starts is no process of the mesh
  memory.descriptor_ = system::beside_streams(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  return memory;
}

Member& SharedMemory::member(int rank) const {
  auto* const members = static_cast<std::byte*>(address_) + begin_of_members();
  return reinterpret_cast<Member*>(members)[rank];
}

Post* SharedMemory::post_at(std::uint64_t offset) const {
  return reinterpret_cast<Post*>(static_cast<std::byte*>(address_) + offset);
}

std::vector<Post*> SharedMemory::posts_of(std::span<const int> ranks, int rank,
                                          PostsFor use) const {
  RankSet set{};
  for (const int r : ranks) set[static_cast<std::size_t>(r) / 64] |= std::uint64_t{1} << (r % 64);
  Header& header = this->header();
  std::uint32_t nobody = 0;
  while (!header.group_lock.compare_exchange_weak(nobody, static_cast<std::uint32_t>(rank) + 1)) {
    nobody = 0;
    if (const std::string failure = this->failure(); !failure.empty())
      throw Error(ErrorKind::peer, "group: " + failure + help_for_peers());
    system::sleep_while(header.failed, 0, 1);
  }
  std::uint64_t begin = 0;
  std::string why_not;
  for (std::uint32_t i = 0; i < header.groups && begin == 0; ++i) {
    const GroupEntry& entry = header.entries[i];
    if (entry.ranks == set && entry.use == use) begin = entry.posts;
  }
  if (begin == 0) {
    const std::uint64_t wanted = ranks.size() * sizeof(Post);
    if (header.groups == header.entries.size() || header.bytes - header.used < wanted) {
      why_not = "there is no room for one more group";
    } else if (!system::reserve_shared_memory(descriptor_, header.used, wanted)) {
      why_not = std::string("there is no memory for one more group: ") + std::strerror(errno);
    } else {
      begin = header.used;
      header.entries[header.groups++] = {set, use, begin};
      header.used += wanted;
    }
  }
  header.group_lock.store(0);
  if (begin == 0) throw Error(ErrorKind::memory, "group: " + why_not);
  std::vector<Post*> posts;
  for (std::size_t i = 0; i < ranks.size(); ++i) posts.push_back(post_at(begin + i * sizeof(Post)));
  return posts;
}

void SharedMemory::ring(int rank) const {
  Member& member = this->member(rank);
  member.bell.fetch_add(1);
  if (member.sleepers.load() > 0) system::wake_sleepers(member.bell);
}

void SharedMemory::ring_all() const {
  for (int rank = 0; rank < size(); ++rank) ring(rank);
}

void SharedMemory::sleep(int rank, std::uint32_t seen, int milliseconds) const {
  Member& member = this->member(rank);
  member.sleepers.fetch_add(1);
  system::sleep_while(member.bell, seen, milliseconds);
  member.sleepers.fetch_sub(1);
}

void SharedMemory::has_failed(int rank) const {
  std::uint32_t none = 0;
  if (header().failed.compare_exchange_strong(none, static_cast<std::uint32_t>(rank) + 1))
    ring_all();
}

bool SharedMemory::launcher_has_ended() const {
  const std::int32_t launcher = header().launcher;
  if (launcher == ::getpid()) return false;
  struct flock lock = lock_of_launcher();
  if (header().launcher_has_lock && ::fcntl(descriptor_, F_GETLK, &lock) == 0)
    return lock.l_type == F_UNLCK;
  return ::kill(launcher, 0) != 0 && errno == ESRCH;
}

std::string SharedMemory::failure() const {
  const std::uint32_t failed = header().failed;
  return failed == 0 ? "" : how_ended(static_cast<int>(failed) - 1);
}

std::string SharedMemory::how_ended(int rank) const {
  if (rank == size()) return "the launcher of the processes has ended";
  const Member& member = this->member(rank);
  const std::string process = "process " + std::to_string(rank);
  if (member.signal != 0)
    return process + " was ended by signal " + std::to_string(member.signal) + " (" +
           ::strsignal(member.signal) + ")";
  if (member.presence == Presence::left) return process + " has left";
  if (member.presence == Presence::ended)
    return process + " has ended with exit code " + std::to_string(member.exit_code);
  return process + " gives no sign of life";
}

// --- what the launcher has ---

SharedSpace::SharedSpace(int processes)
    : memory_(std::make_unique<SharedMemory>(SharedMemory::make(processes))) {}

SharedSpace::~SharedSpace() = default;

int SharedSpace::descriptor() const { return memory_->descriptor(); }

void SharedSpace::process_has_ended(int rank, int exit_code, int signal) {
  Member& member = memory_->member(rank);
  member.exit_code = exit_code;
  member.signal = signal;
  const bool has_left = member.presence == Presence::left;
  if (!has_left) member.presence = Presence::ended;
  if (signal != 0 || (exit_code != 0 && !has_left)) memory_->has_failed(rank);
  memory_->ring_all();
}

bool SharedSpace::has_silent_process() const {
  const std::uint32_t failed = memory_->header().failed;
  if (failed == 0 || failed > static_cast<std::uint32_t>(memory_->size())) return false;
  return memory_->member(static_cast<int>(failed) - 1).presence == Presence::here;
}

std::string help_for_peers() {
  return "\n  help: what that process wrote last says why; then start all of them again, from the "
         "last checkpoint if there is one";
}

}  // namespace ein::mesh
