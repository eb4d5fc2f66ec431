#!/bin/sh
# cpp.sh BUILD_DIR: runs the C++ tests. Each program in BUILD_DIR/test/cpp/asio was built with
# asio::steady_timer (.theirs) and with tickwheel::asio::timer (.ours): both must write the same. In
# BUILD_DIR/test/cpp/boost they are built with Boost's asio.
set -eu
cd "$(dirname "$0")/../.."

[ $# -eq 1 ] || { echo "usage: cpp.sh BUILD_DIR" >&2; exit 2; }
dir=$1/test/cpp
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
TSAN_OPTIONS="suppressions=$PWD/test/tsan.supp halt_on_error=1 ${TSAN_OPTIONS:-}"
LSAN_OPTIONS="suppressions=$PWD/test/lsan.supp ${LSAN_OPTIONS:-}"
export TSAN_OPTIONS LSAN_OPTIONS

fail() {
	echo "cpp: $1" >&2
	[ ! -s "$out/err" ] || head -n 60 "$out/err" >&2
	exit 1
}

for program in "$dir"/*.17 "$dir"/*.20 "$dir"/*.noexcept; do
	timeout 120 "$program" 2>"$out/err" || fail "$(basename "$program") failed"
done

programs=0
for ours in "$dir"/asio/*.ours "$dir"/boost/*.ours; do
	[ -e "$ours" ] || continue
	theirs=${ours%.ours}.theirs
	name=${ours#"$dir"/}
	timeout 120 "$ours" >"$out/ours" 2>"$out/err" || fail "$name fails"
	timeout 120 "$theirs" >"$out/theirs" 2>"$out/err" || fail "$name: theirs fails"
	diff "$out/theirs" "$out/ours" >"$out/err" || fail "$name: theirs (<) is not ours (>)"
	programs=$((programs + 1))
done
for which in asio:libasio-dev boost:libboost1.81-dev; do
	ls "$dir/${which%:*}"/*.ours >/dev/null 2>&1 || echo "cpp: ${which%:*} was not found (${which#*:}): left out"
done
echo "cpp: ok ($programs programs write the same with asio's timer and with ours)"
