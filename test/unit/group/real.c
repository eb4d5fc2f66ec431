/*
 * Groups on real time and threads: cancelled also while the service sleeps, by several threads, and
 * beside a close; and waited for while members run.
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

/* ------------------------------------------------------------ several threads */

enum { CANCELERS = 3, MEMBERS = 300, ROUNDS = 200 };

struct shared_group {
	tw_service *service;
	tw_group group;
	pthread_barrier_t start;
	int (*end)(struct shared_group *shared);
	int answer;
};

static atomic_int runs_of, releases_of;

static void count_run(void *arg)
{
	(void)arg;
	atomic_fetch_add(&runs_of, 1);
}

static void count_release(void *arg, enum tw_fate fate)
{
	(void)arg;
	(void)fate;
	atomic_fetch_add(&releases_of, 1);
}

static void *cancel_many_times(void *arg)
{
	struct shared_group *shared = arg;
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&shared->start);
		int r = shared->end(shared);
		if (r && r != -ENOENT && r != TW_RUNNING)
			shared->answer = r;
		pthread_barrier_wait(&shared->start);
	}
	return NULL;
}

/* Some members run, some are due, some are far. Each has one end. */
static void end_by_many(int (*end)(struct shared_group *shared))
{
	struct shared_group shared = {.service = open_service(2), .end = end};
	pthread_t threads[CANCELERS];
	pthread_barrier_init(&shared.start, NULL, CANCELERS + 1);
	for (int i = 0; i < CANCELERS; i++)
		expect_eq(pthread_create(&threads[i], NULL, cancel_many_times, &shared), 0);
	for (int round = 0; round < ROUNDS; round++) {
		shared.group = make_group(shared.service);
		atomic_store(&runs_of, 0);
		atomic_store(&releases_of, 0);
		struct tw_task task = {.size = sizeof(task),
				       .fn = count_run,
				       .release = count_release,
				       .group = shared.group};
		for (uint64_t i = 0; i < MEMBERS; i++) {
			task.when_ns = i % 3 ? HOUR : i * 10000;
			cr_assert(tw_schedule_task(shared.service, &task, NULL) == 0);
		}
		pthread_barrier_wait(&shared.start);
		int r = tw_group_cancel_wait(shared.service, shared.group, TW_FOREVER);
		bool settled = atomic_load(&releases_of) == MEMBERS;
		pthread_barrier_wait(&shared.start);
		if (r == TW_CANCELLED)
			expect_eq(settled, true);
		else
			expect_eq(r, -ENOENT);
		(void)tw_group_destroy(shared.service, shared.group);
		while (atomic_load(&releases_of) < MEMBERS) /* of what ran */
			sched_yield();
		expect_le(atomic_load(&runs_of), MEMBERS / 3 + 1);
	}
	for (int i = 0; i < CANCELERS; i++)
		pthread_join(threads[i], NULL);
	expect_eq(shared.answer, 0);
	expect_eq(atomic_load(&releases_of), MEMBERS);
	pthread_barrier_destroy(&shared.start);
	close_service(shared.service);
}

static int cancel_shared(struct shared_group *shared)
{
	return tw_group_cancel(shared->service, shared->group);
}

static int wait_for_shared(struct shared_group *shared)
{
	return tw_group_cancel_wait(shared->service, shared->group, 10000);
}

static int destroy_shared(struct shared_group *shared)
{
	return tw_group_destroy(shared->service, shared->group);
}

Test(group_real, may_be_cancelled_by_several_threads)
{
	end_by_many(cancel_shared);
	end_by_many(wait_for_shared);
}

Test(group_real, may_be_cancelled_while_others_destroy_it)
{
	end_by_many(destroy_shared);
}

/* ------------------------------------------------------------ waiting */

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
