#!/bin/sh
# examples.sh DIR: every small example in DIR runs and exits 0. The server has a target of its own.
set -eu

[ $# -eq 1 ] || { echo "usage: examples.sh DIR" >&2; exit 2; }
out=$(mktemp)
trap 'rm -f "$out"' EXIT

count=0
for example in "$1"/*; do
	if [ ! -f "$example" ] || [ ! -x "$example" ]; then
		continue
	fi
	name=$(basename "$example")
	case $name in
	server) continue ;;
	esac
	status=0
	timeout 60 "$example" >"$out" 2>&1 || status=$?
	if [ "$status" -ne 0 ]; then
		echo "examples: $name failed (exit $status; 124 means more than 60 s); it wrote:" >&2
		cat "$out" >&2
		exit 1
	fi
	echo "example $name: ok"
	count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "examples: none in $1" >&2; exit 1; }
