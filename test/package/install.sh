#!/bin/sh
# install.sh BUILD_DIR: what `make install` puts into a fresh prefix is enough to build and run a program with, by
# pkg-config, statically too, and by CMake if it is there; `make uninstall` leaves nothing; what can be wrong is said in
# one clear line. Knobs: CC, MAKE.
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 1 ] || { echo "usage: install.sh BUILD_DIR" >&2; exit 2; }
build=$1
. test/package/installed.sh

# ---- a fresh prefix

prefix=$work/prefix
installing install PREFIX="$prefix" || fail "make install failed"
PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion tickwheel)" = "$(sed -n 's/^Version: //p' "$prefix/lib/pkgconfig/tickwheel.pc")" ] ||
	fail "pkg-config"

runs_by_pkg_config "$prefix/lib"
# shellcheck disable=SC2046,SC2086 # lists
quietly $CC -o "$work/shared" "$project/program.c" $(pkg-config --cflags --libs tickwheel) || fail "pkg-config"
readelf -d "$work/shared" | grep -q 'NEEDED.*libtickwheel\.so\.[0-9]*\.[0-9]*\]' ||
	fail "the program does not name the soname"
! readelf -d "$work/shared" | grep -q 'NEEDED.*layers' || fail "the program needs the layers"
# shellcheck disable=SC2046,SC2086
! quietly $CC -o "$work/without" "$project/layers.c" $(pkg-config --cflags --libs tickwheel) ||
	fail "libtickwheel has the layers"

if command -v "${CXX:-c++}" >/dev/null 2>&1; then
	printf '#include <tickwheel.hpp>\n#include <tickwheel/layers.hpp>\n' >"$work/program.cpp"
	# shellcheck disable=SC2046
	quietly "${CXX:-c++}" -std=c++17 -Werror -fsyntax-only $(pkg-config --cflags tickwheel) "$work/program.cpp" ||
		fail "C++"
fi

by_cmake=
if runs_by_cmake -DCMAKE_PREFIX_PATH="$prefix"; then
	sed -i 's/tickwheel 0.2/tickwheel 0.3/' "$project/CMakeLists.txt"
	! quietly cmake -S "$project" -B "$work/cmake2" -DCMAKE_PREFIX_PATH="$prefix" || fail "CMake took 0.2 for 0.3"
	by_cmake=", CMake"
fi

# A second install over the first, then away with it; what is not ours stays.
: >"$prefix/lib/pkgconfig/other.pc"
installing install PREFIX="$prefix" || fail "installing again failed"
installing uninstall PREFIX="$prefix" || fail "make uninstall failed"
[ -e "$prefix/lib/pkgconfig/other.pc" ] || fail "uninstall has removed what is not its own"
rm "$prefix/lib/pkgconfig/other.pc"
find "$prefix" ! -type d >"$work/out"
[ ! -s "$work/out" ] || fail "uninstall has left files"
find "$prefix" -name '*tickwheel*' >"$work/out"
[ ! -s "$work/out" ] || fail "uninstall has left folders"

# ---- places of one's own

knobs="DESTDIR=$work/stage PREFIX=/opt/tw libdir=/opt/tw/lib64 includedir=/opt/inc mandir=/opt/man"
# shellcheck disable=SC2086 # a list, as below
installing install $knobs || fail "knobs"
for file in opt/tw/lib64/libtickwheel.a opt/tw/lib64/pkgconfig/tickwheel.pc opt/inc/tickwheel/service.h \
	opt/man/man3/tw_cancel.3; do
	[ -e "$work/stage/$file" ] || fail "$file is not where the knobs say"
done
! grep -rq "$work" "$work/stage/opt/tw/lib64/pkgconfig" "$work/stage/opt/tw/lib64/cmake" ||
	fail "DESTDIR has got into a file"
grep -qx 'libdir=/opt/tw/lib64' "$work/stage/opt/tw/lib64/pkgconfig/tickwheel.pc" || fail "tickwheel.pc knows no libdir"
mkdir -p "$work/stage/opt/docs"
: >"$work/stage/opt/docs/others"
for rule in install uninstall; do
	# shellcheck disable=SC2086
	installing $rule $knobs docdir=/opt/docs || fail "knobs"
done
[ -e "$work/stage/opt/docs/others" ] || fail "uninstall has removed the documentation of others"
rm -r "$work/stage/opt/docs"
for rule in install uninstall; do
	# shellcheck disable=SC2086
	installing $rule $knobs || fail "knobs"
