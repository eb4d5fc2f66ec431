#!/bin/sh
# clocks.sh LEAP STRESS...: the stress programs where the system's clocks are unusual: in time namespaces whose clocks
# have offsets, and under libfaketime, while the time of day steps back and forth by years; and the program that leaps.
# All say themselves that nothing is early, by the kernel's clock, and that nothing is slept through. What the system
# refuses is left out, by name.
. "$(dirname "$0")/../support/script.sh"
leap=$1 ledger=$2
shift

run() { timeout 300 "$@" >"$work/out" 2>&1 || fail "$* ended with $?"; }

# What else than seconds of each program: the clocks' offsets in seconds.
offset() {
	monotonic=$1 boottime=$2
	shift 2
	for program; do
		run unshare --fork --time --monotonic "$monotonic" --boottime "$boottime" "$program" 1
	done
	echo "clocks: offset: ok, monotonic clock off by $monotonic s, boottime by $boottime s"
}

day=86400 year=31536000
if unshare --fork --time --monotonic 1 true 2>"$work/out"; then
	offset $((2 - $(cut -d . -f 1 /proc/uptime))) $((2 - $(cut -d . -f 1 /proc/uptime))) "$@"
	offset $day $((9 * day)) "$@"
	offset $((140 * year)) 0 "$@" # as far as the kernel goes: nanoseconds near 2^62
	offset 3 $((140 * year)) "$@"
else
	echo "clocks: offset: left out: $(cat "$work/out")"
fi
status=0
"$leap" || status=$?
[ $status = 0 ] || [ $status = 77 ] || fail "$leap ended with $status"

# Not on the boottime clock: libfaketime moves the instants of its timer descriptors, too.
fake=$(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null | head -n 1)
export FAKETIME_TIMESTAMP_FILE="$work/steps" FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
faked_year() { echo "$1" >"$work/steps" && LD_PRELOAD=$fake date +%Y; }
[ $(($(faked_year +3y) - $(faked_year -20y))) -ge 22 ] || fail "the time of day does not step: is libfaketime there?"
(while [ -d "$work" ]; do
	for step in +3y -20y +0 +40d -1d +1h; do
		echo $step >"$work/steps"
		sleep 0.007
	done
done 2>"$work/steps.log") &
stepper=$!
trap 'kill $stepper 2>"$work/out"; rm -rf "$work"' EXIT
LD_PRELOAD=$fake run "$ledger" 3
echo "clocks: realtime: ok, the time of day stepped by an hour to 23 years"
