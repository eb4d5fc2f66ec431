# shellcheck shell=sh disable=SC2034
# What the tests' scripts begin with, each from a folder of test/: . "$(dirname "$0")/../support/script.sh"
# They run in the tree's root, in the C locale, and have a folder $work until they end.
set -eu
cd "$(dirname "$0")/../.."
LC_ALL=C
export LC_ALL
script=$(basename "$0" .sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Ends the script with a message, and with what the files found and out of $work say.
fail() {
	echo "$script: $1" >&2
	for said in "$work/found" "$work/out"; do
		[ ! -s "$said" ] || tail -n 40 "$said" | sed 's/^/  /' >&2
	done
	exit 1
}
