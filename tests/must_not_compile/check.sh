#!/bin/sh
# Compiles a program of this folder with its mistake in it.
# usage: check.sh <program> <compiler> <flag>...
#
# The compiler must refuse it and, in the first 12 lines that it prints, say the words of the program's
# first lines (`// expect: words`) and name a line between `#ifdef MISTAKE` and `#else`.
program=$1
shift
expected=$(sed -n '/^\/\/ expect: /!q; s|^// expect: ||p' "$program")
[ -n "$expected" ] || { echo "$program has no first line '// expect: ...'"; exit 1; }

if output=$(LC_ALL=C "$@" -fsyntax-only -DMISTAKE "$program" 2>&1); then
  echo "$program compiles with its mistake"
  exit 1
fi
# The line that tells of the precompiled header is not there for users.
top=$(printf '%s\n' "$output" | grep -vxF "In file included from $program:1:" | head -n 12)
printf '%s\n' "$top"
while IFS= read -r words; do
  case $top in
    *"$words"*) ;;
    *) echo "$program: '$words' is not in the first 12 lines"; exit 1 ;;
  esac
done <<EOF
$expected
EOF
for line in $(awk '/^#ifdef MISTAKE/ {wrong = 1; next} /^#else/ {exit} wrong {print NR}' "$program"); do
  case $top in
    *"$program:$line:"*) exit 0 ;;
  esac
done
echo "$program: the line of the mistake is not in the first 12 lines"
exit 1
