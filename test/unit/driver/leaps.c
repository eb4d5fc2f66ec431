/*
 * Leaps of the clock, and the calls that they overtake (wheel/driver/leap.c, wheel/timer/whole.c). Looks at buckets of months
 * ahead. Which seq an entry takes that is filed again (wheel/slot/word.h).
 */
#include <errno.h>
#include <pthread.h>

#include "test/support/faults.h"
#include "test/support/queue_executor.h"
#include "test/support/rig.h"
#include "wheel/core/local.h"
#include "wheel/core/ticks.h"
#include "wheel/driver/driver.h"
#include "wheel/driver/poll.h"
#include "wheel/timer/whole.h"

TestSuite(driver_leaps, .timeout = 60);

#define NEAR_NS (TW__NEAR * MS)

static void leap_to(struct rig *rig, uint64_t ns)
{
	expect_eq(tw_clock_manual_set(rig->clock, ns), 0);
	expect_eq(tw_service_advance(rig->service, TW_NO_LIMIT) >= 0, true);
}

static _Atomic uint64_t *word_of(const struct rig *rig, const struct probe *probe)
{
	uint64_t entry;
	expect_eq(tw__handle_entry(&rig->service->slots, probe->timer, &entry), true);
	return &rig->service->slots.words[tw__entry_slot(entry)];
}

static uint64_t seq_of(const struct rig *rig, const struct probe *probe)
{
	return tw__word_seq(tw_load_relaxed(word_of(rig, probe)));
}

/* To later and back to this deadline, so often that the seq is the same again. */
static void come_round(struct rig *rig, const struct probe *probe, uint64_t deadline_ns)
{
	uint64_t seq = seq_of(rig, probe);
	do {
		expect_eq(tw_reset_at(rig->service, probe->timer, deadline_ns + MINUTE), 0);
		expect_eq(tw_reset_at(rig->service, probe->timer, deadline_ns), 0);
	} while (seq_of(rig, probe) != seq);
}

/* ------------------------------------------------------------------ looks ahead */

/*
 * A stale entry that passes for the current one, in a bucket of months ahead. Read by that bucket, the deadline of an hour ahead looked
 * like one that is later still: the entry took the timer over.
 */
static void expect_no_take_over(uint64_t ahead_ns)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	uint64_t deadline_ns = rig_now(&rig) + HOUR, unused;
	probe_schedule_at(&probe, rig_now(&rig) + 2 * ahead_ns);
	expect_eq(tw_reset_at(rig.service, probe.timer, rig_now(&rig) + ahead_ns), 0); /* the entry of seq 1 */
	come_round(&rig, &probe, deadline_ns);
	while (seq_of(&rig, &probe) != 1) {
		expect_eq(tw_reset_at(rig.service, probe.timer, deadline_ns + MINUTE), 0);
		expect_eq(tw_reset_at(rig.service, probe.timer, deadline_ns), 0);
	}
	for (int i = 0; i < 3; i++)
		expect_eq(tw_service_next_expiry(rig.service, &unused), 0);
	rig_advance_to(&rig, deadline_ns - MS);
	expect_eq(probe.runs, 0);
	rig_advance_to(&rig, deadline_ns);
	expect_ran_at(&probe, deadline_ns);
	rig_close(&rig);
}

Test(driver_leaps, a_look_at_a_bucket_far_ahead_takes_no_near_timer_over)
{
	for (uint64_t ahead_ns = 8 * HOUR; ahead_ns < 37 * HOUR; ahead_ns += 13 * MINUTE)
		expect_no_take_over(ahead_ns);
	for (uint64_t days = 1; days < 30; days++)
		expect_no_take_over(days * 7 * DAY + days * HOUR);
}

/* --------------------------------------------------------------- overtaken calls */

static const uint64_t leaps_ns[] = {NEAR_NS - MS,     NEAR_NS,           NEAR_NS + MS,      2 * NEAR_NS,
				    3 * NEAR_NS - MS, 3 * NEAR_NS,       3 * NEAR_NS + MS,  4 * NEAR_NS - MS,
				    4 * NEAR_NS,      4 * NEAR_NS + HOUR, 5 * NEAR_NS - MS, 100 * NEAR_NS + 17 * MS};
enum { LEAPS = sizeof leaps_ns / sizeof *leaps_ns };

struct leap {
	struct rig *rig;
	uint64_t to_ns;
};

static void *leap_on_a_thread(void *arg)
{
	struct leap *leap = arg;
	tw_clock_manual_set(leap->rig->clock, leap->to_ns);
	tw_service_advance(leap->rig->service, TW_NO_LIMIT);
	return NULL;
}

