/*
 * Slack: a timer is due at the roundest tick that it leaves open, never early, never later than it
 * allows.
 */
#include <errno.h>

#include "test/support/rig.h"

TestSuite(timer_slack, .timeout = 30);

static void schedule_slack(struct probe *probe, uint64_t delay_ns, uint64_t slack_ns)
{
	struct tw_task task = probe_task(probe);
	task.when_ns = delay_ns;
	task.slack_ns = slack_ns;
	probe_schedule_task(probe, &task);
}

/* The naive way: the largest power of two of which a multiple lies between the ticks. */
static uint64_t roundest_between(uint64_t first, uint64_t last)
{
	for (unsigned shift = 63; shift-- > 0;) {
		uint64_t tick = last >> shift << shift;
		if (tick >= first)
			return tick;
	}
	return first;
}

Test(timer_slack, takes_the_roundest_tick)
{
	struct rig rig;
	rig_open(&rig, NULL);
	enum { COUNT = 3000 };
	static struct probe probes[COUNT];
	static uint64_t wanted_ns[COUNT];
	uint64_t seed = 11;
	for (int i = 0; i < COUNT; i++) {
		/* deadlines on ticks, and between them */
		rig_advance(&rig, random_below(&seed, 2 * MS));
		if (i % 3 == 0)
			rig_advance_to(&rig, rig_tick_of(&rig, rig_now(&rig)));
		uint64_t delay_ns = random_below(&seed, i % 2 ? 20 * MS : 40 * SECOND);
		uint64_t slack_ns = random_below(&seed, i % 5 ? 30 * MS : 10 * SECOND);
		uint64_t from_ns = rig_now(&rig) + delay_ns - RIG_START_NS;
		uint64_t first = (from_ns + MS - 1) / MS, last = (from_ns + slack_ns) / MS;
		wanted_ns[i] =
		    RIG_START_NS + (last > first ? roundest_between(first, last) : first) * MS;
		probes[i] = PROBE(&rig, i);
		schedule_slack(&probes[i], delay_ns, slack_ns);
	}
	rig_advance(&rig, MINUTE);
	for (int i = 0; i < COUNT; i++)
		expect_ran_at(&probes[i], wanted_ns[i]);
	rig_close(&rig);
}

/* 100 timers over 100 ms, which all leave 128 ms, meet in one or two ticks. */
Test(timer_slack, shares_wake_ups)
{
	struct rig rig;
	rig_open(&rig, NULL);
	enum { COUNT = 100 };
	static struct probe probes[COUNT];
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		schedule_slack(&probes[i], (uint64_t)(300 + i) * MS, 128 * MS);
	}
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, COUNT);
	int ticks = 1;
	for (size_t i = 1; i < rig.ran; i++)
		ticks += rig.events[i].at_ns != rig.events[i - 1].at_ns;
	expect_le(ticks, 2);
	rig_close(&rig);
}

Test(timer_slack, of_less_than_a_tick_changes_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe on_tick = PROBE(&rig, 1), between = PROBE(&rig, 2);
	schedule_slack(&on_tick, 7 * MS, MS - 1);
	schedule_slack(&between, 7 * MS + 500000, 400000);
	rig_advance(&rig, SECOND);
	expect_ran_at(&on_tick, RIG_START_NS + 7 * MS);
	expect_ran_at(&between, RIG_START_NS + 8 * MS);
	rig_close(&rig);
}

Test(timer_slack, holds_for_deadlines_and_far_ones)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe at = PROBE(&rig, 1), past = PROBE(&rig, 2), far = PROBE(&rig, 3);
	struct tw_task task = probe_task(&at);
	task.flags = TW_TASK_AT;
	task.when_ns = RIG_START_NS + 5 * MS;
	task.slack_ns = 5 * MS;
	probe_schedule_task(&at, &task);
	task.arg = &past;
	task.when_ns = RIG_START_NS - 5 * MS;
	probe_schedule_task(&past, &task);
	schedule_slack(&far, 300 * DAY, 10 * DAY);
	rig_advance(&rig, SECOND);
	expect_ran_at(&at, RIG_START_NS + 8 * MS);
	expect_ran_at(&past, RIG_START_NS);
	rig_advance_to(&rig, RIG_START_NS + 311 * DAY);
	uint64_t ticks = roundest_between(300 * DAY / MS, 310 * DAY / MS);
	expect_ran_at(&far, RIG_START_NS + ticks * MS);
	rig_close(&rig);
}

Test(timer_slack, is_chosen_anew_by_a_reset)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe moved = PROBE(&rig, 1), back = PROBE(&rig, 2);
	schedule_slack(&moved, 5 * MS, 5 * MS);
	schedule_slack(&back, 50 * MS, 5 * MS);
	rig_advance(&rig, MS);
	expect_eq(tw_reset(rig.service, moved.timer, 20 * MS), 0);                  /* 21 .. 26 */
	expect_eq(tw_reset_at(rig.service, back.timer, RIG_START_NS + 11 * MS), 0); /* 11 .. 16 */
	rig_advance(&rig, SECOND);
	expect_ran_at(&moved, RIG_START_NS + 24 * MS);
	expect_ran_at(&back, RIG_START_NS + 16 * MS);
	rig_close(&rig);
}

