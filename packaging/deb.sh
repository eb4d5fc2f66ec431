#!/bin/sh
# deb.sh DIR VERSION SOVERSION: libtickwheelX.Y (the shared library) and libtickwheel-dev (all that is needed to build), made from this
# tree by dpkg-deb. Called by `make deb`. Knobs: MAKE, DEB_MAINTAINER.
set -eu
cd "$(dirname "$0")/.."

[ $# -eq 3 ] || { echo "usage: deb.sh DIR VERSION SOVERSION" >&2; exit 2; }
out=$PWD/$1
version=$2
runtime=libtickwheel$3
maintainer=${DEB_MAINTAINER:-the tickwheel authors <tickwheel@localhost>}
arch=$(dpkg-architecture -qDEB_HOST_ARCH)
libdir=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

MAKEFLAGS= "${MAKE:-make}" -s --no-print-directory install MODE=release DESTDIR="$work/all" PREFIX=/usr libdir="/$libdir" \
	docdir=/usr/share/doc/libtickwheel-dev >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 1; }

dev=$work/libtickwheel-dev
run=$work/$runtime
mv "$work/all" "$dev"
mkdir -p "$run/$libdir" "$run/DEBIAN" "$run/usr/share/doc/$runtime" "$dev/DEBIAN" "$dev/usr/share/doc/libtickwheel-dev/examples"
mv "$dev/$libdir/libtickwheel.so.$version" "$dev/$libdir/libtickwheel.so.$3" "$run/$libdir/"
strip --strip-unneeded "$run/$libdir/libtickwheel.so.$version"
strip --strip-debug "$dev/$libdir/libtickwheel.a"
cp examples/*.c "$dev/usr/share/doc/libtickwheel-dev/examples/"
find "$dev/usr/share/man" -type f -exec gzip -9n {} +
for package in libtickwheel-dev "$runtime"; do
	doc=$work/$package/usr/share/doc/$package
	cp LICENSE "$doc/copyright"
	printf 'tickwheel (%s) unstable; urgency=medium\n\n  * See upstream.gz.\n\n -- %s  %s\n' "$version" "$maintainer" \
		"$(date -R -r CHANGELOG.md)" | gzip -9n >"$doc/changelog.gz"
	gzip -9nc CHANGELOG.md >"$doc/upstream.gz"
done
rm -f "$dev/usr/share/doc/libtickwheel-dev/LICENSE" "$dev/usr/share/doc/libtickwheel-dev/CHANGELOG.md"

# What the library itself needs, as Debian's own tool finds it.
mkdir "$work/debian"
printf 'Source: tickwheel\n\nPackage: %s\nArchitecture: any\n' "$runtime" >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$run/$libdir/libtickwheel.so.$version" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo "deb: what the library depends on could not be found out" >&2; exit 1; }

# $1: package; $2: section; $3: depends; $4: what it is; standard input: more about it.
control() {
	cat >"$work/$1/DEBIAN/control" <<CONTROL
Package: $1
Source: tickwheel
Version: $version
Architecture: $arch
Multi-Arch: same
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$work/$1" | cut -f1)
Depends: $3
Section: $2
Priority: optional
Description: timer service for multithreaded programs ($4)
$(sed 's/^/ /')
CONTROL
	(cd "$work/$1" && find usr -type f -exec md5sum {} + | sort -k2 >DEBIAN/md5sums)
}
control "$runtime" libs "$depends" "shared library" <<'TEXT'
Any thread schedules, moves and cancels timers without locks; one tick thread keeps a hashed timing wheel; a pool of workers runs what is due.
TEXT
printf 'libtickwheel %s %s (>= %s)\n' "$3" "$runtime" "$version" >"$run/DEBIAN/shlibs"
echo 'activate-noawait ldconfig' >"$run/DEBIAN/triggers"
control libtickwheel-dev libdevel "$runtime (= $version), libck-dev" "to build with" <<'TEXT'
Headers, the static library, files for pkg-config and CMake, manual and examples.
TEXT

mkdir -p "$out"
rm -f "$out"/*.deb
for package in "$runtime" libtickwheel-dev; do
	dpkg-deb --root-owner-group --build "$work/$package" "$out/${package}_${version}_$arch.deb" >/dev/null
	echo "$1/${package}_${version}_$arch.deb"
done
