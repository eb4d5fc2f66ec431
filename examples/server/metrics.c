/*
 * Written to be copied: it knows nothing of this server, only a service. Times are seconds, as Prometheus wants them. The summaries have no
 * _sum, since the service keeps distributions and not sums.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "examples/server/metrics.h"

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP tickwheel_%s %s\n# TYPE tickwheel_%s %s\n", name, help, name, type);
}

static void figure(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	head(out, name, type, help);
	fprintf(out, "tickwheel_%s %" PRIu64 "\n", name, value);
}

static void seconds(FILE *out, const char *name, const char *type, const char *help, uint64_t ns)
{
	head(out, name, type, help);
	fprintf(out, "tickwheel_%s %.9f\n", name, (double)ns / 1e9);
}

static void distribution(FILE *out, const char *name, const char *help, const struct tw_latency *l)
{
	char most[64];
	head(out, name, "summary", help);
	fprintf(out, "tickwheel_%s{quantile=\"0.5\"} %.9f\n", name, (double)l->p50_ns / 1e9);
	fprintf(out, "tickwheel_%s{quantile=\"0.99\"} %.9f\n", name, (double)l->p99_ns / 1e9);
	fprintf(out, "tickwheel_%s{quantile=\"0.999\"} %.9f\n", name, (double)l->p999_ns / 1e9);
	fprintf(out, "tickwheel_%s_count %" PRIu64 "\n", name, l->count);
	snprintf(most, sizeof(most), "max_%s", name);
	seconds(out, most, "gauge", "The longest of these so far.", l->max_ns);
}

/* The ledger: scheduled is the sum of all ends and of what is pending. */
static void ledger(FILE *out, const struct tw_service_stats *s)
{
	figure(out, "timers_scheduled_total", "counter", "Timers accepted; a periodic one counts once.", s->scheduled);
	head(out, "timers_ended_total", "counter", "Timers that have come to their end, by how.");
	fprintf(out, "tickwheel_timers_ended_total{fate=\"fired\"} %" PRIu64 "\n", s->fired);
	fprintf(out, "tickwheel_timers_ended_total{fate=\"cancelled\"} %" PRIu64 "\n", s->cancelled);
	fprintf(out, "tickwheel_timers_ended_total{fate=\"dropped\"} %" PRIu64 "\n", s->dropped);
	fprintf(out, "tickwheel_timers_ended_total{fate=\"late\"} %" PRIu64 "\n", s->late_dropped);
	figure(out, "timers_pending", "gauge", "Timers that wait.", s->pending);
	figure(out, "timers_rejected_total", "counter", "Schedules refused for want of room, or closed.", s->rejected);
}

static void work(FILE *out, const struct tw_service_stats *s)
{
	figure(out, "runs_total", "counter", "Callbacks that have returned.", s->runs);
	figure(out, "overruns_total", "counter", "Instants that periodic timers missed.", s->overruns);
	figure(out, "resets_total", "counter", "Timers moved.", s->resets);
	figure(out, "refused_total", "counter", "Hand-overs that an executor refused.", s->refused);
	figure(out, "wakeups_total", "counter", "Times the tick thread woke up.", s->wakeups);
	figure(out, "turns_total", "counter", "Turns of the wheel with something to do.", s->ticks);
	seconds(out, "tick_cpu_seconds_total", "counter", "CPU time of these turns.", s->tick_cpu_ns);
	seconds(out, "tick_cpu_max_seconds", "gauge", "CPU time of the longest of them.", s->tick_cpu_max_ns);
	figure(out, "clock_steps_total", "counter", "Times the clock was seen to step back.", s->clock_steps);
	figure(out, "wheel_entries", "gauge", "Entries in the wheel, dead ones included.", s->entries);
	figure(out, "threads", "gauge", "Living threads that have used the service.", s->threads);
	figure(out, "memory_bytes", "gauge", "Memory held for timers.", s->memory_bytes);
}

bool metrics(tw_service *service, char **text, size_t *length)
{
	struct tw_service_stats s = {.size = sizeof(s)};
	if (tw_service_stats(service, &s) != 0)
		return false;
	FILE *out = open_memstream(text, length);
	if (out == NULL)
		return false;
	ledger(out, &s);
	work(out, &s);
	distribution(out, "lateness_seconds", "From a timer's tick to its hand-over.", &s.lateness);
	distribution(out, "wait_seconds", "From hand-over to the start of the callback.", &s.wait);
	distribution(out, "run_seconds", "Duration of callbacks.", &s.run);
	return fclose(out) == 0;
}
