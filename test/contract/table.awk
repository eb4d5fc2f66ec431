# The table "Who may call what" of tickwheel.h: "PATTERN<tab>LAST COLUMN" for each function that a row names.
/^ \* Who may call what:/ { on = 1; next }
on && /^ \*   \(1\)/ { exit }
on && /^ \*   (  )?(tw_|every other)/ {
	is_row = /^ \*   [te]/ # else the names of the row above go on
	sub(/^ \* +/, "")
	count = split($0, column, /  +/)
	if (is_row)
		last = column[count]
	sub(/ \(.*/, "", last)
	gsub(/ \([^)]*\)/, "", column[1])
	n = split(column[1], names, /, */)
	for (i = 1; i <= n; i++)
		if (names[i] != "")
			print (names[i] ~ /^every/ ? "*" : names[i]) "\t" last
}
