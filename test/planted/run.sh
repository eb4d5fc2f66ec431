#!/bin/sh
# run.sh [--list FILE] [--marks] [PATTERN]: plants the bugs of a list whose lines match the pattern, each by itself, in
# a copy of the sources in build/planted. The list is test/planted/list by default. The target of a bug must find it:
#   a fuzz target, or the soak
#   stress_NAME    the stress program fails
#   test_SUITE     a unit test fails, debug build
#   unit_FOLDER    an assertion of the library fails in the unit tests of that folder, debug build
#   peers_ROW      test/peers finds it, and shows it in a script of at most 15 steps
# Without a bug each target must find nothing. The last line is the sum. FUZZ_SECONDS, SOAK_SECONDS (soak and stress):
# how long to look for a bug. With --marks nothing is built: each bug must have one place where it can be planted.
. "$(dirname "$0")/../support/script.sh"

list=$PWD/test/planted/list marks=
if [ "${1:-}" = --list ]; then
	list=$PWD/$2
	shift 2
fi
if [ "${1:-}" = --marks ]; then
	marks=only
	shift
fi
pattern=${1:-.}
fuzz_seconds=${FUZZ_SECONDS:-120}
soak_seconds=${SOAK_SECONDS:-12}
peers=$PWD/build/peers
copy=build/planted
make=${MAKE:-make}


# plant NAME COMMAND: prints the file that has the mark; $work/planted is that file with the bug.
plant() {
	at=$(grep -rn "/\* planted: $1 \*/" mpsc wheel executor) || return 1
	[ "$(printf '%s\n' "$at" | wc -l)" = 1 ] || return 1
	file=${at%%:*} line=${at#*:}
	line=${line%%:*}
	sed -n "${line}p" "$file" | grep -q '^[[:space:]]*/\*' && line=$((line + 1))
	sed -e "$line$2" "$file" >"$work/planted"
	! cmp -s "$work/planted" "$file" || return 1
	echo "$file"
}

awk -v OFS='\t' '
	/^[a-z_]+ [a-z_]+  / { target = $1; name = $2; what = $0; sub(/^[^ ]+ +[^ ]+ +/, "", what); next }
	name { print target, name, what, $0; name = "" }' "$list" |
	grep -e "$pattern" >"$work/bugs" || { echo "planted: no bug is called $pattern" >&2; exit 1; }

# ---- the marks

while IFS='	' read -r target name what command; do
	plant "$name" "$command" >/dev/null ||
		{
			echo "planted: no single place is marked \"planted: $name\"," \
				"or \"$command\" changes nothing there" >&2
			exit 1
		}
done <"$work/bugs"
[ -z "$marks" ] || { echo "planted: $(wc -l <"$work/bugs") bugs of ${list##*test/} can be planted" && exit; }

# A file that has not changed keeps its time, so that little is built again.
mkdir -p "$copy"
find ./Makefile ./.ci ./include ./mpsc ./wheel ./executor ./test ./packaging ./examples/*/*.mk -type f |
	while read -r f; do
	cmp -s "$f" "$copy/$f" || { mkdir -p "$copy/${f%/*}" && cp "$f" "$copy/$f"; }
done
(cd "$copy" && find include mpsc wheel executor test -type f) | while read -r f; do
	[ -e "$f" ] || rm "$copy/$f"
done
cd "$copy"

binary() { # TARGET
	case $1 in
	soak) echo build/release/test/stress/soak ;;
	peers_*) echo build/release/test/peers/ours/play ;;
	unit_* | test_*) echo build/debug/plain/run ;;
	stress_*) echo "build/release/test/stress/${1#stress_}" ;;
	*) echo "build/fuzz/test/fuzz/$1" ;;
	esac
}

build() { # TARGET
	case $1 in
	soak | peers_* | stress_*) mode="MODE=release" ;;
	unit_* | test_*) mode="MODE=debug" ;;
	*) mode="MODE=fuzz CC=clang" ;;
	esac
	# shellcheck disable=SC2086 # two words
	$make --no-print-directory -s -j"$(nproc)" MAKELEVEL=1 $mode "$(binary "$1")" >log 2>&1 ||
		{ tail -n 20 log >&2; echo "planted: it could not be built" >&2; exit 1; }
}

look() { # TARGET SECONDS: true, nothing was found
	case $1 in
	soak)
		# One that hangs has found something.
		timeout $((2 * $2 + 60)) build/release/test/stress/soak "$2" >log 2>&1
		;;
	unit_*)
		timeout 300 build/debug/plain/run --jobs "$(nproc)" --filter "${1#unit_}_*/*" >log 2>&1
		! grep -aqi 'assertion .*failed' log
		;;
	test_*)
		timeout 300 build/debug/plain/run --jobs "$(nproc)" --filter "${1#test_}/*" >log 2>&1
		;;
	stress_*)
		timeout $((2 * $2 + 60)) "build/release/test/stress/${1#stress_}" "$2" 1 >log 2>&1
		;;
	peers_*)
		node test/peers/run.mjs --packages "$peers" --row "${1#peers_}" >log 2>&1
		;;
	*)
		rm -rf build/fuzz/corpus build/fuzz/found
		FUZZ_SEED=1 test/fuzz/run.sh "$2" "$(binary "$1")" >log 2>&1
		;;
	esac
}

# Prints in how many steps the log shows what was found. False: in none, or in more than 15.
is_short() {
	steps=$(sed -n 's/^-- minimised, \([0-9]*\) steps.*/\1/p' log)
	[ "${steps:-16}" -le 15 ] && echo ", shown in $steps steps"
}

for target in $(cut -f 1 "$work/bugs" | sort -u); do
	build "$target"
	case $target in soak | stress_*) seconds=$soak_seconds ;; *) seconds=5 ;; esac
	look "$target" "$seconds" ||
		{ tail -n 20 log >&2; echo "planted: $target finds something where no bug was planted" >&2; exit 1; }
	echo "planted: $target finds nothing where nothing is"
done

missed=0 count=0
while IFS='	' read -r target name what command <&3; do
	file=$(plant "$name" "$command")
	cp "$file" original
	cp "$work/planted" "$file"
	build "$target"
	begun=$(date +%s)
	case $target in soak | stress_*) seconds=$soak_seconds ;; *) seconds=$fuzz_seconds ;; esac
	count=$((count + 1))
	shown=
	if look "$target" "$seconds"; then
		missed=$((missed + 1))
		echo "planted: $target DOES NOT FIND in $seconds s: $what ($file)"
	elif case $target in peers_*) ! shown=$(is_short) ;; *) false ;; esac then
		missed=$((missed + 1))
		echo "planted: $target shows no short script: $what ($file)"
	else
		echo "planted: $target finds in $(($(date +%s) - begun)) s$shown: $what"
	fi
	cp original "$file"
done 3<"$work/bugs"
[ "$missed" = 0 ] || { echo "planted: $missed of $count bugs were NOT FOUND"; exit 1; }
echo "planted: all $count bugs were found"
