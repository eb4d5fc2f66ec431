# The parts of functions' comments, from model.awk's arrays: for pages.awk and answers.awk.

# Splits the comment of a function into summary, details, threads[name], blocks[name], calls[name] and its answers.
function parse(name,    lines, n, i, state, keys, text, key_count, k, part_names) {
	n = split(comment_of[name], lines, "\n")
	state = "text"
	for (i = 1; i <= n; i++) {
		if (lines[i] ~ /^(Threads|Blocks|Calls|Returns)(, (blocks|calls|returns))*:/) {
			keys = tolower(lines[i])
			sub(/:.*/, "", keys)
			text = lines[i]
			sub(/^[^:]*: */, "", text)
			if (keys ~ /returns/ && text == "") {
				state = "list"
				continue
			}
			key_count = split(keys, part_names, ", ")
			for (k = 1; k <= key_count; k++) {
				value[name, part_names[k]] = text
				if (keys ~ /returns/ && part_names[k] != "returns")
					sub(/[.;].*/, "", value[name, part_names[k]]) # what follows is about the answer
			}
			state = keys ~ /returns/ ? "returns" : "value"
			last_key = part_names[key_count]
			continue
		}
		if (state == "value" && lines[i] != "") {
			value[name, last_key] = value[name, last_key] " " lines[i]
		} else if (state == "returns" && lines[i] ~ /^  /) {
			state = "list"
			list_line(name, lines[i])
		} else if (state == "returns" && lines[i] != "") {
			value[name, "returns"] = value[name, "returns"] " " lines[i]
		} else if (state == "list" && lines[i] ~ /^  /) {
			list_line(name, lines[i])
		} else if (state == "list" && lines[i] != "") {
			value[name, "after"] = value[name, "after"] " " lines[i]
		} else if (state == "text") {
			details[name] = details[name] (details[name] == "" ? "" : "\n") lines[i]
		}
	}
	summary[name] = details[name]
	sub(/\n\n.*/, "", summary[name])
	gsub(/\n/, " ", summary[name])
}

# What tickwheel.h says of every function whose comment says nothing else.
function add_rules(name,    d, codes) {
	if (kind[name] != "function")
		return
	d = declaration_of[name]
	if (!((name, "threads") in value)) {
		value[name, "threads"] = "any"
		if (!((name, "blocks") in value) && name !~ /_(create|destroy)$/)
			value[name, "blocks"] = ((name, "calls") in value) ? "only in what it calls" : "never"
	}
	if (d !~ /^int / || !answers[name]) {
		if (d !~ /^(void|int) [a-z]/ && fork_answer(name) == "-EPERM" && d !~ /\(void\)/)
			value[name, "returns"] = value[name, "returns"] "; " \
				(d ~ /^bool/ ? "false" : d ~ /[*]tw_[a-z_]+\(/ ? "NULL" : "0") \
				" if the object is NULL, or belongs to the parent of a forked child"
		return
	}
	if (d ~ /[*]/ && comment_of[name] !~ /NULL[ \t\n]+is[ \t\n]+allowed/)
		add_reason(name, "-EINVAL", "a pointer is NULL that must not be")
	if (d ~ /const struct tw_[a-z_]+ [*](cfg|config|task|post|period)[,)]/)
		add_reason(name, "-E2BIG", "a struct has bytes other than 0 beyond what the library knows")
	if (fork_answer(name) == "-EPERM" || (name ~ /_create$/ && d ~ /tw_(service|action_scheduler) [*][a-z]/))
		add_reason(name, "-EPERM", "in a forked child, for an object of the parent")
}

# Puts a reason before those that the comment has for the answer.
function add_reason(name, code, text,    i) {
	for (i = 1; i <= answers[name] && answer_code[name, i] != code; i++) {
	}
	if (i > answers[name])
		add_answer(name, code, text)
	else
		answer[name, i] = text "; " answer[name, i]
}

# The last column of the table in tickwheel.h for a function; "" without the table.
function fork_answer(name,    i) {
	if (!table_rows)
		read_table()
	for (i = 1; i <= table_rows; i++)
		if (name ~ table_name[i])
			return table_last[i]
	return ""
}

function read_table(    lines, n, i, j, count, column, names, last, pattern, inside) {
	n = split(opening["tickwheel"], lines, "\n")
	for (i = 1; i <= n; i++) {
		if (lines[i] ~ /^Who may call what:/)
			inside = 1
		if (!inside || lines[i] !~ /^  (  )?(tw_|every other)/)
			continue
		if (lines[i] ~ /^  \(1\)/)
			break
		sub(/^ +/, "", lines[i])
		count = split(lines[i], column, /  +/)
		if (count > 1)
			last = column[count]
		sub(/ \(.*/, "", last)
		gsub(/ \([^)]*\)/, "", column[1])
		count = split(column[1], names, /, */)
		for (j = 1; j <= count; j++)
			if (names[j] != "") {
				pattern = names[j] ~ /^every/ ? "*" : names[j]
				gsub(/[*]/, ".*", pattern)
				table_name[++table_rows] = "^" pattern "$"
				table_last[table_rows] = last
			}
	}
}

