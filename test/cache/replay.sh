#!/bin/sh
# replay.sh TICKCACHE REPLAY [both]: replays the table of commands against tickcache, with one
# thread and with three; both: against a redis-server, too. So the stored replies are
# redis-server's, and tickcache's are the same.
set -eu
cd "$(dirname "$0")/../.."
. test/cache/server.sh

for threads in 1 3; do
	start_tickcache "$1" --threads "$threads"
	"$2" test/cache/replies.txt "$port" >"$cache_work/out" || { cat "$cache_work/out" >&2; exit 1; }
	stop_tickcache
done
echo "cache: tickcache: $(cat "$cache_work/out")"
[ "${3:-}" = both ] || exit 0

answers() { redis-cli -p "$port" ping >/dev/null 2>&1; }
port=7379
redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no --dir "$cache_work" >"$cache_work/redis" &
cache_pids="$cache_pids $!"
wait_until answers || { cat "$cache_work/redis" >&2; exit 1; }
"$2" test/cache/replies.txt "$port" >"$cache_work/out" || { cat "$cache_work/out" >&2; exit 1; }
echo "cache: redis-server: $(cat "$cache_work/out")"
