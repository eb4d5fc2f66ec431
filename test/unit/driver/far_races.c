/*
 * Far deadlines are written beside the word, under the slot's far lock (wheel/slot/word.h, WORD6).
 * Here another thread's call comes at each point of a call that writes one: both see
 * whole deadlines.
 */
#include <errno.h>
#include <semaphore.h>

#include "test/support/interleave.h"
#include "test/support/persistent_suite.h"
#include "test/support/rig_suite.h"

TestSuite(driver_far_races, .init = open_rig, .fini = close_rig, .timeout = 60);

/* Beyond the range of a word, at 1 ms a tick: 9.3 hours. */
#define OLD_NS (400 * DAY)
#define NEW_NS (20 * HOUR)

static struct {
	struct probe probe;
	tw_timer next;
	uint64_t left_ns;
	int answer;
	atomic_bool armed_itself;
	bool came_after;
	sem_t inside, leave; /* of a callback that waits */
} far;

/* Was far, and is near: the slot's far deadline is an old one. */
static void schedule_near(void)
{
	far.probe = PROBE(&rig, 1);
	probe_schedule(&far.probe, OLD_NS);
	expect_eq(tw_reset(rig.service, far.probe.timer, HOUR), 0);
	rig_advance(&rig, 0);
}

static void move_far(void *arg)
{
	far.answer = tw_reset_at(rig.service, far.probe.timer, *(const uint64_t *)arg + NEW_NS);
}

/* ------------------------------------------------------------ reads */

static void look(void *arg)
{
	(void)arg;
	expect_eq(tw_remaining(rig.service, far.probe.timer, &far.left_ns), 0);
}

Test(driver_far_races, a_look_sees_one_deadline_or_the_other)
{
	unsigned seen[2] = {0};
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		uint64_t now_ns = rig_now(&rig);
		schedule_near();
		stopped = interleave(nth, move_far, &now_ns, look, NULL);
		expect_eq(far.answer, 0);
		expect_eq(far.left_ns == HOUR || far.left_ns == NEW_NS, true);
		seen[far.left_ns == NEW_NS]++;
		expect_eq(tw_cancel(rig.service, far.probe.timer), TW_CANCELLED);
	}
	if (INTERLEAVES)
		expect_eq(seen[0] > 0 && seen[1] > 0, true);
}

/* The entry is met at the near deadline, and filed for the far one: it must be the new one. */
static void meet(void *arg)
{
	rig_advance_to(&rig, *(const uint64_t *)arg + HOUR);
}

Test(driver_far_races, the_driver_meets_one_deadline_or_the_other)
{
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		uint64_t start_ns = rig_now(&rig);
		schedule_near();
		stopped = interleave(nth, move_far, &start_ns, meet, &start_ns);
		bool moved = far.answer == 0;
		expect_eq(far.answer == 0 || far.answer == -ENOENT || far.answer == -EBUSY, true);
		rig_advance_to(&rig, start_ns + NEW_NS);
		expect_ran_at(&far.probe, start_ns + (moved ? NEW_NS : HOUR));
	}
}

/* ------------------------------------------------------------ the next timer of the slot */

static void replace(void *arg)
{
	(void)arg;
	expect_eq(tw_cancel(rig.service, far.probe.timer), TW_CANCELLED);
	expect_eq(tw_schedule(rig.service, OLD_NS, probe_run, &far.probe, &far.next), 0);
}

Test(driver_far_races, a_move_does_not_reach_the_next_timer_of_the_slot)
{
	unsigned reused = 0;
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		uint64_t now_ns = rig_now(&rig);
		schedule_near();
		stopped = interleave(nth, move_far, &now_ns, replace, NULL);
		expect_eq(far.answer == 0 || far.answer == -ENOENT, true);
		expect_eq(tw_remaining(rig.service, far.next, &far.left_ns), 0);
		expect_ge(far.left_ns, OLD_NS);
		expect_le(far.left_ns, OLD_NS + MS);
		reused += (uint32_t)far.next.id == (uint32_t)far.probe.timer.id;
		expect_eq(tw_cancel(rig.service, far.next), TW_CANCELLED);
	}
	expect_gt(reused, 0);
}

