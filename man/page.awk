# Pages of one header. -v dir=, version=, base= (the header's name). Reads comments and declarations in turn: a comment that stands before
# a declaration without an empty line is its text; a title line ("/* ---- cancel */") begins another page.

function begin_page(title) {
	body = names = synopsis = first = ""
	page_title = title
}

function add_text() {
	if (comment != "")
		body = body ".PP\n" roff(comment)
	comment = ""
}

function first_sentence(text,    s) {
	s = text
	gsub(/\n/, " ", s)
	sub(/^[^:]*: /, "", s)
	sub(/[.:;] .*$/, "", s)
	sub(/[.:]$/, "", s)
	return s
}

function write_page(    name, file, i, n, list) {
	if (body == "")
		return
	name = first != "" ? first : "tickwheel_" base
	file = dir "/" name ".3"
	if (names == "")
		names = name
	printf ".\\\" made from include/tickwheel/%s.h\n.TH %s 3 \"\" \"tickwheel %s\" \"tickwheel\"\n", base, toupper(name), version >file
	printf ".SH NAME\n%s \\- %s\n", names, escaped(page_title != "" ? "tickwheel, " base ": " page_title : summary) >file
	printf ".SH SYNOPSIS\n.nf\n.B #include <tickwheel.h>\n%s.fi\n", synopsis >file
	if (page_title == "")
		body = roff(opening) body
	sub(/^\.PP\n/, "", body)
	printf ".SH DESCRIPTION\n%s", body >file
	printf ".SH SEE ALSO\n.BR tickwheel (7)\n" >file
	close(file)
	n = split(names, list, ", ")
	for (i = 2; i <= n; i++) {
		file = dir "/" list[i] ".3"
		printf ".so man3/%s.3\n.\\\" tickwheel %s\n", name, version >file
		close(file)
	}
}

function function_name(d,    s) {
	s = d
	sub(/\(.*/, "", s)
	sub(/^.*[ *\n]/, "", s)
	return s
}

function add_declaration(d,    shown, n, lines, i, prototype, name) {
	shown = d
	sub(/^TW_API /, "", shown)
	n = split(shown, lines, "\n")
	prototype = ""
	for (i = 1; i <= n; i++)
		prototype = prototype ".B \"" quoted(literal(lines[i])) "\"\n"
	if (d ~ /^TW_API /) {
		name = function_name(d)
		if (first == "")
			first = name
		names = names == "" ? name : names ", " name
		synopsis = synopsis ".PP\n" prototype
	}
	waiting = waiting (waiting == "" ? ".PP\n.nf\n" : "") prototype
}

function quoted(s) {
	gsub(/"/, "\\(dq", s)
	return s
}

# Declarations stand above the comment that they share.
function end_chunk() {
	if (waiting != "")
		body = body waiting ".fi\n"
	waiting = ""
	add_text()
}

BEGIN { begin_page("") }

/^\/\* -----*/ {
	end_chunk()
	parts++
	write_page()
	title = bare($0)
	sub(/^-+ */, "", title)
	begin_page(title)
	next
}

in_comment || (!in_declaration && /^\/\*/) {
	if (!in_comment) {
		end_chunk()
		comment_text = ""
	}
	text = bare($0)
	if (!(text == "" && (!in_comment || $0 ~ /\*\//)))
		comment_text = comment_text (comment_text == "" ? "" : "\n") text
	in_comment = $0 !~ /\*\//
	if (!in_comment) {
		if (opening == "") {
			opening = comment_text
			summary = first_sentence(opening)
		} else {
			comment = comment_text
		}
	}
	next
}

in_define || /^#define TW_[A-Z_]*[ (]/ {
	if (!in_define)
		declaration = $0
	else
		declaration = declaration "\n" $0
	in_define = $0 ~ /\\$/
	if (!in_define && declaration !~ /_H$/ && declaration !~ /TW_API/)
		add_declaration(declaration)
	next
}

/^#/ || /^extern "C"/ || (!in_declaration && /^}/) { next }

!in_declaration && /^[ \t]*$/ { end_chunk(); next }

{
	declaration = in_declaration ? declaration "\n" $0 : $0
	code = $0
	gsub(/\/\*[^*]*\*\//, "", code)
	# Words in a comment of several lines have no brackets that matter: structs close with a line of their own.
	if (!in_declaration)
		is_struct = code ~ /\{[ \t]*$/
	in_declaration = is_struct ? $0 !~ /^}/ : code !~ /;[ \t]*$/
	if (!in_declaration)
		add_declaration(declaration)
}

END {
	end_chunk()
	write_page()
}
