# Read by scripts behind support/script.sh: knobs, and two programs that use what is installed, of which one needs the
# layers.
# shellcheck shell=sh disable=SC2034,SC2154 # the readers use them, and set script

CC=${CC:-cc}
MAKE=${MAKE:-make}
MAKEFLAGS= MFLAGS=
unset MAKELEVEL PREFIX DESTDIR libdir includedir mandir docdir
export MAKEFLAGS MFLAGS
quietly() { "$@" >"$work/out" 2>&1; }
installing() { quietly "$MAKE" --no-print-directory MODE="$(basename "$build")" CC="$CC" "$@"; }

project=$work/project
mkdir "$project"
cat >"$project/program.c" <<'PROGRAM'
#include <stdio.h>
#include <tickwheel.h>

static void on_timeout(void *arg)
{
	puts((const char *)arg);
}

int main(void)
{
	tw_service *service;
	static char text[] = "it ran";
	if (!TW_VERSION_CHECK()) {
		fprintf(stderr, "compiled for tickwheel %d, but %d is installed\n", TW_VERSION, tw_version());
		return 3;
	}
	if (tw_service_create(&service, NULL) != 0 || tw_schedule(service, TW_MILLISECOND, on_timeout, text, NULL) != 0)
		return 1;
	return tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER) || tw_service_destroy(service);
}
PROGRAM
cat >"$project/layers.c" <<'PROGRAM'
#include <stdio.h>
#include <tickwheel/layers.h>

static void task(void *arg)
{
	puts((const char *)arg);
}

int main(void)
{
	tw_service *service;
	tw_strand *strand;
	static char text[] = "it ran";
	if (tw_service_create(&service, NULL) || tw_strand_create(&strand, service, NULL) ||
	    tw_strand_schedule(strand, TW_MILLISECOND, task, text, NULL))
		return 1;
	struct tw_strand_stats stats = TW_INIT(tw_strand_stats);
	while (stats.runs == 0 && tw_strand_stats(strand, &stats) == 0) {
	}
	return tw_strand_destroy(strand) || tw_service_destroy(service);
}
PROGRAM
cat >"$project/CMakeLists.txt" <<'LISTS'
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(tickwheel 0.2 REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared tickwheel::tickwheel)
add_executable(static program.c)
target_link_libraries(static tickwheel::static)
add_executable(layers layers.c)
target_link_libraries(layers tickwheel::layers)
add_executable(layers-static layers.c)
target_link_libraries(layers-static tickwheel::layers-static)
LISTS

# $1: a program; $2: the library's folder, or nothing.
runs() {
	LD_LIBRARY_PATH=${2:-} timeout 60 "$1" >"$work/out" 2>&1 || fail "$1 failed ($?)"
	grep -qx 'it ran' "$work/out" || fail "$1 did not say what it should"
}

# Builds the programs by pkg-config, shared and static, and runs them. $1: the library's folder; PKG_CONFIG_PATH is set.
runs_by_pkg_config() {
	for program in program:tickwheel layers:tickwheel-layers; do
		source=$project/${program%:*}.c package=${program#*:}
		# shellcheck disable=SC2046,SC2086 # lists
		quietly $CC -o "$work/shared" "$source" $(pkg-config --cflags --libs $package) ||
			fail "$package by pkg-config"
		runs "$work/shared" "$1"
		# shellcheck disable=SC2046,SC2086
		quietly $CC -static -o "$work/static" "$source" $(pkg-config --cflags --libs --static $package) ||
			fail "$package by pkg-config --static"
		runs "$work/static"
	done
}

# Builds the programs shared and static by CMake, and runs them. $1: an option that tells where the library is. False:
# no CMake.
runs_by_cmake() {
	command -v cmake >/dev/null 2>&1 || return 1
	quietly cmake -S "$project" -B "$work/cmake" -DCMAKE_C_COMPILER="${CC%% *}" "$1" &&
		quietly cmake --build "$work/cmake" ||
		fail "does not build by CMake"
	for program in shared static layers layers-static; do runs "$work/cmake/$program"; done
}
