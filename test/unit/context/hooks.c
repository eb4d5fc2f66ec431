/*
 * Hooks in the place of the context pointer: each capture is released exactly once, whatever
 * becomes of its timer or task.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "test/support/faults.h"
#include "test/support/members.h"
#include "test/support/queue_executor.h"
#include "wheel/core/service.h"

TestSuite(context_hooks, .timeout = 30);

enum { MOST = 4096 };

/* A capture is the number of a cell, which counts what became of it. */
static struct cell {
	atomic_int installs, releases;
} cells[MOST];
static atomic_int captured, restores, none_installed;
static bool captures = true;
static _Thread_local void *ambient;

static void *capture(void)
{
	return captures ? &cells[captured++] : NULL;
}

static void *install(void *context)
{
	void *former = ambient;
	if (context)
		((struct cell *)context)->installs++;
	else
		none_installed++;
	ambient = context;
	return former;
}

static void restore(void *former)
{
	ambient = former;
	restores++;
}

static void release(void *context)
{
	((struct cell *)context)->releases++;
}

static const struct tw_context_hooks hooks = {sizeof hooks, capture, install, restore, release};

static void set_up(struct rig *rig, const struct tw_service_config *cfg)
{
	expect_eq(tw_context_hooks_set(&hooks), 0);
	rig_open(rig, cfg);
}

/* All captures were released once; `runs` installs in all. */
static void expect_all_released(int expected)
{
	expect_eq(captured, expected);
	for (int i = 0; i < captured; i++)
		expect_eq(cells[i].releases, 1);
	cr_assert_null(ambient);
}

static void *seen;

static void see(void *arg)
{
	(void)arg;
	seen = ambient;
}

static void see_fate(void *arg, enum tw_fate fate)
{
	*(int *)arg = (int)fate;
	seen = ambient;
}

static void see_number(void *arg)
{
	*(void **)arg = ambient;
}

/* ---------------------------------------------------------------------- setting */

Test(context_hooks, bad_ones_are_refused)
{
	struct tw_context_hooks bad = hooks;
	struct {
		struct tw_context_hooks hooks;
		uint64_t more;
	} longer = {hooks, 1};
	expect_eq(tw_context_hooks_set(NULL), -EINVAL);
	bad.size = offsetof(struct tw_context_hooks, restore);
	expect_eq(tw_context_hooks_set(&bad), -EINVAL);
	bad = hooks;
	bad.capture = NULL;
	expect_eq(tw_context_hooks_set(&bad), -EINVAL);
	bad = hooks;
	bad.install = NULL;
	expect_eq(tw_context_hooks_set(&bad), -EINVAL);
	bad = hooks;
	bad.restore = NULL;
	expect_eq(tw_context_hooks_set(&bad), -EINVAL);
	longer.hooks.size = sizeof longer;
	expect_eq(tw_context_hooks_set(&longer.hooks), -E2BIG);
	longer.more = 0;
	expect_eq(tw_context_hooks_set(&longer.hooks), 0);
}

Test(context_hooks, are_set_once)
{
	expect_eq(tw_context_hooks_set(&hooks), 0);
	expect_eq(tw_context_hooks_set(&hooks), -EBUSY);
}

Test(context_hooks, come_too_late_when_a_context_was_set)
{
	int value;
	tw_context_set(NULL); /* changes nothing */
	tw_context_set(&value);
	tw_context_set(NULL);
	expect_eq(tw_context_hooks_set(&hooks), -EBUSY);
}

Test(context_hooks, leave_the_pointer_a_plain_variable)
{
	struct rig rig;
	int value;
	void *there = &value;
	set_up(&rig, NULL);
	captures = false;
	tw_context_set(&value);
	cr_assert_eq(tw_context_get(), &value);
	expect_eq(tw_schedule(rig.service, MS, see_number, &there, NULL), 0);
	rig_advance(&rig, SECOND);
	cr_assert_null(there);
	expect_eq(none_installed, 1);
	expect_eq(restores, 1);
	cr_assert_eq(tw_context_get(), &value);
	expect_eq(rig.service->slots.ext_depot.fresh, 1);
	rig_close(&rig);
}

Test(context_hooks, without_a_release_need_none)
{
	struct tw_context_hooks three = hooks;
	three.release = NULL;
	three.size = offsetof(struct tw_context_hooks, release);
	expect_eq(tw_context_hooks_set(&three), 0);
	struct rig rig;
	rig_open(&rig, NULL);
	expect_eq(tw_schedule(rig.service, MS, see, NULL, NULL), 0);
	rig_advance(&rig, SECOND);
	expect_eq(cells[0].installs, 1);
	cr_assert_eq(seen, &cells[0]);
	rig_close(&rig);
}

/* -------------------------------------------------------------- one end for each */

