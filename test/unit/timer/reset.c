/*
 * Moving timers: later, earlier, to and from far away, too late, and while they wait for their
 * executor.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/persistent_suite.h"
#include "test/support/rig_suite.h"

TestSuite(timer_reset, .init = open_rig, .fini = close_rig, .timeout = 30);

static void create_either(struct probe *probe, uint64_t delay_ns, bool persistent)
{
	if (persistent)
		create(probe, delay_ns);
	else
		probe_schedule(probe, delay_ns);
}

/* Each row is one timer: scheduled, moved, and run at its instant. */
static const struct row {
	const char *name;
	uint64_t delay_ns, wait_ns, moves_ns[2];
	bool at, unseen; /* an instant, from the rig's start; before the driver has met it */
	uint64_t runs_at_ns;
	unsigned resets, eager;
} rows[] = {
    {"later", 10 * MS, 6 * MS, {10 * MS}, .runs_at_ns = 16 * MS, .resets = 1},
    {"earlier", SECOND, 6 * MS, {10 * MS}, .runs_at_ns = 16 * MS, .resets = 1, .eager = 1},
    {"to zero", HOUR, 5 * MS, {0}, .runs_at_ns = 5 * MS, .resets = 1, .eager = 1},
    {"at later", 10 * MS, 5 * MS, {30 * MS}, true, .runs_at_ns = 30 * MS, .resets = 1},
    {"at earlier", HOUR, 5 * MS, {20 * MS}, true, .runs_at_ns = 20 * MS, .resets = 1, .eager = 1},
    {"at the past", HOUR, 5 * MS, {MS}, true, .runs_at_ns = 5 * MS, .resets = 1, .eager = 1},
    {"to where it was", 10 * MS, 0, {10 * MS, 10 * MS}, .runs_at_ns = 10 * MS, .resets = 2},
    {"new, later", 10 * MS, 0, {HOUR}, .unseen = true, .runs_at_ns = HOUR, .resets = 1},
    {"new, earlier", SECOND, 0, {9 * MS}, false, true, 9 * MS, .resets = 1, .eager = 1},
    {"new, both", 10 * MS, 0, {DAY, 7 * MS}, false, true, 7 * MS, .resets = 2, .eager = 1},
};

Test(timer_reset, moves_as_the_table_says)
{
	for (const struct row *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
		reopen_rig(NULL);
		struct probe probe = PROBE(&rig, 1);
		probe_schedule(&probe, row->delay_ns);
		if (!row->unseen)
			rig_advance(&rig, row->wait_ns);
		for (unsigned i = 0; i < row->resets; i++)
			expect_eq(row->at ? tw_reset_at(rig.service, probe.timer,
							RIG_START_NS + row->moves_ns[i])
					  : tw_reset(rig.service, probe.timer, row->moves_ns[i]),
				  0);
		struct tw_service_stats stats = stats_of(rig.service);
		cr_assert(stats.resets == row->resets && stats.resets_eager == row->eager,
			  "%s: %d eager", row->name, (int)stats.resets_eager);
		rig_advance(&rig, 2 * HOUR);
		cr_assert(probe.runs == 1 && probe.ran_at_ns == RIG_START_NS + row->runs_at_ns,
			  "%s: ran at %llu", row->name, (unsigned long long)probe.ran_at_ns);
	}
}

Test(timer_reset, of_far_timers_to_near_and_back)
{
	static const uint64_t stations_ns[] = {400 * DAY, 3 * MS,     90 * DAY,  HOUR,
					       800 * DAY, 2 * SECOND, 20 * DAY,  MS,
					       DAY,       30 * DAY,   5 * SECOND};
	enum { STATIONS = sizeof(stations_ns) / sizeof(stations_ns[0]) };
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 1000 * DAY);
	for (int round = 0; round < 50; round++) {
		uint64_t delay_ns = stations_ns[round % STATIONS];
		expect_eq(tw_reset(rig.service, probe.timer, delay_ns), 0);
		uint64_t left_ns = 0;
		rig_advance(&rig, 0); /* until the driver has looked, the hint is a rough one */
		expect_eq(tw_remaining(rig.service, probe.timer, &left_ns), 0);
		expect_ge(left_ns, delay_ns);
		expect_le(left_ns, delay_ns + 2 * MS);
		if (round % 3)
			rig_advance(&rig, delay_ns / 2);
	}
	expect_eq(probe.runs, 0);
	uint64_t due_ns = rig_tick_of(&rig, rig_now(&rig) + 50 * DAY);
	expect_eq(tw_reset(rig.service, probe.timer, 50 * DAY), 0);
	rig_advance(&rig, 2000 * DAY);
	expect_ran_at(&probe, due_ns);
}

