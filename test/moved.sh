#!/bin/sh
# moved.sh BUILD_DIR: what `make install` puts into one prefix works after it is moved to another. Programs are built against
# it by pkg-config, CMake and meson, shared and static, and run. Each installed example compiles, and each link of an
# installed document holds. Knobs: CC, MAKE.
set -eu
cd "$(dirname "$0")/.."

[ $# -eq 1 ] || { echo "usage: moved.sh BUILD_DIR" >&2; exit 2; }
build=$1
CC=${CC:-cc}
MAKE=${MAKE:-make}
MAKEFLAGS= MFLAGS=
unset MAKELEVEL PREFIX DESTDIR bindir libdir includedir mandir docdir
export MAKEFLAGS MFLAGS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "moved: $1" >&2
	[ ! -s "$work/out" ] || tail -n 20 "$work/out" | sed 's/^/  /' >&2
	exit 1
}
quietly() { "$@" >"$work/out" 2>&1; }

first=$work/first
second=$work/some/where/else
quietly "$MAKE" --no-print-directory MODE="$(basename "$build")" CC="$CC" install PREFIX="$first" \
	libdir="$first/lib/of-its-own" || fail "make install failed"
mkdir -p "$work/some/where"
mv "$first" "$second"
! grep -rqIF "$first" "$second" || fail "an installed file names the first prefix: $(grep -rlIF "$first" "$second" | tr '\n' ' ')"
lib=$second/lib/of-its-own
export PKG_CONFIG_PATH="$lib/pkgconfig"

# ---- programs

mkdir "$work/project"
cat >"$work/project/program.c" <<'PROGRAM'
#include <stdio.h>
#include <tickwheel.h>

static void on_timeout(void *arg)
{
	puts(arg);
}

int main(void)
{
	tw_service *service;
	static char text[] = "it ran";
	if (tw_service_create(&service, NULL) != 0 || tw_schedule(service, TW_MILLISECOND, on_timeout, text, NULL) != 0)
		return 1;
	return tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER) || tw_service_destroy(service);
}
PROGRAM

# $1: a program; $2: where the library lies, or nothing.
runs() {
	LD_LIBRARY_PATH=${2:-} timeout 60 "$1" >"$work/out" 2>&1 || fail "$1 failed ($?)"
	grep -qx 'it ran' "$work/out" || fail "$1 did not say what it should"
}

# shellcheck disable=SC2046,SC2086 # lists
quietly $CC -o "$work/shared" "$work/project/program.c" $(pkg-config --cflags --libs tickwheel) || fail "pkg-config"
runs "$work/shared" "$lib"
# shellcheck disable=SC2046,SC2086
quietly $CC -static -o "$work/static" "$work/project/program.c" $(pkg-config --cflags --libs --static tickwheel) ||
	fail "pkg-config --static"
runs "$work/static"

tools=pkg-config
if command -v cmake >/dev/null 2>&1; then
	cat >"$work/project/CMakeLists.txt" <<'LISTS'
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(tickwheel 0.1 REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared tickwheel::tickwheel)
add_executable(static program.c)
target_link_libraries(static tickwheel::static)
LISTS
	quietly cmake -S "$work/project" -B "$work/cmake" -DCMAKE_C_COMPILER="${CC%% *}" -Dtickwheel_DIR="$lib/cmake/tickwheel" &&
		quietly cmake --build "$work/cmake" || fail "CMake"
	runs "$work/cmake/shared"
	runs "$work/cmake/static"
	tools="$tools, CMake"
fi

if command -v meson >/dev/null 2>&1; then
	cat >"$work/project/meson.build" <<'BUILD'
project('program', 'c')
executable('shared', 'program.c', dependencies: dependency('tickwheel', version: '>=0.1'))
executable('static', 'program.c', dependencies: dependency('tickwheel', static: true))
BUILD
	CC="$CC" quietly meson setup "$work/meson" "$work/project" && quietly meson compile -C "$work/meson" || fail "meson"
	runs "$work/meson/shared" "$lib"
	runs "$work/meson/static"
	tools="$tools, meson"
fi

# ---- examples, as they lie there

examples=$second/share/doc/tickwheel/examples
chmod -R a-w "$examples"
quietly "$MAKE" -C "$examples" O="$work/bin" CC="$CC" CFLAGS="-O0 -Werror -Wl,-rpath,$lib" || fail "the examples do not build"
grep 'left out' "$work/out" || true
count=0
for source in "$examples"/*.c; do
	name=$(basename "$source" .c)
	[ -x "$work/bin/$name" ] || continue
	count=$((count + 1))
	case $name in loop_*) continue ;; esac
	# shellcheck disable=SC2046,SC2086
	quietly $CC -o "$work/one" "$source" $(pkg-config --cflags --libs tickwheel) -lm || fail "$name does not build by one line"
done
for name in server demo cache; do [ -x "$work/bin/$name" ] || fail "$name was not built"; done
quietly timeout 60 "$work/bin/request_timeout" || fail "an example failed"
[ ! -e "$examples/build" ] || fail "the examples were built in their own folder"
chmod -R u+w "$examples"

# ---- links

: >"$work/broken"
pages=0
for page in $(find "$second/share/doc" -name '*.md'); do
	pages=$((pages + 1))
	grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | grep -v '^[a-z]*:' | sort -u | while read -r target; do
		[ -z "$target" ] || [ -e "$(dirname "$page")/$target" ] || echo "$page: $target" >>"$work/broken"
	done
done
cp "$work/broken" "$work/out"
[ ! -s "$work/broken" ] || fail "links that lead nowhere"
for page in README.md docs/guide.md docs/migrating.md docs/tracing.md docs/figures.md docs/design.md examples/README.md; do
	[ -e "$second/share/doc/tickwheel/$page" ] || fail "$page is not installed"
done
grep -q '](../../../include/tickwheel/service.h)' "$second/share/doc/tickwheel/README.md" || fail "no link to a header"
echo "moved: ok ($tools; $count examples and 3 programs built, links of $pages documents)"
