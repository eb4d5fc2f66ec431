/*
 * Every kind of user code that blocks is counted by tw_service_liveness, with its function, its
 * argument, its name and its date, and is listed by tw_service_dump. The blocked function runs on a
 * pool's worker; the test's thread moves the clock and drives the service, so nothing depends on
 * real time.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/support/liveness.h"
#include "test/support/rig.h"

#define NAMED(function) ((tw_fn *)(void (*)(void))(function))

static sem_t begun, go_on;
static struct rig rig;
static tw_pool *pool;

/* Of a kind: what its function uses; ended after it. */
static tw_group group;
static tw_limiter *limiter;
static tw_strand *strand;
static tw_scheduler *scheduler;
static tw_action_scheduler *actions;
static tw_action *action;
static tw_semaphore *semaphore;

static void sem_await(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

static void open_on_pool(void)
{
	struct tw_pool_config config = {.size = sizeof config, .workers = 2};
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	expect_eq(tw_pool_create(&pool, &config), 0);
	struct tw_service_config cfg = rig_config();
	cfg.executor = tw_pool_executor(pool);
	rig_open(&rig, &cfg);
}

static void close_on_pool(void)
{
	expect_in_fini();
	rig_close(&rig);
	expect_eq(tw_pool_destroy(pool), 0);
}

TestSuite(service_liveness_kinds, .init = open_on_pool, .fini = close_on_pool, .timeout = 60);

/* --------------------------------------------------------------- user functions */

static void blocks(void *arg)
{
	sem_post(&begun);
	sem_await(&go_on);
}

static void returns(void *arg)
{
}

static int job_blocks(void *arg, struct tw_job_run *run)
{
	blocks(arg);
	return 0;
}

static int job_returns(void *arg, struct tw_job_run *run)
{
	return 0;
}

static int job_until_cancelled(void *arg, struct tw_job_run *run)
{
	while (!tw_job_is_cancelled(limiter, run->job))
		usleep(100);
	return 0;
}

static void done_blocks(void *arg, const struct tw_job_result *result)
{
	blocks(arg);
}

static void stop_blocks(void *arg, tw_job job, enum tw_job_status why)
{
	blocks(arg);
}

static void release_blocks(void *arg, enum tw_fate fate)
{
	blocks(arg);
}

static int turn_blocks(struct tw_turn *turn, void *arg)
{
	blocks(arg);
	return TW_TURN_DONE;
}

static int action_blocks(tw_action *self, void *state)
{
	blocks(state);
	return 0;
}

/* ---------------------------------------------------------------------- the kinds */

static void timer(void)
{
	struct tw_task task = {.size = sizeof task, .fn = blocks, .arg = &rig, .name = "flush"};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
}

static void release_of_a_timer(void)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = returns,
			       .arg = &rig,
			       .release = release_blocks,
			       .name = "request 7"};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
}

static void completion_of_a_group(void)
{
	expect_eq(tw_group_create(&group, rig.service), 0);
	expect_eq(tw_group_close_then(rig.service, group, blocks, &rig), 0);
}

static void submit_job(const struct tw_limiter_task *task)
{
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	expect_eq(tw_limiter_create(&limiter, rig.service, &config), 0);
	expect_eq(tw_limiter_submit_task(limiter, task, NULL), 0);
}

static void job(void)
{
	submit_job(&(struct tw_limiter_task){.size = sizeof(struct tw_limiter_task),
					     .fn = job_blocks,
					     .arg = &rig,
					     .name = "lookup"});
}

static void done_of_a_job(void)
{
	submit_job(&(struct tw_limiter_task){.size = sizeof(struct tw_limiter_task),
					     .fn = job_returns,
					     .arg = &rig,
					     .done = done_blocks});
}

static void strand_task(void)
{
	struct tw_strand_task task = {
	    .size = sizeof task, .fn = blocks, .arg = &rig, .name = "parse"};
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_strand_submit_task(strand, &task, NULL), 0);
}

static void release_of_a_strand_task(void)
{
	struct tw_strand_task task = {
	    .size = sizeof task, .fn = returns, .arg = &rig, .release = release_blocks};
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_strand_submit_task(strand, &task, NULL), 0);
}

static void scheduler_task(void)
{
	struct tw_scheduler_task task = {.size = sizeof task,
					 .fn = turn_blocks,
					 .arg = &rig,
					 .priority = TW_PRIORITY_NORMAL,
					 .name = "paint"};
	expect_eq(tw_scheduler_create(&scheduler, rig.service, NULL), 0);
	expect_eq(tw_scheduler_submit_task(scheduler, &task, NULL), 0);
}

/* By a timer's callback of the library's own, which is not counted beside the action. */
static void delayed_action(void)
{
	struct tw_action_scheduler_config config = {
	    .size = sizeof config, .kind = TW_ACTION_KIND_ASYNC, .service = rig.service};
	expect_eq(tw_action_scheduler_create(&actions, &config), 0);
	expect_eq(tw_action_create(&action, actions, action_blocks, NULL), 0);
	expect_eq(tw_action_schedule(action, &rig, MS), 0);
}

static void semaphore_function(void)
{
	expect_eq(tw_semaphore_create(&semaphore, rig.service, NULL, 1), 0);
	expect_ge(tw_semaphore_acquire_async(semaphore, 1, blocks, &rig, NULL), 0);
}

