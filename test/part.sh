#!/bin/sh
# part.sh NAME COMMAND...: runs a part of `make check`. It is told of in one piece when it ends: its name, how long it
# took, what it said but for the files that were compiled. All it said is kept in build/check/NAME.
set -u

name=$1 log=build/check/$1
shift
mkdir -p build/check
begun=$(date +%s)
status=0
"$@" >"$log" 2>&1 || status=$?
took=$(($(date +%s) - begun))
if [ $status -ne 0 ]; then
	printf -- '---- %s, %s s: FAILED\n%s\n---- %s FAILED; all it said is in %s\n' "$name" $took \
		"$(tail -n 60 "$log")" "$name" "$log" >&2
	exit 1
fi
printf -- '---- %s, %s s\n%s\n' "$name" $took "$(grep -v '^  [a-z+]*	' "$log")"
