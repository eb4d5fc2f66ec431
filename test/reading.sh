#!/bin/sh
# reading.sh PAGE...: the Flesch reading ease of each page's prose is at least 50 ("fairly difficult"
# ends there; plain English has 60 to 70). Prose is what is left without code, tables, headings, links'
# targets and comments. With -v it prints each page's worst sentences. Knob: EASE.
#
# ease = 206.835 - 1.015 * words per sentence - 84.6 * syllables per word
# Syllables are counted by groups of vowels, without a silent e at the end.
set -eu
cd "$(dirname "$0")/.."

verbose=0
[ "${1:-}" != -v ] || { verbose=1; shift; }
[ $# -gt 0 ] || { echo "usage: reading.sh [-v] PAGE..." >&2; exit 2; }
bad=0
for page; do
	awk -v page="$page" -v least="${EASE:-50}" -v verbose="$verbose" '
		function syllables(word, n, rest) {
			word = tolower(word)
			gsub(/[^a-z]/, "", word)
			if (word == "")
				return 1
			rest = word
			if (length(word) > 3 && rest !~ /[aeiouy]le$/)
				sub(/([^aeiouylt]e[sd]|[^laeiouy]e)$/, "", rest)
			n = gsub(/[aeiouy]+/, "x", rest)
			return n > 0 ? n : 1
		}
		function sentence(text, n, i, words, s) {
			gsub(/^[ ]+|[ ]+$/, "", text)
			if (text !~ /[A-Za-z]/)
				return
			n = split(text, words, /[ ]+/)
			for (i = 1; i <= n; i++)
				s += syllables(words[i])
			total_words += n
			total_syllables += s
			sentences++
			if (n > longest)
				longest = n
			if (verbose && n > 25)
				printf "%s: %d words: %s\n", page, n, text
		}
		function paragraph(n, i, parts) {
			gsub(/\]\([^)]*\)/, "", text)
			gsub(/[][*>_]/, "", text)
			gsub(/`[^`]*`/, "token", text) # code in a line counts as one word of two syllables
			gsub(/(e\.g|i\.e)\./, "eg", text)
			n = split(text, parts, /[.!?:;]+( |$)/)
			for (i = 1; i <= n; i++)
				sentence(parts[i])
			text = ""
		}
		/^```/ { paragraph(); code = !code; next }
		code || /^(    |\t)/ || /^(\||#|<!--|!\[)/ { paragraph(); next }
		/^[ ]*$/ { paragraph(); next }
		/^ *([-*]|[0-9]+\.) / { paragraph(); sub(/^ *([-*]|[0-9]+\.) /, "") }
		{ sub(/^ +/, ""); text = text " " $0 }
		END {
			paragraph()
			if (sentences == 0) {
				print "reading: " page " has no prose" > "/dev/stderr"
				exit 1
			}
			ease = 206.835 - 1.015 * total_words / sentences - 84.6 * total_syllables / total_words
			printf "reading: %s: ease %.0f, %d words, %.1f a sentence (longest %d)\n", page, ease,
			       total_words, total_words / sentences, longest
			exit ease < least
		}
	' "$page" || { echo "reading: $page is below ${EASE:-50}" >&2; bad=1; }
done
exit $bad
