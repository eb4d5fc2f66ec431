#!/bin/sh
# docs.sh [LAYERS LIB BUILD_DIR [PAGE]]: the code in README.md, docs/*.md and examples/README.md, or in that page
# alone. A ```c block with "int main" is compiled and run; other ```c blocks are compiled by themselves, ```cpp blocks
# as C++17. Links to files of this tree lead somewhere; examples/README.md names each example, and nothing else;
# README.md names each public header. Knobs: CC, CXX.
set -eu
cd "$(dirname "$0")/../.."

[ $# -gt 0 ] || set -- build/release/libtickwheel-layers.a build/release/libtickwheel.a build/release
[ $# -ge 3 ] || { echo "usage: docs.sh [LAYERS LIB BUILD_DIR [PAGE]]" >&2; exit 2; }
layers=$1
lib=$2
dir=$3/test/docs
rm -rf "$dir"
mkdir -p "$dir"
fail() {
	echo "docs: $1" >&2
	[ ! -s "$dir/out" ] || tail -n 20 "$dir/out" >&2
	exit 1
}

pages=${4:-README.md $(ls docs/*.md examples/README.md)}
for page in $pages; do
	awk -v stem="$dir/$(basename "$page" .md)" -v page="$page" '
		/^```(c|cpp)[ \t]*$/ { language = substr($0, 4);
			sub(/[ \t]+$/, "", language); text = "#line " (NR + 1) " \"" page "\"\n"; next }
		/^```/ && language != "" {
			kind = text ~ /int main *[(]/ ? "program" : "part"
			printf "%s", text > (stem "_" ++n "." kind "." language)
			language = ""
			next
		}
		language != "" { text = text $0 "\n" }
	' "$page"
done

has_asio() { printf '#include <asio.hpp>\n' | ${CXX:-c++} -std=c++17 -E -x c++ - >/dev/null 2>&1; }
strict="-Wall -Wextra -Werror -Wno-unused-function -Iinclude"
count=0
for source in "$dir"/*.program.* "$dir"/*.part.*; do
	[ -e "$source" ] || continue
	std=c++17
	! grep -q 'co_await' "$source" || std=c++20
	if grep -q 'tickwheel_asio' "$source" && ! has_asio; then
		echo "docs: asio was not found (libasio-dev): left out: $(sed -n 's/^#line //p' "$source")"
		continue
	fi
	# shellcheck disable=SC2086 # lists
	case $source in
	*.program.c) ${CC:-cc} -std=gnu11 $strict -o "$source.bin" "$source" "$layers" "$lib" \
		-pthread >"$dir/out" 2>&1 ;;
	*.program.cpp) ${CXX:-c++} -std=$std $strict -o "$source.bin" "$source" "$layers" "$lib" \
		-pthread >"$dir/out" 2>&1 ;;
	*.part.c) ${CC:-cc} -std=gnu11 $strict -include stdlib.h -include tickwheel/layers.h -c -o "$dir/part.o" \
		"$source" >"$dir/out" 2>&1 ;;
	*.part.cpp) ${CXX:-c++} -std=$std $strict -include tickwheel/layers.hpp -c -o "$dir/part.o" \
		"$source" >"$dir/out" 2>&1 ;;
	esac || fail "does not compile: $(sed -n 's/^#line //p' "$source")"
	case $source in
	*.program.*) timeout 60 "$source.bin" >"$dir/out" 2>&1 || fail "failed: $(sed -n 's/^#line //p' "$source")" ;;
	esac
	count=$((count + 1))
done
[ "$count" -gt 0 ] || fail "no code was found"
[ $# -eq 3 ] || { echo "docs: ok ($count pieces of code in $4)" && exit; }

: >"$dir/out"
for page in CONTRIBUTING.md $pages; do
	grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | grep -v '^[a-z]*:' | sort -u | while read -r target; do
		[ -z "$target" ] || [ -e "$(dirname "$page")/$target" ] || echo "$page: $target" >>"$dir/out"
	done
done
# The parts of a page that links name are headings of it.
for page in CONTRIBUTING.md $pages; do
	grep -o ']([^):]*#[^)]*)' "$page" | sed 's/^](//; s/)$//' | sort -u | while IFS='#' read -r target part; do
		if [ -z "$target" ]; then target=$page; else target=$(dirname "$page")/$target; fi
		sed -n 's/^#\{1,6\} //p' "$target" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g' |
			grep -qxF -- "$part" || echo "$page: $target has no heading $part" >>"$dir/out"
	done
done
[ ! -s "$dir/out" ] || fail "links that lead nowhere"

# docs/design.md: each file that it names exists, and holds the functions named beside it: `FILE`: `FUNCTION`. At least
# twenty do.
: >"$dir/out"
grep -oE '`(mpsc|wheel|executor|include|test|bench|examples)/[a-z0-9_./*]+`' docs/design.md | tr -d '`' | sort -u |
	while read -r named; do
		# shellcheck disable=SC2086 # a pattern
		ls -d $named >/dev/null 2>&1 || echo "docs/design.md names $named, which does not exist"
	done >"$dir/out"
grep -oE '`[a-z0-9_./]+\.[ch]`: `[a-z0-9_]+`' docs/design.md | tr -d '`:' | sort -u >"$dir/functions"
while read -r file function; do
	grep -qE "^([a-z].*[ *])?$function\(" "$file" ||
		echo "docs/design.md names $function in $file, which does not define it" >>"$dir/out"
done <"$dir/functions"
[ "$(wc -l <"$dir/functions")" -ge 20 ] || echo "docs/design.md names fewer than twenty functions" >>"$dir/out"
[ ! -s "$dir/out" ] || fail "names that lead nowhere"

(cd examples && ls -d *.c *.cpp */ | sed 's/\.cp*$//; s|/$||' | sort) >"$dir/there"
sed -n 's/^| *\[`\([a-z0-9_]*\)\/*`\].*/\1/p' examples/README.md | sort >"$dir/named"
diff "$dir/named" "$dir/there" >"$dir/out" || fail "examples/README.md names (<) not what there is (>)"
: >"$dir/out"
for header in include/tickwheel/*.h include/*.hpp; do
	grep -qF "]($header)" README.md || echo "$header" >>"$dir/out"
done
[ ! -s "$dir/out" ] || fail "README.md does not say what these headers are for"
echo "docs: ok ($count pieces of code, $(wc -l <"$dir/there") examples named)"