/* A connection's timeout, pushed out with each request: it never fires while they come. */
Test(timer_reset, again_and_again_holds_the_timer_off)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 30 * SECOND);
	for (int i = 0; i < 10000; i++) {
		rig_advance(&rig, 29 * SECOND);
		expect_eq(tw_reset(rig.service, probe.timer, 30 * SECOND), 0);
	}
	expect_eq(probe.runs, 0);
	uint64_t due_ns = rig_now(&rig) + 30 * SECOND;
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, due_ns);
}

/* A persistent timer is disarmed between two moves: they arm it. */
static void expect_no_pile(bool persistent)
{
	struct probe probe = PROBE(&rig, 1);
	reopen_rig(NULL);
	create_either(&probe, 5 * SECOND, persistent);
	for (int i = 0; i < 60000; i++) {
		arm(&probe, i % 2 ? 5 * SECOND : MINUTE);
		if (i % 5 == 0)
			rig_advance(&rig, MS);
		if (persistent)
			expect_disarm(&probe, TW_CANCELLED);
		if (i % 1000 == 999)
			expect_le(stats_of(rig.service).entries, 2 * 4096);
	}
	expect_eq(probe.runs, 0);
	uint64_t due_ns = rig_tick_of(&rig, rig_now(&rig) + 5 * SECOND);
	arm(&probe, 5 * SECOND);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, due_ns);
	expect_eq(stats_of(rig.service).pending, 0);
}

Test(timer_reset, between_two_deadlines_leaves_no_growing_pile_of_entries)
{
	expect_no_pile(false);
	expect_no_pile(true);
}

/* Where the second one has an entry already: not even one more for each turn. */
Test(timer_reset, between_two_instants_needs_an_entry_for_each)
{
	struct probe probe = PROBE(&rig, 1);
	uint64_t near_ns = rig_now(&rig) + 5 * SECOND, far_ns = rig_now(&rig) + MINUTE;
	probe_schedule_at(&probe, near_ns);
	for (int i = 0; i < 1000; i++) {
		expect_eq(tw_reset_at(rig.service, probe.timer, i % 2 ? near_ns : far_ns), 0);
		rig_advance(&rig, 0);
	}
	expect_le(stats_of(rig.service).entries, 2);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, near_ns);
}

/*
 * Nobody drives: moves to earlier take room in the lane, and are refused rather than pile up or be
 * lost.
 */
static void expect_bound(bool persistent)
{
	struct tw_service_config cfg = rig_config();
	cfg.lane_entries = 1024;
	reopen_rig(&cfg);
	struct probe probe = PROBE(&rig, 1);
	create_either(&probe, 5 * SECOND, persistent);
	rig_advance(&rig, 0);
	uint64_t wanted_ns = 5 * SECOND;
	int refused = 0;
	for (int i = 0; i < 100000; i++) {
		uint64_t next_ns = i % 2 ? 5 * SECOND : MINUTE;
		int answer = tw_reset(rig.service, probe.timer, next_ns);
		refused += answer == -EAGAIN;
		if (answer == 0)
			wanted_ns = next_ns;
		else
			expect_eq(answer, -EAGAIN);
		if (persistent)
			expect_disarm(&probe, answer ? TW_DISARMED : TW_CANCELLED);
	}
	expect_eq(refused > 0 || !persistent, true);
	if (persistent)
		arm(&probe, wanted_ns = 2 * MINUTE);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, RIG_START_NS + wanted_ns);
}

Test(timer_reset, between_two_deadlines_without_a_driver_is_bounded)
{
	expect_bound(false);
	expect_bound(true);
}
/* ------------------------------------------------------------ expired, not yet claimed */
