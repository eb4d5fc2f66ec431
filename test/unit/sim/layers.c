/*
 * Schedulers, limiters and semaphores under simulation: random programs, promises in any order, the
 * same seed the same way.
 */
#include <errno.h>
#include <string.h>

#include "test/support/rig.h"
#include "test/support/seeds.h"

TestSuite(sim_layers, .timeout = 120);

enum { JOBS = 60, PERMITS = 3 };

struct item {
	bool running;
	int runs, ends;
	tw_job job;
};

static struct {
	tw_sim *sim;
	tw_limiter *limiter;
	tw_scheduler *scheduler;
	tw_semaphore *semaphore;
	struct item jobs[JOBS], tasks[JOBS], holders[JOBS];
	int running, in_turn, holding;
} p;

static uint64_t below(uint64_t bound)
{
	return tw_sim_random(p.sim, bound);
}

/* --------------------------------------------------------------------- limiter */

/* Of an asynchronous job. */
static void complete(void *arg)
{
	struct item *item = arg;
	tell_fact((uint64_t)(item - p.jobs));
	if (!item->running)
		return; /* it was cancelled, and has ended by its stop */
	item->running = false;
	p.running--;
	sim_eq(tw_job_complete(p.limiter, item->job, below(4) ? 0 : -EIO, NULL), 0);
}

static int run_job(void *arg, struct tw_job_run *run)
{
	struct item *item = arg;
	sim_assert(!item->running, "an attempt beside another");
	item->running = true;
	item->job = run->job;
	item->runs++;
	sim_assert(++p.running <= PERMITS, "more jobs at once than permits");
	sim_eq(tw_schedule(tw_sim_service(p.sim), below(20 * MS), complete, item, NULL), 0);
	return TW_JOB_PENDING;
}

static void job_done(void *arg, const struct tw_job_result *result)
{
	struct item *item = arg;
	sim_assert(++item->ends == 1, "a job settled twice");
	tell_fact(result->id << 8 | (uint64_t)result->status);
}

static void submit_job(struct item *item)
{
	struct tw_limiter_task task = {.size = sizeof task,
				       .fn = run_job,
				       .arg = item,
				       .done = job_done,
				       .flags = TW_LIMITER_TASK_ASYNC};
	task.priority = (int32_t)below(3);
	task.retry = (struct tw_retry){.count = (uint32_t)below(3), .delay_ns = below(10 * MS)};
	sim_eq(tw_limiter_submit_task(p.limiter, &task, NULL), 0);
}

/* ------------------------------------------------------------------- scheduler */

static int run_turn(struct tw_turn *turn, void *arg)
{
	struct item *item = arg;
	sim_assert(++p.in_turn == 1, "two turns at once");
	item->runs++;
	tell_fact(1000 + (uint64_t)(item - p.tasks));
	if (below(3) == 0)
		tw_sim_spend(p.sim, below(3 * MS));
	p.in_turn--;
	return below(3) ? TW_TURN_DONE : TW_TURN_AGAIN;
}

static void task_done(void *arg, enum tw_fate fate, int result)
{
	struct item *item = arg;
	sim_assert(++item->ends == 1, "a task ended twice");
	sim_assert(fate == TW_FATE_FIRED && result == 0, "fate of a task");
}

static void post_task(struct item *item)
{
	struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = run_turn, .arg = item, .done = task_done};
	post.priority = (enum tw_priority)(1 + below(5));
	post.delay_ns = below(2) * below(30 * MS);
	sim_eq(tw_scheduler_submit_task(p.scheduler, &post, NULL), 0);
}

/* ------------------------------------------------------------------- semaphore */

static void give_back(void *arg)
{
	struct item *item = arg;
	item->ends++;
	p.holding--;
	sim_eq(tw_semaphore_release(p.semaphore, 1), 0);
}

static void hold(void *arg)
{
	struct item *item = arg;
	item->runs++;
	sim_assert(++p.holding <= PERMITS, "more holders than permits");
	tell_fact(2000 + (uint64_t)(item - p.holders));
	sim_eq(tw_schedule(tw_sim_service(p.sim), below(5 * MS), give_back, item, NULL), 0);
}

/* ------------------------------------------------------------------- a program */

static void open_program(uint64_t seed)
{
	uint64_t random = seed;
	struct tw_sim_config cfg = {
	    .size = sizeof cfg, .seed = seed, .workers = 1 + (uint32_t)random_below(&random, 4)};
	cfg.max_late_ns = random_below(&random, 2) * random_below(&random, 4 * MS);
	cfg.refuse_percent = (uint32_t)(random_below(&random, 2) * random_below(&random, 50));
	memset(&p, 0, sizeof p);
	sim_eq(tw_sim_create(&p.sim, &cfg), 0);
	tw_service *service = tw_sim_service(p.sim);
	struct tw_limiter_config limiter = {
	    .size = sizeof limiter, .max_concurrency = PERMITS, .seed = seed + 1};
	sim_eq(tw_limiter_create(&p.limiter, service, &limiter), 0);
	sim_eq(tw_limiter_resume(p.limiter), 0);
	sim_eq(tw_scheduler_create(&p.scheduler, service, NULL), 0);
	sim_eq(tw_semaphore_create(&p.semaphore, service, NULL, PERMITS), 0);
}

static void close_program(void)
{
	sim_eq(tw_sim_destroy(p.sim), -EBUSY);
	sim_eq(tw_limiter_destroy(p.limiter), 0);
	sim_eq(tw_scheduler_destroy(p.scheduler), 0);
	sim_eq(tw_semaphore_destroy(p.semaphore), 0);
	sim_eq(tw_sim_destroy(p.sim), 0);
}

static uint64_t run_program(uint64_t seed)
{
	open_program(seed);
	for (int i = 0; i < JOBS; i++) {
		submit_job(&p.jobs[i]);
		post_task(&p.tasks[i]);
		sim_eq(tw_semaphore_acquire_async(p.semaphore, 1, hold, &p.holders[i], NULL), 0);
		sim_eq(tw_sim_run_for(p.sim, below(3) * below(2 * MS)), 0);
	}
	sim_eq(tw_sim_run_until_idle(p.sim, 3600 * SECOND), 0);
	for (int i = 0; i < JOBS; i++) {
		sim_assert(p.jobs[i].ends == 1 && p.jobs[i].runs >= 1,
			   "a job has not come to its end");
		sim_assert(p.tasks[i].ends == 1 && p.tasks[i].runs >= 1,
			   "a task has not come to its end");
		sim_assert(p.holders[i].ends == 1 && p.holders[i].runs == 1,
			   "a holder has not come to its end");
	}
	uint64_t trace = trace_with_facts(p.sim);
	close_program();
	return trace;
}

static void run_twice(uint64_t seed)
{
	sim_assert(run_program(seed) == run_program(seed), "the same seed took another way");
}

Test(sim_layers, keep_their_promises_in_any_order_and_the_same_seed_goes_the_same_way)
{
	for_each_seed(60, run_twice);
}
