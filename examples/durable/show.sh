#!/bin/sh
# show.sh PROGRAM: three nodes on a redis-server of its own. A node is killed, one is stopped beyond
# its lease, and Redis is killed and started again, while 1,000 jobs fall due. Then 100,000 jobs at
# once. Ends with a verdict.
set -eu

program=$1
here=$(dirname "$0")
# shellcheck source=examples/durable/rounds.sh
. "$here/rounds.sh"

say() {
	echo "durable: $1"
}

memory_mb() { # PROCESS
	awk '/^VmRSS/ { printf "%.0f", $2 / 1024 }' "/proc/$1/status"
}

start_redis
for name in a b; do start_node $name; done
stopped=$node
start_node c
killed=$node

say "three nodes, leases of $LEASE_MS ms, ticks of $TICK_MS ms"
begin faults 1000 20000
cat "$dir/rate"
sleep 4
say " 4 s: kill -9 of a node"
kill -9 "$killed"
sleep 3
say " 7 s: another node is stopped, for twice its lease"
kill -STOP "$stopped"
sleep 3
kill -CONT "$stopped"
say "10 s: it goes on"
sleep 3
restart_redis
say "13 s: Redis was killed and started again"
check "1,000 jobs over 20 s" 1

WORK_MS=0
start_node d
begin many 100000 30000
cat "$dir/rate"
most_memory=0 redis_memory=0
until [ "$("$program" left "$socket")" -lt 50000 ]; do
	now=$(memory_mb "$node")
	[ "$now" -le "$most_memory" ] || most_memory=$now
	now=$(redis info memory | awk -F: '/^used_memory:/ { printf "%.0f", $2 / 1048576 }')
	[ "$now" -le "$redis_memory" ] || redis_memory=$now
	sleep 0.5
done
wait_until_none_left "100,000 jobs"
end_canary
ledger "100,000 jobs over 30 s" 0 1
say "memory: a node at most $most_memory MB, Redis at most $redis_memory MB"
say "ok: nothing lost, nothing early"
