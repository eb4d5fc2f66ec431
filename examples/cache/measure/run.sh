#!/bin/bash
# run.sh TICKCACHE LATENESS NULL_SERVER OUT: starts tickcache, a redis-server, and a server that only
# answers (null_server.c) on ports of their own, and measures them with the same clients, one after the
# other. Prints tables and a verdict, and writes OUT/report.html, and OUT/figures.md for README.md.
# Exit status 1: a key was early, lost, or visible after its deadline. Throughput has as many rounds as
# fit into three minutes, at least four: fewer cannot show that one server is slower. QUICK=1 leaves out
# most cells; ONLY=expiry or ONLY=throughput measures one half, and keeps the other half's results of the
# run before.
set -euo pipefail
cd "$(dirname "$0")/../../.."

tickcache=$1 lateness=$2 null_server=$3 out=$4
results=$out/data/results
[ -n "${ONLY:-}" ] || rm -rf "$out/data"
mkdir -p "$out/data"
touch "$results"
case ${ONLY:-} in
expiry) sed -i '/^throughput/!d' "$results" ;;
throughput) sed -i '/^throughput/d' "$results" ;;
esac
declare -A port=([redis]=7471 [tick1]=7472 [tick2]=7473 [null]=7474) pid
names=(redis tick1 tick2 null)
least_rounds=4 most_s=165 tests=(set get incr mset) loads=("50 1" "500 1" "50 16" "500 16")
[ "${QUICK:-}" != 1 ] || { least_rounds=1 most_s=0 loads=("50 1" "50 16"); }

cleanup() { for p in "${pid[@]}"; do kill "$p" 2>/dev/null || true; done; wait 2>/dev/null || true; }
trap cleanup EXIT

# ------------------------------------------------------------------ progress

started=$SECONDS
expected=$most_s
[ "${QUICK:-}" != 1 ] || expected=60
[ "${ONLY:-}" != expiry ] || expected=88
progress() {
	local left=$((expected - (SECONDS - started)))
	[ "$left" -gt 0 ] || left=1
	printf '\r\033[K%3d s, about %d s left: %s' $((SECONDS - started)) "$left" "$1" >&2
}

# ------------------------------------------------------------------ servers

start() {
	local tries=0
	for name in "${names[@]}"; do # a server of an earlier run would be measured instead
		! redis-cli -p "${port[$name]}" ping >/dev/null 2>&1 ||
			{ echo "cache: port ${port[$name]} is in use" >&2; exit 1; }
	done
	redis-server --port "${port[redis]}" --bind 127.0.0.1 --save "" --appendonly no \
		--dir "$out/data" >"$out/data/redis.log" &
	pid[redis]=$!
	"$tickcache" --port "${port[tick1]}" --threads 1 >"$out/data/tick1.log" &
	pid[tick1]=$!
	"$tickcache" --port "${port[tick2]}" --threads 2 >"$out/data/tick2.log" &
	pid[tick2]=$!
	"$null_server" "${port[null]}" 2 &
	pid[null]=$!
	for name in "${names[@]}"; do
		until redis-cli -p "${port[$name]}" ping >/dev/null 2>&1; do
			tries=$((tries + 1))
			[ "$tries" -lt 200 ] || { echo "cache: $name does not start, see $out/data" >&2; exit 1; }
			sleep 0.05
		done
	done
}

# ------------------------------------------------------------------ expiry

# NAME CELL KEYS BACKGROUND MODE WAIT_S
expiry() {
	progress "$1, $2"
	echo "expiry server=$1 cell=$2 background=$4 mode=$5" \
		"$("$lateness" "${port[$1]}" "${pid[$1]}" "$3" "$4" "$5" "$6" \
		"$out/data/$1-$2")" >>"$results"
}

# Redis with many other keys would need minutes: it is given some seconds.
measure_expiry() {
	for name in redis tick1; do
		progress "$name, memory"
		echo "memory server=$name" \
			"$("$lateness" "${port[$name]}" "${pid[$name]}" 1 500000 hold 1 "$out/data/$name-hold")" \
			>>"$results"
		expiry "$name" 20k-beside-500k 20000 500000 spread 3
		[ "${QUICK:-}" != 1 ] || continue
		expiry "$name" 20k-alone 20000 0 spread 3
		expiry "$name" 100k-alone 100000 0 settle 3
		expiry "$name" 100k-beside-500k 100000 500000 spread 3
		expiry "$name" 100k-same-ms 100000 0 same 3
		expiry "$name" 20k-renewed 20000 0 renewed 3
	done
}

# ------------------------------------------------------------------ throughput

# The time that all threads of a server have run, in ns.
cpu_ns() { cat "/proc/${pid[$1]}"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

# NAME TEST CLIENTS PIPELINE
throughput() {
	local requests=6000 before after rate
	[ "$4" = 1 ] || requests=60000
	[ "$2" != mset ] || requests=$((requests / ($4 > 1 ? 4 : 2)))
	before=$(cpu_ns "$1")
	# One thread of its own: with more it takes both processors of a small machine, and the
	# servers with one thread get slower.
	rate=$(redis-benchmark -p "${port[$1]}" -c "$3" -P "$4" -n "$requests" -r 100000 -t "$2" --csv 2>/dev/null |
		awk -F'"' 'NR > 1 { print $4 }')
	after=$(cpu_ns "$1")
	echo "throughput server=$1 test=$2 clients=$3 pipeline=$4 rate=$rate" \
		"cpu_us=$(awk -v t=$((after - before)) -v n="$requests" 'BEGIN { printf "%.2f", t / 1e3 / n }')" \
		>>"$results"
}

measure_throughput() {
	for name in "${names[@]}"; do # all keys, once, so that the first cell is like the others
		redis-benchmark -p "${port[$name]}" -P 16 -n 400000 -r 100000 -t set --csv >/dev/null 2>&1
	done
	local round=0 begun=$SECONDS
	# As many rounds as the time allows.
	while [ "$round" -lt "$least_rounds" ] ||
		[ $((SECONDS - started + (SECONDS - begun) / round)) -lt "$most_s" ]; do
		round=$((round + 1))
		for load in "${loads[@]}"; do
			for test in "${tests[@]}"; do
				for name in "${names[@]}"; do
					progress "$name, redis-benchmark, round $round"
					# shellcheck disable=SC2086 # two words
					throughput "$name" "$test" $load
				done
			done
		done
	done
}

# ------------------------------------------------------------------ run

start
[ "${ONLY:-}" = throughput ] || measure_expiry
[ "${ONLY:-}" = expiry ] || measure_throughput
printf '\r\033[K' >&2
status=0
measure=examples/cache/measure
awk -v took=$((SECONDS - started)) -f $measure/results.awk -f $measure/table.awk "$results" >"$out/data/table" ||
	status=$?
cat "$out/data/table"
awk -v processors="$(nproc)" -v model="$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)" \
	-v version="$(redis-server --version | sed 's/.* v=\([^ ]*\) .*/\1/')" \
	-f $measure/results.awk -f $measure/figures.awk "$results" >"$out/figures.md"
examples/cache/measure/report.sh "$out"
exit "$status"
