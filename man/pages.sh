#!/bin/sh
# pages.sh DIR VERSION: the manual in DIR/man3 and DIR/man7. The headers are the source:
#
#   man3/NAME.3               each function, struct, enum and function type
#   man7/tickwheel_HEADER.7   what a header opens with, its file in man/text, and its lists
#   man7/tickwheel_TOPIC.7    the other files of man/text
#   man7/tickwheel.7          the overview, with the rules of tickwheel.h
#   man7/tickwheel_recipes.7  the recipes of docs/guide.md
#
# EXAMPLES are functions of the programs in examples/ and of the pages, which the tests compile.
set -eu
cd "$(dirname "$0")/.."

LC_ALL=C
export LC_ALL

[ $# -eq 2 ] || { echo "usage: pages.sh DIR VERSION" >&2; exit 2; }
dir=$1
rm -rf "$dir"
mkdir -p "$dir/man3" "$dir/man7"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

headers="include/tickwheel.h $(ls include/tickwheel/*.h)"
cat $headers | grep -oE 'tw_[a-z_]+' | sort -u >"$work/names"
# shellcheck disable=SC2046,SC2086 # lists of files
awk -v names="$work/names" -f man/examples.awk \
	$(ls examples/*.c examples/*/*.c docs/guide.md docs/*.md | awk '!seen[$0]++') \
	>"$work/examples"
layers=$(sed -n 's/^#include "\([a-z]*\)\.h"$/\1/p' include/tickwheel/layers.h | paste -sd' ')
# shellcheck disable=SC2086
awk -v dir="$dir" -v version="$2" -v examples="$work/examples" -v layers=" $layers layers " \
	-v texts=man/text -v topics="threads memory close errors time cpp" \
	-f man/text.awk -f man/model.awk -f man/parse.awk -f man/pages.awk $headers
awk -v version="$2" -f man/text.awk -f man/recipes.awk docs/guide.md >"$dir/man7/tickwheel_recipes.7"
if [ -s "$dir/man7/tickwheel_recipes.7" ]; then
	printf '.TP\n.BR tickwheel_recipes (7)\nWhat people do with timers, as code.\n' >>"$dir/list"
else
	rm "$dir/man7/tickwheel_recipes.7"
fi
awk -v version="$2" -v list="$dir/list" -f man/text.awk -f man/overview.awk man/tickwheel.7.in include/tickwheel.h \
	>"$dir/man7/tickwheel.7"
rm "$dir/list"
echo "manual: $(find "$dir" -name '*.[37]' -type f | wc -l) pages in $dir"
