/* Strands that their own running task destroys, while another thread waits in a call on them. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/shot.h"
#include "test/support/strands.h"

TestSuite(strand_real_ends, .timeout = 60);

enum { ROUNDS = 200 };

struct ending {
	tw_strand *strand;
	atomic_int running, released, destroyed;
};

/* Destroys its strand as soon as another thread sleeps in a call on it. */
static void destroy_own_when_waited_for(void *arg)
{
	struct ending *ending = arg;
	atomic_store(&ending->running, 1);
	await_strand_sleeper(ending->strand);
	tw_strand_destroy(ending->strand);
}

static void destroy_own_when_released(void *arg)
{
	struct ending *ending = arg;
	atomic_store(&ending->running, 1);
	while (!atomic_load(&ending->released))
		sched_yield();
	tw_strand_destroy(ending->strand);
	atomic_store(&ending->destroyed, 1);
}

/* The rest of the task's run, which frees the strand, is given time to come first. */
static void let_the_task_destroy(void *arg, enum tw_fate fate)
{
	struct ending *ending = arg;
	atomic_store(&ending->released, 1);
	for (int i = 0; i < 100; i++)
		sched_yield();
}

static tw_strand_task_id begin(struct ending *ending, tw_service *service, tw_fn *fn)
{
	tw_strand_task_id task;
	*ending = (struct ending){0};
	expect_eq(tw_strand_create(&ending->strand, service, NULL), 0);
	expect_eq(tw_strand_schedule(ending->strand, 0, fn, ending, &task), 0);
	while (!atomic_load(&ending->running))
		sched_yield();
	return task;
}

static tw_service *begin_service(void)
{
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 2};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

/* Each destroyed strand has been freed: else the service could not be destroyed. */
static void end_service(tw_service *service)
{
	expect_eq(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(tw_service_destroy(service), 0);
}

Test(strand_real_ends, a_task_destroys_its_strand_while_another_thread_waits)
{
	tw_service *service = begin_service();
	struct ending ending;
	for (int round = 0; round < 2 * ROUNDS; round++) {
		tw_strand_task_id task = begin(&ending, service, destroy_own_when_waited_for);
		if (round % 2)
			expect_eq(tw_strand_close(ending.strand, TW_FOREVER), 0);
		else
			expect_eq(tw_strand_cancel_wait(ending.strand, task, TW_FOREVER),
				  TW_FINISHED);
	}
	end_service(service);
}

static void no_task(void *arg)
{
}

/*
 * The release of a task that waits behind the running one lets that one destroy the strand, in the
 * middle of the call that ends the task. In a third of the rounds the work of another strand waits
 * behind both, so that a close hands it over after the strand has gone.
 */
Test(strand_real_ends, a_task_destroys_its_strand_while_another_thread_ends_a_task)
{
	enum { CANCEL, CLOSE, CLOSE_BEFORE_WORK, WAYS };
	tw_service *service = begin_service();
	struct ending ending;
	for (int round = 0; round < WAYS * ROUNDS; round++) {
		tw_strand *upper;
		tw_strand_task_id behind;
		struct tw_strand_task spec = {.size = sizeof spec,
					      .fn = no_task,
					      .arg = &ending,
					      .release = let_the_task_destroy};
		begin(&ending, service, destroy_own_when_released);
		if (round % WAYS == CLOSE_BEFORE_WORK)
			expect_eq(
			    tw_strand_create(&upper, service, tw_strand_executor(ending.strand)),
			    0);
		expect_eq(tw_strand_submit_task(ending.strand, &spec, &behind), 0);
		if (round % WAYS == CLOSE_BEFORE_WORK) {
			expect_eq(tw_strand_submit(upper, no_task, NULL), 0);
			expect_eq(tw_strand_destroy(upper), 0);
		}
		if (round % WAYS == CANCEL) {
			expect_eq(tw_strand_cancel(ending.strand, behind), TW_CANCELLED);
		} else {
			int r = tw_strand_close(ending.strand, 0);
			cr_assert(r == 0 || r == -ETIMEDOUT); /* the task still runs */
		}
		while (!atomic_load(&ending.destroyed)) /* the call waits for no task */
			sched_yield();
	}
	end_service(service);
}