static void re_arm_once(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 0)
		probe->answer = tw_reset(probe->rig->service, tw_self(), 9 * MS);
}

Test(timer_slack, is_chosen_anew_by_a_re_arm)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = re_arm_once;
	schedule_slack(&probe, 7 * MS, 3 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(probe.runs, 2);
	expect_eq(rig.events[0].at_ns, RIG_START_NS + 8 * MS);
	expect_eq(rig.events[1].at_ns, RIG_START_NS + 20 * MS); /* 17 .. 20 */
	rig_close(&rig);
}

/* Nominal instants 5, 15, 25 .. ms; each run is within 3 ms of its own. */
Test(timer_slack, of_a_series_leaves_its_phase_alone)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	struct tw_period period = rate_of(5 * MS, 10 * MS, 0);
	struct tw_task task = probe_task(&probe);
	task.period = &period;
	task.slack_ns = 3 * MS;
	probe_schedule_task(&probe, &task);
	rig_advance(&rig, 99 * MS);
	expect_eq(rig.ran, 10);
	for (size_t i = 0; i < rig.ran; i++) {
		uint64_t first = 5 + 10 * i;
		expect_eq(rig.events[i].at_ns,
			  RIG_START_NS + roundest_between(first, first + 3) * MS);
		expect_eq(rig.events[i].overruns, 0);
	}
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(timer_slack, as_long_as_the_period_misses_instants)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	struct tw_period period = rate_of(MS, MS, 0);
	struct tw_task task = probe_task(&probe);
	task.period = &period;
	task.slack_ns = 7 * MS;
	probe_schedule_task(&probe, &task);
	rig_advance(&rig, 80 * MS);
	expect_eq(rig.ran, 10); /* 8, 16 .. 80 */
	expect_eq(probe.overruns, 10 * 7);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

/* Lateness counts from the instant that slack has chosen. */
Test(timer_slack, is_no_lateness)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1), moved = PROBE(&rig, 2);
	struct tw_task task = probe_task(&probe);
	task.when_ns = 5 * MS;
	task.slack_ns = 5 * MS;
	task.max_lateness_ns = MS;
	task.late = TW_LATE_DROP;
	probe_schedule_task(&probe, &task);
	task.arg = &moved;
	probe_schedule_task(&moved, &task);
	expect_eq(tw_reset(rig.service, moved.timer, 11 * MS), 0);
	rig_advance(&rig, SECOND);
	expect_ran_at(&probe, RIG_START_NS + 8 * MS);
	expect_ran_at(&moved, RIG_START_NS + 16 * MS);
	expect_eq(rig.events[0].late, false);
	rig_close(&rig);
}

/* ------------------------------------------------------------ jitter */

TestSuite(timer_slack_jitter, .timeout = 30);

static int schedule_jitter(struct probe *probe, uint64_t delay_ns, uint64_t jitter_ns)
{
	struct tw_task task = {.size = sizeof(task), .fn = probe_run, .arg = probe};
	task.when_ns = delay_ns;
	task.jitter_ns = jitter_ns;
	return tw_schedule_task(probe->rig->service, &task, &probe->timer);
}

enum { DRAWS = 4000, CELLS = 8 };

/* Runs DRAWS timers with a delay of 10 ms and up to 64 s of jitter; when each has run. */
static void draw(uint64_t seed, uint64_t *at_ns)
{
	static struct probe probes[DRAWS];
	struct tw_service_config cfg = rig_config();
	cfg.seed = seed;
	struct rig rig;
	rig_open(&rig, &cfg);
	for (int i = 0; i < DRAWS; i++) {
		probes[i] = PROBE(&rig, i);
		expect_eq(schedule_jitter(&probes[i], 10 * MS, 64 * SECOND), 0);
	}
	rig_advance(&rig, 65 * SECOND);
	expect_eq(rig.ran, DRAWS);
	for (int i = 0; i < DRAWS; i++)
		at_ns[i] = probes[i].ran_at_ns - RIG_START_NS;
	rig_close(&rig);
}

static uint64_t first_ns[DRAWS], second_ns[DRAWS];

Test(timer_slack_jitter, spreads_timers_evenly_over_its_span)
{
	int cells[CELLS] = {0};
	draw(1234, first_ns);
	for (int i = 0; i < DRAWS; i++) {
		expect_ge(first_ns[i], 10 * MS);
		expect_le(first_ns[i], 10 * MS + 64 * SECOND);
		uint64_t cell = (first_ns[i] - 10 * MS) / (64 * SECOND / CELLS);
		cells[cell < CELLS ? cell : CELLS - 1]++;
	}
	for (int i = 0; i < CELLS; i++) { /* 500 each; 100 is five standard deviations */
		expect_gt(cells[i], DRAWS / CELLS - 100);
		expect_lt(cells[i], DRAWS / CELLS + 100);
	}
}

static int equal_draws(void)
{
	int equal = 0;
	for (int i = 0; i < DRAWS; i++)
		equal += first_ns[i] == second_ns[i];
	return equal;
}

