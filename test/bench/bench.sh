#!/bin/sh
# bench.sh BENCH: what the bench does with bad options, bad files, full disks, signals, one core and no terminal; its
# comparison of two results; its page with and without gnuplot. Measures nothing.
# shellcheck disable=SC2016,SC2086 # backquotes that nobody may run; lists of options
set -eu

[ $# -eq 1 ] || { echo "usage: bench.sh BENCH" >&2; exit 2; }
bench=$(realpath "$1")
figures=$(realpath "$(dirname "$0")/../../bench/figures.sh")
dir=$(mktemp -d)
running=
waiting=
# shellcheck disable=SC2317 # called by the trap
clean_up() {
	for process in $running $waiting; do kill -KILL "$process" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap clean_up EXIT
cd "$dir"

fail() {
	echo "bench: $1" >&2
	sed 's/^/  out: /' out >&2
	sed 's/^/  err: /' err >&2
	exit 1
}

# gives STATUS WHAT ARGS...: the bench ends with STATUS; what it writes matches the extended regular expression WHAT.
gives() {
	wanted=$1 what=$2 status=0
	shift 2
	timeout 60 "$bench" "$@" >out 2>err </dev/null || status=$?
	[ "$status" -eq "$wanted" ] || fail "exit status $status instead of $wanted: $*"
	cat out err | grep -Eq "$what" || fail "does not say '$what': $*"
}
says() { cat out err | grep -Eq "$1" || fail "does not say '$1'"; }
says_not() { ! cat out err | grep -Eq "$1" || fail "says '$1'"; }

# The quickest cell there is.
quick="--quick --only W2 --candidate limit --reps 1 --threads 1"

# ---- bad usage

gives 2 "no such workload: 'W99'" --only W1,W99
gives 2 "no such workload: 'w1;ls'" --only 'w1;ls'
gives 2 "no such candidate: 'sundial'" --candidate tickwheel,sundial
gives 2 "empty list" --only ,
for number in 0 -1 x 1x '' 99999999999999999999; do
	gives 2 "not a number in range: '$number'|empty list" --n "$number"
done
gives 2 "see --help" --fastest
gives 2 "see --help" --out
gives 2 "what is 'tickwheel'" tickwheel
gives 2 "not together: '--quick, --full'" --quick --full
gives 2 "nothing to run" --only W4 --candidate limit
gives 0 "usage: bench" --help

# ---- results that cannot be read

machine='"machine": {"cores": 2, "cpu": "<b>`id`</b>", "compiler": "cc", "commit": "abc", "clock_ns": 20, "cas_ns": 5}'
# cell CANDIDATE N FIGURE RUNS
cell() { echo "{\"workload\": \"W1\", \"candidate\": \"$1\", \"n\": $2, \"threads\": 1, \"$3\": {\"runs\": [$4]}}"; }
results() { echo "{$machine, \"cells\": [$1]}"; }

# bad NAME WHAT: results on stdin.
bad() {
	cat >"$1.json"
	gives 2 "$2" --report "$1.json"
	gives 2 "$2" --compare "$1.json" $quick
	gives 2 "$2" --compare good.json "$1.json"
	[ ! -e report.html ] || fail "a page was made of $1.json"
}
results "$(cell tickwheel 1000 ns_per_op '10, 11, 12')" >good.json
gives 0 "0 of 1 figures" --compare good.json good.json

# A gnuplot that hangs is waited for for half a minute: it begins here, and is judged at the end.
mkdir hangs
printf '#!/bin/sh\necho $$ >hangs/pid\nexec sleep 300\n' >hangs/gnuplot
chmod +x hangs/gnuplot
PATH="$dir/hangs:$PATH" timeout 120 "$bench" --report good.json --page hangs/page.html >hangs/out 2>hangs/err &
waiting=$!

: | bad empty "is not JSON"
echo 'W1 12 ns' | bad words "is not JSON: line 1"
head -c 150 good.json | bad cut "is not JSON"
head -c 4096 /dev/urandom | bad noise "is not JSON"
echo '[]' | bad list "is not a results file"
echo '{}' | bad nothing "machine"
echo "{$machine}" | bad cells "no list of cells"
echo "{$machine, \"cells\": {}}" | bad object "no list of cells"
results 7 | bad number "a cell"
results '{"workload": "W1", "n": 1, "threads": 1}' | bad candidate "candidate"
results "$(cell 'a`id`' 1 x 1)" | bad name "no name of a workload or candidate"
results "$(cell "" 1 x 1)" | bad anonymous "no name of a workload or candidate"
results "$(cell tickwheel -1 x 1)" | bad negative "out of range"
results "$(cell tickwheel 1e3 x 1)" | bad real "a cell"
results "$(cell tickwheel 1000 x '"1"')" | bad text "no number"
results "$(cell tickwheel 1000 'x y' 1)" | bad figure "no name of a figure"
results "$(cell tickwheel 1000 x 1e999)" | bad huge "is not JSON"
results "$(cell tickwheel 1000 x 1 | sed 's/"runs"/"walks"/')" | bad runs "no runs in figure x"
gives 2 "missing.json cannot be read: No such file" --compare missing.json $quick
gives 2 "missing.json cannot be read: No such file" --report missing.json
gives 2 "/ " --report /

# ---- results that cannot be written

gives 1 "/dev/full could not be written: No space left" $quick --out /dev/full
[ -c /dev/full ] || fail "/dev/full was replaced"
gives 1 "/dev/full could not be written: No space left" --report good.json --page /dev/full
gives 2 ". could not be written: Is a directory" $quick --out .
gives 2 "could not be written: Not a directory" $quick --out good.json/results.json
for arguments in "--help" "--compare good.json good.json" "$quick"; do
	status=0
		"$bench" $arguments >/dev/full 2>err || status=$?
	[ "$status" -eq 1 ] || fail "exit status $status for a full standard output: $arguments"
done
cp good.json kept.json
status=0
(ulimit -f 0; exec "$bench" $quick --out kept.json >/dev/null 2>&1) || status=$?
[ "$status" -eq 1 ] || fail "exit status $status where files may not grow"
cmp -s good.json kept.json || fail "results were lost to a full disk"
[ "$(echo kept.json*)" = kept.json ] || fail "something was left beside the results"

# ---- a run: folders are made, lines are plain, the page needs nothing else

gives 0 "W2 request" $quick --out new/folder/results.json
says "W2 n=64 threads=1: 1 candidates, 1 runs each; about 0:00 left"
! grep -q "$(printf '[\r\033]')" out err || fail "escapes, and no terminal"
[ -s new/folder/report.html ] || fail "no page"
gives 0 "0 of [0-9]+ figures have moved" --compare new/folder/results.json new/folder/results.json
says_not "only in"
if command -v script >/dev/null; then
	TERM=xterm script -qec "$bench $quick" /dev/null >out 2>err </dev/null || fail "fails on a terminal"
	grep -q "$(printf '\r\033')"'\[K.*%, about 0:00 left: W2 n=64 threads=1 limit, run 1 of 1' out ||
		fail "no progress"
fi

# ---- one core

one=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
status=0
taskset -c "$one" "$bench" --quick --only W2 --candidate limit --reps 1 --out one.json >out 2>err || status=$?
[ "$status" -eq 0 ] || fail "exit status $status on one core"
says "one core: 1 groups of cells with more threads are skipped"
! grep -q '"threads": 2' one.json || fail "two threads on one core"
status=0
taskset -c "$one" "$bench" --quick --only W2 --candidate limit --threads 2 >out 2>err || status=$?
[ "$status" -eq 2 ] || fail "exit status $status where one core leaves nothing to run"
says "nothing to run"

# ---- interrupted

# interrupted SIGNAL: the finished cells are there, the run's process is not.
interrupted() {
	rm -f part.json
	"$bench" --quick --only W2,W5 --candidate tickwheel --threads 1 --reps 1 --out part.json >out 2>err </dev/null &
	running=$!
	until [ -s part.json ]; do
		kill -0 "$running" 2>/dev/null || fail "ended early"
		sleep 0.05
	done
	sleep 0.3
	child=$(cat "/proc/$running/task/$running/children")
	[ -n "$child" ] || fail "no process of the run"
	# One that stands still ends only if it is killed.
		kill -STOP $child
	kill -"$1" "$running"
	(sleep 20; kill -KILL "$running") 2>/dev/null &
	patience=$!
	status=0
	wait "$running" || status=$?
	running=
	kill "$patience" 2>/dev/null || true
	[ "$status" -eq 130 ] || fail "exit status $status after SIG$1"
	for process in $child; do
		[ ! -e "/proc/$process" ] || fail "the run's process goes on after SIG$1"
	done
	grep -q '"complete": false' part.json || fail "says to be complete after SIG$1"
	gives 0 "0 of [1-9][0-9]* figures" --compare part.json part.json
	grep -q interrupted report.html || fail "no page after SIG$1, or it does not say so"
	[ "$(echo part.json*)" = part.json ] || fail "something was left beside the results"
}
interrupted TERM
interrupted INT
grep -q '"mode": "quick"' part.json || fail "does not say that it was quick"
grep -q '<dt>run<dd>quick' report.html || fail "a page that does not say that the run was quick"
rm part.json
"$bench" --growth --quick --only W3 --candidate limit --reps 1 --out part.json >out 2>err </dev/null &
running=$!
until [ -s part.json ]; do
	kill -0 "$running" 2>/dev/null || fail "ended early"
	sleep 0.05
done
kill -INT "$running"
wait "$running" || true
running=
grep -q '"mode": "quick growth"' part.json || fail "does not say that only curves were run"
grep -q '<dt>run<dd>quick growth' report.html || fail "a page that does not say that only curves were run"

# ---- the rule of comparison

# Apart; overlapping; apart, but by less than 2.5 % either way; single runs, near and far; not in both.
results "$(cell tickwheel 1000 ns_per_op '10, 11, 12'), $(cell heap-mutex 1000 ns_per_op '100, 104, 103'),
	$(cell tickwheel 2000 ns_per_op '10, 11, 12'), $(cell tickwheel 3000 ns_per_op '100, 100.1, 100.2'),
	$(cell tickwheel 4000 ns_per_op 10), $(cell tickwheel 5000 ns_per_op 10), $(cell tickwheel 6000 ns_per_op 1),
	$(cell tickwheel 8000 early '0, 0, 0'),
	$(cell heap-mutex 9000 ns_per_op 10), $(cell heap-bare 9000 ns_per_op 10)" \
	>old.json
results "$(cell tickwheel 1000 ns_per_op '13, 14, 15'), $(cell heap-mutex 1000 ns_per_op '102, 104, 106'),
	$(cell tickwheel 2000 ns_per_op '12, 13, 14'), $(cell tickwheel 3000 ns_per_op '101, 101.1, 101.2'),
	$(cell tickwheel 4000 ns_per_op 14), $(cell tickwheel 5000 ns_per_op 20), $(cell tickwheel 7000 ns_per_op 1),
	$(cell tickwheel 8000 early '1, 1, 2'),
	$(cell heap-mutex 9000 ns_per_op 20), $(cell heap-bare 9000 ns_per_op 11)" \
	>new.json
gives 0 "4 of 9 figures have moved. 1 cell only in the old results. 1 cell only in the new ones." \
	--compare old.json new.json
says "^W1 +1k x 1 +tickwheel +ns_per_op +11 +14 +1.27 +1.01$"
says "^W1 +5k x 1 +tickwheel +ns_per_op +10 +20 +2.00 +-$"
says "^W1 +8k x 1 +tickwheel +early +0 +1 +- +-$"
says "^W1 +9k x 1 +heap-mutex +ns_per_op +10 +20 +2.00 +1.10$"
says_not "1k x 1 +heap-mutex|heap-bare|2k x|3k x|4k x|6k x|7k x"
gives 0 "^W1 +1k x 1 +tickwheel +ns_per_op +14 +11 +0.79 +0.99$" --compare new.json old.json
sed 's/"runs": \[13,/"runs": [13]}, "failure": "it ran early", "b": {"runs": [13,/' new.json >failed.json
gives 0 "1 cell left out: failed in one of the runs" --compare old.json failed.json
says_not " 1k x"
gives 0 "page +failed.html" --report failed.json --page failed.html
grep -q "FAILED: W1 tickwheel n=1000 threads=1: it ran early" failed.html || fail "a page that is silent on a failure"
sed 's/"cores": 2/"cores": 64/' new.json >other.json
gives 0 "Another machine" --compare old.json other.json

# ---- near and far are kept apart

# apart NS RTT: a cell whose runs were made near and far.
apart() { results "$(cell tickwheel 1000 ns_per_op "$1" | sed "s/}}$/}, \"rtt_ns\": {\"runs\": [$2]}}/")"; }
apart '10, 30, 11, 31, 12, 32' '60, 320, 60, 320, 60, 320' >old_apart.json
apart '20, 30, 21, 31, 22, 32' '60, 320, 60, 320, 60, 320' >new_apart.json
apart '31, 32, 33' '320, 321, 322' >far.json
apart '31, null, 33' '320, 321, null' >holes.json
gives 0 "1 of 2 figures have moved" --compare old_apart.json new_apart.json
says "^W1 +1k x 1 near +tickwheel +ns_per_op +11 +21 +1.91 +-$"
gives 0 "0 of 1 figures have moved. 1 cell only in the old results." --compare old_apart.json far.json
gives 0 "0 of 1 figures have moved. 1 cell only in the old results" --compare old_apart.json holes.json
gives 0 "of 1 figures" --compare good.json old_apart.json # one side knows no distances: all runs together
gives 0 "page +apart.html" --report old_apart.json --page apart.html
grep -q "1k x 1 near" apart.html && grep -q "1k x 1 far" apart.html || fail "a page that mixes near and far"
if [ "$(nproc)" -gt 1 ]; then
	grep -q '"rtt_ns"' new/folder/results.json || fail "a run without its round trip"
