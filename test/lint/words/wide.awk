# Lines that are too wide: FILE:LINE: COLUMNS. Scripts have 120 columns, all else 100. In C files only lines with a
# comment count, in Markdown all but tables, pictures and lines that are one long link, in models and scripts all.

function columns(s,    n, i, c) {
	gsub(/[\200-\277]/, "", s) # the second and later bytes of a character
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		n += c == "\t" ? 8 - n % 8 : 1
	}
	return n
}

FNR == 1 {
	in_comment = 0
	is_page = FILENAME ~ /\.md$/
	is_script = FILENAME ~ /\.(sh|py|awk|mk)$|(^|\/)(Makefile|\.ci\/[a-z]*)$/
	is_whole = is_script || FILENAME ~ /\.(pml|inc)$/
	most = is_script ? 120 : 100
}

{
	relevant = is_page ? $0 !~ /^[ \t]*(\||<|!\[|\[[^]]*\]:)/ : in_comment
	if (is_whole) {
		relevant = 1
	} else if (!is_page) {
		code = $0
		gsub(/"([^"\\]|\\.)*"/, "", code)
		if (code ~ /\/\*|^[ \t]*\/\/|[; \t{}]\/\/ /)
			relevant = 1
		if (in_comment ? code ~ /\*\// : code ~ /\/\*/)
			in_comment = code !~ /\*\/[^*]*$/
	}
	if (relevant && length($0) > 60) {
		width = columns($0)
		if (width > most)
			print FILENAME ":" FNR ": " width " columns"
	}
}
