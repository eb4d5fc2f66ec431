#!/bin/bash
# metrics.sh TICKCACHE: --metrics serves a page that Prometheus reads, by test/examples/prometheus.awk and,
# if it is there, by promtool. The page's figures are those of the commands that were sent. Other
# requests get 404, and a scraper that sends too slowly holds up nobody. (bash: it can open a
# connection by itself.)
set -euo pipefail
cd "$(dirname "$0")/../../.."
. test/examples/cache/server.sh

fail() { echo "cache: metrics: $1" >&2; exit 1; }

head_of() { sed '/^$/q' "$1"; }
body_of() { sed '1,/^$/d' "$1"; }

# NAME VALUE: the page has this sample.
expect() { grep -qx "$1 $2" "$cache_work/page" || fail "not $1 $2 but: $(grep "^$1 " "$cache_work/page")"; }

start_tickcache "$1" --threads 2 --metrics 0
metrics_port=$(sed -n 's/^metrics on 127.0.0.1:\([0-9]*\)$/\1/p' "$cache_work/tickcache")
[ -n "$metrics_port" ] || fail "no port is printed"

# A scraper that sends a byte now and then: others wait for it, a second at most.
exec 4<>"/dev/tcp/127.0.0.1/$metrics_port"
while printf x >&4; do sleep 0.2; done 2>/dev/null &
cache_pids="$cache_pids $!"

replies=$(ask "$port" 'SET lasting x\r\nSET short x PX 1\r\nGET lasting\r\nGET missing\r\nNONSENSE\r\nQUIT\r\n')
[ "$(printf '%s\n' "$replies" | grep -c '^+OK$')" = 3 ] || fail "the commands are answered: $replies"
gone() { ask "$port" 'DBSIZE\r\nQUIT\r\n' | grep -x ':1' >/dev/null; }
wait_until gone || fail "the short key does not expire"
alone() { ask "$port" 'INFO clients\r\nQUIT\r\n' | grep -x 'connected_clients:1' >/dev/null; }
wait_until alone || fail "clients that went are not forgotten"

begin=$SECONDS
ask "$metrics_port" 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n' >"$cache_work/answer"
[ $((SECONDS - begin)) -lt 10 ] || fail "a slow scraper held up another for $((SECONDS - begin)) s"
exec 4>&-
[ "$(head_of "$cache_work/answer" | sed -n 1p)" = "HTTP/1.1 200 OK" ] ||
	fail "no page: $(head -n 3 "$cache_work/answer")"
head_of "$cache_work/answer" | grep -x 'Content-Type: text/plain; version=0.0.4' >/dev/null || fail "another type"
body_of "$cache_work/answer" >"$cache_work/page"
[ "$(head_of "$cache_work/answer" | sed -n 's/^Content-Length: //p')" = "$(wc -c <"$cache_work/page")" ] ||
	fail "another length than the head says"

found=$(LC_ALL=C awk -f test/examples/prometheus.awk "$cache_work/page") || fail "$found"
promtool=
if command -v promtool >/dev/null 2>&1; then
	promtool check metrics <"$cache_work/page" || fail "promtool complains"
	promtool=', by promtool too'
fi
expect tickcache_keys 1
expect tickcache_volatile_keys 0
expect tickcache_expired_keys_total 1
expect tickcache_keyspace_hits_total 1
expect tickcache_keyspace_misses_total 1
expect tickcache_errors_total 1
expect tickwheel_timers_scheduled_total 1
expect 'tickwheel_timers_ended_total{fate="fired"}' 1

for request in 'GET / HTTP/1.1\r\n\r\n' 'POST /metrics HTTP/1.1\r\n\r\n' 'nonsense\r\n\r\n'; do
	ask "$metrics_port" "$request" | sed -n 1p | grep -x 'HTTP/1.1 404 Not Found' >/dev/null ||
		fail "no 404: $request"
done
ask "$metrics_port" 'GET /metrics HTTP/1.1\r\n\r\n' | grep '^tickcache_keys 1$' >/dev/null ||
	fail "no page after bad requests"

# CONFIG RESETSTAT sets INFO's counts to zero, as redis-server does. The ledgers of timers and keys
# go on, and the end of the server checks them.
stat() { ask "$port" 'INFO stats\r\nQUIT\r\n' | sed -n "s/^$1://p"; }
[ "$(stat expired_keys)" = 1 ] || fail "expired_keys is $(stat expired_keys)"
ask "$port" 'CONFIG RESETSTAT\r\nQUIT\r\n' >"$cache_work/answer"
[ "$(stat expired_keys) $(stat keyspace_hits)" = "0 0" ] ||
	fail "CONFIG RESETSTAT leaves expired_keys:$(stat expired_keys)"

# INFO's rate is that of the last second. A second without a command follows: it falls to what the
# asking itself adds.
for _ in $(seq 5); do printf 'PING\r\n%.0s' $(seq 1000); done >"$cache_work/pings"
exec 3<>"/dev/tcp/127.0.0.1/$port"
cat "$cache_work/pings" >&3
fast() { [ "$(stat instantaneous_ops_per_sec)" -ge 1000 ]; }
wait_until fast || fail "5,000 commands are not seen in instantaneous_ops_per_sec"
slow() { [ "$(stat instantaneous_ops_per_sec)" -lt 500 ]; }
wait_until slow || fail "instantaneous_ops_per_sec stays at $(stat instantaneous_ops_per_sec)"
exec 3>&-
stop_tickcache
echo "metrics: ok ($found$promtool)"
