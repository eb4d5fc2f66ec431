/*
 * asap and frame: one batch source. What was armed before a flush is run by it, and nothing else.
 */
#include "test/support/actions.h"
#include "test/support/queue_executor.h"
#include "wheel/core/service.h"

TestSuite(action_batch, .timeout = 30);

struct host {
	int wanted, unwanted;
};

static void note_wanted(void *arg, bool wanted)
{
	struct host *host = arg;
	host->wanted += wanted;
	host->unwanted += !wanted;
}

static tw_action_scheduler *by_caller(enum tw_action_kind kind, struct host *host)
{
	return scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = kind,
						 .flags = TW_ACTION_FLAG_BY_CALLER,
						 .wanted = note_wanted,
						 .wanted_arg = host});
}

static const enum tw_action_kind kinds[] = {TW_ACTION_KIND_ASAP, TW_ACTION_KIND_FRAME};

Test(action_batch, shares_one_turn_of_the_host)
{
	for (int k = 0; k < 2; k++) {
		struct host host = {0};
		struct log log = {0};
		struct work works[4] = {{0}};
		tw_action_scheduler *scheduler = by_caller(kinds[k], &host);
		for (int i = 0; i < 4; i++) {
			works[i] = (struct work){.log = &log, .id = i};
			work_schedule(&works[i], scheduler, 0);
		}
		expect_eq(host.wanted, 1);
		expect_eq(log.count, 0);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_log(&log, 0, 1, 2, 3);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_eq(log.count, 4);
		expect_eq(host.unwanted, 0);
		expect_eq(action_stats(scheduler).flushes, 1);
		works_destroy(works, 4, scheduler);
	}
}

Test(action_batch, leaves_what_arrives_during_the_flush_to_the_next)
{
	for (int k = 0; k < 2; k++) {
		struct host host = {0};
		struct log log = {0};
		struct work works[2] = {{.log = &log, .id = 1, .rearms = 2},
					{.log = &log, .id = 2}};
		tw_action_scheduler *scheduler = by_caller(kinds[k], &host);
		work_schedule(&works[0], scheduler, 0);
		work_schedule(&works[1], scheduler, 0);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_log(&log, 1, 2);
		expect_eq(host.wanted, 2);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_log(&log, 1, 2, 1);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_eq(log.count, 4);
		expect_eq(host.wanted, 3);
		works_destroy(works, 2, scheduler);
	}
}

static void close_other(struct work *work)
{
	tw_action_close(work->other->action, 0);
}

static void rearm_and_close_other(struct work *work)
{
	if (work->runs == 1)
		tw_action_schedule(work->action, work, 0);
	tw_action_close(work->other->action, 0);
}

/*
 * "Run the first n": the place of the closed one would be taken by what was armed during the flush.
 */
Test(action_batch, cancelling_inside_a_flush_pulls_no_later_action_in)
{
	struct host host = {0};
	struct log log = {0};
	struct work works[3] = {
	    {.log = &log, .id = 1, .act = rearm_and_close_other, .other = &works[1]},
	    {.log = &log, .id = 2},
	    {.log = &log, .id = 3}};
	tw_action_scheduler *scheduler = by_caller(TW_ACTION_KIND_ASAP, &host);
	for (int i = 0; i < 3; i++)
		work_schedule(&works[i], scheduler, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&log, 1, 3);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&log, 1, 3, 1);
	works_destroy(works, 3, scheduler);
}

Test(action_batch, calls_its_turn_off_when_the_last_one_is_cancelled)
{
	struct host host = {0};
	struct work works[3] = {{0}};
	tw_action_scheduler *scheduler = by_caller(TW_ACTION_KIND_FRAME, &host);
	for (int i = 0; i < 2; i++)
		work_schedule(&works[i], scheduler, 0);
	expect_eq(tw_action_close(works[0].action, 0), TW_CANCELLED);
	expect_eq(host.unwanted, 0);
	expect_eq(tw_action_close(works[1].action, 0), TW_CANCELLED);
	expect_eq(host.unwanted, 1);
	expect_eq(action_stats(scheduler).turns_cancelled, 1);
	work_schedule(&works[2], scheduler, 0);
	expect_eq(host.wanted, 2);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(works[0].runs + works[1].runs, 0);
	expect_eq(works[2].runs, 1);
	works_destroy(works, 3, scheduler);
}

