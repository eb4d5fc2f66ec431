#!/bin/sh
# picture.sh RESULTS PICTURE README: writes PICTURE (docs/bench.svg), four plots of one run of the
# bench, and the line of README between its two marks that shows it.
# Refuses a run that was not complete, or that has a failed trial. Other failed cells are left out,
# and named. A figure is the median of its runs.
set -eu

[ $# -eq 3 ] || { echo "usage: picture.sh RESULTS PICTURE README" >&2; exit 2; }
results=$1 picture=$2 readme=$3
for tool in jq gnuplot; do
	command -v $tool >/dev/null || { echo "picture: needs $tool" >&2; exit 1; }
done
[ -s "$results" ] || { echo "picture: $results is missing: make bench" >&2; exit 1; }
[ "$(jq -r '.occasion.complete' "$results")" = true ] || { echo "picture: the run was not complete" >&2; exit 1; }
failed() { jq -r '.cells[] | select(has("failure") and (.workload == "trial") == '"$1"') |
	"  \(.workload) \(.candidate) n=\(.n) threads=\(.threads): \(.failure)"' "$results"; }
[ -z "$(failed true)" ] || { echo "picture: the run has failed trials; measure again:" >&2; failed true >&2; exit 1; }
[ -z "$(failed false)" ] || { echo "picture: left out, since they failed:"; failed false; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A line for each figure: workload, n, threads, candidate, figure, value.
jq -r '
	def median: sort | if length % 2 == 1 then .[length / 2 | floor]
		else (.[length / 2 - 1] + .[length / 2]) / 2 end;
	.cells[] | select(has("failure") | not) | . as $cell | to_entries[]
	| select(.value | type == "object" and has("runs"))
	| [$cell.workload, $cell.n, $cell.threads, $cell.candidate, .key, (.value.runs | median)] | @tsv' \
		"$results" >"$work/list"

# least WORKLOAD THREADS FIGURE CANDIDATE...: "n value" lines, the least of these candidates for each n.
least() {
	awk -F'\t' -v w="$1" -v t="$2" -v f="$3" -v names=" $(shift 3; echo "$*") " '
		$1 == w && $3 == t && $5 == f && index(names, " " $4 " ") &&
			(!($2 in least) || $6 < least[$2]) { least[$2] = $6 }
		END { for (n in least) print n, least[n] }' "$work/list" | sort -n
}

locked="heap-mutex heap4-mutex libevent-mt libev-mt libuv-mt timerfd timer_create asio-mt glib-mt"
bare="heap-bare heap4-bare"

# lines of a group: file, title, color. Those without figures are left out.
groups='ours|tickwheel|#1f6fd6
locked|heap or C library behind a lock|#8892a6
go|Go|#2a9d8f
netty|Netty|#c0504d
bare|heap of one thread, no lock|#e0a040'

members() {
	case $1 in
	ours) echo tickwheel ;;
	locked) echo "$locked" ;;
	bare) echo "$bare" ;;
	*) echo "$1" ;;
	esac
}

# plots WORKLOAD THREADS FIGURE SCALE STYLE: the part of a plot command, and its data files.
curves() {
	command=
	while IFS='|' read -r group title color; do
		file="$work/$1.$2.$3.$group"
		# shellcheck disable=SC2046 # names
		least "$1" "$2" "$3" $(members "$group") >"$file"
		[ -s "$file" ] || continue
		style="with linespoints lw 2 pt 7 ps 0.6 lc rgb '$color' title '$title'"
		command="$command${command:+, }'$file' using 1:(\$2 * $4) $style"
	done <<-END
		$groups
	END
	echo "$command"
}

# A bar for each group; the number of threads stands below it.
bars() {
	command=
	place=0
	while IFS='|' read -r group title color; do
		place=$((place + 1))
		file="$work/$1.bars.$group"
		for threads in 1 2; do
			# shellcheck disable=SC2046
			least "$1" $threads "$2" $(members "$group") |
				awk -v x="$place" -v t=$threads '{ print x + (t - 1) * 6, $2 }'
		done >"$file"
		[ -s "$file" ] || continue
		labels="'$file' using 1:2:(sprintf('%.0f', \$2)) with labels offset 0,0.6 font ',10' notitle"
		command="$command${command:+, }'$file' using 1:2 with boxes lc rgb '$color' notitle, $labels"
	done <<-END
		$groups
	END
	echo "$command"
}

# The names of the groups with their colors, above the plots.
legend() {
	printf '%s\n' "$groups" | awk -F'|' '{
		x = 0.02 + (NR - 1) % 3 * 0.34; y = NR > 3 ? 0.935 : 0.97
		printf "set object %d rectangle from screen %.3f,%.3f", NR, x, y - 0.008
		printf " to screen %.3f,%.3f", x + 0.02, y + 0.008
		printf " fc rgb \"%s\" fs solid noborder\n", $3
		printf "set label %d \"%s\" at screen %.3f,%.3f left\n", NR, $2, x + 0.03, y
	}'
}

one=$(curves W1 1 ns_per_op 1)
two=$(curves W1 2 ns_per_op 1)
request=$(bars W2 ns_per_op)
fired=$(curves W4 1 cpu_ns_per_op 0.001)
for part in "$one" "$two" "$request" "$fired"; do
	[ -n "$part" ] || { echo "picture: the run lacks a workload: W1 with 1 and 2 threads, W2, W4" >&2; exit 1; }
done

cat >"$work/script" <<END
set terminal svg size 900,720 font 'DejaVu Sans,Verdana,sans-serif,12' background rgb 'white'
set output '$work/picture.svg'
set multiplot layout 2,2 margins 0.08,0.98,0.08,0.88 spacing 0.09,0.16
set border 3 lc rgb '#5a6475'
set tics nomirror textcolor rgb '#5a6475'
set grid y lc rgb '#e3e7ee'
set logscale xy
set format x '%.0s%c'
set xlabel 'pending timers' textcolor rgb '#5a6475'
set format y '%g'
unset key
$(legend)
set title 'cancel one timer and schedule another, 1 thread: ns'
plot $one
unset object
unset label
set title 'the same on 2 threads: ns for each thread'
plot $two
set title 'all fire within 2 s, 1 thread: CPU µs for each timer'
set xlabel 'timers'
plot $fired
set title 'a request: schedule, then cancel: ns'
unset logscale
set boxwidth 0.8
set style fill solid
set yrange [0:*]
set xrange [0:12]
set offsets 0, 0, graph 0.1, 0
set xlabel ' '
set xtics ('1 thread' 3, '2 threads' 9) scale 0
plot $request
END
gnuplot --default-settings "$work/script" || { echo "picture: gnuplot failed" >&2; exit 1; }
mv "$work/picture.svg" "$picture"
awk -v line="![cost of churn, of a request and of firing, beside other timers]($picture)" '
	/^<!-- picture -->/ { print; print ""; print line; print ""; on = 1; next }
	/^<!-- \/picture -->/ { on = 0 }
	!on' "$readme" >"$work/readme"
cp "$work/readme" "$readme"
echo "picture: $picture, of the run of $(jq -r '.occasion.when' "$results")"
