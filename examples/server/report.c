/*
 * Adds up the loops' figures while they work. Each number is true; together they may differ by what
 * is in flight.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "examples/server/loop.h"
#include "tickwheel/layers.h"

bool report(const struct server *server, FILE *out)
{
	static const char *const names[] = {"accepted",         "closed",        "requests",
					    "malformed",        "full",          "timeouts_head",
					    "timeouts_request", "timeouts_idle", "answers_slow"};
	struct tw_service_stats s = {.size = sizeof(s)};
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		uint64_t sum = 0;
		for (size_t i = 0; i < server->loop_count; i++)
			sum += (&server->loops[i].figures.accepted)[k];
		fprintf(out, "%s %" PRIu64 "\n", names[k], sum);
	}
	tw_service_stats(server->service, &s);
	fprintf(out,
		"scheduled %" PRIu64 "\nruns %" PRIu64 "\npending %" PRIu64 "\nmoved %" PRIu64
		"\nrejected %" PRIu64 "\nwakeups %" PRIu64 "\n",
		s.scheduled, s.runs, s.pending, s.resets, s.rejected, s.wakeups);
	fprintf(out,
		"lateness_p50_ns %" PRIu64 "\nlateness_p99_ns %" PRIu64 "\nlateness_max_ns %" PRIu64
		"\ntimer_bytes %" PRIu64 "\n",
		s.lateness.p50_ns, s.lateness.p99_ns, s.lateness.max_ns, s.memory_bytes);
	return true;
}

bool metrics(const struct server *server, FILE *out)
{
	return tw_service_stats_prometheus(server->service, out) == 0;
}

bool page(const struct server *server, page_fn *write, char **text, size_t *length)
{
	FILE *out = open_memstream(text, length);
	return out != NULL && write(server, out) & (fclose(out) == 0);
}
