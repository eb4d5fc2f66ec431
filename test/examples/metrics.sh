#!/bin/bash
# metrics.sh SERVER NAMES: the example server's /metrics is what Prometheus reads: a strict reading
# of its text format, by promtool too if that is installed; its ledger balances. The same for names that need escapes
# (test/examples/metrics.c), and for the sum of the pages of two processes.
# (bash: it can open a connection by itself.)
. "$(dirname "$0")/../support/script.sh"
set -o pipefail

[ $# -eq 2 ] || { echo "usage: metrics.sh SERVER NAMES" >&2; exit 2; }
server=
promtool=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
strictly() { LC_ALL=C awk -f test/examples/prometheus.awk "$1"; }

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
tr -d '\r' <"$work/answers" | \
	awk '/^HTTP/ { body = 0; text = ""; next } !body { if ($0 == "") body = 1; next } { text = text $0 "\n" }
		END { printf "%s", text }' \
	>"$work/metrics"
found=$(strictly "$work/metrics") || fail "$found"

# That the reading is strict: each of these must be refused.
for damage in 's/_total counter/_total gauge/' '/^# TYPE tickwheel_threads/d' 's/^\(tickwheel_threads\) /\1  /' \
	's/^tickwheel_runs_total .*/&\n&/' 's/^tickwheel_timers_pending [0-9]*/tickwheel_timers_pending 99999/' \
	's/^\(tickwheel_run_seconds_bucket{\)le/\1el/' '/^tickwheel_wait_seconds_bucket{le="+Inf"}/d' \
	's/le="0.000001024"/le="0.000002048"/' 's/^\(tickwheel_lateness_seconds_count\) .*/\1 99999/' \
	's/^\(tickwheel_run_seconds_bucket{le="0.000001024"}\) .*/\1 99999/' 's/fate="dropped"/fate="drop"ped"/' \
	's/fate="dropped"/fate="drop\\ped"/'; do
	sed "$damage" "$work/metrics" >"$work/damaged"
	! cmp -s "$work/metrics" "$work/damaged" || fail "nothing to damage by $damage"
	! strictly "$work/damaged" >/dev/null || fail "not noticed: $damage"
done

# Names with every byte, and names that differ only in what is escaped; the same of another process; their sum.
"$2" 30 >"$work/names" || fail "$2 failed"
"$2" 12 >"$work/other" || fail "$2 failed"
awk 'FNR == NR { if (!/^#/) { key = $0; sub(/ [^ ]*$/, "", key); sum[key] = $NF } next }
	/^#/ { print; next }
	{ key = $0; sub(/ [^ ]*$/, "", key); printf "%s %.9f\n", key, sum[key] + $NF }' \
	"$work/other" "$work/names" >"$work/sum"
for page in names sum; do
	strictly "$work/$page" >"$work/said" || fail "$page: $(cat "$work/said")"
done
service=$(sed -n 's/^tickwheel_runs_total{service="\(.*\)"} 30$/\1/p' "$work/names")
[ -n "$service" ] || fail "the service has no label"
! grep -v '^#' "$work/names" | grep -Fv "{service=\"$service\"" || fail "a sample without the service's label"
for line in 'runs_total{%s} 42' 'lateness_seconds_count{%s} 74' 'run_seconds_bucket{%s,le="+Inf"} 42' \
	'running_by_name{%s,name="\\x01"} 2' 'running_by_name{%s,name="\\x5cx01"} 2' \
	'running_by_name{%s,name="a\nb"} 2' 'running_by_name{%s,name="a\\nb"} 2' \
	'running_by_name{%s,name=""} 4' 'running_by_name{%s,name="\\"} 2' \
	'layer_objects{%s,kind="strand",name="\\x01"} 2' 'layer_objects{%s,kind="strand",name="a\nb"} 2' \
	'layer_objects{%s,kind="strand",name=""} 4'; do
	wanted=tickwheel_${line%%\%s*}service=\"$service\"${line#*%s}.000000000
	grep -Fxq -- "$wanted" "$work/sum" || fail "the sum of two processes has no line $wanted"
done
for damage in 's/name="\\\\x5cx01"/name="\\\\x01"/' 's/name="\\\\x01"/name="\\x01"/' 's/name="\\\\xff"/name="\xff"/'; do
	LC_ALL=C sed "$damage" "$work/names" >"$work/damaged"
	! cmp -s "$work/names" "$work/damaged" || fail "nothing to damage by $damage"
	! strictly "$work/damaged" >/dev/null || fail "not noticed: $damage"
done
if command -v promtool >/dev/null 2>&1; then
	for page in metrics names sum; do
		promtool check metrics <"$work/$page" || fail "promtool complains about $page"
	done
	promtool=', by promtool too'
fi
kill "$server"
wait "$server" || fail "the server did not end well"
server=
echo "metrics: ok ($found$promtool)"
