#!/bin/sh
# headers.sh [cpp]: each public header compiles on its own, included twice: the C headers as strict C11, and as C++ from
# C++11 on; tickwheel.hpp as C++17. Knobs: CC, CXX.
#
# cpp: the C++ headers, with gcc and clang, from C++17 on, with and without exceptions. An older C++ gets one error,
# which says so. Without asio, tickwheel_asio.hpp is left out.
set -eu
cd "$(dirname "$0")/../.."

CC=${CC:-cc}
CXX=${CXX:-c++}
strict="-Wall -Wextra -Wshadow -Wvla -Wpointer-arith -Wundef -Wcast-qual -pedantic -Werror -Iinclude -fsyntax-only"
fail() { echo "headers: $1" >&2; exit 1; }
count=0

# $1: header below include/; the rest: the compiler and its language.
compile() {
	header=$1
	shift
	# shellcheck disable=SC2086 # $strict is a list
	printf '#include "%s"\n#include "%s"\n' "$header" "$header" | "$@" $strict -
}
alone() {
	compile "$@" || fail "$1 does not compile alone with: $*"
	count=$((count + 1))
}

if [ "${1:-}" != cpp ]; then
	# shellcheck disable=SC2086 # CC and CXX may carry options
	for h in $(cd include && find . -name '*.h' | sed 's|^\./||' | sort); do
		alone "$h" $CC -std=c11 -Wstrict-prototypes -Wmissing-prototypes -x c
		for standard in c++11 c++17 c++2b; do alone "$h" $CXX -std=$standard -Wold-style-cast -x c++; done
	done
	# shellcheck disable=SC2086
	alone tickwheel.hpp $CXX -std=c++17 -Wold-style-cast -x c++
	echo "headers: ok ($count ways, as C11 and as C++)"
	exit 0
fi

headers="tickwheel.hpp tickwheel_asio.hpp"
if ! printf '#include <asio.hpp>\n' | g++ -std=c++17 -E -x c++ - >/dev/null 2>&1; then
	echo "headers: asio was not found (libasio-dev): tickwheel_asio.hpp is left out"
	headers=tickwheel.hpp
fi
for header in $headers; do
	for compiler in g++ clang++; do
		for standard in c++17 c++20 c++2b; do
			cxx="$compiler -std=$standard -Wold-style-cast -Wconversion -x c++"
			# shellcheck disable=SC2086 # a list
			alone "$header" $cxx
			# asio itself does not compile without a replacement for its throw.
			# shellcheck disable=SC2086
			[ "$header" = tickwheel_asio.hpp ] || alone "$header" $cxx -fno-exceptions
		done
		for standard in c++11 c++14; do
			said=$(compile "$header" $compiler -std=$standard -x c++ 2>&1 |
				grep -E 'error:|warning:' || true)
			case $said in
			*"error"*"$header needs C++17"*) [ "$(echo "$said" | wc -l)" -eq 1 ] && continue ;;
			esac
			fail "$header with $compiler -std=$standard must say one thing, and says: $said"
		done
	done
done
echo "headers: ok (C++, $count ways)"
