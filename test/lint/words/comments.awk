# The comments of C files as sentences, one a line: FILE:LINE <tab> KIND <tab> SENTENCE. KIND is
#
#   prose   a paragraph or a "- " item of a comment that begins a line
#   item    an entry of a Returns list, or a comment beside code or inside a struct
#   code    a line of a table or of sample code, whole

function emit(kind, text,    n, i, part) {
	gsub(/[ \t]+/, " ", text)
	sub(/^ /, "", text)
	sub(/ $/, "", text)
	if (text == "" || text ~ /^-+/)
		return
	if (kind == "code") {
		print FILENAME ":" at "\t" kind "\t" text
		return
	}
	gsub(kind == "item" ? "[.!?;:][)\"]? " : "[.!?][)\"]? ", "&\001", text)
	n = split(text, part, / \001/)
	for (i = 1; i <= n; i++)
		print FILENAME ":" at "\t" kind "\t" part[i]
}

function flush_paragraph() {
	emit(kind, paragraph)
	paragraph = ""
}

function begin_paragraph(k, text) {
	flush_paragraph()
	kind = k
	at = FNR
	paragraph = text
}

# One bare line of a comment, without its frame; its indentation counts.
function line(text,    stripped) {
	sub(/[ \t]+$/, "", text)
	stripped = text
	sub(/^[ \t]+/, "", stripped)
	if (stripped == "") {
		flush_paragraph()
		in_list = 0
		return
	}
	if (!outermost) { # beside code
		if (paragraph == "")
			begin_paragraph("item", stripped)
		else
			paragraph = paragraph " " stripped
		return
	}
	if (text ~ /^[ \t][ \t]/) {
		if (text ~ /^  +- /) {
			begin_paragraph("prose", substr(stripped, 3))
			is_bullet = 1
			return
		}
		if (is_bullet && text ~ /^    /) {
			paragraph = paragraph " " stripped
			return
		}
		if (in_list) {
			if (text ~ /^  [^ ]/) {
				sub(/^([^ ]|[^ ] )+  +/, "", stripped)
				begin_paragraph("item", stripped)
			} else {
				paragraph = paragraph " " stripped
			}
			return
		}
		begin_paragraph("code", stripped)
		flush_paragraph()
		return
	}
	is_bullet = 0
	if (text ~ /^(Threads|Blocks|Returns|Calls)(, (blocks|calls|returns))*:/)
		begin_paragraph("item", text)
	else if (paragraph == "" || kind == "code")
		begin_paragraph("prose", text)
	else
		paragraph = paragraph " " text
	in_list = text ~ /^Returns:/ || (in_list && paragraph != "")
}

function end_comment() {
	flush_paragraph()
	in_comment = in_list = is_bullet = 0
}

FNR == 1 { end_comment() }

{
	rest = $0
	sub(/\r$/, "", rest)
	if (!in_comment) {
		code = rest
		gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
		if (code ~ /^[ \t]*\/\// || code ~ /[; \t{}]\/\/ /) {
			text = code
			sub(/^.*\/\/+/, "", text)
			begin_paragraph("item", text)
			flush_paragraph()
			next
		}
		open = index(code, "/*")
		if (!open)
			next
		outermost = open == 1
		text = substr(code, open + 2)
		in_comment = 1
		close_at = index(text, "*/")
		if (close_at)
			text = substr(text, 1, close_at - 1)
		sub(/^\**[ ]?/, "", text)
		if (text !~ /^ *-----/)
			line(text)
		if (close_at)
			end_comment()
		next
	}
	close_at = index(rest, "*/")
	text = close_at ? substr(rest, 1, close_at - 1) : rest
	sub(/^[ \t]*\*[ ]?/, "", text)
	line(text)
	if (close_at)
		end_comment()
}

END { end_comment() }
