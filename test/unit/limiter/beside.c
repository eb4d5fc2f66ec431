/*
 * Calls beside each other: a cancel beside a stop callback, a pause beside starts, submits beside
 * and after a stop.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_beside, .fini = close_left, .timeout = 60);

/* -------------------------------------------------------------------- cancel */

static atomic_int stops_begun, stops_ended, stops_may_end;

static void long_stop(void *arg, tw_job job, enum tw_job_status why)
{
	atomic_fetch_add(&stops_begun, 1);
	while (!atomic_load(&stops_may_end))
		sched_yield();
	atomic_fetch_add(&stops_ended, 1);
}

struct canceller {
	tw_job job;
	int answer;
	int stops_ended; /* when it had its answer */
};

static void *cancel(void *arg)
{
	struct canceller *self = arg;
	self->answer = tw_job_cancel(home.limiter, self->job);
	self->stops_ended = atomic_load(&stops_ended);
	return NULL;
}

static void submit_with_stop(struct load *load, tw_job_stop_fn *stop)
{
	struct tw_limiter_task task = load_task(load);
	task.stop = stop;
	load_submit_task(load, &task);
	limited_pump(&home);
}

static void await(atomic_int *what, int n)
{
	while (atomic_load(what) < n)
		sched_yield();
}

Test(limiter_beside, second_cancel_does_not_wait_for_a_stop_under_way_and_the_job_does)
{
	struct load load = LOAD(1, .held = true);
	pthread_t thread;
	open_started(1);
	submit_with_stop(&load, long_stop);
	struct canceller first = {.job = load.job};
	expect_eq(pthread_create(&thread, NULL, cancel, &first), 0);
	await(&stops_begun, 1);
	expect_eq(tw_job_cancel(home.limiter, load.job), TW_RUNNING);
	expect_eq(atomic_load(&stops_ended), 0);
	expect_eq(tw_job_is_cancelled(home.limiter, load.job), true);
	expect_eq(tw_job_complete(home.limiter, load.attempt, -EINTR, NULL), 0);
	/* its end waits for the stop */
	expect_eq(tw_job_cancel(home.limiter, load.job), TW_RUNNING);
	expect_eq(load.dones, 0);
	expect_eq(load.releases, 0);
	expect_eq(limited_stats(&home).running, 0); /* its permit does not */
	atomic_store(&stops_may_end, 1);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(first.answer, TW_RUNNING);
	expect_eq(first.stops_ended, 1); /* the first cancel has told it */
	expect_eq(atomic_load(&stops_begun), 1);
	expect_settled(&load, TW_JOB_STATUS_CANCELLED, -EINTR);
	expect_eq(load.releases, 1);
}

static struct load siblings[2];
static int answers[2][2];

/* Each waits until both stops are under way, then cancels both jobs. */
static void stop_siblings(void *arg, tw_job job, enum tw_job_status why)
{
	struct load *load = arg;
	load->stops++;
	atomic_fetch_add(&stops_begun, 1);
	await(&stops_begun, 2);
	for (int i = 0; i < 2; i++)
		answers[load->number][i] = tw_job_cancel(home.limiter, siblings[i].job);
}

Test(limiter_beside, stops_may_cancel_each_others_jobs)
{
	struct canceller cancellers[2];
	pthread_t threads[2];
	open_started(2);
	for (int i = 0; i < 2; i++) {
		siblings[i] = LOAD(i, .held = true);
		submit_with_stop(&siblings[i], stop_siblings);
		cancellers[i].job = siblings[i].job;
	}
	for (int i = 0; i < 2; i++)
		expect_eq(pthread_create(&threads[i], NULL, cancel, &cancellers[i]), 0);
	for (int i = 0; i < 2; i++)
		expect_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 2; i++) {
		expect_eq(cancellers[i].answer, TW_RUNNING);
		expect_eq(siblings[i].stops, 1);
		expect_eq(answers[i][0], TW_RUNNING);
		expect_eq(answers[i][1], TW_RUNNING);
		expect_eq(tw_job_complete(home.limiter, siblings[i].attempt, 0, NULL), 0);
		expect_settled(&siblings[i], TW_JOB_STATUS_SUCCEEDED, 0);
	}
}

/* --------------------------------------------------------------------- pause */

static void pause_inside(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	if (id == 1)
		expect_eq(tw_limiter_set_paused(home.limiter, true), 0);
}

Test(limiter_beside, one_that_has_left_the_line_is_running_and_no_other_starts_after_a_pause)
{
	struct load loads[3];
	struct tw_limiter_config config = limited_config(3);
	limited_hook(&config, (struct limited_hooks){.started = pause_inside});
	open_with(config);
	for (int i = 0; i < 3; i++) {
		loads[i] = LOAD(i);
		load_submit(&loads[i]);
	}
	limited_advance(&home, 5 * MS);
	expect_eq(loads[0].dones, 1);
	expect_eq(home.starts, 1);
	expect_eq(limited_stats(&home).running, 0);
	expect_eq(tw_limiter_set_paused(home.limiter, false), 0);
	limited_pump(&home);
	expect_eq(home.starts, 3);
}

enum { ROOM = 1000 };

static atomic_int entered;
static atomic_bool over;
static tw_limiter *threaded;

static int enter(void *arg, struct tw_job_run *run)
{
	atomic_fetch_add(&entered, 1);
	return 0;
}

static void *submit_all_the_time(void *arg)
{
	while (!atomic_load(&over))
		if (tw_limiter_submit(threaded, enter, NULL, NULL))
			sched_yield();
	return NULL;
}

static struct tw_limiter_stats stats_now(void)
{
	struct tw_limiter_stats stats = {.size = sizeof stats};
	expect_eq(tw_limiter_stats(threaded, &stats), 0);
	return stats;
}

/* Starts so far; all of them are counted, and each is either running or has been entered. */
static void check_a_pause(void)
{
	expect_eq(tw_limiter_set_paused(threaded, true), 0);
	struct tw_limiter_stats paused = stats_now(), later = paused;
	expect_le((uint64_t)atomic_load(&entered), paused.queue.count);
	while (later.running || (later.added < paused.added + 20 && later.pending < ROOM)) {
		sched_yield();
		later = stats_now();
	}
	expect_eq(later.queue.count, paused.queue.count);
	expect_eq((uint64_t)atomic_load(&entered), paused.queue.count);
	expect_eq(tw_limiter_set_paused(threaded, false), 0);
	while (stats_now().queue.count < paused.queue.count + 20)
		sched_yield();
}

Test(limiter_beside, no_job_starts_after_a_pause_has_returned_however_many_threads)
{
	tw_service *service;
	pthread_t submitter;
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 2};
	struct tw_limiter_config config = limited_config(2);
	config.max_pending = ROOM;
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_limiter_create(&threaded, service, &config), 0);
	expect_eq(tw_limiter_set_paused(threaded, false), 0);
	expect_eq(pthread_create(&submitter, NULL, submit_all_the_time, NULL), 0);
	for (int i = 0; i < 200; i++) {
		while (stats_now().pending >
		       /* that the submitter has some left during the pause, as a rule */
		       ROOM - 100)
			sched_yield();
		check_a_pause();
	}
	atomic_store(&over, true);
	pthread_join(submitter, NULL);
	expect_eq(tw_limiter_wait_idle(threaded, 50 * SECOND), 0);
	expect_eq(tw_limiter_destroy(threaded), 0);
	expect_eq(tw_service_destroy(service), 0);
}
