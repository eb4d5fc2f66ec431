/*
 * The context pointer: what is scheduled runs under what its thread had then, and leaves no trace
 * on the thread that runs it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "test/support/members.h"
#include "wheel/core/service.h"
#include "test/support/rig_suite.h"

TestSuite(context, .init = open_rig, .fini = close_rig, .timeout = 30);

static int first, second, drivers;

/* Writes down the context it runs under; does something there. */
struct seer {
	tw_service *service;
	void *seen[8], *seen_in_release;
	int runs, releases;
	void (*act)(struct seer *seer);
	struct seer *child;
	pthread_t thread;
};

static void see(void *arg)
{
	struct seer *seer = arg;
	seer->thread = pthread_self();
	if (seer->runs < 8)
		seer->seen[seer->runs] = tw_context_get();
	seer->runs++;
	if (seer->act)
		seer->act(seer);
}

static void see_release(void *arg, enum tw_fate fate)
{
	struct seer *seer = arg;
	seer->releases++;
	seer->seen_in_release = tw_context_get();
}

static struct tw_task task_of(struct seer *seer)
{
	return (struct tw_task){
	    .size = sizeof(struct tw_task), .fn = see, .arg = seer, .release = see_release};
}

static void expect_saw(const struct seer *seer, int run, const void *context)
{
	expect_gt(seer->runs, run);
	cr_assert_eq(seer->seen[run], context, "run %d saw another context", run);
}

Test(context, is_a_threads_own)
{
	pthread_t other;
	void *there = &first;
	cr_assert_null(tw_context_get());
	tw_context_set(&first);
	cr_assert_eq(tw_context_get(), &first);
	pthread_create(&other, NULL, (void *(*)(void *))(void (*)(void))tw_context_get, NULL);
	pthread_join(other, &there);
	cr_assert_null(there);
	tw_context_set(NULL);
	cr_assert_null(tw_context_get());
}

Test(context, goes_with_each_way_to_schedule)
{
	struct seer seers[5] = {{0}};
	tw_context_set(&first);
	expect_eq(tw_schedule(rig.service, MS, see, &seers[0], NULL), 0);
	expect_eq(tw_schedule_at(rig.service, rig_now(&rig) + MS, see, &seers[1], NULL), 0);
	struct tw_task tasks[2] = {task_of(&seers[2]),
				   {.size = sizeof(struct tw_task), .fn = see, .arg = &seers[3]}};
	for (int i = 0; i < 2; i++)
		expect_eq(tw_schedule_task(rig.service, &tasks[i], NULL), 0);
	struct tw_period twice = rate_of(MS, MS, 2);
	expect_eq(tw_schedule_every(rig.service, &twice, see, &seers[4], NULL), 0);
	tw_context_set(NULL);
	rig_advance(&rig, SECOND);
	for (int i = 0; i < 5; i++)
		expect_saw(&seers[i], 0, &first);
	expect_saw(&seers[4], 1, &first);
	cr_assert_eq(seers[2].seen_in_release, &first);
	cr_assert_null(tw_context_get());
}

Test(context, is_that_of_scheduling_not_of_firing)
{
	struct seer one = {0}, two = {0};
	tw_context_set(&first);
	expect_eq(tw_schedule(rig.service, MS, see, &one, NULL), 0);
	tw_context_set(&second);
	expect_eq(tw_schedule(rig.service, MS, see, &two, NULL), 0);
	tw_context_set(&drivers);
	rig_advance(&rig, SECOND);
	expect_saw(&one, 0, &first);
	expect_saw(&two, 0, &second);
	cr_assert_eq(tw_context_get(), &drivers, "the driver's own context is not back");
}

Test(context, of_the_driver_is_not_lent_to_what_has_none)
{
	struct seer plain = {0}, released = {0};
	expect_eq(tw_schedule(rig.service, MS, see, &plain, NULL), 0);
	struct tw_task task = task_of(&released);
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	tw_context_set(&drivers);
	rig_advance(&rig, SECOND);
	expect_saw(&plain, 0, NULL);
	expect_saw(&released, 0, NULL);
	cr_assert_null(released.seen_in_release);
	cr_assert_eq(tw_context_get(), &drivers);
}

