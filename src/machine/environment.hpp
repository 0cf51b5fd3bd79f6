// The variables of the environment that ein reads. Nothing else of it is read
// (tests/machine/environment_test.cpp); docs/environment.md is the same list for people.
#pragma once

#include <string>
#include <string_view>

#include "machine/protection.hpp"

namespace ein {

/// What a variable holds: words and numbers; the path of a file for ein; a folder for all programs.
enum class Holds { words, path, folder };

/// EIN_VARIABLE(enumerator, name, Holds, what it may be, what holds without it, who reads it).
#define EIN_FOR_EACH_VARIABLE(EIN_VARIABLE)                                                        \
  EIN_VARIABLE(isa, "EIN_ISA", words, "an instruction set that the processor has: `v3`",           \
               "the best of them", "src/machine/processor.cpp")                                    \
  EIN_VARIABLE(caches, "EIN_CACHES", words,                                                        \
               "sizes of caches, the first level first: `32K,512K,16M`", "those of the processor", \
               "src/machine/cache.cpp")                                                            \
  EIN_VARIABLE(products, "EIN_PRODUCTS", words, "`eigen`: matrix products by Eigen",               \
               "by ein's own kernels", "src/cpu/gemm.cpp")                                         \
  EIN_VARIABLE(verify, "EIN_VERIFY", words, "anything: what each pass makes is verified",          \
               "verified in debug builds alone", "src/graph/after_pass.cpp")                       \
  EIN_VARIABLE(print, "EIN_PRINT", words,                                                          \
               "names of passes, with commas between: what they make is printed; or `all`",        \
               "nothing is printed", "src/graph/after_pass.cpp")                                   \
  EIN_VARIABLE(rank, "EIN_RANK", words, "which process of the mesh this is; set by `ein launch`",  \
               "this process is none of a mesh", "src/mesh/shm.cpp, src/cuda/driver.cpp")          \
  EIN_VARIABLE(size, "EIN_SIZE", words, "how many processes there are; set by `ein launch`",       \
               "this process is none of a mesh", "src/mesh/shm.cpp, src/cuda/driver.cpp")          \
  EIN_VARIABLE(shm, "EIN_SHM", words,                                                              \
               "the descriptor of the memory that they share; set by `ein launch`",                \
               "this process is none of a mesh", "src/mesh/shm.cpp, src/runtime/mesh.cpp")         \
  EIN_VARIABLE(shm_wait, "EIN_SHM_WAIT", words,                                                    \
               "seconds to wait until all processes have opened the transport", "60",              \
               "src/mesh/shm.cpp")                                                                 \
  EIN_VARIABLE(shm_timeout, "EIN_SHM_TIMEOUT", words,                                              \
               "seconds to wait for processes that live in a collective", "1800",                  \
               "src/mesh/shm.cpp")                                                                 \
  EIN_VARIABLE(mpi, "EIN_MPI", path, "`libein_mpi.so`",                                            \
               "beside ein's library or command, then where the loader looks", "src/mesh/mpi.cpp") \
  EIN_VARIABLE(open_mpi_size, "OMPI_COMM_WORLD_SIZE", words, "set by `mpirun` of Open MPI",        \
               "`mpirun` of Open MPI did not start this", "src/runtime/mesh.cpp")                  \
  EIN_VARIABLE(pmi_size, "PMI_SIZE", words, "set by `mpirun` of MPICH",                            \
               "`mpirun` of MPICH did not start this", "src/runtime/mesh.cpp")                     \
  EIN_VARIABLE(open_mpi_local_rank, "OMPI_COMM_WORLD_LOCAL_RANK", words,                           \
               "set by Open MPI: which process of this machine, so which GPU", "the first GPU",    \
               "src/cuda/driver.cpp")                                                              \
  EIN_VARIABLE(open_mpi_local_size, "OMPI_COMM_WORLD_LOCAL_SIZE", words,                           \
               "set by Open MPI: how many processes this machine has", "the first GPU",            \
               "src/cuda/driver.cpp")                                                              \
  EIN_VARIABLE(mpi_local_rank, "MPI_LOCALRANKID", words, "the same, set by MPICH",                 \
               "the first GPU", "src/cuda/driver.cpp")                                             \
  EIN_VARIABLE(mpi_local_size, "MPI_LOCALNRANKS", words, "the same, set by MPICH",                 \
               "the first GPU", "src/cuda/driver.cpp")                                             \
  EIN_VARIABLE(cuda_driver, "EIN_CUDA_DRIVER", path, "`libcuda.so.1`", "where the loader looks",   \
               "src/cuda/driver.cpp")                                                              \
  EIN_VARIABLE(nvrtc, "EIN_NVRTC", path, "`libnvrtc.so`",                                          \
               "where the loader looks, then `$CUDA_HOME/lib64` and `/usr/local/cuda/lib64`",      \
               "src/cuda/nvrtc.cpp")                                                               \
  EIN_VARIABLE(cuda_home, "CUDA_HOME", folder, "CUDA's toolkit", "`/usr/local/cuda`",              \
               "src/cuda/nvrtc.cpp")                                                               \
  EIN_VARIABLE(nccl, "EIN_NCCL", path, "`libnccl.so.2`", "where the loader looks",                 \
               "src/cuda/nccl.cpp")                                                                \
  EIN_VARIABLE(tune, "EIN_TUNE", words, "`1`: products on a GPU are timed with several tiles",     \
               "tiles by size", "src/cuda/settings.hpp")                                           \
  EIN_VARIABLE(cache, "XDG_CACHE_HOME", folder, "where programs keep what they can make again",    \
               "`$HOME/.cache`", "src/io/private_directory.cpp")                                   \
  EIN_VARIABLE(home, "HOME", folder, "the user's folder", "nothing is kept",                       \
               "src/io/private_directory.cpp")

#define EIN_ENUMERATOR(variable, ...) variable,
enum class Variable { EIN_FOR_EACH_VARIABLE(EIN_ENUMERATOR) };
#undef EIN_ENUMERATOR

/// "EIN_ISA".
std::string_view name(Variable variable);

/// What it is set to; empty where it is not set. A program that has more rights than its caller
/// (setuid) reads none: libraries, folders and descriptors are not for the caller to choose.
/// A path begins with "/": another is an Error of kind `value`, another folder counts as not set.
std::string environment(Variable variable, bool has_more_rights = system::has_more_rights());

}  // namespace ein
