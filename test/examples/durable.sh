#!/bin/sh
# durable.sh PROGRAM: several nodes of examples/durable on a redis-server of its own. Nodes are
# killed and stopped, Redis is killed, stopped, full, and answers errors, clocks differ.
# Every job must run at least once, none early, and late by at most a lease, two ticks, and the
# longest time for which nobody could write to Redis. What goes wrong must be said.
set -eu

program=$1
# shellcheck source=test/examples/rounds.sh
. test/examples/rounds.sh

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

# Many at a time, with what the machine adds.
WORK_MS=0 start_node many
begin many 4000 8000
wait_until_none_left "4,000 jobs"
end_canary
ledger "4,000 jobs over 8 s" 0 1

kill "$node"
wait "$node" || fail "a node did not end as it should"
echo "durable: ok"
