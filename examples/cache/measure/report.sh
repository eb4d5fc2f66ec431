#!/bin/bash
# report.sh OUT: writes OUT/report.html from the results of run.sh in OUT/data: plots by gnuplot,
# if it is installed, and the tables.
set -euo pipefail
out=$1 data=$1/data
redis_colour='#d1495b' tick_colour='#1f6fd6' tick2_colour='#7fb2f0' null_colour='#c4cad3'

begin() { printf '%s\n' "set terminal svg size 460,300 dynamic noenhanced font 'sans-serif,11' background '#ffffff'" \
	"set output" "set border 3 lc rgb '#5b6675'" "set tics nomirror scale 0.5" "set grid lc rgb '#dde2e9'" \
	"set key outside bottom center horizontal"; }

# A cell's distribution. Nothing to draw if no event came.
lateness_plot() {
	local lines=()
	[ ! -s "$data/redis-$1.lateness" ] ||
		lines+=("'$data/redis-$1.lateness' using 2:1 with lines lw 2 lc rgb '$redis_colour' title 'redis'")
	[ ! -s "$data/tick1-$1.lateness" ] ||
		lines+=("'$data/tick1-$1.lateness' using 2:1 with lines lw 2 lc rgb '$tick_colour' title 'tickcache'")
	[ ${#lines[@]} -gt 0 ] || return 0
	{
		begin
		printf '%s\n' "set logscale x" "set xrange [0.1:100000]" "set yrange [0:1.02]" "set format x '%g'" \
			"set xlabel 'milliseconds after the deadline'" "set ylabel 'fraction of the keys'"
		local IFS=,
		echo "plot ${lines[*]}"
	} | gnuplot --default-settings -
}

memory_plot() {
	{
		begin
		printf '%s\n' "set xlabel 'seconds after the first deadline'" "set ylabel 'resident MiB'" \
			"set yrange [0:*]" \
			"plot '$data/redis-$1.memory' using 1:2 with lines lw 2 lc rgb '$redis_colour' title 'redis', \
			'$data/tick1-$1.memory' using 1:2 with lines lw 2 lc rgb '$tick_colour' title 'tickcache'"
	} | gnuplot --default-settings -
}

# Medians of the rounds: TEST REDIS TICK1 TICK2 NULL.
throughput_data() {
	local test name
	for test in set get incr mset; do
		printf '%s' "$test"
		for name in redis tick1 tick2 null; do
			awk -v s="server=$name" -v t="test=$test" -v c="clients=$1" -v p="pipeline=$2" \
				'$2 == s && $3 == t && $4 == c && $5 == p { sub("rate=", "", $6); print $6 }' \
				"$data/results" | sort -g |
				awk '{ v[NR] = $1 } END { printf " %.1f", v[int((NR + 1) / 2)] / 1000 }'
		done
		echo
	done
}

throughput_plot() {
	throughput_data "$1" "$2" >"$data/throughput-$1-$2"
	{
		begin
		printf '%s\n' "set style data histograms" "set style histogram clustered gap 1" "set style fill solid" \
			"set yrange [0:*]" \
			"set ylabel 'thousand requests a second'" \
			"plot '$data/throughput-$1-$2' using 2:xtic(1) lc rgb '$redis_colour' title 'redis', \
			'' using 3 lc rgb '$tick_colour' title 'tickcache, 1 thread', \
			'' using 4 lc rgb '$tick2_colour' title '2 threads', \
			'' using 5 lc rgb '$null_colour' title 'null server'"
	} | gnuplot --default-settings -
}

figure() {
	printf '<figure><figcaption>%s</figcaption>' "$1"
	"${@:2}" | sed '/^<?xml/d;/^<!DOCTYPE/,/>$/d' # inside of a page an image has no head of its own
	printf '</figure>\n'
}

escaped() { sed 's/&/\&amp;/g;s/</\&lt;/g;s/>/\&gt;/g' "$1"; }

plots() {
	echo '<h2>How late keys end</h2>'
	echo '<p>Each curve is the distribution over all keys of a cell, on a logarithmic axis. A curve'
	echo 'that ends below 1: the other keys were still held when the measurement gave up,'
	echo '3 s after the last deadline.</p>'
	echo '<div class="plots">'
	for cell in $(sed -n 's/^expiry .*cell=\([^ ]*\).*/\1/p' "$data/results" | awk '!seen[$0]++'); do
		figure "<b>$cell</b>" lateness_plot "$cell"
	done
	echo '</div><h2>Memory</h2><div class="plots">'
	for cell in 100k-alone 20k-beside-500k 100k-beside-500k; do
		[ ! -s "$data/tick1-$cell.memory" ] || figure "<b>$cell</b>" memory_plot "$cell"
	done
	echo '</div><h2>Throughput</h2>'
	echo '<p>Medians of redis-benchmark. The null server has two threads. It only counts requests and'
	echo 'answers +OK: client and kernel leave no more to any server.</p><div class="plots">'
	loads=$(sed -n 's/^throughput .*clients=\([0-9]*\) pipeline=\([0-9]*\).*/\1-\2/p' "$data/results")
	for load in $(echo "$loads" | awk '!seen[$0]++'); do
		figure "<b>${load%-*} clients, pipeline of ${load#*-}</b>" throughput_plot "${load%-*}" "${load#*-}"
	done
	echo '</div>'
}

{
	cat <<'HEAD'
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tickcache beside redis-server</title>
<style>
body{margin:0 auto;max-width:1240px;padding:1rem;background:#fff;color:#1c2330;
font:15px/1.5 system-ui,"DejaVu Sans",sans-serif}
h1{font-size:1.7rem;margin:.4rem 0}
h2{font-size:1.2rem;margin:2rem 0 .3rem;padding-top:.8rem;border-top:1px solid #dde2e9}
p{max-width:75ch}.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:1rem}
figure{margin:0;padding:.6rem;border:1px solid #dde2e9;border-radius:8px;min-width:0}figcaption{font-size:.85rem}
figure svg{display:block;width:100%;height:auto;max-width:520px;margin:0 auto}
pre{overflow-x:auto;font-size:.78rem;line-height:1.4;padding:.8rem;
background:#f7f9fb;border:1px solid #dde2e9;border-radius:8px}
</style>
<h1>tickcache beside redis-server</h1>
HEAD
	printf '<p>%s; %s; %s processors. Both servers on this machine, in turn, with the same clients.</p>\n' \
		"$(redis-server --version | cut -d' ' -f1-3)" \
		"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)"
	if command -v gnuplot >/dev/null 2>&1; then plots; else echo '<p>gnuplot was not found: no plots.</p>'; fi
	printf '<h2>Tables</h2><pre>'
	escaped "$data/table"
	printf '</pre></html>\n'
} >"$out/report.html.new"
mv "$out/report.html.new" "$out/report.html"
echo "report: $out/report.html"
