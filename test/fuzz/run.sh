#!/bin/sh
# fuzz.sh SECONDS TARGET...: each target for so long, beginning with random programs of all lengths and with what was
# found interesting before (build/fuzz/corpus). A finding is a file in build/fuzz/found; run the target with it as its
# argument to see it again. FUZZ_SEED: of the fuzzer's choices; 0, which is default: another one each time.
set -eu

seconds=$1
shift
mkdir -p build/fuzz/found build/fuzz/begin

# Always the same: the fuzzer goes on from there. Without them it begins with programs of one step, and takes minutes to
# come to long ones.
LC_ALL=C awk 'BEGIN {
	state = 1
	for (n = 1; n <= 32; n++) {
		file = "build/fuzz/begin/" n
		for (i = 0; i < 40 + (n % 8) * (n % 8) * 60; i++) {
			state = (state * 16807) % 2147483647 # Park and Miller, 1988
			printf "%c", int(state / 64) % 255 + 1 >file
		}
		close(file)
	}
}'

for target; do
	name=$(basename "$target")
	mkdir -p "build/fuzz/corpus/$name"
	if ! "$target" -max_total_time="$seconds" -max_len=4096 -len_control=0 -timeout=60 -rss_limit_mb=4096 \
		-print_final_stats=1 -verbosity=0 \
		-seed="${FUZZ_SEED:-0}" -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/corpus/$name" \
		build/fuzz/begin \
		>"build/fuzz/$name.log" 2>&1; then
		tail -n 40 "build/fuzz/$name.log" >&2
		echo "fuzz: $name found something, see build/fuzz/found" >&2
		exit 1
	fi
	programs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log")
	echo "fuzz: $name: $programs programs in $seconds s, nothing found"
done
