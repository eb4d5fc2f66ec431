/*
 * Every kind of user code that blocks is counted by tw_service_liveness, with its function, its
 * argument and its date. The blocked function runs on a pool's worker; the test's thread moves the
 * clock and drives the service, so nothing depends on real time.
 */
#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

#include "test/support/liveness.h"
#include "test/support/rig.h"

TestSuite(service_liveness_kinds, .timeout = 30);

#define NAMED(function) ((tw_fn *)(void (*)(void))(function))

static sem_t begun, go_on;

static void sem_await(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

static void open_on_pool(struct rig *rig, tw_pool **pool)
{
	struct tw_pool_config config = {.size = sizeof config, .workers = 2};
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	expect_eq(tw_pool_create(pool, &config), 0);
	struct tw_service_config cfg = rig_config();
	cfg.executor = tw_pool_executor(*pool);
	rig_open(rig, &cfg);
}

static void await_running(struct rig *rig, uint64_t running)
{
	while (liveness_of(rig->service).running != running)
		usleep(100);
}

/* One user function blocks: liveness shows it immediately, and for as long as it lasts. */
static void expect_seen(struct rig *rig, tw_fn *fn, void *arg)
{
	sem_await(&begun);
	struct tw_service_liveness seen = liveness_of(rig->service);
	expect_eq(seen.running, 1);
	cr_assert(seen.longest_fn == fn);
	cr_assert(seen.longest_arg == arg);
	expect_ne(seen.longest_thread, 0);
	expect_ne(seen.longest_thread, gettid());
	uint64_t since_ns = seen.longest_since_ns;
	expect_le(since_ns, rig_now(rig));
	rig_advance(rig, 10 * SECOND);
	seen = liveness_of(rig->service);
	expect_eq(seen.running, 1);
	expect_eq(seen.longest_since_ns, since_ns);
	expect_eq(seen.longest_ns, rig_now(rig) - since_ns);
	cr_assert(seen.longest_fn == fn);
	sem_post(&go_on);
	await_running(rig, 0);
	cr_assert(!liveness_of(rig->service).longest_fn);
}

static void shut(struct rig *rig, tw_pool *pool)
{
	rig_close(rig);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* --------------------------------------------------------------- user functions */

static void block(void)
{
	sem_post(&begun);
	sem_await(&go_on);
}

static void blocks(void *arg)
{
	(void)arg;
	block();
}

static void returns(void *arg)
{
	(void)arg;
}

static int job_blocks(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	block();
	return 0;
}

static int job_returns(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	return 0;
}

static int job_until_cancelled(void *arg, struct tw_job_run *run)
{
	while (!tw_job_is_cancelled(arg, run->job))
		usleep(100);
	return 0;
}

static void done_blocks(void *arg, const struct tw_job_result *result)
{
	(void)arg, (void)result;
	block();
}

static void stop_blocks(void *arg, tw_job job, enum tw_job_status why)
{
	(void)arg, (void)job, (void)why;
	block();
}

static void release_blocks(void *arg, enum tw_fate fate)
{
	(void)arg, (void)fate;
	block();
}

static int turn_blocks(struct tw_turn *turn, void *arg)
{
	(void)turn, (void)arg;
	block();
	return TW_TURN_DONE;
}

static int action_blocks(tw_action *action, void *state)
{
	(void)action, (void)state;
	block();
	return 0;
}

/* ---------------------------------------------------------------------- the kinds */

Test(service_liveness_kinds, timer)
{
	struct rig rig;
	tw_pool *pool;
	open_on_pool(&rig, &pool);
	expect_eq(tw_schedule(rig.service, 0, blocks, &rig, NULL), 0);
	rig_advance(&rig, MS);
	expect_seen(&rig, blocks, &rig);
	shut(&rig, pool);
}

Test(service_liveness_kinds, release_of_a_timer)
{
	struct rig rig;
	tw_pool *pool;
	open_on_pool(&rig, &pool);
	struct tw_task task = {
	    .size = sizeof task, .fn = returns, .arg = &rig, .release = release_blocks};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	rig_advance(&rig, MS);
	expect_seen(&rig, NAMED(release_blocks), &rig);
	shut(&rig, pool);
}

Test(service_liveness_kinds, completion_of_a_group)
{
	struct rig rig;
	tw_pool *pool;
	tw_group group;
	open_on_pool(&rig, &pool);
	expect_eq(tw_group_create(&group, rig.service), 0);
	expect_eq(tw_group_close_then(rig.service, group, blocks, &rig), 0);
	rig_advance(&rig, MS);
	expect_seen(&rig, blocks, &rig);
	expect_eq(tw_group_destroy(rig.service, group), 0);
	shut(&rig, pool);
}

static tw_limiter *limiter_on(struct rig *rig)
{
	tw_limiter *limiter;
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	expect_eq(tw_limiter_create(&limiter, rig->service, &config), 0);
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
	return limiter;
}

static void end_limiter(tw_limiter *limiter)
{
	expect_eq(tw_limiter_wait_idle(limiter, TW_FOREVER), 0);
	int r;
	while ((r = tw_limiter_destroy(limiter)) == -EBUSY)
		usleep(100);
	expect_eq(r, 0);
}

Test(service_liveness_kinds, job)
{
	struct rig rig;
	tw_pool *pool;
	open_on_pool(&rig, &pool);
	tw_limiter *limiter = limiter_on(&rig);
	expect_eq(tw_limiter_submit(limiter, job_blocks, &rig, NULL), 0);
	expect_seen(&rig, NAMED(job_blocks), &rig);
	end_limiter(limiter);
	shut(&rig, pool);
}

Test(service_liveness_kinds, done_of_a_job)
{
	struct rig rig;
	tw_pool *pool;
	open_on_pool(&rig, &pool);
	tw_limiter *limiter = limiter_on(&rig);
	struct tw_limiter_task task = {
	    .size = sizeof task, .fn = job_returns, .arg = &rig, .done = done_blocks};
	expect_eq(tw_limiter_submit_task(limiter, &task, NULL), 0);
	expect_seen(&rig, NAMED(done_blocks), &rig);
	end_limiter(limiter);
	shut(&rig, pool);
}

/* The job runs on until it is cancelled; then `stop` blocks, on the thread that cancels it. */
static void *cancel_job(void *arg)
{
	tw_job *job = arg;
	tw_limiter *limiter = *(tw_limiter **)(void *)(job + 1);
	return (void *)(intptr_t)tw_job_cancel(limiter, *job);
}

Test(service_liveness_kinds, stop_of_a_job)
{
	struct rig rig;
	tw_pool *pool;
	open_on_pool(&rig, &pool);
	struct {
		tw_job job;
		tw_limiter *limiter;
	} cancelled = {.limiter = limiter_on(&rig)};
	struct tw_limiter_task task = {.size = sizeof task,
				       .fn = job_until_cancelled,
				       .arg = cancelled.limiter,
				       .stop = stop_blocks};
	expect_eq(tw_limiter_submit_task(cancelled.limiter, &task, &cancelled.job), 0);
	await_running(&rig, 1);
	pthread_t canceller;
	expect_eq(pthread_create(&canceller, NULL, cancel_job, &cancelled), 0);
	sem_await(&begun);
	await_running(&rig, 1); /* the job sees the cancel and returns; its stop runs on */
	sem_post(&begun);
	expect_seen(&rig, NAMED(stop_blocks), cancelled.limiter);
	pthread_join(canceller, NULL);
	end_limiter(cancelled.limiter);
	shut(&rig, pool);
}

Test(service_liveness_kinds, strand_task)
{
	struct rig rig;
	tw_pool *pool;
	tw_strand *strand;
	open_on_pool(&rig, &pool);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_strand_submit(strand, blocks, &rig), 0);
	expect_seen(&rig, blocks, &rig);
	expect_eq(tw_strand_destroy(strand), 0);
	shut(&rig, pool);
}

Test(service_liveness_kinds, release_of_a_strand_task)
{
	struct rig rig;
	tw_pool *pool;
	tw_strand *strand;
	open_on_pool(&rig, &pool);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	struct tw_strand_task spec = {
	    .size = sizeof spec, .fn = returns, .arg = &rig, .release = release_blocks};
	expect_eq(tw_strand_submit_task(strand, &spec, NULL), 0);
	expect_seen(&rig, NAMED(release_blocks), &rig);
	expect_eq(tw_strand_destroy(strand), 0);
	shut(&rig, pool);
}

Test(service_liveness_kinds, scheduler_task)
{
	struct rig rig;
	tw_pool *pool;
	tw_scheduler *scheduler;
	open_on_pool(&rig, &pool);
	expect_eq(tw_scheduler_create(&scheduler, rig.service, NULL), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, turn_blocks, &rig, NULL), 0);
	expect_seen(&rig, NAMED(turn_blocks), &rig);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	shut(&rig, pool);
}