Test(timer_slack_jitter, of_the_same_seed_is_the_same)
{
	draw(77, first_ns);
	draw(77, second_ns);
	expect_eq(equal_draws(), DRAWS);
}

Test(timer_slack_jitter, of_another_seed_or_a_random_one_is_another)
{
	draw(77, first_ns);
	draw(78, second_ns);
	expect_lt(equal_draws(), 20);
	draw(0, first_ns);
	draw(0, second_ns);
	expect_lt(equal_draws(), 20);
}

Test(timer_slack_jitter, takes_both_ends_of_a_small_span)
{
	struct tw_service_config cfg = rig_config();
	cfg.tick_ns = 50000;
	struct rig rig;
	rig_open(&rig, &cfg);
	enum { COUNT = 400 };
	static struct probe probes[COUNT];
	int later = 0;
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		/* one ns more is one tick more */
		expect_eq(schedule_jitter(&probes[i], 50000, 1), 0);
	}
	rig_advance(&rig, MS);
	for (int i = 0; i < COUNT; i++)
		later += probes[i].ran_at_ns == RIG_START_NS + 100000;
	expect_gt(later, COUNT / 2 - 60);
	expect_lt(later, COUNT / 2 + 60);
	rig_close(&rig);
}

struct attached {
	struct rig *rig;
	struct probe probe;
};

static void *schedule_from_a_thread(void *arg)
{
	struct attached *a = arg;
	a->probe.answer = schedule_jitter(&a->probe, 0, HOUR);
	return NULL;
}

/*
 * Two threads, one after the other has come: each its own draws, told by the order in which they
 * came.
 */
static void draw_from_two_threads(uint64_t seed, uint64_t at_ns[2])
{
	struct tw_service_config cfg = rig_config();
	cfg.seed = seed;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe mine = PROBE(&rig, 1);
	struct attached other = {&rig, PROBE(&rig, 2)};
	expect_eq(schedule_jitter(&mine, 0, HOUR), 0);
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, schedule_from_a_thread, &other), 0);
	pthread_join(thread, NULL);
	expect_eq(other.probe.answer, 0);
	rig_advance(&rig, 2 * HOUR);
	at_ns[0] = mine.ran_at_ns;
	at_ns[1] = other.probe.ran_at_ns;
	rig_close(&rig);
}

Test(timer_slack_jitter, of_each_thread_is_its_own_by_the_order_of_coming)
{
	uint64_t once[2], again[2];
	draw_from_two_threads(5, once);
	draw_from_two_threads(5, again);
	expect_ne(once[0], once[1]);
	expect_eq(once[0], again[0]);
	expect_eq(once[1], again[1]);
}

Test(timer_slack_jitter, is_not_drawn_by_a_refused_call)
{
	uint64_t once[2];
	draw_from_two_threads(5, once);
	struct tw_service_config cfg = rig_config();
	cfg.seed = 5;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	expect_eq(schedule_jitter(&probe, TW_MAX_DELAY_NS, HOUR), -ERANGE);
	expect_eq(schedule_jitter(&probe, 0, HOUR), 0);
	rig_advance(&rig, 2 * HOUR);
	expect_ran_at(&probe, once[0]);
	rig_close(&rig);
}

/* Drawn once: the phase is moved, the period is not. Then moved again, exactly, by a reset. */
Test(timer_slack_jitter, of_a_series_moves_its_phase)
{
	struct tw_service_config cfg = rig_config();
	cfg.seed = 9;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	struct tw_period period = rate_of(10 * MS, SECOND, 0);
	struct tw_task task = probe_task(&probe);
	task.period = &period;
	task.jitter_ns = SECOND;
	probe_schedule_task(&probe, &task);
	rig_advance(&rig, 20 * SECOND);
	expect_ge(rig.ran, 19);
	expect_gt(rig.events[0].at_ns, RIG_START_NS + 10 * MS);
	for (size_t i = 1; i < rig.ran; i++)
		expect_eq(rig.events[i].at_ns, rig.events[0].at_ns + i * SECOND);
	size_t before = rig.ran;
	expect_eq(tw_reset(rig.service, probe.timer, 123 * MS), 0);
	rig_advance(&rig, 5 * SECOND);
	expect_eq(rig.ran, before + 5);
	expect_eq(rig.events[before].at_ns, RIG_START_NS + 20 * SECOND + 123 * MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(timer_slack_jitter, holds_for_deadlines)
{
	struct tw_service_config cfg = rig_config();
	cfg.seed = 9;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	struct tw_task task = probe_task(&probe);
	task.flags = TW_TASK_AT;
	task.when_ns = RIG_START_NS + SECOND;
	task.jitter_ns = SECOND;
	probe_schedule_task(&probe, &task);
	rig_advance(&rig, 3 * SECOND);
	expect_eq(probe.runs, 1);
	expect_gt(probe.ran_at_ns, RIG_START_NS + SECOND);
	expect_le(probe.ran_at_ns, RIG_START_NS + 2 * SECOND);
	rig_close(&rig);
}