fi

# ---- docs/figures.md

# request CANDIDATE KIND RUNS RTT
request() {
	echo "{\"workload\": \"W2\", \"candidate\": \"$1\", \"kind\": \"$2\", \"n\": 64, \"threads\": 1,
		\"ns_per_op\": {\"runs\": [$3]}, \"rtt_ns\": {\"runs\": [$4]}}"
}
occasion='"occasion": {"complete": true, "mode": "default", "when": "today", "took_s": 1, "others_cpu_s": 0}'
cells="$(request tickwheel safe '30, 10, 12, 31' '300, 60, 61, 300'), $(request heap-mutex safe 44 60),
	$(request libev-mt safe 55 60), $(request heap-bare bare 5.5 60), $(request go safe 22 300)"
echo "{$machine, $occasion, \"cells\": [$cells]}" >run.json
printf 'before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n' >readme.md
"$figures" run.json figures.md readme.md >out 2>err || fail "no page of figures"
grep -qF '| request (W2) | 1 | **11.0** |  | 44.0 (heap-mutex) | 5.50 |  |' figures.md || fail "a wrong row of figures"
grep -qF '| request (W2) | 1 | **11.0** | | | 22.0 (2.0) |' figures.md || fail "a wrong row of rivals"
grep -qF '| a request: schedule, then cancel | 4.0 | 2.0 |  | **0.50** |' readme.md || fail "a wrong row of ratios"
[ "$(sed -n '1p;$p' readme.md | tr '\n' ' ')" = "before after " ] || fail "README lost its text"
! grep -q old readme.md || fail "README kept the old table"
echo "{$machine, $(echo "$occasion" | sed s/true/false/), \"cells\": []}" >part.json
! "$figures" part.json figures.md readme.md >out 2>err || fail "a page of an interrupted run"
says "the run was not complete"

