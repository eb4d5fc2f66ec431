#!/bin/sh
# tsan.sh BUILD_DIR: a program built for ThreadSanitizer gets no false report. With the library of BUILD_DIR, which was
# not built for it, that takes the installed suppressions; with the one of `make install MODE=tsan` it takes none, and a
# race of a callback is reported. Knobs: CC, MAKE.
set -eu
cd "$(dirname "$0")/../.."

[ $# -eq 1 ] || { echo "usage: tsan.sh BUILD_DIR" >&2; exit 2; }
build=$1
script=tsan
. test/package/installed.sh
unset TSAN_OPTIONS

# $1: a name; the rest: knobs of make.
install_and_build() {
	name=$1
	shift
	quietly "$MAKE" --no-print-directory CC="$CC" install PREFIX="$work/$name" "$@" || fail "make install $*"
	PKG_CONFIG_PATH=$work/$name/lib/pkgconfig
	export PKG_CONFIG_PATH
	# shellcheck disable=SC2046,SC2086 # lists
	quietly $CC -std=gnu11 -g -O1 -fsanitize=thread -o "$work/$name/program" test/package/tsan.c \
		$(pkg-config --cflags --libs tickwheel) -Wl,-rpath,"$work/$name/lib" || fail "does not compile"
}
runs_clean() {
	quietly timeout 120 "$work/$1/program" || fail "$1: a false report, or it failed"
	grep -qx ended "$work/out" || fail "$1: it did not end"
}

install_and_build plain MODE="$(basename "$build")"
! quietly timeout 120 "$work/plain/program" || fail "nothing to suppress: the file is not needed"
suppressions=$(pkg-config --variable=tsan_suppressions tickwheel)
[ -s "$suppressions" ] || fail "no suppressions at $suppressions"
TSAN_OPTIONS=suppressions=$suppressions
export TSAN_OPTIONS
for round in 1 2 3 4 5; do runs_clean plain; done

unset TSAN_OPTIONS
install_and_build instrumented MODE=tsan
for round in 1 2 3 4 5; do runs_clean instrumented; done
! quietly timeout 120 "$work/instrumented/program" race || fail "a race of a callback is not reported"
grep -q 'data race' "$work/out" || fail "the race is not reported as one"

echo "tsan: ok ($round runs each with a library built for it or not)"
