#!/bin/sh
# man.sh DIR LIBRARY...: the manual in DIR is whole.
#
#   - each function that the libraries export, and each public struct and enum, has a page with its sections; that of a
#     function has EXAMPLES, so each function is used in a program or page that the tests compile
#   - the prototype of a page, as a reader sees it, is the header's: the compiler compares them
#   - pages and the overview refer to pages that exist
#   - apropos finds the pages for the words that people look for
#   - no page sends to a header
#   - mandoc's lint finds nothing
#   - test/contract/questions.md: the page and section that it names contain the sentence
# Knob: CC.
. "$(dirname "$0")/../support/script.sh"

[ $# -ge 2 ] || { echo "usage: man.sh DIR LIBRARY..." >&2; exit 2; }
dir=$1
shift

# $1: a page. As text, one paragraph a line.
shown() { mandoc -Tascii -O width=1000 "$1" | col -bx; }

# $1: a page as text; $2: a section. The lines of the section.
section() { awk -v name="$2" '/^[A-Z]/ { on = $0 == name; next } on' "$1"; }

mkdir "$work/text"
for page in "$dir"/man3/*.3 "$dir"/man7/*.7; do
	shown "$page" >"$work/text/$(basename "$page")"
done

nm -D --defined-only "$@" | awk '$2 == "T" && $3 ~ /^tw_[a-z]/ { sub(/@.*/, "", $3); print $3 }' |
	sort -u >"$work/functions"
[ -s "$work/functions" ] || fail "$* export nothing"
sed -n 's/^\(typedef \)\{0,1\}\(struct\|enum\) \(tw_[a-z_]*\) {.*/\3/p' include/tickwheel.h include/tickwheel/*.h |
	sort -u >"$work/types"
[ "$(wc -l <"$work/types")" -gt 50 ] || fail "few types are found"

: >"$work/found"
while read -r name; do
	page="$work/text/$name.3"
	[ -e "$page" ] || { echo "$name has no page"; continue; }
	for part in NAME SYNOPSIS DESCRIPTION "RETURN VALUE" ERRORS THREADS EXAMPLES "SEE ALSO"; do
		[ -n "$(section "$page" "$part")" ] || echo "$name: no $part"
	done
	section "$page" SYNOPSIS >"$work/synopsis"
	grep -q "[ *]$name(" "$work/synopsis" || echo "$name: its page does not declare it"
	grep -v '#include' "$work/synopsis" | sed '/(/s/^ *//' >>"$work/declared"
	section "$page" NAME | grep -qE "^ +$name - [^ ]+ [^ ]+" || echo "$name: NAME says nothing"
done <"$work/functions" >"$work/found"
[ ! -s "$work/found" ] || fail "pages of functions"
while read -r name; do
	page="$work/text/$name.3"
	[ -e "$page" ] || { echo "$name has no page"; continue; }
	grep -qE "(struct|enum) $name \{" "$page" || echo "$name: its page does not show its members"
done <"$work/types" >"$work/found"
[ ! -s "$work/found" ] || fail "pages of structs and enums"

# Said twice, in the header and in the page: the compiler tells whether it is the same.
{ echo '#include <tickwheel/layers.h>'; cat "$work/declared"; } >"$work/declared.c"
if ! ${CC:-cc} -std=c11 -Iinclude -Wall -Werror -fsyntax-only "$work/declared.c" >"$work/found" 2>&1; then
	fail "a page's prototype is not the header's"
fi
# That the compiler would have said so.
sed 's/uint64_t delay_ns/uint32_t delay_ns/' "$work/declared.c" >"$work/wrong.c"
! ${CC:-cc} -std=c11 -Iinclude -fsyntax-only "$work/wrong.c" >/dev/null 2>&1 || fail "prototypes are not compared"

