/*
 * As in storm_idle.c, with a tick thread in real time: the rest of a storm is cancelled while
 * memory goes back, and then nobody calls. The suite's time limit guards it.
 */
#include <time.h>

#include "test/support/big.h"
#include "test/support/rig.h"

enum { MANY = 1000000, SOME = 400000, KEPT_PERCENT = 10 };

static tw_timer *timers; /* MANY / 2 */

static void allocate(void)
{
	timers = big_array(MANY / 2, sizeof *timers);
}

TestSuite(driver_real_storm_idle, .init = allocate, .timeout = 90);

static void ignore(void *arg)
{
	(void)arg;
}

static void cancel(tw_service *service, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++)
		expect_eq(tw_cancel(service, timers[i]), TW_CANCELLED);
}

static void await_less_than(tw_service *service, uint64_t bytes)
{
	const struct timespec moment = {.tv_nsec = MS};
	while (stats_of(service).memory_bytes >= bytes)
		nanosleep(&moment, NULL);
}

Test(driver_real_storm_idle, cancelled_while_memory_goes_back)
{
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = tw_executor_inline()};
	cfg.lane_entries = 4 << 20; /* the tick thread may come too late to drain */
	tw_service *service;
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (size_t i = 0; i < MANY / 2; i++) {
		expect_eq(tw_schedule(service, MS, ignore, NULL, NULL), 0);
		expect_eq(tw_schedule(service, HOUR, ignore, NULL, &timers[i]), 0);
	}
	while (stats_of(service).fired < MANY / 2)
		;
	cancel(service, 0, SOME);
	uint64_t held = stats_of(service).memory_bytes;
	await_less_than(service, held - held / 100);
	cancel(service, SOME, MANY / 2);
	await_less_than(service, held * KEPT_PERCENT / 100);
	expect_eq(tw_service_destroy(service), 0);
}
