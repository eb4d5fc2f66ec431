/*
 * What a failure does: it closes its action, and the others only if the scheduler is configured to.
 * Each failure is reported once.
 */
#include <string.h>

#include "test/support/actions.h"
#include "test/support/queue_executor.h"

TestSuite(action_failure, .timeout = 30);

static struct told told;

static tw_action_scheduler *open_kind(enum tw_action_kind kind, uint32_t flags)
{
	told = (struct told){0};
	return scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = kind,
						 .flags = flags,
						 .failed = tell_failure,
						 .failed_arg = &told});
}

/* Five actions, of which the second and the fourth fail. */
static void arm_five(struct work works[5], struct log *log, tw_action_scheduler *scheduler)
{
	for (int i = 0; i < 5; i++) {
		works[i] = (struct work){.log = log, .id = i, .answer = i % 2 ? 10 + i : 0};
		work_schedule(&works[i], scheduler, 0);
	}
}

static void expect_only_failed_ones_are_closed(struct work works[5])
{
	for (int i = 0; i < 5; i++)
		expect_eq(tw_action_state(works[i].action) == TW_ACTION_STATE_CLOSED, i % 2);
}

Test(action_failure, spares_its_batch_and_the_flush_returns_the_first)
{
	const enum tw_action_kind kinds[] = {TW_ACTION_KIND_ASAP, TW_ACTION_KIND_FRAME};
	for (int k = 0; k < 2; k++) {
		struct log log = {0};
		struct work works[5];
		tw_action_scheduler *scheduler = open_kind(kinds[k], TW_ACTION_FLAG_BY_CALLER);
		arm_five(works, &log, scheduler);
		expect_eq(tw_action_scheduler_flush(scheduler), 11);
		expect_log(&log, 0, 1, 2, 3, 4);
		expect_only_failed_ones_are_closed(works);
		expect_eq(told.count, 1); /* the other one */
		expect_eq(told.failure, 13);
		expect_eq(told.closed, 0);
		struct tw_action_scheduler_stats stats = action_stats(scheduler);
		expect_eq(stats.failures, 2);
		expect_eq(stats.closed_by_failure, 0);
		expect_eq(stats.untold, 0);
		works_destroy(works, 5, scheduler);
	}
}

static void arm_the_others(struct work *work)
{
	for (int i = 1; i < 5; i++)
		work_schedule(&work->other[i], work->scheduler, 0);
	work->answer = 10;
}

Test(action_failure, in_a_queue_goes_to_the_call_that_drives_it)
{
	tw_action_scheduler *queue = open_kind(TW_ACTION_KIND_QUEUE, 0);
	struct log log = {0};
	struct work works[5] = {{0}};
	for (int i = 1; i < 5; i++)
		works[i] = (struct work){.log = &log, .id = i, .answer = i == 3 ? 13 : 0};
	works[0] =
	    (struct work){.log = &log, .act = arm_the_others, .other = works, .scheduler = queue};
	expect_eq(tw_action_create(&works[0].action, queue, work_run, NULL), 0);
	works[0].error = tw_action_schedule(works[0].action, &works[0], 0);
	expect_eq(works[0].error, 10);
	expect_log(&log, 0, 1, 2, 3, 4);
	expect_eq(told.count, 1);
	expect_eq(told.failure, 13);
	works_destroy(works, 5, queue);
}

Test(action_failure, that_no_call_returns_is_told_each_time)
{
	struct rig rig;
	rig_open(&rig, NULL);
	told = (struct told){0};
	tw_action_scheduler *frames = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_FRAME,
						 .service = rig.service,
						 .failed = tell_failure,
						 .failed_arg = &told});
	struct log log = {0};
	struct work works[5];
	arm_five(works, &log, frames);
	rig_advance(&rig, SECOND);
	expect_log(&log, 0, 1, 2, 3, 4);
	expect_eq(told.count, 2);
	expect_only_failed_ones_are_closed(works);
	works_destroy(works, 5, frames);
	rig_close(&rig);
}

/* ------------------------------------------------------------------ refusals */

static struct {
	int inside, overlaps, told, last;
	tw_action *rearm;
} hook;

static void tell_slowly(void *arg, tw_action *action, int failure, size_t closed)
{
	(void)closed;
	hook.overlaps += hook.inside++ != 0;
	hook.told++;
	hook.last = failure;
	if (arg)
		queue_executor_run_all(arg); /* what else waits runs meanwhile, if it may */
	if (action && action == hook.rearm)
		tw_action_schedule(action, NULL, MS);
	hook.inside--;
}

