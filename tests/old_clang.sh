#!/bin/sh
# A compiler that is too old for the headers says just that of each of them.
# usage: old_clang.sh <compiler> <flag>... -- <header>...
command=
while [ "$1" != -- ]; do
  command="$command $1"
  shift
done
shift
# What they read of the standard library, once: it takes longer than all else.
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
root=$(dirname "$0")/..
find "$root/include" "$root/grammar" -name '*.hpp' -exec sed -n 's/^#include <[a-z_]*>$/&/p' {} + | sort -u > "$scratch/standard.hpp"
$command -std=c++20 -x c++-header "$scratch/standard.hpp" -o "$scratch/standard.pch" || exit 1
status=0
for header; do
  output=$(echo "#include <$header>" | LC_ALL=C $command -std=c++20 -include-pch "$scratch/standard.pch" -fsyntax-only -x c++ - 2>&1)
  errors=$(printf '%s\n' "$output" | grep -c 'error:')
  case "$errors $output" in
    "1 "*'fatal error: "ein needs Clang 16'*) ;;
    *)
      printf '%s: %s errors\n%s\n' "$header" "$errors" "$(printf '%s\n' "$output" | head -n 8)"
      status=1 ;;
  esac
done
exit $status
