/* pthread_cancel: no call that makes, ends or waits for something is a cancellation point. */
#include <errno.h>

#include "test/support/cancelled.h"
#include "test/support/gates.h"
#include "test/support/rig.h"

TestSuite(service_real_cancelled, .timeout = 60);

enum { SHORT_NS = 5 * TW_MILLISECOND };

static tw_service *service; /* with a tick thread and a pool */
static tw_group group;
static tw_pool *small; /* one worker, which stands still, and a full queue */
static atomic_int ran;

/* ------------------------------------------------------------------ fixtures */

static void fill_small(void)
{
	struct tw_pool_config config = TW_INIT(tw_pool_config);
	config.workers = config.max_workers = 1;
	config.queue = 16;
	expect_eq(tw_pool_create(&small, &config), 0);
	open_gates();
	expect_eq(tw_pool_submit(small, stand_still, &ran), 0);
	await(&entered, 1);
	while (tw_pool_submit(small, count, &ran) == 0) {
	}
}

static void open_with_group(void)
{
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_group_create(&group, service), 0);
}

static void destroy_service(void)
{
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------------------ births and ends */

static int create(void)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.clock = tw_clock_boottime();
	return tw_service_create(&service, &config);
}

static int create_refused(void)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.stack_size = 1;
	return tw_service_create(&service, &config);
}

static int close_in_time(void)
{
	return tw_service_close(service, TW_CLOSE_DRAIN, SHORT_NS);
}

static int run_all(void)
{
	return tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER);
}

static int destroy(void)
{
	return tw_service_destroy(service);
}

Test(service_real_cancelled, not_the_birth_of_a_service_nor_its_end)
{
	expect_eq(cancelled_in(create_refused), -EINVAL);
	expect_eq(cancelled_in(create), 0);
	open_gates();
	ran = 0;
	expect_eq(tw_schedule(service, 0, stand_still, &ran, NULL), 0);
	await(&entered, 1);
	expect_eq(cancelled_in(close_in_time), -ETIMEDOUT);
	sem_post(&go_on);
	expect_eq(cancelled_in(run_all), 0);
	expect_eq(cancelled_in(destroy), 0);
}

/* A close whose release callback has a cancellation point keeps its role to its end. */
static void testcancel(void *arg, enum tw_fate fate)
{
	(void)arg;
	ran += fate == TW_FATE_DROPPED;
	pthread_testcancel();
}

static int drop_all(void)
{
	return tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER);
}

Test(service_real_cancelled, not_a_close_while_it_calls_releases, .init = open_with_group,
     .fini = destroy_service)
{
	struct tw_task task = TW_INIT(tw_task);
	task.when_ns = HOUR;
	task.fn = count;
	task.release = testcancel;
	for (int i = 0; i < 3; i++)
		expect_eq(tw_schedule_task(service, &task, NULL), 0);
	expect_eq(cancelled_in(drop_all), 0);
	expect_eq(ran, 3);
}

static int create_pool(void)
{
	return tw_pool_create(&small, NULL);
}

static int close_pool(void)
{
	return tw_pool_close(small, TW_CLOSE_DRAIN, NULL, NULL);
}

static int destroy_pool(void)
{
	return tw_pool_destroy(small);
}

static void drop_testcancel(void *told_arg, tw_fn *fn, void *arg)
{
	(void)told_arg, (void)fn, (void)arg;
	pthread_testcancel();
	sem_post(&go_on); /* the worker may end */
}

static int drop_pool(void)
{
	return tw_pool_close(small, TW_CLOSE_DROP, drop_testcancel, NULL);
}

static int submit_wait(void)
{
	return tw_pool_submit_wait(small, count, &ran, SHORT_NS);
}

Test(service_real_cancelled, no_call_of_a_pool)
{
	expect_eq(cancelled_in(create_pool), 0);
	expect_eq(cancelled_in(close_pool), 0);
	expect_eq(cancelled_in(destroy_pool), 0);
	fill_small();
	expect_eq(cancelled_in(submit_wait), -ETIMEDOUT);
	expect_eq(cancelled_in(drop_pool), 0);
	expect_eq(cancelled_in(destroy_pool), 0);
}

/* ------------------------------------------------------------------ waits */

static tw_timer timer;
static tw_strand *strand;
static tw_semaphore *semaphore;
static tw_scheduler *scheduler;
static tw_limiter *limiter;
static tw_job job;
static tw_action_scheduler *actions;
static tw_action *action;
static tw_clock *clock_by_hand;

static int wait_for_timer(void)
{
	return tw_cancel_wait(service, timer, SHORT_NS);
}

static int wait_for_group(void)
{
	return tw_group_cancel_wait(service, group, SHORT_NS);
}