static void leap_elsewhere(void *arg)
{
	pthread_t thread;
	if (!pthread_create(&thread, NULL, leap_on_a_thread, arg))
		pthread_join(thread, NULL);
}

/* This thread's lane has no room but in a new segment, for which the next push asks. Its entries live, or they would be dropped. */
static void fill_segment(struct rig *rig, struct probe *filler)
{
	struct tw__lane *lane = &tw__local_of(rig->service)->lane;
	*filler = PROBE(rig, -1);
	while (tw__lane_has_room(lane, 2))
		probe_schedule(filler, 100 * 365 * DAY);
	if (tw__lane_has_room(lane, 1))
		expect_eq(tw_reset(rig->service, filler->timer, 99 * 365 * DAY), 0);
}

/* The clock leaps, and the driver turns, between the call's look at the cursor and its word. */
static void overtake_a_reset(uint64_t leap_ns, uint64_t delay_ns)
{
	struct rig rig;
	rig_open(&rig, NULL);
	static struct probe probes[200];
	struct probe *probe = probes, filler;
	rig_advance(&rig, MS);
	struct leap leap = {&rig, rig_now(&rig) + leap_ns};
	uint64_t deadline_ns = rig_now(&rig) + delay_ns;
	for (int i = 0; i < 200 && rig_now(&rig) != leap.to_ns; i++) { /* memory is asked for now and then */
		probe = &probes[i];
		*probe = PROBE(&rig, i);
		probe_schedule(probe, 100 * 365 * DAY);
		fill_segment(&rig, &filler);
		faults_call_at(0, leap_elsewhere, &leap);
		expect_eq(tw_reset_at(rig.service, probe->timer, deadline_ns), 0);
		faults_disarm();
	}
	expect_eq(rig_now(&rig), leap.to_ns);
	if (deadline_ns > leap.to_ns) {
		rig_advance_to(&rig, deadline_ns - MS);
		expect_eq(probe->runs, 0);
		rig_advance_to(&rig, deadline_ns);
	} else {
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT) >= 0, true);
	}
	expect_eq(probe->runs, 1);
	rig_close(&rig);
}

Test(driver_leaps, a_reset_that_a_leap_overtakes_makes_nothing_late)
{
	for (int i = 0; i < LEAPS; i++) {
		overtake_a_reset(leaps_ns[i], 10 * MS);
		overtake_a_reset(leaps_ns[i], NEAR_NS - MS);
		overtake_a_reset(leaps_ns[i], leaps_ns[i]);
	}
}

/*
 * The same for a move to later, which asks for nothing on the way: the test does what such a call does, and the leap comes in the
 * middle. A word that a leap has overtaken is known as such, and read right from the next turn on.
 */
static void overtake_a_move_to_later(uint64_t leap_ns)
{
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1), far = PROBE(&rig, 2);
	probe_schedule(&probe, 10 * MS);
	probe_schedule(&far, 200 * DAY);
	uint64_t entry;
	expect_eq(tw__handle_entry(&rig.service->slots, probe.timer, &entry), true);
	uint64_t look = tw__cursor_look(rig.service), tick = look + 1000, seen;
	leap_to(&rig, rig_now(&rig) + leap_ns); /* the timer is in a batch, which nobody runs */
	seen = tw_load_relaxed(word_of(&rig, &probe));
	uint64_t moved = tw__word_move(seen, tick);
	expect_eq(tw__word_cas_seq_cst(word_of(&rig, &probe), &seen, moved), true);
	bool overtaken = tw__is_overtaken(rig.service, look);
	expect_eq(overtaken, leap_ns >= NEAR_NS);
	queue_executor_run_all(&queue); /* the claim may take it for later */
	if (overtaken)
		tw__write_whole(rig.service, tw__entry_slot(entry), moved, tick);
	for (int turns = 0; turns < 2; turns++) {
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT) >= 0, true);
		queue_executor_run_all(&queue);
	}
	expect_eq(probe.runs, 1);
	rig_advance(&rig, 200 * DAY);
	queue_executor_run_all(&queue);
	expect_eq(far.runs, 1);
	rig_close(&rig);
	queue_executor_close(&queue);
}

Test(driver_leaps, a_move_to_later_that_a_leap_overtakes_makes_nothing_late)
{
	for (int i = 0; i < LEAPS; i++)
		overtake_a_move_to_later(leaps_ns[i]);
}

