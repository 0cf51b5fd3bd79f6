// The threads that operations run on.
#pragma once

#include <ein/compiler.hpp>

namespace ein {

/// Number of threads that an operation of the calling thread may use, itself included. At first:
/// the processors that this process may run on. Where the system starts no more threads, operations
/// run on those that there are, which may be the calling one alone.
int num_threads();

/// Sets it for all threads. Operations that are running keep theirs. An Error of kind `value`
/// unless 1 <= threads <= 1024, of kind `memory` where the system starts fewer: it stays as it was.
void set_num_threads(int threads);

/// A lower number for the thread that makes it, as long as it lives: `ein::ThreadLimit guard(1);`.
/// Where there are several, the lowest holds. An Error of kind `value` unless 1 <= threads <= 1024.
/// Guards of one thread end in the order opposite to that in which they were made.
class [[nodiscard]] ThreadLimit {
 public:
  explicit ThreadLimit(int threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

}  // namespace ein
