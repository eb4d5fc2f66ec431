/* Actions and contexts, and executors that refuse. */
#include "test/support/actions.h"
#include "test/support/queue_executor.h"

TestSuite(action_seams, .timeout = 60);

static int first, second, mine;

struct seer {
	void *seen[4];
	int runs;
	bool rearms;
	uint64_t delay_ns;
};

static int see(tw_action *action, void *state)
{
	struct seer *seer = state;
	seer->seen[seer->runs++ % 4] = tw_context_get();
	if (seer->rearms && seer->runs < 3)
		tw_action_schedule(action, seer, seer->delay_ns);
	tw_context_set(&second);
	return 0;
}

static void see_immediate(void *arg)
{
	see(NULL, arg);
}

Test(action_seams, each_run_is_under_that_of_its_arming)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *async = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	struct seer seer = {.rearms = true, .delay_ns = MS}, other = {0};
	tw_context_set(&first);
	tw_action *action;
	schedule_new(async, see, &seer, MS, &action);
	tw_context_set(NULL);
	tw_action *none;
	schedule_new(async, see, &other, MS, &none);
	tw_context_set(&mine);
	rig_advance(&rig, SECOND);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(seer.seen[i], &first);
	expect_eq(other.runs, 1);
	cr_assert_null(other.seen[0]);
	cr_assert_eq(tw_context_get(), &mine);
	tw_action_destroy(action);
	tw_action_destroy(none);
	expect_eq(tw_action_scheduler_destroy(async), 0);
	rig_close(&rig);
}

Test(action_seams, of_batches_queues_and_immediates)
{
	static const enum tw_action_kind kinds[] = {TW_ACTION_KIND_QUEUE, TW_ACTION_KIND_ASAP};
	for (int k = 0; k < 2; k++) {
		struct tw_action_scheduler_config config = {
		    .size = sizeof(config),
		    .kind = kinds[k],
		    .flags = kinds[k] == TW_ACTION_KIND_ASAP ? TW_ACTION_FLAG_BY_CALLER : 0};
		tw_action_scheduler *scheduler = scheduler_of(&config);
		struct seer seer = {0}, immediate = {0};
		tw_context_set(&first);
		tw_action *action;
		schedule_new(scheduler, see, &seer, 0, &action);
		if (kinds[k] == TW_ACTION_KIND_ASAP)
			submit_immediate(scheduler, see_immediate, &immediate);
		if (kinds[k] != TW_ACTION_KIND_QUEUE) {
			tw_context_set(&mine);
			expect_eq(tw_action_scheduler_flush(scheduler), 0);
			cr_assert_eq(tw_context_get(), &mine);
		}
		expect_eq(seer.runs, 1);
		cr_assert_eq(seer.seen[0], &first);
		if (immediate.runs)
			cr_assert_eq(immediate.seen[0], &first);
		tw_action_destroy(action);
		expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	}
}

/* ------------------------------------------------------------------- refusal */

Test(action_seams, timer_or_frame_that_its_executor_refuses_comes_a_tick_later)
{
	static const enum tw_action_kind kinds[] = {TW_ACTION_KIND_ASYNC, TW_ACTION_KIND_FRAME};
	for (int k = 0; k < 2; k++) {
		struct rig rig;
		struct queue_executor queue;
		queue_executor_open(&queue);
		struct tw_service_config cfg = rig_config();
		cfg.executor = &queue.base;
		rig_open(&rig, &cfg);
		tw_action_scheduler *scheduler = scheduler_on(rig.service, kinds[k]);
		struct work work = {0};
		work_schedule(&work, scheduler, 0);
		queue.refuse = SIZE_MAX;
		rig_advance(&rig, 40 * MS);
		queue_executor_run_all(&queue);
		expect_eq(work.runs, 0);
		queue.refuse = 0;
		rig_advance(&rig, 2 * MS);
		queue_executor_run_all(&queue);
		expect_eq(work.runs, 1);
		expect_eq(action_stats(scheduler).refused, 0);
		tw_action_destroy(work.action);
		expect_eq(tw_action_scheduler_destroy(scheduler), 0);
		rig_close(&rig);
		queue_executor_close(&queue);
	}
}
