/*
 * Limiters that another thread destroys as soon as that is answered 0, while the last calls on them
 * are about to return.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "executor/limiter/internal.h"
#include "test/support/limited.h"
#include "test/support/shot.h"

TestSuite(limiter_real_ends, .timeout = 60);

enum { ROUNDS = 500 };

static tw_limiter *open_limiter(tw_service *service)
{
	tw_limiter *limiter;
	struct tw_limiter_config config = {.size = sizeof config,
					   .max_concurrency = 1,
					   .flags = TW_LIMITER_NONBLOCKING | TW_LIMITER_PAUSED};
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	return limiter;
}

static void destroy_when_over(tw_limiter *limiter)
{
	int r;
	while ((r = tw_limiter_destroy(limiter)) == -EBUSY)
		sched_yield();
	expect_eq(r, 0);
}

struct caller {
	tw_limiter *limiter;
	tw_job job;
	atomic_bool begun;
	int answer;
};

static void begin(pthread_t *thread, void *(*body)(void *), struct caller *caller)
{
	expect_eq(pthread_create(thread, NULL, body, caller), 0);
	while (!atomic_load(&caller->begun))
		sched_yield();
}

/* ------------------------------------------------------------------- close */

static void note_begun(void *arg, const struct tw_job_result *result)
{
	atomic_store(&((struct caller *)arg)->begun, true);
}

static void *drop_all(void *arg)
{
	struct caller *self = arg;
	self->answer = tw_limiter_close(self->limiter, TW_CLOSE_DROP, TW_FOREVER);
	return NULL;
}

Test(limiter_real_ends, a_close_that_has_dropped_the_last_job_holds_the_limiter)
{
	tw_service *service = open_service(1);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t thread;
		struct caller caller = {.limiter = open_limiter(service), .answer = 1};
		struct tw_limiter_task task = {
		    .size = sizeof task, .fn = job_succeeds, .arg = &caller, .done = note_begun};
		expect_eq(tw_limiter_submit_task(caller.limiter, &task, NULL), 0);
		begin(&thread, drop_all, &caller);
		destroy_when_over(caller.limiter);
		pthread_join(thread, NULL);
		expect_eq(caller.answer, 0);
	}
	close_service(service);
}

/* -------------------------------------------------------------------- wait */

static void *wait_for(void *arg)
{
	struct caller *self = arg;
	self->answer = tw_job_wait(self->limiter, self->job, TW_FOREVER, NULL);
	return NULL;
}

Test(limiter_real_ends, a_wait_for_the_last_job_holds_the_limiter)
{
	tw_service *service = open_service(1);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t thread;
		struct caller caller = {.limiter = open_limiter(service), .answer = 1};
		struct tw_limiter_task task = {
		    .size = sizeof task, .fn = job_succeeds, .flags = TW_LIMITER_TASK_KEEP};
		expect_eq(tw_limiter_submit_task(caller.limiter, &task, &caller.job), 0);
		expect_eq(pthread_create(&thread, NULL, wait_for, &caller), 0);
		await_job_waiter(caller.limiter, caller.job);
		if (round % 2)
			expect_eq(tw_limiter_set_paused(caller.limiter, false), 0);
		else
			expect_eq(tw_limiter_close(caller.limiter, TW_CLOSE_DROP, TW_FOREVER), 0);
		destroy_when_over(caller.limiter);
		pthread_join(thread, NULL);
		expect_eq(caller.answer, 0);
	}
	close_service(service);
}

/* ------------------------------------------------------------------ submit */

static void *submit_to_refusing(void *arg)
{
	struct caller *self = arg;
	self->answer = tw_limiter_submit(self->limiter, job_succeeds, NULL, NULL);
	return NULL;
}

/* It is counted before its unlock. */
static bool has_rejected(tw_limiter *limiter)
{
	struct tw_limiter_stats stats = {.size = sizeof stats};
	expect_eq(tw_limiter_stats(limiter, &stats), 0);
	return stats.rejected > 0;
}

/* The unlock is the last that a refused submit does; the limiter may be gone by then. */
Test(limiter_real_ends, a_refused_submit_does_not_touch_the_limiter_after_its_unlock)
{
	tw_service *service = open_service(1);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t thread;
		struct caller caller = {.answer = 1};
		struct tw_limiter_config config = {.size = sizeof config,
						   .max_concurrency = 1,
						   .flags = TW_LIMITER_NONBLOCKING |
							    TW_LIMITER_PAUSED |
							    TW_LIMITER_PAUSED_REFUSES};
		expect_eq(tw_limiter_create(&caller.limiter, service, &config), 0);
		expect_eq(pthread_create(&thread, NULL, submit_to_refusing, &caller), 0);
		while (!has_rejected(caller.limiter))
			sched_yield();
		expect_eq(tw_limiter_destroy(caller.limiter), 0);
		pthread_join(thread, NULL);
		expect_eq(caller.answer, -EBUSY);
	}
	close_service(service);
}

