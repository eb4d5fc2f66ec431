# table.awk: the results of run.sh (results.awk reads them) as tables for people, and the verdict.
# Exit status 1: a promise is broken.

function ms(text) { return text == "inf" ? sprintf("%10s", "-") : sprintf("%10.2f", text) }

function rate_and_cpu(server, load) {
	return sprintf(" %8d (%5.2f)", of_rounds("rate", server " " load), of_rounds("cpu", server " " load))
}

function aim(reached, text) {
	printf "  %-8s %s\n", reached ? "reached" : "MISSED", text
}

function promise(kept, text) {
	printf "  %-8s %s\n", kept ? "kept" : "BROKEN", text
	if (!kept)
		broken = 1
}

END {
	print "Lateness of `expired` events, deadline to arrival, ms. \"-\": not within 3 s of the last deadline."
	printf "  %-18s %-10s %10s %10s %10s %10s  %s\n", "keys", "server", "p50", "p99", "max",
		"control p99", "events, keys still held"
	for (i = 1; i <= cell_count; i++) {
		cell = cell_name[i]
		for (s = 1; s <= 2; s++) {
			server = s == 1 ? "redis" : "tick1"
			printf "  %-18s %-10s %s %s %s %10.2f  %d of %d, %d held\n",
				s == 1 ? cell : "", s == 1 ? "redis" : "tickcache", \
				ms(p50[server, cell]), ms(p99[server, cell]), ms(most[server, cell]),
				control[server, cell], \
				arrived[server, cell], keys[cell], left[server, cell]
		}
	}
	print "\nBytes a key with a time to live, of 500,000 (18 bytes of key, 8 of value)"
	printf "  %-18s %10s %10s\n", "", "used", "resident"
	printf "  %-18s %10.1f %10.1f\n", "redis", used["redis"], resident["redis"]
	printf "  %-18s %10.1f %10.1f\n", "tickcache", used["tick1"], resident["tick1"]
	if ("100k-alone" in cells) {
		print "\nResident MiB: loaded with 100,000 keys, and 3 s after all of them have expired"
		printf "  %-18s %10.1f %10.1f\n", "redis", memory_loaded["redis", "100k-alone"],
			memory_after["redis", "100k-alone"]
		printf "  %-18s %10.1f %10.1f\n", "tickcache", memory_loaded["tick1", "100k-alone"],
			memory_after["tick1", "100k-alone"]
	}
	print "\nredis-benchmark, requests a second; in brackets the server's CPU time, us a request."
	printf "Medians of %d rounds.\n", rounds["redis " load_name[1]]
	print "The null server has two threads, counts requests and answers +OK."
	print "Client and kernel leave no more to any server."
	printf "  %-5s %7s %8s %16s %16s %16s %16s %8s %8s %8s\n", "", "", "", "",
		"tickcache,", "tickcache,", "null server,", "1 thread", "2 threads", "null"
	printf "  %-5s %7s %8s %16s %16s %16s %16s %8s %8s %8s\n", "test", "clients", "pipeline", "redis",
		"1 thread", "2 threads", "2 threads", "/ redis", "/ redis", "/ redis"
	for (i = 1; i <= load_count; i++) {
		split(load_name[i], part, " ")
		one = beside_redis("tick1", load_name[i])
		two = beside_redis("tick2", load_name[i])
		top = beside_redis("null", load_name[i])
		printf "  %-5s %7d %8d%s%s%s%s %8.2f %8.2f %8.2f\n", part[1], part[2], part[3], \
			rate_and_cpu("redis", load_name[i]), rate_and_cpu("tick1", load_name[i]), \
			rate_and_cpu("tick2", load_name[i]), rate_and_cpu("null", load_name[i]), one, two, top
	}
	printf "\nVerdict for tickcache (%d s)\n", took
	if (cell_count == 0) {
		print "  expiry was not measured"
		exit 1
	}
	promise(early["tick1"] == 0, "nothing early: " early["tick1"] + 0 " of all events and reads")
	promise(lost["tick1"] == 0 && twice["tick1"] == 0,
		"nothing lost: each key's event came once; " lost["tick1"] + 0 " missing, " twice["tick1"] + 0 " twice")
	promise(visible["tick1"] == 0,
		"nothing visible after its deadline: " visible["tick1"] + 0 " of " probes["tick1"] + 0 " reads")
	worst = 0
	for (i = 1; i <= cell_count; i++)
		if (cell_name[i] ~ /500k/) {
			over = p99["tick1", cell_name[i]] == "inf" ? 1e9 : \
				p99["tick1", cell_name[i]] - control["tick1", cell_name[i]]
			worst = over > worst ? over : worst
		}
	aim(worst <= 3, sprintf("beside 500k keys p99 is at most 3 ms beyond the control thread's: %.2f ms", worst))
	aim(used["tick1"] <= used["redis"] && resident["tick1"] <= resident["redis"],
		"memory a key at most that of Redis")
	if (load_count == 0)
		exit broken
	judge()
	aim(!one_thread[-1], sprintf("throughput with 1 thread at least that of Redis: in %d cells; in %d the rounds " \
		"disagree; below in %d", one_thread[1], one_thread[0], one_thread[-1]))
	aim(!two_threads[-1], sprintf("throughput with 2 threads at least 1.5 times that of Redis: in %d cells; " \
		"in %d the rounds disagree; below in %d; in %d the null server does not reach it either", \
		two_threads[1], two_threads[0], two_threads[-1], beyond))
	exit broken
}
