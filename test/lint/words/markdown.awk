# The prose of Markdown pages, a sentence a line: FILE:LINE <tab> prose <tab> SENTENCE. Without code, tables, headings,
# link targets and HTML.

function flush_paragraph(    n, i, part) {
	gsub(/[.!?][)"]? /, "&\001", paragraph)
	n = split(paragraph, part, / \001/)
	for (i = 1; i <= n; i++)
		if (part[i] ~ /[A-Za-z]/)
			print FILENAME ":" at "\tprose\t" part[i]
	paragraph = ""
}

FNR == 1 { flush_paragraph(); fenced = 0 }
/^[ \t]*```/ { flush_paragraph(); fenced = !fenced; next }
fenced { next }
/^[ \t]*$/ || /^#/ || /^[ \t]*\|/ || /^    / || /^\t/ || /^[ \t]*</ || /^\[[^]]*\]:/ { flush_paragraph(); next }

{
	text = $0
	if (text ~ /^ *([-*]|[0-9]+\.) /) {
		flush_paragraph()
		sub(/^ *([-*]|[0-9]+\.) /, "", text)
	}
	sub(/^ *>? */, "", text)
	gsub(/`[^`]*`/, code_as, text)
	gsub(/!\[[^]]*\]\([^)]*\)/, "", text)
	while (match(text, /\]\([^)]*\)/))
		text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
	gsub(/\[|\*\*/, "", text)
	if (paragraph == "")
		at = FNR
	paragraph = paragraph == "" ? text : paragraph " " text
}

END { flush_paragraph() }