/* What workers still have to bring home is waited for, however often. */
Test(limiter_real_ends, destroy_waits_for_what_workers_bring_home)
{
	tw_service *service;
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 4};
	expect_eq(tw_service_create(&service, NULL), 0);
	for (int i = 0; i < 300; i++) {
		tw_limiter *limiter;
		expect_eq(tw_limiter_create(&limiter, service, &config), 0);
		expect_eq(tw_limiter_set_paused(limiter, false), 0);
		for (int j = 0; j < 8; j++) {
			struct tw_limiter_task task = {
			    .size = sizeof task, .fn = job_succeeds, .timeout_ns = MS};
			expect_eq(tw_limiter_submit_task(limiter, &task, NULL), 0);
		}
		expect_eq(tw_limiter_close(limiter, TW_CLOSE_DROP, TW_FOREVER), 0);
		expect_eq(tw_limiter_destroy(limiter), 0);
	}
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------- a done that closes, idle listeners */

static struct {
	tw_limiter *limiter;
	int told, depth, deepest;
} failing;

static int succeed(void *arg, struct tw_job_run *run)
{
	return 0;
}

static void close_at_once(void *arg, const struct tw_job_result *result)
{
	failing.told++;
	if (++failing.depth > failing.deepest)
		failing.deepest = failing.depth;
	(void)tw_limiter_close(failing.limiter, TW_CLOSE_DROP, 0);
	failing.depth--;
}

Test(limiter_real_ends, a_done_that_closes_uses_no_more_stack_for_more_jobs)
{
	enum { JOBS = 1000 };
	tw_service *service;
	struct tw_limiter_task task = {.size = sizeof task, .fn = succeed, .done = close_at_once};
	expect_eq(tw_service_create(&service, NULL), 0);
	failing.limiter = open_limiter(service);
	for (int i = 0; i < JOBS; i++)
		expect_eq(tw_limiter_submit_task(failing.limiter, &task, NULL), 0);
	expect_eq(tw_limiter_close(failing.limiter, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(failing.told, JOBS);
	expect_eq(failing.deepest <= 2, true);
	destroy_when_over(failing.limiter);
	expect_eq(tw_service_destroy(service), 0);
}

/* As many calls in a row as a thread makes before it lets others go on. */
enum { LISTENERS = 64 };

static struct {
	tw_limiter *limiter;
	atomic_bool may_end, second_may_end;
	int called;
} idle;

static int run_until(void *arg, struct tw_job_run *run)
{
	while (!atomic_load((atomic_bool *)arg))
		sched_yield();
	return 0;
}

static void submit_with_the_last(void *arg, const struct tw_job_result *results, size_t n)
{
	if (++idle.called == LISTENERS)
		expect_eq(tw_limiter_submit(idle.limiter, run_until, &idle.second_may_end, NULL),
			  0);
}

static bool somebody_sleeps(tw_limiter *limiter)
{
	tw__object_lock(&limiter->object);
	bool sleeps = limiter->object.sleepers != 0;
	tw__object_unlock(&limiter->object);
	return sleeps;
}

static void *wait_idle(void *arg)
{
	struct caller *caller = arg;
	atomic_store(&caller->begun, true);
	caller->answer = tw_limiter_wait_idle(idle.limiter, 20 * TW_SECOND);
	return NULL;
}

Test(limiter_real_ends, a_wait_sees_the_idle_whose_last_listener_submits)
{
	pthread_t thread;
	tw_service *service;
	struct tw_limiter_config config = {
	    .size = sizeof config, .max_concurrency = 1, .flags = TW_LIMITER_NONBLOCKING};
	struct caller caller = {0};
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_limiter_create(&idle.limiter, service, &config), 0);
	expect_eq(tw_limiter_submit(idle.limiter, run_until, &idle.may_end, NULL), 0);
	for (int i = 0; i < LISTENERS; i++)
		expect_eq(tw_limiter_on_idle(idle.limiter, submit_with_the_last, NULL), 0);
	begin(&thread, wait_idle, &caller);
	while (!somebody_sleeps(idle.limiter))
		sched_yield();
	atomic_store(&idle.may_end, true);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(caller.answer, 0);
	atomic_store(&idle.second_may_end, true);
	expect_eq(tw_limiter_close(idle.limiter, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	destroy_when_over(idle.limiter);
	expect_eq(tw_service_destroy(service), 0);
}
