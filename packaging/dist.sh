#!/bin/sh
# dist.sh DIR VERSION: the last commit as a tar file, the same bytes each time.
set -eu
cd "$(dirname "$0")/.."

[ $# -eq 2 ] || { echo "usage: dist.sh DIR VERSION" >&2; exit 2; }
name=tickwheel-$2
if ! git rev-parse --verify -q HEAD >/dev/null 2>&1; then
	echo "dist: this is not a git checkout; a tar file of it is what it came from" >&2
	exit 1
fi
[ -z "$(git status --porcelain)" ] || echo "dist: what is not committed is left out" >&2
mkdir -p "$1"
git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$1/$name.tar.gz"
echo "$1/$name.tar.gz"
