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
	hook.overlaps += hook.inside++ != 0;
	if (state)
		queue_executor_run_all(state);
	hook.inside--;
	return 0;
}

/*
 * ASYNC actions on a strand that is closed. The service's executor, a queue, calls the releases of
 * their timers.
 */
struct refusing {
	struct rig rig;
	struct queue_executor queue;
	tw_strand *strand;
	tw_action_scheduler *scheduler;
};

static void open_refusing(struct refusing *r)
{
	struct tw_service_config cfg = rig_config();
	memset(&hook, 0, sizeof(hook));
	queue_executor_open(&r->queue);
	cfg.executor = &r->queue.base;
	rig_open(&r->rig, &cfg);
	expect_eq(tw_strand_create(&r->strand, r->rig.service, NULL), 0);
	r->scheduler = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .service = r->rig.service,
						 .executor = tw_strand_executor(r->strand),
						 .failed = tell_slowly,
						 .failed_arg = &r->queue});
	expect_eq(tw_strand_close(r->strand, 0), 0);
}

static void close_refusing(struct refusing *r)
{
	expect_eq(tw_action_scheduler_destroy(r->scheduler), 0);
	expect_eq(tw_strand_destroy(r->strand), 0);
	rig_close(&r->rig);
	queue_executor_close(&r->queue);
}

/* The releases of all refused timers come while the hook is inside, or an action's run. */
Test(action_failure, refusals_are_told_one_at_a_time_and_beside_no_work)
{
	struct refusing r;
	open_refusing(&r);
	tw_action *actions[3];
	expect_eq(tw_action_create(&actions[2], r.scheduler, note_overlap, NULL), 0);
	for (int i = 0; i < 2; i++)
		tw_action_scheduler_schedule(r.scheduler, note_overlap, NULL, MS, &actions[i]);
	rig_advance(&r.rig, MS);
	queue_executor_run_next(&r.queue);
	expect_eq(hook.told, 2);
	for (int i = 0; i < 2; i++) {
		expect_eq(tw_action_state(actions[i]), TW_ACTION_STATE_IDLE);
		expect_eq(tw_action_schedule(actions[i], NULL, MS), 0);
	}
	rig_advance(&r.rig, MS);
	expect_eq(hook.told, 2);
	expect_eq(tw_action_run(actions[2], &r.queue), 0);
	expect_eq(hook.told, 4);
	expect_eq(hook.last, -ESHUTDOWN);
	expect_eq(hook.overlaps, 0);
	expect_eq(action_stats(r.scheduler).refused, 4);
	expect_eq(action_stats(r.scheduler).runs, 1);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_action_destroy(actions[i]), TW_GONE);
	close_refusing(&r);
}

Test(action_failure, refused_action_may_be_armed_again_where_it_is_told)
{
	struct refusing r;
	open_refusing(&r);
	tw_action_scheduler_schedule(r.scheduler, note_overlap, NULL, MS, &hook.rearm);
	for (int told_before = 0; told_before < 3; told_before++) {
		expect_eq(tw_action_state(hook.rearm), TW_ACTION_STATE_ARMED);
		expect_eq(hook.told, told_before);
		rig_advance(&r.rig, MS);
		queue_executor_run_all(&r.queue);
	}
	expect_eq(hook.told, 3);
	tw_action_destroy(hook.rearm);
	close_refusing(&r);
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
