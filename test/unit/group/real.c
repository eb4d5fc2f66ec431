/*
 * Groups on real time and threads: waited for while members run. Several threads that cancel one
 * group, also beside a close: test/stress/ledger.c.
 */
#include <errno.h>
#include <sched.h>

#include "test/support/shot.h"

TestSuite(group_real, .timeout = 30);

/* A member whose callback and release tell when they begin, and wait until they may go on. */
struct held {
	tw_timer timer;
	sem_t begun, go_on, released;
	atomic_int runs, releases, returned;
	pthread_t released_on;
	bool hold_run, hold_release;
};

static void held_open(struct held *h)
{
	*h = (struct held){0};
	sem_init(&h->begun, 0, 0);
	sem_init(&h->go_on, 0, 0);
	sem_init(&h->released, 0, 0);
}

static void hold(struct held *h)
{
	sem_post(&h->begun);
	await(&h->go_on, 1);
}

static void held_run(void *arg)
{
	struct held *h = arg;
	if (h->hold_run)
		hold(h);
	h->runs++;
}

static void held_release(void *arg, enum tw_fate fate)
{
	struct held *h = arg;
	(void)fate;
	h->released_on = pthread_self();
	if (h->hold_release)
		hold(h);
	h->releases++;
	sem_post(&h->released);
}

static void schedule_held(tw_service *service, struct held *h, tw_group group, uint64_t delay_ns)
{
	struct tw_task task = {.size = sizeof(task),
			       .fn = held_run,
			       .arg = h,
			       .when_ns = delay_ns,
			       .release = held_release,
			       .group = group};
	expect_eq(tw_schedule_task(service, &task, &h->timer), 0);
}

static tw_group make_group(tw_service *service)
{
	tw_group group = {0};
	expect_eq(tw_group_create(&group, service), 0);
	return group;
}

static void *wait_for_group(void *arg)
{
	struct held *h = arg;
	tw_service *service = (tw_service *)(void *)h->released_on; /* carried in */
	return (void *)(intptr_t)tw_group_cancel_wait(service, (tw_group){h->timer.id}, TW_FOREVER);
}

Test(group_real, waits_for_callbacks_and_releases_that_run)
{
	tw_service *service = open_service(2);
	for (int in_release = 0; in_release < 2; in_release++) {
		tw_group group = make_group(service);
		struct held member, pending;
		held_open(&member);
		held_open(&pending);
		member.hold_run = !in_release;
		member.hold_release = in_release;
		schedule_held(service, &member, group, 0);
		schedule_held(service, &pending, group, HOUR);
		await(&member.begun, 1);

		expect_eq(tw_group_cancel(service, group), 0);
		expect_eq(tw_cancel(service, member.timer), TW_RUNNING);
		expect_eq(tw_reset(service, member.timer, SECOND), in_release ? -ENOENT : -EBUSY);
		expect_eq(tw_cancel_wait(service, member.timer, MS), TW_RUNNING);
		expect_eq(tw_group_cancel_wait(service, group, MS), TW_RUNNING);
		await(&pending.released, 1);

		struct held carrier = {.timer = {group.id},
				       .released_on = (pthread_t)(void *)service};
		pthread_t waiter;
		void *answer;
		expect_eq(pthread_create(&waiter, NULL, wait_for_group, &carrier), 0);
		const struct timespec until_it_waits = {.tv_nsec = 20000000};
		nanosleep(&until_it_waits, NULL);
		expect_eq(pthread_tryjoin_np(waiter, &answer), EBUSY);
		sem_post(&member.go_on);
		expect_eq(pthread_join(waiter, &answer), 0);
		expect_eq((intptr_t)answer, TW_CANCELLED);
		expect_eq(member.releases, 1);
		expect_eq(member.runs, 1);
		expect_eq(tw_group_destroy(service, group), 0);
	}
	close_service(service);
}

/* New members are not waited for, though they run. */
Test(group_real, does_not_wait_for_members_that_came_after_the_cancel)
{
	tw_service *service = open_service(2);
	tw_group group = make_group(service);
	struct held old, new;
	held_open(&old);
	held_open(&new);
	new.hold_run = true;
	schedule_held(service, &old, group, HOUR);
	expect_eq(tw_group_cancel(service, group), 0);
	schedule_held(service, &new, group, 0);
	await(&new.begun, 1);
	await(&old.released, 1);
	struct tw_group_stats stats = {.size = sizeof(stats)};
	do /* a member has left when its release has returned, a moment after it has told us */
		expect_eq(tw_group_stats(service, group, &stats), 0);
	while (stats.members > 1);
	expect_eq(stats.members, 1);
	expect_eq(stats.running, 1);
	sem_post(&new.go_on);
	expect_eq(tw_group_cancel_wait(service, group, TW_FOREVER), TW_CANCELLED);
	close_service(service);
}
