#!/bin/sh
# Each public C header compiles on its own: as strict C11, and as C++ from C++11 on. tickwheel.hpp: as C++17.
# Knobs: CC, CXX.
set -eu
cd "$(dirname "$0")/../.."

CC=${CC:-cc}
CXX=${CXX:-c++}
. test/lint/warnings.sh
strict="$warnings -Iinclude -fsyntax-only"

# $1: header below include/; the rest: the compiler and its language.
alone() {
	header=$1
	shift
	# shellcheck disable=SC2086 # $strict is a list
	if ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" | "$@" $strict -; then
		echo "headers: $header does not compile alone with: $*" >&2
		exit 1
	fi
}

headers=$(cd include && find . -name '*.h' | sed 's|^\./||' | sort)
count=0
for h in $headers; do
	# shellcheck disable=SC2086 # CC and CXX may carry options
	alone "$h" $CC -std=c11 -Wstrict-prototypes -Wmissing-prototypes -x c
	for standard in c++11 c++17 c++2b; do
		# shellcheck disable=SC2086
		alone "$h" $CXX -std=$standard -Wold-style-cast -x c++
	done
	count=$((count + 1))
done
# shellcheck disable=SC2086
alone tickwheel.hpp $CXX -std=c++17 -Wold-style-cast -x c++
[ "$count" -gt 0 ] || { echo "headers: there are none" >&2; exit 1; }
echo "headers: ok ($count alone, as C11 and as C++)"
