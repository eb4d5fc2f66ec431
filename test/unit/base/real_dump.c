/*
 * How long a dump of 1,000 objects holds up a submit. The dump looks at an object under the list's
 * lock and the object's own, and then writes without a lock. So the time between two writes is the
 * longest that a submit may wait for the dump.
 */
#include <stdint.h>

#include "executor/base/living.h"
#include "test/support/rig_suite.h"

TestSuite(base_real_dump, .init = open_rig, .fini = close_rig, .timeout = 60);

enum { EACH = 250, OBJECTS = 4 * EACH, VISITS = 40, MOST_NS = 10000 };

static tw_strand *strands[EACH];
static tw_semaphore *semaphores[EACH];
static tw_scheduler *schedulers[EACH];
static tw_limiter *limiters[EACH];

static uint64_t now_ns(void)
{
	return tw_clock_now(tw_clock_monotonic());
}

static void nothing(void *arg)
{
	(void)arg;
}

static int job(void *arg, struct tw_job_run *run)
{
	(void)arg;
	(void)run;
	return 0;
}

static int turn(struct tw_turn *turn_, void *arg)
{
	(void)turn_;
	(void)arg;
	return TW_TURN_DONE;
}

/* Each has something that waits, and has run something. */
static void create_all(void)
{
	struct tw_scheduler_config turns = {.size = sizeof turns, .name = "of turns"};
	struct tw_limiter_config jobs = {.size = sizeof jobs,
					 .max_concurrency = 1,
					 .rate_starts = 1,
					 .rate_interval_ns = SECOND,
					 .name = "of jobs"};
	for (int i = 0; i < EACH; i++) {
		expect_eq(tw_strand_create(&strands[i], rig.service, NULL), 0);
		expect_eq(tw_strand_submit(strands[i], nothing, NULL), 0);
		expect_eq(tw_semaphore_create(&semaphores[i], rig.service, NULL, 1), 0);
		expect_eq(tw_scheduler_create(&schedulers[i], rig.service, &turns), 0);
		expect_eq(tw_scheduler_submit(schedulers[i], TW_PRIORITY_NORMAL, turn, NULL, NULL),
			  0);
		expect_eq(tw_limiter_create(&limiters[i], rig.service, &jobs), 0);
		for (int n = 0; n < 3; n++)
			expect_eq(tw_limiter_submit(limiters[i], job, NULL, NULL), 0);
	}
	rig_advance(&rig, MS);
	for (int i = 0; i < EACH; i++)
		expect_eq(tw_strand_submit(strands[i], nothing, NULL), 0);
}

static void destroy_all(void)
{
	for (int i = 0; i < EACH; i++)
		tw_limiter_close(limiters[i], TW_CLOSE_DROP, 0);
	rig_advance(&rig, MS);
	for (int i = 0; i < EACH; i++) {
		expect_eq(tw_strand_destroy(strands[i]), 0);
		expect_eq(tw_semaphore_destroy(semaphores[i]), 0);
		expect_eq(tw_scheduler_destroy(schedulers[i]), 0);
		expect_eq(tw_limiter_destroy(limiters[i]), 0);
	}
}

static uint64_t began_ns, shortest_ns[OBJECTS];
static unsigned seen;

static void note(void *context, const struct tw__seen_object *object)
{
	uint64_t held_ns = now_ns() - began_ns;
	(void)context;
	(void)object;
	cr_assert_lt(seen, OBJECTS);
	if (held_ns < shortest_ns[seen])
		shortest_ns[seen] = held_ns;
	seen++;
	began_ns = now_ns();
}

/* Of each object the shortest look counts: the others were interrupted. */
Test(base_real_dump, a_submit_waits_for_no_dump_of_1000_objects_for_10_us)
{
	uint64_t longest_ns = 0;
	create_all();
	for (int i = 0; i < OBJECTS; i++)
		shortest_ns[i] = UINT64_MAX;
	for (int i = 0; i < VISITS; i++) {
		seen = 0;
		began_ns = now_ns();
		tw__living_visit(rig.service, note, NULL);
		expect_eq(seen, OBJECTS);
	}
	for (int i = 0; i < OBJECTS; i++)
		longest_ns = shortest_ns[i] > longest_ns ? shortest_ns[i] : longest_ns;
	cr_log_info("the longest look: %llu ns", (unsigned long long)longest_ns);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	expect_le(longest_ns, MOST_NS);
#endif
	destroy_all();
}
