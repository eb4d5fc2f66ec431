/*
 * The kernel refuses membarrier later than at creation: close refuses, destroy does not, and
 * sleeping costs a tick at most.
 */
#include <errno.h>
#include <semaphore.h>

#include "test/support/faults.h"
#include "test/support/shot.h"
#include "test/support/timer_script.h"
#include "wheel/core/service.h"

TestSuite(close_membarrier, .timeout = 60);

static void membarrier(const struct words *words)
{
	faults_refuse_membarrier(has_word(words, "refused"));
}

static const struct verb verbs[] = {{"membarrier", membarrier}, {NULL, NULL}};

static const struct script scripts[] = {
    {"at a drop refuses the close and changes nothing",
     {{"timer 0 in=3600000; membarrier refused; close drop; stats pending; timer 1 in=9",
       "ENOTSUP, pending=1"},
      {"membarrier works; close drop; stats runs", "0 dropped, 1 dropped, runs=0"}}},
    {"at a run refuses the close and changes nothing",
     {{"timer 0 in=3600000; membarrier refused; close run; stats pending; timer 1 in=9",
       "ENOTSUP, pending=1"},
      {"membarrier works; close run; stats runs",
       "run 1 closing, 1 fired, run 0 closing, 0 fired, runs=2"}}},
    {"the same with a tick thread and a worker",
     {{"given real workers=1; timer 0 in=3600000; membarrier refused; close drop; stats pending",
       "ENOTSUP, pending=1"},
      {"close run; membarrier works; close run; stats runs",
       "ENOTSUP, run 0 closing, 0 fired, runs=1"}}},
    /* a close under way has passed its barrier */
    {"after a close has begun does not matter",
     {{"timer 0 in=9; close drop 0; membarrier refused; close drop; membarrier works",
       "0 dropped"}}},
};

Test(close_membarrier, refused_follows_the_scripts)
{
	PLAY(&timer_stage, verbs, scripts);
}

/* Whoever destroys has seen to it that all other calls came before. */
Test(close_membarrier, refused_at_destroy_does_not_matter)
{
	struct rig rig;
	struct probe probe = PROBE(&rig, 1);
	for (int real = 0; real < 2; real++) {
		if (real)
			rig_open_real(&rig, (struct tw_service_config){.workers = 1});
		else
			rig_open(&rig, NULL);
		probe_schedule_released(&probe, HOUR);
		faults_refuse_membarrier(true);
		expect_eq(tw_service_destroy(rig.service), 0);
		faults_refuse_membarrier(false);
		expect_eq(probe.releases, real + 1);
		expect_eq(real || tw_clock_manual_destroy(rig.clock) == 0, true);
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
