/*
 * The descriptor of a service in the user's own loop, on the real clock. Calls of other threads
 * make it readable when the loop has to act on them.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "test/support/by_hand.h"
#include "test/support/faults.h"
#include "test/support/shot.h"

/* One errand of another thread, after which the loop is wanted. */
struct errand {
	tw_service *service;
	tw_timer far;
	int answer;
};

static void in_a_thread(void *(*run)(void *), struct errand *mine)
{
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, run, mine), 0);
	pthread_join(thread, NULL);
	expect_eq(mine->answer, 0);
}

static void *schedule_earlier(void *arg)
{
	struct errand *mine = arg;
	mine->answer = tw_schedule(mine->service, 0, nothing, NULL, NULL);
	return NULL;
}

static void *reset_to_earlier(void *arg)
{
	struct errand *mine = arg;
	mine->answer = tw_reset(mine->service, mine->far, MS);
	return NULL;
}

static tw_group group;
static atomic_int completed;

static void complete(void *arg)
{
	completed++;
}

static void *end_group(void *arg)
{
	struct errand *mine = arg;
	mine->answer = tw_group_close_then(mine->service, group, complete, NULL);
	return NULL;
}

static void *schedule_many(void *arg)
{
	struct errand *mine = arg;
	/* later than the plan, but more than a lane is packed at */
	for (int i = 0; i < 4096 && !mine->answer; i++)
		mine->answer = tw_schedule(mine->service, 2 * HOUR, nothing, NULL, NULL);
	return NULL;
}

enum { MANY = 3 * 4096 };
static tw_timer many[MANY];

static void *keep_many(void *arg)
{
	struct errand *mine = arg;
	for (int i = 0; i < MANY && !mine->answer; i++)
		mine->answer = tw_schedule(mine->service, 2 * HOUR, nothing, NULL, &many[i]);
	return NULL;
}

static void *cancel_many(void *arg)
{
	struct errand *mine = arg;
	for (int i = 0; i < MANY && !mine->answer; i++)
		mine->answer = tw_cancel(mine->service, many[i]);
	return NULL;
}

static void *cancel_each(void *arg)
{
	struct errand *mine = arg;
	for (int i = 0; i < MANY && !mine->answer; i++) {
		mine->answer = tw_schedule(mine->service, 2 * HOUR, nothing, NULL, &many[0]);
		if (!mine->answer)
			mine->answer = tw_cancel(mine->service, many[0]);
	}
	return NULL;
}

/* A service at rest with one far timer, whose descriptor is not readable. */
static struct errand errand;
static int fd;

static void open_at_rest(void)
{
	errand.service = open_by_hand(NULL);
	expect_eq(tw_schedule(errand.service, HOUR, nothing, NULL, &errand.far), 0);
	fd = tw_service_fd(errand.service);
	expect_eq(readable(fd, 0), false);
}

static void close_at_rest(void)
{
	expect_in_fini();
	expect_eq(tw_service_destroy(errand.service), 0);
}

TestSuite(driver_real_loop_threads, .init = open_at_rest, .fini = close_at_rest, .timeout = 60);

Test(driver_real_loop_threads, wakes_for_what_another_thread_schedules)
{
	for (int i = 0; i < 20; i++) {
		in_a_thread(schedule_earlier, &errand);
		turn_until(errand.service, fd, 1);
		expect_eq(readable(fd, 0), false);
	}
}

static void *schedule_past(void *arg)
{
	struct errand *mine = arg;
	mine->answer = tw_schedule_at(mine->service, 0, nothing, NULL, NULL);
	return NULL;
}

static void schedule_from_another_thread(void *arg)
{
	faults_at_reads(NULL, NULL); /* once */
	in_a_thread(schedule_past, arg);
}

/*
 * The bell rings once to call the loop, and again after the first ring was noticed but before the
 * descriptor was cleared.
 */
Test(driver_real_loop_threads, wakes_up_after_a_ring_that_came_while_the_last_one_was_cleared)
{
	in_a_thread(schedule_past, &errand);
	faults_at_reads(schedule_from_another_thread, &errand);
	expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 2);
	in_a_thread(schedule_past, &errand);
	turn_until(errand.service, fd, 1); /* which a loop that sleeps through it never does */
	expect_eq(readable(fd, 0), false);
}

Test(driver_real_loop_threads, wakes_for_what_another_thread_moves_to_earlier)
{
	in_a_thread(reset_to_earlier, &errand);
	turn_until(errand.service, fd, 1);
	expect_eq(readable(fd, 0), false);
}

/* The members end inside the call. The loop learns of the completion from its descriptor alone. */
Test(driver_real_loop_threads, wakes_for_a_completion)
{
	static const int members[] = {0, 1, 3000};
	for (int i = 0; i < 3; i++) {
		expect_eq(tw_group_create(&group, errand.service), 0);
		struct tw_task task = {
		    .size = sizeof task, .fn = nothing, .when_ns = HOUR, .group = group};
		for (int n = 0; n < members[i]; n++)
			expect_eq(tw_schedule_task(errand.service, &task, NULL), 0);
		while (readable(fd, 0))
			expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 0);
		in_a_thread(end_group, &errand);
		while (completed == i) {
			expect_eq(readable(fd, FOR_EVER), true);
			expect_ge(tw_service_advance(errand.service, TW_NO_LIMIT), 0);
		}
		while (readable(fd, 20))
			expect_ge(tw_service_advance(errand.service, TW_NO_LIMIT), 0);
		expect_eq(readable(fd, 100), false); /* the loop may sleep */
	}
}

Test(driver_real_loop_threads, wakes_for_much_that_lives)
{
	in_a_thread(schedule_many, &errand);
	expect_eq(readable(fd, 0), true);
	expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 0);
	expect_eq(readable(fd, 0), false);
}

/* G11. The same lane all the time, since its thread has ended. */
Test(driver_real_loop_threads, wakes_for_cancels_that_leave_much_behind)
{
	in_a_thread(keep_many, &errand);
	while (readable(fd, 0))
		expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 0);
	in_a_thread(cancel_many, &errand);
	expect_eq(readable(fd, 0), true);
	struct tw_service_stats stats = {.size = sizeof stats};
	while (readable(fd, 0))
		expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 0);
	expect_eq(tw_service_stats(errand.service, &stats), 0);
	expect_le(stats.dead_entries, 2 * 4096);
}

Test(driver_real_loop_threads, sleeps_while_cancels_leave_little_behind)
{
	in_a_thread(cancel_each, &errand);
	expect_eq(readable(fd, 0), false);
}
