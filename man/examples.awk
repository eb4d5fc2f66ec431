# Finds an example for each name: the shortest function of the programs and pages (their ```c blocks) in which the name
# occurs; of more than 40 lines, the beginning, and what is around the name. Prints "= <tab> NAME <tab> FILE", then the
# lines, each after "|". -v names= (a file, one a line).

function end_function(    i, text, n, k) {
	if (!lines)
		return
	text = ""
	for (i = 1; i <= lines; i++)
		text = text "\n" body[i]
	for (k = 1; k <= name_count; k++)
		if (index(text, name[k]) && text ~ ("[^a-z_]" name[k] "[^a-z_]"))
			offer(name[k])
	lines = 0
}

function offer(n,    i, from, to) {
	if (n in best && size[n] <= lines)
		return
	from = 1
	to = lines
	if (lines > 40) {
		for (i = 1; i <= lines; i++)
			if (body[i] ~ ("[^a-z_]" n "[^a-z_]"))
				break
		from = i > 12 ? i - 12 : 1
		to = from + 30 < lines ? from + 30 : lines
	}
	best[n] = from > 3 ? "\n|" body[1] "\n|" body[2] "\n|\t..." : ""
	if (from <= 3)
		from = 1
	for (i = from; i <= to; i++)
		best[n] = best[n] "\n|" body[i]
	size[n] = lines
	where[n] = file
}

BEGIN {
	while ((getline line < names) > 0)
		name[++name_count] = line
}

FNR == 1 { end_function(); inside = 0; file = FILENAME; is_page = FILENAME ~ /\.md$/; in_code = !is_page }
is_page && /^```/ { end_function(); inside = 0; in_code = !in_code && /^```c[ \t]*$/; next }
!in_code { next }

!inside && /^[a-z].*\(.*[^;]$/ { held = $0; holding = 1; next }
!inside && holding && /^{/ { inside = 1; lines = 0; body[++lines] = held; body[++lines] = $0; holding = 0; next }
!inside && holding && /^[ \t]/ { held = held "\n|" $0; next }
!inside { holding = 0; next }
{ body[++lines] = $0 }
/^}/ { end_function(); inside = 0 }

END {
	end_function()
	for (k = 1; k <= name_count; k++)
		if (name[k] in best)
			print "=\t" name[k] "\t" where[name[k]] best[name[k]]
}
