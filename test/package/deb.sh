#!/bin/sh
# deb.sh DIR VERSION: the Debian packages in DIR. They name what they need, lintian finds no error and no warning, and
# dpkg installs them into a root of their own, where the installed examples build and one runs. Purging them leaves
# nothing.
#
# With TW_DEB_ROOT=FOLDER, a root made by debootstrap or mmdebstrap, apt installs them with their dependencies inside
# that root, and the tests of debian/tests run there. Knob: CC.
. "$(dirname "$0")/../support/script.sh"

[ $# -eq 2 ] || { echo "usage: deb.sh DIR VERSION" >&2; exit 2; }
dir=$1
version=$2

# ---- what they say

library=$(echo "$dir"/libtickwheel[0-9]*[0-9]_"$version"_*.deb)
layers=$(echo "$dir"/libtickwheel-layers[0-9]*[0-9]_"$version"_*.deb)
dev=$(echo "$dir"/libtickwheel-dev_"$version"_*.deb)
doc=$dir/libtickwheel-doc_${version}_all.deb
dbgsym=$(echo "$dir"/libtickwheel[0-9]*-dbgsym_"$version"_*.deb)
for package in "$library" "$layers" "$dev" "$doc" "$dbgsym" "$dir/tickwheel_$version.dsc"; do
	[ -e "$package" ] || fail "$package is missing: is debian/changelog of another version?"
done
depends() { dpkg-deb -f "$1" Depends; }
depends "$library" | grep -q libc6 || fail "the library's packages are not named"
depends "$layers" | grep -q 'libtickwheel[0-9.]* (= ' || fail "the layers need no library of their version"
depends "$dev" | grep -q 'libtickwheel-layers[0-9.]* (= .*libtickwheel[0-9.]* (= ' ||
	fail "-dev needs no library"
dpkg-deb -I "$library" symbols | grep -q '^ tw_cancel@TICKWHEEL_' || fail "the symbols file does not have tw_cancel"
! tar -tf "$dir/tickwheel_$version.tar.xz" | grep -q '^[^/]*/build/' || fail "the source package has what was built"

linted=
if command -v lintian >/dev/null 2>&1; then
	lintian --allow-root --fail-on error,warning "$dir/tickwheel_${version}"_*.changes >"$work/out" 2>&1 ||
		fail "lintian"
	linted="lintian, "
fi

# ---- a root made for the purpose

if [ -n "${TW_DEB_ROOT:-}" ]; then
	root=$TW_DEB_ROOT
	mkdir -p "$root/tickwheel"
	cp "$library" "$layers" "$dev" "$doc" debian/tests/* "$root/tickwheel/"
	needs=$(sed -n 's/^Depends: //p' debian/tests/control | tr '\n,' '  ')
	install="apt-get install -q -y --reinstall --no-install-recommends ./*.deb $needs"
	chroot "$root" sh -ec "cd /tickwheel; apt-get update -q; $install" >"$work/out" 2>&1 ||
		fail "not installed in $root"
	for test in $(sed -n 's/^Tests: //p' debian/tests/control); do
		chroot "$root" sh "/tickwheel/$test" >"$work/out" 2>&1 || fail "debian/tests/$test in $root"
	done
	chroot "$root" sh -ec 'apt-get purge -q -y "libtickwheel*"; rm -r /tickwheel' >"$work/out" 2>&1 || fail "purge"
	echo "deb: ok (${linted}in $root)"
	exit 0
fi

# ---- a root with nothing but dpkg's database: dependencies are the host's, so they are not asked for

root=$work/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
: >"$root/var/lib/dpkg/status"
: >"$root/var/lib/dpkg/available"
in_root() {
	dpkg --root="$root" --log="$work/log" --force-not-root --force-depends --force-script-chrootless \
		"$@" >"$work/out" 2>&1
}
set --
for package in "$dir"/*_"$version"_*.deb; do
	case $package in *-tools-dbgsym_*) ;; *) set -- "$@" "$package" ;; esac
done
in_root -i "$@" || fail "dpkg does not install them"
for program in "$root"/usr/bin/*; do
	[ ! -e "$program" ] || "$program" --version >"$work/out" 2>&1 || fail "$program does not run"
done
libdir=$(dirname "$(find "$root" -name 'libtickwheel.so')")
[ -n "$libdir" ] || fail "no library there"

export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_PATH="$libdir/pkgconfig"
make -s -C "$root/usr/share/doc/libtickwheel-doc/examples" O="$work/bin" CC="${CC:-cc}" request_timeout \
	connection_permits server >"$work/out" 2>&1 || fail "the examples do not build"
for example in request_timeout connection_permits; do
	LD_LIBRARY_PATH=$libdir timeout 60 "$work/bin/$example" >"$work/out" 2>&1 || fail "$example failed"
done
LD_LIBRARY_PATH=$libdir ldd "$work/bin/request_timeout" | grep -q "$root" || fail "the example ran with another library"
id=$(readelf -n "$libdir"/libtickwheel.so.*.*.* | sed -n 's/.*Build ID: \(..\)/\1\//p')
[ -e "$root/usr/lib/debug/.build-id/$id.debug" ] || fail "the debug symbols are of another library"
gzip -dc "$root/usr/share/man/man3/tw_cancel.3.gz" | mandoc -Tascii | col -b >"$work/out" 2>&1
grep -q 'int tw_cancel(tw_service' "$work/out" || fail "the manual cannot be read"

packages=$(for package in "$@"; do dpkg-deb -f "$package" Package; done)
# shellcheck disable=SC2086 # a list
in_root --purge $packages ||
	fail "dpkg does not remove them"
find "$root/usr" ! -type d >"$work/out" 2>/dev/null || true
[ ! -s "$work/out" ] || fail "purging has left files"
echo "deb: ok (${linted}installed, examples built and run, purged)"
