// loop: the processes of a mesh as threads of one process. Every program runs so too, and gives the
// bits that it gives over shm.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "mesh/transport.hpp"

namespace ein::mesh {

class Loop {
 public:
  explicit Loop(int processes);
  ~Loop();

  int size() const { return static_cast<int>(ends_.size()); }
  Transport& end(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }

  /// One call after the other: f(rank) for each process, each on a thread, those of the first on
  /// this one. Returns when all are done. What one throws ends the others where they wait for it,
  /// and is thrown here.
  void run(const std::function<void(int)>& f);
  /// What was sent and not received is gone.
  void forget_messages();

 private:
  struct Meetings;
  class End;
  class EndOfGroup;

  std::mutex running_;
  std::shared_ptr<Meetings> meetings_;
  std::vector<std::unique_ptr<Transport>> ends_;
};

}  // namespace ein::mesh
