# From sentences (comments.awk, markdown.awk): for each file its words, sentences, median and longest sentence, and
# Flesch's reading ease: 206.835 - 1.015 words per sentence - 84.6 syllables per word.

function syllables(word,    n, w) {
	w = tolower(word)
	gsub(/[^a-z]/, "", w)
	if (w == "")
		return 1
	# A final e, es or ed is silent, except in -le, -ted, -ded, -ses and the like.
	if (w !~ /[^aeiouy]le$/ && length(w) > 3)
		sub(/([^aeiouytd]ed|[^aeiouyscxzgh]es|[^aeiouy]e)$/, "", w)
	n = gsub(/[aeiouy]+/, "", w)
	return n ? n : 1
}

function median(file,    i, n, k) {
	for (k = 0; k <= 200; k++) {
		n += of_length[file, k]
		if (n * 2 >= sentences[file])
			return k
	}
	return k
}

BEGIN { FS = "\t" }

{
	file = $1
	sub(/:[0-9]+$/, "", file)
	n = split($3, part, /[ \/]+/)
	count = 0
	for (i = 1; i <= n; i++) {
		if (part[i] !~ /[A-Za-z0-9]/)
			continue
		count++
		if ($2 == "prose")
			of_prose[file] += syllables(part[i])
	}
	if (!(file in words))
		order[++files] = file
	words[file] += count
	if ($2 != "prose" || !count)
		next
	sentences[file]++
	in_prose[file] += count
	of_length[file, count]++
	if (count > longest[file])
		longest[file] = count
}

END {
	for (i = 1; i <= files; i++) {
		file = order[i]
		if (!sentences[file])
			continue
		printf "%s\t%d\t%d\t%d\t%d\t%.1f\n", file, words[file], sentences[file], median(file), longest[file],
			206.835 - 1.015 * in_prose[file] / sentences[file] - 84.6 * of_prose[file] / in_prose[file]
	}
}
