# Prints "FUNCTION ANSWER" for each answer that the header of a function lists, from model.awk and parse.awk; and
# "FUNCTION" alone for a function without a list. For test/contract/answers.sh.

END {
	if (failed)
		exit 1
	parse_all()
	for (i = 1; i <= entries; i++) {
		name = entry[i]
		if (kind[name] != "function")
			continue
		if (!answers[name])
			print name
		for (j = 1; j <= answers[name]; j++) {
			count = split(answer_code[name, j], codes, ", ")
			for (k = 1; k <= count; k++)
				print name " " codes[k]
		}
	}
}
