#!/bin/sh
# What needs Linux is in src/machine/system.cpp alone, so that a port is that file. Of the other sources of the library and
# the command this holds:
# - They include no header of a system but those listed here.
# - They name no file of Linux, and do not ask which system it is.
# - They compile where the C library shows what POSIX.1-2008 has and no more. Standard libraries need more in their own
#   headers, so only errors in ours count.
# usage: posix.sh SOURCE COMPILER FLAG...
# The last holds of sources that include a header of POSIX; with EIN_POSIX=all in the environment, of all, which takes long.
set -u
source=$1
shift
cd "$source" || exit 2
the_file=src/machine/system.cpp
posix='dirent\.h|dlfcn\.h|fcntl\.h|pthread\.h|signal\.h|spawn\.h|sys/mman\.h|sys/stat\.h|sys/wait\.h|time\.h|unistd\.h'
also_macos='sys/file\.h|sys/ioctl\.h' # flock() and the width of a terminal, which BSD and macOS have
others='cpuid\.h|immintrin\.h|asmjit/.*|cuda\.h|mpi\.h|zlib\.h'

sources=$(find src codegen tools include grammar -name '*.[ch]pp' ! -path $the_file)
failed=0
if grep -nE '# *include +<[^>]*\.h>' $sources | grep -vE "<($posix|$also_macos|$others)>"; then
  echo "These headers are not in the list of $0: are they in POSIX?"
  failed=1
fi
if grep -nE '"/(proc|sys|dev)\b|__linux|__gnu_linux|__GLIBC|_GNU_SOURCE|\bsyscall\b|\bSYS_[a-z]' $sources | grep -v '"/dev/null"'; then
  echo "This needs Linux; its place is $the_file."
  failed=1
fi

if ! echo '#include <unistd.h>' | "$@" -x c++ -dM -E - | grep -q __GLIBC__; then
  echo "This C library does not tell what POSIX has, so nothing is compiled."
  exit $failed
fi
case $("$@" --version) in *clang*) set -- "$@" -ferror-limit=0 ;; esac
# Errors in our files, of one source.
errors() {
  file=$1
  shift
  LC_ALL=C "$@" -fsyntax-only -U_GNU_SOURCE -D_XOPEN_SOURCE=700 -Iinclude -Igrammar -Isrc -I. "$file" 2>&1 |
    grep -E '^(\./)?(src|codegen|tools|include|grammar)/[^:]*:[0-9]+:[0-9]+: (fatal )?error'
}
if ! errors $the_file "$@" >/dev/null; then
  echo "$the_file, which needs Linux, compiles without it: this test sees nothing"
  exit 1
fi
if [ "${EIN_POSIX:-}" = all ]; then
  compiled=$(echo "$sources" | grep '\.cpp$')
else
  compiled=$(grep -lE "# *include +<($posix|$also_macos)>" $sources)
fi
for file in $compiled; do
  if errors "$file" "$@"; then failed=1; fi
done
exit $failed
