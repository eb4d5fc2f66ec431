/*
 * The context pointer: what is scheduled runs under what its thread had then, and leaves no trace
 * on the thread that runs it.
 */
#include <pthread.h>

#include "wheel/core/service.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(context, .init = open_rig, .fini = close_rig, .timeout = 30);

static int first, second;

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

static void set_another(struct seer *seer)
{
	tw_context_set(&second);
}

/* 3 is the driver's own. */
static const struct script scripts[] = {
    {"is that of scheduling, not of firing",
     {{"set_context 1; timer 0 in=1 {context} plain; set_context 2", ""},
      {"timer 1 in=1 {context} plain; set_context 3; drive 9; context",
       "@1 run 0, context 1, run 1, context 2, @9 context 3"}}},
    {"of the driver is not lent to what has none",
     {{"timer 0 in=1 {context} plain; timer 1 in=1 {context} [context]; set_context 3; drive 1",
       "@1 run 0, context 0, run 1, context 0, 1 fired, context 0"},
      {"context", "context 3"}}},
    {"set by a callback ends with it",
     {{"timer 0 in=1 {set_context 2} plain; drive 1; context", "@1 run 0, context 0"},
      {"set_context 1; timer 1 in=1 {context; set_context 2} plain; set_context 0", ""},
      {"timer 2 in=2 {context} plain; drive 2; context",
       "@2 run 1, context 1, @3 run 2, context 0, context 0"}}},
    {"is inherited by what a callback schedules",
     {{"set_context 1; timer 0 in=1 {timer 2 in=1 {context} plain} plain", ""},
      {"timer 1 in=1 {set_context 2; timer 3 in=1 {context} plain} plain; set_context 3", ""},
      {"drive 2; context", "@1 run 0, run 1, @2 run 2, context 1, run 3, context 2, context 3"}}},
    {"of a series is that of its scheduling in each run",
     {{"set_context 1; timer 0 first=1 every=1 count=3 times=3 {context; set_context 2} [context]",
       ""},
      {"set_context 3; drive 3", "@1 run 0, context 1, @2 run 0, context 1, @3 run 0, context 1, "
				 "0 fired, context 1"}}},
    {"is not changed by a reset from outside or inside",
     {{"set_context 1; timer 0 in=1 times=2 {context; set_context 2; reset 0 by=1} plain", ""},
      {"set_context 2; reset 0 by=5; drive 6; cancel 0",
       "@5 run 0, context 1, @6 run 0, context 1, CANCELLED"}}},
    {"surrounds a release on the thread that cancels",
     {{"set_context 1; timer 0 in=9 [context]; set_context 3; cancel 0; context",
       "0 cancelled, context 1, CANCELLED, context 3"}}},
    /* before anybody has set one, too */
    {"named by a task takes the place of the thread's",
     {{"timer 0 in=1 named=2 {context}; set_context 1; timer 1 in=1 named=2 {context}", ""},
      {"timer 2 in=1 named=0 {context}; drive 1",
       "@1 run 0, context 2, 0 fired, run 1, context 2, 1 fired, run 2, context 0, 2 fired"}}},
};

Test(context, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
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
	expect_eq(rig.service->slots.written[TW__EXTS], false);
	tw_context_set(&first);
	expect_eq(tw_schedule(rig.service, MS, see, &seer, NULL), 0);
	expect_eq(rig.service->slots.written[TW__EXTS], true);
	rig_advance(&rig, SECOND);
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
	context_of_turn = tw_context_get();
	return TW_TURN_DONE;
}

static void done_looks(void *arg, enum tw_fate fate, int result)
{
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
