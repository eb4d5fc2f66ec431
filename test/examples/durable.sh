#!/bin/sh
# durable.sh PROGRAM: several nodes of examples/durable on a redis-server of its own. Nodes are
# killed and stopped, Redis is killed, stopped, full, and answers errors, jobs fail, clocks differ.
# Every job must run at least once, none early, and late by at most a lease, two ticks, and the
# longest time for which nobody could write to Redis. What goes wrong must be said.
set -eu

program=$1
# shellcheck source=examples/durable/rounds.sh
. examples/durable/rounds.sh

said() { # WHAT IN ROUND
	grep -q "$1" "$2" || fail "$3: nobody said \"$1\" but: $(tail -n 3 "$2")"
}

start_redis
for name in a b c; do start_node $name; done
victim=$node

begin plain 600 3000
check "three nodes" 0

begin cancel 1 60000
[ "$("$program" cancel "$socket" cancel-0)" = cancelled ] || fail "a job could not be cancelled"
end_canary

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
restart_redis
check "redis-server killed and started again" 1

begin slow 400 5000
sleep 1
kill -STOP $redis
sleep 2
kill -CONT $redis
check "redis-server stopped for more than a lease" 1

# Full: new jobs are refused, and those that are in the store run.
begin full 400 3000
redis config set maxmemory 1mb >/dev/null
! "$program" submit "$socket" more 10 1000 >/dev/null 2>"$dir/refused" || fail "full: a job was taken"
said "the server is full; 0 of 10" "$dir/refused" "full"
check "full" 0
redis config set maxmemory 0 >/dev/null

# Errors instead of answers, for more than a lease.
begin errors 400 4000
sleep 1
redis config set min-replicas-to-write 1 >/dev/null
sleep 2
redis config set min-replicas-to-write 0 >/dev/null
check "errors instead of answers" 1
said NOREPLICAS "$dir/said" "errors"

# Another version's data: nobody touches it, and nothing is lost.
begin version 200 3000
sleep 1
redis set durable:version 99 >/dev/null
! "$program" submit "$socket" other 1 1000 >/dev/null 2>"$dir/refused" || fail "version: a job was taken"
said "another version" "$dir/refused" "version"
sleep 2
[ "$("$program" left "$socket")" != 0 ] || fail "version: jobs of another version have run"
redis set durable:version 2 >/dev/null
wait_until_none_left "another version's data"
end_canary
said "VERSION the store has jobs of version 99" "$dir/said" "version"
ledger "another version's data" 0 1

# Jobs that fail: again with growing delays, then set aside, and again by hand.
kill "$node"
wait "$node" || fail "a node did not end as it should"
begin failing 1 100 fail
RETRY_MS=50 TRIES=4 start_node e
tries=0
while "$program" left "$socket" | grep -qvx 0; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || fail "a job that fails is not set aside"
	sleep 0.1
done
end_canary
"$program" aside "$socket" >"$dir/aside"
said "^failing-0 failed [45] times$" "$dir/aside" "failing" # by e, or by a node that tries five times
runs=$(wc -l <"$dir/ran")
case $runs in 4 | 5) ;; *) fail "a job that fails ran $runs times" ;; esac
said "job failing-0 failed . times and is set aside" "$dir/said" "failing"
[ "$("$program" again "$socket" failing-0)" = "due now" ] || fail "a job that was set aside is not run again"
until [ "$("$program" left "$socket")" = 0 ]; do sleep 0.1; done
[ "$(wc -l <"$dir/ran")" -ge $((runs + 4)) ] || fail "again: it did not run again"
[ "$("$program" cancel "$socket" failing-0)" = cancelled ] || fail "a job that was set aside stays"
[ -z "$("$program" aside "$socket")" ] || fail "a cancelled job is still set aside"
echo "durable: a job that fails: ok"

# A node whose clock is two seconds ahead.
fake=$(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null | head -n 1)
if [ -n "$fake" ]; then
	export LD_PRELOAD="$fake" FAKETIME=+2s FAKETIME_DONT_FAKE_MONOTONIC=1
	start_node fast
	unset LD_PRELOAD FAKETIME FAKETIME_DONT_FAKE_MONOTONIC
	sleep 1
	begin clocks 400 3000
	FASTER_MS=2000 check "a clock that is two seconds ahead" 0
	grep -q ' fast ' "$dir/ran" || fail "clocks: the node whose clock is ahead ran nothing"
else
	echo "durable: left out, no libfaketime: clocks that differ"
fi

kill "$node"
wait "$node" || fail "a node did not end as it should"
echo "durable: ok"
