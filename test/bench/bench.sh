#!/bin/sh
# bench.sh BENCH: what the bench does with bad options, bad files, full disks, signals, one core and no terminal, with a
# run that crashes or breaks a promise; its comparison of two results; its page with and without gnuplot; the tables of
# docs/figures.md. Measures nothing.
# shellcheck disable=SC2016,SC2086 # backquotes that nobody may run; lists of options
set -eu

[ $# -eq 1 ] || { echo "usage: bench.sh BENCH" >&2; exit 2; }
program=$(realpath "$1")
tree=$(realpath "$(dirname "$0")/../..")
dir=$(mktemp -d)
running=
# shellcheck disable=SC2317 # called by the trap
clean_up() {
	[ -z "$running" ] || kill -KILL "$running" 2>/dev/null || true
	rm -rf "$dir"
}
trap clean_up EXIT
cd "$dir"
export PYTHONDONTWRITEBYTECODE=1

fail() {
	echo "bench: $1" >&2
	sed 's/^/  out: /' out >&2
	sed 's/^/  err: /' err >&2
	exit 1
}

bench() { timeout 60 "$tree/bench/bench.py" "$program" "$@"; }
# gives STATUS WHAT ARGS...: the bench ends with STATUS; what it writes matches the extended regular expression WHAT.
gives() {
	wanted=$1 what=$2 status=0
	shift 2
	bench "$@" >out 2>err </dev/null || status=$?
	[ "$status" -eq "$wanted" ] || fail "exit status $status instead of $wanted: $*"
	cat out err | grep -Eq -e "$what" || fail "does not say '$what': $*"
}
says() { cat out err | grep -Eq -e "$1" || fail "does not say '$1'"; }
says_not() { ! cat out err | grep -Eq -e "$1" || fail "says '$1'"; }

# The quickest cell there is.
quick="--quick --only W2 --candidate limit --reps 1 --threads 1"

# ---- bad usage

gives 2 "no such workload: 'W99'" --only W1,W99
gives 2 "no such workload: 'w1;ls'" --only 'w1;ls'
gives 2 "no such candidate: 'sundial'" --candidate tickwheel,sundial
gives 2 "empty list" --only ,
for number in 0 -1 x 1x '' 99999999999999999999; do
	gives 2 "not a number in range: '$number'|expected one argument" --n "$number"
done
gives 2 "unrecognized arguments: --fastest" --fastest
gives 2 "expected one argument" --out
gives 2 "unrecognized arguments: tickwheel" tickwheel
gives 2 "not allowed with" --quick --full
gives 2 "nothing to run" --only W4 --candidate limit
gives 0 "usage: bench" --help
says "^  W13 .*paced"
says "^  wheel-mutex "

# ---- results that cannot be read

machine='"machine": {"cores": 2, "cpu": "<b>`id`</b>", "compiler": "cc", "commit": "abc", "clock_ns": 20, "cas_ns": 5}'
# cell CANDIDATE N FIGURE RUNS
cell() { echo "{\"workload\": \"W1\", \"candidate\": \"$1\", \"n\": $2, \"threads\": 1, \"$3\": {\"runs\": [$4]}}"; }
results() { echo "{$machine, \"cells\": [$1]}"; }

# bad NAME WHAT: results on stdin.
bad() {
	cat >"$1.json"
	gives 2 "$2" --report "$1.json"
	gives 2 "$2" --compare good.json "$1.json"
	[ ! -e report.html ] || fail "a page was made of $1.json"
}
results "$(cell tickwheel 1000 ns_per_op '10, 11, 12')" >good.json
gives 0 "0 of 1 figures" --compare good.json good.json
: | bad empty "is not JSON"
echo 'W1 12 ns' | bad words "is not JSON"
head -c 150 good.json | bad cut "is not JSON"
head -c 4096 /dev/urandom | bad noise "is not JSON"
echo '[]' | bad list "is not a results file"
echo "{$machine}" | bad cells "no list of cells"
results 7 | bad number "a cell"
results '{"workload": "W1", "n": 1, "threads": 1}' | bad candidate "candidate"
results "$(cell 'a`id`' 1 x 1)" | bad name "workload or candidate"
results "$(cell tickwheel -1 x 1)" | bad negative "without n"
results "$(cell tickwheel 1000 x '"1"')" | bad text "no runs in figure x"
results "$(cell tickwheel 1000 x 1e999)" | bad huge "no runs in figure x"
results "$(cell tickwheel 1000 x 1 | sed 's/"runs"/"walks"/')" | bad runs "no runs in figure x"
gives 2 "missing.json cannot be read: No such file" --compare missing.json $quick

# ---- results that cannot be written

gives 1 "/dev/full could not be written: No space left" $quick --out /dev/full
[ -c /dev/full ] || fail "/dev/full was replaced"
gives 1 "could not be written" $quick --out good.json/results.json
mkdir kept
cp good.json kept/results.json
status=0
(ulimit -f 0; bench $quick --out kept/results.json 2>&1 | cat >/dev/null)
cmp -s good.json kept/results.json || fail "results were lost to a full disk"
[ "$(ls kept)" = results.json ] || fail "something was left beside the results"

# ---- a run: folders are made, lines are plain, the page needs nothing else

gives 0 "W2 request" $quick --out new/folder/results.json
says "W2 n=64 threads=1: 1 candidates; about 0:00 left"
! grep -q "$(printf '[\r\033]')" out err || fail "escapes, and no terminal"
[ -s new/folder/report.html ] || fail "no page"
gives 0 "0 of [0-9]+ figures have moved" --compare new/folder/results.json new/folder/results.json
says_not "only in"
# On a busy machine the other processor may not answer in time.
for try in 1 2 3 4 5; do
	[ "$(nproc)" -gt 1 ] && ! grep -q '"rtt_ns"' new/folder/results.json || break
	[ "$try" -lt 5 ] || fail "runs without their round trips"
	bench $quick --out new/folder/results.json >out 2>err || fail "a run fails"
done

# ---- one core

one=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
taskset -c "$one" "$tree/bench/bench.py" "$program" --quick --only W2 --candidate limit --reps 1 --out one.json \
	>out 2>err || fail "fails on one core"
says "one core: 1 groups of cells with more threads are skipped"
! grep -q '"threads": 2' one.json || fail "two threads on one core"

# ---- a program that crashes, breaks a promise or ends without a result

# stand_in COMMANDS: what a run of tickwheel does.
stand_in() {
	printf '#!/bin/sh\n[ "$1 $3" = "run tickwheel" ] || exec %s "$@"\n%s\n' "$program" "$1" >stand_in
	chmod +x stand_in
}
# broken TEXT COMMANDS
broken() {
	stand_in "$2"
	status=0
	timeout 60 "$tree/bench/bench.py" ./stand_in --quick --only W2 --candidate tickwheel,limit --threads 1 \
		--reps 2 --out broken.json >out 2>err || status=$?
	[ "$status" -eq 1 ] || fail "exit status $status of a run that fails"
	says "FAILED: W2 tickwheel n=64 threads=1: $1"
	grep -q '"candidate": "limit"' broken.json || fail "the other candidate's figures are lost"
}
broken "crashed: Segmentation fault" 'kill -SEGV $$'
broken "ended without a result, exit status 3" 'echo "figure ns_per_op 1"; exit 3'
broken "2 timers ran early" 'echo "figure ns_per_op 1"; echo "trouble 2 timers ran early"; echo end'

# The work that the first repetition found to fit is passed on to the next.
stand_in 'echo "$*" >>orders; printf "%s\n" "figure ns_per_op 12.5" "ops 4711" end'
"$tree/bench/bench.py" ./stand_in --quick --only W2 --candidate tickwheel --threads 2 --reps 2 --out orders.json \
	>out 2>err || fail "a good run fails"
[ "$(tail -n 2 orders | tr '\n' '|')" = "run W2 tickwheel 64 2 0 quick|run W2 tickwheel 64 2 4711 quick|" ] ||
	fail "wrong orders"
tr -d ' \n' <orders.json | grep -q '"runs":\[12.5,12.5\]' || fail "figures are not in the results"

# ---- interrupted

# interrupted SIGNAL: the finished cells are there, the run's process is not.
interrupted() {
	rm -f part.json pid
	stand_in '[ "$2" != W5 ] || { echo $$ >pid; exec sleep 300; }; printf "%s\n" "figure ns_per_op 1" end'
	"$tree/bench/bench.py" ./stand_in --quick --only W2,W5 --candidate tickwheel --threads 1 --reps 1 \
		--out part.json >out 2>err </dev/null &
	running=$!
	until [ -s pid ]; do
		kill -0 "$running" 2>/dev/null || fail "ended early"
		sleep 0.05
	done
	kill -"$1" "$running"
	status=0
	wait "$running" || status=$?
	running=
	[ "$status" -eq 130 ] || fail "exit status $status after SIG$1"
	! kill -0 "$(cat pid)" 2>/dev/null || fail "the run's process goes on after SIG$1"
	grep -q '"complete": false' part.json || fail "says to be complete after SIG$1"
	gives 0 "0 of [1-9][0-9]* figures" --compare part.json part.json
	grep -q interrupted report.html || fail "no page after SIG$1, or it does not say so"
}
interrupted TERM
interrupted HUP

# ---- the rule of comparison

# Apart; overlapping; apart, but by less than 2.5 %; single runs, near and far; not in both.
results "$(cell tickwheel 1000 ns_per_op '10, 11, 12'), $(cell heap-mutex 1000 ns_per_op '100, 104, 103'),
	$(cell tickwheel 2000 ns_per_op '10, 11, 12'), $(cell tickwheel 3000 ns_per_op '100, 100.1, 100.2'),
	$(cell tickwheel 4000 ns_per_op 10), $(cell tickwheel 5000 ns_per_op 10), $(cell tickwheel 6000 ns_per_op 1),
	$(cell tickwheel 8000 early '0, 0, 0')" >old.json
results "$(cell tickwheel 1000 ns_per_op '13, 14, 15'), $(cell heap-mutex 1000 ns_per_op '102, 104, 106'),
	$(cell tickwheel 2000 ns_per_op '12, 13, 14'), $(cell tickwheel 3000 ns_per_op '101, 101.1, 101.2'),
	$(cell tickwheel 4000 ns_per_op 14), $(cell tickwheel 5000 ns_per_op 20), $(cell tickwheel 7000 ns_per_op 1),
	$(cell tickwheel 8000 early '1, 1, 2')" >new.json
gives 0 "3 of 7 figures have moved. 1 cell only in the old results. 1 cell only in the new ones." \
	--compare old.json new.json
says "^W1 +1k x 1 +tickwheel +ns_per_op +11 +14 +1.27$"
says "^W1 +5k x 1 +tickwheel +ns_per_op +10 +20 +2.00$"
says "^W1 +8k x 1 +tickwheel +early +0 +1 +-$"
says_not "1k x 1 +heap-mutex|2k x|3k x|4k x|6k x|7k x"
sed 's/"runs": \[13,/"runs": [13]}, "failure": "it ran early", "b": {"runs": [13,/' new.json >failed.json
gives 0 "1 cell left out: failed in one of the runs" --compare old.json failed.json
gives 0 "page +report.html" --report failed.json
grep -q "FAILED: W1 tickwheel n=1000 threads=1: it ran early" report.html || fail "a page that is silent on a failure"
sed 's/"cores": 2/"cores": 64/' new.json >other.json
gives 0 "Another number of cores" --compare old.json other.json

# ---- near and far are kept apart

# apart NS RTT: a cell whose runs were made near and far.
apart() { results "$(cell tickwheel 1000 ns_per_op "$1" | sed "s/}}$/}, \"rtt_ns\": {\"runs\": [$2]}}/")"; }
apart '10, 30, 11, 31, 12, 32' '60, 320, 60, 320, 60, 320' >old_apart.json
apart '20, 30, 21, 31, 22, 32' '60, 320, 60, 320, 60, 320' >new_apart.json
apart '31, 32, 33' '320, 321, 322' >far.json
gives 0 "1 of 2 figures have moved" --compare old_apart.json new_apart.json
says "^W1 +1k x 1 near +tickwheel +ns_per_op +11 +21 +1.91$"
gives 0 "0 of 1 figures have moved. 1 cell only in the old results." --compare old_apart.json far.json
gives 0 "of 1 figures" --compare good.json old_apart.json # one side knows no distances: all runs together
gives 0 "page +report.html" --report old_apart.json
grep -q "1k x 1 near" report.html && grep -q "1k x 1 far" report.html || fail "a page that mixes near and far"

