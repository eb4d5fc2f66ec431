# A header's comment as roff: lines that are indented stand as they are, others are filled.

function escaped(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	if (s ~ /^[.']/)
		s = "\\&" s
	return s
}

# Declarations and indented lines: tabs are what the headers have them for.
function literal(s) {
	gsub(/\t/, "        ", s)
	return escaped(s)
}

# What a comment's line says, without its frame.
function bare(s) {
	sub(/^[ \t]*\/\*[ ]?/, "", s)
	sub(/[ \t]*\*\/[ \t]*$/, "", s)
	sub(/^[ \t]*\*[ ]?/, "", s)
	sub(/[ \t]+$/, "", s)
	return s
}

# Results and errors begin a line of their own.
function begins_result(s) {
	return s ~ /^(0[.;:]|-E[A-Z0-9]+[ ,:]|-E[A-Z0-9]+ also|TW_[A-Z_]+( \(0\))?:|Not negative:)/
}

# text: a comment's bare lines, joined by "\n".
function roff(text,    lines, n, i, verbatim, out, empty) {
	n = split(text, lines, "\n")
	for (i = 1; i <= n; i++) {
		if (lines[i] == "") {
			empty = 1
			continue
		}
		if (lines[i] ~ /^[ \t][ \t]/) {
			if (!verbatim)
				out = out ".PP\n.nf\n"
			else if (empty)
				out = out "\n"
			verbatim = 1
			out = out literal(lines[i]) "\n"
		} else {
			if (verbatim)
				out = out ".fi\n"
			if (verbatim || empty)
				out = out ".PP\n"
			else if (out != "" && begins_result(lines[i]))
				out = out ".br\n"
			verbatim = 0
			out = out escaped(lines[i]) "\n"
		}
		empty = 0
	}
	return verbatim ? out ".fi\n" : out
}