static int note_overlap(tw_action *action, void *state)
{
	(void)action;
	hook.overlaps += hook.inside++ != 0;
	if (state)
		queue_executor_run_all(state);
	hook.inside--;
	return 0;
}

static tw_action_scheduler *open_refusing(struct rig *rig, struct queue_executor *queue,
					  enum tw_action_kind kind)
{
	struct tw_service_config cfg = rig_config();
	memset(&hook, 0, sizeof(hook));
	queue_executor_open(queue);
	cfg.executor = &queue->base;
	cfg.on_refused = TW_REFUSED_DROP;
	rig_open(rig, &cfg);
	return scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = kind,
						 .service = rig->service,
						 .failed = tell_slowly,
						 .failed_arg = queue});
}

static void close_refusing(struct rig *rig, struct queue_executor *queue,
			   tw_action_scheduler *scheduler)
{
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	rig_close(rig);
	queue_executor_close(queue);
}

/*
 * Two refused timers and one that runs: while the hook is inside, the other one's run waits on the
 * same executor.
 */
Test(action_failure, refusals_are_told_one_at_a_time_and_beside_no_work)
{
	struct rig rig;
	struct queue_executor queue;
	tw_action_scheduler *scheduler = open_refusing(&rig, &queue, TW_ACTION_KIND_ASYNC);
	tw_action *actions[3];
	/* the one that runs is with the executor when the others are refused */
	for (int i = 2; i >= 0; i--) {
		tw_action_scheduler_schedule(scheduler, note_overlap, &queue, MS, &actions[i]);
		queue.refuse = i < 2 ? SIZE_MAX : 0;
		rig_advance(&rig, 2 * MS);
	}
	queue_executor_run_all(&queue);
	expect_eq(hook.told, 2);
	expect_eq(hook.last, -EAGAIN);
	expect_eq(hook.overlaps, 0);
	expect_eq(action_stats(scheduler).refused, 2);
	expect_eq(action_stats(scheduler).runs, 1);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_action_destroy(actions[i]), TW_GONE);
	close_refusing(&rig, &queue, scheduler);
}

Test(action_failure, refused_action_may_be_armed_again_where_it_is_told)
{
	struct rig rig;
	struct queue_executor queue;
	tw_action_scheduler *scheduler = open_refusing(&rig, &queue, TW_ACTION_KIND_ASYNC);
	tw_action_scheduler_schedule(scheduler, note_overlap, NULL, MS, &hook.rearm);
	queue.refuse = 1;
	rig_advance(&rig, MS);
	expect_eq(hook.told, 1);
	expect_eq(tw_action_state(hook.rearm), TW_ACTION_STATE_ARMED);
	rig_advance(&rig, 2 * MS);
	queue_executor_run_all(&queue);
	expect_eq(action_stats(scheduler).runs, 1);
	tw_action_destroy(hook.rearm);
	close_refusing(&rig, &queue, scheduler);
}

static void count_run(void *arg)
{
	++*(int *)arg;
}

/*
 * ASYNC and FRAME on a strand that is closed under them: told once for each action, and nothing
 * asks again.
 */
Test(action_failure, closed_strand_ends_the_frame_with_a_notification)
{
	struct rig rig;
	tw_strand *strand;
	int runs = 0;
	memset(&hook, 0, sizeof(hook));
	rig_open(&rig, NULL);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	tw_action_scheduler *frames = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_FRAME,
						 .service = rig.service,
						 .executor = tw_strand_executor(strand),
						 .failed = tell_slowly});
	tw_action *actions[2];
	for (int i = 0; i < 2; i++)
		tw_action_scheduler_schedule(frames, note_overlap, NULL, 0, &actions[i]);
	expect_eq(submit_immediate(frames, count_run, &runs), 1);
	expect_eq(tw_strand_close(strand, 0), 0);
	rig_advance(&rig, 50 * MS);
	expect_eq(hook.told, 3);
	expect_eq(hook.last, -ESHUTDOWN);
	struct tw_action_scheduler_stats stats = action_stats(frames);
	expect_eq(stats.turns, 1);
	expect_eq(stats.armed, 0);
	expect_eq(stats.runs, 0);
	rig_advance(&rig, SECOND);
	expect_eq(hook.told, 3);
	expect_eq(runs, 0);
	for (int i = 0; i < 2; i++) {
		expect_ne(tw_action_state(actions[i]), TW_ACTION_STATE_CLOSED);
		tw_action_schedule(actions[i], NULL, MS);
	}
	rig_advance(&rig, 50 * MS);
	expect_eq(hook.told, 5);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_action_destroy(actions[i]), TW_GONE);
	expect_eq(tw_action_scheduler_destroy(frames), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&rig);
}
