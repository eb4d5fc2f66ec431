# figures.awk: the results of run.sh (results.awk reads them) as the figures of README.md. Variables:
# processors, model, version.

function grouped(n,   text) {
	text = sprintf("%d", n)
	while (match(text, /[0-9][0-9][0-9][0-9]($|,)/))
		text = substr(text, 1, RSTART) "," substr(text, RSTART + 1)
	return text
}

function ms(text) { return text == "inf" ? "-" : sprintf(text < 10 ? "%.2f" : "%.0f", text) }

# "20k-beside-500k" as README says it.
function words(cell,   text) {
	text = cell
	sub(/^20k/, "20,000", text)
	sub(/^100k/, "100,000", text)
	sub(/-alone/, " alone", text)
	sub(/-beside-500k/, " beside 500,000 of an hour", text)
	sub(/-same-ms/, " in the same millisecond", text)
	sub(/-renewed/, ", each renewed ten times", text)
	return text
}

function redis_p50(cell) {
	if (p50["redis", cell] != "inf")
		return ms(p50["redis", cell])
	return sprintf("- (%s ended)", grouped(arrived["redis", cell]))
}

function lateness_table(   i, cell) {
	print "| keys due in 2 to 5 s | redis p50 | p99 | tickcache p50 | p99 | control thread p99 |"
	print "|---|---|---|---|---|---|"
	for (i = 1; i <= cell_count; i++) {
		cell = cell_name[i]
		printf "| %s | %s | %s | %s | %s | %s |\n", words(cell), redis_p50(cell), ms(p99["redis", cell]),
			ms(p50["tick1", cell]), ms(p99["tick1", cell]), ms(control["tick1", cell])
	}
	printf "\nOf tickcache's events and of %s reads meanwhile, %d were early. %d events were lost, %d came\n",
		grouped(probes["tick1"]), early["tick1"], lost["tick1"], twice["tick1"]
	printf "twice, and %d keys were visible after their deadlines.\n", visible["tick1"]
}

# THROUSANDS (CPU US)
function rate(server, load) {
	return sprintf("%.0f (%.1f)", of_rounds("rate", server " " load) / 1000, of_rounds("cpu", server " " load))
}

function throughput_table(   i, load, part, one, two, null) {
	printf "| test | clients, pipeline | redis | tickcache, 1 thread | 2 threads | null server, 2 threads "
	print "| 1 / redis | 2 / redis | null / redis |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= load_count; i++) {
		load = load_name[i]
		split(load, part, " ")
		one = beside_redis("tick1", load)
		two = beside_redis("tick2", load)
		null = beside_redis("null", load)
		printf "| %s | %s, %s | %s | %s | %s | %s | %.2f | %.2f | %.2f |\n",
			toupper(part[1]), part[2], part[3], rate("redis", load),
			rate("tick1", load), rate("tick2", load), rate("null", load), one, two, null
	}
	judge()
	print "\nA cell reaches the aim if its median does. It is below if n rounds are, and chance alone would"
	print "put n or more rounds there in at most one of sixteen cells. Otherwise the rounds disagree."
	print ""
	print "| throughput of redis-server | aim | reached | the rounds disagree | below | null server below, too |"
	print "|---|---|---|---|---|---|"
	printf "| one thread | 1 | %d | %d | %d | |\n", one_thread[1], one_thread[0], one_thread[-1]
	printf "| two threads | 1.5 | %d | %d | %d | %d |\n", two_threads[1], two_threads[0], two_threads[-1], beyond
}

END {
	printf "One run on %d processors (%s) with redis-server %s.\n", processors, model, version
	printf "Lateness is deadline to arrival of the `expired` event, in ms. "
	print "\"-\": not within 3 s\nof the last deadline."
	print ""
	lateness_table()
	print "\nBytes of a key with a time to live (18 bytes, value of 8):"
	printf "%.0f (%.0f resident), with redis-server %.0f (%.0f resident).\n", used["tick1"], resident["tick1"],
		used["redis"], resident["redis"]
	printf "\nThousand requests a second by `redis-benchmark`, and CPU time of the server, µs a request. Medians\n"
	printf "of %d rounds. The last three columns are medians of the rounds' quotients of throughputs.\n\n",
		rounds["redis " load_name[1]]
	throughput_table()
}
