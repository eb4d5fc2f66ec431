/* Moving timers only if the new deadline is earlier. */
#include <errno.h>
#include <pthread.h>

#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_reset_earlier, .init = open_rig, .fini = close_rig, .timeout = 30);

Test(timer_reset_earlier, compares_ticks)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_at(&probe, RIG_START_NS + 10 * MS);
	expect_eq(tw_reset_earlier(rig.service, probe.timer, 9 * MS + 1), TW_RESET_KEPT);
	expect_eq(tw_reset_earlier(rig.service, probe.timer, 9 * MS), 0);
	rig_advance(&rig, SECOND);
	expect_ran_at(&probe, RIG_START_NS + 9 * MS);
}

/* In a lane, beyond the wheel's reach, near, and back; each side of each border. */
Test(timer_reset_earlier, of_far_timers)
{
	static const uint64_t delays_ns[] = {MS,       SECOND,    HOUR,      DAY,
					     30 * DAY, 400 * DAY, 4000 * DAY};
	enum { DELAYS = sizeof delays_ns / sizeof delays_ns[0] };
	for (int from = 0; from < DELAYS; from++)
		for (int to = 0; to < DELAYS; to++)
			for (int filed = 0; filed < 3; filed++) {
				struct probe probe = PROBE(&rig, 1);
				probe_schedule(&probe, filed == 2 ? 9000 * DAY : delays_ns[from]);
				if (filed)
					tw_service_advance(rig.service, TW_NO_LIMIT);
				if (filed == 2)
					expect_eq(tw_reset_earlier(rig.service, probe.timer,
								   delays_ns[from]),
						  0);
				expect_eq(tw_reset_earlier(rig.service, probe.timer, delays_ns[to]),
					  to < from ? 0 : TW_RESET_KEPT);
				uint64_t left_ns = 0;
				expect_eq(tw_remaining(rig.service, probe.timer, &left_ns), 0);
				expect_eq(left_ns, delays_ns[to < from ? to : from]);
				expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
			}
}

static const struct script scripts[] = {
    {"moves to earlier, and keeps what is earlier",
     {{"timer 0 in=1000 plain; drive 5; earlier 0 by=2000; earlier 0 by=100", "@5 KEPT"},
      {"earlier 0 by=100; earlier 0 by=101; earlier 0 by=45; earlier 0 by=55", "KEPT, KEPT, KEPT"},
      {"stats resets resets_eager; drive 3600000", "resets=2, resets_eager=2, @50 run 0"}}},
    {"moves the phase of a series",
     {{"timer 0 first=100 every=100 plain; earlier 0 by=150; earlier 0 by=30", "KEPT"},
      {"drive 140; cancel 0", "@30 run 0, @130 run 0, @140 CANCELLED"}}},
    {"in its own callback arms it for the earliest",
     {{"timer 0 in=10 {earlier 0 by=50; earlier 0 by=60; earlier 0 by=20} plain; drive 1000",
       "@10 run 0, KEPT, @30 run 0"}}},
    /* the reset of the first run is later than its next instant, that of the second is not */
    {"in the callback of a series takes the earlier instant",
     {{"timer 0 first=100 every=100 count=4 {earlier 0 by=150} plain; drive 199", "@100 run 0"},
      {"timer 1 in=1 {-} plain; drive 1", "@200 run 0, run 1, -"},
      {"drive 1000", "@300 run 0, @400 run 0"}}},
    {"in the callback of a series moves what follows",
     {{"timer 0 first=100 every=100 count=3 {earlier 0 by=40} plain; drive 1000",
       "@100 run 0, @140 run 0, @240 run 0"}}},
};

Test(timer_reset_earlier, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

enum { MOVERS = 4, MOVES = 20000 };

struct mover {
	tw_service *service;
	tw_timer timer;
	uint64_t seed, earliest_ns;
	int wrong;
};

/* An answer of "kept" holds from then on: nothing moves the timer to later. */
static void *move_down(void *arg)
{
	struct mover *m = arg;
	m->earliest_ns = UINT64_MAX;
	for (uint64_t i = 0; i < MOVES; i++) {
		uint64_t top_ns = RIG_START_NS + (MOVES - i) * DAY / 4;
		uint64_t deadline_ns = top_ns + random_below(&m->seed, 20 * DAY), left_ns = 0;
		if (deadline_ns < m->earliest_ns)
			m->earliest_ns = deadline_ns;
		int answer = tw_reset_earlier(m->service, m->timer, deadline_ns - RIG_START_NS);
		m->wrong += answer != 0 && answer != TW_RESET_KEPT;
		m->wrong += tw_remaining(m->service, m->timer, &left_ns) != 0;
		m->wrong += left_ns > deadline_ns - RIG_START_NS + MS;
	}
	return NULL;
}

Test(timer_reset_earlier, of_several_threads_the_earliest_wins)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 9000 * DAY);
	struct mover movers[MOVERS];
	pthread_t threads[MOVERS];
	uint64_t earliest_ns = UINT64_MAX, left_ns = 0;
	for (int i = 0; i < MOVERS; i++) {
		movers[i] = (struct mover){
		    .service = rig.service, .timer = probe.timer, .seed = 77 + (uint64_t)i};
		expect_eq(pthread_create(&threads[i], NULL, move_down, &movers[i]), 0);
	}
	for (int i = 0; i < MOVERS; i++) {
		pthread_join(threads[i], NULL);
		expect_eq(movers[i].wrong, 0);
		if (movers[i].earliest_ns < earliest_ns)
			earliest_ns = movers[i].earliest_ns;
	}
	expect_eq(tw_remaining(rig.service, probe.timer, &left_ns), 0);
	expect_eq(left_ns, rig_tick_of(&rig, earliest_ns) - RIG_START_NS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}
