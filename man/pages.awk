# Writes the pages, from model.awk's arrays. -v dir=, version=, examples= (a file of examples.awk), layers= (the headers
# that <tickwheel/layers.h> includes), texts= (a folder).
#
# texts/HEADER.txt goes on where the header's first comment ends; a line "+ WORDS" adds words to NAME; "= NAME" begins
# what goes on for the page of that function or type. texts/TOPIC.txt (-v topics=) is a page: its first line is what
# NAME says, "# SECTION" begins a section. @WHO@ and @FREE@ are tables of tickwheel.h and timer.h. "= ERROR" begins
# what errors.txt says of an error; the calls that return it follow.

# ---- the pages

function head(file, title, section, about, header) {
	printf ".\\\" made from include/tickwheel\n.TH %s %s \"\" \"tickwheel %s\" \"tickwheel\"\n", toupper(title),
		section,
		version >file
	printf ".SH NAME\n%s \\- %s\n", title, escaped(about) >file
	printf ".SH SYNOPSIS\n.nf\n.B #include <%s>\n",
		index(layers, " " header " ") ? "tickwheel/layers.h" : "tickwheel.h" >file
}

# more[HEADER], more[NAME]
function read_texts(h,    file, line, name) {
	file = texts "/" h ".txt"
	name = h
	while ((getline line < file) > 0) {
		if (line ~ /^= /) {
			name = substr(line, 3)
			if (!(name in kind))
				complain(file ": " name " is not declared")
		} else if (line ~ /^[+] /) {
			words[name] = "; " substr(line, 3)
		} else {
			more[name] = more[name] line "\n"
		}
	}
	close(file)
}