Test(action_batch, cancelled_to_its_end_inside_its_flush_leaves_the_next_turn_alone)
{
	struct host host = {0};
	struct log log = {0};
	struct work works[2] = {
	    {.log = &log, .id = 1, .act = rearm_and_close_other, .other = &works[1]},
	    {.log = &log, .id = 2}};
	tw_action_scheduler *scheduler = by_caller(TW_ACTION_KIND_ASAP, &host);
	work_schedule(&works[0], scheduler, 0);
	work_schedule(&works[1], scheduler, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(host.wanted, 2);
	expect_eq(host.unwanted, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&log, 1, 1);
	works_destroy(works, 2, scheduler);
}

Test(action_batch, armed_again_before_its_turn_runs_once_and_asks_once)
{
	struct host host = {0};
	struct log log = {0};
	struct work first = {.log = &log, .id = 1}, second = {.log = &log, .id = 2};
	tw_action_scheduler *scheduler = by_caller(TW_ACTION_KIND_ASAP, &host);
	work_schedule(&first, scheduler, 0);
	second.scheduler = scheduler;
	tw_action_schedule(first.action, &second, 0);
	expect_eq(host.wanted, 1);
	expect_eq(host.unwanted, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&log, 2);
	works_destroy(&first, 1, scheduler);
}

static void arm_other(struct work *work)
{
	work->error = tw_action_schedule(work->other->action, work->other, 0);
}

Test(action_batch, that_fails_closes_its_rest_spares_the_next_and_returns_the_failure)
{
	struct host host = {0};
	struct log log = {0};
	struct work works[4] = {
	    {.log = &log, .id = 0},
	    {.log = &log, .id = 1, .act = arm_other, .other = &works[3], .answer = 17},
	    {.log = &log, .id = 2},
	    {.log = &log, .id = 3}};
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .kind = TW_ACTION_KIND_ASAP,
						    .flags = TW_ACTION_FLAG_BY_CALLER |
							     TW_ACTION_FLAG_CANCEL_BATCH,
						    .wanted = note_wanted,
						    .wanted_arg = &host};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	for (int i = 0; i < 3; i++)
		work_schedule(&works[i], scheduler, 0);
	works[3].scheduler = scheduler;
	expect_eq(tw_action_create(&works[3].action, scheduler, work_run, NULL), 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 17);
	expect_log(&log, 0, 1);
	expect_eq(tw_action_state(works[1].action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_state(works[2].action), TW_ACTION_STATE_CLOSED);
	expect_ne(tw_action_state(works[0].action), TW_ACTION_STATE_CLOSED);
	expect_ne(tw_action_state(works[3].action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&log, 0, 1, 3);
	works[0].error = tw_action_schedule(works[0].action, &works[0], 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&log, 0, 1, 3, 0);
	works_destroy(works, 4, scheduler);
}

static void flush_inside(struct work *work)
{
	work->other_answer = tw_action_scheduler_flush(work->scheduler);
}

Test(action_batch, is_not_flushed_from_inside_itself)
{
	struct host host = {0};
	struct work work = {.act = flush_inside};
	tw_action_scheduler *scheduler = by_caller(TW_ACTION_KIND_ASAP, &host);
	work_schedule(&work, scheduler, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(work.other_answer, -EBUSY);
	expect_eq(work.runs, 1);
	works_destroy(&work, 1, scheduler);
}

/* ------------------------------------------------------ asap on an executor */

Test(action_batch, asap_takes_one_turn_of_the_executor)
{
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	rig_open(&rig, &cfg);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASAP);
	struct log log = {0};
	struct work works[3] = {{.log = &log, .id = 1, .act = close_other, .other = &works[1]},
				{.log = &log, .id = 2},
				{.log = &log, .id = 3, .rearms = 1}};
	for (int i = 0; i < 3; i++)
		work_schedule(&works[i], scheduler, 0);
	expect_eq(queue_executor_waiting(&queue), 1);
	expect_eq(queue_executor_run_next(&queue), 1);
	expect_log(&log, 1, 3);
	expect_eq(queue_executor_waiting(&queue), 1);
	expect_eq(tw_action_close(works[2].action, 0), TW_CANCELLED);
	expect_eq(action_stats(scheduler).turns_cancelled, 1);
	expect_eq(queue_executor_run_next(&queue), 1); /* finds that nobody wants it */
	expect_eq(log.count, 2);
	expect_eq(action_stats(scheduler).flushes, 1);
	works_destroy(works, 3, scheduler);
	rig_close(&rig);
	queue_executor_close(&queue);
}

Test(action_batch, asap_on_the_inline_executor_runs_in_the_next_advance)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASAP);
	struct log log = {0};
	struct work work = {.log = &log, .id = 1, .rearms = 1}, late = {.log = &log, .id = 2};
	work_schedule(&late, scheduler, 5 * MS);
	work_schedule(&work, scheduler, 0);
	expect_eq(log.count, 0);
	rig_advance(&rig, MS);
	rig_advance(&rig, MS);
	expect_log(&log, 1, 1);
	rig_advance(&rig, SECOND);
	expect_log(&log, 1, 1, 2);
	expect_eq(log.at_ns[2], RIG_START_NS + 5 * MS);
	tw_action_destroy(late.action);
	works_destroy(&work, 1, scheduler);
	rig_close(&rig);
}

