#!/bin/sh
# functions.sh: the public functions are few, and each of them is shown in use.
#
#   - the headers declare at most 133 functions. Macros and types do not count, and no header has an inline function
#   - each function is called in a program of examples/, or in code of docs/, which the tests
#     compile
#   - the table "Who may call what" of tickwheel.h names functions that exist, and has a row for all others
. "$(dirname "$0")/../support/script.sh"
most=133

# Headers as arguments. The names of their functions, one a line.
declared() { sed 's|/\*.*\*/||' "$@" | grep -oE 'TW_API [^(]*\(' | sed 's/ *($//; s/.*[ *]//' | grep '^tw_' | sort -u; }

# The code of pages.
code() { awk '/^```(c|cpp)[ \t]*$/ { on = 1; next } /^```/ { on = 0 } on' "$@"; }

# Names on standard input, $1: text. Prints those that the text does not call.
unused() {
	grep -oE '\btw_[a-z_0-9]+ *\(' "$1" | sed 's/ *($//' | sort -u >"$work/called"
	comm -23 - "$work/called"
}

declared include/tickwheel.h include/tickwheel/*.h >"$work/functions"
{ find examples -name '*.c' -exec cat {} +; code docs/guide.md docs/layers.md docs/calls.md; } |
	sed 's|/\*.*\*/||; s|^[ \t]*\*.*||; s|//.*||' >"$work/uses"

# ---- the checks find what is planted

printf '%s\n' '/* TW_API int tw_in_a_comment(void); */' 'TW_API int tw_one(void);' 'TW_API tw_x *tw_two(tw_x *x,' \
	>"$work/planted.h"
[ "$(declared "$work/planted.h" | tr '\n' ' ')" = "tw_one tw_two " ] ||
	fail "declarations are not found"
printf 'tw_one();\n/* tw_two(x) */\n' | sed 's|/\*.*\*/||' >"$work/planted"
[ "$(declared "$work/planted.h" | unused "$work/planted")" = tw_two ] ||
	fail "an unused one is not found"

# ---- the checks

grep -nE 'static inline|__inline' include/tickwheel.h include/tickwheel/*.h >"$work/found" || true
[ ! -s "$work/found" ] || fail "a header has an inline function, which nobody counts"
count=$(wc -l <"$work/functions")
cp "$work/functions" "$work/found"
[ "$count" -gt 100 ] || fail "few functions are found"
[ "$count" -le "$most" ] || fail "$count functions are declared, more than $most"
unused "$work/uses" <"$work/functions" >"$work/found"
[ ! -s "$work/found" ] || fail "neither an example nor the guide uses these"
awk -f test/contract/table.awk include/tickwheel.h >"$work/table"
cp "$work/table" "$work/found"
[ "$(wc -l <"$work/table")" -gt 20 ] || fail "the table of tickwheel.h is not found"
cut -f1 "$work/table" | while read -r pattern; do
	grep -qx "$(echo "$pattern" | sed 's/\*/.*/g')" "$work/functions" || echo "$pattern"
done >"$work/found"
[ ! -s "$work/found" ] || fail "the table of tickwheel.h names these, which do not exist"
grep -q '^\*' "$work/table" || fail "the table of tickwheel.h has no row for every other function"
echo "functions: ok ($count of at most $most, each in an example or in the guide)"
