// What libein_mpi.so offers: MPI behind functions that are the same for every MPI library. Codes
// are 0 or an error of MPI; `dtype` is a DType, `combine` a Combine, `collective` a Collective.
#pragma once

#include <cstdint>

extern "C" {

struct EinMpiFunctions {
  std::int32_t version;  // ein_mpi_version of the plug-in
  /// Starts MPI unless the program has. Where this process is.
  int (*start)(std::int32_t* rank, std::int32_t* size);
  /// Ends MPI if `start` has started it.
  int (*stop)();
  /// The group of these processes; all of them call it.
  int (*make_group)(const std::int32_t* ranks, std::int32_t count, void** group);
  int (*end_group)(void* group);
  /// Starts a collective; null where there is no such operation.
  int (*begin)(void* group, std::int32_t collective, const void* from, void* to, std::int32_t count,
               std::int32_t dtype, std::int32_t combine, void** request);
  /// Starts a send to the process at place `to` of the group, or a receipt from one.
  int (*send)(void* group, const void* from, std::int32_t count, std::int32_t dtype,
              std::int32_t to, void** request);
  int (*receive)(void* group, void* to, std::int32_t count, std::int32_t dtype, std::int32_t from,
                 void** request);
  /// Whether it is done; then the request is gone.
  int (*test)(void* request, std::int32_t* is_done);
  /// The text of an error, in room for 512 characters.
  void (*explain)(int code, char* text);
};
inline constexpr std::int32_t ein_mpi_version = 2;

/// The one function that is looked for: "ein_mpi_functions".
const EinMpiFunctions* ein_mpi_functions();
}
