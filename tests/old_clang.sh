#!/bin/sh
# A compiler that is too old for the headers says just that of each of them.
# usage: old_clang.sh <compiler> <flag>... -- <header>...
command=
while [ "$1" != -- ]; do
  command="$command $1"
  shift
done
shift
status=0
for header; do
  output=$(echo "#include <$header>" | LC_ALL=C $command -std=c++20 -fsyntax-only -x c++ - 2>&1)
  errors=$(printf '%s\n' "$output" | grep -c 'error:')
  case "$errors $output" in
    "1 "*'fatal error: "ein needs Clang 16'*) ;;
    *)
      printf '%s: %s errors\n%s\n' "$header" "$errors" "$(printf '%s\n' "$output" | head -n 8)"
      status=1 ;;
  esac
done
exit $status