/* ------------------------------------------------------------ armed during the run */

static void submit_persistent(void (*act)(struct probe *probe))
{
	far.probe = PROBE(&rig, 1);
	far.probe.act = act;
	atomic_store(&far.armed_itself, false);
	create(&far.probe, MS);
	rig_advance(&rig, MS);
}

static void arm_itself(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, probe->timer, HOUR);
	atomic_store(&far.armed_itself, true);
}

static void run_ticket(void *arg)
{
	(void)arg;
	queue_executor_run_next(&queue);
}

static void arm_too(void *arg)
{
	(void)arg;
	far.came_after = atomic_load(&far.armed_itself);
	far.answer = tw_reset(rig.service, far.probe.timer, OLD_NS);
}

/* The driver stood still: the timer is handed over with its far deadline, which is long past. */
Test(driver_far_races, a_run_that_is_long_due_is_claimed_or_moved)
{
	unsigned moved = 0, ran = 0;
	reopen_on_queue();
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		if (rig_now(&rig) > INT64_MAX / 2) /* a clock's range is finite */
			reopen_on_queue();
		far.probe = PROBE(&rig, 1);
		probe_schedule(&far.probe, OLD_NS);
		rig_advance(&rig, 0);
		uint64_t now_ns = rig_now(&rig) + 2 * OLD_NS;
		expect_eq(tw_clock_manual_set(rig.clock, now_ns), 0);
		rig_advance(&rig, 0);
		stopped = interleave(nth, run_ticket, NULL, move_far, &now_ns);
		expect_eq(far.probe.runs, far.answer == 0 ? 0 : 1);
		*(far.answer == 0 ? &moved : &ran) += 1;
		rig_advance_to(&rig, now_ns + NEW_NS);
		queue_executor_run_all(&queue);
		expect_eq(far.probe.runs, 1);
	}
	if (INTERLEAVES)
		expect_eq(moved > 0 && ran > 0, true);
}

/* The callback arms its timer. An arming that comes after that one is the one that counts. */
Test(driver_far_races, the_last_arming_during_a_run_counts)
{
	unsigned after = 0;
	reopen_on_queue();
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		submit_persistent(arm_itself);
		stopped = interleave(nth, run_ticket, NULL, arm_too, NULL);
		expect_eq(far.answer, 0);
		expect_eq(tw_remaining(rig.service, far.probe.timer, &far.left_ns), 0);
		bool last = far.came_after || !atomic_load(&far.probe.runs);
		expect_eq(far.left_ns == OLD_NS || (!last && far.left_ns == HOUR), true);
		after += far.came_after;
		expect_eq(tw_cancel(rig.service, far.probe.timer), TW_CANCELLED);
	}
	if (INTERLEAVES)
		expect_gt(after, 0);
}

static void arm_itself_and_wait(struct probe *probe)
{
	arm_itself(probe);
	sem_post(&far.inside);
	while (sem_wait(&far.leave) == -1)
		;
}

static void *run_on_thread(void *arg)
{
	run_ticket(arg);
	return NULL;
}

static void let_it_return(void *arg)
{
	sem_post(&far.leave);
	pthread_join(*(pthread_t *)arg, NULL);
}

/* The callback returns at each point of another thread's arming. */
Test(driver_far_races, an_arming_beside_the_end_of_a_run_counts)
{
	reopen_on_queue();
	sem_init(&far.inside, 0, 0);
	sem_init(&far.leave, 0, 0);
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		pthread_t thread;
		submit_persistent(arm_itself_and_wait);
		expect_eq(pthread_create(&thread, NULL, run_on_thread, NULL), 0);
		while (sem_wait(&far.inside) == -1)
			;
		stopped = interleave(nth, arm_too, NULL, let_it_return, &thread);
		expect_eq(far.answer, 0);
		expect_eq(tw_remaining(rig.service, far.probe.timer, &far.left_ns), 0);
		expect_eq(far.left_ns, OLD_NS);
		expect_eq(tw_cancel(rig.service, far.probe.timer), TW_CANCELLED);
	}
}