# ---- docs/figures.md

# request CANDIDATE RUNS RTT
request() {
	echo "{\"workload\": \"W2\", \"candidate\": \"$1\", \"n\": 64, \"threads\": 1,
		\"ns_per_op\": {\"runs\": [$2]}, \"rtt_ns\": {\"runs\": [$3]}}"
}
occasion='"occasion": {"complete": true, "mode": "default", "when": "today", "took_s": 1, "others_cpu_s": 0}'
cells="$(request tickwheel '30, 10, 12, 31' '300, 60, 61, 300'), $(request heap-mutex 44 60),
	$(request libev-mt 55 60), $(request heap-bare 5.5 60), $(request wheel-mutex 22 300)"
echo "{$machine, $occasion, \"cells\": [$cells]}" >run.json
mkdir -p copy/docs
cp "$tree/docs/figures.md" copy/docs/
cp "$tree/README.md" copy/
(cd copy && "$tree/bench/figures.py" ../run.json) >out 2>err || fail "no page of figures"
grep -qF '| request (W2) | 1 | **11.0** |  | 44.0 (heap-mutex) | 22.0 | 5.50 |  |' copy/docs/figures.md ||
	fail "a wrong row of figures"
grep -qF '| a request: schedule, then cancel | 4.0 | 2.0 | **0.50** |  |' copy/README.md || fail "a wrong row of ratios"
text_of() { sed '/^<!-- [a-z]* -->/,/^<!-- \/[a-z]* -->/d' "$1"; }
for page in docs/figures.md README.md; do
	[ "$(text_of "$tree/$page")" = "$(text_of "copy/$page")" ] || fail "$page lost its text"
