#!/bin/sh
# analyzer.sh: gcc -fanalyzer over the library; nothing is said, or it fails. Left out, and why:
#   analyzer-malloc-leak, analyzer-fd-leak   it does not see that an object handed out by *out is the caller's
set -eu
cd "$(dirname "$0")/../.."

# shellcheck disable=SC2046
if find mpsc wheel executor -name '*.c' |
	xargs -P 2 -n 1 gcc -std=c11 -D_GNU_SOURCE -O1 -fanalyzer -Wno-analyzer-malloc-leak \
	-Wno-analyzer-fd-leak -Werror -Iinclude -I. -pthread -c -o /dev/null; then
	echo "analyzer: ok ($(find mpsc wheel executor -name '*.c' | wc -l) files)"
else
	echo "analyzer: gcc -fanalyzer complains" >&2
	exit 1
fi
