#!/bin/sh
# check.sh PLAYER [OPTION...]: installs what the rows need, and plays those that can be played. The
# last line counts the rows. Options are those of run.mjs. A row that was left out is no failure: it
# is named and counted.
set -u
cd "$(dirname "$0")/../.."

player=$1
shift
rows=$(test/peers/install.sh) || rows=
arguments=
count=0
for row in $rows; do
	arguments="$arguments --row $row"
	count=$((count + 1))
done
status=0
if [ "$count" -gt 0 ]; then
	# shellcheck disable=SC2086 # a list of words
	node test/peers/run.mjs --ours "$player" $arguments "$@" || status=1
fi
skipped=$((4 - count))
if [ "$status" -ne 0 ]; then
	echo "peers: differences were found; $count of 4 rows played, $skipped skipped"
elif [ "$skipped" -gt 0 ]; then
	echo "peers: $count of 4 rows played, $skipped SKIPPED"
else
	echo "peers: all 4 rows played"
fi
exit $status
