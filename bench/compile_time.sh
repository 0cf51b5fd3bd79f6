#!/usr/bin/env bash
# What ein costs a compiler: seconds to compile `#include <ein/ein.hpp>` alone, with 100 different
# literal patterns, and with 100 calls, in five functions of ten different ones each twice, on plain
# tensors and on typed ones; always -std=c++20 -O0. Each is the median of 5 runs, of the clock and of
# the processor's time.
# usage: bench/compile_time.sh [compiler]                  default: g++
#        bench/compile_time.sh --beside COMMIT [compiler]  the headers of another commit too
# Beside another commit the two are compiled by turns, 9 times each. What is printed is the least of
# the user's times, which other work on the machine lengthens the least, and their ratio.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

beside=
if [[ ${1:-} == --beside ]]; then
  beside=${2:?--beside takes a commit}
  shift 2
fi
compiler=${1:-g++}

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

# calls TYPE...: the calls, of tensors whose types are TYPE<axes>, or TYPE alone where it is ein::Tensor.
calls() {
  local type=$1 i k
  typed() { if [[ $type == ein::Tensor ]]; then echo "$type"; else echo "$type<\"$1\">"; fi; }
  include
  for i in {1..5}; do
    printf 'void run%d(const %s& x, const %s& bias, const %s& up, const %s& down) {\n' "$i" \
      "$(typed "b$i seq hidden$i")" "$(typed "hidden$i")" "$(typed "hidden$i wide$i")" \
      "$(typed "wide$i hidden$i")"
    for k in 1 2; do
      printf '  const auto shifted%d = x + bias;\n' "$k"
      printf '  const auto normed%d = ein::layer_norm(shifted%d, "b s [h]");\n' "$k" "$k"
      printf '  const auto wide%d = ein::einsum<"b s h, h w -> b s w">(normed%d, up);\n' "$k" "$k"
      printf '  const auto curved%d = ein::gelu(wide%d);\n' "$k" "$k"
      printf '  const auto back%d = ein::einsum<"b s w, w h -> b s h">(curved%d, down);\n' "$k" "$k"
      printf '  const auto sum%d = x + back%d;\n' "$k" "$k"
      printf '  const auto shares%d = ein::softmax(sum%d, "b s [h]");\n' "$k" "$k"
      printf '  const auto turned%d = ein::rearrange<"b s h -> s b h">(shares%d);\n' "$k" "$k"
      printf '  const auto scaled%d = sum%d * 2.0;\n' "$k" "$k"
      printf '  const auto most%d = ein::reduce<"b s h -> b s">(scaled%d, "max");\n' "$k" "$k"
    done
    printf '}\n'
  done
}
calls ein::Tensor >"$scratch/plain.cpp"
calls ein::Float >"$scratch/typed.cpp"

# Compiles a file with the headers of a checkout: real, user's and system's seconds.
TIMEFORMAT='%R %U %S'
seconds() {
  { time "$compiler" -std=c++20 -O0 -I "$2/include" -I "$2/grammar" -c -o /dev/null "$1" 2>&3; } 3>&2 2>&1
}

measure() {
  for _ in 1 2 3 4 5; do seconds "$1" "$root"; done | awk '{print $1, $2 + $3}' >"$scratch/times"
  local clock processor
  clock=$(sort -n "$scratch/times" | awk 'NR == 3 {print $1}')
  processor=$(sort -n -k2,2 "$scratch/times" | awk 'NR == 3 {print $2}')
  printf '%-34s %.2f s   processor %.2f s\n' "$2" "$clock" "$processor"
}

compare() {
  for _ in {1..9}; do
    for checkout in "$scratch/other" "$root"; do seconds "$1" "$checkout"; done | awk '{print $2}' | paste -s
  done | awk -v what="$2" '
    NR == 1 || $1 < old {old = $1}
    NR == 1 || $2 < new {new = $2}
    END {printf "%-34s user %.2f s   before %.2f s   ratio %.2f\n", what, new, old, new / old}'
}

"$compiler" --version | head -n 1
if [[ $beside ]]; then
  mkdir "$scratch/other"  # without what `git worktree` would leave if this is stopped
  git -C "$root" archive "$beside" include grammar | tar -x -C "$scratch/other"
  act=compare
else
  act=measure
fi
"$act" "$scratch/include.cpp" '#include <ein/ein.hpp>'
"$act" "$scratch/patterns.cpp" 'and 100 different literal patterns'
"$act" "$scratch/plain.cpp" 'and 100 calls on plain tensors'
"$act" "$scratch/typed.cpp" 'and the same on typed tensors'
