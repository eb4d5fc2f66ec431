#!/bin/sh
# words.sh [--figures]: how the project is written. Refuses
#
#   - lines with a comment, and lines of pages and models, beyond 100 columns; lines of scripts beyond 120
#   - the patterns of test/lint/words/banned, in comments and pages
#   - in public headers: a sentence above 30 words, a median above 15 in one header, more than 29700 words in all
#   - a public function without the one shape: a comment with "Threads:" and "Returns:"
#   - pages whose reading ease (Flesch) is below 50
#
# --figures prints the numbers of each file. Knob: SHOWN, how many findings of a kind are shown (40).
set -eu
cd "$(dirname "$0")/../.."

LC_ALL=C
export LC_ALL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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

# Headers on standard input; prints functions without the one shape.
shape() { xargs awk -f test/lint/words/shape.awk; }

# Figures (figures.awk) on standard input; prints files beyond the bounds. $1: median; $2: words in all; $3: reading
# ease.
beyond() {
	awk -F '\t' -v median="$1" -v words="$2" -v ease="$3" '
		$4 > median { print $1 ": the median sentence has " $4 " words" }
		$6 < ease { print $1 ": reading ease " $6 }
		{ all += $2 }
		END { if (all > words) print all " words in all" }'
}

figures() { awk -f test/lint/words/figures.awk; }
comments() { xargs awk -f test/lint/words/comments.awk; }
prose() { xargs awk -v code_as=it -f test/lint/words/markdown.awk; }

headers() { git ls-files 'include/*.h'; }
pages() { git ls-files '*.md' | grep -v '^test/peers/'; }
sources() { git ls-files '*.c' '*.h' '*.cpp' '*.hpp'; }
scripts() { git ls-files '*.sh' '*.py' '*.awk' '*.mk' Makefile '*/Makefile' .ci '*.pml' '*.inc'; }

# ---- each check finds what is planted

plant="$work/plant"
mkdir "$plant"
cat >"$plant/bad.c" <<'END'
/* The list is told of it. */
TW_API int tw_told(void);

int narrow; /* one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen */
/*
 * One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
 * seventeen eighteen nineteen twenty one two three four five six seven eight nine ten eleven.
 */
END
cat >"$plant/good.c" <<'END'
/*
 * The list is notified.
 *
 * Threads: any.
 * Returns: 0
 */
TW_API int tw_notified(void);

static const char text[] = "the text is told of at once, and it is beyond one hundred columns, but it is no comment";
END
cat >"$plant/bad.md" <<'END'
Incomprehensible terminology necessitates extraordinarily sophisticated interpretation, characteristically.
END
finds() { [ -s "$work/found" ] || { echo "words: the check of $1 does not find what is planted" >&2; exit 1; }; }
spares() { [ ! -s "$work/found" ] || { echo "words: the check of $1 refuses what is right" >&2; exit 1; }; }
for check in wide banned long shape; do
	for file in bad good; do
		case $check in
		wide | shape) echo "$plant/$file.c" | $check >"$work/found" ;;
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
echo "$plant/bad.md" | prose | figures | beyond 5 100 50 >"$work/found"
finds "reading ease, median"
[ "$(wc -l <"$work/found")" -eq 2 ] || finds "two things"
echo "$plant/bad.md" | prose | figures | beyond 100 100 -1000 >"$work/found"
spares "reading ease, median"
echo "$plant/bad.md" | prose | figures | beyond 100 2 -1000 >"$work/found"
finds "the number of words"

# ---- figures

headers | comments >"$work/headers"
pages | prose >"$work/pages"
if [ "${1:-}" = --figures ]; then
	{
		echo "file	words	sentences	median	longest	ease"
		figures <"$work/headers"
		figures <"$work/pages"
	} | awk -F '\t' '{ printf "%-36s %8s %10s %8s %8s %6s\n", $1, $2, $3, $4, $5, $6 }'
	echo "lines of comment beyond 100 columns, by folder:"
	sources | wide | sed 's|/[^/]*:.*||' | sort | uniq -c
	exit 0
fi

# ---- the checks

sources | wide >"$work/found"
pages | wide >>"$work/found"
scripts | wide >>"$work/found"
report "comments, pages and models have at most 100 columns, scripts 120"
{ sources | comments; pages | prose; } | banned >"$work/found"
report "these patterns are banned (test/lint/words/banned)"
long <"$work/headers" >"$work/found"
report "sentences of headers have at most 30 words"
headers | shape >"$work/found"
report "public functions have one shape"
{
	figures <"$work/headers" | beyond 15 29700 -1000
	figures <"$work/pages" | beyond 1000 1000000 50
} >"$work/found"
report "headers: median sentence at most 15 words, 29700 words in all; pages: reading ease 50"

[ "$failed" -eq 0 ] || exit 1
words=$(figures <"$work/headers" | awk '{ n += $2 } END { print n }')
echo "words: ok ($(headers | wc -l) headers with $words words," \
	"$(pages | wc -l) pages)"
