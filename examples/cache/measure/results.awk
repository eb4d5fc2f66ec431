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

# The median of the rounds' quotients: a round's runs are close in time, so the machine is the same.
function beside_redis(server, load,   list, i) {
	for (i = 1; i <= rounds["redis " load]; i++)
		list[i] = seen["rate", server " " load, i] / seen["rate", "redis " load, i]
	return median(list, rounds["redis " load])
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