grep -hoE '^\.BR (tw_|tickwheel)[a-z_]* \([37]\)' "$dir"/man?/* | sed 's/^\.BR \([a-z_]*\) (\([37]\))/man\2\/\1.\2/' |
	sort -u |
	while read -r page; do
		[ -e "$dir/$page" ] || echo "$page"
	done >"$work/found"
# The recipes come from a section of the guide.
grep -q '^# Recipes' docs/guide.md || sed -i '/tickwheel_recipes/d' "$work/found"
[ ! -s "$work/found" ] || fail "pages that others refer to and that do not exist"

# WORD PAGE: apropos finds the page for the word.
while read -r word page; do
	section "$work/text/$page" NAME | tr -s ' \n' '  ' | grep -qi "$(echo "$word" | tr + ' ')" ||
		echo "$word: $page"
done >"$work/found" <<'END'
free tickwheel_memory.7
memory tickwheel_memory.7
size tickwheel_memory.7
grow tickwheel_memory.7
release tickwheel_memory.7
ownership tickwheel_memory.7
limits tickwheel_memory.7
EAGAIN tickwheel_errors.7
overload tickwheel_errors.7
full tickwheel_errors.7
remedy tickwheel_errors.7
EINVAL tickwheel_errors.7
fork tickwheel_threads.7
deadlock tickwheel_threads.7
signal tickwheel_threads.7
thread+exit tickwheel_threads.7
dlclose tickwheel_threads.7
pthread_cancel tickwheel_threads.7
background tickwheel_close.7
persistent tickwheel_close.7
drain tickwheel_close.7
shutdown tickwheel_close.7
NTP tickwheel_time.7
late tickwheel_time.7
lateness tickwheel_time.7
jitter tickwheel_time.7
suspend tickwheel_time.7
resolution tickwheel_time.7
drift tickwheel_time.7
exception tickwheel_cpp.7
coroutine tickwheel_cpp.7
asio tickwheel_cpp.7
priority tickwheel_scheduler.7
priority tickwheel_limiter.7
retry tickwheel_limiter.7
rate+limit tickwheel_limiter.7
timeout tickwheel_timer.7
timeout tickwheel_limiter.7
deadline tw_schedule_at.3
cancel tw_cancel.3
strand tickwheel_strand.7
simulated tickwheel_sim.7
hang tickwheel_threads.7
data+race tickwheel_threads.7
epoll tickwheel_service.7
event+loop tickwheel_service.7
event+loop tickwheel_manual.7
affinity tickwheel_service.7
blocked tickwheel_pool.7
cgroup tickwheel_pool.7
mlockall tickwheel_memory.7
metrics tickwheel_stats.7
debugging tickwheel_misuse.7
actor tickwheel_strand.7
END
! grep -q '^## Debounce' docs/guide.md || for word in debounce throttle cron; do
	section "$work/text/tickwheel_recipes.7" NAME | grep -qi "$word" || echo "$word"
done >>"$work/found"
[ ! -s "$work/found" ] || fail "apropos does not find the page"

grep -lE '(see|has|says)[^.]* [a-z_]*[.]h|[a-z_]*[.]h (has|says)' "$work"/text/*.[37] >"$work/found" || true
[ ! -s "$work/found" ] || fail "pages send to a header"

find "$dir" -name '*.[137]' -exec mandoc -Tlint -W warning {} \; | grep -v 'missing date' >"$work/found" || true
[ ! -s "$work/found" ] || fail "mandoc complains"

# | question | page(3), SECTION | "sentence" |
questions() {
	sed -n 's/^| *\([^|]*[^| ]\) *| *\([a-z_]*\)(\([37]\)), \([A-Z ]*[A-Z]\) *| *"\(.*\)" *|$/\2.\3	\4	\5/p' \
		"$1" |
		while IFS='	' read -r page part sentence; do
			[ -e "$work/text/$page" ] || { echo "$page does not exist"; continue; }
			section "$work/text/$page" "$part" | tr -s ' \n' '  ' | grep -qF -- "$sentence" ||
				echo "$page, $part: $sentence"
		done
}
questions test/contract/questions.md >"$work/found"
[ ! -s "$work/found" ] || fail "answers of test/contract/questions.md that the page does not give"
echo '| Is this found? | tw_cancel(3), DESCRIPTION | "No page says this." |' >"$work/planted.md"
[ -n "$(questions "$work/planted.md")" ] || fail "answers are not compared"
asked=$(grep -c '^| [0-9]*\. ' test/contract/questions.md)
[ "$asked" -ge 24 ] || fail "test/contract/questions.md asks $asked questions, not 24"
matched=$(sed -n 's/^| [0-9]*\. .*| *[a-z_]*([37]), [A-Z ]* *| *".*" *|$/x/p' test/contract/questions.md | grep -c x)
[ "$matched" -eq "$asked" ] || fail "test/contract/questions.md: $((asked - matched)) lines have another form"

echo "man: ok ($(wc -l <"$work/functions") functions, $(wc -l <"$work/types") structs and enums, $asked questions)"
