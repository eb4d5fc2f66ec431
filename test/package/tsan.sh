#!/bin/sh
# tsan.sh BUILD_DIR: a program built for ThreadSanitizer gets no false report. With the library of BUILD_DIR, which was
# not built for it, that takes the installed suppressions; with the one of `make install MODE=tsan` it takes none, and a
# race of a callback is reported. The programs are those of the stress. Knobs: CC, MAKE.
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 1 ] || { echo "usage: tsan.sh BUILD_DIR" >&2; exit 2; }
build=$1
. test/package/installed.sh
unset TSAN_OPTIONS

cat >"$work/race.c" <<'END'
#include <stdatomic.h>
#include <tickwheel.h>
static int shared;
static atomic_int ended;
static void race(void *arg)
{
	++*(int *)arg;
	atomic_store_explicit(&ended, 1, memory_order_relaxed);
}
int main(void)
{
	tw_service *service;
	if (tw_service_create(&service, NULL) || tw_schedule(service, TW_MILLISECOND, race, &shared, NULL))
		return 1;
	while (!atomic_load_explicit(&ended, memory_order_relaxed))
		shared++;
	return tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER);
}
END

# $1: a name; the rest: knobs of make.
install_and_build() {
	name=$1
	shift
	quietly "$MAKE" --no-print-directory CC="$CC" install PREFIX="$work/$name" "$@" || fail "make install $*"
	PKG_CONFIG_PATH=$work/$name/lib/pkgconfig
	export PKG_CONFIG_PATH
	for source in test/stress/ledger.c test/stress/strand.c test/stress/semaphore.c test/stress/limiter.c \
		"$work/race.c"; do
		# shellcheck disable=SC2046,SC2086 # lists
		quietly $CC -g -O1 -fsanitize=thread -I. "$source" -o "$work/$name/$(basename "$source" .c)" \
			$(pkg-config --cflags --libs tickwheel-layers) -Wl,-rpath,"$work/$name/lib" ||
			fail "does not compile"
	done
}
runs_clean() {
	for program in ledger strand semaphore limiter; do
		quietly timeout 120 "$work/$1/$program" 2 || fail "$1: a false report, or $program failed"
	done
}

install_and_build plain MODE="$(basename "$build")"
! quietly timeout 120 "$work/plain/ledger" 1 || fail "nothing to suppress"
suppressions=$(pkg-config --variable=tsan_suppressions tickwheel)
[ -s "$suppressions" ] || fail "no suppressions at $suppressions"
TSAN_OPTIONS=suppressions=$suppressions
export TSAN_OPTIONS
runs_clean plain

unset TSAN_OPTIONS
install_and_build instrumented MODE=tsan
runs_clean instrumented
! quietly timeout 120 "$work/instrumented/race" || fail "a race of a callback is not reported"
grep -q 'data race' "$work/out" || fail "the race is not reported as one"

echo "tsan: ok (four stress programs with a library built for it or not)"