static void set_another(struct seer *seer)
{
	tw_context_set(&second);
}

Test(context, set_by_a_callback_ends_with_it)
{
	struct seer setter = {.act = set_another}, next = {0};
	tw_context_set(&first);
	expect_eq(tw_schedule(rig.service, MS, see, &setter, NULL), 0);
	tw_context_set(NULL);
	expect_eq(tw_schedule(rig.service, 2 * MS, see, &next, NULL), 0);
	rig_advance(&rig, SECOND);
	expect_saw(&setter, 0, &first);
	expect_saw(&next, 0, NULL);
	cr_assert_null(tw_context_get());
}

Test(context, set_for_the_first_time_by_a_callback_ends_with_it)
{
	struct seer setter = {.act = set_another};
	expect_eq(tw_schedule(rig.service, MS, see, &setter, NULL), 0);
	rig_advance(&rig, SECOND);
	expect_eq(setter.runs, 1);
	cr_assert_null(tw_context_get());
}

static void schedule_child(struct seer *seer)
{
	tw_schedule(seer->service, MS, see, seer->child, NULL);
}

static void set_another_and_schedule_child(struct seer *seer)
{
	tw_context_set(&second);
	schedule_child(seer);
}

Test(context, is_inherited_by_what_a_callback_schedules)
{
	struct seer child = {0}, of_other = {0};
	struct seer parent = {.service = rig.service, .act = schedule_child, .child = &child};
	struct seer other = {
	    .service = rig.service, .act = set_another_and_schedule_child, .child = &of_other};
	tw_context_set(&first);
	expect_eq(tw_schedule(rig.service, MS, see, &parent, NULL), 0);
	expect_eq(tw_schedule(rig.service, MS, see, &other, NULL), 0);
	tw_context_set(&drivers);
	rig_advance(&rig, SECOND);
	expect_saw(&child, 0, &first);
	expect_saw(&of_other, 0, &second);
	cr_assert_eq(tw_context_get(), &drivers);
}

Test(context, of_a_series_is_that_of_its_scheduling_in_each_run)
{
	struct seer series = {.act = set_another};
	struct tw_task task = task_of(&series);
	struct tw_period period = rate_of(MS, MS, 4);
	task.period = &period;
	tw_context_set(&first);
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	tw_context_set(&drivers);
	rig_advance(&rig, SECOND);
	expect_eq(series.runs, 4);
	for (int i = 0; i < 4; i++)
		expect_saw(&series, i, &first);
	expect_eq(series.releases, 1);
	cr_assert_eq(series.seen_in_release, &first);
}

static void rearm_once(struct seer *seer)
{
	tw_context_set(&second);
	if (seer->runs == 1)
		tw_reset(seer->service, tw_self(), MS);
}

Test(context, is_not_changed_by_a_reset_from_outside_or_inside)
{
	struct seer seer = {.service = rig.service, .act = rearm_once};
	tw_timer timer;
	tw_context_set(&first);
	expect_eq(tw_schedule(rig.service, MS, see, &seer, &timer), 0);
	tw_context_set(&second);
	expect_eq(tw_reset(rig.service, timer, 5 * MS), 0);
	rig_advance(&rig, SECOND);
	expect_eq(seer.runs, 2);
	expect_saw(&seer, 0, &first);
	expect_saw(&seer, 1, &first);
}

Test(context, surrounds_a_release_on_the_thread_that_cancels)
{
	struct seer seer = {0};
	struct tw_task task = task_of(&seer);
	tw_timer timer;
	tw_context_set(&first);
	expect_eq(tw_schedule_task(rig.service, &task, &timer), 0);
	tw_context_set(&drivers);
	expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	expect_eq(seer.releases, 1);
	cr_assert_eq(seer.seen_in_release, &first);
	cr_assert_eq(tw_context_get(), &drivers);
}

Test(context, named_by_a_task_takes_the_place_of_the_threads)
{
	struct seer named = {0}, none = {0}, early = {0};
	struct tw_task task = task_of(&early);
	task.flags = TW_TASK_CONTEXT; /* before anybody has set one */
	task.context = &second;
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	tw_context_set(&first);
	task.arg = &named;
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	task.arg = &none;
	task.context = NULL;
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	rig_advance(&rig, SECOND);
	expect_saw(&early, 0, &second);
	expect_saw(&named, 0, &second);
	expect_saw(&none, 0, NULL);
}