Test(context_hooks, release_after_a_run)
{
	struct rig rig;
	int fate = -1;
	set_up(&rig, NULL);
	struct tw_task task = {
	    .size = sizeof task, .fn = see, .arg = &fate, .when_ns = MS, .release = see_fate};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	rig_advance(&rig, SECOND);
	expect_eq(fate, TW_FATE_FIRED);
	cr_assert_eq(seen, &cells[0], "the release is not under the context");
	expect_eq(cells[0].installs, 2);
	expect_all_released(1);
	rig_close(&rig);
}

Test(context_hooks, release_after_a_series_not_after_each_run)
{
	struct rig rig;
	set_up(&rig, NULL);
	struct tw_period period = rate_of(MS, MS, 3);
	expect_eq(tw_schedule_every(rig.service, &period, see, NULL, NULL), 0);
	rig_advance(&rig, 2 * MS);
	expect_eq(cells[0].installs, 2);
	expect_eq(cells[0].releases, 0);
	rig_advance(&rig, SECOND);
	expect_eq(cells[0].installs, 3);
	expect_all_released(1);
	rig_close(&rig);
}

Test(context_hooks, release_after_a_cancel)
{
	struct rig rig;
	tw_timer early, late;
	set_up(&rig, NULL);
	expect_eq(tw_schedule(rig.service, MS, see, NULL, &early), 0);
	expect_eq(tw_schedule(rig.service, HOUR, see, NULL, &late), 0);
	expect_eq(tw_cancel(rig.service, early), TW_CANCELLED);
	expect_eq(cells[0].releases, 1);
	rig_advance(&rig, SECOND);
	expect_eq(tw_cancel_wait(rig.service, late, TW_FOREVER), TW_CANCELLED);
	expect_eq(tw_cancel(rig.service, late), TW_GONE);
	expect_all_released(2);
	rig_close(&rig);
}

Test(context_hooks, release_when_close_drops)
{
	struct rig rig;
	set_up(&rig, NULL);
	expect_eq(tw_schedule(rig.service, MS, see, NULL, NULL), 0);
	rig_advance(&rig, 0);
	expect_eq(tw_schedule(rig.service, DAY, see, NULL, NULL), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_all_released(2);
	expect_eq(tw_schedule(rig.service, MS, see, NULL, NULL), -ESHUTDOWN);
	struct tw_task task = {.size = sizeof task, .fn = see};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), -ESHUTDOWN);
	expect_eq(tw_schedule_bulk(rig.service, &task, 1, NULL), -ESHUTDOWN);
	expect_all_released(captured);
	rig_close(&rig);
}

Test(context_hooks, release_when_too_late)
{
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	set_up(&rig, &cfg);
	struct tw_task task = {.size = sizeof task,
			       .fn = see,
			       .when_ns = MS,
			       .max_lateness_ns = 10 * MS,
			       .late = TW_LATE_DROP};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	rig_advance(&rig, SECOND);
	expect_eq(queue_executor_run_all(&queue), 0);
	expect_eq(stats_of(rig.service).late_dropped, 1);
	expect_eq(cells[0].installs, 0);
	expect_all_released(1);
	rig_close(&rig);
	queue_executor_close(&queue);
}

Test(context_hooks, release_when_the_executor_refuses_and_all_is_dropped)
{
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	cfg.on_refused = TW_REFUSED_DROP;
	set_up(&rig, &cfg);
	queue.refuse = 1;
	expect_eq(tw_schedule(rig.service, MS, see, NULL, NULL), 0);
	rig_advance(&rig, 5 * MS);
	queue_executor_run_all(&queue); /* it takes the release, as it would a timer's own */
	expect_eq(stats_of(rig.service).dropped, 1);
	expect_eq(cells[0].installs, 0);
	expect_all_released(1);
	rig_close(&rig);
	queue_executor_close(&queue);
}

