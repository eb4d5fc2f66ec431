# The overview: man/tickwheel.7.in, in which @RULES@ stands for what tickwheel.h opens with, from its words on, and
# @VERSION@ for the version, @PAGES@ for the lines of the file `list`.

FNR == NR { template[++lines] = $0; next }

in_opening || (FNR == 1 && /^\/\*/) {
	in_opening = $0 !~ /\*\//
	text = bare($0)
	if (text ~ /^Words used in all headers:/)
		telling = 1
	if (telling && in_opening)
		rules = rules (rules == "" ? "" : "\n") text
}

END {
	if (rules == "") {
		print "overview: tickwheel.h does not open as expected" >"/dev/stderr"
		exit 1
	}
	for (i = 1; i <= lines; i++) {
		if (template[i] == "@RULES@") {
			text = roff(rules)
			sub(/^\.PP\n/, "", text)
			printf "%s", text
		} else if (template[i] == "@PAGES@") {
			while ((getline line < list) > 0)
				print line
		} else {
			gsub(/@VERSION@/, version, template[i])
			print template[i]
		}
	}
}
