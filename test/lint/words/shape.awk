# Public functions whose comment lacks the one shape: a summary, and what the function returns unless it is void.

FNR == 1 { comment = ""; in_comment = 0 }

/^\/\*/ { comment = ""; in_comment = 1 }
in_comment {
	comment = comment "\n" $0
	if (/\*\//)
		in_comment = 0
	next
}
/^TW_API / {
	name = $0
	sub(/\(.*/, "", name)
	sub(/^.*[ *]/, "", name)
	if (comment == "")
		print FILENAME ":" FNR ": " name " has no comment"
	else if ($0 !~ /^TW_API void tw/ && comment !~ /(Returns|, returns):/)
		print FILENAME ":" FNR ": " name " does not say what it returns (Returns:)"
	comment = ""
}
/^$/ || /^[a-z#]/ { if (!/^TW_API /) comment = "" }
