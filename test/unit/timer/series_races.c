/* A series that is moved in the middle of its run's claim, and claimed in the middle of a move. */
#include <errno.h>

#include "test/support/current.h"
#include "test/support/interleave.h"
#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(timer_series_races, .timeout = 60);

/* Due at 1 s, submitted then, and claimed or moved at 4.5 s. */
struct waiting {
	struct rig rig;
	struct queue_executor queue;
	struct probe probe;
	tw_batch *ticket;
	int ran, reset;
};

static void submit_series(struct waiting *waiting)
{
	struct queue_executor *queue = &waiting->queue;
	waiting->probe = PROBE(&waiting->rig, 1);
	probe_schedule_every(&waiting->probe, rate_of(SECOND, SECOND, 0));
	rig_advance(&waiting->rig, SECOND);
	expect_eq(queue_executor_waiting(queue), 1);
	waiting->ticket = queue->tickets[queue->head++];
	rig_advance(&waiting->rig, 3500 * MS);
}

static void run_ticket(void *arg)
{
	struct waiting *waiting = arg;
	waiting->ran = tw_run_one(waiting->ticket);
}

/* The new instant has come already: the series stays due. */
static void move_to_now(void *arg)
{
	struct waiting *waiting = arg;
	waiting->reset = tw_reset(waiting->rig.service, waiting->probe.timer, 0);
}

static uint64_t left_ns(const struct waiting *waiting)
{
	uint64_t left_ns = UINT64_MAX;
	expect_eq(tw_remaining(waiting->rig.service, waiting->probe.timer, &left_ns), 0);
	return left_ns;
}

/*
 * A run that was claimed after the move stands for the new instant, 4.5 s. One that was claimed
 * before it stands for 4 s, and counts what it missed since 1 s. Then the move is refused, or it
 * moves the next run.
 */
static void meet_at_each_point(bool move_first)
{
	struct waiting waiting = {0};
	unsigned moved = 0, kept = 0;
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&waiting.queue);
	cfg.executor = &waiting.queue.base;
	rig_open(&waiting.rig, &cfg);
	bool stopped = true;
	for (unsigned nth = 1; stopped; nth++) {
		submit_series(&waiting);
		stopped = move_first ? interleave(nth, move_to_now, &waiting, run_ticket, &waiting)
				     : interleave(nth, run_ticket, &waiting, move_to_now, &waiting);
		expect_eq(waiting.ran, 1);
		expect_eq(waiting.probe.runs, 1);
		if (waiting.probe.overruns == 0) {
			expect_eq(waiting.reset, 0);
			expect_eq(left_ns(&waiting), SECOND);
			moved++;
		} else {
			expect_eq(waiting.probe.overruns, 3);
			expect_eq(waiting.reset == 0 || waiting.reset == -EBUSY, true);
			expect_eq(left_ns(&waiting), waiting.reset ? SECOND / 2 : 0);
			kept++;
		}
		expect_eq(tw_cancel(waiting.rig.service, waiting.probe.timer), TW_CANCELLED);
		queue_executor_run_all(&waiting.queue);
	}
	if (INTERLEAVES)
		expect_eq(moved > 0 && kept > 0, true);
	rig_close(&waiting.rig);
	queue_executor_close(&waiting.queue);
}

Test(timer_series_races, a_move_in_the_middle_of_a_claim)
{
	meet_at_each_point(false);
}

Test(timer_series_races, a_claim_in_the_middle_of_a_move)
{
	meet_at_each_point(true);
}
