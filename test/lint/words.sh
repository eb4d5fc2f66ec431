#!/bin/sh
# words.sh: how the project is written. Refuses
#
#   - lines with a comment, and lines of pages and models, beyond 100 columns; lines of scripts beyond 120
#   - the patterns of test/lint/words/banned, in comments and pages
#   - in public headers: a sentence above 30 words, and more than 14000 words in all
# Knob: SHOWN, how many findings of a kind are shown (40).
. "$(dirname "$0")/../support/script.sh"
failed=0

report() {
	[ ! -s "$work/found" ] && return
	echo "words: $1" >&2
	sed 's/^/  /' "$work/found" | head -n "${SHOWN:-40}" >&2
	[ "$(wc -l <"$work/found")" -le "${SHOWN:-40}" ] || echo "  ... $(wc -l <"$work/found") in all" >&2
	failed=1
}

# Files on standard input; prints FILE:LINE: COLUMNS.
wide() { xargs awk -f test/lint/words/wide.awk; }

# Sentences on standard input; prints those that a banned pattern matches, with what to write.
banned() {
	awk -F '\t' 'NR == FNR { if ($0 !~ /^#/) { pattern[++n] = $1; write[n] = $2 } next }
		{ for (i = 1; i <= n; i++) if ($3 ~ pattern[i]) { print $1 ": " $3; print "    write: " write[i] } }' \
			test/lint/words/banned -
}

# Sentences on standard input; prints those of more than 30 words.
long() {
	awk -F '\t' '$2 != "code" { count = 0; n = split($3, word, " ");
		for (i = 1; i <= n; i++) count += word[i] ~ /[A-Za-z0-9]/
		if (count > 30) print $1 ": " count " words: " $3 }'
}

# Sentences on standard input; prints the number of words, if it is above $1.
words_above() {
	awk -F '\t' -v most="$1" '{ n = split($3, word, /[ \/]+/) }
		{ for (i = 1; i <= n; i++) all += word[i] ~ /[A-Za-z0-9]/ }
		END { if (all > most) print all " words in all" }'
}

comments() { xargs awk -f test/lint/words/comments.awk; }
prose() { xargs awk -v code_as=it -f test/lint/words/markdown.awk; }

headers() { git ls-files 'include/*.h'; }
pages() { git ls-files '*.md' | grep -v '^test/peers/'; }
sources() { git ls-files '*.c' '*.h' '*.cpp' '*.hpp'; }
scripts() { git ls-files '*.sh' 'man/text/*.txt' '*.py' '*.awk' '*.mk' Makefile '*/Makefile' .ci '*.pml' '*.inc'; }

# ---- each check finds what is planted

plant="$work/plant"
mkdir "$plant"
cat >"$plant/bad.c" <<'END'
/* The list is told of it. */
int narrow; /* one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen */
/*
 * One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
 * seventeen eighteen nineteen twenty one two three four five six seven eight nine ten eleven.
 */
END
cat >"$plant/good.c" <<'END'
/* The list is notified. */
static const char text[] = "the text is told of at once, and it is beyond one hundred columns, but it is no comment";
END
finds() { [ -s "$work/found" ] || fail "the check of $1 does not find what is planted"; }
spares() { [ ! -s "$work/found" ] || fail "the check of $1 refuses what is right"; }
for check in wide banned long; do
	for file in bad good; do
		case $check in
		wide) echo "$plant/$file.c" | $check >"$work/found" ;;
		*) echo "$plant/$file.c" | comments | $check >"$work/found" ;;
		esac
		case $file in bad) finds $check ;; good) spares $check ;; esac
	done
done
printf 'echo %0116d\n' 0 >"$plant/bad.sh"
printf 'echo %0115d\n' 0 >"$plant/good.sh"
printf 'skip; /* %089d */\n' 0 >"$plant/bad.pml"
printf 'skip; /* %088d */\n' 0 >"$plant/good.pml"
for file in sh pml; do
	echo "$plant/bad.$file" | wide >"$work/found"
	finds "wide $file"
	echo "$plant/good.$file" | wide >"$work/found"
	spares "wide $file"
done
echo "$plant/bad.c" | comments | words_above 40 >"$work/found"
finds "the number of words"
echo "$plant/bad.c" | comments | words_above 60 >"$work/found"
spares "the number of words"

# ---- the checks

sources | wide >"$work/found"
pages | wide >>"$work/found"
scripts | wide >>"$work/found"
report "comments, pages and models have at most 100 columns, scripts 120"
{ sources | comments; pages | prose; } | banned >"$work/found"
report "these patterns are banned (test/lint/words/banned)"
headers | comments >"$work/headers"
long <"$work/headers" >"$work/found"
report "sentences of headers have at most 30 words"
words_above 14000 <"$work/headers" >"$work/found"
report "headers have at most 14000 words in all"

[ "$failed" -eq 0 ] || exit 1
echo "words: ok ($(headers | wc -l) headers, $(pages | wc -l) pages)"
