#!/bin/sh
# clocks.sh PROGRAM: the service where the system's clocks are unusual; clocks.c says how. What the system refuses is
# left out, by name.
set -eu

program=$1
run() {
	status=0
	timeout 300 "$@" || status=$?
	[ "$status" = 0 ] || [ "$status" = 77 ] || { echo "clocks: $* ended with $status" >&2; exit 1; }
}

day=86400 year=31536000
run "$program" early
run "$program" offset $day $((9 * day))
run "$program" offset $((140 * year)) 0      # as far as the kernel goes: nanoseconds near 2^62
run "$program" offset 3 $((140 * year))
run "$program" leap
steps=$(mktemp)
trap 'rm -f "$steps"' EXIT
echo "+0" >"$steps"
fake=$(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null | head -n 1)
FAKETIME_TIMESTAMP_FILE=$steps FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 LD_PRELOAD=$fake run "$program" \
	realtime "$steps"
