#include "machine/system.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <set>
#include <sstream>
#include <system_error>

#include "machine/fork.hpp"
#include "machine/memory_limit.hpp"
#include "machine/protection.hpp"

// EIN_PLAIN_POSIX leaves out what Linux has more, so that what other systems get can be compiled.
#if defined(__linux__) && !defined(EIN_PLAIN_POSIX)
#define EIN_HAS_LINUX 1
#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#else
#define EIN_HAS_LINUX 0
#endif

namespace ein::system {
namespace {

/// Gives a new file its length; -1, with errno, where that fails.
int with_length(int descriptor, std::size_t bytes) {
  descriptor = beside_streams(descriptor);
  if (descriptor < 0 || ::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) return descriptor;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return -1;
}

}  // namespace

int beside_streams(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const bool is_inherited = (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0;
  const int other =
      ::fcntl(descriptor, is_inherited ? F_DUPFD : F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return other;
}

double physical_memory() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

namespace {
/// Bytes of swap, all or what is free of it; 0 where the system does not tell.
double swap(const char* which);
}  // namespace

MemoryLimit memory_limit() {
  MemoryLimit limit{physical_memory() + swap("SwapTotal:"), "this machine has"};
  const double group = control_group_memory("/") + swap("SwapTotal:");
  if (group < limit.bytes) limit = {group, "the control group of this process allows"};
  rlimit addresses{};
  if (::getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY &&
      static_cast<double>(addresses.rlim_cur) < limit.bytes)
    limit = {static_cast<double>(addresses.rlim_cur), "RLIMIT_AS (ulimit -v) allows"};
  return limit;
}

#if EIN_HAS_LINUX

namespace {
/// What is in a file of the system; nothing where it cannot be read. A std::ifstream would let a
/// program inherit it that another thread starts meanwhile.
std::istringstream content_of(const std::string& path) {
  struct Open {
    int descriptor;
    ~Open() {  // also where there is no memory for the text
      if (descriptor >= 0) ::close(descriptor);
    }
  };
  const Open file{beside_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  if (file.descriptor < 0) return std::istringstream();
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(file.descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return std::istringstream(text);
}

/// A line of /proc/meminfo.
double memory_line(std::string_view wanted) {
  std::istringstream file = content_of("/proc/meminfo");
  std::string name, unit;
  for (double kibibytes = 0; file >> name >> kibibytes; std::getline(file, unit)) {
    if (name == wanted) return 1024 * kibibytes;
  }
  return 0;
}

double swap(const char* which) { return memory_line(which); }

/// The least of what a group and those that it is part of say in files of this name, where `mount`
/// has all groups.
double least_in(const std::filesystem::path& mount, std::filesystem::path group, const char* name) {
  double least = std::numeric_limits<double>::infinity();
  for (group = group.relative_path();; group = group.parent_path()) {
    double bytes = 0;
    if (content_of(mount / group / name) >> bytes) least = std::min(least, bytes);
    if (group.empty()) return least;
  }
}

}  // namespace

double available_memory() {
  const double memory = memory_line("MemAvailable:");
  return memory > 0 ? memory + swap("SwapFree:") : 0;
}

double control_group_memory(const std::string& root) {
  // Lines such as "4:memory:/a/b" of version 1, "0::/a/b" of version 2.
  std::istringstream groups = content_of(root + "/proc/self/cgroup");
  const std::string mounts = root + "/sys/fs/cgroup";
  double least = std::numeric_limits<double>::infinity();
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") least = std::min(least, least_in(mounts, group, "memory.max"));
    if (controllers.find(",memory,") != line.npos)
      least = std::min(least, least_in(mounts + "/memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

std::string processor_model() {
  std::istringstream file = content_of("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string boot_id() {
  std::string id;
  content_of("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

bool exchange_names(int directory, const std::string& one, const std::string& other) {
  constexpr unsigned exchange = 2;  // RENAME_EXCHANGE of <linux/fs.h>
  return ::syscall(SYS_renameat2, directory, one.c_str(), directory, other.c_str(), exchange) == 0;
}

int cores() {
  std::istringstream file = content_of("/proc/cpuinfo");
  std::set<std::string> cores;
  std::string package;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("physical id")) package = line;
    if (line.starts_with("core id")) cores.insert(package + line);
  }
  return static_cast<int>(cores.size());
}

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return 1;
}

std::vector<int> processors() {
  cpu_set_t set;
  std::vector<int> numbers;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return numbers;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) numbers.push_back(i);
  }
  return numbers;
}

void run_on(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

namespace {

/// "48K" as 49152; 0 for what is no such text.
std::int64_t bytes_of(const std::string& text) {
  std::size_t end = 0;
  std::int64_t bytes = 0;
  for (; end < text.size() && end < 9 && std::isdigit(static_cast<unsigned char>(text[end])); ++end)
    bytes = 10 * bytes + (text[end] - '0');
  const std::string unit = text.substr(end);
  return unit == "K" ? bytes << 10 : unit == "M" ? bytes << 20 : unit.empty() ? bytes : 0;
}

std::vector<Cache> find_caches_in_sysfs() {
  std::vector<Cache> caches;
  for (int i = 0;; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    std::string type, size;
    int level = 0;
    std::int64_t ways = 0;
    if (!(content_of(folder + "level") >> level)) return caches;
    if (!(content_of(folder + "type") >> type) || type == "Instruction") continue;
    if (!(content_of(folder + "size") >> size) || bytes_of(size) == 0) continue;
    content_of(folder + "ways_of_associativity") >> ways;
    caches.push_back({level, bytes_of(size), std::max<std::int64_t>(ways, 0)});
  }
}

/// Where /sys is not mounted. 0 or -1 of sysconf is "not known".
std::vector<Cache> find_caches_by_sysconf() {
  std::vector<Cache> caches;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  constexpr int names[][2] = {{_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL1_DCACHE_ASSOC},
                              {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL2_CACHE_ASSOC},
                              {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL3_CACHE_ASSOC}};
  int level = 0;
  for (const auto& [size, associativity] : names) {
    ++level;
    const std::int64_t bytes = ::sysconf(size), ways = ::sysconf(associativity);
    if (bytes > 0) caches.push_back({level, bytes, std::max<std::int64_t>(ways, 0)});
  }
#endif
  return caches;
}

std::vector<Cache> find_caches() {
  std::vector<Cache> caches = find_caches_in_sysfs();
  return caches.empty() ? find_caches_by_sysconf() : caches;
}

}  // namespace

bool allow_tiles() {
#if defined(__x86_64__)
  // From <asm/prctl.h> of Linux 5.16; the number of the tiles' state is the processor's.
  constexpr int request_state = 0x1023, tiles = 18;
  return ::syscall(SYS_arch_prctl, request_state, tiles) == 0;
#else
  return false;
#endif
}

namespace {
/// Who reads memory whose file has become shorter is ended by SIGBUS.
constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
}  // namespace

void prefer_large_pages(void* begin, std::size_t bytes) { ::madvise(begin, bytes, MADV_HUGEPAGE); }

int create_shared_memory(std::size_t bytes) {
  const int descriptor = with_length(::memfd_create("ein", MFD_ALLOW_SEALING), bytes);
  if (descriptor < 0 || ::fcntl(descriptor, F_ADD_SEALS, size_seals | F_SEAL_SEAL) == 0)
    return descriptor;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return -1;
}

bool keeps_its_size(int descriptor) {
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  return seals >= 0 && (seals & size_seals) == size_seals;
}

bool reserve_shared_memory(int descriptor, std::size_t begin, std::size_t bytes) {
  errno = ::posix_fallocate(descriptor, static_cast<off_t>(begin), static_cast<off_t>(bytes));
  return errno == 0;
}

namespace {
long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  static_assert(sizeof word == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}
}  // namespace

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, int milliseconds) {
  const timespec timeout{milliseconds / 1000, milliseconds % 1000 * 1000000L};
  futex(word, FUTEX_WAIT, value, &timeout);
}

void wake_sleepers(const std::atomic<std::uint32_t>& word) {
  futex(word, FUTEX_WAKE, 0x7fffffff, nullptr);
}

bool has_more_rights() { return ::getauxval(AT_SECURE) != 0; }

std::string own_file() {
  namespace fs = std::filesystem;
  Dl_info info{};
  std::error_code error;
  if (::dladdr(reinterpret_cast<const void*>(&own_file), &info) == 0 || !info.dli_fname) return "";
  // Of a program this is how it was called, maybe by a name that a shell looked up.
  const std::string called = info.dli_fname;
  const bool is_path = called.find('/') != std::string::npos && fs::exists(called, error);
  return fs::canonical(is_path ? called : "/proc/self/exe", error);
}

#else

namespace {
double swap(const char*) { return 0; }
}  // namespace

double available_memory() { return 0; }

double control_group_memory(const std::string&) { return std::numeric_limits<double>::infinity(); }

std::string processor_model() { return "unknown processor"; }

std::string boot_id() { return ""; }

bool exchange_names(int, const std::string&, const std::string&) {
  errno = ENOSYS;
  return false;
}

int cores() { return 0; }

int available_processors() {
  return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::vector<int> processors() { return {}; }

void run_on(const std::vector<int>&) {}

namespace {
std::vector<Cache> find_caches() { return {}; }
}  // namespace

bool allow_tiles() { return false; }

void prefer_large_pages(void*, std::size_t) {}

namespace {
std::uint64_t random_number() {
  std::uint64_t number = 0;
  const int descriptor = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const bool is_read = descriptor >= 0 && ::read(descriptor, &number, sizeof number) > 0;
  if (descriptor >= 0) ::close(descriptor);
  timespec now{};
  if (!is_read && ::clock_gettime(CLOCK_MONOTONIC, &now) == 0)
    number = static_cast<std::uint64_t>(now.tv_nsec) << 32 ^ static_cast<std::uint64_t>(::getpid());
  return number;
}
}  // namespace

bool keeps_its_size(int) { return true; }

int create_shared_memory(std::size_t bytes) {
  // A name for as long as it takes to open it, which others cannot have taken before.
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "/ein-" + std::to_string(random_number());
    const int descriptor = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return -1;
    ::shm_unlink(name.c_str());
    ::fcntl(descriptor, F_SETFD, 0);  // inherited
    return with_length(descriptor, bytes);
  }
  return -1;
}

bool reserve_shared_memory(int, std::size_t, std::size_t) { return true; }

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, int milliseconds) {
  if (word != value) return;
  const timespec moment{0, std::min(milliseconds, 1) * 200000L};
  ::nanosleep(&moment, nullptr);
}

void wake_sleepers(const std::atomic<std::uint32_t>&) {}

bool has_more_rights() { return ::geteuid() != ::getuid() || ::getegid() != ::getgid(); }

std::string own_file() { return ""; }

#endif

const std::vector<Cache>& data_caches() {
  return made_once([] { return find_caches(); });
}

std::int64_t cache_bytes(int level) {
  for (const Cache& cache : data_caches()) {
    if (cache.level == level) return cache.bytes;
  }
  return 0;
}

}  // namespace ein::system
