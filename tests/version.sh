#!/bin/sh
# The version is set in CMakeLists.txt only: the program prints it, CHANGELOG.md has it as its newest release, and no other file
# contains it.
# usage: tests/version.sh PROGRAM VERSION, from the root
said=$("$1" --version)
[ "$said" = "wager $2" ] || { echo "wager --version says '$said', CMakeLists.txt $2"; exit 1; }
newest=$(sed -n 's/^## \[\([0-9][^]]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
[ "$newest" = "$2" ] || { echo "CHANGELOG.md: the newest release is '$newest', CMakeLists.txt says $2"; exit 1; }
number=$(printf '%s' "$2" | sed 's/\./\\./g')
spelled=$(grep -rlE "(^|[^0-9.])$number([^0-9.]|$)" --include='*.c' --include='*.h' --include='*.cu' --include='*.sh' --include='*.md' \
  --include='*.txt' --include='*.py' --include='*.cmake' CMakeLists.txt README.md CONTRIBUTING.md api cmake core docs draft experiments \
  kernels tests tools verify examples include 2>/dev/null | grep -v '^CMakeLists.txt$')
[ -z "$spelled" ] || { echo "the version $2 is spelled out again in: $spelled"; exit 1; }