Test(context, task_of_an_older_program_carries_it_too)
{
	struct seer seer = {0};
	struct tw_task task = task_of(&seer);
	task.size = offsetof(struct tw_task, context);
	task.context = &second; /* beyond what it knows */
	tw_context_set(&first);
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	tw_context_set(NULL);
	rig_advance(&rig, SECOND);
	expect_saw(&seer, 0, &first);
}

Test(context, costs_no_side_record_where_there_is_none)
{
	struct seer seer = {0};
	tw_context_set(&first);
	tw_context_set(NULL);
	expect_eq(tw_schedule(rig.service, MS, see, &seer, NULL), 0);
	expect_eq(rig.service->slots.ext_depot.fresh, TW__EXT_FIRST);
	tw_context_set(&first);
	expect_eq(tw_schedule(rig.service, MS, see, &seer, NULL), 0);
	expect_gt(rig.service->slots.ext_depot.fresh, 1);
	rig_advance(&rig, SECOND);
}

static void *run_all(void *arg)
{
	tw_context_set(&drivers);
	queue_executor_run_all(arg);
	return tw_context_get();
}

Test(context, is_restored_on_a_foreign_executors_thread)
{
	reopen_on_queue();
	struct seer one = {.act = set_another}, two = {0};
	tw_context_set(&first);
	expect_eq(tw_schedule(rig.service, MS, see, &one, NULL), 0);
	tw_context_set(NULL);
	expect_eq(tw_schedule(rig.service, MS, see, &two, NULL), 0);
	rig_advance(&rig, 10 * MS);
	pthread_t thread;
	void *afterwards;
	pthread_create(&thread, NULL, run_all, &queue);
	pthread_join(thread, &afterwards);
	expect_saw(&one, 0, &first);
	expect_saw(&two, 0, NULL);
	cr_assert_eq(afterwards, &drivers);
}

/* ------------------------------------------------------------------ pool tasks */

Test(context, goes_with_a_pools_task_and_not_with_the_next)
{
	tw_pool *pool;
	struct tw_pool_config cfg = {.size = sizeof cfg, .workers = 1, .max_workers = 1};
	struct seer one = {.act = set_another}, two = {0}, three = {0};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	tw_context_set(&first);
	expect_eq(tw_pool_submit(pool, see, &one), 0);
	tw_context_set(NULL);
	expect_eq(tw_pool_submit(pool, see, &two), 0);
	tw_context_set(&second);
	expect_eq(tw_pool_submit_wait(pool, see, &three, TW_FOREVER), 0);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_saw(&one, 0, &first);
	expect_saw(&two, 0, NULL);
	expect_saw(&three, 0, &second);
	cr_assert(pthread_equal(one.thread, three.thread));
}

/* ------------------------------------------------------------- scheduler's tasks */

static void *context_of_turn, *context_of_done;

static int turn_looks(struct tw_turn *turn, void *arg)
{
	(void)turn, (void)arg;
	context_of_turn = tw_context_get();
	return TW_TURN_DONE;
}

static void done_looks(void *arg, enum tw_fate fate, int result)
{
	(void)arg, (void)fate, (void)result;
	context_of_done = tw_context_get();
}

Test(context, goes_with_a_schedulers_task_and_its_done_function)
{
	tw_scheduler *scheduler;
	struct tw_scheduler_config config = {.size = sizeof config, .host = TW_HOST_MANUAL};
	struct tw_scheduler_task task = {.size = sizeof task, .fn = turn_looks, .done = done_looks};
	expect_eq(tw_scheduler_create(&scheduler, rig.service, &config), 0);
	tw_context_set(&first);
	expect_eq(tw_scheduler_submit_task(scheduler, &task, NULL), 0);
	tw_context_set(&second);
	expect_eq(tw_scheduler_run(scheduler, TW_NO_LIMIT), TW_SCHEDULER_RUN_IDLE);
	cr_assert(context_of_turn == &first && context_of_done == &first);
	cr_assert(tw_context_get() == &second);
	tw_context_set(NULL);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
}