done
echo "{$machine, $(echo "$occasion" | sed s/true/false/), \"cells\": []}" >part.json
! (cd copy && "$tree/bench/figures.py" ../part.json) >out 2>err || fail "a page of an interrupted run"
says "the run was not complete"

# ---- the page

gives 0 "page +report.html" --report new.json
grep -q '<svg' report.html || fail "a page without plots"
grep -q '&lt;b&gt;`id`' report.html || fail "what was read stands in the page as it is"
! grep -E '(src|href|url)[=(]["'"'"']?[^#"'"'"']' report.html | grep -v xmlns || fail "the page needs something else"
# Zeros have no logarithm, and a median may be below zero.
results "$(cell tickwheel 1000 ns_per_op 0), $(cell tickwheel 2000 ns_per_op "0, -1"),
	$(cell tickwheel 3000 ns_per_op 0),
	$(cell heap-mutex 1000 lateness_max_ns 0), $(cell heap-mutex 1000 lateness_p50_ns 0)" >zeros.json
gives 0 "page +report.html" --report zeros.json
results "" >nothing.json
gives 0 "page +report.html" --report nothing.json
mkdir bin
for tool in env timeout sh cat; do ln -s "$(command -v $tool)" bin/; done
ln -s "$(python3 -c 'import sys; print(sys.executable)')" bin/python3
# without WHAT: gnuplot is the one in bin/, or there is none.
without() {
	PATH="$dir/bin" bench --report new.json >out 2>err || fail "fails without gnuplot"
	says "no plots: $1"
	grep -q "There are no plots" report.html || fail "a page that says nothing of its missing plots"
}
without "gnuplot is not installed \(Debian's package gnuplot-nox\)"
printf '#!/bin/sh\ncat >/dev/null; echo "line 1: unknown terminal" >&2; exit 1\n' >bin/gnuplot
chmod +x bin/gnuplot
without "gnuplot failed: line 1: unknown terminal"
printf '#!/bin/sh\ncat >/dev/null; echo nonsense\n' >bin/gnuplot
without "gnuplot failed: it said nothing"

echo "bench: ok"
