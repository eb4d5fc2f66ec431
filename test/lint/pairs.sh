#!/bin/sh
# pairs.sh: checks the pairing tables of the lock-free files against the sites that cite them.
#
# A label is a word in capitals with a number: GATE1, LANE2. It is defined once in the tree, by a line "LABEL  text" in
# a comment. Under "Pairing table" it is a pair; elsewhere it is an invariant, which may be cited too. A site is a
# comment that names the label.
#
# Refused: a label that is cited and not defined; a label defined twice; a pair that fewer than two sites cite, because
# a pair has two sides, unless its text says why: "(one site: WHY)". G1 to G13 are guarantees of tickwheel.h.
set -eu
cd "$(dirname "$0")/../.."

# shellcheck disable=SC2046 # a list of files
LC_ALL=C awk '
	FNR == 1 { table = 0; comment = 0 }
	/\/\*/ { comment = 1; table = 0 }
	/airing table/ { table = 1 }
	comment && match($0, /^ \*   [A-Z]+[0-9]+  /) {
		if ($2 in where) { print FILENAME ":" FNR ": " $2 " is defined a second time"; bad = 1 }
		where[$2] = FILENAME ":" FNR; entries += table; is_pair[$2] = table; last = $2
	}
	comment && /\(one site: / { excused[last] = 1 }
	comment && !table && !match($0, /^ \*   [A-Z]+[0-9]+  /) || (comment && /\*\//) || /[^ \t*].*\/\*/ {
		text = $0
		sub(/^[^*]*\/\*/, "", text)
		while (match(text, /[A-Z]+[0-9]+/)) {
			label = substr(text, RSTART, RLENGTH)
			before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
			text = substr(text, RSTART + RLENGTH)
			if (before !~ /[A-Za-z0-9_]/ && text !~ /^[A-Za-z0-9_]/ &&
				label !~ /^(G[0-9]+|C11|C17|UINT[0-9]+|INT[0-9]+)$/) {
				sites[label]++; cited++
				if (!(label in first)) first[label] = FILENAME ":" FNR
			}
		}
	}
	/\*\// { comment = 0; table = 0 }

	END {
		for (label in first)
			if (!(label in where)) {
				print first[label] ": cites " label ", which no table defines"
				bad = 1
			}
		for (label in is_pair) {
			if (!is_pair[label] || sites[label] >= 2 || label in excused) continue
			print where[label] ": " label " is cited at " sites[label] + 0 " sites; a pair has two sides"
			bad = 1
		}
		if (!bad) print "pairs: ok (" entries " pairs, cited " cited " times)"
		exit bad
	}
' $(find mpsc wheel executor -name '*.[ch]' | sort)