Test(context_hooks, release_for_each_member_of_a_cancelled_group)
{
	struct rig rig;
	set_up(&rig, NULL);
	tw_group group = group_of(&rig);
	struct tw_task tasks[8];
	for (int i = 0; i < 8; i++)
		tasks[i] = (struct tw_task){
		    .size = sizeof(struct tw_task), .fn = see, .when_ns = MS, .group = group};
	expect_eq(tw_schedule_task(rig.service, &tasks[0], NULL), 0);
	expect_eq(tw_schedule_bulk(rig.service, tasks, 8, NULL), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	rig_advance(&rig, SECOND);
	expect_eq(cells[0].installs, 0);
	expect_all_released(9);
	expect_eq(tw_group_close(rig.service, group), 0);
	expect_eq(tw_schedule_task(rig.service, &tasks[0], NULL), -ESHUTDOWN);
	expect_eq(tw_group_destroy(rig.service, group), 0);
	expect_eq(tw_schedule_task(rig.service, &tasks[0], NULL), -ENOENT);
	rig_advance(&rig, SECOND);
	expect_eq(tw_schedule_task(rig.service, &tasks[0], NULL), -ENOENT);
	expect_all_released(captured);
	rig_close(&rig);
}

Test(context_hooks, release_what_a_refused_batch_had_captured)
{
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 4;
	set_up(&rig, &cfg);
	struct tw_task tasks[600];
	for (int i = 0; i < 600; i++)
		tasks[i] =
		    (struct tw_task){.size = sizeof(struct tw_task), .fn = see, .when_ns = HOUR};
	expect_eq(tw_schedule_bulk(rig.service, tasks, 600, NULL), -EAGAIN);
	expect_gt(captured, 3);
	expect_all_released(captured);
	tasks[3].fn = NULL;
	expect_eq(tw_schedule_bulk(rig.service, tasks, 4, NULL), -EINVAL);
	expect_all_released(captured);
	rig_close(&rig);
}

Test(context_hooks, release_when_there_is_no_room)
{
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 1;
	set_up(&rig, &cfg);
	int accepted = 0, r;
	while ((r = tw_schedule(rig.service, HOUR, see, NULL, NULL)) == 0)
		accepted++;
	expect_eq(r, -EAGAIN);
	expect_eq(captured, accepted + 1);
	expect_eq(cells[captured - 1].releases, 1);
	expect_eq(cells[0].releases, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_all_released(captured);
	rig_close(&rig);
}

/*
 * Refuses each request for memory, one after the other. Whether the call then fails or not, no
 * capture is lost.
 */
Test(context_hooks, release_when_out_of_memory)
{
	expect_eq(tw_context_hooks_set(&hooks), 0);
	for (long nth = 0, refused = 1; refused; nth++) {
		struct rig rig;
		rig_open(&rig, NULL);
		faults_arm(nth, true);
		int r = tw_schedule(rig.service, MS, see, NULL, NULL);
		refused = faults_disarm();
		expect_eq(r == 0 || r == -ENOMEM, true);
		rig_advance(&rig, SECOND);
		expect_all_released(captured);
		rig_close(&rig);
	}
	expect_gt(captured, 0);
}

Test(context_hooks, named_context_stays_the_callers_until_it_is_taken)
{
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 1;
	set_up(&rig, &cfg);
	struct cell mine = {0};
	struct tw_task task = {.size = sizeof task,
			       .fn = see,
			       .when_ns = MS,
			       .flags = TW_TASK_CONTEXT,
			       .context = &mine};
	int accepted = 0;
	while (tw_schedule_task(rig.service, &task, NULL) == 0)
		accepted++;
	expect_eq(tw_schedule_bulk(rig.service, &task, 1, NULL), -EAGAIN);
	expect_eq(captured, 0);
	expect_eq(mine.releases, 0);
	rig_advance(&rig, SECOND);
	expect_eq(mine.installs, accepted);
	expect_eq(mine.releases, accepted);
	rig_close(&rig);
}

/* ------------------------------------------------------------------ pool tasks */

enum { QUEUE = 16 };

static atomic_bool open_the_gate, in_the_gate;

static void wait_at_the_gate(void *arg)
{
	(void)arg;
	in_the_gate = true;
	while (!open_the_gate)
		sched_yield();
}

static void drop_told(void *told_arg, tw_fn *fn, void *arg)
{
	(void)fn;
	(void)arg;
	/* not before the last: the worker would take one of them */
	if (++*(int *)told_arg == QUEUE)
		open_the_gate = true;
}

Test(context_hooks, release_for_tasks_that_ran_and_that_were_refused_or_dropped)
{
	tw_pool *pool;
	int told = 0;
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = 1, .max_workers = 1, .queue = QUEUE};
	expect_eq(tw_context_hooks_set(&hooks), 0);
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	expect_eq(tw_pool_submit(pool, wait_at_the_gate, NULL), 0);
	while (!in_the_gate)
		sched_yield();
	int accepted = 1, r;
	while ((r = tw_pool_submit(pool, see, NULL)) == 0)
		accepted++;
	expect_eq(r, -EAGAIN);
	expect_eq(tw_pool_submit_wait(pool, see, NULL, 1000), -ETIMEDOUT);
	expect_eq(captured, accepted + 2);
	expect_eq(cells[accepted].releases, 1);
	expect_eq(cells[accepted + 1].releases, 1);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DROP, drop_told, &told), 0);
	expect_eq(told, accepted - 1);
	expect_eq(tw_pool_submit(pool, see, NULL), -ESHUTDOWN);
	expect_eq(cells[0].installs, 1);
	expect_eq(cells[1].installs, 0);
	expect_all_released(accepted + 3);
	expect_eq(tw_pool_destroy(pool), 0);
}
