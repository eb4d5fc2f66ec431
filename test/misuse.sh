#!/bin/sh
# misuse.sh: each refusal of bad input has a text for the misuse hook, and each text has a row in test/unit/misuse.
#
#   - an -EINVAL, -E2BIG or -ERANGE in the library is in a call of tw__invalid, tw__refuse, tw__misuse or a file's
#     refuse(), or its line says who tells ("told", "tells")
#   - a text matches a text that a row expects, or a test that looks at the texts; "%" matches anything
#   - each public function whose first parameter is an object answers NULL with a text: it has a row
set -eu
cd "$(dirname "$0")/.."

LC_ALL=C
export LC_ALL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "misuse: $1" >&2
	sed 's/^/  /' "$work/found" >&2
	exit 1
}

# Not thread.c, whose text is of a refusal by the system (test/unit/service/locked_memory.c).
find mpsc wheel executor -name "*.c" ! -path wheel/base/thread.c ! -path wheel/base/misuse.c \
	! -path wheel/base/strerror.c \
	! -path wheel/base/struct_read.c | sort >"$work/files"

# FILE:LINE:TEXT of refusals without a text. A call may break the line behind its parenthesis, and the comment that says
# who tells may stand above.
silent() {
	awk '
		FNR == 1 { above = "" }
		/-(EINVAL|E2BIG|ERANGE)/ && !/(tw__invalid|tw__refuse|tw__misuse|refuse)\(/ &&
		!/(==|!=) -(EINVAL|E2BIG|ERANGE)/ &&
		!/\/\*.*(told|tells)/ && !/^ \*/ && !/^[ \t]*\/\*/ &&
		above !~ /(tw__invalid|tw__refuse|tw__misuse|refuse)\($/ &&
		above !~ /\/\*.*(told|tells)/ { print FILENAME ":" FNR ":" $0 }
		{ above = $0 }' "$@"
}
# shellcheck disable=SC2046
silent $(cat "$work/files") >"$work/found"
[ ! -s "$work/found" ] || fail "bad input is refused without a text"
printf '\treturn -EINVAL;\n' >"$work/planted.c"
[ -n "$(silent "$work/planted.c" /dev/null)" ] || { echo "misuse: a refusal without a text is not found" >&2; exit 1; }

# The texts of C files, one a line: "CALL: TEXT", in which "*" stands for what printf puts in.
texts() {
	cat "$@" | awk '
		/^#define (TASK|TW__UNSOUND|UNSOUND) "/ { name = $2; value[name] = $0; sub(/^[^"]*/, "", value[name]) }
		/^[a-z].*\(/ { is_fault = $0 ~ /fault/ }
		{ gsub(/PRI[udx]64/, "\"u\""); sub(/[ \t]*\/\*.*\*\//, "");
			gsub(/TW__UNSOUND|UNSOUND/, value["TW__UNSOUND"])
		  sub(/TASK "/, value["TASK"] " \"") }
		/(tw__invalid|tw__refuse|tw__misuse|[^a-z_]refuse)\(/ { statement = ""; in_call = 1 }
		in_call || (is_fault && /return|\?/) {
			statement = statement $0
			if ($0 !~ /;[ \t\\]*$/)
				next
			in_call = 0
			sub(/^.*(tw__invalid|tw__refuse|tw__misuse|refuse)\(/, "", statement)
			gsub(/"[ \t]*"/, "", statement)
			while (match(statement, /"[^"]*"/)) {
				text = substr(statement, RSTART + 1, RLENGTH - 2)
				statement = substr(statement, RSTART + RLENGTH)
				if (text ~ / /)
					print text
			}
			statement = ""
		}' | sed 's/%[#0-9]*[zl]*[a-z]/*/g' | sort -u
}
sed -n 's/^#define TW__UNSOUND/&/p' wheel/base/struct_read.h >"$work/unsound.c"
# shellcheck disable=SC2046
texts "$work/unsound.c" $(cat "$work/files") >"$work/texts"
[ "$(wc -l <"$work/texts")" -gt 80 ] || { cp "$work/texts" "$work/found"; fail "few texts are found"; }

# What rows expect, and the other tests that set a hook.
# shellcheck disable=SC2046
cat test/unit/misuse/*.c $(grep -rlE "tw_set_misuse_hook|misuse_text[.]h|retry_suite[.]h" test/unit) | tr '\n' ' ' |
	sed 's/"[[:space:]]*\([A-Z_]*\)[[:space:]]*"/\1/g' | grep -oE '"[^"]*"' | tr -d '"' |
	sort -u >"$work/rows"
cat test/unit/misuse/*.c | tr '\n' ' ' | grep -oE 'NULL_ROW\([a-z_]+,[[:space:]]*"[a-z_]+"' |
	sed 's/.*(\([a-z_]*\),[^"]*"\([a-z_]*\)"/\1: \2 is NULL/' >>"$work/rows"
unmatched() {
	awk 'NR == FNR { rows[++n] = $0; next }
		{
			pattern = $0
			sub(/^struct [a-z_]*: /, "", pattern) # of a macro around the row
			gsub(/[][\\.^$+?(){}|]/, "[&]", pattern)
			gsub(/\[\^\]/, "\\^", pattern)
			gsub(/\*/, ".*", pattern)
			for (i = 1; i <= n; i++)
				if (rows[i] ~ pattern)
					next
			print
		}' "$work/rows" -
}
unmatched <"$work/texts" >"$work/found"
[ ! -s "$work/found" ] || fail "these texts have no row in test/unit/misuse"
[ -n "$(echo "a text that no row expects" | unmatched)" ] ||
	{ echo "misuse: a text without a row is not found" >&2; exit 1; }

# Answers that are no error number, and the functions that allow NULL, have no row.
sed -n 's/^function int \(tw_[a-z_]*\)(\(const \)\{0,1\}\(tw_[a-z_]*\) \(\*const \)\{0,1\}\*\([a-z]*\).*/\1 \5/p' \
	test/abi.golden |
	grep -vE '_destroy |tw_clock_| $' | while read -r function name; do
	grep -qx "$function: $name is NULL" "$work/rows" || echo "$function: $name is NULL"
done >"$work/found"
[ ! -s "$work/found" ] || fail "these calls with NULL have no row in test/unit/misuse"
echo "misuse: ok ($(wc -l <"$work/texts") texts, $(cat test/unit/misuse/*.c | grep -cE '(ROW|TOLD)\(') rows)"
