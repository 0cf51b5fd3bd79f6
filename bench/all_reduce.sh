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
  # Of the rounds: the median of medians, and the least time.
  function median(key,    n, i, j, swapped) {
    n = count[key]
    for (i = 1; i <= n; ++i)
      for (j = i + 1; j <= n; ++j)
        if (times[key, j] < times[key, i]) {
          swapped = times[key, i]; times[key, i] = times[key, j]; times[key, j] = swapped
        }
    return times[key, int((n + 1) / 2)]
  }
  {
    key = $1 " " $2
    times[key, ++count[key]] = $3
    if (count[key] == 1 || $4 < least[key]) least[key] = $4
    if ($1 == "shm" && count[key] == 1) sizes[++n] = $2
  }
  END {
    printf "%d processes, %d rounds in turns; microseconds\n", processes, rounds
    printf "%10s %27s   %27s\n", "", "median", "least"
    printf "%10s %10s %10s %6s  %10s %10s %6s\n", "bytes", "shm", "MPI", "ratio", "shm", "MPI", "ratio"
    for (i = 1; i <= n; ++i) {
      shm = "shm " sizes[i]
      mpi = "mpi " sizes[i]
      printf "%10d %10.1f %10.1f %6.2f  %10.1f %10.1f %6.2f\n", sizes[i], median(shm), median(mpi),
             median(mpi) / median(shm), least[shm], least[mpi], least[mpi] / least[shm]
    }
  }'
