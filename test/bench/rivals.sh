#!/bin/sh
# rivals.sh BENCH: how the bench treats the programs of its rivals: a good report, broken promises, wrong lines, an end
# without a result, an interrupt; and rivals that are not here. Scripts stand in for Go's program. Measures nothing.
# shellcheck disable=SC2016 # commands for another shell
set -eu

[ $# -eq 1 ] || { echo "usage: rivals.sh BENCH" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$1" "$dir/bench"
mkdir "$dir/rivals"
cd "$dir"

fail() {
	echo "rivals: $1" >&2
	sed 's/^/  /' out >&2
	exit 1
}

# gives STATUS TEXT ARGS...: the bench ends with STATUS and writes TEXT.
gives() {
	wanted=$1 text=$2 status=0
	shift 2
	timeout 60 ./bench "$@" >out 2>&1 </dev/null || status=$?
	[ "$status" -eq "$wanted" ] || fail "exit status $status instead of $wanted: $*"
	grep -Fq -- "$text" out || fail "does not say '$text': $*"
}

gives 2 "this candidate needs 'h2o/timerwheel.h" --candidate h2o
gives 0 " of 9 rivals:" --quick --only W2 --candidate limit --reps 1 --threads 1 --out results.json
skipped=$(sed -n 's/^skipped  *\([0-9]*\) of 9 rivals:$/\1/p' out)
[ "$(grep -c '^ .*(not found: ' out)" -eq "$skipped" ] || fail "does not name $skipped rivals"
grep -q "\"rivals_skipped\": ${skipped}[,}]" results.json || fail "results.json does not count $skipped rivals"

if ! ./bench --help | grep -q '^  go '; then
	echo "rivals: ok; 1 part skipped: go is not installed"
	exit 0
fi

# program COMMANDS: what Go's program does once it has read its order.
program() {
	printf '#!/bin/sh\nread -r workload n threads ops quick\n%s\n' "$1" >rivals/go
	chmod +x rivals/go
}
run="--only W2 --candidate go --threads 2 --reps 2 --out results.json"

# The bench passes the order on, answers with CPU time, and passes on the number of operations that the program found.
program 'echo "$workload $n $threads $ops $quick" >>orders
echo cpu; read -r before; echo cpu; read -r after
[ "$before" -gt 0 ] && [ "$after" -ge "$before" ] || echo "violation the clock of CPU time stands"
printf "%s\n" "figure ns_per_op 12.5" "ops 4711" "lateness 16 3" "latest 17" "early 0" end'
# shellcheck disable=SC2086 # a list of options
gives 0 "12.5" $run
grep -qx "trial 0 1 0 0" orders || fail "no trial"
[ "$(grep -cx 'W2 64 2 0 0' orders)" -eq 1 ] || fail "the first order asks for a fixed number of operations"
[ "$(grep -cx 'W2 64 2 4711 0' orders)" -eq 1 ] || fail "the second order does not repeat the number of operations"
grep -q '"runs": \[12.5, 12.5\]' results.json || fail "figures are not in results.json"

# broken TEXT COMMANDS: such a program fails the bench.
broken() {
	program "$2"
	# shellcheck disable=SC2086 # a list of options
	gives 1 "$1" $run
}
broken "go n=64 threads=2: it lost one" 'echo "violation it lost one"; echo end'
broken "2 timers ran early" 'echo "early 2"; echo end'
broken "its program ended without a result, exit status 3" 'echo "figure ns_per_op 1"; exit 3'
broken "its program crashed: Killed" 'kill -KILL $$'
broken "its program wrote: Exception in thread" 'echo "Exception in thread main"; echo end'
broken "its program wrote: lateness 976 1" 'echo "lateness 976 1"; echo end'
rm rivals/go
# shellcheck disable=SC2086 # a list of options
gives 1 "exit status 127" $run

# The program ends with an interrupted bench.
program 'echo $$ >pid; exec sleep 300'
# shellcheck disable=SC2086 # a list of options
./bench $run >out 2>&1 </dev/null &
until [ -s pid ]; do sleep 0.05; done
kill -INT $!
wait $! || true
for try in 1 2 3 4 5 6 7 8 9 10; do
	# Killed, it may remain as a zombie until its new parent looks at it.
	grep -q '^State:[^Z]*$' "/proc/$(cat pid)/status" 2>/dev/null || break
	[ "$try" -lt 10 ] || fail "the program goes on after its bench"
	sleep 0.1
done

echo "rivals: ok"
