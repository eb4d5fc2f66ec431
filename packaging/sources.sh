#!/bin/sh
# sources.sh core|short|common|layers: the source files of a part, one a line, for make, meson and CMake.
#   core, short  libtickwheel. The three files of short are on each timer's path and have options of their own
#   common       parts of the core that have no state: each of the two shared libraries has its own
#   layers       libtickwheel-layers
set -eu
cd "$(dirname "$0")/.."
LC_ALL=C
export LC_ALL

short='wheel/timer/(schedule|cancel|reset)\.c'
common='mpsc/base/(entry|futex|histogram|reserve|text)\.c'
layers='executor/(action|base|limiter|monitor|scheduler|semaphore|sim|strand)/.*'
all() { find mpsc wheel executor -name '*.c' | sort; }

case $1 in
core) all | grep -Evx "$short|$common|$layers" ;;
short) all | grep -Ex "$short" ;;
common) all | grep -Ex "$common" ;;
layers) all | grep -Ex "$layers" ;;
*) echo "usage: sources.sh core|short|common|layers" >&2; exit 2 ;;
esac
