#!/bin/sh
# musl.sh DIR: the static library and the small examples, built with musl-gcc in DIR and run. The
# kernel's headers come from glibc's tree. Knob: MAKE.
set -eu
cd "$(dirname "$0")/../.."

[ $# -eq 1 ] || { echo "usage: musl.sh DIR" >&2; exit 2; }
dir=$1
fail() { echo "musl: $1" >&2; exit 1; }
command -v musl-gcc >/dev/null 2>&1 || fail "musl-gcc was not found: apt-get install musl-tools"

# Of the system's headers these alone: the rest is glibc's.
mkdir -p "$dir/include" "$dir/bin"
system=/usr/include
asm=$(dirname "$(printf '#include <asm/types.h>\n' | cc -E -x c - | sed -n 's/^# 1 "\(.*\/asm\/types\.h\)".*/\1/p' |
	head -n 1)")
for header in "$system"/linux "$system"/asm-generic "$asm"; do
	ln -sfn "$header" "$dir/include/$(basename "$header")"
done

MAKEFLAGS= "${MAKE:-make}" -s --no-print-directory -j"$(nproc)" B="$dir" CC="musl-gcc -isystem $dir/include" \
	"$dir/libtickwheel-layers.a" "$dir/libtickwheel.a" >"$dir/log" 2>&1 ||
	{ tail "$dir/log" >&2; fail "the libraries do not build"; }
! grep -q 'warning:' "$dir/log" || { grep 'warning:' "$dir/log" >&2; fail "warnings"; }

rm -f "$dir"/bin/*
for source in examples/*.c; do
	name=$(basename "$source" .c)
	# Foreign loops need libraries that are glibc's.
	case $name in loop_*) continue ;; esac
	musl-gcc -static -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Iinclude -o "$dir/bin/$name" "$source" \
		"$dir/libtickwheel-layers.a" "$dir/libtickwheel.a" -lm ||
		fail "$name does not build"
done
# One of the examples starts the server beside it.
musl-gcc -static -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Iinclude -I. -o "$dir/bin/server" examples/server/*.c \
	"$dir/libtickwheel-layers.a" "$dir/libtickwheel.a" -lm ||
	fail "the server does not build"
test/examples/run.sh "$dir/bin" >"$dir/log" || fail "an example failed"
echo "musl: ok (library, $(wc -l <"$dir/log") examples, static)"
