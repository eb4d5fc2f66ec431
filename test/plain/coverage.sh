#!/bin/sh
# coverage.sh BUILD: what a build with --coverage has run of the library's own sources. The last line is the sum.
set -eu
cd "$(dirname "$0")/../.."

mkdir -p "$1/report"
gcovr --root . --object-directory "$1" --filter 'mpsc/' --filter 'wheel/' --filter 'executor/' \
	--exclude-unreachable-branches --gcov-ignore-parse-errors \
	--html-details "$1/report/index.html" --txt "$1/report/lines.txt" \
	--json-summary "$1/report/summary.json" \
	>/dev/null 2>"$1/report/log" || { tail -n 5 "$1/report/log" >&2; exit 1; }
awk 'NF >= 4 && /%/ && !/^TOTAL/ { sub(/%/, "", $4); if ($4 < 95) printf "  %s %s%%  not run: %s\n", $1, $4, $5 }' \
	"$1/report/lines.txt"
summary=$1/report/summary.json
# The sums stand before the list of files and after it, by the alphabet.
number() { grep -o "\"$1\": [0-9.]*" "$summary" | "$2" -n 1 | sed 's/.*: //'; }
echo "coverage: lines $(number line_percent tail)% ($(number line_covered tail) of $(number line_total tail))," \
	"branches $(number branch_percent head)% ($(number branch_covered head) of $(number branch_total head));" \
	"$1/report/index.html"
