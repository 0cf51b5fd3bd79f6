// mpi: processes that an MPI library connects, on one machine or many.
#pragma once

#include <memory>

#include "mesh/transport.hpp"

namespace ein::mesh {

/// The transport of a process that `mpirun` or a batch system started. It is a library of its own,
/// libein_mpi.so, which is built where CMake finds MPI and opened here: EIN_MPI in the environment
/// names it, or else it is looked for where the loader looks. An Error of
/// kind `peer` that says what to install if it is not there.
///
/// MPI chooses the order in which it combines, so the last bits of sums and products of floats of
/// more than two processes may differ from those of shm. Floats narrower than f32 are rounded after
/// every combination. MPI moves collectives on while one is waited for or started.
std::unique_ptr<Transport> open_mpi();

}  // namespace ein::mesh
