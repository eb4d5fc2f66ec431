#!/bin/sh
# durable.sh PROGRAM: several nodes of examples/durable on a redis-server of its own. Nodes are
# killed and stopped, and redis-server is killed and started again. Every job must run at least
# once, none early, and late by at most a lease, two ticks and the longest time in which nobody
# could write to Redis.
set -eu

program=$1
LEASE_MS=1500 TICK_MS=50
export LEASE_MS TICK_MS
# In memory where that can be had: a process that is killed loses nothing of it, and no slow disk
# counts.
shm=/dev/shm
[ -w $shm ] || shm=${TMPDIR:-/tmp}
dir=$(mktemp -d "$shm/durable.XXXXXX")
socket=$dir/socket
pids=

fail() {
	echo "durable: $1" >&2
	exit 1
}

start_redis() {
	redis-server --port 0 --unixsocket "$socket" --dir "$dir" --appendonly yes --appendfsync always \
		--save '' --logfile "$dir/log" --daemonize no >/dev/null &
	redis=$!
	until [ "$(redis-cli -s "$socket" ping 2>/dev/null)" = PONG ]; do
		kill -0 $redis 2>/dev/null || fail "redis-server does not start: $(tail -n 1 "$dir/log")"
		sleep 0.02
	done
}

finish() {
	# shellcheck disable=SC2086 # a list of numbers
	kill -9 $pids $redis 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
trap "exit 1" INT TERM

start_node() { # NAME
	"$program" node "$socket" "$1" "$dir/ran" 20 &
	node=$!
	pids="$pids $node"
}

# Waits until all jobs have run, then checks the ledger. ROUND's lines are in $dir/submitted and
# $dir/ran.
check() { # ROUND SECOND_RUNS_ALLOWED
	tries=0
	until [ "$("$program" left "$socket")" = 0 ]; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "$1: jobs are left after a minute"
		sleep 0.1
	done
	kill "$canary"
	wait "$canary" || true
	gap=$(cat "$dir/gap")
	awk -v round="$1" -v most=$((LEASE_MS + 2 * TICK_MS + gap)) -v gap="$gap" -v second_allowed="$2" '
		NR == FNR { deadline[$1] = $2; jobs++; next }
		!($1 in deadline) { next }
		{
			late = $2 / 1000 - deadline[$1]
			if (late < 0) { early++; print "early: " $0 }
			if (++runs[$1] > 1) { second++; next }
			if (late > latest) latest = late
		}
		END {
			for (id in deadline) if (!runs[id]) { lost++; print "never ran: " id }
			printf "durable: %s: %d jobs, %d lost, %d early, %d second runs, latest %d ms", round, jobs, lost,
				early, second, latest
			printf " (at most %d; nobody could write for %d ms)\n", most, gap
			exit lost || early || latest > most || (second && !second_allowed)
		}' "$dir/submitted" "$dir/ran" || fail "$1: the promise is broken"
}

begin() { # PREFIX COUNT MS: submits jobs, with the canary beside them
	: >"$dir/ran"
	"$program" canary "$socket" >"$dir/gap" &
	canary=$!
	pids="$pids $canary"
	"$program" submit "$socket" "$1" "$2" "$3" >"$dir/submitted"
}

start_redis
for name in a b c; do start_node $name; done
victim=$node

begin plain 600 3000
check "three nodes" 0

begin cancel 1 60000
[ "$("$program" cancel "$socket" cancel-0)" = cancelled ] || fail "a job could not be cancelled"
kill "$canary"

begin kill 800 4000
sleep 1
kill -9 "$victim"
check "kill -9 of a node" 1

start_node d
victim=$node
sleep 0.5
begin stop 800 5000
sleep 1
kill -STOP "$victim"
sleep 3
kill -CONT "$victim"
check "a node stopped for two leases" 1

begin restart 800 4000
sleep 1
kill -9 $redis
wait $redis 2>/dev/null || true
sleep 0.3
start_redis
check "redis-server killed and started again" 1

kill "$node"
wait "$node" || fail "a node did not end as it should"
echo "durable: ok"
