/* From the workloads' own sizes, or those of the command line. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/plan.h"

/* More than any candidate needs. */
enum { BYTES_PER_TIMER = 250 };

/* Peers that no option names join groups of this number of threads. */
enum { PEER_THREADS = 2, QUICK_PEER_THREADS = 1 };

/*
 * Unless the number of repetitions is given; peers where groups are slow, and rivals, run once.
 * Most of a rival's time is the warm-up of its runtime.
 */
enum { MOST_PEER_REPS = 2 };

/* From these on, groups are slow, and very slow. */
enum { MANY_TIMERS = 1000000, MOST_TIMERS = 4000000 };

static const uint32_t quick_threads[] = {1, 2}, usual_threads[] = {1, 2, 4}, one_thread[] = {1};

/* The curve over n; that over threads goes to twice the machine's cores, and to four. */
static const uint32_t curve_sizes[] = {1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14,
				       1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19,
				       1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24};
static const uint32_t curve_threads[] = {1,  2,  3,  4,  6,  8,   12,  16,
					 24, 32, 48, 64, 96, 128, 192, 256};

enum {
	CURVE_SIZES = sizeof curve_sizes / sizeof *curve_sizes,
	CURVE_THREADS = sizeof curve_threads / sizeof *curve_threads
};

struct list {
	const uint32_t *items;
	unsigned count;
};

static struct list list_of(const uint32_t *sizes)
{
	struct list list = {sizes, 0};
	while (sizes[list.count] != NO_MORE_SIZES)
		list.count++;
	return list;
}

static bool contains(struct list list, uint32_t number)
{
	for (unsigned i = 0; i < list.count; i++)
		if (list.items[i] == number)
			return true;
	return false;
}

static struct list sizes_of(const struct workload *workload, const struct options *options)
{
	if (options->size_count && !workload->fixed_sizes)
		return (struct list){options->sizes, options->size_count};
	return list_of(options->quick ? workload->quick_sizes : workload->sizes);
}

static struct list threads_of(const struct workload *workload, const struct options *options)
{
	if (!workload->many_threads)
		return (struct list){one_thread, 1};
	if (options->thread_count)
		return (struct list){options->threads, options->thread_count};
	return options->quick ? (struct list){quick_threads, 2} : (struct list){usual_threads, 3};
}

static struct list threads_of_curve(void)
{
	struct list list = {curve_threads, 0};
	while (list.count < CURVE_THREADS &&
	       (curve_threads[list.count] <= 2 * machine_cores() || curve_threads[list.count] <= 4))
		list.count++;
	return list;
}

/*
 * Candidates that the user named, and all with --full or --growth, run wherever they can. Rivals:
 * not with --growth.
 */
static bool usual(const struct group *group, const struct candidate *candidate,
		  const struct options *options)
{
	const struct workload *workload = group->workload;
	if (options->candidate_count || options->full || (options->growth && !candidate->rival))
		return true;
	if (candidate->rival && options->quick)
		return false;
	if (candidate->spared & workload->bit)
		return false;
	if (!candidate->peer || options->size_count || options->thread_count)
		return true;
	struct list sizes =
	    list_of(options->quick ? workload->quick_peer_sizes : workload->peer_sizes);
	return group->threads <= (options->quick ? QUICK_PEER_THREADS : PEER_THREADS) &&
	       contains(sizes, group->n);
}

/* A word for each workload of each candidate is enough. */
static void say_too_many(const struct workload *workload, const struct candidate *candidate,
			 uint32_t most)
{
	static unsigned told[MAX_CANDIDATES]; /* by candidate: of which workloads */
	size_t index = 0;
	while (all_candidates[index] != candidate)
		index++;
	if (!(told[index] & workload->bit))
		fprintf(stderr,
			"bench: %s is left out for %s where n is too large: it takes at most %u "
			"timers here\n",
			workload->name, candidate->name, most);
	told[index] |= workload->bit;
}

/* Workloads need a few slots more than n; for the requests of W9, thousands. */
static bool has_room(const struct group *group, const struct candidate *candidate)
{
	uint64_t more = group->workload->bit == ON_SERVER ? 8192 : 1024;
	uint64_t wanted = (uint64_t)group->n + group->n / 50 + more;
	uint32_t most = candidate_most_slots(candidate);
	if (wanted <= most)
		return true;
	say_too_many(group->workload, candidate, most);
	return false;
}

static bool takes_part(const struct group *group, const struct candidate *candidate,
		       const struct options *options)
{
	return (candidate->workloads & group->workload->bit) &&
	       !(candidate->bare && group->threads > 1) &&
	       options_want_candidate(options, candidate->name) &&
	       usual(group, candidate, options) && has_room(group, candidate);
}

static void choose_candidates(struct group *group, const struct options *options)
{
	for (const struct candidate *const *s = all_candidates;
	     *s && group->candidate_count < MAX_CANDIDATES; s++)
		if (takes_part(group, *s, options))
			group->candidates[group->candidate_count++] = *s;
}

