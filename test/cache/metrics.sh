#!/bin/bash
# metrics.sh TICKCACHE: --metrics serves a page that Prometheus reads, by test/prometheus.awk and,
# if it is there, by promtool. The page's figures are those of the commands that were sent. Other
# requests get 404, and a scraper that says nothing does not end the service. (bash: it can open a
# connection by itself.)
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/cache/server.sh

fail() { echo "cache: metrics: $1" >&2; exit 1; }

# PORT TEXT: sends the text, closes for writing by "Connection: close" or QUIT, prints the answer.
ask() {
	exec 3<>"/dev/tcp/127.0.0.1/$1"
	printf '%b' "$2" >&3
	timeout 60 cat <&3 | tr -d '\r'
	exec 3>&-
}

head_of() { sed '/^$/q' "$1"; }
body_of() { sed '1,/^$/d' "$1"; }

# NAME VALUE: the page has this sample.
expect() { grep -qx "$1 $2" "$cache_work/page" || fail "not $1 $2 but: $(grep "^$1 " "$cache_work/page")"; }

start_tickcache "$1" --threads 2 --metrics 0
metrics_port=$(sed -n 's/^metrics on 127.0.0.1:\([0-9]*\)$/\1/p' "$cache_work/tickcache")
[ -n "$metrics_port" ] || fail "no port is printed"

# A scraper that is connected and silent: others wait for it, a second at most.
exec 4<>"/dev/tcp/127.0.0.1/$metrics_port"

replies=$(ask "$port" 'SET lasting x\r\nSET short x PX 1\r\nGET lasting\r\nGET missing\r\nNONSENSE\r\nQUIT\r\n')
[ "$(printf '%s\n' "$replies" | grep -c '^+OK$')" = 3 ] || fail "the commands are answered: $replies"
gone() { ask "$port" 'DBSIZE\r\nQUIT\r\n' | grep -x ':1' >/dev/null; }
wait_until gone || fail "the short key does not expire"
alone() { ask "$port" 'INFO clients\r\nQUIT\r\n' | grep -x 'connected_clients:1' >/dev/null; }
wait_until alone || fail "clients that went are not forgotten"

ask "$metrics_port" 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n' >"$cache_work/answer"
exec 4>&-
[ "$(head_of "$cache_work/answer" | sed -n 1p)" = "HTTP/1.1 200 OK" ] || fail "no page: $(head -n 3 "$cache_work/answer")"
head_of "$cache_work/answer" | grep -x 'Content-Type: text/plain; version=0.0.4' >/dev/null || fail "another type"
body_of "$cache_work/answer" >"$cache_work/page"
[ "$(head_of "$cache_work/answer" | sed -n 's/^Content-Length: //p')" = "$(wc -c <"$cache_work/page")" ] ||
	fail "another length than the head says"

found=$(LC_ALL=C awk -f test/prometheus.awk "$cache_work/page") || fail "$found"
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
	ask "$metrics_port" "$request" | sed -n 1p | grep -x 'HTTP/1.1 404 Not Found' >/dev/null || fail "no 404: $request"
done
ask "$metrics_port" 'GET /metrics HTTP/1.1\r\n\r\n' | grep '^tickcache_keys 1$' >/dev/null || fail "no page after bad requests"
stop_tickcache
echo "metrics: ok ($found$promtool)"
