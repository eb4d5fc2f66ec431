#!/bin/sh
# readme.sh LAYERS LIB BUILD_DIR: each program in README.md (a ```c block with "int main") compiles without
# warnings and exits 0. Knob: CC.
set -eu
cd "$(dirname "$0")/../.."

[ $# -eq 3 ] || { echo "usage: readme.sh LAYERS LIB BUILD_DIR" >&2; exit 2; }
layers=$1
lib=$2
dir=$3/test/readme
rm -rf "$dir"
mkdir -p "$dir"

awk -v dir="$dir" '
	/^```c[[:space:]]*$/ { in_block = 1; text = ""; next }
	/^```/ && in_block {
		in_block = 0
		if (text ~ /int main *[(]/)
			printf "%s", text > (dir "/program" ++n ".c")
		next
	}
	in_block { text = text $0 "\n" }
' README.md

count=0
for source in "$dir"/program*.c; do
	[ -e "$source" ] || break
	program=${source%.c}
	# shellcheck disable=SC2086 # lists
	${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -Iinclude -o "$program" "$source" "$layers" "$lib" -pthread
	if ! timeout 60 "$program" >"$program.out" 2>&1; then
		echo "readme: $source failed or took more than 60 s; it wrote:" >&2
		cat "$program.out" >&2
		exit 1
	fi
	count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "readme: README.md holds no C program" >&2; exit 1; }
echo "readme: ok ($count compiled and run)"
