#!/bin/sh
# figures.sh RESULTS PAGE README: writes PAGE (docs/figures.md) from the results of one run of the
# bench, and the table of README that stands between its two marks. A figure is the median of the
# near runs ("Method" on the page); of all runs, if none was near.
set -eu

[ $# -eq 3 ] || { echo "usage: figures.sh RESULTS PAGE README" >&2; exit 2; }
results=$1 page=$2 readme=$3
command -v jq >/dev/null || { echo "figures: needs jq" >&2; exit 1; }
[ -s "$results" ] || { echo "figures: $results is missing: make bench" >&2; exit 1; }
[ "$(jq -r '.occasion.complete' "$results")" = true ] || { echo "figures: the run was not complete" >&2; exit 1; }
list=$(mktemp)
trap 'rm -f "$list" "$list.new"' EXIT

# ---- read

# A line for each figure: workload, n, threads, kind, candidate, figure, value.
jq -r '
	def median: sort | if length % 2 == 1 then .[length / 2 | floor]
		else (.[length / 2 - 1] + .[length / 2]) / 2 end;
	.cells[] | select(.workload != "trial" and (has("failure") | not)) | . as $cell
	| (.rtt_ns.runs // []) as $rtt
	| to_entries[] | select(.value | type == "object" and has("runs")) | .value.runs as $runs
	| [range($runs | length) | select(($rtt[.] // 0) < 120) | $runs[.]] as $near
	| [$cell.workload, $cell.n, $cell.threads, $cell.kind, $cell.candidate, .key,
	   (if $near | length > 0 then $near else $runs end | median)] | @tsv' "$results" >"$list"

# value WORKLOAD N THREADS CANDIDATE FIGURE: the number, or nothing.
value() {
	awk -F'\t' -v w="$1" -v n="$2" -v t="$3" -v c="$4" -v f="$5" \
		'$1 == w && $2 == n && $3 == t && $5 == c && $6 == f { print $7 }' "$list"
}

# best WORKLOAD N THREADS FIGURE KIND CANDIDATE...: the least of these, and whose it is.
best() {
	awk -F'\t' -v w="$1" -v n="$2" -v t="$3" -v f="$4" -v k="$5" -v names=" $(shift 5; echo "$*") " \
		'$1 == w && $2 == n && $3 == t && $4 == k && $6 == f && index(names, " " $5 " ") &&
		 (least == "" || $7 < least) { least = $7; who = $5 } END { if (who != "") print least, who }' "$list"
}

locked="heap-mutex heap4-mutex libevent-mt libev-mt libuv-mt timerfd timer_create"
bare_heaps="heap-bare heap4-bare"
rivals="java-stpe netty go asio-mt glib-mt dpdk"

# ---- write

# Three digits, or the whole number.
short() {
	awk -v x="$1" 'BEGIN { if (x != "") printf(x >= 99.5 ? "%.0f" : x >= 9.95 ? "%.1f" : "%.2f", x) }'
}

ratio() {
	awk -v x="$1" -v y="$2" 'BEGIN { if (x != "" && y != "" && y > 0) printf "%.1f", x / y }'
}

size_of() {
	case $1 in
	*000000) echo "${1%000000}M" ;;
	*000) echo "${1%000}k" ;;
	*) echo "$1" ;;
	esac
}

# row TEXT WORKLOAD N THREADS FIGURE OURS: ours, and the others in the same units.
row() {
	ours=$(value "$2" "$3" "$4" "$6" "$5")
	[ -n "$ours" ] || return 0
	peer=$(best "$2" "$3" "$4" "$5" safe "$locked")
	heap=$(best "$2" "$3" "$4" "$5" bare "$bare_heaps")
	floor=$(value "$2" "$3" "$4" limit "$5")
	printf '| %s | %s | **%s** | %s | %s | %s | %s |\n' "$1" "$4" "$(short "$ours")" "$(short "$floor")" \
		"$(short "${peer%% *}")${peer:+ (${peer#* })}" "$(short "${heap%% *}")" \
		"$(short "$(value "$2" "$3" "$4" wheel-bare "$5")")"
}

rows_by_threads() {
	for threads in 1 2 4; do row "$1" "$2" "$3" $threads "$4" "$5"; done
}

calls_table() {
	echo "| work | threads | tickwheel | floor | best behind a lock | heap, bare | wheel, bare |"
	echo "|---|---|---|---|---|---|---|"
	rows_by_threads "request (W2)" W2 64 ns_per_op tickwheel
	for n in 1000 100000 1000000 10000000; do
		rows_by_threads "churn (W1), $(size_of $n)" W1 $n ns_per_op tickwheel
	done
	for n in 10000 1000000; do
		rows_by_threads "touch (W3), $(size_of $n), exact clock" W3 $n ns_per_op tickwheel
		rows_by_threads "touch (W3), $(size_of $n), cached time" W3 $n ns_per_op tickwheel-at
	done
}

persistent_table() {
	echo "| work | threads | persistent | plain | wheel, bare |"
	echo "|---|---|---|---|---|"
	for cell in "request:W2:64" "churn:W1:1000" "churn:W1:100000" "churn:W1:1000000" "churn:W1:10000000" \
		"touch:W3:10000" "touch:W3:1000000"; do
		w=${cell#*:} n=${cell##*:}
		w=${w%:*}
		for threads in 1 2; do
			ours=$(value "$w" "$n" $threads tickwheel-persistent ns_per_op)
			[ -z "$ours" ] ||
				printf '| %s (%s), %s | %s | **%s** | %s | %s |\n' "${cell%%:*}" "$w" \
				"$(size_of "$n")" \
				$threads "$(short "$ours")" \
				"$(short "$(value "$w" "$n" $threads tickwheel-at ns_per_op)")" \
				"$(short "$(value "$w" "$n" $threads wheel-bare ns_per_op)")"
		done
	done
}

rival_row() {
	ours=$(value "$2" "$3" "$4" tickwheel ns_per_op)
	[ -n "$ours" ] || return 0
	line="| $1 | $4 | **$(short "$ours")** |" any=
	for rival in $rivals; do
		theirs=$(value "$2" "$3" "$4" "$rival" ns_per_op)
		if [ -n "$theirs" ]; then
			line="$line $(short "$theirs") ($(ratio "$theirs" "$ours")) |" any=1
		else
			line="$line |"
		fi
	done
	[ -z "$any" ] || echo "$line"
}

rivals_table() {
	echo "| work | threads | tickwheel | STPE (Java) | Netty's wheel | Go | asio | glib | DPDK |"
	echo "|---|---|---|---|---|---|---|---|---|"
	for threads in 1 2; do
		rival_row "request (W2)" W2 64 $threads
		for n in 1000 100000 1000000 10000000; do rival_row "churn (W1), $(size_of $n)" W1 $n $threads; done
		for n in 10000 1000000; do rival_row "touch (W3), $(size_of $n)" W3 $n $threads; done
	done
}

fire_table() {
	echo "| timers in 2 s | tickwheel, delays | deadlines | best behind a lock" \
		"| heap, bare | wheel, bare | STPE | Netty's wheel |"
	echo "|---|---|---|---|---|---|---|---|"
	for n in 100000 1000000 4000000; do
		[ -n "$(value W4 $n 1 tickwheel cpu_ns_per_op)" ] || continue
		peer=$(best W4 $n 1 cpu_ns_per_op safe "$locked")
		heap=$(best W4 $n 1 cpu_ns_per_op bare "$bare_heaps")
		printf '| %s |' "$(size_of $n)"
		for v in "**$(short "$(value W4 $n 1 tickwheel cpu_ns_per_op)")**" \
			"$(short "$(value W4 $n 1 tickwheel-at cpu_ns_per_op)")" \
			"$(short "${peer%% *}")${peer:+ (${peer#* })}" "$(short "${heap%% *}")" \
			"$(short "$(value W4 $n 1 wheel-bare cpu_ns_per_op)")" \
			"$(short "$(value W4 $n 1 java-stpe cpu_ns_per_op)")" \
			"$(short "$(value W4 $n 1 netty cpu_ns_per_op)")"; do
			printf ' %s |' "$v"
		done
		echo
	done
}

late_row() {
	[ -n "$(value W4 "$3" 1 "$2" lateness_p50_ns)" ] || return 0
	printf '| %s |' "$1"
	for figure in lateness_p50_ns lateness_p99_ns lateness_p999_ns lateness_max_ns; do
		v=$(value W4 "$3" 1 "$2" $figure)
		printf ' %s |' "$(awk -v x="$v" 'BEGIN { printf "%.0f", x / 1000 }')"
	done
	echo
}

late_table() {
	echo "| | p50 | p99 | p99.9 | max |"
	echo "|---|---|---|---|---|"
	late_row "tickwheel, delays" tickwheel "$1"
	late_row "tickwheel, deadlines" tickwheel-at "$1"
	late_row "bare wheel, same tick" wheel-bare "$1"
	late_row "heap, mutex, no tick" heap-mutex "$1"
	late_row "a thread that only sleeps from tick to tick" baseline "$1"
}

# scaled WORKLOAD N CANDIDATE FIGURE DIVISOR
scaled() {
	short "$(awk -v x="$(value "$1" "$2" 1 "$3" "$4")" -v d="$5" 'BEGIN { if (x != "") print x / d }')"
}

service_row() {
	[ -n "$(value "$2" "$3" 1 tickwheel "$4")" ] || return 0
	printf '| %s | **%s** | %s | %s | %s |\n' "$1" "$(scaled "$2" "$3" tickwheel "$4" "$5")" \
		"$(scaled "$2" "$3" heap-mutex "$4" "$5")" \
		"$(scaled "$2" "$3" heap-bare "$4" "$5")" "$(scaled "$2" "$3" wheel-bare "$4" "$5")"
}

service_table() {
	echo "| what | tickwheel | heap, mutex | heap, bare | wheel, bare |"
	echo "|---|---|---|---|---|"
	service_row "W5 wake-ups a second, empty service" W5 0 wakeups_per_s 1
	service_row "W5 wake-ups a second, 100k timers an hour out" W5 100000 wakeups_per_s 1
	service_row "W6 bytes a timer at 1M, with the user's handle or record" W6 1000000 bytes_per_timer 1
	service_row "W6 the same at 10M" W6 10000000 bytes_per_timer 1
	service_row "W7 growth in 10 s of requests, MB" W7 64 rss_growth_bytes 1000000
	service_row "W8 storm of 1M in one tick: all handed over, ms" W8 1000000 hand_over_ns 1000000
	service_row "W8 CPU of the longest tick, ms" W8 1000000 tick_cpu_max_ns 1000000
	service_row "W9 server, CPU ns a request" W9 20000 cpu_ns_per_op 1
	service_row "W10 series, CPU ns a run" W10 100000 cpu_ns_per_op 1
	service_row "W10 mean drift after 10 s, µs" W10 100000 drift_mean_ns 1000
}

layers_table() {
	echo "| an empty task through | wall ns | CPU ns |"
	echo "|---|---|---|"
	for c in ring pool-mutex tickwheel-batch tickwheel-pool tickwheel-strand tickwheel-scheduler tickwheel-limiter \
		tickwheel-semaphore; do
		for w in W12 W11; do
			v=$(value $w 1 1 $c ns_per_op)
			[ -n "$v" ] || continue
			case $c in
			ring) name="Concurrency Kit's ring, polled" ;;
			pool-mutex) name="a mutex and a condition variable" ;;
			tickwheel-batch) name="due timers in batches, one worker" ;;
			*) name="a ${c#tickwheel-}" ;;
			esac
			echo "| $name | $(short "$v") | $(short "$(value $w 1 1 $c cpu_ns_per_op)") |"
			break
		done
	done
}

