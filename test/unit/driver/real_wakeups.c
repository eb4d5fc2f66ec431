/* When the tick thread wakes up, parks and sleeps, on the real clock. */
#include <sched.h>
#include <time.h>

#include "test/support/shot.h"
#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

TestSuite(driver_real_wakeups, .timeout = 60);

enum { SHOTS = 500 };

static struct shot shots[SHOTS];

/* One timer at a time, each from rest: a push that sleeps through would hang here. */
Test(driver_real_wakeups, wakes_up_for_each_timer)
{
	tw_service *service = open_service(1);
	sem_t done;
	sem_init(&done, 0, 0);
	shots[1] = (struct shot){.service = service};
	schedule_shot(&shots[1], HOUR);
	for (int i = 0; i < 150; i++) {
		shots[0] = (struct shot){.service = service, .done = &done};
		schedule_shot(&shots[0], (uint64_t)(i % 3) * MS);
		await(&done, 1);
		expect_eq(shots[0].early, 0);
	}
	close_service(service);
	expect_eq(shots[1].runs, 0);
}

/* The first of `count` shots, one in each tick. */
static uint64_t one_in_each_tick(tw_service *service, int count, sem_t *done)
{
	uint64_t first_ns = tw_service_now(service) + 50 * MS;
	for (int i = 0; i < count; i++) {
		shots[i] = (struct shot){
		    .service = service, .done = done, .due_ns = first_ns + (uint64_t)i * MS};
		expect_eq(tw_schedule_at(service, shots[i].due_ns, shoot, &shots[i], NULL), 0);
	}
	return tw__tick_of(service, first_ns);
}

/*
 * Or until the driver has come to that tick: this thread was kept from looking, and nothing more
 * wakes it.
 */
static void await_wakeups(tw_service *service, uint64_t more, uint64_t last)
{
	uint64_t before = tw_load_relaxed(&service->driver->counters.wakeups);
	while (tw_load_relaxed(&service->driver->counters.wakeups) - before < more &&
	       tw_load_acquire(&service->gate.cursor) < last)
		sched_yield();
}

/* It would wake as often, but at each time interrupt all processors that run the process. */
Test(driver_real_wakeups, the_tick_thread_does_not_park_while_timers_are_due_in_each_tick)
{
	enum { COUNT = SHOTS, ENOUGH = 100 };
	tw_service *service;
	expect_eq(tw_service_create(&service, NULL), 0);
	sem_t done;
	sem_init(&done, 0, 0);
	for (int seen = 0; seen < ENOUGH;) { /* once, unless this thread was kept from looking */
		uint64_t last = one_in_each_tick(service, COUNT, &done) + COUNT - 1;
		await(&done, 1);
		await_wakeups(service, 3, last);
		for (uint64_t word; word = tw_load_acquire(&service->gate.word),
				    tw_load_acquire(&service->gate.cursor) + 2 < last;
		     seen++, sched_yield())
			expect_eq(word & TW__GATE_PARKED, 0);
		await(&done, COUNT - 1);
	}
	while (!(tw_load_acquire(&service->gate.word) & TW__GATE_PARKED))
		sched_yield(); /* and then it does */
	close_service(service);
}

/* ------------------------------------------------------------ G9 */

Test(driver_real_wakeups, an_empty_service_never_wakes_up)
{
	tw_service *service = open_service(2);
	sem_t done;
	sem_init(&done, 0, 0);
	shots[0] = (struct shot){.service = service, .done = &done};
	schedule_shot(&shots[0], MS);
	await(&done, 1);
	await_quiet(service);
	close_service(service);
}

/*
 * When the last callback has run: it was awake for that, and what it goes to sleep with now is all
 * that there is.
 */
static void await_sleep(tw_service *service)
{
	while (!(tw_load_seq_cst(&service->gate.word) & TW__GATE_PARKED))
		sched_yield();
}

/* Memory that a storm has left over goes back much later, if nothing else wakes anybody. */
Test(driver_real_wakeups, many_distant_timers_wake_nobody_now)
{
	tw_service *service = open_service(2);
	tw_timer timer;
	sem_t done;
	sem_init(&done, 0, 0);
	static struct shot unused;
	unused = (struct shot){.service = service, .done = &done};
	for (int i = 0; i < 100000; i++)
		expect_eq(tw_schedule(service, HOUR, shoot, &unused, &timer), 0);
	for (uint64_t i = 0; i < 100; i++) /* it ticks on for a while, and sees what is left over */
		expect_eq(tw_schedule(service, i * MS, shoot, &unused, &timer), 0);
	await(&done, 100);
	await_sleep(service);
	const struct timespec quiet = {.tv_sec = 1, .tv_nsec = 500 * MS};
	uint64_t before = stats_of(service).wakeups;
	nanosleep(&quiet, NULL);
	expect_le(stats_of(service).wakeups, before + 1);
	expect_eq(tw_service_destroy(service), 0);
}
