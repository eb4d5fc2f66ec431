#!/bin/bash
# cli.sh TICKCACHE: the modes of redis-cli that people use print the same with the server as with a
# redis-server.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. test/examples/cache/server.sh

fail() { echo "cache: redis-cli: $1" >&2; exit 1; }
cli() { timeout 60 redis-cli -p "$port" "$@"; }

# What a person gets at the terminal. Some modes begin with "[00.00%]" lines that tell of progress.
modes() {
	seq -f 'SET key:%03g value' 200 | cli --pipe | tail -n 1
	cli --scan --pattern 'key:*' | sort | md5sum
	cli SET key:100 'the longest of all'
	cli --bigkeys | sed -n '/summary/,$p'
	printf 'from the input' | cli -x SET fed
	cli GET fed
	cli -3 --json MGET fed nosuch
	cli -3 --no-raw CONFIG GET maxmemory
	cli --no-raw EVAL 'return 1' 0 2>&1 |
		sed 's/^(integer) 1$/no scripts/; s/^(error) ERR unknown command.*/no scripts/'
	cli -r 3 INCR counter
	cli FLUSHALL
}

# A subscriber in a terminal is told of a key's end.
subscriber() {
	cli CONFIG SET notify-keyspace-events Ex
	timeout 60 redis-cli -p "$port" SUBSCRIBE __keyevent@0__:expired >"$cache_work/events" &
	local reader=$!
	cache_pids="$cache_pids $reader"
	subscribed() { [ "$(cli PUBSUB NUMSUB __keyevent@0__:expired | tail -n 1)" = 1 ]; }
	wait_until subscribed || fail "SUBSCRIBE"
	cli SET short x PX 20
	told() { grep -qx short "$cache_work/events"; }
	wait_until told || fail "no event: $(cat "$cache_work/events")"
	kill "$reader"
	cat "$cache_work/events"
	cli CONFIG SET notify-keyspace-events ''
}

printed() { { modes; subscriber; } >"$cache_work/by_$1" 2>&1; }

start_tickcache "$1" --threads 2
printed tickcache
stop_tickcache
start_redis
printed redis
stop_redis
diff "$cache_work/by_redis" "$cache_work/by_tickcache" >&2 || fail "it prints something else"
echo "cache: redis-cli: $(wc -l <"$cache_work/by_tickcache") lines agree"
