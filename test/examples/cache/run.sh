#!/bin/sh
# run.sh DIR EXPIRIES [stress]: all tests of the cache that need no redis-server, with the programs in
# DIR; or its stress alone.
set -eu
cd "$(dirname "$0")/../../.."
. test/examples/cache/server.sh

dir=$1
say() {
	"$@" >"$cache_work/out" 2>&1 || { cat "$cache_work/out" "$cache_work/errors" >&2; exit 1; }
	sed 's/^/cache: /' "$cache_work/out"
}

: >"$cache_work/errors"
if [ "${3:-}" != stress ]; then
	say "$dir/parts"
	test/examples/cache/replay.sh "$dir/tickcache"
	test/examples/cache/process.sh "$dir/tickcache"
	# Descriptors are limited for the server alone.
	# shellcheck disable=SC2016 # for the inner shell
	start_tickcache sh -c 'ulimit -n 1024; exec "$@"' sh "$dir/tickcache" --threads 2
	say test/examples/cache/hostile.py "$port"
	stop_tickcache
fi

start_tickcache "$dir/tickcache" --threads 2
say "$dir/stress" "$port" "$2"
stop_tickcache
