#!/bin/sh
# arm64.sh: the library and its tests built for arm64 with Debian's cross compiler, and run by qemu-user, which runs the
# instructions but shows none of that processor's weak ordering: a check of the build, of sizes and of the second set of
# Concurrency Kit's primitives.
#
# Concurrency Kit for arm64 is Debian's package, fetched and unpacked below build/arm64: the machine's own package lists
# stay as they are.
set -eu
cd "$(dirname "$0")/../.."

out=build/arm64/sysroot
mkdir -p "$out"
if [ ! -e "$out/usr/include/ck_pr.h" ]; then
	mkdir -p build/arm64/apt/lists/partial build/arm64/apt/cache/archives/partial
	(
		cd build/arm64
		apt="apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64"
		apt="$apt -o Dir::State::Lists=$PWD/apt/lists -o Dir::Cache=$PWD/apt/cache"
		# shellcheck disable=SC2086 # a list of options
		$apt update >apt/log 2>&1 && $apt download libck0 libck-dev >>apt/log 2>&1
		for p in libck*_arm64.deb; do dpkg -x "$p" sysroot; done
	) || { echo "arm64: Concurrency Kit for arm64 could not be had, see build/arm64/apt/log" >&2; exit 1; }
fi

lib=$PWD/$out/usr/lib/aarch64-linux-gnu
make=${MAKE:-make}
$make --no-print-directory -s -j2 MODE=arm64 CC=aarch64-linux-gnu-gcc CFLAGS="-isystem $PWD/$out/usr/include -L$lib" \
	build/arm64/libtickwheel.a build/arm64/libtickwheel-layers.so build/arm64/plain/run \
	$(ls test/stress/*.c | sed 's|\(.*\)\.c|build/arm64/\1|')
run="qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$lib"
$run build/arm64/plain/run --jobs 2 --patience 20 --without test/plain/not_arm64
for s in ledger handles pool; do
	$run build/arm64/test/stress/$s "${1:-3}"
done
echo "arm64: ok (built without warnings, tests and three stress programs under qemu; it shows no weak ordering)"
