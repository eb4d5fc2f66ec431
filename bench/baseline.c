/* The baseline thread, and the figures of lateness. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/baseline.h"
#include "bench/measure.h"

/* Some microseconds, and no memory that others would miss. */
enum { SUM_STEPS = 4096 };

static uint64_t sum_up(uint64_t sum)
{
	for (int i = 0; i < SUM_STEPS; i++)
		sum = sum * UINT64_C(6364136223846793005) + 1;
	return sum;
}

static void work_a_tick(struct baseline *baseline, volatile uint64_t *sum)
{
	uint64_t before = thread_cpu_ns();
	*sum = sum_up(*sum);
	uint64_t took = thread_cpu_ns() - before;
	baseline->sums++;
	baseline->sum_cpu_ns += took;
	if (took > baseline->longest_sum_ns)
		baseline->longest_sum_ns = took;
}

/* A tick that was slept through was late too: each is recorded. */
static void *sleep_from_tick_to_tick(void *me)
{
	struct baseline *baseline = me;
	volatile uint64_t sum = 1;
	uint64_t cpu = thread_cpu_ns();
	for (uint64_t next = baseline->first_ns; next < baseline->end_ns;) {
		sleep_until_ns(next);
		uint64_t now = now_ns();
		for (; next <= now; next += TICK_NS)
			lateness_add(&baseline->lateness, now - next);
		work_a_tick(baseline, &sum);
	}
	baseline->cpu_ns = thread_cpu_ns() - cpu;
	return NULL;
}

void baseline_start(struct baseline *baseline, uint64_t first_ns, uint64_t end_ns,
		    struct outcome *outcome)
{
	baseline->first_ns = first_ns;
	baseline->end_ns = end_ns;
	int error = pthread_create(&baseline->thread, NULL, sleep_from_tick_to_tick, baseline);
	if (error)
		outcome_fail(outcome, "no thread: %s", strerror(error));
}

void baseline_join(struct baseline *baseline)
{
	pthread_join(baseline->thread, NULL);
}

static const struct part {
	const char *name;
	double share;
} parts[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};

enum { PARTS = sizeof parts / sizeof *parts };

static void set_figure(struct outcome *outcome, const char *prefix, const char *part, double value)
{
	char name[32];
	snprintf(name, sizeof name, "%s_%s_ns", prefix, part);
	outcome_set(outcome, name, value);
}

static void set_distribution(struct outcome *outcome, const char *prefix,
			     const struct lateness *lateness)
{
	for (const struct part *p = parts; p < parts + PARTS; p++)
		set_figure(outcome, prefix, p->name,
			   (double)lateness_percentile_ns(lateness, p->share));
	set_figure(outcome, prefix, "max", (double)lateness->max_ns);
}

void set_lateness(struct outcome *outcome, const struct lateness *lateness,
		  const struct lateness *baseline)
{
	set_distribution(outcome, "lateness", lateness);
	set_distribution(outcome, "baseline", baseline);
	for (const struct part *p = parts; p < parts + PARTS; p++)
		set_figure(outcome, "excess", p->name,
			   (double)lateness_percentile_ns(lateness, p->share) -
			       (double)lateness_percentile_ns(baseline, p->share));
}

void set_baseline_ticks(struct outcome *outcome, const struct baseline *baseline)
{
	if (!baseline->sums)
		return;
	outcome_set(outcome, "baseline_tick_cpu_mean_ns",
		    (double)baseline->sum_cpu_ns / (double)baseline->sums);
	outcome_set(outcome, "baseline_tick_cpu_max_ns", (double)baseline->longest_sum_ns);
}

void set_ticks(struct outcome *outcome, const struct candidate_view *before,
	       const struct candidate_view *after)
{
	if (after->ticks == before->ticks)
		return;
	uint64_t ticks = after->ticks - before->ticks;
	outcome_set(outcome, "tick_cpu_mean_ns",
		    (double)(after->tick_cpu_ns - before->tick_cpu_ns) / (double)ticks);
	outcome_set(outcome, "tick_cpu_max_ns", (double)after->tick_cpu_max_ns);
}

void check_records(const struct records *all, struct outcome *outcome)
{
	outcome_set(outcome, "early", (double)all->early);
	if (all->early)
		outcome_violation(outcome, "%llu timers ran early", (unsigned long long)all->early);
	if (all->wrong)
		outcome_violation(outcome, "%llu runs of timers that had been cancelled or had run",
				  (unsigned long long)all->wrong);
}
