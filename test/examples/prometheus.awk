# Reads a page in Prometheus' text format strictly; says what is wrong with the first bad line, or how many samples
# there are. It checks the ledger, too: that of all services of the page. Run it with LC_ALL=C, by bytes.
function bad(why) { print "line " NR ": " why ": " $0; failed = 1; exit 1 }

# Splits "name{labels} value"; a label's value may hold any character, quotes and backslashes escaped.
function parse(line,   rest, key) {
	name = line; sub(/[^a-zA-Z0-9_:].*/, "", name)
	if (name !~ /^[a-zA-Z_:][a-zA-Z0-9_:]*$/) bad("malformed name")
	rest = substr(line, length(name) + 1)
	labels = ""; le = ""; plain = ""
	if (substr(rest, 1, 1) == "{") {
		rest = substr(rest, 2)
		while (substr(rest, 1, 1) != "}") {
			if (!match(rest, /^[a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\\\|\\"|\\n)*"/)) bad("malformed label")
			key = substr(rest, 1, RLENGTH)
			if (index(labels, "," key ",")) bad("the same label twice")
			if (key ~ /^le=/) { le = key; gsub(/^le="|"$/, "", le) } else plain = plain key ","
			labels = labels "," key ","
			rest = substr(rest, RLENGTH + 1)
			if (substr(rest, 1, 1) == ",") rest = substr(rest, 2)
			else if (substr(rest, 1, 1) != "}") bad("malformed labels")
		}
		rest = substr(rest, 2)
	}
	if (rest !~ /^ [0-9]+(\.[0-9]+)?$/) bad("malformed value")
	value = substr(rest, 2)
}

# Takes the characters of UTF-8 out; what is left of more than ASCII is none.
function is_utf8(line) {
	if (line !~ /[\200-\377]/) return 1
	gsub(/[\302-\337][\200-\277]/, "", line)
	gsub(/\340[\240-\277][\200-\277]|\355[\200-\237][\200-\277]/, "", line)
	gsub(/[\341-\354\356\357][\200-\277][\200-\277]/, "", line)
	gsub(/\360[\220-\277][\200-\277][\200-\277]|[\361-\363][\200-\277][\200-\277][\200-\277]/, "", line)
	gsub(/\364[\200-\217][\200-\277][\200-\277]/, "", line)
	return line !~ /[\200-\377]/
}

# The family of a sample: a histogram's samples have suffixes.
function family_of(name,   base) {
	base = name
	if (sub(/_(bucket|sum|count)$/, "", base) && type[base] == "histogram") return base
	return name
}

function end_histogram() {
	if (current == "" || type[current] != "histogram") return
	if (last_le != "+Inf") bad("a histogram without the bucket +Inf above this line")
	if (!has_sum || !has_count) bad("a histogram without sum or count above this line")
	if (last_bucket != count_value) bad("the bucket +Inf is not the count, above this line")
}

function begin_histogram() {
	last_le = ""; last_bucket = -1; last_bound = -1; has_sum = has_count = 0
}

!is_utf8($0) { bad("not UTF-8") }
/^# HELP / {
	end_histogram()
	if ($0 !~ /^# HELP [a-zA-Z_:][a-zA-Z0-9_:]* [^ ]/) bad("malformed HELP")
	if (helped[$3]++) bad("a second HELP")
	expected = $3; current = ""; next
}
/^# TYPE / {
	if ($0 !~ /^# TYPE [a-zA-Z_:][a-zA-Z0-9_:]* (counter|gauge|histogram)$/) bad("malformed TYPE")
	if ($3 != expected || type[$3] != "") bad("TYPE does not follow its HELP")
	if ($4 == "counter" && $3 !~ /_total$/) bad("a counter not named _total")
	if ($4 != "counter" && $3 ~ /_total$/) bad("named _total, but no counter")
	type[$3] = $4; current = $3
	begin_histogram(); of = ""; next
}
/^#/ || /^$/ { bad("neither HELP, TYPE nor a sample") }
{
	parse($0)
	if (current == "" || family_of(name) != current) bad("not below its TYPE")
	if (seen[name labels]++) bad("the same sample twice")
	if (type[current] == "histogram") {
		if (of != plain) { # the next service
			if (of != "") end_histogram()
			begin_histogram(); of = plain
		}
		if (name == current "_bucket") {
			if (le == "") bad("a bucket without le")
			if (last_le == "+Inf" || (le != "+Inf" && le + 0 <= last_bound)) bad("bounds that do not rise")
			if (value + 0 < last_bucket) bad("buckets that are not cumulative")
			last_le = le; last_bound = le + 0; last_bucket = value + 0
		} else if (name == current "_sum") has_sum = 1
		else if (name == current "_count") { has_count = 1; count_value = value + 0 }
		else bad("a histogram's sample without a suffix")
	} else if (le != "") bad("le without a histogram")
	if (name == "tickwheel_timers_scheduled_total") scheduled += value
	if (name ~ /^tickwheel_timers_(ended_total|pending|disarmed)$/) accounted += value
	if (name == "tickwheel_running") running += value # callbacks of timers are neither pending nor ended
	samples++
}
END {
	if (failed) exit 1
	end_histogram()
	if (failed) exit 1
	for (name in helped) if (type[name] == "") { print name ": HELP without TYPE"; exit 1 }
	if (samples < 20) { print "only " samples + 0 " samples"; exit 1 }
	if (scheduled == 0 || scheduled < accounted || scheduled > accounted + running) {
		print "the ledger does not balance: " scheduled + 0 " scheduled, " accounted + 0 " accounted for, " \
			running + 0 " running"
		exit 1
	}
	print samples " samples"
}
