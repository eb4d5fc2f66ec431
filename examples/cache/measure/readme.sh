#!/bin/sh
# readme.sh OUT: puts the figures of the last run (OUT/figures.md) into README.md of the cache.
set -eu
cd "$(dirname "$0")/.."
out=$1
[ -s "$out/figures.md" ] || { echo "cache: there is no $out/figures.md: run make cache" >&2; exit 1; }
awk -v figures="$out/figures.md" '
	/^<!-- figures: begin/ { print; while ((getline line <figures) > 0) print line; skip = 1 }
	/^<!-- figures: end/ { skip = 0; found = 1 }
	!skip
	END { exit !found }' README.md >README.md.new
mv README.md.new README.md
