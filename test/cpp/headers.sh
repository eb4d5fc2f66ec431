#!/bin/sh
# cpp_headers.sh: the C++ headers compile alone, without a warning, with gcc and clang, from C++17 on,
# with and without exceptions. An older C++ gets one error, which says so. Without asio,
# tickwheel_asio.hpp is left out.
set -eu
cd "$(dirname "$0")/../.."

. test/lint/warnings.sh
strict="$warnings -Wold-style-cast -Wconversion -Iinclude -fsyntax-only"
headers="tickwheel.hpp"
has_asio() { printf '#include <asio.hpp>\n' | g++ -std=c++17 -E -x c++ - >/dev/null 2>&1; }
if has_asio; then
	headers="$headers tickwheel_asio.hpp"
else
	echo "headers: asio was not found (libasio-dev): tickwheel_asio.hpp is left out"
fi

# $1: header; the rest: the compiler and its options. The header comes twice.
compile() {
	header=$1
	shift
	# shellcheck disable=SC2086 # $strict is a list
	printf '#include "%s"\n#include "%s"\n' "$header" "$header" | "$@" $strict -x c++ -
}

count=0
for header in $headers; do
	for compiler in g++ clang++; do
		for standard in c++17 c++20 c++2b; do
			for exceptions in -fexceptions -fno-exceptions; do
				# asio itself does not compile without a replacement for its throw.
				case $header$exceptions in tickwheel_asio.hpp-fno-exceptions) continue ;; esac
				compile "$header" $compiler -std=$standard $exceptions || {
					echo "headers: $header fails: $compiler -std=$standard $exceptions" >&2
					exit 1
				}
				count=$((count + 1))
			done
		done
		for standard in c++11 c++14; do
			said=$(compile "$header" $compiler -std=$standard 2>&1 | grep -E 'error:|warning:' || true)
			case $said in
			*"error"*"$header needs C++17"*) [ "$(echo "$said" | wc -l)" -eq 1 ] && continue ;;
			esac
			echo "headers: $header with $compiler -std=$standard must say one thing, and says:" >&2
			echo "$said" | head -n 12 >&2
			exit 1
		done
	done
done
echo "headers: ok (C++, $count ways)"
