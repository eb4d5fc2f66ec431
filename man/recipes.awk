# The recipes of docs/guide.md (its sections below "# Recipes") as the page tickwheel_recipes(7). -v version=

function plain(s) {
	gsub(/\*\*|`/, "", s)
	while (match(s, /\]\([^)]*\)/))
		s = substr(s, 1, RSTART - 1) substr(s, RSTART + RLENGTH)
	gsub(/\[/, "", s)
	return escaped(s)
}

!fenced && /^# / { in_recipes = /^# Recipes/; next }
!in_recipes { next }
/^```/ { fenced = !fenced; text = text (fenced ? ".PP\n.nf\n" : ".fi\n"); next }
fenced { text = text literal($0) "\n"; next }
/^##+ / {
	title = $0
	sub(/^#+ /, "", title)
	text = text ".SH " toupper(plain(title)) "\n"
	title = tolower(substr(title, 1, 1)) substr(title, 2)
	titles = titles (titles == "" ? "" : ", ") title
	began = 1
	next
}
/^<!--/ { next }
/^[ \t]*$/ { empty = 1; next }
/^\|/ { if (!in_table) text = text ".PP\n.nf\n"; in_table = 1; text = text literal($0) "\n"; next }
in_table { text = text ".fi\n"; in_table = 0 }
/^ *[-*] / { sub(/^ *[-*] /, ""); text = text ".IP \\(bu 2\n" plain($0) "\n"; empty = began = 0; next }
{ text = text (empty && !began ? ".PP\n" : "") plain($0) "\n"; empty = began = 0 }

END {
	if (titles == "")
		exit
	printf ".\\\" made from docs/guide.md\n.TH TICKWHEEL_RECIPES 7 \"\" \"tickwheel %s\" \"tickwheel\"\n", version
	printf ".SH NAME\ntickwheel_recipes \\- %s, with timers\n", plain(titles)
	printf "%s", text
	printf ".SH SEE ALSO\n.BR tickwheel (7),\n.BR tw_schedule (3)\n"
}
