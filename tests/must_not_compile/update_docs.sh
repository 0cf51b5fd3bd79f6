#!/bin/sh
# Compiles the programs that docs/compile_time.md names, and writes there what the compilers say.
# usage: update_docs.sh
#
# Between `<!-- gcc folder/program -->` (or clang, or clang26 for its C++26) and `<!-- end -->` stands what this script wrote.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
page=$root/docs/compile_time.md

# A program with its mistake, and the first lines of what a compiler says, up to the function's declaration.
show() {
  echo '```cpp'
  awk '/^#else/ {exit} inside && !/^#/ {sub(/^  /, ""); print} /^int main/ {inside = 1}' "$here/$2.cpp"
  echo '```'
  echo '```'
  case $1 in
    gcc) set -- "${EIN_GCC:-g++}" "$2" -std=c++20 ;;
    clang) set -- "${EIN_CLANG:-clang++-19}" "$2" -std=c++20 ;;
    clang26) set -- "${EIN_CLANG:-clang++-19}" "$2" -std=c++26 ;;
  esac
  LC_ALL=C "$1" "$3" -I "$root/include" -I "$root/grammar" -fsyntax-only -DMISTAKE "$here/$2.cpp" 2>&1 |
    sed -e "s|$here/[a-z]*/||g; s|$root/include/||g; s|$root/grammar/||g" -e '/error:/!s/^\(.\{80\}\).\{5,\}\(.\{60\}\)$/\1 … \2/' \
    -e 's/^\(.\{120\}\).\{5,\}\(.\{70\}\)$/\1 … \2/' |
    head -n 12
  echo '```'
}

copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
written=0
while IFS= read -r line; do
  case $line in
    '<!-- end -->') written=0 ;;
  esac
  [ "$written" = 1 ] || printf '%s\n' "$line"
  case $line in
    '<!-- gcc '* | '<!-- clang '* | '<!-- clang26 '*)
      words=${line#<!-- }
      words=${words% -->}
      show "${words%% *}" "${words#* }"
      written=1
      ;;
  esac
done <"$page" >"$copy"
cp "$copy" "$page"
