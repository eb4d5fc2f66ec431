/* pool.h, manual.h, clock.h. */
#include <errno.h>

#include "calls.h"

static tw_pool *pool; /* one worker, 16 tasks */
static tw_manual *queue;
static tw_clock *clock;
static tw_service *service;
static struct hold held;

static void pool_calls(void)
{
	CALL(tw_pool_submit(pool, nothing, NULL));
	CALL(tw_pool_submit_wait(pool, nothing, NULL, 0));
	CALL(tw_pool_submit_wait(pool, nothing, NULL, MS));
	CALL(tw_pool_stats(pool, PLAIN(tw_pool_stats)));
}

static void pool_ends(void)
{
	CALL(tw_pool_close(pool, TW_CLOSE_DROP, NULL, NULL));
	CALL(tw_pool_destroy(pool));
}

static void pool_in_child(void)
{
	pool_calls();
	pool_ends();
}

static void pool_creates(void)
{
	tw_pool *other;
	CALL(tw_pool_create(&other, NULL));
	CALL(tw_pool_stats(pool, PLAIN(tw_pool_stats)));
}

static void told(void *arg, tw_fn *fn, void *fn_arg)
{
	testcancel(NULL, TW_FATE_DROPPED);
	situation("inside `told`");
	pool_ends();
}

static void inside_a_task(void)
{
	situation("inside a task");
	while (tw_pool_submit(pool, nothing, NULL) == 0) {
	}
	pool_calls();
	pool_ends();
}

void pools(void)
{
	tw_pool *other;
	MUST(tw_pool_create(&pool,
			    STRUCT(tw_pool_config, .workers = 1, .max_workers = 1, .queue = 16)));
	situation("with bad arguments");
	CALL(tw_pool_create(&other, BIG(tw_pool_config, .workers = 1)));
	CALL(tw_pool_destroy(NULL));
	in_child(pool_in_child);
	without_memory(pool_creates);
	MUST(tw_service_create(&service,
			       STRUCT(tw_service_config, .executor = tw_pool_executor(pool))));
	situation("while a service uses it");
	pool_ends();
	MUST(tw_service_destroy(service));
	struct inside in = {.calls = inside_a_task};
	MUST(tw_pool_submit(pool, run_calls, &in));
	await_over(&in);
	held = (struct hold){0};
	MUST(tw_pool_submit_wait(pool, hold, &held, TW_FOREVER));
	await_begun(&held);
	while (tw_pool_submit(pool, nothing, NULL) == 0) {
	}
	situation("full");
	pool_calls();
	let_go(&held);
	CALL(tw_pool_close(pool, TW_CLOSE_DROP, told, NULL));
	situation("closed");
	pool_calls();
	pool_ends();
}

static void manual_calls(void)
{
	CALL(tw_manual_fd(queue));
	CALL(tw_manual_pump(queue, 1));
}

static void manual_in_child(void)
{
	manual_calls();
	CALL(tw_manual_destroy(queue));
}

static void manual_creates(void)
{
	tw_manual *other;
	CALL(tw_manual_create(&other, NULL));
	MUST(tw_manual_create(&other, NULL));
	CALL(tw_manual_fd(other));
	MUST(tw_manual_destroy(other));
}

static void pumps(void)
{
	tw_schedule(service, 0, nothing, NULL, NULL);
	tw_clock_manual_advance_by(clock, 5 * MS);
	CALL(tw_manual_pump(queue, 1));
}

void manuals(void)
{
	tw_manual *other;
	MUST(tw_manual_create(&queue, NULL));
	situation("with bad arguments");
	CALL(tw_manual_create(&other, BIG(tw_manual_config, .queue = 1)));
	CALL(tw_manual_destroy(NULL));
	in_child(manual_in_child);
	without_memory(manual_creates);
	MUST(tw_clock_manual_create(&clock, 0));
	MUST(tw_service_create(&service,
			       STRUCT(tw_service_config, .clock = clock, .drive = TW_DRIVE_MANUAL,
				      .executor = tw_manual_executor(queue))));
	without_memory(pumps);
	MUST(tw_schedule(service, 0, nothing, NULL, NULL));
	MUST(tw_clock_manual_advance_by(clock, 5 * MS));
	situation("while a run waits");
	CALL(tw_manual_destroy(queue));
	situation("open");
	manual_calls();
	while (tw_manual_pump(queue, TW_NO_LIMIT) > 0) {
	}
	MUST(tw_service_destroy(service));
	MUST(tw_clock_manual_destroy(clock));
	CALL(tw_manual_destroy(queue));
}

static void clock_calls(void)
{
	CALL(tw_clock_manual_set(clock, MS));
	CALL(tw_clock_manual_advance_by(clock, MS));
	CALL(tw_clock_set_default(clock));
}

static void clock_in_child(void)
{
	clock_calls();
	CALL(tw_service_create(&(tw_service *){NULL}, STRUCT(tw_service_config, .clock = clock)));
	CALL(tw_clock_manual_destroy(clock));
}

static void clock_creates(void)
{
	tw_clock *other;
	CALL(tw_clock_manual_create(&other, 0));
}

static void advance(void *arg)
{
	situation("inside a callback on this clock");
	CALL(tw_clock_manual_advance_by(clock, MS));
}

void clocks(void)
{
	MUST(tw_clock_manual_create(&clock, 0));
	situation("with bad arguments");
	CALL(tw_clock_manual_destroy(NULL));
	CALL(tw_set_allocator(NULL));
	in_child(clock_in_child);
	without_memory(clock_creates);
	MUST(tw_service_create(&service,
			       STRUCT(tw_service_config, .clock = clock, .drive = TW_DRIVE_MANUAL,
				      .executor = tw_executor_inline())));
	situation("while a service uses it");
	clock_calls();
	CALL(tw_clock_manual_destroy(clock));
	MUST(tw_schedule(service, 0, advance, NULL, NULL));
	MUST(tw_clock_manual_advance_by(clock, 5 * MS));
	MUST(tw_service_destroy(service));
	situation("open");
	CALL(tw_clock_manual_destroy(clock));
}
