# Reads the public headers, in order, into these arrays, for pages.awk:
#
#   entry[1 .. entries]        names: functions, structs, enums and function types
#   kind[name]                 "function", "struct", "enum" or "type"; of a name that is a function and a struct:
#                              "function"
#   header_of[name], part_of[name]
#   comment_of[name]           the text above the declaration
#   declaration_of[name]       the prototype, or the declaration in full
#   struct_of[name], struct_comment_of[name]   of a name that is both
#   opening[header], constants[header], headers[1 .. header_count]

function function_name(d,    s) {
	s = d
	sub(/\(.*/, "", s)
	sub(/^.*[ *\n]/, "", s)
	return s
}

function declare(name, k, text) {
	if (name in kind) {
		if (k == "function") { # a struct or an enum has the name already
			struct_of[name] = declaration_of[name]
			struct_comment_of[name] = comment_of[name]
			kind[name] = k
			comment_of[name] = comment
			declaration_of[name] = text
		} else {
			struct_of[name] = text
			struct_comment_of[name] = comment
		}
		return
	}
	entry[++entries] = name
	kind[name] = k
	header_of[name] = header
	part_of[name] = part
	comment_of[name] = comment
	declaration_of[name] = text
}

function declared(text,    name) {
	if (text ~ /^TW_API /) {
		sub(/^TW_API /, "", text)
		declare(function_name(text), "function", text)
	} else if (text ~ /^(typedef )?struct [a-z_]+ \{/ || text ~ /^enum [a-z_]+ \{/) {
		name = text
		sub(/^typedef /, "", name)
		sub(/^(struct|enum) /, "", name)
		sub(/ .*/, "", name)
		declare(name, text ~ /^enum/ ? "enum" : "struct", text)
	} else if (text ~ /^typedef .*\(/) {
		name = text
		sub(/^typedef /, "", name)
		declare(function_name(name), "type", text)
	} else if (text ~ /^#define|^enum/) {
		constants[header] = constants[header] "\n" (comment == "" ? "" : "/* " comment " */\n") text
	}
}

FNR == 1 {
	header = FILENAME
	sub(/^.*\//, "", header)
	sub(/\.h$/, "", header)
	headers[++header_count] = header
	part = comment = ""
	in_comment = in_declaration = in_define = 0
}

/^\/\* -----*/ {
	part = bare($0)
	sub(/^-+ */, "", part)
	comment = ""
	next
}

in_comment || (!in_declaration && /^\/\*/) {
	if (!in_comment)
		comment = ""
	line_text = bare($0)
	if (line_text != "" || (in_comment && $0 !~ /\*\//))
		comment = comment (comment == "" ? "" : "\n") line_text
	in_comment = $0 !~ /\*\//
	if (!in_comment && !(header in opening)) {
		opening[header] = comment
		comment = ""
	}
	next
}

in_define || /^#define TW_[A-Z_]*[ (]/ {
	declaration = in_define ? declaration "\n" $0 : $0
	in_define = $0 ~ /\\$/
	if (!in_define && declaration !~ /_API/)
		declared(declaration)
	next
}

/^#/ || /^extern "C"/ || (!in_declaration && /^}/) { next }
!in_declaration && /^[ \t]*$/ { comment = ""; next }

{
	declaration = in_declaration ? declaration "\n" $0 : $0
	code = $0
	gsub(/\/\*[^*]*\*\//, "", code)
	# Words in a comment of several lines have no brackets that matter: structs close with a line of their own.
	if (!in_declaration)
		is_struct = code ~ /\{[ \t]*$/
	in_declaration = is_struct ? $0 !~ /^}/ : code !~ /;[ \t]*$/
	if (!in_declaration)
		declared(declaration)
}
