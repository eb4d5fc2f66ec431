/* A scheduler that always has work, and timers, on the one thread of both. */
#include <sched.h>
#include <stdatomic.h>

#include "test/support/host_suite.h"

TestSuite(scheduler_shared_host, .timeout = 60);

enum { ROUNDS = 30 };

static atomic_uint turns, allowed, beats, turns_at_beat;
static atomic_bool over;

static void beat(void *arg)
{
	turns_at_beat = turns;
	beats++;
}

/* ------------------------------------------------------------- a pool of one worker */

/* A turn that ends when the test lets it. */
static int go_on_when_allowed(struct tw_turn *turn, void *arg)
{
	unsigned mine = ++turns;
	while (allowed < mine && !over)
		sched_yield();
	return over ? TW_TURN_DONE : TW_TURN_AGAIN;
}

static void await_turn(unsigned n)
{
	while (turns < n)
		sched_yield();
}

/* Whatever the worker has looked at first so far: a timer that is due in a turn runs after it. */
Test(scheduler_shared_host, due_timer_runs_between_two_turns_of_the_host)
{
	tw_pool *pool;
	struct tw_pool_config one = TW_INIT(tw_pool_config);
	struct tw_service_config config = rig_config();
	one.workers = one.max_workers = 1;
	expect_eq(tw_pool_create(&pool, &one), 0);
	config.executor = tw_pool_executor(pool);
	rig_open(&rig.rig, &config);
	expect_eq(tw_scheduler_create(&rig.scheduler, rig.rig.service, NULL), 0);
	expect_eq(tw_scheduler_submit(rig.scheduler, TW_PRIORITY_IMMEDIATE, go_on_when_allowed,
				      NULL, NULL),
		  0);
	for (unsigned n = 1; n <= ROUNDS; n++) {
		await_turn(n);
		expect_eq(tw_schedule(rig.rig.service, MS, beat, NULL, NULL), 0);
		rig_advance(&rig.rig, 2 * MS); /* due, while turn n is under way */
		allowed = n;
		await_turn(n + 1);
		expect_eq(beats, n);
		expect_eq(turns_at_beat, n);
	}
	over = true;
	expect_eq(tw_scheduler_destroy(rig.scheduler), 0);
	rig_close(&rig.rig);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* ------------------------------------------------------------------ the tick thread */

/* Each turn schedules a beat that is due within it. */
static int beat_and_spend_slice(struct job *job, struct tw_turn *turn)
{
	job->answer += beats != turns;
	turns++;
	tw_schedule(job->rig->rig.service, MS, beat, NULL, NULL);
	work_rig_spend(job->rig, 5 * MS);
	return turns < ROUNDS ? TW_TURN_AGAIN : TW_TURN_DONE;
}

Test(scheduler_shared_host, due_timer_runs_before_the_next_inline_turn)
{
	struct job job = JOB(&rig, 1);
	open_on(tw_executor_inline());
	job = JOB(&rig, 1), job.act = beat_and_spend_slice;
	job_post(&job, TW_PRIORITY_IMMEDIATE);
	while (!job.told)
		tw_service_advance(rig.rig.service, TW_NO_LIMIT);
	expect_eq(turns, ROUNDS);
	expect_eq(job.answer, 0);
	close_all();
}
