/*
 * Several closes of one service: the lowest mode holds, and each answer is true. Also closes of
 * a service that is driven by hand, and a drain whose executor gives runs back.
 */
#include <errno.h>
#include <semaphore.h>

#include "test/support/closing.h"
#include "test/support/gates.h"
#include "wheel/core/service.h"

TestSuite(close_real_waiters, .timeout = 60);

/*
 * Of a drain that nothing but the tick thread can hold up, which has a second beyond the drain's
 * timeout: one that had no processor for longer is waited for again.
 */
static void expect_ends(struct closing *c)
{
	while (closing_end(c) == -ETIMEDOUT) {
		expect_ge(c->took_ns, c->timeout_ns + SECOND);
		closing_start(c, c->service, c->mode, c->timeout_ns);
	}
	expect_eq(c->answer, 0);
}

/* Until a close has begun, as a schedule tells. */
static void await_closed(tw_service *service)
{
	static atomic_int unused;
	tw_timer timer;
	while (tw_schedule(service, HOUR, count, &unused, &timer) == 0) {
		tw_cancel(service, timer);
		sched_yield();
	}
}

/* ------------------------------------------------------------ the mode falls */

/* A close under way, another one beside it, and whether the timers, an hour away, run. */
static const struct row {
	enum tw_close_mode mode, then;
	uint64_t timeout_ns, then_ns;
	bool run;
} rows[] = {
    {TW_CLOSE_DRAIN, TW_CLOSE_DROP, TW_FOREVER, TW_FOREVER, false},
    {TW_CLOSE_DRAIN, TW_CLOSE_DROP, TW_FOREVER, 1, false}, /* did not wait, and holds */
    {TW_CLOSE_DRAIN, TW_CLOSE_RUN, TW_FOREVER, TW_FOREVER, true},
    {TW_CLOSE_DRAIN, TW_CLOSE_DRAIN, TW_FOREVER, 20 * MS, false}, /* each at its own timeout */
    {TW_CLOSE_DRAIN, TW_CLOSE_DRAIN, 200 * MS, TW_FOREVER, false},
};

static void expect_row(const struct row *row, bool has_begun)
{
	enum { TIMERS = 1000 };
	tw_service *service = open_service(1);
	struct closing first, second;
	atomic_int runs = 0;
	for (int i = 0; i < TIMERS; i++)
		expect_eq(tw_schedule(service, HOUR, count, &runs, NULL), 0);
	closing_start(&first, service, row->mode, row->timeout_ns);
	if (has_begun)
		await_closed(service);
	closing_start(&second, service, row->then, row->then_ns);
	if (row->then_ns > 1)
		expect_ends(&second);
	else
		closing_end(&second);
	expect_ends(&first);
	expect_eq(runs, row->run ? TIMERS : 0);
	expect_eq(stats_of(service).dropped, row->run ? 0 : TIMERS);
	close_service(service);
}

Test(close_real_waiters, the_lowest_mode_holds)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int round = 0; round < 10; round++)
			expect_row(&rows[i], i > 0 || round % 2);
}

/* One worker stands still, so the rest waits in the pool. */
Test(close_real_waiters, drop_ends_a_run_under_way)
{
	open_gates();
	tw_service *service = open_service(1);
	struct closing run;
	atomic_int stood = 0, runs = 0;
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
	for (int i = 0; i < 300; i++)
		expect_eq(tw_schedule(service, HOUR, count, &runs, NULL), 0);
	closing_start(&run, service, TW_CLOSE_RUN, TW_FOREVER);
	await_closed(service);
	while (tw_service_close(service, TW_CLOSE_DROP, 10 * MS) == -ETIMEDOUT &&
	       stats_of(service).dropped < 300)
		;
	expect_eq(stats_of(service).dropped, 300);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, MS), -ETIMEDOUT);
	sem_post(&go_on);
	expect_eq(closing_end(&run), 0);
	expect_eq(stood, 1);
	expect_eq(runs, 0);
	close_service(service);
}

/* What was asked for stays asked for: a later close with a higher mode joins. */
Test(close_real_waiters, a_higher_mode_joins_a_lower_one)
{
	open_gates();
	tw_service *service = open_service(1);
	atomic_int stood = 0, runs = 0;
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
	expect_eq(tw_schedule(service, HOUR, count, &runs, NULL), 0);
	struct closing run, drain;
	closing_start(&run, service, TW_CLOSE_RUN, TW_FOREVER);
	await_closed(service);
	closing_start(&drain, service, TW_CLOSE_DRAIN, TW_FOREVER); /* would last an hour */
	sem_post(&go_on);
	expect_eq(closing_end(&drain), 0);
	expect_eq(closing_end(&run), 0);
	expect_eq(runs, 1);
	close_service(service);
}

/* ------------------------------------------------------------ 0 means: the threads have ended */

static pthread_key_t key;
static atomic_int ended;

static void end_slowly(void *value)
{
	(void)value;
	sem_post(&entered);
	await(&go_on, 1);
	atomic_fetch_add(&ended, 1);
}

static void set_key(void *arg)
{
	pthread_setspecific(key, arg);
	count(arg);
}

/* The worker lingers in an exit handler of its own: no close may say that all is over. */
Test(close_real_waiters, none_answers_0_while_another_still_joins_the_pool)
{
	open_gates();
	tw_service *service = open_service(1);
	struct closing first, second;
	atomic_int runs = 0;
	expect_eq(pthread_key_create(&key, end_slowly), 0);
	expect_eq(tw_schedule(service, 0, set_key, &runs, NULL), 0);
	closing_start(&first, service, TW_CLOSE_DRAIN, TW_FOREVER);
	await(&entered, 1);
	closing_start(&second, service, TW_CLOSE_DROP, 20 * MS);
	expect_eq(closing_end(&second), -ETIMEDOUT);
	closing_start(&second, service, TW_CLOSE_DROP, TW_FOREVER);
	sem_post(&go_on);
	expect_eq(closing_end(&second), 0);
	expect_eq(ended, 1);
	expect_eq(closing_end(&first), 0);
	close_service(service);
}

/*
 * ------------------------------------------------------------ a manual drive, a foreign executor
 */

/* Runs given back while a drain goes on come again, and the drain waits for them. */
Test(close_real_waiters, hand_over_again_what_is_given_back_in_a_drain)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	for (int threaded = 0; threaded <= 1; threaded++) {
		tw_service *service;
		struct closing drain;
		atomic_int runs = 0;
		struct tw_service_config cfg = {.size = sizeof(cfg), .executor = &queue.base};
		cfg.drive = threaded ? TW_DRIVE_THREAD : TW_DRIVE_MANUAL;
		expect_eq(tw_service_create(&service, &cfg), 0);
		for (int i = 0; i < 30; i++)
			expect_eq(tw_schedule(service, (uint64_t)i * MS, count, &runs, NULL), 0);
		closing_start(&drain, service, TW_CLOSE_DRAIN, TW_FOREVER);
		for (int given_back = 0; given_back < 100;)
			given_back += queue_executor_drop_next(&queue) == 0;
		expect_eq(runs, 0);
		while (runs < 30)
			queue_executor_run_all(&queue);
		expect_eq(closing_end(&drain), 0);
		expect_eq(stats_of(service).dropped, 0);
		close_service(service);
	}
	queue_executor_close(&queue);
}
