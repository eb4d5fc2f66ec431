#!/bin/sh
# fuzz.sh SECONDS TARGET...: each target for so long, beginning with what was found interesting before (build/fuzz/corpus). A finding is a file
# in build/fuzz/found; run the target with it as its argument to see it again.
set -eu

seconds=$1
shift
mkdir -p build/fuzz/found
for target; do
	name=$(basename "$target")
	mkdir -p "build/fuzz/corpus/$name"
	if ! "$target" -max_total_time="$seconds" -max_len=4096 -len_control=20 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 \
		-artifact_prefix="build/fuzz/found/$name-" "build/fuzz/corpus/$name" >"build/fuzz/$name.log" 2>&1; then
		tail -n 40 "build/fuzz/$name.log" >&2
		echo "fuzz: $name found something, see build/fuzz/found" >&2
		exit 1
	fi
	echo "fuzz: $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log") programs in $seconds s, nothing found"
done
