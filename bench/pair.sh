#!/bin/bash
# pair.sh [-p PAIRS] REV [W1,W2,... [BENCH OPTION...]]: has this tree become slower than revision REV?
#
# Builds the bench of REV in build/pair/ (kept for later runs) and this tree's, and runs them in
# interleaved pairs (A B, B A, ...), 7 by default. Prints ratios this tree / REV, of medians and of
# minima; CPU is that of the whole process. The last column compares them with the gate:
#   ok      the ratio of medians is not above it
#   above   both ratios are above it
#   noise   the ratio of minima is not; or the control, the same in both programs, moved as much:
#           `limit`, in W12 `pool-mutex`
# Where other programs take the processors, look at the CPU rows, and at more pairs.
# CANDIDATES=name,... replaces our candidates. Status: 0, none above; 1, one is above; 3, only noise.
set -euo pipefail

gate=1.05 gate_layers=1.10 gate_memory=1.005
pairs=7
usage() { echo "usage: bench/pair.sh [-p PAIRS] REV [W1,W2,... [BENCH OPTION...]]" >&2; exit 2; }
while getopts p: option; do case $option in p) pairs=$OPTARG ;; *) usage ;; esac; done
shift $((OPTIND - 1))
[[ $# -ge 1 && $pairs =~ ^[1-9][0-9]*$ ]] || usage
command -v jq >/dev/null || { echo "pair: needs jq" >&2; exit 2; }
cd "$(dirname "$0")/.."
named=$1
rev=$(git rev-parse --short=10 --verify "$named^{commit}") || exit 2
workloads=${2:-W1,W2,W3,W4,W6,W12}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- --quick
layers=tickwheel-pool,tickwheel-strand,tickwheel-scheduler,tickwheel-limiter,tickwheel-semaphore,pool-mutex
wanted=${CANDIDATES:-limit,tickwheel,tickwheel-persistent,$layers}

# ---- build, without other libraries

old=build/pair/$rev now=build/pair/now
if [ ! -e "$old/Makefile" ]; then
	mkdir -p "$old" && git archive "$rev" | tar -x -C "$old"
fi
for tree in "$old" .; do
	echo "pair: builds the bench of $([ "$tree" = . ] && echo this tree || echo "$named")" >&2
	${MAKE:-make} --no-print-directory -s -j"$(nproc)" -C "$tree" B=$now $now/bench/bench bench_has= rivals= \
		rival_java= rival_go= rival_asio= rival_glib= rival_dpdk= >/dev/null
done

# bench 0|1 OPTION...: the bench of REV, or this tree's. Before bench.py, the program was all of it.
bench() {
	local tree=$old
	[ "$1" = 0 ] || tree=.
	shift
	if [ -e "$tree/bench/bench.py" ]; then
		"$tree/bench/bench.py" "$tree/$now/bench/bench" "$@"
	else
		"$tree/$now/bench/bench" "$@"
	fi
}

# ---- run

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for which in 0 1; do bench $which --help; done >"$work/help"
both() { [ "$(grep -c "^  $1 " "$work/help")" -eq 2 ]; }
candidates=
for name in ${wanted//,/ }; do both "$name" && candidates+=${candidates:+,}$name; done
for workload in ${workloads//,/ }; do
	both "$workload" || { echo "pair: $workload is not in both programs" >&2; continue; }
	for ((pair = 0; pair < pairs; pair++)); do
		for which in $((pair % 2)) $((1 - pair % 2)); do
			[ ! -t 2 ] || printf '\rpair: %-4s %d of %d ' "$workload" $((pair + 1)) "$pairs" >&2
			bench $which --only "$workload" --candidate "$candidates" --reps 1 \
				--out "$work/$workload-$pair-$which.json" "$@" >"$work/log" 2>&1 ||
				{ tail -n 5 "$work/log" >&2; exit 2; }
		done
	done
done
[ ! -t 2 ] || printf '\r%30s\r' '' >&2

# ---- compare

# Lines: workload, n, threads, candidate, figure, 0 (REV) or 1 (this tree), value.
for file in "$work"/*-*.json; do
	which=${file%.json}
	jq -r --arg which "${which##*-}" '.cells[]
		| select(.workload != "trial" and .candidate != "baseline" and (has("failure") | not))
		| . as $cell | ["ns_per_op", "cpu_ns_per_op", "cpu_ns_per_timer", "bytes_per_timer"][]
		| select($cell[.] != null) | [$cell.workload, $cell.n, $cell.threads, $cell.candidate, ., $which,
		  $cell[.].median] | @tsv' "$file"
done | sort -t$'\t' -k1,1V -k2,2n -k3,3n -k4,4 -k5,5 -k6,6n -k7,7g | awk -F'\t' -v gate=$gate \
	-v gate_layers=$gate_layers -v gate_memory=$gate_memory -v rev="$named" '
function median(row, which,   k) {
	k = count[row, which]
	return (value[row, which, int((k + 1) / 2)] + value[row, which, int(k / 2) + 1]) / 2
}
{
	row = $1 FS $2 FS $3 FS $4 FS $5
	if (!(row in seen)) { seen[row] = 1; rows[++n] = row }
	value[row, $6, ++count[row, $6]] = $7
}
END {
	unit["ns_per_op"] = "wall ns"; unit["cpu_ns_per_op"] = unit["cpu_ns_per_timer"] = "CPU ns"
	unit["bytes_per_timer"] = "bytes"
	for (i = 1; i <= n; i++) {
		row = rows[i]; split(row, f, FS)
		if ((f[4] == "limit" || f[4] == "pool-mutex") && count[row, 0] && count[row, 1])
			moved[f[1], f[2], f[3], f[5]] = median(row, 1) / median(row, 0)
	}
	printf "%-4s %9s %2s %-21s %-8s %9s %9s %7s %7s %5s\n", "", "n", "t", "candidate", "figure",
		rev, "now", "median", "least", "gate"
	for (i = 1; i <= n; i++) {
		row = rows[i]; split(row, f, FS)
		if (!count[row, 0] || !count[row, 1]) continue
		limit = f[1] == "W12" ? gate_layers : f[5] == "bytes_per_timer" ? gate_memory : gate
		ratio = median(row, 1) / median(row, 0)
		least = value[row, 1, 1] / value[row, 0, 1]
		noise = moved[f[1], f[2], f[3], f[5]]
		said = ""
		if (f[4] == "limit" || f[4] == "pool-mutex") limit = 0
		else if (ratio <= limit) said = "ok"
		else if (least <= limit || noise >= ratio || (noise && noise < 1 / ratio)) { said = "noise"; noisy++ }
		else { said = "above"; above++ }
		printf "%-4s %9d %2d %-21s %-8s %9.1f %9.1f %7.3f %7.3f %5s %s\n", f[1], f[2], f[3], f[4],
			unit[f[5]], median(row, 0), median(row, 1), ratio, least,
			limit ? sprintf("%.2f", limit) : "", said
	}
	printf "pair: %d above the gate, %d in the noise\n", above, noisy
	exit above ? 1 : noisy ? 3 : 0
}'
