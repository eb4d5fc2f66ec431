/*
 * Adds up the loops' figures while they work. Each number is true; together they may differ by what
 * is in flight.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "examples/server/ban.h"
#include "examples/server/loop.h"
#include "examples/server/report.h"

static const char *const kind_names[TIMEOUT_KINDS] = {"head", "request", "idle", "answer"};

static void line(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static void lateness_lines(FILE *out, const char *name, const struct lateness *l)
{
	fprintf(out, "%s_count %" PRIu64 "\n%s_early %" PRIu64 "\n", name, count_of(&l->count),
		name, count_of(&l->early));
	fprintf(out, "%s_p50_ns %" PRIu64 "\n%s_p99_ns %" PRIu64 "\n%s_max_ns %" PRIu64 "\n", name,
		lateness_percentile_ns(l, 50), name, lateness_percentile_ns(l, 99), name,
		count_of(&l->max_ns));
}

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	if (f != NULL) {
		if (fscanf(f, "%*u %lu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_counters(struct loop_figures *sum, const struct loop_figures *from)
{
	count_up(&sum->accepted, count_of(&from->accepted));
	count_up(&sum->closed, count_of(&from->closed));
	count_up(&sum->requests, count_of(&from->requests));
	count_up(&sum->malformed, count_of(&from->malformed));
	count_up(&sum->refused, count_of(&from->refused));
	count_up(&sum->full, count_of(&from->full));
	count_up(&sum->stale, count_of(&from->stale));
}

static void add(struct loop_figures *sum, const struct loop_figures *from)
{
	add_counters(sum, from);
	for (unsigned kind = 0; kind < TIMEOUT_KINDS; kind++)
		lateness_merge(&sum->lateness[kind], &from->lateness[kind]);
	lateness_merge(&sum->hand_back, &from->hand_back);
	lateness_merge(&sum->turn, &from->turn);
}

static void loop_lines(FILE *out, const struct loop_figures *sum)
{
	line(out, "open", count_of(&sum->accepted) - count_of(&sum->closed));
	line(out, "accepted", count_of(&sum->accepted));
	line(out, "requests", count_of(&sum->requests));
	line(out, "malformed", count_of(&sum->malformed));
	line(out, "refused", count_of(&sum->refused));
	line(out, "full", count_of(&sum->full));
	line(out, "stale", count_of(&sum->stale));
	lateness_lines(out, "hand_back", &sum->hand_back);
	lateness_lines(out, "turn", &sum->turn);
}

/* All kinds together, and bans: the lateness of the service as this server sees it. */
static void timeout_lines(FILE *out, const struct loop_figures *sum)
{
	struct ban_figures bans;
	struct lateness all = {0};
	for (unsigned kind = 0; kind < TIMEOUT_KINDS; kind++) {
		lateness_lines(out, kind_names[kind], &sum->lateness[kind]);
		lateness_merge(&all, &sum->lateness[kind]);
	}
	ban_figures(&bans);
	line(out, "bans_begun", bans.begun);
	line(out, "bans_lifted", bans.lifted);
	lateness_lines(out, "ban", &bans.lateness);
	lateness_merge(&all, &bans.lateness);
	lateness_lines(out, "all", &all);
}

static void service_lines(FILE *out, tw_service *service)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	tw_service_stats(service, &stats);
	line(out, "scheduled", stats.scheduled);
	line(out, "fired", stats.fired);
	line(out, "cancelled", stats.cancelled);
	line(out, "dropped", stats.dropped);
	line(out, "pending", stats.pending);
	line(out, "rejected", stats.rejected);
	line(out, "touched", stats.resets);
	line(out, "wakeups", stats.wakeups);
	line(out, "tick_cpu_ns", stats.tick_cpu_ns);
	line(out, "timer_bytes", stats.memory_bytes);
	line(out, "handover_p50_ns", stats.lateness.p50_ns);
	line(out, "handover_p99_ns", stats.lateness.p99_ns);
	line(out, "handover_max_ns", stats.lateness.max_ns);
	line(out, "wait_p50_ns", stats.wait.p50_ns);
	line(out, "wait_p99_ns", stats.wait.p99_ns);
	line(out, "wait_max_ns", stats.wait.max_ns);
}

bool report(const struct server *server, char **text, size_t *length)
{
	struct loop_figures *sum = calloc(1, sizeof(*sum));
	FILE *out = sum != NULL ? open_memstream(text, length) : NULL;
	if (out == NULL) {
		free(sum);
		return false;
	}
	for (size_t i = 0; i < server->loop_count; i++)
		add(sum, &server->loops[i].figures);
	loop_lines(out, sum);
	timeout_lines(out, sum);
	service_lines(out, server->service);
	line(out, "resident_bytes", resident_bytes());
	free(sum);
	return fclose(out) == 0;
}