function list_line(name, text,    code) {
	if (text ~ /^  [^ ]/) {
		code = text
		sub(/^ +/, "", code)
		text = code
		sub(/  +.*/, "", code)
		if (!sub(/^([^ ]|[^ ] )+  +/, "", text))
			text = ""
		add_answer(name, code, text)
	} else {
		sub(/^ +/, "", text)
		answer[name, answers[name]] = answer[name, answers[name]] " " text
	}
}

function add_answer(name, code, text) {
	answers[name]++
	answer_code[name, answers[name]] = code
	answer[name, answers[name]] = text
}

# "0; -EINVAL if an argument is NULL" and "as tw_schedule, and".
function parse_inline(name,    n, i, part_text, pieces, code) {
	part_text = value[name, "returns"]
	if (match(part_text, /as tw_[a-z_]+( and tw_[a-z_]+)?/)) {
		reference[name] = substr(part_text, RSTART + 3, RLENGTH - 3)
		if (RSTART > 1)
			complain(name ": Returns: says something before \"as\"")
		part_text = substr(part_text, RSTART + RLENGTH)
		sub(/^(, and)?[.;]? */, "", part_text)
		sub(/^Also:$/, "", part_text)
		if (part_text != "")
			value[name, "after"] = value[name, "after"] " " part_text
		delete value[name, "returns"]
		return
	}
	if (part_text !~ /-E/)
		return
	delete value[name, "returns"]
	n = split(part_text, pieces, "; ")
	for (i = 1; i <= n; i++) {
		code = pieces[i]
		sub(/ (if|in|without) .*/, "", code)
		sub(/^[^ ]+ ?/, "", pieces[i])
		add_answer(name, code, pieces[i])
	}
}

# The answers of the function that the name's comment refers to come first; the same error has both reasons.
function inherit(name,    refs, count, r, i, j, own, ref, own_code, own_text, found) {
	if (inherited[name]++ || !(name in reference))
		return
	own = answers[name]
	for (i = 1; i <= own; i++) {
		own_code[i] = answer_code[name, i]
		own_text[i] = answer[name, i]
	}
	answers[name] = 0
	count = split(reference[name], refs, " and ")
	for (r = 1; r <= count; r++) {
		ref = refs[r]
		if (!(ref in kind))
			complain(name " refers to " ref ", which is not declared")
		inherit(ref)
		for (i = 1; i <= answers[ref]; i++)
			if (!has_answer(name, answer_code[ref, i]))
				add_answer(name, answer_code[ref, i], answer[ref, i])
		if (!((name, "returns") in value) && (ref, "returns") in value)
			value[name, "returns"] = value[ref, "returns"]
	}
	for (i = 1; i <= own; i++) {
		found = 0
		for (j = 1; j <= answers[name]; j++)
			if (answer_code[name, j] == own_code[i]) {
				found = 1
				answer[name, j] = own_code[i] ~ /^-E/ && answer[name, j] != own_text[i] ? \
					answer[name, j] "; or " own_text[i] : own_text[i]
			}
		if (!found)
			add_answer(name, own_code[i], own_text[i])
	}
}

function has_answer(name, code,    i) {
	for (i = 1; i <= answers[name]; i++)
		if (answer_code[name, i] == code)
			return 1
	return 0
}

# threads, blocks or calls, also where the comment says "as tw_schedule."
function said(name, key,    text, ref, rest) {
	text = value[name, key]
	if (text ~ /^as tw_/) {
		ref = text
		sub(/^as /, "", ref)
		rest = ref
		sub(/[^a-z_].*/, "", ref)
		sub(/^[a-z_]+[.,;]? */, "", rest)
		text = said(ref, key) (rest == "" ? "" : " " rest)
	}
	return text
}

function complain(why) {
	print "manual: " why >"/dev/stderr"
	failed = 1
}

function is_called(name) {
	return kind[name] == "function" || kind[name] == "type"
}

# Complains about what a page would show as an empty sentence, or as one without its beginning.
function check_text(name,    i, text) {
	if (comment_of[name] == "" || (is_called(name) && details[name] == ""))
		complain(name " has no text")
	if (name in struct_of && struct_comment_of[name] == "")
		complain("struct " name " has no text")
	for (i = 1; i <= answers[name]; i++)
		if (answer[name, i] ~ /^ *[.]?$/)
			complain(name ": the answer \"" answer_code[name, i] "\" has no text")
	text = value[name, "after"]
	sub(/^ +/, "", text)
	if (text != "" && text !~ /^([A-Z`*]|tw_)/)
		complain(name ": a sentence after its answers has no beginning: \"" text "\"")
	if (kind[name] != "function")
		return
	if (declaration_of[name] !~ /^void tw/ && !answers[name] && value[name, "returns"] == "")
		complain(name ": no \"Returns:\"")
}

# Parses the comments of functions and of function types. Ends the program if a page would lack a text.
function parse_all(    i, name) {
	for (i = 1; i <= entries; i++)
		if (is_called(entry[i])) {
			parse(entry[i])
			if ((entry[i], "returns") in value)
				parse_inline(entry[i])
		}
	for (i = 1; i <= entries; i++)
		if (is_called(entry[i]))
			inherit(entry[i])
	for (i = 1; i <= entries; i++)
		add_rules(entry[i])
	for (i = 1; i <= entries; i++)
		check_text(entry[i])
	if (failed)
		exit 1
}
