#!/bin/sh
# man.sh DIR LIBRARY: each function that LIBRARY exports has a page in DIR, whose prototype, as a reader sees it, is the header's; the
# overview names only what exists; roff finds nothing to complain of. Knob: CC.
set -eu
cd "$(dirname "$0")/.."

LC_ALL=C
export LC_ALL

[ $# -eq 2 ] || { echo "usage: man.sh DIR LIBRARY" >&2; exit 2; }
dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "man: $1" >&2
	[ ! -s "$work/found" ] || sed 's/^/  /' "$work/found" >&2
	exit 1
}

# The page as text; a page that leads to another is that other.
shown() { (cd "$dir" && mandoc -Tascii -O width=400 "man3/$1.3") | col -b; }

# $1: a page. What stands below its SYNOPSIS.
synopsis() { shown "$1" | awk '/^[A-Z]/ { on = $0 == "SYNOPSIS"; next } on'; }

nm -D --defined-only "$2" | awk '$2 == "T" && $3 ~ /^tw_/ { sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/functions"
[ -s "$work/functions" ] || fail "$2 exports nothing"

# Said twice, in the header and in the page: the compiler tells whether it is the same.
while read -r name; do
	[ -e "$dir/man3/$name.3" ] || fail "$name has no page"
	synopsis "$name" >"$work/synopsis"
	grep -q "[ *]$name(" "$work/synopsis" || fail "the page of $name does not declare it"
	shown "$name" | awk '/^[A-Z]/ { on = $0 == "NAME"; next } on' | grep -qw "$name" || fail "the page of $name does not bear its name"
	grep -v '#include' "$work/synopsis" | sed '/(/s/^ *//' >>"$work/declared"
done <"$work/functions"
{ echo '#include <tickwheel.h>'; cat "$work/declared"; } >"$work/declared.c"
if ! ${CC:-cc} -std=c11 -Iinclude -Wall -Werror -fsyntax-only "$work/declared.c" >"$work/found" 2>&1; then
	fail "a page's prototype is not the header's"
fi
# That the compiler would have said so.
{ echo '#include <tickwheel.h>'; sed 's/uint64_t delay_ns/uint32_t delay_ns/' "$work/declared"; } >"$work/wrong.c"
! ${CC:-cc} -std=c11 -Iinclude -fsyntax-only "$work/wrong.c" >/dev/null 2>&1 || fail "prototypes are not compared"

sed -n 's/^\.BR \(tw_[a-z_]*\) (3).*/\1/p' "$dir/man7/tickwheel.7" | sort -u | comm -23 - "$work/functions" >"$work/found"
[ ! -s "$work/found" ] || fail "the overview names what the library does not have"

find "$dir" -name '*.[37]' -exec sh -c 'grep -q "^\.so " "$1" || mandoc -Tlint -W warning "$1"' sh {} \; |
	grep -v 'missing date' >"$work/found" || true
[ ! -s "$work/found" ] || fail "roff complains"
echo "man: ok ($(wc -l <"$work/functions") functions, $(find "$dir" -name '*.[37]' -size +1 | wc -l) pages)"
