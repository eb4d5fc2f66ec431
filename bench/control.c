/* The control thread, and the figures of lateness. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/control.h"
#include "bench/measure.h"

/* Some microseconds, and no memory that others would miss. */
enum { SUM_STEPS = 4096 };

static uint64_t sum_up(uint64_t sum)
{
	for (int i = 0; i < SUM_STEPS; i++)
		sum = sum * UINT64_C(6364136223846793005) + 1;
	return sum;
}

static void work_a_tick(struct control *control, volatile uint64_t *sum)
{
	uint64_t before = thread_cpu_ns();
	*sum = sum_up(*sum);
	uint64_t took = thread_cpu_ns() - before;
	control->sums++;
	control->sum_cpu_ns += took;
	if (took > control->longest_sum_ns)
		control->longest_sum_ns = took;
}

/* A tick that was slept through was late too: each is recorded. */
static void *sleep_from_tick_to_tick(void *me)
{
	struct control *control = me;
	volatile uint64_t sum = 1;
	uint64_t cpu = thread_cpu_ns();
	for (uint64_t next = control->first_ns; next < control->end_ns;) {
		sleep_until_ns(next);
		uint64_t now = now_ns();
		for (; next <= now; next += TICK_NS)
			lateness_add(&control->lateness, now - next);
		work_a_tick(control, &sum);
	}
	control->cpu_ns = thread_cpu_ns() - cpu;
	return NULL;
}

void control_start(struct control *control, uint64_t first_ns, uint64_t end_ns, struct outcome *outcome)
{
	control->first_ns = first_ns;
	control->end_ns = end_ns;
	int error = pthread_create(&control->thread, NULL, sleep_from_tick_to_tick, control);
	if (error)
		outcome_fail(outcome, "no thread: %s", strerror(error));
}

void control_join(struct control *control)
{
	pthread_join(control->thread, NULL);
}

static const struct part {
	const char *name;
	double share;
} parts[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};

enum { PARTS = sizeof parts / sizeof *parts };

static void set_figure(struct outcome *outcome, const char *prefix, const char *part, double value)
{
	char name[FIGURE_NAME_SIZE];
	snprintf(name, sizeof name, "%s_%s_ns", prefix, part);
	outcome_set(outcome, name, value);
}

static void set_distribution(struct outcome *outcome, const char *prefix, const struct lateness *lateness)
{
	for (const struct part *p = parts; p < parts + PARTS; p++)
		set_figure(outcome, prefix, p->name, (double)lateness_percentile_ns(lateness, p->share));
	set_figure(outcome, prefix, "max", (double)lateness->max_ns);
}

void set_lateness(struct outcome *outcome, const struct lateness *lateness, const struct lateness *control)
{
	set_distribution(outcome, "lateness", lateness);
	set_distribution(outcome, "control", control);
	for (const struct part *p = parts; p < parts + PARTS; p++)
		set_figure(outcome, "excess", p->name,
			   (double)lateness_percentile_ns(lateness, p->share) -
			       (double)lateness_percentile_ns(control, p->share));
}

void set_control_ticks(struct outcome *outcome, const struct control *control)
{
	if (!control->sums)
		return;
	outcome_set(outcome, "control_tick_cpu_mean_ns", (double)control->sum_cpu_ns / (double)control->sums);
	outcome_set(outcome, "control_tick_cpu_max_ns", (double)control->longest_sum_ns);
}

void set_ticks(struct outcome *outcome, const struct subject_view *before, const struct subject_view *after)
{
	if (after->ticks == before->ticks)
		return;
	uint64_t ticks = after->ticks - before->ticks;
	outcome_set(outcome, "tick_cpu_mean_ns", (double)(after->tick_cpu_ns - before->tick_cpu_ns) / (double)ticks);
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
