// All-reduce by MPI, without ein: mpirun -n 2 ein_mpi_all_reduce_bench
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "times.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  print_times(
      rank == 0, [] { MPI_Barrier(MPI_COMM_WORLD); },
      [](const float* from, float* to, std::int64_t count) {
        MPI_Allreduce(from, to, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      });
  MPI_Finalize();
}
