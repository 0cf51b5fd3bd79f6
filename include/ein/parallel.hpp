// The threads that operations run on.
#pragma once

#include <ein/compiler.hpp>

namespace ein {

/// Number of threads that an operation of the calling thread may use, itself included. At first:
/// the processors that this process may run on.
int num_threads();

/// Sets it for all threads; an Error of kind `value` unless 1 <= threads <= 1024. Operations that
/// are running keep theirs.
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
