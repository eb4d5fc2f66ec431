#!/bin/sh
# replay.sh TICKCACHE [both]: replays the table of commands against tickcache, with one
# thread and with three; both: against a redis-server, too. So the stored replies are
# redis-server's, and tickcache's are the same.
set -eu
cd "$(dirname "$0")/../../.."
. test/examples/cache/server.sh

replay() {
	test/examples/cache/replay.py test/examples/cache/replies.txt "$port" >"$cache_work/out" ||
		{ cat "$cache_work/out" >&2; exit 1; }
}

for threads in 1 3; do
	start_tickcache "$1" --threads "$threads"
	replay
	stop_tickcache
done
echo "cache: tickcache: $(cat "$cache_work/out")"
[ "${2:-}" = both ] || exit 0

start_redis
replay
echo "cache: redis-server: $(cat "$cache_work/out")"
