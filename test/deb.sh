#!/bin/sh
# deb.sh DIR: dpkg installs the packages of DIR into a root of their own, where an example is built by its pkg-config file and run; they
# name what they need, and purging them leaves nothing. With a root made by debootstrap (TW_DEB_ROOT=its folder) all happens inside it,
# dependencies included. Knob: CC.
set -eu
cd "$(dirname "$0")/.."

[ $# -eq 1 ] || { echo "usage: deb.sh DIR" >&2; exit 2; }
dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "deb: $1" >&2
	[ ! -s "$work/out" ] || tail -n 20 "$work/out" | sed 's/^/  /' >&2
	exit 1
}

for package in "$dir"/libtickwheel[0-9]*.deb "$dir"/libtickwheel-dev_*.deb; do
	[ -e "$package" ] || fail "$dir holds no packages"
done
dpkg-deb -f "$dir"/libtickwheel[0-9]*.deb Depends | grep -q 'libc6.*libck0\|libck0.*libc6' || fail "the library's packages are not named"
dpkg-deb -f "$dir"/libtickwheel-dev_*.deb Depends | grep -q 'libtickwheel[0-9.]* (= .*libck-dev' || fail "-dev needs no library"

if [ -n "${TW_DEB_ROOT:-}" ]; then
	root=$TW_DEB_ROOT
	mkdir -p "$root/tickwheel"
	cp "$dir"/*.deb examples/request_timeout.c "$root/tickwheel/"
	chroot "$root" sh -ec 'cd /tickwheel && apt-get install -q -y --no-install-recommends gcc libc6-dev pkg-config ./*.deb &&
		cc -o program request_timeout.c $(pkg-config --cflags --libs tickwheel) && ./program' >"$work/out" 2>&1 || fail "not in $root"
	chroot "$root" sh -ec 'apt-get purge -q -y libtickwheel-dev "libtickwheel0.*"; rm -r /tickwheel' >"$work/out" 2>&1 || fail "purge"
	echo "deb: ok (in $root)"
	exit 0
fi

# A root with nothing in it but dpkg's books: the C library is the host's, so what the packages need is not asked for.
root=$work/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
: >"$root/var/lib/dpkg/status"
: >"$root/var/lib/dpkg/available"
in_root() { dpkg --root="$root" --log="$work/log" --force-not-root --force-depends --force-script-chrootless "$@" >"$work/out" 2>&1; }
in_root -i "$dir"/*.deb || fail "dpkg does not install them"
libdir=$(dirname "$(find "$root" -name 'libtickwheel.so')")
[ -n "$libdir" ] || fail "no library there"

export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$libdir/pkgconfig"
# shellcheck disable=SC2046,SC2086 # lists
${CC:-cc} -o "$work/program" "$root/usr/share/doc/libtickwheel-dev/examples/request_timeout.c" \
	-I"$root/usr/include" $(PKG_CONFIG_SYSROOT_DIR= pkg-config --libs tickwheel | sed "s|-L[^ ]*|-L$libdir|") -L"$libdir" >"$work/out" 2>&1 ||
	fail "an example does not build"
LD_LIBRARY_PATH=$libdir timeout 60 "$work/program" >"$work/out" 2>&1 || fail "the example failed"
LD_LIBRARY_PATH=$libdir ldd "$work/program" | grep -q "$root" || fail "the example ran with another library"
gzip -dc "$root/usr/share/man/man3/tw_cancel.3.gz" | mandoc -Tascii | col -b >"$work/out" 2>&1
grep -q 'int tw_cancel(tw_service' "$work/out" || fail "the manual cannot be read"

in_root --purge libtickwheel-dev "$(dpkg-deb -f "$dir"/libtickwheel[0-9]*.deb Package)" || fail "dpkg does not remove them"
find "$root/usr" ! -type d >"$work/out" 2>/dev/null || true
[ ! -s "$work/out" ] || fail "purging has left files"
echo "deb: ok (installed, an example built and run, purged)"
