#!/bin/sh
# lars.sh BENCH PAGE: measures the hashed wheel against the heap executor and writes PAGE (docs/lars.md) with its plots
# beside it. Results of single sizes stay in build/lars/ and are not measured again; remove the folder to start over.
# SIZES="1000 10000" measures and shows other sizes, REPS=1 repeats less often.
set -eu

[ $# -eq 2 ] || { echo "usage: lars.sh BENCH PAGE" >&2; exit 2; }
bench=$1 page=$2 plots=${2%.md} data=build/lars
sizes=${SIZES:-1000 10000 100000 1000000 10000000}
candidates="tickwheel heap-mutex java-stpe netty"
mkdir -p "$data"

for tool in jq gnuplot; do
	command -v $tool >/dev/null || { echo "lars: needs $tool (Debian's jq, gnuplot-nox)" >&2; exit 1; }
done
for candidate in $candidates; do
	"$bench" --help | grep -q "^  $candidate " ||
		{ echo "lars: the bench has no $candidate: make deps-rivals" >&2; exit 1; }
done

# ---- measure

list=$(echo "$candidates" | tr ' ' ,)
for n in $sizes; do
	reps=${REPS:-3}
	[ "$n" -lt 10000000 ] || reps=1
	for workload in W13 W4; do
		[ "$workload" = W13 ] || [ "$n" -lt 10000000 ] || continue # five million a second: no candidate can
		file=$data/$workload-$n.json
		[ ! -s "$file" ] || continue
		"$bench" --only "$workload" --n "$n" --threads 1 --reps "$reps" --candidate "$list" \
			--out "$data/part.json" >&2
		mv "$data/part.json" "$file"
	done
done

# ---- read

# value FILE CANDIDATE FIGURE: the median, or nothing.
value() {
	[ ! -s "$1" ] || jq -r --arg s "$2" --arg f "$3" \
		'.cells[] | select(.candidate == $s and .workload != "trial" and (has("failure") | not)) |
			.[$f].median // empty' "$1"
}

# column FIGURE WORKLOAD CANDIDATE: n and value, a line each.
column() {
	for n in $sizes; do
		v=$(value "$data/$2-$n.json" "$3" "$1")
		[ -z "$v" ] || echo "$n $v"
	done
}

# ---- plot

# plot NAME TITLE FIGURE WORKLOAD
plot() {
	lines=
	for candidate in $candidates; do
		column "$3" "$4" "$candidate" >"$data/$1-$candidate.data"
		style="with linespoints lw 2 pt 7 ps 0.6"
		lines="$lines${lines:+, }'$data/$1-$candidate.data' title '$candidate' $style"
	done
	gnuplot --default-settings - <<END
set terminal svg size 620,360 noenhanced background rgb 'white' font 'sans-serif,12'
set output '$plots-$1.svg'
set title "$2"
set logscale xy
set format x '%.0s%c'
set xlabel 'timers'
set ylabel 'nanoseconds'
set key outside right top
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
plot $lines
END
}

# ---- write

name_of() {
	case $1 in
	tickwheel) echo "tickwheel" ;;
	heap-mutex) echo "heap, mutex" ;;
	java-stpe) echo "STPE (Java)" ;;
	netty) echo "Netty's wheel" ;;
	baseline) echo "a thread that only sleeps from tick to tick" ;;
	esac
}

size_of() {
	case $1 in
	*000000) echo "${1%000000}M" ;;
	*000) echo "${1%000}k" ;;
	*) echo "$1" ;;
	esac
}

heading() {
	line="| $1 |" rule="|---|"
	for candidate in $candidates; do
		line="$line $(name_of "$candidate") |" rule="$rule---|"
	done
	printf '%s\n%s\n' "$line" "$rule"
}

# table FIGURE WORKLOAD: a row for each size.
table() {
	heading "timers"
	for n in $sizes; do
		printf '| %s |' "$(size_of "$n")"
		for candidate in $candidates; do
			v=$(value "$data/$2-$n.json" "$candidate" "$1")
			if [ -n "$v" ]; then
				printf ' %.0f |' "$v"
			elif [ -s "$data/$2-$n.json" ]; then
				printf ' failed |'
			else
				printf ' - |'
			fi
		done
		echo
	done
}

# growth FIGURE WORKLOAD: a row of how the figure grows from the first size to the last.
growth() {
	printf '| growth |'
	for candidate in $candidates; do
		column "$1" "$2" "$candidate" | awk 'NR == 1 { first = $2 } { last = $2 }
			END { if (NR > 1 && first > 0) printf " %.1f times |", last / first; else printf " |" }'
	done
	echo
}

# The size at which lateness is shown: the largest at which the machine has time to spare.
lateness_size=$(for n in $sizes; do [ "$n" -gt 100000 ] || echo "$n"; done | tail -n 1)
[ -n "$lateness_size" ] || lateness_size=${sizes%% *}

