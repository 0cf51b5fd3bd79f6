// Processes of Open MPI, which a shell starts.
#pragma once

#include <string>

namespace ein::test {

/// The line that starts `command` as four of them, as root and with more processes than processors.
/// `environment`: "NAME=value ...".
inline std::string mpirun_line(const std::string& environment, const std::string& command) {
  return environment +
         " EIN_MPI='" EIN_MPI_PLUGIN
         "' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
         " OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 '" EIN_MPIRUN
         "' -n 4 " +
         command;
}

}  // namespace ein::test
