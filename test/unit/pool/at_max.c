/* A pool of one worker, which is blocked: tw_service_liveness tells that runs wait for it. */
#include "gate.h"
#include "test/support/liveness.h"

TestSuite(pool_at_max, .timeout = 60);

static struct gate gate;
static atomic_int behind;
static tw_clock *manual_clock;
static tw_service *service;

static void open_one(void)
{
	sem_init(&gate.permits, 0, 0);
	expect_eq(tw_clock_manual_create(&manual_clock, 0), 0);
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.workers = config.max_workers = 1;
	config.clock = manual_clock;
	config.drive = TW_DRIVE_MANUAL;
	expect_eq(tw_service_create(&service, &config), 0);
}

static void close_one(void)
{
	expect_eq(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_clock_manual_destroy(manual_clock), 0);
}

static void expect_at_max_until_let_go(void)
{
	struct tw_service_liveness seen = liveness_of(service);
	expect_eq(seen.pool_at_max, 1);
	expect_eq(seen.pool_max_workers, 1);
	expect_eq(seen.running, 1);
	let_go(&gate, 1);
	await_value(&behind, 1);
	while (liveness_of(service).running)
		sched_yield();
	expect_eq(liveness_of(service).pool_at_max, 0);
}

Test(pool_at_max, not_while_nothing_waits, .init = open_one, .fini = close_one)
{
	expect_eq(liveness_of(service).pool_at_max, 0);
	expect_eq(tw_schedule(service, 0, pass, &gate, NULL), 0);
	tw_service_advance(service, TW_NO_LIMIT);
	await_value(&gate.inside, 1);
	expect_eq(liveness_of(service).pool_at_max, 0);
	let_go(&gate, 1);
}

Test(pool_at_max, with_a_timer_of_a_later_tick, .init = open_one, .fini = close_one)
{
	expect_eq(tw_schedule(service, 0, pass, &gate, NULL), 0);
	tw_service_advance(service, TW_NO_LIMIT);
	await_value(&gate.inside, 1);
	expect_eq(tw_schedule(service, 0, count, &behind, NULL), 0);
	tw_service_advance(service, TW_NO_LIMIT);
	expect_at_max_until_let_go();
}

/* Runs in the batch of the run that blocks wait for a worker too. */
Test(pool_at_max, with_a_timer_of_the_same_tick, .init = open_one, .fini = close_one)
{
	expect_eq(tw_schedule(service, 0, pass, &gate, NULL), 0);
	expect_eq(tw_schedule(service, 0, count, &behind, NULL), 0);
	tw_service_advance(service, TW_NO_LIMIT);
	await_value(&gate.inside, 1);
	expect_at_max_until_let_go();
}