/* By a timer's callback of the library's own, which is not counted beside the action. */
Test(service_liveness_kinds, action)
{
	struct rig rig;
	tw_pool *pool;
	open_on_pool(&rig, &pool);
	struct tw_action_scheduler_config config = {
	    .size = sizeof config, .kind = TW_ACTION_KIND_ASYNC, .service = rig.service};
	tw_action_scheduler *scheduler;
	expect_eq(tw_action_scheduler_create(&scheduler, &config), 0);
	tw_action *action;
	expect_eq(tw_action_create(&action, scheduler, action_blocks, NULL), 0);
	expect_eq(tw_action_schedule(action, &rig, MS), 0);
	rig_advance(&rig, 2 * MS);
	expect_seen(&rig, NAMED(action_blocks), &rig);
	tw_action_close(action, TW_FOREVER);
	expect_ge(tw_action_destroy(action), 0);
	rig_advance(&rig, MS);
	int r;
	while ((r = tw_action_scheduler_destroy(scheduler)) == -EBUSY)
		usleep(100);
	expect_eq(r, 0);
	shut(&rig, pool);
}

Test(service_liveness_kinds, semaphore_function)
{
	struct rig rig;
	tw_pool *pool;
	tw_semaphore *semaphore;
	open_on_pool(&rig, &pool);
	expect_eq(tw_semaphore_create(&semaphore, rig.service, NULL, 1), 0);
	expect_ge(tw_semaphore_acquire_async(semaphore, 1, blocks, &rig, NULL), 0);
	expect_seen(&rig, blocks, &rig);
	expect_eq(tw_semaphore_release(semaphore, 1), 0);
	int r;
	while ((r = tw_semaphore_destroy(semaphore)) == -EBUSY)
		usleep(100);
	expect_eq(r, 0);
	shut(&rig, pool);
}

/*
 * A task of the pool is nobody's in particular: each service that uses the pool sees it. Its age is
 * that of real time.
 */
Test(service_liveness_kinds, pool_task_is_seen_by_each_service_of_the_pool)
{
	struct rig rigs[3];
	tw_pool *pool, *other;
	open_on_pool(&rigs[2], &other);
	open_on_pool(&rigs[0], &pool);
	struct tw_service_config cfg = rig_config();
	cfg.executor = tw_pool_executor(pool);
	rig_open(&rigs[1], &cfg);
	expect_eq(tw_pool_submit(pool, blocks, pool), 0);
	sem_await(&begun);
	for (int i = 0; i < 2; i++) {
		struct tw_service_liveness seen = liveness_of(rigs[i].service);
		expect_eq(seen.running, 1);
		cr_assert(seen.longest_fn == blocks);
		cr_assert(seen.longest_arg == pool);
	}
	expect_eq(liveness_of(rigs[2].service).running, 0);
	sem_post(&go_on);
	await_running(&rigs[0], 0);
	rig_close(&rigs[1]);
	shut(&rigs[0], pool);
	shut(&rigs[2], other);
}