Test(action_batch, destroyed_before_its_turn_lets_go_of_the_service_when_it_has_come)
{
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	rig_open(&rig, &cfg);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASAP);
	struct work work = {0};
	work_schedule(&work, scheduler, 0);
	expect_eq(tw_action_scheduler_destroy(scheduler), -EBUSY);
	works_destroy(&work, 1, scheduler);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_eq(queue_executor_run_next(&queue), 1);
	expect_eq(work.runs, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	rig_close(&rig);
	queue_executor_close(&queue);
}

/* The executor never takes the turn of before, so the driver does the rest. */
Test(action_batch, destroyed_on_an_executor_that_refuses_for_good_lets_go_of_the_service)
{
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	queue.refuse = SIZE_MAX;
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	rig_open(&rig, &cfg);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASAP);
	struct work work = {0};
	work_schedule(&work, scheduler, 0);
	rig_advance(&rig, 2 * MS);
	works_destroy(&work, 1, scheduler);
	expect_eq(work.runs, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	rig_close(&rig);
	queue_executor_close(&queue);
}

/* ---------------------------------------------------- frames of the service */

Test(action_batch, frames_come_at_their_instants_without_drift)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_FRAME);
	struct log log = {0};
	struct work work = {.log = &log, .id = 1, .rearms = 1199};
	work_schedule(&work, scheduler, 0);
	rig_advance(&rig, 30 * SECOND);
	expect_eq(log.count, 1200);
	for (int i = 0; i < log.count; i++) {
		uint64_t frame_ns = RIG_START_NS + (uint64_t)(i + 1) * SECOND / 60;
		expect_ge(log.at_ns[i], frame_ns);
		expect_le(log.at_ns[i], frame_ns + MS);
	}
	works_destroy(&work, 1, scheduler);
	rig_close(&rig);
}

Test(action_batch, frames_that_are_past_are_left_out)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .kind = TW_ACTION_KIND_FRAME,
						    .service = rig.service,
						    .frames_per_second = 100};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	struct log log = {0};
	struct work work = {.log = &log, .id = 1, .rearms = 3, .slow_ns = 35 * MS, .rig = &rig};
	work_schedule(&work, scheduler, 0);
	rig_advance(&rig, SECOND);
	expect_eq(log.count, 4);
	for (int i = 0; i < 4; i++)
		expect_eq(log.at_ns[i], RIG_START_NS + (10 + (uint64_t)i * 40) * MS);
	works_destroy(&work, 1, scheduler);
	rig_close(&rig);
}

Test(action_batch, frame_timer_is_cancelled_with_the_last_action)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_FRAME);
	struct work works[2] = {{0}};
	work_schedule(&works[0], scheduler, 0);
	work_schedule(&works[1], scheduler, 0);
	expect_eq(stats_of(rig.service).pending, 1);
	tw_action_close(works[0].action, 0);
	expect_eq(stats_of(rig.service).pending, 1);
	tw_action_close(works[1].action, 0);
	expect_eq(stats_of(rig.service).pending, 0);
	works_destroy(works, 2, scheduler);
	rig_close(&rig);
}

Test(action_batch, failure_of_a_frame_that_nobody_drives_is_told)
{
	struct rig rig;
	struct told told = {0};
	rig_open(&rig, NULL);
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .kind = TW_ACTION_KIND_FRAME,
						    .flags = TW_ACTION_FLAG_CANCEL_BATCH,
						    .service = rig.service,
						    .failed = tell_failure,
						    .failed_arg = &told};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	struct work works[3] = {{.answer = 3}, {0}, {0}};
	for (int i = 0; i < 3; i++)
		work_schedule(&works[i], scheduler, 0);
	rig_advance(&rig, SECOND);
	expect_eq(told.count, 1);
	expect_eq(told.failure, 3);
	expect_eq(told.closed, 2);
	expect_eq(works[1].runs + works[2].runs, 0);
	works_destroy(works, 3, scheduler);
	rig_close(&rig);
}
