#!/bin/sh
# version.sh: prints the version that include/tickwheel/version.h says.
cd "$(dirname "$0")/.." || exit 1
sed -n 's/^#define TW_VERSION_[MP][AIT][A-Z]* \([0-9]*\)$/\1/p' include/tickwheel/version.h | paste -sd.
