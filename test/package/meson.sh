#!/bin/sh
# meson.sh BUILD_DIR: meson builds the library, runs its smoke test and installs it. The installed tree has the headers
# and exports of `make install`, and works after it is moved. Knob: CC.
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 1 ] || { echo "usage: meson.sh BUILD_DIR" >&2; exit 2; }
build=$1
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
echo "meson: ok (built, tested, installed, moved)"
