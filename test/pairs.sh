#!/bin/sh
# pairs.sh: the pairing tables of the lock-free files against the sites that cite them.
#
# An entry is a line "LABEL  text" (P1, R3 ..) in a comment under "Pairing table"; elsewhere it is an invariant, which may be cited too. A
# site is a comment that names labels. Which table it means: the file that it names ("gate.h, P6", "gate's P2"), else its own
# file's, else that of the header or source of the same name, else any in its folder, else any.
#
# Refused: a label that is cited and stands nowhere; a file named that has no such label; an entry that fewer than two sites cite, since
# a pair has two sides, unless it says why: "(one site: WHY)". G1 .. G13 are guarantees, and no pairs.
set -eu
cd "$(dirname "$0")/.."

# shellcheck disable=SC2046 # a list of files
LC_ALL=C awk '
	function stem(file) { sub(/\.[ch]$/, "", file); return file }
	function room(file) { sub(/\/.*/, "", file); return file }
	function name(file) { sub(/.*\//, "", file); return stem(file) }
	function is_label(label) { return label !~ /^G[0-9]/ && label != "C11" && label != "C17" }

	FNR == 1 { table = 0; comment = 0 }
	/\/\*/ { comment = 1; table = 0 }
	/airing table/ { table = 1 }
	comment && match($0, /^ \*   [A-Z][0-9]+  /) {
		at = FILENAME " " $2
		if (at in where) { print FILENAME ":" FNR ": " $2 " stands there twice"; bad = 1 }
		where[at] = FNR; entries += table
		is_pair[at] = table; last = at; files_of[$2] = files_of[$2] " " FILENAME
	}
	comment && /\(one site: / { excused[last] = 1 }
	comment && !table && !match($0, /^ \*   [A-Z][0-9]+  /) || (comment && /\*\//) || /[^ \t*].*\/\*/ { lines[++n] = FILENAME " " FNR " " $0 }
	/\*\// { comment = 0; table = 0 }

	# The files whose label is meant, as a list.
	function meant(file, qualifier, label,    list, i, k, out) {
		k = split(files_of[label], list, " ")
		if (qualifier != "") {
			for (i = 1; i <= k; i++) if (name(list[i]) == qualifier) return list[i]
			return ""
		}
		if ((file " " label) in where) return file
		for (i = 1; i <= k; i++) if (stem(list[i]) == stem(file)) return list[i]
		out = ""
		for (i = 1; i <= k; i++) if (room(list[i]) == room(file)) out = out " " list[i]
		return out != "" ? out : files_of[label]
	}

	function cite(file, line, qualifier, label,    found, list, i, k) {
		found = meant(file, qualifier, label)
		if (found == "") {
			print file ":" line ": cites " (qualifier != "" ? qualifier "\047s " : "") label ", which stands in no table"
			bad = 1
		}
		k = split(found, list, " ")
		for (i = 1; i <= k; i++) sites[list[i] " " label]++
		cited++
	}

	END {
		for (i = 1; i <= n; i++) {
			split(lines[i], part, " ")
			text = substr(lines[i], length(part[1]) + length(part[2]) + 3)
			qualifier = ""
			while (match(text, /([a-z_]+(\.[ch]|\047s),? (by )?)?[A-Z][0-9]+/)) {
				token = substr(text, RSTART, RLENGTH)
				before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
				text = substr(text, RSTART + RLENGTH)
				after = substr(text, 1, 1)
				label = token; sub(/.*[^A-Z0-9]/, "", label)
				if (token != label) { qualifier = token; sub(/(\.[ch]|\047s).*/, "", qualifier) }
				else if (!joined) qualifier = ""
				if (before !~ /[A-Za-z0-9_]/ && after !~ /[A-Za-z0-9_]/ && is_label(label))
					cite(part[1], part[2], qualifier, label)
				joined = text ~ /^(,| and) [A-Z][0-9]/
			}
		}
		for (at in is_pair) {
			if (!is_pair[at] || sites[at] >= 2 || at in excused) continue
			split(at, part, " ")
			print part[1] ":" where[at] ": " part[2] " is cited at " sites[at] + 0 " sites; a pair has two sides"
			bad = 1
		}
		if (!bad) print "pairs: ok (" entries " entries, cited " cited " times)"
		exit bad
	}
' $(find mpsc wheel executor -name '*.[ch]' | sort)