# ---- the page

gives 0 "page +report.html" --report new.json
[ "$(grep -c '<svg' report.html)" -ge 3 ] || fail "a page without plots"
grep -q '&#60;b&#62;`id`' report.html || fail "what was read stands in the page as it is"
! grep -E '(src|href|url)[=(]["'"'"']?[^#"'"'"']' report.html | grep -v xmlns || fail "the page needs something else"
# Zeros have no logarithm, and a median may be below zero.
results "$(cell tickwheel 1000 ns_per_op 0), $(cell tickwheel 2000 ns_per_op "0, -1"),
	$(cell tickwheel 3000 ns_per_op 0),
	$(cell heap-mutex 1000 lateness_max_ns 0), $(cell heap-mutex 1000 lateness_p50_ns 0)" >zeros.json
gives 0 "page +zeros.html" --report zeros.json --page zeros.html
[ "$(grep -c '<svg' zeros.html)" -ge 5 ] || fail "a page without plots of zeros"
results "" >nothing.json
gives 0 "page +nothing.html" --report nothing.json --page nothing.html
mkdir none bin
PATH="$dir/none" "$bench" --report new.json --page none.html >out 2>err || fail "fails without gnuplot"
says "no plots: gnuplot cannot be run \(Debian's package gnuplot-nox\)"
grep -q "There are no plots" none.html || fail "a page that says nothing of its missing plots"
! grep -q '<svg' none.html || fail "a page with plots, and no gnuplot"
# gnuplot_that COMMANDS WHAT: stands in for gnuplot.
gnuplot_that() {
	printf '#!/bin/sh\n%s\n' "$1" >bin/gnuplot
	chmod +x bin/gnuplot
	PATH="$dir/bin:$PATH" "$bench" --report new.json --page none.html >out 2>err || fail "fails with gnuplot: $1"
	says "no plots: gnuplot failed: $2"
	grep -q "There are no plots" none.html || fail "a page that says nothing of its missing plots"
}
gnuplot_that 'echo "line 1: unknown terminal" >&2; exit 1' "line 1: unknown terminal"
gnuplot_that 'cat >/dev/null; echo nonsense' "it said nothing"
gnuplot_that 'echo "<?xml"; echo "</svg>"' "it said nothing"
gnuplot_that 'kill -SEGV $$' "it said nothing"
status=0
wait "$waiting" || status=$?
waiting=
cp hangs/out out
cp hangs/err err
[ "$status" -eq 0 ] || fail "exit status $status after a gnuplot that hangs"
says "no plots: gnuplot was stopped after 30 s"
grep -q "There are no plots" hangs/page.html || fail "a page that says nothing of its missing plots"
! kill -0 "$(cat hangs/pid)" 2>/dev/null || fail "a gnuplot that hangs goes on after the bench"

echo "bench: ok"
