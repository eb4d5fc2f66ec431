#!/bin/bash
# process.sh TICKCACHE: how the server begins and ends. A port or a socket that is in use is
# refused, the loops of one server share its port, and clients that never read do not hold up the
# end. (bash: it can open connections by itself.)
set -euo pipefail
cd "$(dirname "$0")/../../.."
. test/examples/cache/server.sh

tickcache=$1
fail() { echo "cache: process: $1" >&2; exit 1; }

# WHAT OPTION...: a server with these options ends soon, with status 1 and this message.
refused() {
	local what=$1 status=0
	timeout 30 "$tickcache" "${@:2}" >"$cache_work/second" 2>&1 || status=$?
	[ "$status" = 1 ] || fail "status $status with ${*:2}: $(cat "$cache_work/second")"
	grep -qxF "tickcache: $what" "$cache_work/second" ||
		fail "another message with ${*:2}: $(cat "$cache_work/second")"
}

# ---- one server a port

start_tickcache "$tickcache" --threads 3 --unixsocket "$cache_work/socket"
taken="Could not create server TCP listening socket 127.0.0.1:$port: bind: Address already in use"
refused "$taken" --port "$port"
refused "$taken" --port "$port" --threads 3
refused "Failed opening Unix socket: bind: Address already in use" --port 0 --unixsocket "$cache_work/socket"
[ -S "$cache_work/socket" ] || fail "a refused server removed the socket of another"
echo precious >"$cache_work/file"
refused "Failed opening Unix socket: bind: Address already in use" --port 0 --unixsocket "$cache_work/file"
[ "$(cat "$cache_work/file")" = precious ] || fail "a file was replaced by a socket"
refused "'localhost' is not an IPv4 address" --port 0 --bind localhost

# ---- each loop has its share of the connections: by chance one of three has none once in 10^11

fds=()
for _ in $(seq 64); do
	exec {fd}<>"/dev/tcp/127.0.0.1/$port"
	fds+=("$fd")
done
loops_seen() {
	ask "$port" 'CLIENT LIST\r\nQUIT\r\n' | sed -n 's/.* io-thread=\([0-9]*\) .*/\1/p' | sort -u | tr '\n' ' '
}
all_loops() { [ "$(loops_seen)" = "0 1 2 " ]; }
wait_until all_loops || fail "64 connections are served by these loops only: $(loops_seen)"

# ---- the kernel probes idle connections, so a peer that is gone without a word is noticed

probed() {
	awk -v port=":$(printf %04X "$port")" \
		'$2 ~ port "$" && $4 == "01" && $6 ~ /^02:/ { n++ } END { exit !(n >= 64) }' /proc/net/tcp
}
wait_until probed || fail "connections without keepalive: $(cat /proc/net/tcp)"
for fd in "${fds[@]}"; do exec {fd}>&-; done
first_port=$port
stop_tickcache
[ ! -e "$cache_work/socket" ] || fail "the socket is left"

# ---- the port is free immediately; a server that is killed leaves its socket

: >"$cache_work/tickcache"
again=$("$tickcache" --port "$first_port" --unixsocket "$cache_work/socket" \
	>"$cache_work/tickcache" 2>"$cache_work/errors" & echo $!)
cache_pids="$cache_pids $again"
wait_until has_port || fail "the port is not free after the end: $(cat "$cache_work/errors")"
closed() { ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
kill -9 "$again"
wait_until closed || fail "a killed server listens"
[ -S "$cache_work/socket" ] || fail "a killed server leaves its socket"
rm "$cache_work/socket"
start_tickcache "$tickcache" --threads 2 --unixsocket "$cache_work/socket"

# ---- of servers that begin in the same moment at most one gets a port

for i in 1 2 3 4; do
	"$tickcache" --port "$first_port" --threads 2 >"$cache_work/begun.$i" 2>&1 &
	begun[i]=$!
	cache_pids="$cache_pids $!"
done
decided() { [ "$(cat "$cache_work"/begun.* | grep -c '^ready\|Address already in use$')" -ge 4 ]; }
wait_until decided || fail "servers neither begin nor end: $(cat "$cache_work"/begun.*)"
[ "$(cat "$cache_work"/begun.* | grep -c '^ready')" -le 1 ] ||
	fail "two servers share a port: $(cat "$cache_work"/begun.*)"
kill "${begun[@]}" 2>/dev/null || true

# ---- 12 clients that never read: the end takes a second, not a second each

ask "$port" 'SETRANGE large 9999999 x\r\nQUIT\r\n' | grep -x ':10000000' >/dev/null || fail "SETRANGE"
fds=()
for _ in $(seq 12); do
	exec {fd}<>"/dev/tcp/127.0.0.1/$port"
	printf 'GET large\r\n' >&"$fd" # more than the kernel keeps
	fds+=("$fd")
done
waiting() {
	ask "$port" 'INFO stats\r\nQUIT\r\n' |
		awk -F: '$1 == "keyspace_hits" && $2 >= 12 { found = 1 } END { exit !found }'
}
wait_until waiting || fail "GET is not served"
begin=$SECONDS
stop_tickcache
[ $((SECONDS - begin)) -lt 6 ] || fail "the end took $((SECONDS - begin)) s"
echo "process: ok"
