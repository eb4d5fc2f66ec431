#!/bin/sh
# recipes.sh LAYERS LIB BUILD_DIR: the recipes of docs/*.md, run under AddressSanitizer with the race provoked
# that each is about.
#
# A recipe is a ```c block behind a line <!-- recipe: NAME -->. recipes/NAME.c includes it as "NAME.h", and runs it. A
# program that says WRONG also holds what the recipe warns of: called with the argument "wrong" it must be stopped by
# AddressSanitizer, with a use after free. LIB is the library's build for AddressSanitizer. Knob: CC.
set -eu
cd "$(dirname "$0")/../.."

[ $# -eq 3 ] || { echo "usage: recipes.sh LAYERS LIB BUILD_DIR" >&2; exit 2; }
layers=$1
lib=$2
dir=$3/test/recipes
rm -rf "$dir"
mkdir -p "$dir"
fail() {
	echo "recipes: $1" >&2
	[ ! -s "$dir/out" ] || tail -n 40 "$dir/out" >&2
	exit 1
}

awk -v dir="$dir" '
	/^<!-- recipe: [a-z_]+ -->$/ { name = $3; next }
	/^```c[ \t]*$/ && name != "" { file = dir "/" name ".h";
		printf "#line %d \"%s\"\n", FNR + 1, FILENAME > file; next }
	/^```/ { if (file != "") close(file); file = name = "" }
	file != "" { print > file }
' docs/*.md

for test in test/examples/recipes/*.c; do basename "$test" .c; done >"$dir/tested"
for recipe in "$dir"/*.h; do basename "$recipe" .h; done >"$dir/named"
diff "$dir/named" "$dir/tested" >"$dir/out" || fail "docs/*.md have the recipes (<), test/examples/recipes tests (>)"

export ASAN_OPTIONS="abort_on_error=0:detect_stack_use_after_return=1"
export LSAN_OPTIONS="suppressions=$PWD/test/lsan.supp:print_suppressions=0"
wrong=0
while read -r name; do
	program=$dir/$name
	# shellcheck disable=SC2086 # lists
	${CC:-cc} -std=gnu11 -g -O1 -Wall -Wextra -Werror -Wno-unused-function -fsanitize=address,undefined \
		-fno-sanitize-recover=all -fno-omit-frame-pointer -Iinclude -I. -I"$dir" -o "$program" \
		"test/examples/recipes/$name.c" "$layers" "$lib" -pthread >"$dir/out" 2>&1 ||
		fail "$name does not compile"
	timeout 60 "$program" >"$dir/out" 2>&1 || fail "$name failed"
	grep -q WRONG "test/examples/recipes/$name.c" || continue
	! timeout 60 "$program" wrong >"$dir/out" 2>&1 || fail "$name: what the recipe warns of goes unnoticed"
	grep -q 'AddressSanitizer: heap-use-after-free' "$dir/out" ||
		fail "$name: what the recipe warns of fails otherwise"
	wrong=$((wrong + 1))
done <"$dir/tested"
echo "recipes: ok ($(wc -l <"$dir/tested") run with their races, $wrong of them also the wrong way, which is found)"
