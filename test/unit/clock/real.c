/* The clocks that run by themselves, and which one a service takes. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

#include "test/support/shot.h"

TestSuite(clock_real, .timeout = 60);

static uint64_t kernel_ns(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

Test(clock_real, tell_the_kernels_time)
{
	uint64_t before_ns = kernel_ns(CLOCK_BOOTTIME), now_ns = tw_clock_now(tw_clock_boottime());
	expect_ge(now_ns, before_ns);
	expect_le(now_ns, kernel_ns(CLOCK_BOOTTIME));
	before_ns = kernel_ns(CLOCK_MONOTONIC);
	now_ns = tw_clock_now(tw_clock_monotonic());
	expect_ge(now_ns, before_ns);
	expect_le(now_ns, kernel_ns(CLOCK_MONOTONIC));
	cr_assert(tw_clock_boottime() == tw_clock_boottime());
	cr_assert(tw_clock_monotonic() == tw_clock_monotonic());
	cr_assert(tw_clock_boottime() != tw_clock_monotonic());
	expect_eq(tw_clock_now(NULL), 0);
}

/* ------------------------------------------------------------ boottime */

static tw_service *open_on_boottime(void)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .clock = tw_clock_boottime()};
	tw_service *service = NULL;
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

/* From rest each time: one that it slept through would hang here. */
Test(clock_real, boottime_wakes_up_for_each_timer)
{
	tw_service *service = open_on_boottime();
	sem_t done;
	sem_init(&done, 0, 0);
	struct shot far = {.service = service}, shot;
	schedule_shot(&far, HOUR);
	for (int i = 0; i < 150; i++) {
		shot = (struct shot){.service = service, .done = &done};
		schedule_shot(&shot, (uint64_t)(i % 3) * MS);
		await(&done, 1);
		expect_eq(shot.early, 0);
	}
	far.due_ns = tw_service_now(service) + MS;
	expect_eq(tw_reset(service, far.timer, MS), 0);
	while (tw_is_pending(service, far.timer))
		sched_yield();
	close_service(service);
	expect_eq(far.runs, 1);
	expect_eq(far.early, 0);
}

Test(clock_real, boottime_is_quiet_when_idle)
{
	tw_service *service = open_on_boottime();
	struct shot far = {.service = service};
	schedule_shot(&far, HOUR);
	await_quiet(service);
	close_service(service);
}

/* ------------------------------------------------------------ the default */

Test(clock_real, the_default_is_taken_by_services_that_name_none)
{
	tw_clock *clock;
	expect_eq(tw_clock_manual_create(&clock, 5 * SECOND), 0);
	expect_eq(tw_clock_set_default(clock), 0);
	struct tw_service_config cfg = rig_config();
	tw_service *service;
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_service_now(service), 5 * SECOND);
	expect_eq(tw_clock_set_default(NULL), -EBUSY);
	expect_eq(tw_clock_set_default(clock), -EBUSY);
	tw_service *second;
	cfg.clock = tw_clock_boottime();
	expect_eq(tw_service_create(&second, &cfg), 0);
	expect_ne(tw_service_now(second), 5 * SECOND);
	expect_eq(tw_service_destroy(second), 0);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_clock_set_default(NULL), -EBUSY); /* one has been made, though it is gone */
	expect_eq(tw_clock_manual_destroy(clock), 0);
}

Test(clock_real, the_default_can_be_put_back)
{
	tw_clock *clock;
	expect_eq(tw_clock_manual_create(&clock, 5), 0);
	expect_eq(tw_clock_set_default(clock), 0);
	expect_eq(tw_clock_set_default(NULL), 0);
	tw_service *service = open_service(1);
	expect_gt(tw_service_now(service), 5);
	close_service(service);
	expect_eq(tw_clock_manual_destroy(clock), 0);
}

/* A create that fails leaves nothing behind. */
Test(clock_real, a_failed_create_does_not_fix_the_default)
{
	struct tw_service_config bad = {.size = sizeof(bad), .tick_ns = 1};
	tw_service *service;
	expect_eq(tw_service_create(&service, &bad), -EINVAL);
	expect_eq(tw_clock_set_default(tw_clock_boottime()), 0);
}
