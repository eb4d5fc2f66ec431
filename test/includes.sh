#!/bin/sh
# includes.sh BUILD_DIR: arrows between folders point one way, executor -> wheel -> mpsc -> include; the public headers
# lean on nothing but each other and the C standard library; the bare wheel names no thread, clock or atomic.
set -eu
cd "$(dirname "$0")/.."

LC_ALL=C
export LC_ALL

[ $# -eq 1 ] || { echo "usage: includes.sh BUILD_DIR" >&2; exit 2; }
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "includes: $1" >&2
	[ ! -s "$work/found" ] || sed 's/^/  /' "$work/found" >&2
	exit 1
}

# ---- by the text

# $1: folder; $2: extended regular expression of the quoted includes that it may have.
quoted_only() {
	find "$1" -name '*.[ch]' | while read -r file; do
		sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file" |
			grep -vE "^($2)" | sed "s|^|$file: |"
	done >"$work/found"
	[ ! -s "$work/found" ] || fail "$1/ may only include $2"
}
quoted_only mpsc 'mpsc/|tickwheel(\.h|/)'
quoted_only wheel 'wheel/|mpsc/|tickwheel(\.h|/)'
quoted_only executor 'executor/|wheel/|mpsc/|tickwheel(\.h|/)'

standard='assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
	stdbool stddef stdint stdio stdlib stdnoreturn string time uchar wchar wctype'
: >"$work/names"
for name in $standard; do echo "<$name.h>" >>"$work/names"; done
(cd include && find . -name '*.h') | sed 's|^\./\(.*\)|"\1"|; p; s|"tickwheel/|"|' >>"$work/names"
find include -name '*.h' -exec sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*//p' {} + |
	sed 's/[[:space:]]*\/\*.*//' | sort -u | grep -vxFf "$work/names" >"$work/found" || true
[ ! -s "$work/found" ] || fail "public headers include more than each other and the C standard library"

# Words count, comments included: a bare data structure has no reason to speak of them.
grep -nE '<(pthread|time|stdatomic|threads)\.h>|include.*atomic|pthread_|clock_gettime|atomic_' \
	wheel/wheel.c wheel/wheel.h >"$work/found" || true
[ ! -s "$work/found" ] || fail "the bare wheel names a thread, a clock or an atomic"

# ---- by the symbols

# The names in tw_ that objects of the given folders define, or with -u need.
defined() {
	for room in "$@"; do
		find "$build/$room" -name '*.o' -exec nm --defined-only {} +
	done | awk 'NF == 3 && $3 ~ /^tw_/ { print $3 }' | sort -u
}
needed() {
	find "$build/$1" -name '*.o' -exec nm -u {} + | awk '$1 == "U" && $2 ~ /^tw_/ { print $2 }' | sort -u
}

# $1: folder; the rest: folders below it that may serve it.
served_by() {
	room=$1
	[ -n "$(find "$build/$room" -name '*.o' 2>/dev/null)" ] || fail "$build/$room holds no objects"
	needed "$room" >"$work/needed"
	defined "$@" >"$work/defined"
	comm -23 "$work/needed" "$work/defined" >"$work/found"
	[ ! -s "$work/found" ] || fail "$room/ calls upwards"
}
served_by mpsc
served_by wheel mpsc
served_by executor wheel mpsc

echo "includes: ok"
