/* What a close leaves whose time is up; and what releases do in a close. */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "test/support/rig_suite.h"
#include "test/support/shot.h"
#include "test/support/timer_script.h"

TestSuite(close_timeout, .init = open_rig, .fini = close_rig, .timeout = 30);

static sem_t entered, go_on;

static void stand_still(struct probe *probe)
{
	sem_post(&entered);
	await(&go_on, 1);
}

/* The runs that it leaves are waited for by those who ask. */
Test(close_timeout, leaves_waiting_to_others)
{
	sem_init(&entered, 0, 0);
	sem_init(&go_on, 0, 0);
	for (int mode = TW_CLOSE_DROP; mode <= TW_CLOSE_DRAIN; mode++) {
		tw_service *service = open_service(2);
		struct rig real = {.service = service, .lock = PTHREAD_MUTEX_INITIALIZER};
		struct probe probes[2];
		for (int i = 0; i < 2; i++) {
			probes[i] = PROBE(&real, i);
			probes[i].act = stand_still;
			probe_schedule_released(&probes[i], 0);
		}
		await(&entered, 2);
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, 0), -ETIMEDOUT);
		expect_eq(stats_of(service).pending + stats_of(service).fired, 0);
		expect_eq(probes[0].releases + probes[1].releases, 0);
		sem_post(&go_on);
		sem_post(&go_on);
		expect_ne(tw_cancel_wait(service, probes[0].timer, TW_FOREVER), TW_RUNNING);
		expect_eq(probes[0].releases, 1);
		expect_eq(tw_service_destroy(service), 0); /* waits for the other */
		expect_eq(probes[1].releases, 1);
		free(real.events);
	}
}

/* ------------------------------------------------------------ releases in a close */

static const struct script scripts[] = {
    {"may call what any release may",
     {{"timer 0 in=9 [timer 1 in=0; cancel 0; cancel_wait 0; reset 0 by=0; left 0; close drop 0; "
       "destroy; stats dropped]; close drop",
       "0 dropped, ESHUTDOWN, RUNNING, SELF, ESHUTDOWN, ENOENT, EDEADLK, EDEADLK, dropped=1"}}},
    {"may cancel the others",
     {{"timer 0 in=9 [cancel 1 2]; timer 1 2 in=9; close drop",
       "0 dropped, 1 cancelled, CANCELLED, 2 cancelled, CANCELLED"}}},
};

Test(close_timeout, a_release_in_a_close_follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