# ---- README's table: how many times as long it takes elsewhere

bold_below_one() {
	awk -v r="$1" 'BEGIN { printf(r < 0.95 ? "**%.2f**" : r < 9.95 ? "%.1f" : "%.0f", r) }'
}

over_ours() {
	[ -z "$1" ] || bold_below_one "$(awk -v x="$1" -v y="$ours" 'BEGIN { print x / y }')"
}

# readme_row TEXT WORKLOAD N THREADS FIGURE
readme_row() {
	ours=$(value "$2" "$3" "$4" tickwheel "$5")
	[ -n "$ours" ] || return 0
	peer=$(best "$2" "$3" "$4" "$5" safe "$locked")
	heap=$(best "$2" "$3" "$4" "$5" bare "$bare_heaps")
	printf '| %s | %s | %s | %s | %s |\n' "$1" "$(over_ours "${peer%% *}")" \
		"$(over_ours "$(value "$2" "$3" "$4" go "$5")")" \
		"$(over_ours "$(value "$2" "$3" "$4" netty "$5")")" "$(over_ours "${heap%% *}")"
}

readme_table() {
	echo "| work | heap or C library behind a lock, the best | Go | Netty's wheel | heap of one thread, no lock |"
	echo "|---|---|---|---|---|"
	readme_row "a request: schedule, then cancel" W2 64 1 ns_per_op
	readme_row "the same on two threads" W2 64 2 ns_per_op
	readme_row "cancel and schedule among 100,000 timers" W1 100000 1 ns_per_op
	readme_row "the same on two threads" W1 100000 2 ns_per_op
	readme_row "1,000,000 timers fire in 2 s (CPU time)" W4 1000000 1 cpu_ns_per_op
	readme_row "100,000 timers fire in 2 s (CPU time)" W4 100000 1 cpu_ns_per_op
	readme_row "memory of a timer" W6 1000000 1 bytes_per_timer
}

if grep -q '^<!-- figures -->$' "$readme"; then
	{
		sed '/^<!-- figures -->$/q' "$readme"
		echo
		readme_table
		echo
		sed -n '/^<!-- \/figures -->$/,$p' "$readme"
	} >"$list.new"
	cat "$list.new" >"$readme"
fi

# ---- the page

machine=$(jq -r '.machine | "\(.cpu), \(.cores) cores, \(.compiler). " +
	"One `clock_gettime` takes \(.clock_ns * 10 | round / 10) ns,\n" +
	"an uncontended compare-and-swap \(.cas_ns * 10 | round / 10) ns"' "$results")
occasion=$(jq -r '.occasion | "\(.took_s | round) s, mode \(.mode), \(.when); " +
	"other processes used \(.others_cpu_s * 10 | round / 10) s of CPU time meanwhile"' "$results")
commit=$(jq -r '.machine.commit[0:7]' "$results")
near=$(jq -r '[.cells[].rtt_ns.runs? // [] | .[]] | "\([.[] | select(. < 120)] | length) of \(length)"' "$results")
# shellcheck source=bench/figures_text.sh
. "$(dirname "$0")/figures_text.sh" >"$page"
echo "page         $page"
