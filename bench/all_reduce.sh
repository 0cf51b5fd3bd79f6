#!/bin/sh
# All-reduce of f32 over shared memory beside MPI's on the same machine, in turns.
# usage: bench/all_reduce.sh [PROCESSES] [ROUNDS]
# It runs what `cmake --preset release -D EIN_BENCH=ON` and a build make, where CMake found MPI.
set -eu
cd "$(dirname "$0")/.."
processes=${1:-2}
rounds=${2:-5}
build=${EIN_BUILD:-build}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

i=0
while [ "$i" -lt "$rounds" ]; do
  "$build/tools/ein" launch -n "$processes" -- "$build/bench/ein_all_reduce_bench" | sed 's/^/shm /'
  mpirun -n "$processes" "$build/bench/ein_mpi_all_reduce_bench" | sed 's/^/mpi /'
  i=$((i + 1))
done | awk -v processes="$processes" -v rounds="$rounds" '
  # Medians of the rounds.
  function median(key, n,    i, j, swapped) {
    for (i = 1; i <= n; ++i)
      for (j = i + 1; j <= n; ++j)
        if (times[key, j] < times[key, i]) {
          swapped = times[key, i]; times[key, i] = times[key, j]; times[key, j] = swapped
        }
    return times[key, int((n + 1) / 2)]
  }
  { key = $1 " " $2; times[key, ++count[key]] = $3; if ($1 == "shm" && count[key] == 1) sizes[++n] = $2 }
  END {
    printf "%d processes, medians of %d rounds in turns\n", processes, rounds
    printf "%12s %14s %14s %8s\n", "bytes", "shm, us", "MPI, us", "ratio"
    for (i = 1; i <= n; ++i) {
      shm = median("shm " sizes[i], count["shm " sizes[i]])
      mpi = median("mpi " sizes[i], count["mpi " sizes[i]])
      printf "%12d %14.1f %14.1f %8.2f\n", sizes[i], shm, mpi, mpi / shm
    }
  }'
