#!/bin/sh
# arm64.sh: the library and its tests built for arm64 with Debian's cross compiler, and run by qemu-user, which runs the
# instructions but shows none of that processor's weak ordering: a check of the build, and of sizes.
set -eu
cd "$(dirname "$0")/../.."

make=${MAKE:-make}
$make --no-print-directory -s -j2 MODE=arm64 CC=aarch64-linux-gnu-gcc \
	build/arm64/libtickwheel.a build/arm64/libtickwheel-layers.so build/arm64/plain/run \
	$(ls test/stress/*.c | sed 's|\(.*\)\.c|build/arm64/\1|')
run="qemu-aarch64 -L /usr/aarch64-linux-gnu"
$run build/arm64/plain/run --jobs 2 --patience 20 --without test/plain/not_arm64
for s in ledger groups pool; do
	$run build/arm64/test/stress/$s "${1:-3}"
done
echo "arm64: ok (built without warnings, tests and three stress programs under qemu; it shows no weak ordering)"