# The first sentence of a text, without the period, for NAME.
function first_sentence(text,    s) {
	s = text
	sub(/\n\n.*/, "", s)
	gsub(/\n/, " ", s)
	if (match(s, /[A-Za-z0-9)`][.;] /))
		s = substr(s, 1, RSTART)
	if (match(s, /: /))
		s = substr(s, 1, RSTART - 1)
	sub(/[.:; ]+$/, "", s)
	return s
}

function bold(text,    lines, n, i, out) {
	n = split(text, lines, "\n")
	for (i = 1; i <= n; i++)
		out = out ".B \"" literal(lines[i]) "\"\n"
	return out
}

function write_answers(name, file, errors,    i, any) {
	for (i = 1; i <= answers[name]; i++) {
		if ((answer_code[name, i] ~ /^-E/) != errors)
			continue
		printf ".TP\n.B %s\n%s\n", escaped(answer_code[name, i]),
			escaped(sentence(answer[name, i])) >file
		any = 1
	}
	return any
}

function sentence(text) {
	return text ~ /[.]$/ ? text : text "."
}

function has_errors(name,    i) {
	for (i = 1; i <= answers[name]; i++)
		if (answer_code[name, i] ~ /^-E/)
			return 1
	return 0
}

function write_example(name, file) {
	if (!(name in example))
		return
	printf ".SH EXAMPLES\nFrom\n.IR %s :\n.PP\n", example_of[name] >file
	printf "%s", code_roff(example[name]) >file
}

# Names that a text speaks of, and the neighbors in its part of the header, at most 12.
function write_see_also(name, file,    text, i, n, seen, count, other, refs) {
	printf ".SH SEE ALSO\n" >file
	text = comment_of[name] " " declaration_of[name] " " struct_comment_of[name] " " more[name]
	seen[name] = 1
	while (match(text, /tw_[a-z_]+/)) {
		other = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		if (other in kind && !(other in seen) && count < 8) {
			seen[other] = 1
			refs[++count] = other
		}
	}
	for (i = 1; i <= entries && count < 12; i++) {
		other = entry[i]
		if (!(other in seen) && header_of[other] == header_of[name] &&
				part_of[other] == part_of[name] && kind[other] == "function") {
			seen[other] = 1
			refs[++count] = other
		}
	}
	for (i = 1; i <= count; i++)
		printf ".BR %s (3),\n", refs[i] >file
	if (header_of[name] != "tickwheel")
		printf ".BR tickwheel_%s (7),\n", header_of[name] >file
	printf ".BR tickwheel (7)\n" >file
}

function write_return_value(name, file) {
	printf ".SH RETURN VALUE\n" >file
	if (declaration_of[name] ~ /^void tw/)
		printf "None.\n" >file
	if (value[name, "returns"] != "")
		printf "%s\n", escaped(capital(value[name, "returns"])) >file
	write_answers(name, file, 0)
	if (kind[name] == "type")
		write_answers(name, file, 1)
	if (value[name, "after"] != "")
		printf ".PP\n%s\n", escaped(capital(trimmed(value[name, "after"]))) >file
}

function write_function(name,    file, text) {
	file = dir "/man3/" name ".3"
	head(file, name, 3, about_function(name), header_of[name])
	printf ".PP\n%s", bold(declaration_of[name]) >file
	printf ".fi\n.SH DESCRIPTION\n%s", roff_section(details[name] "\n\n" more[name]) >file
	if (name in struct_of)
		printf "%s.PP\n%s", roff(struct_comment_of[name]), code_roff(struct_of[name]) >file
	write_return_value(name, file)
	printf ".SH ERRORS\n" >file
	if (!has_errors(name))
		printf "None.\n" >file
	else
		printf "%s\n",
			"The misuse hook gets the reason for bad input:\n.BR tw_set_misuse_hook (3)." >file
	write_answers(name, file, 1)
	printf ".SH THREADS\n" >file
	text = said(name, "threads")
	sub(/^any/, "any thread", text)
	printf "%s\n", escaped(capital(sentence(text))) >file
	text = said(name, "blocks")
	if (text == "never")
		printf "Never blocks.\n" >file
	else if (text != "")
		printf ".PP\nBlocks: %s\n", escaped(sentence(text)) >file
	if (said(name, "calls") != "")
		printf ".PP\nCalls: %s\n", escaped(sentence(said(name, "calls"))) >file
	printf ".PP\n.BR tickwheel_threads (7)\n" >file
	printf "says what may be called from callbacks, releases, signal handlers and forked children.\n" >file
	write_example(name, file)
	write_see_also(name, file)
	close(file)
}

function capital(s) {
	return toupper(substr(s, 1, 1)) substr(s, 2)
}

function trimmed(s) {
	sub(/^ +/, "", s)
	return s
}

# A section's first paragraph needs no .PP.
function roff_section(text,    s) {
	s = roff(text)
	sub(/^\.PP\n/, "", s)
	return s
}

function about_function(name,    s) {
	s = first_sentence(summary[name])
	return tolower(substr(s, 1, 1)) substr(s, 2)
}

function about_type(name,    s) {
	s = first_sentence(comment_of[name])
	return tolower(substr(s, 1, 1)) substr(s, 2)
}

function write_type(name,    file, text) {
	file = dir "/man3/" name ".3"
	head(file, name, 3, about_type(name), header_of[name])
	if (kind[name] != "type")
		printf ".PP\n.B %s %s;\n", kind[name], name >file
	else
		printf ".PP\n%s", bold(declaration_of[name]) >file
	printf ".fi\n.SH DESCRIPTION\n" >file
	text = without_itself(kind[name] == "type" ? details[name] : comment_of[name], name "[(]3[)]")
	printf "%s", roff_section(text "\n\n" more[name]) >file
	if (kind[name] != "type")
		printf ".PP\n%s", code_roff(declaration_of[name]) >file
	if (value[name, "returns"] != "" || answers[name])
		write_return_value(name, file)
	write_example(name, file)
	write_see_also(name, file)
	close(file)
}

function write_lists(h, file,    i, name, any) {
	for (i = 1; i <= entries; i++) {
		name = entry[i]
		if (header_of[name] != h || kind[name] != "function")
			continue
		if (!any++)
			printf ".SH FUNCTIONS\n" >file
		printf ".TP\n.BR %s (3)\n%s\n", name, escaped(sentence(first_sentence(summary[name]))) >file
	}
	any = 0
	for (i = 1; i <= entries; i++) {
		name = entry[i]
		if (header_of[name] != h || kind[name] == "function")
			continue
		if (!any++)
			printf ".SH TYPES\n" >file
		printf ".TP\n.BR %s (3)\n%s\n", name, escaped(sentence(about_type(name))) >file
	}
	if (constants[h] != "")
		printf ".SH CONSTANTS\n%s", code_roff(substr(constants[h], 2)) >file
}

# Without the sentences that send to the page they are on.
function without_itself(text, page) {
	gsub(page "[ \n][a-z][^.]*[.]", "", text)
	return text
}

function write_header_page(h,    file, about) {
	opening[h] = without_itself(opening[h], "tickwheel_" h "[(]7[)]")
	file = dir "/man7/tickwheel_" h ".7"
	about = opening[h]
	sub(/^[A-Za-z ]*: /, "", about)
	head(file, "tickwheel_" h, 7, tolower(substr(about, 1, 1)) substr(first_sentence(about), 2) words[h], h)
	printf ".fi\n.SH DESCRIPTION\n%s", roff_section(opening[h] "\n\n" more[h]) >file
	write_lists(h, file)
	printf ".SH SEE ALSO\n.BR tickwheel (7),\n.BR tickwheel_recipes (7)\n" >file
	close(file)
	printf ".TP\n.BR tickwheel_%s (7)\n%s\n", h, escaped(sentence(first_sentence(about))) >(dir "/list")
}

# The part of a header's first comment from a line that begins with `from` to one that begins with `to`.
function part_of_opening(h, from, to,    lines, n, i, on, s) {
	n = split(opening[h], lines, "\n")
	for (i = 1; i <= n; i++) {
		if (index(lines[i], to) == 1)
			break
		if (on)
			s = s lines[i] "\n"
		on = on || index(lines[i], from) == 1
	}
	return roff_section(s)
}

# The functions that return an error, as .BR lines.
function returned_by(code,    i, j, s, name, count) {
	count = 0
	for (i = 1; i <= entries; i++) {
		name = entry[i]
		if (kind[name] != "function")
			continue
		for (j = 1; j <= answers[name]; j++)
			if (answer_code[name, j] ~ ("-" code "(,|$)")) {
				s = s ".BR " name " (3),\n"
				count++
				break
			}
	}
	sub(/,\n$/, ".\n", s)
	return count > 60 ? "nearly every call.\n" : s
}

# References such as tw_cancel(3), set as those of other pages.
function referring(s) {
	gsub(/(tw|tickwheel)_[a-z_]+[(][37][)]/, "\\fB&", s)
	gsub(/[(][37][)]/, "\\fR&", s)
	return s
}

function write_topic(topic,    source, file, line, text, codes, n, i) {
	source = texts "/" topic ".txt"
	file = dir "/man7/tickwheel_" topic ".7"
	if ((getline line < source) <= 0)
		complain(source " is empty")
	printf ".\\\" made from man/text\n.TH TICKWHEEL_%s 7 \"\" \"tickwheel %s\" \"tickwheel\"\n", \
		toupper(topic), version >file
	printf ".SH NAME\ntickwheel_%s \\- %s\n", topic, escaped(line) >file
	printf ".TP\n.BR tickwheel_%s (7)\n%s\n", topic, escaped(sentence(capital(line))) >(dir "/list")
	for (;;) {
		i = (getline line < source)
		if (i <= 0 || line ~ /^[#=@]/) {
			if (text !~ /^\n*$/)
				printf "%s", referring(roff_section(text)) >file
			text = ""
			for (; n > 0; n--)
				printf ".PP\n.B %s:\n%s", codes[n], returned_by(codes[n]) >file
			n = 0
		}
		if (i <= 0)
			break
		if (line == "@WHO@")
			printf "%s", part_of_opening("tickwheel", "Who may call what:", "Guarantees:") >file
		else if (line == "@FREE@")
			printf "%s.PP\n", part_of_opening("timer", "May I free arg?", "How a timer ends") >file
		else if (line ~ /^# /)
			printf ".SH %s\n", substr(line, 3) >file
		else if (line ~ /^= /) {
			line = substr(line, 3)
			printf ".SS %s\n", line >file
			n = split(line, codes, ", ")
		} else
			text = text line "\n"
	}
	close(source)
	printf ".SH SEE ALSO\n.BR tickwheel (7)\n" >file
	close(file)
}

END {
	if (failed)
		exit 1
	while ((getline line_text < examples) > 0) {
		split(line_text, field, "\t")
		if (field[1] == "=") {
			example_of[field[2]] = field[3]
			current = field[2]
		} else {
			sub(/^\|/, "", line_text)
			example[current] = example[current] \
				(current in example && example[current] != "" ? "\n" : "") line_text
		}
	}
	parse_all()
	for (i = 1; i <= header_count; i++)
		read_texts(headers[i])
	if (failed)
		exit 1
	for (i = 1; i <= entries; i++)
		if (kind[entry[i]] == "function")
			write_function(entry[i])
		else
			write_type(entry[i])
	for (i = 1; i <= header_count; i++)
		if (headers[i] != "tickwheel")
			write_header_page(headers[i])
	topic_count = split(topics, topic_names, " ")
	for (i = 1; i <= topic_count; i++)
		write_topic(topic_names[i])
	if (failed)
		exit 1
}
