#!/usr/bin/env bash
# What ein costs a compiler: seconds to compile `#include <ein/ein.hpp>` alone, and with 100 different
# literal patterns. Each is the median of 5 runs, of the clock and of the processor's time.
# usage: bench/compile_time.sh [compiler]        default: g++; always -std=c++20 -O0
set -euo pipefail

compiler=${1:-g++}
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

include() { printf '#include <ein/ein.hpp>\nusing namespace ein::literals;\n'; }
include >"$scratch/include.cpp"
{
  include
  printf 'void run(const ein::Tensor& x, const ein::Tensor& y) {\n'
  for i in {1..25}; do
    printf '  ein::einsum(x, y, "b%d s1 h, b%d s2 h -> b%d s1 s2");\n' "$i" "$i" "$i"
    printf '  ein::rearrange(x, "b s (h d%d) -> b h s d%d", "h"_a = 8);\n' "$i" "$i"
    printf '  ein::reduce(x, "b c%d (h 2) (w 2) -> b c%d h w", "max");\n' "$i" "$i"
    printf '  ein::repeat(x, "... h w%d -> ... h (w%d k)", "k"_a = 2);\n' "$i" "$i"
  done
  printf '}\n'
} >"$scratch/patterns.cpp"

TIMEFORMAT='%R %U %S'
measure() {
  for _ in 1 2 3 4 5; do
    { time "$compiler" -std=c++20 -O0 -I "$root/include" -I "$root/grammar" -c -o /dev/null "$1" 2>&3; } 3>&2 2>&1
  done | awk '{print $1, $2 + $3}' >"$scratch/times"
  local clock processor
  clock=$(sort -n "$scratch/times" | awk 'NR == 3 {print $1}')
  processor=$(sort -n -k2,2 "$scratch/times" | awk 'NR == 3 {print $2}')
  printf '%-34s %.2f s   processor %.2f s\n' "$2" "$clock" "$processor"
}

"$compiler" --version | head -n 1
measure "$scratch/include.cpp" '#include <ein/ein.hpp>'
measure "$scratch/patterns.cpp" 'and 100 different literal patterns'