Test(service_real_cancelled, no_wait_for_a_timer_or_a_group, .init = open_with_group,
     .fini = destroy_service)
{
	struct tw_task task = TW_INIT(tw_task);
	task.fn = stand_still;
	task.arg = &ran;
	task.group = group;
	open_gates();
	expect_eq(tw_schedule_task(service, &task, &timer), 0);
	await(&entered, 1);
	expect_eq(cancelled_in(wait_for_timer), TW_RUNNING);
	expect_eq(cancelled_in(wait_for_group), TW_RUNNING);
	sem_post(&go_on);
}

static int acquire(void)
{
	return tw_semaphore_acquire(semaphore, 1, SHORT_NS);
}

static int close_strand(void)
{
	return tw_strand_close(strand, SHORT_NS);
}

static int close_scheduler(void)
{
	return tw_scheduler_close(scheduler, SHORT_NS);
}

static int wait_idle(void)
{
	return tw_limiter_wait_idle(limiter, SHORT_NS);
}

static int wait_for_job(void)
{
	struct tw_job_result result;
	return tw_job_wait(limiter, job, SHORT_NS, &result);
}

static int close_limiter(void)
{
	return tw_limiter_close(limiter, TW_CLOSE_DRAIN, SHORT_NS);
}

static int close_action(void)
{
	return tw_action_close(action, SHORT_NS);
}

static int turn_stands_still(struct tw_turn *now, void *arg)
{
	(void)now;
	stand_still(arg);
	return TW_TURN_DONE;
}

static int job_stands_still(void *arg, struct tw_job_run *run)
{
	(void)run;
	stand_still(arg);
	return 0;
}

static int action_stands_still(tw_action *self, void *state)
{
	(void)self;
	stand_still(state);
	return 0;
}

/* Each of the layers has one piece of work that stands still on the service's pool. */
static void open_layers(void)
{
	struct tw_limiter_config one = TW_INIT(tw_limiter_config);
	open_with_group();
	open_gates();
	ran = 0;
	one.max_concurrency = 1;
	expect_eq(tw_semaphore_create(&semaphore, service, NULL, 1), 0);
	expect_eq(tw_semaphore_acquire(semaphore, 1, 0), 0);
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	expect_eq(tw_strand_submit(strand, stand_still, &ran), 0);
	expect_eq(tw_scheduler_create(&scheduler, service, NULL), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, turn_stands_still, &ran, NULL),
		  0);
	expect_eq(tw_limiter_create(&limiter, service, &one), 0);
	expect_eq(tw_limiter_submit(limiter, job_stands_still, &ran, &job), 0);
	expect_eq(tw_action_scheduler_create(&actions,
					     &(struct tw_action_scheduler_config){
						 .size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_ASYNC,
						 .service = service,
					     }),
		  0);
	expect_eq(tw_action_create(&action, actions, action_stands_still, NULL), 0);
	expect_eq(tw_action_schedule(action, &ran, 0), 0);
	await(&entered, 4);
}

Test(service_real_cancelled, no_wait_for_a_layer, .init = open_layers)
{
	expect_eq(cancelled_in(acquire), -ETIMEDOUT);
	expect_eq(cancelled_in(close_strand), -ETIMEDOUT);
	expect_eq(cancelled_in(close_scheduler), -ETIMEDOUT);
	expect_eq(cancelled_in(wait_idle), -ETIMEDOUT);
	expect_eq(cancelled_in(wait_for_job), -ETIMEDOUT);
	expect_eq(cancelled_in(close_limiter), -ETIMEDOUT);
	expect_eq(cancelled_in(close_action), TW_RUNNING);
	for (int i = 0; i < 4; i++)
		sem_post(&go_on);
	expect_ge(tw_action_close(action, TW_FOREVER), 0);
	expect_ge(tw_action_destroy(action), 0);
	expect_eq(tw_action_scheduler_destroy(actions), 0);
	expect_eq(tw_limiter_close(limiter, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_scheduler_close(scheduler, TW_FOREVER), 0);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_semaphore_release(semaphore, 1), 0);
	expect_eq(tw_semaphore_destroy(semaphore), 0);
	destroy_service();
}

/* ------------------------------------------------------------------ clocks that are moved */

static void run_testcancel(void *arg)
{
	count(arg);
	pthread_testcancel();
}

static int advance_clock(void)
{
	return tw_clock_manual_advance_by(clock_by_hand, MS);
}

Test(service_real_cancelled, not_the_advance_of_a_clock_that_runs_callbacks)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	expect_eq(tw_clock_manual_create(&clock_by_hand, SECOND), 0);
	config.clock = clock_by_hand;
	config.drive = TW_DRIVE_MANUAL;
	config.executor = tw_executor_inline();
	expect_eq(tw_service_create(&service, &config), 0);
	ran = 0;
	for (int i = 0; i < 3; i++)
		expect_eq(tw_schedule(service, MS, run_testcancel, &ran, NULL), 0);
	expect_eq(cancelled_in(advance_clock), 0);
	expect_eq(ran, 3);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_clock_manual_destroy(clock_by_hand), 0);
}
