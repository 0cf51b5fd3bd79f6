// What a child of fork() leaves to its parent: files, locks, a place among other processes.
#pragma once

#include "machine/fork.hpp"

namespace ein {

/// A member of what a process owns beside its memory. A child of fork() gets a copy, whose
/// destructor is not to remove, unlock or end what is the parent's.
class OwningProcess {
 public:
  /// Whether this process made the owner, and not a parent of it.
  bool is_this() const { return generation_ == fork_generation(); }

 private:
  unsigned generation_ = fork_generation();
};

}  // namespace ein
