# Lines beyond 100 columns: FILE:LINE: COLUMNS. In C files those with a comment on them, in Markdown all but tables,
# pictures and lines that are one long link.

function columns(s,    n, i, c) {
	gsub(/[\200-\277]/, "", s) # the second and later bytes of a character
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		n += c == "\t" ? 8 - n % 8 : 1
	}
	return n
}

FNR == 1 { in_comment = 0; is_page = FILENAME ~ /\.md$/ }

{
	relevant = is_page ? $0 !~ /^[ \t]*(\||<|!\[|\[[^]]*\]:)/ : in_comment
	if (!is_page) {
		code = $0
		gsub(/"([^"\\]|\\.)*"/, "", code)
		if (code ~ /\/\*|^[ \t]*\/\/|[; \t{}]\/\/ /)
			relevant = 1
		if (in_comment ? code ~ /\*\// : code ~ /\/\*/)
			in_comment = code !~ /\*\/[^*]*$/
	}
	if (relevant && length($0) > 60) {
		width = columns($0)
		if (width > 100)
			print FILENAME ":" FNR ": " width " columns"
	}
}
