#!/bin/sh
# cpp_headers.sh: the C++ headers compile alone, without a warning, with gcc and clang, as C++17 and
# C++20, with and without exceptions. Without asio, tickwheel_asio.hpp is left out.
set -eu
cd "$(dirname "$0")/.."

strict="-Wall -Wextra -Wold-style-cast -Wconversion -pedantic -Werror -Iinclude -fsyntax-only"
headers="tickwheel.hpp"
has_asio() { printf '#include <asio.hpp>\n' | g++ -std=c++17 -E -x c++ - >/dev/null 2>&1; }
if has_asio; then
	headers="$headers tickwheel_asio.hpp"
else
	echo "headers: asio was not found (libasio-dev): tickwheel_asio.hpp is left out"
fi

count=0
for header in $headers; do
	for compiler in g++ clang++; do
		for standard in c++17 c++20; do
			for exceptions in -fexceptions -fno-exceptions; do
				# asio itself does not compile without a replacement for its throw.
				case $header$exceptions in tickwheel_asio.hpp-fno-exceptions) continue ;; esac
				# shellcheck disable=SC2086 # $strict is a list
				printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
					$compiler -std=$standard $exceptions $strict -x c++ - ||
					{
						echo "headers: $header fails: $compiler -std=$standard $exceptions" >&2
						exit 1
					}
				count=$((count + 1))
			done
		done
	done
done
echo "headers: ok (C++, $count ways)"
