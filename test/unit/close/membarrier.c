/*
 * The kernel refuses membarrier later than at creation: close refuses, destroy does not, and
 * sleeping costs a tick at most.
 */
#include <errno.h>
#include <semaphore.h>

#include "test/support/faults.h"
#include "test/support/shot.h"
#include "wheel/core/service.h"

TestSuite(close_membarrier, .timeout = 60);

static atomic_int runs, releases;

static void count_run(void *arg)
{
	(void)arg;
	runs++;
}

static void count_release(void *arg, enum tw_fate fate)
{
	(void)arg, (void)fate;
	releases++;
}

static tw_service *open_manual(void)
{
	tw_service *service;
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

static tw_service *(*const openers[])(void) = {open_manual, NULL};

static tw_service *open_either(int which)
{
	return openers[which] ? openers[which]() : open_service(1);
}

static void schedule_counted(tw_service *service)
{
	struct tw_task task = {
	    .size = sizeof(task), .fn = count_run, .when_ns = HOUR, .release = count_release};
	runs = releases = 0;
	expect_eq(tw_schedule_task(service, &task, NULL), 0);
}

/* ------------------------------------------------------------ close */

Test(close_membarrier, refused_at_close_refuses_the_close_and_changes_nothing)
{
	for (int which = 0; which <= 1; which++)
		for (int mode = TW_CLOSE_DROP; mode <= TW_CLOSE_RUN; mode++) {
			tw_service *service = open_either(which);
			schedule_counted(service);
			faults_refuse_membarrier(true);
			expect_eq(tw_service_close(service, (enum tw_close_mode)mode, TW_FOREVER),
				  -ENOTSUP);
			expect_eq(releases, 0);
			expect_eq(stats_of(service).pending, 1);
			expect_eq(tw_schedule(service, HOUR, count_run, NULL, NULL), 0);
			faults_refuse_membarrier(false);
			expect_eq(tw_service_close(service, (enum tw_close_mode)mode, TW_FOREVER),
				  0);
			expect_eq(releases, 1);
			expect_eq(runs, mode == TW_CLOSE_RUN ? 2 : 0);
			close_service(service);
		}
}

/* A close under way has passed its barrier: the next one goes on. */
Test(close_membarrier, refused_after_a_close_has_begun_does_not_matter)
{
	tw_service *service = open_either(0);
	schedule_counted(service);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, 0), 0);
	faults_refuse_membarrier(true);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	faults_refuse_membarrier(false);
	expect_eq(releases, 1);
	close_service(service);
}

/* Whoever destroys has seen to it that all other calls came before. */
Test(close_membarrier, refused_at_destroy_does_not_matter)
{
	for (int which = 0; which <= 1; which++) {
		tw_service *service = open_either(which);
		schedule_counted(service);
		faults_refuse_membarrier(true);
		expect_eq(tw_service_destroy(service), 0);
		expect_eq(releases, 1);
		faults_refuse_membarrier(false);
	}
}

/* ------------------------------------------------------------ sleeping */

/*
 * Cannot be sure of having seen all, so it looks again each tick; and sleeps as it should when it
 * can be sure again.
 */
Test(close_membarrier, refused_in_the_middle_costs_a_look_each_tick)
{
	tw_service *service = open_service(1);
	struct shot far = {.service = service};
	schedule_shot(&far, HOUR);
	faults_refuse_membarrier(true);
	sem_t done;
	sem_init(&done, 0, 0);
	struct shot near = {.service = service, .done = &done};
	schedule_shot(&near, 0); /* wakes it */
	uint64_t before = stats_of(service).wakeups;
	while (stats_of(service).wakeups < before + 50)
		sched_yield();
	await(&done, 1);
	expect_eq(near.runs, 1);
	struct shot later = {.service = service, .done = &done};
	schedule_shot(&later, 20 * MS);
	await(&done, 1);
	expect_eq(later.early, 0);
	faults_refuse_membarrier(false);
	expect_eq(tw_cancel(service, far.timer), TW_CANCELLED);
	close_service(service);
}
