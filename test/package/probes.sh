#!/bin/sh
# probes.sh LIBRARY: where sys/sdt.h is found, LIBRARY holds each static probe that mpsc/base/probes.h lists, under the
# provider tickwheel, with as many arguments; where it is not, or with PROBES=0, none. Knobs: CC, PROBES.
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 1 ] || { echo "usage: probes.sh LIBRARY" >&2; exit 2; }
# "name number-of-arguments", from the table and from the library's notes.
awk '/^ \*   probe /{ on = 1; next } on && /^ \*          / { next } on && !/^ \*   [a-z_]+ +service/ { exit }
	on { sub(/^ \*   /, ""); name = $1; sub(/^[a-z_]+ +/, "");
		sub(/   .*/, ""); print name, split($0, unused, ", ") }' \
	mpsc/base/probes.h | sort -u >"$work/listed"
[ -s "$work/listed" ] || fail "the table in mpsc/base/probes.h was not understood"
readelf -n "$1" 2>/dev/null | awk '$1 == "Provider:" { ours = $2 == "tickwheel" } $1 == "Name:" { name = $2 }
	$1 == "Arguments:" && ours { print name, NF - 1 }' | sort -u >"$work/present"

if [ "${PROBES:-1}" != 1 ] || ! echo '#include <sys/sdt.h>' | ${CC:-cc} -E -x c - >/dev/null 2>&1; then
	[ ! -s "$work/present" ] || fail "there are probes where none can be"
	echo "probes: none (no sys/sdt.h, or PROBES=0)"
	exit 0
fi
# An argument with brackets holds no space in readelf's words, so fields are arguments.
diff "$work/listed" "$work/present" >"$work/found" || fail "the library's (>) are not those of mpsc/base/probes.h (<)"
echo "probes: ok ($(wc -l <"$work/listed"))"
