/*
 * One call in the middle of another, at each of its points: persistent timers at the end of their
 * executor, and series that are moved while their run is claimed.
 */
#include <errno.h>

#include "wheel/run/run.h"
#include "test/support/interleave.h"
#include "test/support/rig_suite.h"

TestSuite(timer_persistent_races, .init = open_rig, .fini = close_rig, .timeout = 60);
TestSuite(timer_series_races, .init = open_rig, .fini = close_rig, .timeout = 60);

static struct probe probe;
static tw_batch *ticket; /* of the probe's timer */
static int answer;

/* The timer has come due, and is submitted. */
static void submit(const struct tw_task *task, uint64_t due_ns)
{
	probe_schedule_task(&probe, task);
	rig_advance(&rig, due_ns);
	expect_eq(queue_executor_waiting(&queue), 1);
	ticket = queue.tickets[queue.head++];
}

/* ------------------------------------------------------------ at the end of an executor */

static void disarm(void *unused)
{
	answer = tw_disarm(rig.service, probe.timer);
}

static void end_ticket(void *unused)
{
	tw__batch_end_all(ticket);
	expect_eq(tw_run_one(ticket), 0);
}

/*
 * The executor is closed: its batch ends an armed timer. A timer that another thread has disarmed
 * stays.
 */
static void end_at_each_point(bool has_release)
{
	int ended = 0, stayed = 0;
	reopen_on_queue();
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		probe = PROBE(&rig, 1);
		struct tw_task task = probe_task(&probe);
		task.when_ns = MS;
		task.flags = TW_TASK_PERSISTENT;
		task.release = has_release ? probe_release : NULL;
		submit(&task, MS);
		stopped = interleave(nth, end_ticket, NULL, disarm, NULL);
		bool stays = answer == TW_CANCELLED;
		expect_eq(tw_cancel(rig.service, probe.timer), stays ? TW_CANCELLED : TW_GONE);
		expect_eq(probe.releases, has_release);
		stays ? stayed++ : ended++;
	}
	if (INTERLEAVES)
		expect_eq(ended > 0 && stayed > 0, true);
}

Test(timer_persistent_races, a_disarmed_one_outlives_its_executor)
{
	end_at_each_point(false);
	end_at_each_point(true);
}

/* ------------------------------------------------------------ a series that is moved */

static int ran;

static void run_ticket(void *unused)
{
	ran = tw_run_one(ticket);
}

/* The new instant has come already: the series stays due. */
static void move_to_now(void *unused)
{
	answer = tw_reset(rig.service, probe.timer, 0);
}

static uint64_t left_ns(void)
{
	uint64_t left_ns = UINT64_MAX;
	expect_eq(tw_remaining(rig.service, probe.timer, &left_ns), 0);
	return left_ns;
}

/*
 * Due at 1 s, submitted then, and claimed or moved at 4.5 s. A run that was claimed after the move
 * stands for the new instant, 4.5 s. One that was claimed before it stands for 4 s, and counts what
 * it missed since 1 s. Then the move is refused, or it moves the next run.
 */
static void meet_at_each_point(bool move_first)
{
	unsigned moved = 0, kept = 0;
	struct tw_period period = rate_of(SECOND, SECOND, 0);
	reopen_on_queue();
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		probe = PROBE(&rig, 1);
		struct tw_task task = probe_task(&probe);
		task.period = &period;
		task.release = NULL;
		submit(&task, SECOND);
		rig_advance(&rig, 3500 * MS);
		stopped = move_first ? interleave(nth, move_to_now, NULL, run_ticket, NULL)
				     : interleave(nth, run_ticket, NULL, move_to_now, NULL);
		expect_eq(ran, 1);
		expect_eq(probe.runs, 1);
		if (probe.overruns == 0) {
			expect_eq(answer, 0);
			expect_eq(left_ns(), SECOND);
			moved++;
		} else {
			expect_eq(probe.overruns, 3);
			expect_eq(answer == 0 || answer == -EBUSY, true);
			expect_eq(left_ns(), answer ? SECOND / 2 : 0);
			kept++;
		}
		expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
		queue_executor_run_all(&queue);
	}
	if (INTERLEAVES)
		expect_eq(moved > 0 && kept > 0, true);
}

Test(timer_series_races, a_move_and_a_claim_in_the_middle_of_each_other)
{
	meet_at_each_point(false);
	meet_at_each_point(true);
}

/* ------------------------------------------------------------ a period that comes too late */

static void set_period(void *unused)
{
	answer = tw_set_period(rig.service, probe.timer, SECOND);
}

/* The series has ended, and its slot is another one's. */
static void end_and_reuse(void *arg)
{
	struct probe *next = arg;
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	while (probe_schedule_every(next, rate_of(SECOND, 7 * SECOND, 0)),
	       (uint32_t)next->timer.id != (uint32_t)probe.timer.id)
		expect_eq(tw_cancel(rig.service, next->timer), TW_CANCELLED);
}

Test(timer_series_races, a_late_period_does_not_reach_the_next_series)
{
	unsigned changed = 0, refused = 0;
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		struct probe next = PROBE(&rig, 2);
		probe = PROBE(&rig, 1);
		probe_schedule_every(&probe, rate_of(3 * SECOND, 3 * SECOND, 0));
		stopped = interleave(nth, set_period, NULL, end_and_reuse, &next);
		answer == 0 ? changed++ : refused++;
		expect_eq(answer == 0 || answer == -ENOENT, true);
		rig_advance(&rig, SECOND);
		uint64_t left_ns = 0;
		expect_eq(tw_remaining(rig.service, next.timer, &left_ns), 0);
		expect_eq(left_ns, 7 * SECOND);
		expect_eq(tw_cancel(rig.service, next.timer), TW_CANCELLED);
	}
	if (INTERLEAVES)
		expect_eq(changed > 0 && refused > 0, true);
}