static const struct kind {
	void (*begin)(void);
	tw_fn *fn;
	const char *name;
} kinds[] = {
    {timer, blocks, "flush"},
    {release_of_a_timer, NAMED(release_blocks), "request 7"},
    {completion_of_a_group, blocks, NULL},
    {job, NAMED(job_blocks), "lookup"},
    {done_of_a_job, NAMED(done_blocks), NULL},
    {strand_task, blocks, "parse"},
    {release_of_a_strand_task, NAMED(release_blocks), NULL},
    {scheduler_task, NAMED(turn_blocks), "paint"},
    {delayed_action, NAMED(action_blocks), NULL},
    {semaphore_function, blocks, NULL},
};

/* Its functions have returned, perhaps a moment ago. */
#define END(object, destroy)                          \
	while (object && (destroy)(object) == -EBUSY) \
		usleep(100);                          \
	(object) = NULL

static void end_kind(void)
{
	if (group.id)
		expect_eq(tw_group_destroy(rig.service, group), 0);
	if (action)
		expect_ge(tw_action_close(action, TW_FOREVER), 0);
	if (semaphore)
		expect_eq(tw_semaphore_release(semaphore, 1), 0);
	if (limiter)
		expect_eq(tw_limiter_wait_idle(limiter, TW_FOREVER), 0);
	group = (tw_group){0};
	END(limiter, tw_limiter_destroy);
	END(strand, tw_strand_destroy);
	END(scheduler, tw_scheduler_destroy);
	END(action, tw_action_destroy);
	rig_advance(&rig, MS);
	END(actions, tw_action_scheduler_destroy);
	END(semaphore, tw_semaphore_destroy);
}

/* ---------------------------------------------------------------------- looks */

static void expect_listed(const struct tw_service_liveness *seen, const char *name)
{
	char *dump = dump_of(rig.service), line[64];
	cr_assert(strncmp(dump, "running for ", 12) == 0, "%s", dump);
	snprintf(line, sizeof line, ", thread %u, ", seen->longest_thread);
	cr_assert(strstr(dump, line) != NULL, "%s", dump);
	snprintf(line, sizeof line, ", \"%s\", fn ", name ? name : "");
	cr_assert((strstr(dump, line) != NULL) == (name != NULL), "%s", dump);
	free(dump);
}

static bool is_seen(const struct tw_service_liveness *seen, tw_fn *fn, const char *name)
{
	bool is_named = name ? seen->longest_name && strcmp(seen->longest_name, name) == 0
			     : !seen->longest_name;
	return seen->running == 1 && seen->longest_fn == fn && seen->longest_arg == &rig &&
	       is_named && seen->longest_thread && seen->longest_thread != (uint32_t)gettid();
}

static void await_running(uint64_t running)
{
	while (liveness_of(rig.service).running != running)
		usleep(100);
}

/* One user function blocks: liveness shows it immediately, and for as long as it lasts. */
static void expect_seen(tw_fn *fn, const char *name)
{
	sem_await(&begun);
	struct tw_service_liveness seen = liveness_of(rig.service);
	cr_assert(is_seen(&seen, fn, name));
	uint64_t since_ns = seen.longest_since_ns;
	expect_le(since_ns, rig_now(&rig));
	rig_advance(&rig, 10 * SECOND);
	seen = liveness_of(rig.service);
	cr_assert(is_seen(&seen, fn, name));
	expect_eq(seen.longest_since_ns, since_ns);
	expect_eq(seen.longest_ns, rig_now(&rig) - since_ns);
	expect_listed(&seen, name);
	sem_post(&go_on);
	await_running(0);
	cr_assert(!liveness_of(rig.service).longest_fn && !liveness_of(rig.service).longest_name);
}

Test(service_liveness_kinds, are_seen_while_they_run)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		kinds[i].begin();
		rig_advance(&rig, 2 * MS);
		expect_seen(kinds[i].fn, kinds[i].name);
		end_kind();
	}
}

static tw_job cancelled;

static void *cancel_job(void *arg)
{
	return (void *)(intptr_t)tw_job_cancel(limiter, cancelled);
}

/* The job runs on until it is cancelled; then `stop` blocks, on the thread that cancels it. */
Test(service_liveness_kinds, stop_of_a_job_is_seen)
{
	struct tw_limiter_task task = {
	    .size = sizeof task, .fn = job_until_cancelled, .arg = &rig, .stop = stop_blocks};
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	pthread_t canceller;
	expect_eq(tw_limiter_create(&limiter, rig.service, &config), 0);
	expect_eq(tw_limiter_submit_task(limiter, &task, &cancelled), 0);
	await_running(1);
	expect_eq(pthread_create(&canceller, NULL, cancel_job, NULL), 0);
	sem_await(&begun);
	await_running(1); /* the job sees the cancel and returns; its stop runs on */
	sem_post(&begun);
	expect_seen(NAMED(stop_blocks), NULL);
	pthread_join(canceller, NULL);
	end_kind();
}

/*
 * A task of the pool is nobody's in particular: each service that uses the pool sees it. Its age is
 * that of real time.
 */
Test(service_liveness_kinds, pool_task_is_seen_by_each_service_of_the_pool)
{
	struct rig second, other;
	struct tw_service_config cfg = rig_config();
	rig_open(&other, NULL);
	cfg.executor = tw_pool_executor(pool);
	rig_open(&second, &cfg);
	expect_eq(tw_pool_submit(pool, blocks, &rig), 0);
	sem_await(&begun);
	struct tw_service_liveness seen[] = {liveness_of(rig.service), liveness_of(second.service)};
	cr_assert(is_seen(&seen[0], blocks, NULL) && is_seen(&seen[1], blocks, NULL));
	expect_eq(liveness_of(other.service).running, 0);
	sem_post(&go_on);
	await_running(0);
	rig_close(&second);
	rig_close(&other);
}
