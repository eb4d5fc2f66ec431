/*
 * Sleeps that end uncalled, as by a signal or a word that has changed: nothing is lost, nothing is
 * early, and all waits still wait.
 */
#include <errno.h>

#include "test/support/faults.h"
#include "test/support/shot.h"

TestSuite(faults_real, .timeout = 60);

enum { COUNT = 1000 };

static struct shot shots[COUNT];
static sem_t done;

/* Schedules, waits for ends and for all runs while each n-th sleep is cut short. */
static void work_interrupted(unsigned n, tw_clock *clock)
{
	faults_interrupt_sleeps(n);
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 2, .clock = clock};
	expect_eq(tw_service_create(&service, &cfg), 0);
	sem_init(&done, 0, 0);
	for (int i = 0; i < COUNT; i++) {
		shots[i] = (struct shot){.service = service, .done = &done};
		schedule_shot(&shots[i], (uint64_t)(i % 40) * MS);
	}
	int cancelled = 0;
	for (int i = 0; i < COUNT; i += 10) {
		int answer = tw_cancel_wait(service, shots[i].timer, TW_FOREVER);
		cr_assert(answer == TW_CANCELLED || answer == TW_FINISHED || answer == TW_GONE,
			  "%d", answer);
		cancelled += answer == TW_CANCELLED;
	}
	await(&done, (size_t)(COUNT - cancelled));
	for (int i = 0; i < COUNT; i++)
		expect_eq(shots[i].early, 0);
	expect_eq(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_sound(service);
	expect_eq(stats_of(service).fired, COUNT - cancelled);
	expect_eq(stats_of(service).cancelled, cancelled);
	expect_eq(tw_service_destroy(service), 0);
	faults_interrupt_sleeps(0);
}

Test(faults_real, sleeps_of_which_all_or_some_end_at_once)
{
	work_interrupted(1, NULL);
	work_interrupted(3, NULL);
	work_interrupted(2, tw_clock_boottime()); /* on a descriptor */
}
