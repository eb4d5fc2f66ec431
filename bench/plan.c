/* From the workloads' own sizes, or those of the command line. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/plan.h"

/* More than any subject needs. */
enum { BYTES_PER_TIMER = 250 };

static const uint32_t quick_threads[] = {1, 2}, usual_threads[] = {1, 2, 4}, one_thread[] = {1};

struct list {
	const uint32_t *items;
	unsigned count;
};

static struct list sizes_of(const struct workload *workload, const struct options *options)
{
	if (options->size_count && !workload->fixed_sizes)
		return (struct list){options->sizes, options->size_count};
	struct list list = {options->quick ? workload->quick_sizes : workload->sizes, 0};
	while (list.items[list.count] != NO_MORE_SIZES)
		list.count++;
	return list;
}

static struct list threads_of(const struct workload *workload, const struct options *options)
{
	if (!workload->many_threads)
		return (struct list){one_thread, 1};
	if (options->thread_count)
		return (struct list){options->threads, options->thread_count};
	return options->quick ? (struct list){quick_threads, 2} : (struct list){usual_threads, 3};
}

static void choose_subjects(struct group *group, const struct options *options)
{
	for (const struct subject *const *s = all_subjects; *s && group->subject_count < MAX_SUBJECTS; s++)
		if (((*s)->workloads & group->workload->bit) && !((*s)->bare && group->threads > 1) &&
		    options_want_subject(options, (*s)->name))
			group->subjects[group->subject_count++] = *s;
}

static bool fits(const struct workload *workload, uint32_t n)
{
	uint64_t available = available_memory_bytes();
	if (available == 0 || (uint64_t)n * BYTES_PER_TIMER < available)
		return true;
	fprintf(stderr, "bench: %s with n = %u is skipped: it does not fit into the memory that is free\n",
		workload->name, n);
	return false;
}

/* The slowest groups, and those that share cores among threads, get fewer, so that the whole stays below 15 minutes. */
static unsigned usual_reps(const struct group *group, const struct options *options)
{
	enum { MANY_TIMERS = 10000000, FEW_REPS = 3 };
	unsigned reps = options->quick ? group->workload->quick_reps : group->workload->reps;
	bool slow = group->n >= MANY_TIMERS || group->threads > machine_cores();
	return slow && reps > FEW_REPS ? FEW_REPS : reps;
}

static void add_group(struct plan *plan, const struct workload *workload, uint32_t n, unsigned threads,
		      const struct options *options)
{
	struct group group = {.workload = workload, .n = n, .threads = threads};
	choose_subjects(&group, options);
	if (group.subject_count == 0)
		return;
	group.reps = options->reps ? options->reps : usual_reps(&group, options);
	group.run_s = (options->quick ? workload->quick_s : workload->s) + 4e-7 * n;
	plan->groups = realloc(plan->groups, (plan->count + 1) * sizeof *plan->groups);
	if (!plan->groups)
		abort();
	plan->groups[plan->count++] = group;
}

static void plan_workload(struct plan *plan, const struct workload *workload, const struct options *options)
{
	struct list sizes = sizes_of(workload, options), threads = threads_of(workload, options);
	for (unsigned i = 0; i < sizes.count; i++)
		for (unsigned j = 0; fits(workload, sizes.items[i]) && j < threads.count; j++)
			add_group(plan, workload, sizes.items[i], threads.items[j], options);
}

void plan_make(struct plan *plan, const struct options *options)
{
	*plan = (struct plan){0};
	for (const struct workload *const *w = all_workloads; *w; w++)
		if (options_want_workload(options, (*w)->name))
			plan_workload(plan, *w, options);
}

double plan_group_s(const struct group *group)
{
	return group->run_s * group->reps * group->subject_count;
}
