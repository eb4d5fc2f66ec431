#!/bin/sh
# pages.sh DIR VERSION: the manual in DIR/man3 and DIR/man7. The headers are its source, so that it says what they say: a page for
# each header, or for each part of one that has a title line, under the name of its first function; the other functions lead there.
set -eu
cd "$(dirname "$0")/.."

[ $# -eq 2 ] || { echo "usage: pages.sh DIR VERSION" >&2; exit 2; }
dir=$1
rm -rf "$dir"
mkdir -p "$dir/man3" "$dir/man7"

for header in include/tickwheel/*.h; do
	awk -v dir="$dir/man3" -v version="$2" -v base="$(basename "$header" .h)" -f man/text.awk -f man/page.awk "$header"
done
# What each page is about, for the overview.
list=$(mktemp)
trap 'rm -f "$list"' EXIT
for page in "$dir"/man3/*.3; do
	grep -q '^\.so ' "$page" || awk -v page="$(basename "$page" .3)" '/^\.SH NAME/ {
		getline
		about = $0
		sub(/^.* \\- (tickwheel, )?/, "", about)
		printf ".TP\n.BR %s (3)\n%s\n", page, about
		exit
	}' "$page" >>"$list"
done
awk -v version="$2" -v list="$list" -f man/text.awk -f man/overview.awk man/tickwheel.7.in include/tickwheel.h >"$dir/man7/tickwheel.7"
echo "manual: $(find "$dir" -name '*.[37]' -type f | wc -l) pages in $dir"
