/* The manual executor: order, bounds, who runs what, teardown, forks. */
#include "tickwheel/manual.h"

#include <errno.h>
#include <string.h>

#include "test/support/faults.h"
#include "manuals.h"
#include "wheel/run/work.h"

TestSuite(manual_executor, .init = open_usual, .fini = end_all, .timeout = 30);

Test(manual_executor, runs_what_waited_up_to_the_budget)
{
	hand_over(300);
	expect_eq(rig.ran, 0);
	expect_eq(tw_manual_pump(manual, 0), 0);
	expect_eq(tw_manual_pump(manual, 100), 100);
	expect_eq(rig.ran, 100);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 200);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 0);
	expect_ids_ascend(&rig);
}

Test(manual_executor, tells_once_when_something_comes_into_the_empty_queue)
{
	hand_over(200); /* several hand-overs */
	expect_eq(told, 1);
	expect_eq(tw_manual_pump(manual, 199), 199);
	hand_over(1);
	expect_eq(told, 1);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 2);
	hand_over(1);
	expect_eq(told, 2);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 1);
}

Test(manual_executor, full_is_a_refusal_that_is_offered_again)
{
	close_all();
	open_with(1);
	hand_over(150); /* three hand-overs */
	expect_gt(stats_of(rig.service).refused, 0);
	int first = tw_manual_pump(manual, TW_NO_LIMIT);
	expect_gt(first, 0);
	expect_lt(first, 150);
	for (int i = 0; i < 10; i++) {
		tw_manual_pump(manual, TW_NO_LIMIT);
		rig_advance(&rig, MS);
	}
	expect_eq(rig.ran, 150);
	expect_ids_ascend(&rig);
}

static void pump_inside(struct probe *probe)
{
	probe->answer = (int)tw_manual_pump(manual, 1);
}

Test(manual_executor, callback_may_pump)
{
	struct probe outer = PROBE(&rig, 1), inner = PROBE(&rig, 2);
	outer.act = pump_inside;
	probe_schedule(&outer, MS);
	probe_schedule(&inner, MS);
	rig_advance(&rig, MS);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 1);
	expect_eq(outer.answer, 1);
	expect_eq(rig.ran, 2);
}

/* ----------------------------------------------------------------------- work */

static struct tw__work work;
static int work_runs;

static void run_work(struct tw__work *w)
{
	if (++work_runs < 3)
		tw__work_submit(w);
}

Test(manual_executor, pump_ends_though_work_submits_itself_again)
{
	expect_eq(tw__service_hold(rig.service), 0);
	tw__work_init(&work, rig.service, tw_manual_executor(manual), run_work);
	tw__work_submit(&work);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 1);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 1);
	expect_eq(work_runs, 2);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 1);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 0);
	expect_eq(told, 3);
	tw__service_let_go(rig.service);
}

static tw_timer self_of_work = {1};

static void note_self(struct tw__work *w)
{
	struct tw_run_info run = TW_INIT(tw_run_info);
	expect_eq(tw_current(&run), 0);
	self_of_work = tw_self();
}

static void pump_and_compare_self(struct probe *probe)
{
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 1);
	probe->answer = tw_self().id == probe->timer.id;
}

Test(manual_executor, work_pumped_inside_a_callback_is_not_that_timer)
{
	struct probe outer = PROBE(&rig, 1);
	outer.act = pump_and_compare_self;
	probe_schedule(&outer, MS);
	rig_advance(&rig, MS);
	expect_eq(tw__service_hold(rig.service), 0);
	tw__work_init(&work, rig.service, tw_manual_executor(manual), note_self);
	tw__work_submit(&work);
	expect_eq(tw_manual_pump(manual, 1), 1);
	expect_eq(self_of_work.id, 0);
	expect_eq(outer.answer, 1);
	tw__service_let_go(rig.service);
}

/* -------------------------------------------------------------------- threads */

enum { THREADS = 4, TIMERS = 20000 };
static atomic_int ran_once[TIMERS];
static atomic_int left;

static void mark(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	atomic_fetch_sub(&left, 1);
}

static void *pump_until_done(void *arg)
{
	while (atomic_load(&left) > 0)
		tw_manual_pump(manual, 7);
	return NULL;
}

Test(manual_executor, several_threads_may_pump_each_run_comes_once)
{
	pthread_t threads[THREADS];
	atomic_store(&left, TIMERS);
	for (int i = 0; i < TIMERS; i++)
		expect_eq(tw_schedule(rig.service, MS, mark, &ran_once[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		expect_eq(pthread_create(&threads[i], NULL, pump_until_done, NULL), 0);
	rig_advance(&rig, MS);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < TIMERS; i++)
		expect_eq(atomic_load(&ran_once[i]), 1);
}

/* ------------------------------------------------------------------ teardown */

Test(manual_executor, one_thread_closes_and_pumps_as_the_header_says)
{
	struct probe later = PROBE(&rig, 2);
	probe_schedule_released(&later, HOUR);
	hand_over(1);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_released(&probes[0], TW_FATE_DROPPED);
	expect_released(&later, TW_FATE_DROPPED);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 1);
	expect_eq(rig.ran, 0);
}

Test(manual_executor, no_memory_leaves_nothing_behind)
{
	tw_manual *none = NULL;
	long before = faults_outstanding();
	for (long nth = 0;; nth++) {
		faults_arm(nth, false);
		int r = tw_manual_create(&none, NULL);
		if (!faults_disarm()) {
			expect_eq(r, 0);
			break;
		}
		expect_eq(r, -ENOMEM);
		expect_eq(faults_outstanding(), before);
	}
	expect_eq(tw_manual_destroy(none), 0);
	expect_eq(faults_outstanding(), before);
}