/* A bulk call that has begun: the driver turns as far as it may without a leap, and leaps when the call is over. */
Test(driver_leaps, a_leap_waits_for_a_bulk_call)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe before = PROBE(&rig, 1), after = PROBE(&rig, 2);
	probe_schedule(&before, NEAR_NS - MS);
	probe_schedule(&after, NEAR_NS + MS);
	struct tw__lane *lane = &tw__local_of(rig.service)->lane;
	tw__gate_pin_and_look(&rig.service->gate, &lane->pinned);
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + 5 * NEAR_NS), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT) >= 0, true);
	expect_eq(before.runs + after.runs, 1);
	expect_eq(tw__cursor_look(rig.service), TW__NEAR - 1);
	tw__gate_unpin(&lane->pinned);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT) >= 0, true);
	expect_eq(before.runs + after.runs, 2);
	rig_close(&rig);
}

/* While the driver leaps all deadlines are written whole. */
Test(driver_leaps, what_comes_during_a_leap_runs_in_its_tick)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe timers[4];
	uint64_t now_ns = rig_now(&rig);
	const uint64_t delays_ns[] = {MS, HOUR, NEAR_NS - MS, NEAR_NS + MS};
	for (int i = 0; i < 4; i++)
		timers[i] = PROBE(&rig, i);
	uint64_t look = tw__cursor_look(rig.service);
	tw_store_relaxed(&rig.service->gate.cursor, look | TW__LEAPING);
	for (int i = 0; i < 4; i++) {
		probe_schedule_at(&timers[i], now_ns + DAY);
		expect_eq(tw_reset_at(rig.service, timers[i].timer, now_ns + delays_ns[i]), 0);
		expect_eq(tw__word_beyond(tw_load_relaxed(word_of(&rig, &timers[i]))), true);
	}
	tw_store_relaxed(&rig.service->gate.cursor, look);
	for (int i = 0; i < 4; i++) {
		rig_advance_to(&rig, now_ns + delays_ns[i]);
		expect_ran_at(&timers[i], now_ns + delays_ns[i]);
	}
	rig_close(&rig);
}

/* ------------------------------------------------------------------- boundaries */

/* To about the tick that the driver turns to, before the turn and after it, to earlier and to later. */
static void reset_about(uint64_t step_ns, int offset, bool from_far, bool after)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	uint64_t turned_ns = rig_now(&rig) + step_ns, deadline_ns = turned_ns + (uint64_t)(int64_t)offset * MS;
	probe_schedule_at(&probe, from_far ? turned_ns + DAY : turned_ns + HOUR);
	rig_advance(&rig, MS);
	if (!after)
		expect_eq(tw_reset_at(rig.service, probe.timer, deadline_ns), 0);
	leap_to(&rig, turned_ns);
	if (after)
		expect_eq(tw_reset_at(rig.service, probe.timer, deadline_ns), 0);
	expect_eq(probe.runs, !after && offset <= 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT) >= 0, true);
	expect_eq(probe.runs, offset <= 0);
	if (offset > 0) {
		rig_advance_to(&rig, deadline_ns - MS);
		expect_eq(probe.runs, 0);
		rig_advance_to(&rig, deadline_ns);
	}
	expect_eq(probe.runs, 1);
	rig_close(&rig);
}

Test(driver_leaps, a_reset_to_about_the_tick_that_is_turned_to_is_met_in_its_tick)
{
	const uint64_t steps_ns[] = {10 * MS,     2048 * MS,        2049 * MS,      NEAR_NS - MS,   NEAR_NS,
				     NEAR_NS + MS, 3 * NEAR_NS - MS, 3 * NEAR_NS, 4 * NEAR_NS, 4 * NEAR_NS + MS};
	for (size_t i = 0; i < sizeof steps_ns / sizeof *steps_ns; i++)
		for (int offset = -2; offset <= 2; offset++)
			for (int how = 0; how < 4; how++)
				reset_about(steps_ns[i], offset, how & 1, how & 2);
}

/* From the callback of another timer, which the driver runs as it turns. */
static void reset_other_to_now(struct probe *probe)
{
	struct probe *other = probe->other;
	probe->answer = tw_reset_at(other->rig->service, other->timer, rig_now(other->rig) + (uint64_t)other->id * MS);
}

Test(driver_leaps, a_reset_from_a_callback_to_the_tick_that_is_turned_to_is_met_in_the_next_turn)
{
	for (int later = 0; later <= 1; later++)
		for (int i = 0; i < LEAPS; i++) {
			struct rig rig;
			rig_open(&rig, NULL);
			struct probe other = PROBE(&rig, later), probe = PROBE(&rig, 9);
			probe.other = &other;
			probe.act = reset_other_to_now;
			probe_schedule(&probe, leaps_ns[i]);
			probe_schedule(&other, leaps_ns[i] + DAY);
			leap_to(&rig, rig_now(&rig) + leaps_ns[i]);
			expect_eq(probe.runs, 1);
			expect_eq(probe.answer, 0);
			leap_to(&rig, rig_now(&rig) + (uint64_t)later * MS);
			expect_eq(other.runs, 1);
			rig_close(&rig);
		}
}

