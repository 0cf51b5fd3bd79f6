#!/bin/sh
# Looks for what must not lie behind ein's public headers.
# usage: no_eigen.sh <include folder> <compiler> <flag>...
include=$1
shift

# The heavy headers among all that a header includes.
heavy() {
  all=$("$@") || exit 2
  printf '%s\n' "$all" | tr ' ' '\n' | grep -E '/(Eigen/.*|cuda.*|iostream|regex|format)$'
}

failures=0
for header in "$include"/ein/*.hpp; do
  found=$(heavy "$@" -M -x c++ "$header")
  case $?:$header in
    0:*/eigen*.hpp) ;;  # made for Eigen
    1:*/eigen*.hpp) echo "$header includes no Eigen: this test finds nothing"; failures=1 ;;
    0:*) echo "$header includes" $found; failures=1 ;;
    2:*) failures=1 ;;
  esac
done
exit $failures
