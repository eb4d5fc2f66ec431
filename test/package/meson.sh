#!/bin/sh
# meson.sh BUILD_DIR: meson builds the library, runs its smoke test and installs it. The installed tree has the headers
# and exports of `make install`, works after it is moved, and a project may have this tree as a subproject. Knob: CC.
set -eu
cd "$(dirname "$0")/../.."

[ $# -eq 1 ] || { echo "usage: meson.sh BUILD_DIR" >&2; exit 2; }
build=$1
tree=$PWD
script=meson
. test/package/installed.sh
export CC
exports() { nm -D --defined-only "$1" | sed 's/^[^ ]* //' | sort; }

if ! command -v meson >/dev/null 2>&1; then
	echo "meson: not found, left out"
	exit 0
fi

quietly meson setup --fatal-meson-warnings "$work/build" --prefix "$work/first" --libdir lib \
	-Ddefault_library=both || fail "setup"
quietly meson compile -C "$work/build" || fail "compile"
! grep -q 'warning:' "$work/out" || fail "the compiler warns"
quietly meson test -C "$work/build" || fail "test"
quietly meson install -C "$work/build" || fail "install"

mkdir "$work/elsewhere"
mv "$work/first" "$work/elsewhere/second"
prefix=$work/elsewhere/second
(cd include && find . -name '*.h*' | sort) >"$work/wanted"
(cd "$prefix/include" && find . -type f | sort) | diff "$work/wanted" - >"$work/out" ||
	fail "installs (>) other headers than there are (<)"
for name in libtickwheel libtickwheel-layers; do
	exports "$build/$name.so" >"$work/wanted"
	exports "$prefix/lib/$name.so" | diff "$work/wanted" - >"$work/out" ||
		fail "$name exports (>) other symbols than make's library (<)"
	test/package/hardened.sh "$prefix/lib/$name.so" "$prefix/lib/$name.a" >"$work/out" 2>&1 ||
		fail "$name is not hardened"
done
! ar t "$prefix/lib/libtickwheel-layers.a" | grep -q futex || fail "the static layers have parts of the core"

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
runs_by_pkg_config "$prefix/lib"
runs_by_cmake -DCMAKE_PREFIX_PATH="$prefix" || true

# As a subproject, which is what a wrap makes of it: the library of the kind that the parent asks for is built, and
# nothing else. No test of it runs.
unset PKG_CONFIG_PATH
mkdir -p "$work/parent/subprojects"
cp "$project/program.c" "$work/parent/program.c"
ln -s "$tree" "$work/parent/subprojects/tickwheel"
cat >"$work/parent/meson.build" <<'BUILD'
project('parent', 'c')
executable('program', 'program.c', dependencies: dependency('tickwheel', fallback: 'tickwheel'))
BUILD
core=$(find mpsc wheel executor/pool executor/manual executor/*.c -name '*.c' | wc -l)
version=$(packaging/version.sh)
# What a plain `meson compile` of the parent makes of the subproject, but for $2 object files.
made() {
	ninja -C "$1" -n | sed 's/^\[[0-9/]*\] //' >"$work/out" || fail "ninja -n"
	[ "$(grep -c '^Compiling C object subprojects/tickwheel/' "$work/out")" -eq "$2" ] || fail "not $2 objects"
	sed -n '/^Compiling/d; s|.* subprojects/tickwheel/||p' "$work/out" | grep -v '\.symbols$' | sort | paste -sd' '
}
for kind in shared static; do
	parent=$work/parent-$kind
	quietly meson setup "$parent" "$work/parent" "-Ddefault_library=$kind" || fail "setup as a subproject"
	grep -q 'tickwheel' "$work/out" || fail "the subproject was not used"
	case $kind in shared) wanted=libtickwheel.so.$version ;; static) wanted=libtickwheel.a ;; esac
	found=$(made "$parent" "$core")
	[ "$found" = "$wanted" ] || fail "as a $kind subproject builds: $found"
	[ "$(meson introspect --tests "$parent")" = '[]' ] || fail "the subproject has tests"
done
quietly meson compile -C "$work/parent-static" || fail "compile as a subproject"
runs "$work/parent-static/program"
cp "$project/layers.c" "$work/parent/program.c"
sed -i "s/dependency('tickwheel'/dependency('tickwheel-layers'/" "$work/parent/meson.build"
quietly meson compile -C "$work/parent-static" || fail "compile as a subproject, with the layers"
runs "$work/parent-static/program"
! ldd "$work/parent-static/program" | grep -q tickwheel || fail "a static subproject is linked as a shared one"
echo "meson: ok (built, tested, installed, moved; as a subproject)"
