#!/bin/bash
# top.sh VIEWER STAGE FOREIGN SERVER: what tickwheel-top shows in a terminal of 80 x 24 and of 120 x 40, for a stage
# (test/top/stage.c) and for the example server; its text output; one clear line and a non-zero status for each thing
# that can be wrong. The terminal is tmux. (bash: coproc, /dev/tcp)
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -eq 4 ] || { echo "usage: top.sh VIEWER STAGE FOREIGN SERVER" >&2; exit 2; }
if ! command -v tmux >/dev/null 2>&1; then
	echo "top: tmux is not installed: left out"
	exit 0
fi
viewer=$(realpath "$1") stage=$2 foreign=$3 server=$4
LC_ALL=C.UTF-8
export LC_ALL
unset COLUMNS TMUX
work=$(mktemp -d)
tmux="tmux -L tickwheel-top-$$ -f /dev/null"
children=() terminals=0
end() {
	$tmux kill-server 2>/dev/null || true
	[ ${#children[@]} -eq 0 ] || kill "${children[@]}" 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT

fail() {
	echo "top: $1" >&2
	[ ! -s "$work/screen" ] || sed 's/^/  |/' "$work/screen" >&2
	exit 1
}

now_ms() { date +%s%3N; }

# $1: a program; its arguments. Starts it with a pipe as its input: a line to the descriptor `to` ends it; `pid` is the
# process.
start() {
	local ready
	mkfifo "$work/in.$#.${#children[@]}"
	"$@" <"$work/in.$#.${#children[@]}" >"$work/out" &
	pid=$!
	exec {to}>"$work/in.$#.${#children[@]}"
	children+=("$pid")
	for ((i = 0; i < 600; i++)); do
		ready=$(head -n 1 "$work/out")
		[ -z "$ready" ] || return 0
		sleep 0.05
	done
	fail "$1 is not ready"
}

# $1: a size as COLUMNSxROWS; the rest: a command for a terminal of that size. Its exit status is shown when it has
# ended.
terminal() {
	local size=$1
	shift
	$tmux kill-server 2>/dev/null || true
	terminals=$((terminals + 1))
	tmux="tmux -L tickwheel-top-$$-$terminals -f /dev/null" # the old server may still be about to end
	$tmux new-session -d -x "${size%x*}" -y "${size#*x}" "$*; echo exit \$?; sleep 600"
	$tmux set-option -g status off
}

capture() { $tmux capture-pane -p >"$work/screen"; }

# Waits until the screen has a line that matches each of the patterns.
shows() {
	local pattern missing
	for ((i = 0; i < 200; i++)); do
		capture
		missing=
		for pattern in "$@"; do
			grep -Eq -- "$pattern" "$work/screen" || { missing=$pattern; break; }
		done
		[ -n "$missing" ] || return 0
		sleep 0.05
	done
	fail "the screen has no line like: $missing"
}

# $1: exit status; $2: what the one line on standard error matches; the rest: a command.
refuses() {
	local wanted=$1 pattern=$2 status=0
	shift 2
	: >"$work/screen"
	"$@" >"$work/stdout" 2>"$work/screen" || status=$?
	[ "$status" -eq "$wanted" ] || fail "$* ended with $status, not $wanted"
	[ ! -s "$work/stdout" ] || fail "$* wrote to standard output"
	grep -Eq -- "$pattern" "$work/screen" || fail "$* did not say: $pattern"
	[ "$wanted" -ne 1 ] || [ "$(wc -l <"$work/screen")" -eq 1 ] || fail "$*: more than a line"
}

bars() { sed -n 's/^lateness[^▁▂▃▄▅▆▇█]*\([▁▂▃▄▅▆▇█]*\).*/\1/p' "$work/screen" | tr -d '\n' | wc -m; }

# ---- the stage

start "$stage"
stage_pid=$pid stage_to=$to
title="^tickwheel-top  stage \($stage_pid\)  service \"stage\"  tickwheel [0-9.]+$"
page=("$title" '^timers    1\.2k pending  [0-9]+ overdue  3 groups  1\.2k members  [0-9.]+k? bytes$'
	'^rates     scheduled 0/s  fired 0/s  cancelled 0/s  moved 0/s  runs [1-9][0-9]+/s$'
	'^driver    wake-ups [1-9][0-9]*/s  polls [1-9][0-9]*/s  CPU [0-9.]+ %  late '
	'^workers   \[\|+\.+\] 3 of [4-8] busy, at most 8  [0-9]+ queued$'
	'^lateness  [0-9.]+ [mu]s +[0-9.]+ [mu]s +[0-9.]+ [mu]s +[▁▂▃▄▅▆▇█]+ <= [0-9.]+ [mu]?s$'
	'^wait      [0-9.]+ [mu]s' '^run       [0-9.]+ [mu]s' '^3 running   kind            thread   name +function$')

# The groups, the largest first; the name is that of the member that is due next, or of one that runs.
groups=('^3 groups    members running next due name                  function$'
	'^            1\.2k    0       (59|60) min +idle timeout          stage\+0x'
	'^            2       0       (59|60) min +a "second" group      stage\+0x'
	'^   closed   1       1       -        last words            stage\+0x')

# The first picture comes within a second of the start; a machine that is busy gets three tries.
for ((attempt = 1;; attempt++)); do
	from=$(now_ms)
	terminal 80x24 "$viewer" "$stage_pid"
	shows "$title"
	first=$(($(now_ms) - from))
	[ "$first" -gt 1000 ] || break
	[ "$attempt" -lt 3 ] || fail "the first picture took $first ms"
done
shows "${page[@]}" "${groups[@]}" '^ +[0-9.]+ (ms|s|min) +job             [0-9]+ +lookup of example\.or' \
	'say "hi"\\x1b\[31m ' '^ +[0-9.]+ (ms|s|min) +timer           [0-9]+ +last words '
# The bar has 20 places. The stage has 4 workers; on a busy machine its runs wait, and the pool grows.
sed -n 's/^workers   \[\(|*\)\.*\] 3 of \([4-8]\) busy.*/\1 \2/p' "$work/screen" |
	awk '{ exit !(length($1) == int(3 / $2 * 20 + 0.5)) }' || fail "the bar of the workers is wrong"
# The rows are where they belong, so nothing was wrapped.
sed -n 1p "$work/screen" | grep -Eq "$title" || fail "the title is not the first row"
sed -n 13p "$work/screen" | grep -q '^3 running' || fail "the runs do not begin in row 13"
[ "$(grep -n '^3 groups' "$work/screen" | cut -d: -f1)" -eq 18 ] || fail "the groups do not begin in row 18"

# A look every half second: a bar more within a second.
for ((attempt = 1;; attempt++)); do
	capture
	count=$(bars) from=$(now_ms)
	while capture && [ "$(bars)" -le "$count" ]; do
		[ $(($(now_ms) - from)) -lt 20000 ] || fail "no new bar"
		sleep 0.02
	done
	took=$(($(now_ms) - from))
	[ "$took" -gt 1000 ] || break
	[ "$attempt" -lt 3 ] || fail "the next look took $took ms"
done

# Larger and smaller while it runs: wider names, and a picture that is cut, not wrapped.
$tmux resize-window -x 120 -y 40
shows "$title" '^ +[0-9.]+ (ms|s|min) +job             [0-9]+ +lookup of example\.org +stage\+0x[0-9a-f]+$'
$tmux resize-window -x 40 -y 10
shows '^tickwheel-top  stage'
[ "$(wc -l <"$work/screen")" -le 10 ] || fail "more rows than the terminal has"
$tmux resize-window -x 80 -y 24
shows "${page[@]}"

# Tab: the process's other service. q: the end, and the screen as it was.
$tmux send-keys Tab
shows '^tickwheel-top  stage \([0-9]+\)  service "other \\"one\\""' '^workers   \[\.{20}\] 0 of' '^0 running'
$tmux send-keys Tab
shows "$title"
$tmux send-keys q
shows '^exit 0$'
! grep -q tickwheel-top "$work/screen" || fail "the view is left behind"

terminal 120x40 "$viewer" "$stage_pid"
shows "${page[@]}" '^            1\.2k    0       (59|60) min +idle timeout +stage\+0x' \
	'^ +[0-9.]+ (ms|s|min) +job             [0-9]+ +lookup of example\.org +stage\+0x[0-9a-f]+$' \
	'^ +[0-9.]+ (ms|s|min) +job +[0-9]+ +say "hi"\\x1b\[31m \\xff +stage\+0x'
$tmux send-keys C-c
shows '^exit 0$'
LC_ALL=C terminal 80x24 LC_ALL=C "$viewer" "$stage_pid"
shows '^lateness  .* [.:=+*#@-]+ <= [0-9.]+ [mu]?s$'

# ---- text

"$viewer" --once "$stage_pid" >"$work/screen" || fail "--once failed"
for pattern in "${page[@]}"; do
	grep -Eq -- "$pattern" "$work/screen" || fail "--once has no line like: $pattern"
done
! grep -q $'\033' "$work/screen" || fail "--once writes escapes"
# Others on this machine may publish services, too.
"$viewer" --once >"$work/screen" 2>&1 || true
grep -Eq "$title|^  $stage_pid stage$" "$work/screen" ||
	fail "without a process it neither shows the only one nor lists it"
"$viewer" -1 -s 2 "$stage_pid" >"$work/screen" || fail "--service failed"
grep -q 'service "other' "$work/screen" || fail "--service 2 shows another service"

# ---- what can be wrong

refuses 1 "process $stage_pid publishes 2 services, not 3" "$viewer" -s 3 "$stage_pid"
refuses 1 "process $$ \(.*\) publishes no service: it has to call tw_service_publish" "$viewer" $$
refuses 2 "not a process: 'x'" "$viewer" x
refuses 2 "not a process: '0'" "$viewer" 0
refuses 2 'not a delay' "$viewer" -d 0.01 $$
refuses 2 'usage: ' "$viewer" --what
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null 2>&1; then
	install -m 755 "$viewer" "$work/viewer"
	chmod 755 "$work"
	refuses 1 "process $stage_pid belongs to another user" setpriv --reuid 65534 --clear-groups "$work/viewer" \
		"$stage_pid"
	refuses 1 "process 1 belongs to another user" setpriv --reuid 65534 --clear-groups "$work/viewer" 1
fi
kill -STOP "$stage_pid"
refuses 1 "process $stage_pid did not answer within a second" "$viewer" "$stage_pid"
kill -CONT "$stage_pid"
"$viewer" --version | grep -Eq '^tickwheel-top [0-9.]+, format 1$' || fail "--version"

start "$foreign" other
refuses 1 "process $pid has format 99, this viewer reads format 1: take the tickwheel-top of its version" "$viewer" \
	"$pid"
refuses 1 'several processes publish a service' sh -c '"$1" 2>&1 >/dev/null | head -n 1 >&2; exit 1' sh "$viewer"
echo >&"$to"
start "$foreign" cut
refuses 1 "process $pid did not answer in full" "$viewer" "$pid"
echo >&"$to"
start "$foreign" nothing
refuses 1 "process $pid did not answer in full" "$viewer" "$pid"
echo >&"$to"
wait "$pid" || fail "foreign did not end"
refuses 1 "there is no process $pid" "$viewer" "$pid"

# The process ends while it is shown.
terminal 80x24 "$viewer" "$stage_pid"
shows "$title"
echo >&"$stage_to"
wait "$stage_pid" || fail "the stage did not end well"
shows "^tickwheel-top: process $stage_pid has (gone|closed its service)" '^exit 1$'

# ---- the example server

: >"$work/server"
"$server" --port 0 --loops 1 >"$work/server" &
pid=$!
children+=("$pid")
for ((i = 0; i < 600; i++)); do
	port=$(sed -n 's/^listening on 127.0.0.1:\([0-9]*\)$/\1/p' "$work/server")
	[ -z "$port" ] || break
	sleep 0.05
done
[ -n "$port" ] || fail "the server does not listen"
terminal 80x24 "$viewer" "$pid"
shows "^tickwheel-top  server \($pid\)  service \"http\"" '^timers    0 pending  [0-9]+ overdue' \
	'^workers   \[\.{20}\] 0 of' '^0 running'
exec 3<>"/dev/tcp/127.0.0.1/$port" # a terminal that starts later would inherit it
printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' >&3
shows '^timers    1 pending  [0-9]+ overdue'
exec 3>&-
shows '^timers    0 pending'
kill "$pid"
shows "^tickwheel-top: process $pid has (gone|closed its service)" '^exit 1$'
wait "$pid" || fail "the server did not end well"
echo "top: ok (first picture after $first ms, next look after $took ms)"
