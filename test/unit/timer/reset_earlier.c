/* Moving timers only if the new deadline is earlier. */
#include <errno.h>
#include <pthread.h>

#include "test/support/rig_suite.h"

TestSuite(timer_reset_earlier, .init = open_rig, .fini = close_rig, .timeout = 30);

Test(timer_reset_earlier, moves_to_earlier_and_keeps_what_is_earlier)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, SECOND);
	rig_advance(&rig, 5 * MS);
	expect_eq(tw_reset_earlier(rig.service, probe.timer, 2 * SECOND), TW_RESET_KEPT);
	expect_eq(tw_reset_earlier(rig.service, probe.timer, 100 * MS), 0);
	expect_eq(tw_reset_earlier(rig.service, probe.timer, 100 * MS), TW_RESET_KEPT);
	expect_eq(tw_reset_earlier(rig.service, probe.timer, 101 * MS), TW_RESET_KEPT);
	expect_eq(tw_reset_earlier_at(rig.service, probe.timer, RIG_START_NS + 50 * MS), 0);
	expect_eq(tw_reset_earlier_at(rig.service, probe.timer, RIG_START_NS + 60 * MS),
		  TW_RESET_KEPT);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.resets, 2);
	expect_eq(stats.resets_eager, 2);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, RIG_START_NS + 50 * MS);
}

Test(timer_reset_earlier, compares_ticks)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_at(&probe, RIG_START_NS + 10 * MS);
	expect_eq(tw_reset_earlier_at(rig.service, probe.timer, RIG_START_NS + 9 * MS + 1),
		  TW_RESET_KEPT);
	expect_eq(tw_reset_earlier_at(rig.service, probe.timer, RIG_START_NS + 9 * MS), 0);
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

Test(timer_reset_earlier, moves_the_phase_of_a_series)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, rate_of(100 * MS, 100 * MS, 0));
	expect_eq(tw_reset_earlier(rig.service, probe.timer, 150 * MS), TW_RESET_KEPT);
	expect_eq(tw_reset_earlier(rig.service, probe.timer, 30 * MS), 0);
	rig_advance(&rig, 99 * MS);
	expect_eq(probe.runs, 1);
	rig_advance(&rig, 31 * MS);
	expect_eq(probe.runs, 2);
	expect_eq(probe.ran_at_ns, RIG_START_NS + 130 * MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

static void twice_earlier(struct probe *probe)
{
	if (probe->runs > 0) /* counted after this */
		return;
	tw_service *service = probe->rig->service;
	int first = tw_reset_earlier(service, tw_self(), 50 * MS);
	int later = tw_reset_earlier(service, tw_self(), 60 * MS);
	int sooner = tw_reset_earlier(service, tw_self(), 20 * MS);
	probe->answer = first == 0 && later == TW_RESET_KEPT && sooner == 0;
}

Test(timer_reset_earlier, from_its_own_callback_rearms_for_the_earliest)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = twice_earlier;
	probe_schedule(&probe, 10 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(probe.answer, 1);
	expect_eq(probe.runs, 2);
	expect_eq(probe.ran_at_ns, RIG_START_NS + 30 * MS);
}

static void series_later_then_sooner(struct probe *probe)
{
	uint64_t delay_ns = probe->runs == 0 ? 150 * MS : 40 * MS;
	if (probe->runs <= 1)
		probe->answer |= tw_reset_earlier(probe->rig->service, tw_self(), delay_ns);
}

Test(timer_reset_earlier, from_the_callback_of_a_series_takes_the_earlier_instant)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = series_later_then_sooner;
	probe_schedule_every(&probe, rate_of(100 * MS, 100 * MS, 4));
	rig_advance(&rig, 200 * MS); /* the reset of the first run was later than 200 ms */
	expect_eq(probe.runs, 2);
	expect_eq(probe.ran_at_ns, RIG_START_NS + 200 * MS);
	rig_advance(&rig, 40 * MS);
	expect_eq(probe.runs, 3);
	expect_eq(probe.ran_at_ns, RIG_START_NS + 240 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(probe.runs, 4);
	expect_eq(probe.ran_at_ns, RIG_START_NS + 340 * MS);
	expect_eq(probe.answer, 0);
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
		int answer = tw_reset_earlier_at(m->service, m->timer, deadline_ns);
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
