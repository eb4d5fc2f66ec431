/* Strands on a running clock: when delayed tasks are due, and what runs on the tick thread. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "executor/strand/internal.h"
#include "test/support/shot.h"

TestSuite(strand_real_time, .timeout = 60);

/* Delayed tasks on the running clock: not early, in order of their delays. */
struct due {
	tw_service *service;
	uint64_t at_ns;
	int early;
	sem_t *done;
};

static void check_due(void *arg)
{
	struct due *due = arg;
	due->early = tw_service_now(due->service) < due->at_ns;
	sem_post(due->done);
}

Test(strand_real_time, delayed_tasks_are_never_early)
{
	tw_service *service = open_service(2);
	tw_strand *strand;
	static struct due dues[500];
	uint64_t seed = 3;
	sem_t done;
	sem_init(&done, 0, 0);
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	for (int i = 0; i < 500; i++) {
		uint64_t delay_ns = random_below(&seed, 100 * MS);
		dues[i] = (struct due){service, tw_service_now(service) + delay_ns, 0, &done};
		expect_eq(tw_strand_schedule(strand, delay_ns, check_due, &dues[i], NULL), 0);
	}
	await(&done, 500);
	for (int i = 0; i < 500; i++)
		expect_eq(dues[i].early, 0);
	expect_eq(tw_strand_destroy(strand), 0);
	close_service(service);
	sem_destroy(&done);
}

/* ------------------------------------------------------------- on the tick thread */

enum { TIMERS = 1 << 16 };

struct on_driver {
	tw_service *service;
	tw_strand *strands[2];
	tw_scheduler *scheduler;
	tw_timer *timers;
	int filled;
	int submitted, posted;
	atomic_int answer;
};

static void never(void *arg)
{
}

static int never_turn(struct tw_turn *turn, void *arg)
{
	return TW_TURN_DONE;
}

static void destroy_scheduler(void *arg)
{
	struct on_driver *on = arg;
	on->answer = tw_scheduler_destroy(on->scheduler);
}

/* The work that destroys the scheduler is the driver's. A task that needs a timer finds no room. */
static void make_ready(void *arg)
{
	struct on_driver *on = arg;
	const struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = never_turn, .delay_ns = TW_SECOND};
	while (on->filled < TIMERS &&
	       !tw_schedule(on->service, 3600 * TW_SECOND, never, NULL, &on->timers[on->filled]))
		on->filled++;
	on->submitted = tw_strand_submit(on->strands[1], destroy_scheduler, on);
	on->posted = tw_scheduler_submit_task(on->scheduler, &post, NULL);
}

Test(strand_real_time, what_waits_for_the_driver_is_not_waited_for_on_its_thread)
{
	struct tw_service_config config = {.size = sizeof config, .workers = 1, .max_timers = 16};
	static tw_timer timers[TIMERS];
	struct on_driver on = {.timers = timers, .answer = 1};
	expect_eq(tw_service_create(&on.service, &config), 0);
	expect_eq(tw_scheduler_create(&on.scheduler, on.service, NULL), 0);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_strand_create(&on.strands[i], on.service, tw_executor_inline()), 0);
	expect_eq(tw_strand_submit(on.strands[0], make_ready, &on), 0);
	while (on.answer == 1)
		sched_yield();
	expect_eq(on.answer, 0);
	expect_eq(on.submitted, 0);
	expect_eq(on.posted, -EAGAIN);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_strand_destroy(on.strands[i]), 0);
	expect_eq(tw_service_destroy(on.service), 0);
}

/*
 * Equal delays that are submitted one after the other are due in that order, to the nanosecond,
 * although the estimate that replaces the clock elsewhere may fall by microseconds.
 */
Test(strand_real_time, instants_of_equal_delays_never_fall)
{
	tw_service *service;
	tw_strand *strand;
	const struct tw_service_config roomy = {.size = sizeof roomy,
						/* should nobody drain meanwhile */
						.lane_entries = 4 << 20};
	expect_eq(tw_service_create(&service, &roomy), 0);
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	uint64_t last_ns = 0;
	for (int i = 0; i < 1000000; i++) {
		tw_strand_task_id handle;
		expect_eq(tw_strand_schedule(strand, 3600 * TW_SECOND, never, NULL, &handle), 0);
		struct tw__node *node = tw__node_find(&tw__strands_of(service)->tasks, handle.id);
		uint64_t due_ns = ((struct tw__task_node *)(void *)node)->due_ns;
		expect_ge(due_ns, last_ns);
		last_ns = due_ns;
		expect_eq(tw_strand_cancel(strand, handle), TW_CANCELLED);
	}
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_service_destroy(service), 0);
}
