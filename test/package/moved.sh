#!/bin/sh
# moved.sh BUILD_DIR: what `make install` puts into one prefix works after it is moved to another. Programs are built
# against it by pkg-config, CMake and meson, shared and static, and run. Each installed example compiles, and each link
# of an installed document holds. Knobs: CC, MAKE.
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 1 ] || { echo "usage: moved.sh BUILD_DIR" >&2; exit 2; }
build=$1
. test/package/installed.sh

first=$work/first
second=$work/some/where/else
installing install PREFIX="$first" libdir="$first/lib/of-its-own" || fail "make install failed"
mkdir -p "$work/some/where"
mv "$first" "$second"
! grep -rqIF "$first" "$second" ||
	fail "an installed file names the first prefix: $(grep -rlIF "$first" "$second" | tr '\n' ' ')"
lib=$second/lib/of-its-own
export PKG_CONFIG_PATH="$lib/pkgconfig"

# ---- programs

runs_by_pkg_config "$lib"
tools=pkg-config
! runs_by_cmake -Dtickwheel_DIR="$lib/cmake/tickwheel" || tools="$tools, CMake"

if command -v meson >/dev/null 2>&1; then
	cat >"$project/meson.build" <<'BUILD'
project('program', 'c')
executable('shared', 'program.c', dependencies: dependency('tickwheel', version: '>=0.2'))
executable('static', 'program.c', dependencies: dependency('tickwheel', static: true))
executable('layers', 'layers.c', dependencies: dependency('tickwheel-layers'))
BUILD
	CC="$CC" quietly meson setup "$work/meson" "$project" && quietly meson compile -C "$work/meson" || fail "meson"
	runs "$work/meson/shared" "$lib"
	runs "$work/meson/static"
	runs "$work/meson/layers" "$lib"
	tools="$tools, meson"
fi

# ---- examples, in their own folder

examples=$second/share/doc/tickwheel/examples
chmod -R a-w "$examples"
quietly "$MAKE" -C "$examples" O="$work/bin" CC="$CC" CFLAGS="-O0 -Werror -Wl,-rpath,$lib" ||
	fail "the examples do not build"
grep 'left out' "$work/out" || true
count=0
for source in "$examples"/*.c; do
	name=$(basename "$source" .c)
	[ -x "$work/bin/$name" ] || continue
	count=$((count + 1))
	case $name in loop_*) continue ;; esac
	package=tickwheel
	! grep -q 'tickwheel/layers' "$source" || package=tickwheel-layers
	# shellcheck disable=SC2046,SC2086
	quietly $CC -o "$work/one" "$source" $(pkg-config --cflags --libs $package) -lm ||
		fail "$name does not build by one line"
done
for name in server cache; do [ -x "$work/bin/$name" ] || fail "$name was not built"; done
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
for page in README.md docs/guide.md docs/layers.md docs/migrating.md docs/tracing.md docs/figures.md docs/design.md \
	examples/README.md; do
	[ -e "$second/share/doc/tickwheel/$page" ] || fail "$page is not installed"
done
grep -q '](../../../include/tickwheel/service.h)' "$second/share/doc/tickwheel/README.md" || fail "no link to a header"
echo "moved: ok ($tools; $count examples and 6 programs built, links of $pages documents)"