lateness_table() {
	file=$data/W4-$lateness_size.json
	printf '| | p50 | p99 | max |\n|---|---|---|---|\n'
	for candidate in $candidates baseline; do
		printf '| %s |' "$(name_of "$candidate")"
		for figure in lateness_p50_ns lateness_p99_ns lateness_max_ns; do
			v=$(value "$file" "$candidate" $figure)
			if [ -n "$v" ]; then
				printf ' %.0f |' "$(echo "$v" | awk '{ print $1 / 1000 }')"
			else
				printf ' |'
			fi
		done
		echo
	done
}

machine() {
	jq -r '.machine | "\(.cpu), \(.cores) cores, \(.compiler); " +
		"clock \(.clock_ns * 10 | round / 10) ns, compare-and-swap \(.cas_ns * 10 | round / 10) ns"' \
		"$data/W13-${sizes%% *}.json"
}

# "1k 3, 10k 3"
repetitions() {
	for n in $sizes; do
		printf '%s%s %s' "$before" "$(size_of "$n")" \
			"$(jq '[.cells[].schedule_ns.runs? // [] | length] | max' "$data/W13-$n.json")"
		before=", "
	done
}

plot schedule "schedule one timer, caller's wall time" schedule_ns W13
plot cancel "cancel one timer, caller's wall time" cancel_ns W13
plot pair "schedule and cancel, CPU time of the whole process" cpu_ns_per_op W13
plot expire "expire one timer, CPU time of the whole process" cpu_ns_per_op W4
base=$(basename "$plots")
before=

{
	cat <<END
# The hashed wheel against the heap

This page is made by \`make lars\`. Do not edit it: edit \`bench/rivals/lars.sh\`.

tickwheel follows Akka's LightArrayRevolverScheduler (LARS), a hashed wheel. The claim of a wheel is
that schedule, cancel and expiry take the same time with a thousand timers and with ten million. A
heap takes more time with each doubling. This page measures both: tickwheel and Netty's
HashedWheelTimer, and on the other side Java's ScheduledThreadPoolExecutor (STPE) and a heap behind
a mutex in C.

Machine: $(machine).
Medians; repetitions: $(repetitions). The candidates of a
size ran one after the other, in processes of their own.

## Schedule

![schedule](${base}-schedule.svg)

Nanoseconds of the calling thread for each call. The timers that are pending are 30 to 60 s out. A
number of timers is cancelled and scheduled again; the two halves are timed apart.

END
	table schedule_ns W13
	growth schedule_ns W13
	cat <<END

## Cancel

![cancel](${base}-cancel.svg)

Nanoseconds of the calling thread for each call.

END
	table cancel_ns W13
	growth cancel_ns W13
	cat <<END

## Schedule and cancel, with the work that is left to other threads

![schedule and cancel](${base}-pair.svg)

A wheel leaves work to its own thread; the Java virtual machine collects garbage on others. CPU
nanoseconds of the whole process for one schedule and one cancel:

END
	table cpu_ns_per_op W13
	growth cpu_ns_per_op W13
	cat <<END

## Expiry

![expiry](${base}-expire.svg)

CPU nanoseconds of the whole process for each timer. All timers are due within two seconds. With few
timers this is the cost of waking up for each tick, or for each timer; with many it is the cost of
the timers themselves. Ten million in two seconds are more than any candidate can start here.

END
	table cpu_ns_per_op W4
	cat <<END

## What a wheel's resolution costs

A heap knows each deadline to the nanosecond. A wheel knows its tick, 1 ms here for both wheels.
Microseconds from the deadline to the start of the callback, with $(size_of "$lateness_size") timers
due within two seconds:

END
	lateness_table
	cat <<END

None ran early. tickwheel rounds a deadline up to the next tick, and a delay may take one tick more,
since it is counted from a time that is up to a tick old. So a timer is late by up to two ticks. A
shorter tick makes timers more exact, and wakes the thread more often while timers are due.

## What cannot be compared

- **Java.** Each schedule allocates a task, and collections stop all threads. Both are part of the
  figures. The heap has 512 MB and 500 bytes for each timer. The virtual machine has compiled the
  code before the measurement begins.
- **STPE** removes a cancelled task immediately here (setRemoveOnCancelPolicy). Without that, a
  cancel is a store, and each cancelled task stays in the heap until its deadline.
- **Netty** takes new and cancelled timers from its queues in the next tick, as tickwheel does. Its
  wheel has 65536 buckets here, so that no timer takes two rounds.
- **Beyond the caches** each call waits for memory. A wheel's cost then grows with the number of
  timers too, as that of any structure does: a timer's record is somewhere in memory.
END
} >"$data/page.md"
mv "$data/page.md" "$page"
echo "page         $page"
