/* Signals rain on the process: they go to its own threads, and no call is cut short by one. */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "test/support/shot.h"

TestSuite(driver_real_signals, .timeout = 60);

static pthread_t tests_own;
static atomic_int caught, caught_elsewhere;

static void on_signal(int number)
{
	(void)number;
	caught++;
	caught_elsewhere += !pthread_equal(pthread_self(), tests_own);
}

/* For the process, not for a thread: the kernel picks any that does not block it. */
static timer_t start_rain(void)
{
	tests_own = pthread_self();
	struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART */
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec often = {{0, 50000}, {0, 50000}};
	timer_t timer;
	expect_eq(sigaction(SIGUSR1, &action, NULL), 0);
	expect_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	expect_eq(timer_settime(timer, 0, &often, NULL), 0);
	return timer;
}

static atomic_int ran;

static void take_a_while(void *arg)
{
	(void)arg;
	uint64_t until_ns = tw_clock_now(tw_clock_monotonic()) + 2 * MS;
	while (tw_clock_now(tw_clock_monotonic()) < until_ns)
		;
	ran++;
}

/* Waits that signals interrupt go on: a cancel_wait, a close, each of its modes. */
Test(driver_real_signals, cut_no_call_short)
{
	timer_t rain = start_rain();
	for (int mode = TW_CLOSE_DROP; mode <= TW_CLOSE_DRAIN; mode++) {
		tw_service *service = open_service(2);
		struct shot shots[50];
		ran = 0;
		for (int i = 0; i < 20; i++) {
			tw_timer timer;
			int before = ran;
			expect_eq(tw_schedule(service, 0, take_a_while, NULL, &timer), 0);
			if (tw_cancel_wait(service, timer, TW_FOREVER) != TW_CANCELLED)
				expect_eq(ran, before + 1);
		}
		for (int i = 0; i < 50; i++) {
			shots[i] = (struct shot){.service = service};
			schedule_shot(&shots[i], (uint64_t)i * MS);
		}
		expect_eq(tw_schedule(service, 0, take_a_while, NULL, NULL), 0);
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, TW_FOREVER), 0);
		for (int i = 0; i < 50; i++) {
			expect_eq(shots[i].early, 0);
			expect_le(shots[i].runs, 1);
			cr_assert(mode == TW_CLOSE_DROP || shots[i].runs == 1);
		}
		expect_eq(stats_of(service).pending, 0);
		expect_eq(tw_service_destroy(service), 0);
	}
	timer_delete(rain);
	expect_gt(caught, 0);
	expect_eq(caught_elsewhere, 0); /* G13 */
}
