/* Persistent timers that are armed and disarmed while they run, or while they wait to run. */
#include <errno.h>
#include <pthread.h>

#include "test/support/persistent_suite.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_persistent_runs, .init = open_rig, .fini = close_rig, .timeout = 60);

/* ------------------------------------------------------------ while it runs */

/* What another thread says while the callback runs. The callback waits until it has been said. */
struct said {
	struct probe *probe;
	int (*say)(tw_service *service, tw_timer timer);
	int answer;
};

static void *call_it(void *arg)
{
	struct said *said = arg;
	said->answer = said->say(said->probe->rig->service, said->probe->timer);
	return NULL;
}

static struct said now_said;

static void hear(struct probe *probe)
{
	pthread_t thread;
	now_said.probe = probe;
	probe->act = NULL;
	if (pthread_create(&thread, NULL, call_it, &now_said) == 0)
		pthread_join(thread, NULL);
}

static int say_reset(tw_service *service, tw_timer timer)
{
	return tw_reset(service, timer, 10 * MS);
}

static int say_far(tw_service *service, tw_timer timer)
{
	return tw_reset(service, timer, 90 * DAY);
}

static int say_reset_and_disarm(tw_service *service, tw_timer timer)
{
	return tw_reset(service, timer, 10 * MS) ? -1 : tw_disarm(service, timer);
}

static int say_cancel_and_reset(tw_service *service, tw_timer timer)
{
	return tw_cancel(service, timer) == TW_RUNNING ? tw_reset(service, timer, MS) : -1;
}

static void expect_said(struct probe *probe, int (*what)(tw_service *, tw_timer), int answer)
{
	now_said = (struct said){.say = what};
	probe->act = hear;
	arm(probe, MS);
	rig_advance(probe->rig, MS);
	expect_eq(now_said.answer, answer);
}

Test(timer_persistent_runs, is_armed_by_others_while_it_runs)
{
	struct probe probe = PROBE(&rig, 1);
	create(&probe, TW_NEVER);
	expect_said(&probe, say_reset, 0);
	rig_advance(&rig, 9 * MS);
	expect_eq(probe.runs, 1);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 2);
	expect_said(&probe, say_far, 0);
	rig_advance(&rig, 89 * DAY);
	expect_eq(probe.runs, 3);
	rig_advance(&rig, DAY);
	expect_eq(probe.runs, 4);
	expect_said(&probe, say_reset_and_disarm, TW_RUNNING);
	rig_advance(&rig, DAY);
	expect_eq(probe.runs, 5);
	expect_said(&probe, say_cancel_and_reset, -ECANCELED);
	rig_advance(&rig, DAY);
	expect_eq(probe.runs, 6);
	expect_disarm(&probe, TW_GONE);
	expect_eq(stats_of(rig.service).cancelled, 1);
}

static const struct script scripts[] = {
    {"may arm itself",
     "",
     {{"timer 0 in=10 persistent plain times=3 {reset 0 by=10}; drive 100",
       "@10 run 0, @20 run 0, @30 run 0, @40 run 0"},
      {"disarm 0; cancel 0", "@100 DISARMED, CANCELLED"}}},
    {"may take back that it has armed itself",
     "",
     {{"timer 0 in=10 persistent plain {reset 0 by=10; disarm 0}; drive 100", "@10 run 0, RUNNING"},
      {"disarm 0; cancel 0", "@100 DISARMED, CANCELLED"}}},
    {"may arm itself for the earlier one",
     "",
     {{"timer 0 in=1 persistent plain {reset 0 by=10; earlier 0 by=20; earlier 0 by=5}", ""},
      {"drive 100; cancel 0", "@1 run 0, KEPT, @6 run 0, @100 CANCELLED"}}},
    /* while its ticket is out: run, or given back; armed again before, or after */
    {"is disarmed while it waits for its executor",
     "queued",
     {{"timer 0 in=1 persistent plain; hold; drive 1; waiting; disarm 0", "@1 1 wait, CANCELLED"},
      {"next; drive 9; reset 0 by=20; advance 30", "@30 run 0"},
      {"reset 0 by=1; hold; drive 1; disarm 0", "@41 CANCELLED"},
      {"reset 0 by=20; next; advance 30", "@61 run 0"},
      {"reset 0 by=1; hold; drive 1; disarm 0", "@72 CANCELLED"},
      {"give_back; drive 0; reset 0 by=20; advance 30", "@92 run 0"},
      {"reset 0 by=1; hold; drive 1; disarm 0", "@103 CANCELLED"},
      {"reset 0 by=20; give_back; advance 30", "@123 run 0"},
      {"cancel 0", "@133 CANCELLED"}}},
};

Test(timer_persistent_runs, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
