#!/bin/bash
# metrics.sh SERVER: the example server's /metrics is what Prometheus reads: a strict reading of its text format, by promtool too if that
# is there; the ledger in it balances. (bash: it can open a connection by itself.)
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -eq 1 ] || { echo "usage: metrics.sh SERVER" >&2; exit 2; }
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "metrics: $1" >&2; exit 1; }

# Reads the text format; says what is wrong with the first bad line.
strictly() {
	LC_ALL=C awk '
	function bad(why) { print "line " NR ": " why ": " $0; failed = 1; exit 1 }
	function family_of(name) { base = name; if (type[name] == "" && sub(/_count$/, "", base) && type[base] == "summary") return base; return name }
	/^# HELP / {
		if ($0 !~ /^# HELP [a-zA-Z_:][a-zA-Z0-9_:]* [^ ]/) bad("malformed HELP")
		if (helped[$3]++) bad("a second HELP")
		expected = $3; next
	}
	/^# TYPE / {
		if ($0 !~ /^# TYPE [a-zA-Z_:][a-zA-Z0-9_:]* (counter|gauge|summary)$/) bad("malformed TYPE")
		if ($3 != expected || type[$3] != "") bad("TYPE does not follow its HELP")
		if ($4 == "counter" && $3 !~ /_total$/) bad("a counter not named _total")
		if ($4 != "counter" && $3 ~ /_total$/) bad("named _total, but no counter")
		type[$3] = $4; current = $3; next
	}
	/^#/ || /^$/ { bad("neither HELP, TYPE nor a sample") }
	{
		if ($0 !~ /^[a-zA-Z_:][a-zA-Z0-9_:]*(\{[a-zA-Z_][a-zA-Z0-9_]*="[^"\\]*"\})? [0-9]+(\.[0-9]+)?$/) bad("malformed sample")
		name = $1; sub(/\{.*/, "", name)
		if (family_of(name) != current) bad("not below its TYPE")
		if (type[current] == "summary" && name == current && $1 !~ /\{quantile="(0(\.[0-9]+)?|1)"\}$/) bad("a summary without quantile")
		if (seen[$1]++) bad("the same sample twice")
		if (name == "tickwheel_timers_scheduled_total") scheduled = $2
		if (name == "tickwheel_timers_ended_total" || name == "tickwheel_timers_pending") accounted += $2
		samples++
	}
	END {
		if (failed) exit 1
		for (name in helped) if (type[name] == "") { print name ": HELP without TYPE"; exit 1 }
		if (samples < 20) { print "only " samples + 0 " samples"; exit 1 }
		if (scheduled == 0 || scheduled != accounted) { print "the ledger does not balance: " scheduled " scheduled, " accounted + 0 " accounted for"; exit 1 }
		print samples " samples"
	}' "$1"
}

: >"$work/server" # there, whoever is first
"$1" --port 0 --loops 1 >"$work/server" &
server=$!
for ((i = 0; i < 1200; i++)); do
	port=$(sed -n 's/^listening on 127.0.0.1:\([0-9]*\)$/\1/p' "$work/server")
	[ -z "$port" ] || break
	sleep 0.05
done
[ -n "$port" ] || fail "the server does not listen"
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3
timeout 60 cat <&3 >"$work/answers" || fail "no answer"
exec 3>&-
# Of two answers the second: its body follows the last empty line.
tr -d '\r' <"$work/answers" | awk '/^HTTP/ { body = 0; text = ""; next } !body { if ($0 == "") body = 1; next } { text = text $0 "\n" } END { printf "%s", text }' \
	>"$work/metrics"
found=$(strictly "$work/metrics") || fail "$found"

# That the reading is strict: each of these must be refused.
for damage in 's/_total counter/_total gauge/' '/^# TYPE tickwheel_threads/d' 's/^\(tickwheel_threads\) /\1  /' \
	's/^tickwheel_runs_total .*/&\n&/' 's/^tickwheel_timers_pending [0-9]*/tickwheel_timers_pending 99999/' 's/quantile="0.5"/q="0.5"/'; do
	sed "$damage" "$work/metrics" >"$work/damaged"
	! cmp -s "$work/metrics" "$work/damaged" || fail "nothing to damage by $damage"
	! strictly "$work/damaged" >/dev/null || fail "not noticed: $damage"
done
if command -v promtool >/dev/null 2>&1; then
	promtool check metrics <"$work/metrics" || fail "promtool complains"
fi
kill "$server"
wait "$server" || fail "the server did not end well"
server=
echo "metrics: ok ($found)"
