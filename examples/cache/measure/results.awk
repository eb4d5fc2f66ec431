# results.awk: reads the results of run.sh, for table.awk and figures.awk.

function value(name,   i) {
	for (i = 2; i <= NF; i++)
		if (index($i, name "=") == 1)
			return substr($i, length(name) + 2)
	return ""
}

function median(list, n,   i, k, t) {
	for (i = 2; i <= n; i++)
		for (k = i; k > 1 && list[k] < list[k - 1]; k--) { t = list[k]; list[k] = list[k - 1]; list[k - 1] = t }
	return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

function of_rounds(what, key,   list, i) {
	for (i = 1; i <= rounds[key]; i++)
		list[i] = seen[what, key, i] + 0
	return median(list, rounds[key])
}

# The rounds' quotients. A round's runs are close in time, so the machine is the same.
function quotients(list, server, load,   i) {
	for (i = 1; i <= rounds["redis " load]; i++)
		list[i] = seen["rate", server " " load, i] / seen["rate", "redis " load, i]
	return rounds["redis " load]
}

function beside_redis(server, load,   list, n) {
	n = quotients(list, server, load)
	return median(list, n)
}

# The chance that a coin tossed n times shows heads k times or less.
function chance(k, n,   i, ways, sum) {
	ways = 1
	for (i = 0; i <= k; i++) {
		sum += ways
		ways *= (n - i) / (i + 1)
	}
	return sum / 2 ^ n
}

# 1: the median of the quotients is at least aim. -1: it is below, and chance alone would put as many rounds
# there in at most one of sixteen cells. 0: it is below, but the rounds disagree.
function reaches(aim, server, load,   list, i, n, good) {
	n = quotients(list, server, load)
	for (i = 1; i <= n; i++)
		good += list[i] >= aim
	return median(list, n) >= aim ? 1 : chance(good, n) <= 1 / 16 ? -1 : 0
}

# Counts the cells for the verdict. Two threads: a cell that the null server does not reach either is
# beyond what this machine can show.
function judge(   i, load, two) {
	for (i = 1; i <= load_count; i++) {
		load = load_name[i]
		one_thread[reaches(1, "tick1", load)]++
		two = reaches(1.5, "tick2", load)
		if (two < 1 && reaches(1.5, "null", load) < 1)
			beyond++
		else
			two_threads[two]++
	}
}

$1 == "memory" { used[value("server")] = value("used_bytes"); resident[value("server")] = value("resident_bytes") }

$1 == "expiry" {
	server = value("server"); cell = value("cell")
	if (!(cell in cells)) { cells[cell] = ++cell_count; cell_name[cell_count] = cell }
	p50[server, cell] = value("p50_ms"); p99[server, cell] = value("p99_ms"); most[server, cell] = value("max_ms")
	keys[cell] = value("keys"); arrived[server, cell] = value("arrived"); left[server, cell] = value("left")
	control[server, cell] = value("control_p99_ms"); memory_after[server, cell] = value("after_mib")
	memory_loaded[server, cell] = value("loaded_mib")
	early[server] += value("early") + value("gone_early"); twice[server] += value("twice")
	visible[server] += value("visible"); probes[server] += value("probes")
	lost[server] += value("keys") - value("arrived")
}

$1 == "throughput" {
	key = value("server") " " value("test") " " value("clients") " " value("pipeline")
	load = value("test") " " value("clients") " " value("pipeline")
	if (!(load in loads)) { loads[load] = ++load_count; load_name[load_count] = load }
	rounds[key]++
	seen["rate", key, rounds[key]] = value("rate"); seen["cpu", key, rounds[key]] = value("cpu_us")
}
