#!/bin/sh
# stress.sh DIR EXPIRIES: eight clients until so many keys have expired.
set -eu
cd "$(dirname "$0")/../../.."
. test/examples/cache/server.sh
start_tickcache "$1/tickcache" --threads 2
"$1/stress" "$port" "$2"
stop_tickcache