static bool fits(const struct workload *workload, uint32_t n)
{
	uint64_t available = available_memory_bytes();
	if (available == 0 || (uint64_t)n * BYTES_PER_TIMER < available)
		return true;
	fprintf(stderr,
		"bench: %s with n = %u is skipped: it does not fit into the memory that is free\n",
		workload->name, n);
	return false;
}

/*
 * The slowest groups, and those that share cores among threads, get fewer, so that the whole stays
 * below 15 minutes.
 */
static unsigned usual_reps(const struct group *group, const struct options *options)
{
	const struct workload *workload = group->workload;
	unsigned reps = options->quick ? workload->quick_reps : workload->reps, most = reps;
	if (group->threads > machine_cores())
		most = 3;
	if (group->n >= MANY_TIMERS)
		most = 2;
	if (group->n >= MOST_TIMERS)
		most = workload->many_threads ? 2 : 1;
	return reps < most || options->full ? reps : most;
}

/* More threads than cores say nothing new where all wait for memory. */
static bool worth_its_time(uint32_t n, unsigned threads, const struct options *options)
{
	return n < MOST_TIMERS || threads <= machine_cores() || options->full || options->growth ||
	       options->thread_count;
}

static void add_group(struct plan *plan, const struct workload *workload, uint32_t n,
		      unsigned threads, const struct options *options)
{
	struct group group = {.workload = workload, .n = n, .threads = threads};
	if (!worth_its_time(n, threads, options))
		return;
	choose_candidates(&group, options);
	if (group.candidate_count == 0)
		return;
	group.reps = options->reps ? options->reps : usual_reps(&group, options);
	group.run_s = (options->quick ? workload->quick_s : workload->s) +
		      (workload->s_per_timer > 0 ? workload->s_per_timer : 4e-7) * n;
	for (unsigned i = 0; i < group.candidate_count; i++)
		group.runs += plan_reps(&group, group.candidates[i], options);
	plan->groups = realloc(plan->groups, (plan->count + 1) * sizeof *plan->groups);
	if (!plan->groups)
		abort();
	plan->groups[plan->count++] = group;
}

static bool planned(const struct plan *plan, const struct workload *workload, uint32_t n,
		    unsigned threads)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->groups[i].workload == workload && plan->groups[i].n == n &&
		    plan->groups[i].threads == threads)
			return true;
	return false;
}

static void plan_grid(struct plan *plan, const struct workload *workload, struct list sizes,
		      struct list threads, const struct options *options)
{
	for (unsigned i = 0; i < sizes.count; i++)
		for (unsigned j = 0; fits(workload, sizes.items[i]) && j < threads.count; j++)
			if (!planned(plan, workload, sizes.items[i], threads.items[j]))
				add_group(plan, workload, sizes.items[i], threads.items[j],
					  options);
}

/* Over n with one thread and with one for each core; over threads with one n. */
static void plan_curves(struct plan *plan, const struct workload *workload,
			const struct options *options)
{
	const uint32_t one_and_cores[] = {1, machine_cores()};
	struct list sizes = {curve_sizes, CURVE_SIZES},
		    threads = {one_and_cores, workload->many_threads ? 2 : 1};
	plan_grid(plan, workload, sizes, threads, options);
	if (workload->many_threads)
		plan_grid(plan, workload, (struct list){&workload->curve_n, 1}, threads_of_curve(),
			  options);
}

static void plan_workload(struct plan *plan, const struct workload *workload,
			  const struct options *options)
{
	if (!options->growth)
		plan_grid(plan, workload, sizes_of(workload, options),
			  threads_of(workload, options), options);
	if ((options->growth || options->full) && workload->grows)
		plan_curves(plan, workload, options);
}

void plan_make(struct plan *plan, const struct options *options)
{
	*plan = (struct plan){0};
	for (const struct workload *const *w = all_workloads; *w; w++)
		if (options_want_workload(options, (*w)->name) &&
		    !((*w)->named_only && !options->workload_count))
			plan_workload(plan, *w, options);
}

double plan_group_s(const struct group *group)
{
	return group->run_s * group->runs;
}

unsigned plan_reps(const struct group *group, const struct candidate *candidate,
		   const struct options *options)
{
	bool slow = group->workload->bit == ON_FIRE || group->n >= MANY_TIMERS;
	unsigned most = group->reps;
	if (options->reps || options->full)
		return group->reps;
	if (candidate->peer)
		most = slow || candidate->rival ? 1 : MOST_PEER_REPS;
	return most < group->reps ? most : group->reps;
}

bool plan_has(const struct plan *plan, const struct candidate *candidate)
{
	for (size_t i = 0; i < plan->count; i++)
		for (unsigned j = 0; j < plan->groups[i].candidate_count; j++)
			if (plan->groups[i].candidates[j] == candidate)
				return true;
	return false;
}
