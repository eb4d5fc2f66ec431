/*
 * Persistent timers, and other threads' calls in the middle of each step that changes them: at each
 * point of one call, another call is made.
 */
#include "test/support/interleave.h"
#include "test/support/queue_executor.h"
#include "test/support/rig.h"
#include "wheel/run/run.h"

TestSuite(timer_persistent_races, .timeout = 60);

/* A persistent timer that waits at its executor. */
struct waiting {
	struct rig rig;
	struct queue_executor queue;
	struct probe probe;
	tw_batch *ticket;
	int answer, reset;
};

static void open_waiting(struct waiting *waiting)
{
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&waiting->queue);
	cfg.executor = &waiting->queue.base;
	rig_open(&waiting->rig, &cfg);
}

static void close_waiting(struct waiting *waiting)
{
	rig_close(&waiting->rig);
	queue_executor_close(&waiting->queue);
}

/* Due in 1 ms, and submitted then. */
static void submit_one(struct waiting *waiting, const struct tw_task *options)
{
	struct queue_executor *queue = &waiting->queue;
	struct tw_task task = *options;
	waiting->probe = PROBE(&waiting->rig, 1);
	task.size = sizeof task;
	task.fn = probe_run;
	task.arg = &waiting->probe;
	task.when_ns = MS;
	task.flags = TW_TASK_PERSISTENT;
	expect_eq(tw_schedule_task(waiting->rig.service, &task, &waiting->probe.timer), 0);
	rig_advance(&waiting->rig, MS);
	expect_eq(queue_executor_waiting(queue), 1);
	waiting->ticket = queue->tickets[queue->head++];
}

static void disarm(void *arg)
{
	struct waiting *waiting = arg;
	waiting->answer = tw_disarm(waiting->rig.service, waiting->probe.timer);
}

static void end_ticket(void *arg)
{
	struct waiting *waiting = arg;
	tw__batch_end_one(waiting->ticket);
}

/* ------------------------------------------------------------ at the end of their executor */

/*
 * The executor is closed: its batch ends an armed timer. A timer that another thread has disarmed
 * stays.
 */
static void end_at_each_point(bool has_release)
{
	struct waiting waiting = {0};
	struct tw_task options = {.release = has_release ? probe_release : NULL};
	int ended = 0, stayed = 0;
	open_waiting(&waiting);
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		submit_one(&waiting, &options);
		stopped = interleave(nth, end_ticket, &waiting, disarm, &waiting);
		bool stays = waiting.answer == TW_CANCELLED;
		int answer = tw_cancel(waiting.rig.service, waiting.probe.timer);
		expect_eq(answer, stays ? TW_CANCELLED : TW_GONE);
		expect_eq(waiting.probe.releases, has_release);
		stays ? stayed++ : ended++;
	}
	if (INTERLEAVES)
		expect_eq(ended > 0 && stayed > 0, true);
	close_waiting(&waiting);
}

Test(timer_persistent_races, a_disarmed_one_outlives_its_executor)
{
	end_at_each_point(false);
}

Test(timer_persistent_races, a_disarmed_one_with_a_release_outlives_its_executor)
{
	end_at_each_point(true);
}
