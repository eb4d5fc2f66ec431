#!/bin/sh
# includes.sh BUILD_DIR: includes and calls point down the list of folders below, so that no cycle exists between files
# of different folders. The public headers lean on nothing but each other and the C standard library. The bare wheel
# names no thread, clock or atomic.
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 1 ] || { echo "usage: includes.sh BUILD_DIR" >&2; exit 2; }
build=$1

# ---- by the text

# Lowest first. A file may include and call what is in its own folder and in the folders that this list names before it.
folders='mpsc/base mpsc
	wheel wheel/slot wheel/core wheel/timer wheel/run wheel/driver
	executor/pool executor/manual wheel/service
	executor/base executor/strand executor/limiter executor/scheduler executor/action
	executor/semaphore executor/sim executor/monitor'

find mpsc wheel executor -name '*.[ch]' | sort >"$work/files"

# Reads "file file name" lines: the first file uses the name, which the second provides. Prints those that point up.
upward() {
	awk -v folders="$folders" '
		BEGIN { n = split(folders, in_order); for (i = 1; i <= n; i++) rank[in_order[i]] = i }
		function folder(file) { sub("/[^/]*$", "", file); return file }
		!rank[folder($1)] || !rank[folder($2)] {
			print $1 " -> " $2 ": a folder is missing in the list of includes.sh"
			next
		}
		rank[folder($1)] < rank[folder($2)] { print $1 " -> " $2 ": " $3 }'
}

# shellcheck disable=SC2046 # a list of files
awk '/^[[:space:]]*#[[:space:]]*include[[:space:]]*"/ { split($0, part, "\""); print FILENAME, part[2], "#include" }' \
	$(cat "$work/files") | grep -vE '^[^ ]+ tickwheel(\.h|/)' | upward | sort -u >"$work/found"
[ ! -s "$work/found" ] || fail "a file includes what is above it"

standard='assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
	stdbool stddef stdint stdio stdlib stdnoreturn string time uchar wchar wctype'
: >"$work/names"
for name in $standard; do echo "<$name.h>" >>"$work/names"; done
(cd include && find . -name '*.h') | sed 's|^\./\(.*\)|"\1"|; p; s|"tickwheel/|"|' >>"$work/names"
echo '"../tickwheel.h"' >>"$work/names"
find include -name '*.h' -exec sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*//p' {} + |
	sed 's/[[:space:]]*\/\*.*//' | sort -u | grep -vxFf "$work/names" >"$work/found" || true
[ ! -s "$work/found" ] || fail "public headers include more than each other and the C standard library"

# Words count, comments included: a bare data structure has no reason to speak of them.
grep -nE '<(pthread|time|stdatomic|threads)\.h>|include.*atomic|pthread_|clock_gettime|atomic_' \
	wheel/wheel.c wheel/wheel.h >"$work/found" || true
[ ! -s "$work/found" ] || fail "the bare wheel names a thread, a clock or an atomic"

# ---- by the symbols

# Each name that a file needs and another file defines: "user provider name".
sed -n 's/\.c$//p' "$work/files" | while read -r file; do
	[ -e "$build/$file.o" ] || fail "$build/$file.o is missing"
	nm "$build/$file.o" | awk -v file="$file.c" '
		NF == 3 && $2 ~ /^[TDBRVWC]$/ { print "defines", $3, file }
		NF == 2 && $1 == "U" && $2 ~ /^tw_/ { print "needs", $2, file }'
done >"$work/names"
awk '$1 == "defines" { provider[$2] = $3 } $1 == "needs" { user[NR] = $3; name[NR] = $2 }
	END { for (i in user)
		print user[i], (name[i] in provider ? provider[name[i]] : "nowhere/" name[i]), name[i] }' \
	"$work/names" | upward | sort >"$work/found"
[ ! -s "$work/found" ] || fail "a file calls what is above it: that call closes a cycle, or may become part of one"

echo "includes: ok"
