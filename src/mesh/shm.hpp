// shm: processes of one machine, which exchange values through memory that all of them have.
#pragma once

#include <cstddef>
#include <memory>

#include "mesh/transport.hpp"

namespace ein::mesh {

class SharedMemory;

/// As many processes of one machine may share memory.
inline constexpr int most_shm_processes = 256;

/// For how many seconds a process waits for others that live: until they open the transport, and
/// until they take part in a collective that it has started.
struct ShmPatience {
  int to_come = 60;
  int to_take_part = 1800;
};

/// The memory of `processes` processes, made by the one that starts them. Programs that it starts
/// inherit the descriptor, and it tells the others how one has ended. The memory is given back when
/// all of them have ended, however they do.
class SharedSpace {
 public:
  /// An Error of kind `value` for a number of processes that is none, `memory` where the system
  /// gives none.
  explicit SharedSpace(int processes);
  ~SharedSpace();
  SharedSpace(const SharedSpace&) = delete;
  SharedSpace& operator=(const SharedSpace&) = delete;

  int descriptor() const;
  /// Process `rank` has ended: with that exit code or, unless it is 0, by that signal. What the
  /// others wait for because of it fails at once.
  void process_has_ended(int rank, int exit_code, int signal);
  /// Whether the others have found that one of them gives no sign of life.
  bool has_silent_process() const;

 private:
  std::unique_ptr<SharedMemory> memory_;
};

/// The transport of the process that `ein launch` started: EIN_RANK, EIN_SIZE and EIN_SHM in the
/// environment say which it is (docs/mesh.md). Returns when all processes have come so far. An
/// Error of kind `peer` if one of them does not in time, or if this process was not started so;
/// `value` for variables that are not right. EIN_SHM_WAIT and EIN_SHM_TIMEOUT are its patience.
std::unique_ptr<Transport> open_shm();
/// The same, of process `rank` of the `size` that share the memory behind `descriptor`.
std::unique_ptr<Transport> open_shm(int descriptor, int rank, int size, ShmPatience patience = {});

}  // namespace ein::mesh
