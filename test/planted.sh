#!/bin/sh
# planted.sh [PATTERN]: puts each bug of test/planted/list (those whose line matches the pattern) into a copy of the sources, in build/planted, and looks
# whether the fuzz target, or the soak, that it is meant for finds it. Before that each of them must find nothing. The last line is the sum.
# FUZZ_SECONDS, SOAK_SECONDS: how long they may look for one.
set -eu
cd "$(dirname "$0")/.."

pattern=${1:-.}
fuzz_seconds=${FUZZ_SECONDS:-120}
soak_seconds=${SOAK_SECONDS:-12}
list=$PWD/test/planted/list
copy=build/planted
make=${MAKE:-make}

# What has not changed keeps its time, so that little is built again.
mkdir -p "$copy"
find ./Makefile ./.ci ./include ./mpsc ./wheel ./executor ./test ./packaging -type f | while read -r f; do
	cmp -s "$f" "$copy/$f" || { mkdir -p "$copy/${f%/*}" && cp "$f" "$copy/$f"; }
done
(cd "$copy" && find include mpsc wheel executor test -type f) | while read -r f; do
	[ -e "$f" ] || rm "$copy/$f"
done
cd "$copy"

binary() { # TARGET
	case $1 in soak) echo build/release/test/soak ;; *) echo build/fuzz/test/fuzz/$1 ;; esac
}

build() { # TARGET
	case $1 in soak) mode="MODE=release" ;; *) mode="MODE=fuzz CC=clang" ;; esac
	# shellcheck disable=SC2086 # two words
	$make --no-print-directory -s -j"$(nproc)" MAKELEVEL=1 $mode "$(binary "$1")" >log 2>&1 ||
		{ tail -n 20 log >&2; echo "planted: it could not be built" >&2; exit 1; }
}

look() { # TARGET SECONDS: true, nothing was found
	if [ "$1" = soak ]; then
		build/release/test/soak "$2" >log 2>&1
	else
		rm -rf build/fuzz/corpus build/fuzz/found
		FUZZ_SEED=1 test/fuzz.sh "$2" "$(binary "$1")" >log 2>&1
	fi
}

# plant N: replaces the lines of the list's n-th bug in its file.
plant() {
	awk -v n="$1" '
		FNR == NR && /^[a-z]/ { bug++; if (bug == n) target = $2; next }
		FNR == NR { if (bug == n && /^-/) old[++olds] = substr($0, 2); else if (bug == n && /^\+/) fresh[++news] = substr($0, 2); next }
		{ line[++lines] = $0 }
		END {
			for (i = 1; i <= lines - olds + 1; i++) {
				for (j = 1; j <= olds && line[i + j - 1] == old[j]; j++)
					;
				if (j > olds) { at = i; found++ }
			}
			if (found != 1)
				exit 1
			for (i = 1; i <= lines; i++) {
				if (i == at) {
					for (j = 1; j <= news; j++)
						print fresh[j]
					i += olds - 1
				} else
					print line[i]
			}
		}' "$list" "$2" >planted
}

grep '^[a-z]' "$list" | awk -v OFS='\t' '{ what = $0; sub(/^[^ ]+ +[^ ]+ +/, "", what); print NR, $1, $2, what }' |
	grep -e "$pattern" >bugs || { echo "planted: no bug is called $pattern" >&2; exit 1; }

for target in $(cut -f 2 bugs | sort -u); do
	build "$target"
	case $target in soak) seconds=$soak_seconds ;; *) seconds=5 ;; esac
	look "$target" "$seconds" || { tail -n 20 log >&2; echo "planted: $target finds something where no bug was planted" >&2; exit 1; }
	echo "planted: $target finds nothing where nothing is"
done

missed=0 count=0
while IFS='	' read -r n target file what <&3; do
	plant "$n" "$file" || { echo "planted: $file has changed, the lines of \"$what\" are not there, or more than once" >&2; exit 1; }
	cp "$file" original
	cp planted "$file"
	build "$target"
	begun=$(date +%s)
	case $target in soak) seconds=$soak_seconds ;; *) seconds=$fuzz_seconds ;; esac
	count=$((count + 1))
	if look "$target" "$seconds"; then
		missed=$((missed + 1))
		echo "planted: $target DOES NOT FIND in $seconds s: $what ($file)"
	else
		echo "planted: $target finds in $(($(date +%s) - begun)) s: $what"
	fi
	cp original "$file"
done 3<bugs
[ "$missed" = 0 ] || { echo "planted: $missed of $count bugs were NOT FOUND"; exit 1; }
echo "planted: all $count bugs were found"
