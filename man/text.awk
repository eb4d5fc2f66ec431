# Text of headers as roff.

function escaped(s) {
	s = paged(s)
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/"/, "\\(dq", s)
	if (s ~ /^[.']/)
		s = "\\&" s
	return s
}

# Pages in place of headers: "timer.h" is tickwheel_timer(7). Not in an #include.
function paged(s,    out, name) {
	while (match(s, /[a-z_\/<"]*[.]h/)) {
		name = substr(s, RSTART, RLENGTH - 2)
		out = out substr(s, 1, RSTART - 1)
		if (name ~ /^[a-z]+$/ && substr(s, RSTART + RLENGTH, 1) !~ /[a-z]/)
			out = out (name == "tickwheel" ? name : "tickwheel_" name) "(7)"
		else
			out = out name ".h"
		s = substr(s, RSTART + RLENGTH)
	}
	return out s
}

# Declarations, tables and code: tabs are what the headers have them for.
function literal(s,    out, i, c, column) {
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		if (c != "\t") {
			out = out c
			column++
			continue
		}
		do {
			out = out " "
			column++
		} while (column % 8)
	}
	return escaped(out)
}

# What a comment's line says, without its frame.
function bare(s) {
	sub(/^[ \t]*\/\*[ ]?/, "", s)
	sub(/[ \t]*\*\/[ \t]*$/, "", s)
	sub(/^[ \t]*\*[ ]?/, "", s)
	sub(/[ \t]+$/, "", s)
	return s
}

# text: bare lines, joined by "\n". Lines that are indented stand as they are, but for items of lists; others are
# filled.
function roff(text,    lines, n, i, state, out, empty, stripped) {
	n = split(text, lines, "\n")
	state = "none"
	for (i = 1; i <= n; i++) {
		stripped = lines[i]
		sub(/^[ \t]+/, "", stripped)
		if (stripped == "") {
			empty = 1
			continue
		}
		if (lines[i] ~ /^ +- /) {
			out = out close_of(state, "item") ".IP \\(bu 2\n" escaped(substr(stripped, 3)) "\n"
			state = "item"
		} else if (state == "item" && !empty && lines[i] ~ /^[ \t][ \t]/) {
			out = out escaped(stripped) "\n"
		} else if (lines[i] ~ /^[ \t][ \t]/) {
			if (state != "verbatim")
				out = out close_of(state, "verbatim") ".PP\n.nf\n"
			else if (empty)
				out = out "\n"
			out = out literal(lines[i]) "\n"
			state = "verbatim"
		} else {
			if (state == "verbatim" || state == "item" || empty || out == "")
				out = out close_of(state, "filled") ".PP\n"
			out = out escaped(stripped) "\n"
			state = "filled"
		}
		empty = 0
	}
	return out close_of(state, "none")
}

function close_of(state, next_state) {
	return state == "verbatim" && next_state != "verbatim" ? ".fi\n" : ""
}

# Lines of code.
function code_roff(text,    lines, n, i, out) {
	n = split(text, lines, "\n")
	out = ".nf\n"
	for (i = 1; i <= n; i++)
		out = out literal(lines[i]) "\n"
	return out ".fi\n"
}