done
find "$work/stage" ! -type d >"$work/out"
[ ! -s "$work/out" ] || fail "uninstall with knobs has left files"

# ---- a tar file of the last commit, the same each time, with all that is committed and nothing else

if git rev-parse --verify -q HEAD >/dev/null 2>&1; then
	version=$(sed -n 's/^#define TW_VERSION_[MP][AIT][A-Z]* \([0-9]*\)$/\1/p' include/tickwheel/version.h |
		paste -sd.)
	packaging/dist.sh "$work/dist" "$version" >"$work/out" 2>&1 || fail "dist"
	packaging/dist.sh "$work/again" "$version" >"$work/out" 2>&1 || fail "dist"
	cmp -s "$work/dist/tickwheel-$version.tar.gz" "$work/again/tickwheel-$version.tar.gz" ||
		fail "dist differs from time to time"
	tar tf "$work/dist/tickwheel-$version.tar.gz" | sed -n "s|^tickwheel-$version/\(.*[^/]\)$|\1|p" |
		sort >"$work/packed"
	git ls-tree -r --name-only HEAD | sort | diff - "$work/packed" >"$work/out" ||
		fail "dist has (>) not what is committed (<)"
fi

# ---- bad input: $1: what must be said; the rest: how make is called

refused() {
	expected=$1
	shift
	! installing "$@" || fail "'make $*' should have failed"
	grep -q "$expected" "$work/out" || fail "'make $*' does not say: $expected"
}
: >"$work/file"
refused 'is not a folder' install PREFIX="$work/file/prefix"
refused 'is not an absolute path' install PREFIX=relative
refused 'is not an absolute path' install DESTDIR=relative
refused 'holds a character' install PREFIX="$work/a place"
refused 'is not installed in' uninstall PREFIX="$work/never"
refused "compiler 'no-such-compiler' was not found" install PREFIX="$prefix" CC=no-such-compiler
mkdir "$work/locked"
chmod 555 "$work/locked"
if [ "$(id -u)" -ne 0 ]; then # root may write anywhere
	refused 'cannot write to .*locked' install PREFIX="$work/locked/prefix"
elif [ -d /proc/self ] && ! mkdir /proc/tickwheel 2>/dev/null; then
	refused 'cannot write to /proc' install PREFIX=/proc/tickwheel
fi

# ---- no pkg-config, and nothing to install it with

mkdir "$work/bin"
for tool in sh dirname mktemp rm sed id env basename make expr tr cat mkdir cmp echo nproc awk grep find uname; do
	path=$(command -v "$tool") && case $path in /*) ln -sf "$path" "$work/bin/$tool" ;; esac
done
ln -sf "$(command -v nm)" "$work/bin/nm"
printf '#!/bin/sh\nexit 0\n' >"$work/bin/cc"
chmod +x "$work/bin/cc"
! PATH="$work/bin" CC=cc .ci/deps build >"$work/out" 2>&1 || fail "a missing dependency is not missed"
grep -q 'tickwheel needs: pkg-config (names of Debian' "$work/out" || fail "a missing dependency is not named"

# ---- an old library beside a new header

echo 'int tw_version(void) { return 0; }
int tw_service_create(void) { return -1; }
int tw_schedule(void) { return -1; } int tw_service_close(void) { return -1; }
int tw_service_destroy(void) { return -1; }' >"$work/old.c"
mkdir "$work/old"
soname=$(readelf -d "$work/shared" | sed -n 's/.*NEEDED.*\[\(libtickwheel[^]]*\)\]/\1/p')
printf 'TICKWHEEL_%s { global: tw_*; };\n' "${soname#libtickwheel.so.}" >"$work/old.map"
quietly ${CC%% *} -shared -fPIC -w "-Wl,-soname,$soname,--version-script=$work/old.map" -o "$work/old/$soname" \
	"$work/old.c" || fail "old.c"
status=0
LD_LIBRARY_PATH=$work/old "$work/shared" >"$work/out" 2>&1 || status=$?
[ $status -eq 3 ] && grep -q '^compiled for tickwheel [0-9]*, but 0 is installed' "$work/out" ||
	fail "an old library is not noticed ($status)"

echo "install: ok (shared, static$by_cmake; knobs, uninstall, bad input, old library)"
