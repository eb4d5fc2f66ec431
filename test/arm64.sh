#!/bin/sh
# arm64.sh: the library and its tests built for arm64 with Debian's cross compiler, and run by qemu-user, which runs the instructions but
# shows none of that processor's weak ordering: a check of the build, of sizes and of the second set of Concurrency Kit's primitives.
#
# Concurrency Kit for arm64 is not asked of the package manager (a foreign architecture is the machine's owner's affair): its headers do
# the work, and the few functions of the library that are used are compiled from Debian's package for arm64, unpacked here.
set -eu
cd "$(dirname "$0")/.."

out=build/arm64/sysroot
mkdir -p "$out"
if [ ! -e "$out/usr/include/ck_pr.h" ]; then
	version=$(dpkg-query -W -f '${Version}' libck-dev)
	mirror=$(apt-get download --print-uris libck-dev 2>/dev/null | sed "s/^'\([^']*\)\/[^/']*'.*/\1/")
	(
		cd build/arm64
		for p in libck0 libck-dev; do
			[ -e $p.deb ] || curl -fsSL -o $p.deb "$mirror/${p}_${version}_arm64.deb" || wget -q -O $p.deb "$mirror/${p}_${version}_arm64.deb"
			dpkg -x $p.deb sysroot
		done
	) || { echo "arm64: Concurrency Kit for arm64 could not be had" >&2; exit 1; }
fi

lib=$PWD/$out/usr/lib/aarch64-linux-gnu
make=${MAKE:-make}
$make --no-print-directory -s -j2 MODE=arm64 CC=aarch64-linux-gnu-gcc CFLAGS="-isystem $PWD/$out/usr/include -L$lib" \
	build/arm64/libtickwheel.a build/arm64/libtickwheel.so build/arm64/plain/run $(ls test/stress_*.c | sed 's|\(.*\)\.c|build/arm64/\1|')
export LD_LIBRARY_PATH="$lib"
run="qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$lib"
unset LD_LIBRARY_PATH
$run build/arm64/plain/run --jobs 2 --patience 20 --without test/plain/not_arm64
for s in ledger handles pool; do
	$run build/arm64/test/stress_$s "${1:-3}"
done
echo "arm64: ok (built without warnings, tests and three stress programs under qemu; it shows no weak ordering)"
