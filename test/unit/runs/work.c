/* Work of the layers above, by the face that batches of timers have. */
#include "wheel/run/work.h"

#include <errno.h>

#include "executor/pool/layer.h"
#include "test/support/eager_executor.h"
#include "test/support/expect.h"
#include "test/support/queue_executor.h"

static tw_clock *now_clock;
static tw_service *service;
static struct queue_executor queue;
static struct tw__work work;
static unsigned runs;

static void count(struct tw__work *w)
{
	expect_eq(w, &work);
	runs++;
}

static void open_with(tw_executor *executor)
{
	expect_eq(tw_clock_manual_create(&now_clock, 0), 0);
	queue_executor_open(&queue);
	struct tw_service_config config = {.size = sizeof config,
					   .clock = now_clock,
					   .drive = TW_DRIVE_MANUAL,
					   .executor = executor ? executor : &queue.base};
	expect_eq(tw_service_create(&service, &config), 0);
	expect_eq(tw__service_hold(service), 0);
	tw__work_init(&work, service, config.executor, count);
}

static void close_all(void)
{
	tw__service_let_go(service);
	expect_eq(tw_service_destroy(service), 0);
	queue_executor_close(&queue);
	tw_clock_manual_destroy(now_clock);
}

static void advance(void)
{
	tw_service_advance(service, TW_NO_LIMIT);
}

Test(runs_work, refused_or_given_back_is_offered_again_each_tick_until_it_is_taken)
{
	open_with(NULL);
	queue.refuse = 3;
	tw__work_submit(&work);
	for (unsigned turn = 0; turn < 2; turn++) {
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		expect_eq(queue_executor_waiting(&queue), 0);
	}
	expect_eq(queue.refuse, 0);
	advance();
	expect_eq(queue_executor_drop_next(&queue), 0);
	expect_eq(queue_executor_waiting(&queue), 0);
	advance();
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_eq(runs, 1);
	close_all();
}

enum { LINKS = 100000 };

static const char *first_frame;
static size_t deepest;

static void submit_the_next(struct tw__work *w)
{
	const char *frame = __builtin_frame_address(0);
	if (!first_frame)
		first_frame = frame;
	size_t depth = (size_t)(frame < first_frame ? first_frame - frame : frame - first_frame);
	deepest = depth > deepest ? depth : deepest;
	if (++runs < LINKS)
		tw__work_submit(w);
}

Test(runs_work, chain_of_runs_inside_submit_needs_no_stack)
{
	open_with(&eager_executor);
	tw__work_init(&work, service, &eager_executor, submit_the_next);
	tw__work_submit(&work);
	for (unsigned turns = 0; runs < LINKS && turns < 2 * LINKS; turns++)
		advance();
	expect_eq(runs, LINKS);
	expect_le(deepest, 4096);
	close_all();
}

static void pass(struct tw__work *w)
{
	(void)w;
}

static tw_service *driven_in_submit;

static int drive_and_refuse(tw_executor *self, tw_batch *batch, size_t n)
{
	(void)self;
	(void)batch;
	(void)n;
	tw_service_advance(driven_in_submit, TW_NO_LIMIT);
	return -EAGAIN;
}

/* Who calls tw_service_advance wants work to run, wherever the call comes from. */
Test(runs_work, runs_in_an_advance_that_an_executor_calls_inside_submit)
{
	static const struct tw_executor_ops ops = {sizeof ops, drive_and_refuse};
	tw_executor driver = {&ops};
	struct tw__work other;
	open_with(&eager_executor);
	driven_in_submit = service;
	tw__work_init(&other, service, &driver, pass);
	tw__work_submit(&work);
	expect_eq(runs, 0);
	tw__work_submit(&other);
	expect_eq(runs, 1);
	tw__work_leave_executor(&other); /* it was refused, and the driver runs it */
	advance();
	close_all();
}

static uint64_t next_expiry(void)
{
	uint64_t at_ns;
	expect_eq(tw_service_next_expiry(service, &at_ns), 0);
	return at_ns;
}

Test(runs_work, next_expiry_is_now_while_some_waits)
{
	open_with(tw_executor_inline());
	expect_eq(next_expiry(), UINT64_MAX);
	tw__work_submit(&work);
	expect_le(next_expiry(), tw_service_now(service));
	advance();
	close_all();
}

static unsigned comings;

static void come_again_later(struct tw__work *w)
{
	runs++;
	if (--comings)
		tw__work_submit_later(w);
}

Test(runs_work, that_the_driver_runs_and_that_comes_again_later_lets_the_driver_sleep_for_a_tick)
{
	open_with(tw_executor_inline());
	tw__work_init(&work, service, tw_executor_inline(), come_again_later);
	comings = 4;
	tw__work_submit_later(&work);
	for (unsigned turn = 1; turn < 4; turn++) {
		advance();
		expect_eq(runs, turn);
		expect_gt(next_expiry(), tw_service_now(service));
		expect_le(next_expiry(), tw_service_now(service) + 2 * service->time.tick_ns);
	}
	advance();
	expect_eq(runs, 4);
	expect_eq(next_expiry(), UINT64_MAX);
	close_all();
}

Test(runs_work, held_service_refuses_to_close)
{
	open_with(NULL);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, 0), -EBUSY);
	expect_eq(tw_service_destroy(service), -EBUSY);
	tw_timer timer;
	expect_eq(tw_schedule(service, 1, (tw_fn *)(void (*)(void))count, NULL, &timer),
		  0); /* it is as open as before */
	expect_eq(tw_cancel(service, timer), TW_CANCELLED);
	tw__service_let_go(service);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw__service_hold(service), -ESHUTDOWN);
	expect_eq(tw_service_destroy(service), 0);
	queue_executor_close(&queue);
	tw_clock_manual_destroy(now_clock);
}

/*
 * Whoever has submitted work may still look at the service when the work has run and all have let
 * go.
 */
Test(runs_work, close_waits_for_whoever_is_in_the_middle_of_a_submit)
{
	open_with(NULL);
	tw__service_let_go(service);
	tw_add_relaxed(&service->phase.end, 1); /* as in a submit that has just pushed */
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	tw__end_may_come(service);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_service_destroy(service), 0);
	queue_executor_close(&queue);
	tw_clock_manual_destroy(now_clock);
}

Test(runs_work, base_keeps_a_shared_pool_open)
{
	tw_pool *pool;
	struct tw__base base;
	open_with(NULL);
	expect_eq(
	    tw_pool_create(&pool, &(struct tw_pool_config){.size = sizeof(struct tw_pool_config),
							   .workers = 1}),
	    0);
	expect_eq(tw__base_hold(&base, service, tw_pool_executor(pool)), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), -EBUSY);
	tw__base_leave(&base, TW__BASE_OVER);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(tw__base_hold(&base, service, tw_pool_executor(pool)), -ESHUTDOWN);
	expect_eq(tw_pool_destroy(pool), 0);
	close_all();
}
