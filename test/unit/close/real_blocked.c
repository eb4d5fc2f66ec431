/* Closes beside a callback that does not return: each close answers in time, and truly. */
#include <errno.h>

#include "test/support/gates.h"

TestSuite(close_real_blocked, .timeout = 60);

static tw_service *open_inline(void)
{
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

/* Each answers in time, and truly. */
static void expect_no_end(tw_service *service)
{
	for (int mode = TW_CLOSE_DRAIN; mode >= TW_CLOSE_DROP; mode--) {
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, 20 * MS), -ETIMEDOUT);
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, 0), -ETIMEDOUT);
	}
}

Test(close_real_blocked, are_not_held_up_by_a_callback_in_the_pool)
{
	open_gates();
	tw_service *service = open_service(2);
	atomic_int stood = 0, runs = 0;
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
	expect_eq(tw_schedule(service, HOUR, count, &runs, NULL), 0);
	do /* what is pending may have to wait until the tick thread gets a processor */
		expect_no_end(service);
	while (stats_of(service).pending > 1);
	expect_eq(stats_of(service).pending, 1);
	sem_post(&go_on);
	close_service(service);
	expect_eq(runs, 0); /* the drain's time was up */
}

Test(close_real_blocked, are_not_held_up_by_a_callback_on_the_tick_thread)
{
	open_gates();
	tw_service *service = open_inline();
	atomic_int stood = 0;
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
	expect_no_end(service);
	sem_post(&go_on);
	close_service(service);
	expect_eq(stood, 1);
}

static void *advance(void *service)
{
	tw_service_advance(service, TW_NO_LIMIT);
	return NULL;
}

Test(close_real_blocked, are_not_held_up_by_a_callback_in_an_advance)
{
	open_gates();
	tw_service *service;
	pthread_t driver;
	atomic_int stood = 0;
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_schedule_at(service, 0, stand_still, &stood, NULL), 0);
	expect_eq(pthread_create(&driver, NULL, advance, service), 0);
	await(&entered, 1);
	expect_no_end(service);
	sem_post(&go_on);
	pthread_join(driver, NULL);
	close_service(service);
}
