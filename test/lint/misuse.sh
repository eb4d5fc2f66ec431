#!/bin/sh
# misuse.sh: each refusal of bad input has a text for the misuse hook, and each text has a row in test/unit/misuse.
#
#   - an -EINVAL, -E2BIG or -ERANGE in the library is in a call of tw__invalid, tw__refuse, tw__bad or tw__bad_member,
#     or its line says who tells ("told", "tells")
#   - a text matches a text that a row expects, or a test that looks at the texts; "%" matches anything
#   - a parameter and a member that a check names has a row, or a test that looks at the texts
#   - each public function whose first parameter is an object answers NULL with a text: it has a row
. "$(dirname "$0")/../support/script.sh"

# Not process.c, whose text is of a refusal by the system (test/unit/service/locked_memory.c).
find mpsc wheel executor -name "*.c" ! -path mpsc/base/process.c ! -path mpsc/base/misuse.c \
	! -path mpsc/base/strerror.c \
	! -path mpsc/base/entry.c | sort >"$work/files"

# FILE:LINE:TEXT of refusals without a text. A call may break the line behind its parenthesis, and the comment that says
# who tells may stand above.
silent() {
	awk '
		FNR == 1 { above = "" }
		/-(EINVAL|E2BIG|ERANGE)/ && !/tw__(invalid|refuse|bad|bad_member)\(/ &&
		!/(==|!=) -(EINVAL|E2BIG|ERANGE)/ &&
		!/\/\*.*(told|tells)/ && !/^ \*/ && !/^[ \t]*\/\*/ &&
		above !~ /tw__(invalid|refuse|bad|bad_member)\($/ &&
		above !~ /\/\*.*(told|tells)/ { print FILENAME ":" FNR ":" $0 }
		{ above = $0 }' "$@"
}
# shellcheck disable=SC2046
silent $(cat "$work/files") >"$work/found"
[ ! -s "$work/found" ] || fail "bad input is refused without a text"
printf '\treturn -EINVAL;\n' >"$work/planted.c"
[ -n "$(silent "$work/planted.c" /dev/null)" ] || fail "a refusal without a text is not found"

# The statements of C files that have a call of one of these functions, one a line.
statements() { # PATTERN FILE...
	pattern=$1
	shift
	cat "$@" | awk -v pattern="$pattern" '
		{ gsub(/PRI[udx]64/, "\"u\""); sub(/[ \t]*\/\*.*\*\//, "") }
		$0 ~ pattern "\\(" { statement = ""; in_call = 1 }
		in_call {
			statement = statement $0
			if ($0 !~ /;[ \t\\]*$/)
				next
			in_call = 0
			gsub(/"[ \t]*"/, "", statement)
			print statement
		}'
}

# The texts of C files, one a line, in which "*" stands for what printf puts in.
texts() {
	statements "tw__(invalid|refuse)" "$@" | awk '
		{
			sub(/^.*tw__(invalid|refuse)\(/, "")
			while (match($0, /"[^"]*"/)) {
				text = substr($0, RSTART + 1, RLENGTH - 2)
				$0 = substr($0, RSTART + RLENGTH)
				if (text ~ / /)
					print text
			}
		}' | sed 's/%[#0-9]*[zl]*[a-z]/*/g' | sort -u
}

# What checks name: ": PARAMETER" of tw__bad, TYPE.MEMBER of tw__need and the tw__bad_member that follows.
names() {
	statements "tw__(need|bad|bad_member)" "$@" | awk '
		{
			is_need = /tw__need\(/
			is_member = /tw__bad_member\(/
			type = last = ""
			text = $0
			if (!is_need && !is_member)
				gsub(/^.*tw__bad\(|\).*/, "", text)
			for (; match(text, /"[^"]*"/); text = substr(text, RSTART + RLENGTH)) {
				last = substr(text, RSTART + 1, RLENGTH - 2)
				if (last ~ /^tw_/)
					type = last
				else if (!is_need && !is_member && last !~ /[.]/)
					print ": " last
			}
			if (is_need)
				names[++n] = last
			else if (is_member && last != type)
				print type "." last
			else if (is_member)
				while (n > 0)
					print type "." names[n--]
		}' | sort -u
}
# shellcheck disable=SC2046
texts $(cat "$work/files") >"$work/texts"
# shellcheck disable=SC2046
names $(cat "$work/files") >"$work/names"
[ "$(wc -l <"$work/texts")" -gt 10 ] || { cp "$work/texts" "$work/found"; fail "few texts are found"; }
[ "$(grep -c '^tw_.*[.]' "$work/names")" -gt 60 ] || { cp "$work/names" "$work/found"; fail "few members are found"; }
[ "$(grep -c '^: ' "$work/names")" -gt 10 ] || { cp "$work/names" "$work/found"; fail "few parameters are found"; }

# What rows expect, and the other tests that set a hook.
# shellcheck disable=SC2046
cat test/unit/misuse/*.c $(grep -rlE "tw_set_misuse_hook|misuse_text[.]h|limiter_script[.]h" test/unit) | tr '\n' ' ' |
	sed 's/"[[:space:]]*\([A-Z_]*\)[[:space:]]*"/\1/g' | grep -oE '"[^"]*"' | tr -d '"' |
	sort -u >"$work/rows"
cat test/unit/misuse/*.c | tr '\n' ' ' | grep -oE 'NULL_ROW\([a-z_]+,[[:space:]]*"[a-z_]+"' |
	sed 's/.*(\([a-z_]*\),[^"]*"\([a-z_]*\)"/\1: \2 is NULL/' >>"$work/rows"
cat test/unit/misuse/*.c | tr '\n' ' ' | grep -oE 'BAD_ROW\([-A-Z]+, [a-z_]+,[[:space:]]*"[a-z_.]+"' |
	sed 's/.*, \([a-z_]*\),[^"]*"\([a-z_.]*\)"/\1: \2 has a value that/' >>"$work/rows"
unmatched() {
	awk 'NR == FNR { rows[++n] = $0; next }
		{
			pattern = $0
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
	fail "a text without a row is not found"
nameless() {
	while read -r name; do
		grep -qE "$(echo "$name" | sed 's/[.]/[.]/g')( has a value that|\$)" "$work/rows" || echo "$name"
	done
}
nameless <"$work/names" >"$work/found"
[ ! -s "$work/found" ] || fail "these parameters and members have no row in test/unit/misuse"
[ -n "$(echo "tw_pool_config.no_member" | nameless)" ] ||
	fail "a member without a row is not found"

# Answers that are no error number, and the functions that allow NULL, have no row.
sed -n 's/^function int \(tw_[a-z_]*\)(\(const \)\{0,1\}\(tw_[a-z_]*\) \(\*const \)\{0,1\}\*\([a-z]*\).*/\1 \5/p' \
	test/package/abi.golden |
	grep -vE '_destroy |tw_clock_| $' | while read -r function name; do
	grep -qx "$function: $name is NULL" "$work/rows" || echo "$function: $name is NULL"
done >"$work/found"
[ ! -s "$work/found" ] || fail "these calls with NULL have no row in test/unit/misuse"
rows=$(cat test/unit/misuse/*.c | grep -cE '(ROW|TOLD)\(')
echo "misuse: ok ($(wc -l <"$work/texts") texts, $(wc -l <"$work/names") names, $rows rows)"
