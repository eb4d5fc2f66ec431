/*
 * G7: callbacks may call anything, on themselves too; what would wait for its own caller is
 * refused. Calls on the timer itself: timer/outcomes.c.
 */
#include "test/support/current.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(runs_inside, .init = open_rig, .fini = close_rig, .timeout = 30);

static void read_everything(struct probe *probe)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	uint64_t left_ns = 0;
	bool good = tw_service_stats(probe->rig->service, &stats) == 0 && stats.scheduled == 2;
	good = good && tw_service_now(probe->rig->service) == rig_now(probe->rig);
	good = good && !tw_is_pending(probe->rig->service, tw_self());
	good = good && tw_is_pending(probe->rig->service, probe->other->timer);
	good = good && tw_remaining(probe->rig->service, probe->other->timer, &left_ns) == 0 &&
	       left_ns == MS;
	probe->answer = good;
}

Test(runs_inside, everything_can_be_read)
{
	struct probe probe = PROBE(&rig, 1), other = PROBE(&rig, 2);
	probe.act = read_everything;
	probe.other = &other;
	probe_schedule(&probe, MS);
	probe_schedule(&other, 2 * MS);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, 1);
}

static void schedule_on_another(struct probe *probe)
{
	struct probe *other = probe->other;
	probe->answer = tw_schedule(other->rig->service, 0, probe_run, other, &other->timer);
}

Test(runs_inside, another_service_may_be_used)
{
	struct rig theirs;
	rig_open(&theirs, NULL);
	struct probe probe = PROBE(&rig, 1), other = PROBE(&theirs, 2);
	probe.act = schedule_on_another;
	probe.other = &other;
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, 0);
	rig_advance(&theirs, 0);
	expect_eq(other.runs, 1);
	rig_close(&theirs);
}

static const struct script scripts[] = {
    {"outside there is no self",
     {{"self; timer 0 in=0 plain; drive 1; self", "self none, run 0, @1 self none"}}},
    {"a release knows its timer",
     {{"timer 0 in=0 [self]; timer 1 in=9 [self]; drive 1", "run 0, 0 fired, self 0"},
      {"cancel 1; self", "@1 1 cancelled, self 1, CANCELLED, self none"}}},
    {"self survives the release of another",
     {{"timer 0 in=9 [self]; timer 1 in=1 {cancel 0; self} plain; drive 1",
       "@1 run 1, 0 cancelled, self 0, CANCELLED, self 1"}}},
    /* what would wait for its own caller */
    {"the driver's own caller is refused",
     {{"timer 0 in=1 {poll; move_clock; destroy; validate} plain; timer 2 in=2 plain; drive 1",
       "@1 run 0, EBUSY, EDEADLK, EDEADLK, EBUSY"},
      {"timer 1 in=1 {close drop 0; close run 0; close drain 0} plain; drive 1",
       "@2 run 2, run 1, EDEADLK, EDEADLK, EDEADLK"},
      {"timer 3 in=1 plain; drive 1", "@3 run 3"}}},
};

Test(runs_inside, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
