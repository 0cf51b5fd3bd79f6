// What the operating system tells of the machine, and what is asked of it that POSIX lacks. A port
// to another system is a branch of system.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ein::system {

/// "AMD EPYC 9R45", or "unknown processor".
std::string processor_model();
/// The cores, not counting hardware threads; 0 where the system does not tell.
int cores();
/// How many processors this process may use, at least 1.
int available_processors();
/// The numbers of those processors; empty where the system does not tell.
std::vector<int> processors();
/// From now on this thread, and what it starts, runs on these alone. No more than a wish.
void run_on(const std::vector<int>& processors);
/// Bytes of memory.
double physical_memory();
/// What tells this start of the machine from others, and from those of other machines; empty where
/// the system does not tell.
std::string boot_id();
/// Lets two names in an open directory change places, at once; false, with errno, where the system
/// or the file system cannot.
bool exchange_names(int directory, const std::string& one, const std::string& other);

/// A cache that the first processor reads data through.
struct Cache {
  int level;
  std::int64_t bytes;
  std::int64_t ways;  // lines that may lie in one set of it; 0 where the system does not tell
};
/// From the first level on; empty where the system does not tell.
const std::vector<Cache>& data_caches();
/// Bytes of the cache of that level; 0 where the system does not tell.
std::int64_t cache_bytes(int level);

/// Whether this process may use AMX's registers of tiles, which it asks for.
bool allow_tiles();

/// The whole path of the library or program that this code is in; empty where the system does not
/// tell.
std::string own_file();

/// Asks for large pages from an address that is a multiple of one on. No more than a wish.
void prefer_large_pages(void* begin, std::size_t bytes);

/// The same file under a descriptor that is none of the standard streams: one that gets the place
/// of a stream that is closed would receive what the program prints. As it was, a program that is
/// started inherits it or does not. -1 stays so; -1, with errno, where there are no descriptors
/// left.
int beside_streams(int descriptor);

/// The descriptor of a file of zeros that has no name, for processes to share: programs started
/// from here inherit it, and its memory is given back with its last user. -1, with errno, where the
/// system gives none.
int create_shared_memory(std::size_t bytes);
/// Makes sure that there is memory for a part of that file; false, with errno, where there is none.
/// Without it, writing to memory that the machine lacks ends the process.
bool reserve_shared_memory(int descriptor, std::size_t begin, std::size_t bytes);

/// Sleeps while `word`, which may be in memory of several processes, is `value`: until
/// wake_sleepers(word), for at most so long, or for a shorter time.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, int milliseconds);
/// Wakes all who sleep on that word, in every process.
void wake_sleepers(const std::atomic<std::uint32_t>& word);

}  // namespace ein::system
