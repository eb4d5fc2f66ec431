# What durable.sh uses: a redis-server of its own, nodes, and rounds of jobs with a
# ledger. Expects $program. Sets $dir, $socket, $redis (a process), $node (the last one started).
# shellcheck shell=sh disable=SC2034,SC2154

LEASE_MS=1500 TICK_MS=50
export LEASE_MS TICK_MS
# In memory where that can be had: a process that is killed loses nothing of it, and no slow disk
# counts.
shm=/dev/shm
[ -w $shm ] || shm=${TMPDIR:-/tmp}
dir=$(mktemp -d "$shm/durable.XXXXXX")
socket=$dir/socket
pids=
redis=

fail() {
	echo "durable: $1" >&2
	exit 1
}

redis() {
	redis-cli -s "$socket" "$@"
}

start_redis() {
	redis-server --port 0 --unixsocket "$socket" --dir "$dir" --appendonly yes --appendfsync always \
		--save '' --logfile "$dir/log" --daemonize no >/dev/null &
	redis=$!
	until [ "$(redis ping 2>/dev/null)" = PONG ]; do
		kill -0 "$redis" 2>/dev/null || fail "redis-server does not start: $(tail -n 1 "$dir/log")"
		sleep 0.02
	done
}

restart_redis() {
	kill -9 "$redis"
	wait "$redis" 2>/dev/null || true
	start_redis
}

finish() {
	# shellcheck disable=SC2086 # lists of numbers
	kill -CONT $pids $redis 2>/dev/null || true
	# shellcheck disable=SC2086
	kill -9 $pids $redis 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
trap "exit 1" INT TERM

start_node() { # NAME
	"$program" node "$socket" "$1" "$dir/ran" "${WORK_MS:-20}" 2>>"$dir/said" &
	node=$!
	pids="$pids $node"
}

# Prints 0, then at SIGTERM the longest time in ms for which nobody could write.
canary='
import signal, socket, sys, time
def end(*_):
    print(int(1000 * longest))
    sys.exit()
server, last, longest = None, time.monotonic(), 0
signal.signal(signal.SIGTERM, end)
print(0, flush=True)
while True:
    try:
        if not server:
            server = socket.socket(socket.AF_UNIX)
            server.settimeout(0.4)
            server.connect(sys.argv[1])
        server.sendall(b"INCR durable:touched\r\n")
        if server.recv(64)[:1] != b":":
            raise OSError
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    except OSError:
        server = None
    time.sleep(0.005)
'

# Submits jobs, and keeps a canary beside them.
begin() { # PREFIX COUNT MS [PAYLOAD]
	: >"$dir/ran"
	: >"$dir/said"
	python3 -c "$canary" "$socket" >"$dir/gap" &
	bird=$!
	pids="$pids $bird"
	until [ -s "$dir/gap" ]; do sleep 0.01; done
	"$program" submit "$socket" "$@" >"$dir/submitted" 2>"$dir/refused" || fail "$(cat "$dir/refused")"
}

end_canary() {
	kill "$bird"
	wait "$bird" || true
}

wait_until_none_left() { # ROUND
	tries=0
	until [ "$("$program" left "$socket" 2>/dev/null)" = 0 ]; do
		tries=$((tries + 1))
		[ $tries -lt 900 ] || fail "$1: jobs are left after a minute and a half"
		sleep 0.1
	done
}

# Compares what was submitted with what has run. "faster" is how far the clock of node "fast" is
# ahead. Prints a line; fails if a job is lost or early, or later than MOST ms.
ledger() { # ROUND MOST SECOND_RUNS_ALLOWED
	awk -v faster="${FASTER_MS:-0}" '
		NR == FNR { deadline[$1] = $2; next }
		!($1 in deadline) { next }
		{
			late = $2 / 1000 - deadline[$1] - ($3 == "fast" ? faster : 0)
			if (runs[$1]++) second++
			else print late, $1
		}
		END {
			for (id in deadline) if (!runs[id]) print "lost", id
			print "second", second + 0
		}' "$dir/submitted" "$dir/ran" | LC_ALL=C sort -g >"$dir/late"
	awk -v round="$1" -v most="$2" -v second_allowed="$3" '
		$1 == "lost" { lost++; print "never ran: " $2; next }
		$1 == "second" { second = $2; next }
		{ late[++n] = $1; if ($1 < 0) { early++; print "early: " $2 } }
		END {
			printf "durable: %s: %d jobs ran, %d lost, %d early, %d second runs; " \
				"late by %.0f ms in the median,",
				round, n, lost, early, second, late[int((n + 1) / 2)]
			printf " p99 %.0f, at most %.0f", late[int(n * 0.99 + 0.5)], late[n]
			if (most) printf " (allowed: %d)", most
			printf "\n"
			exit lost || early || !n || (most && late[n] > most) || (second && !second_allowed)
		}' "$dir/late" || fail "$1: the promise is broken"
}

# The promise: a lease, two ticks, and 100 ms for the machine, or the longest time for which nobody
# could write if that is more.
check() { # ROUND SECOND_RUNS_ALLOWED
	wait_until_none_left "$1"
	end_canary
	gap=$(tail -n 1 "$dir/gap")
	[ "$gap" -gt 100 ] || gap=100
	ledger "$1" $((LEASE_MS + 2 * TICK_MS + gap)) "$2"
}
