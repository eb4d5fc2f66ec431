# shellcheck shell=sh Sourced by the cache's tests: starts servers on free ports of 127.0.0.1, and
# ends them. After `start_tickcache BINARY OPTION...` the port is in $port; stop_tickcache fails
# unless the server ends with status 0. After start_redis the port of a redis-server of our own is
# in $port; stop_redis ends it.

cache_work=$(mktemp -d)
cache_pids=
trap 'for p in $cache_pids; do kill -9 "$p" 2>/dev/null || true; done; rm -rf "$cache_work"' EXIT

# Waits for COMMAND to succeed, for half a minute at most.
wait_until() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 600 ] || return 1
		sleep 0.05
	done
}

has_port() {
	port=$(sed -n 's/^ready on [^ ]*:\([0-9]*\),.*/\1/p' "$cache_work/tickcache")
	[ -n "$port" ]
}

start_tickcache() {
	: >"$cache_work/tickcache" # not the port of the server before
	"$@" --port 0 >"$cache_work/tickcache" 2>"$cache_work/errors" &
	tickcache_pid=$!
	cache_pids="$cache_pids $tickcache_pid"
	wait_until has_port || { echo "cache: the server does not start" >&2; cat "$cache_work/errors" >&2; exit 1; }
}

stop_tickcache() {
	kill "$tickcache_pid"
	if ! wait "$tickcache_pid"; then
		echo "cache: the server did not end well:" >&2
		tail -n 40 "$cache_work/tickcache" "$cache_work/errors" >&2
		exit 1
	fi
}

redis_is_ready() { grep -q 'Ready to accept connections' "$cache_work/redis"; }
redis_is_ready_or_gone() { redis_is_ready || ! kill -0 "$redis_pid" 2>/dev/null; }

# redis-server cannot choose a free port. It ends if another program has the port, so we ask its own
# log and not the port, which the other program would answer.
start_redis() {
	for port in $(shuf -i 20000-32000 -n 20); do
		: >"$cache_work/redis" # not the log of the server before
		redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no \
			--dir "$cache_work" >"$cache_work/redis" &
		redis_pid=$!
		cache_pids="$cache_pids $redis_pid"
		wait_until redis_is_ready_or_gone || break
		! redis_is_ready || return 0
	done
	cat "$cache_work/redis" >&2
	exit 1
}

stop_redis() { kill "$redis_pid" && wait "$redis_pid"; }

# PORT TEXT: sends the text, closes for writing by "Connection: close" or QUIT, prints the answer.
ask() {
	exec 3<>"/dev/tcp/127.0.0.1/$1"
	printf '%b' "$2" >&3
	timeout 60 cat <&3 | tr -d '\r'
	exec 3>&-
}