/* ------------------------------------------------------------------------- seqs */

/*
 * Toggled so that an entry, when it is met, has the seq of the word again unless the driver draws one: for one of 15 times that an
 * entry may last. The most entries at a time.
 */
static uint64_t toggle(uint64_t ahead_ms)
{
	enum { PUSHES = 6000 };
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MINUTE);
	uint64_t most = 0;
	for (int i = 0; i < PUSHES; i++) {
		expect_eq(tw_reset(rig.service, probe.timer, MINUTE), 0);
		expect_eq(tw_reset(rig.service, probe.timer, ahead_ms * MS), 0);
		leap_to(&rig, rig_now(&rig) + 2 * MS); /* no look ahead, which would drop what is stale */
		most = rig.service->driver->wheel.entries > most ? rig.service->driver->wheel.entries : most;
	}
	expect_eq(probe.runs, 0);
	rig_advance(&rig, MINUTE);
	expect_eq(probe.runs, 1);
	rig_close(&rig);
	return most;
}

/* 15/14 of the pushes on average, and a little for chance. Few enough for no sweep. Without a draw they all stay at one of these. */
Test(driver_leaps, entries_whose_seq_comes_round_die_out)
{
	for (uint64_t ahead_ms = 1200; ahead_ms < 1230; ahead_ms += 2)
		expect_le(toggle(ahead_ms), ahead_ms / 2 * 16 / 15 + 60);
}

/* Entries of the current seq meet in a batch, in which the timer is not due any more: one of them comes back. */
Test(driver_leaps, of_entries_that_pass_in_a_batch_one_comes_back)
{
	enum { ROUNDS = 100 };
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 2 * SECOND);
	expect_eq(tw_reset(rig.service, probe.timer, SECOND), 0); /* a seq above 0 */
	rig_advance(&rig, SECOND);
	uint64_t most = 0;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t deadline_ns = rig_now(&rig) + 10 * SECOND;
		expect_eq(tw_reset_at(rig.service, probe.timer, deadline_ns), 0);
		come_round(&rig, &probe, deadline_ns);
		queue_executor_run_all(&queue);
		rig_advance_to(&rig, deadline_ns - MS);
		rig_advance_to(&rig, deadline_ns);
		most = queue_executor_waiting(&queue) > most ? queue_executor_waiting(&queue) : most;
	}
	expect_le(most, 4);
	expect_eq(probe.runs, 0);
	queue_executor_run_all(&queue);
	expect_eq(probe.runs, 1);
	rig_close(&rig);
	queue_executor_close(&queue);
}

/* The seqs that the driver draws in a while, as one number. */
static uint64_t seqs_of(uint64_t seed)
{
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.seed = seed;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MINUTE);
	uint64_t seen = 0;
	for (int i = 0; i < 12; i++) {
		expect_eq(tw_reset(rig.service, probe.timer, 30 * SECOND), 0);
		expect_eq(tw_reset(rig.service, probe.timer, MINUTE), 0);
		rig_advance(&rig, 40 * SECOND);
		seen = seen << 4 | seq_of(&rig, &probe);
	}
	rig_close(&rig);
	return seen;
}

Test(driver_leaps, the_seed_of_a_service_says_what_seqs_are_drawn)
{
	expect_eq(seqs_of(7), seqs_of(7));
	expect_eq(seqs_of(7) != seqs_of(8), true);
}

/* ------------------------------------------------------------------------ checks */

Test(driver_leaps, a_timer_without_an_entry_does_not_pass_the_check)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	char why[128] = "";
	probe_schedule(&probe, MINUTE);
	expect_eq(tw_reset(rig.service, probe.timer, SECOND), 0);
	rig_advance(&rig, MS);
	expect_eq(tw_service_validate(rig.service, why, sizeof why), 0);
	uint64_t word = tw_load_relaxed(word_of(&rig, &probe)), other = tw__word_with_seq(word, tw__word_next_seq(word));
	expect_eq(tw__word_cas_acq_rel(word_of(&rig, &probe), &word, other), true);
	expect_eq(tw_service_validate(rig.service, why, sizeof why), -EFAULT);
	expect_eq(why[0] != 0, true);
	expect_eq(tw__word_cas_acq_rel(word_of(&rig, &probe), &other, word), true);
	rig_close(&rig);
}
