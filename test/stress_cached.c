/*
 * stress_cached SECONDS [SEED]: members of groups, most of them bare, whose extension records the
 * thread that cancels them keeps (group.h).
 *
 * Some threads schedule members and cancel most of them, and schedule timers that belong to no
 * group. Others cancel the groups, wait for them,
 * destroy them and make new ones in their place. Nearly all deadlines are far away: what a group's
 * cancel leaves behind stays. The rules:
 *   - who is in no group, is cancelled by its owner and by nobody else;
 *   - after a cancel_wait a member of before is gone;
 *   - when all groups are destroyed, all their members come to their end, without a further call:
 *     those with a release are seen to.
 *
 * A seed repeats what is tried, not how the threads interleave.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "test/support/random.h"
#include "test/support/stress.h"
#include "tickwheel.h"

enum { GROUPS = 2, OWNERS = 2, BREAKERS = 2, OWN = 64 };
#define FAR_NS (3600 * TW_SECOND)
#define ROUND_NS 100000000
#define WATCHDOG_NS (60 * TW_SECOND)

static tw_service *service;
static _Atomic uint64_t groups[GROUPS];
static atomic_bool stop;
static atomic_ullong members, outsiders, group_ends;
/* members with a release, and how many of them have ended */
static atomic_ullong to_release, released;

static void run(void *arg)
{
}

static void count_release(void *arg, enum tw_fate fate)
{
	atomic_fetch_add(&released, 1);
}

static tw_group any_group(uint64_t *seed)
{
	return (tw_group){atomic_load(&groups[random_below(seed, GROUPS)])};
}

static struct tw_task member_of(tw_group group, uint64_t *seed)
{
	uint64_t when_ns = random_percent(seed, 2) ? TW_MILLISECOND : FAR_NS;
	return (struct tw_task){.size = sizeof(struct tw_task),
				.fn = run,
				.when_ns = when_ns,
				.release = random_percent(seed, 10) ? count_release : NULL,
				.group = group};
}

static void count_member(const struct tw_task *task)
{
	atomic_fetch_add_explicit(&members, 1, memory_order_relaxed);
	if (task->release)
		atomic_fetch_add(&to_release, 1);
}

/* ------------------------------------------------------------ who keeps */

static void come_and_go(uint64_t *seed)
{
	tw_timer timer;
	struct tw_task task = member_of(any_group(seed), seed);
	int answer = tw_schedule_task(service, &task, &timer);
	if (answer == -ENOENT || answer == -ESHUTDOWN || answer == -EAGAIN)
		return; /* -EAGAIN: nobody has drained the lane, for want of a processor */
	wanted("a member's schedule", answer, 0);
	count_member(&task);
	if (random_percent(seed, 90) && tw_cancel(service, timer) < 0)
		violation("a member's cancel", timer.id);
}

static void stay_outside(tw_timer *own, uint64_t *seed)
{
	tw_timer *timer = &own[random_below(seed, OWN)];
	if (timer->id)
		wanted("the cancel of a timer in no group", tw_cancel(service, *timer),
		       TW_CANCELLED);
	int answer = tw_schedule(service, FAR_NS, run, NULL, timer);
	if (answer == -EAGAIN)
		return; /* it has no timer now */
	wanted("a schedule", answer, 0);
	atomic_fetch_add_explicit(&outsiders, 1, memory_order_relaxed);
}

static void *keep(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	tw_timer own[OWN] = {{0}};
	while (!atomic_load(&stop)) {
		if (random_percent(&seed, 20))
			stay_outside(own, &seed);
		else
			come_and_go(&seed);
	}
	for (int i = 0; i < OWN; i++)
		if (own[i].id)
			wanted("the cancel of a timer in no group", tw_cancel(service, own[i]),
			       TW_CANCELLED);
	return NULL;
}

/* ------------------------------------------------------------ who ends groups */

static void cancel_and_wait(tw_group group, uint64_t *seed)
{
	tw_timer timer = {0};
	struct tw_task task = member_of(group, seed);
	bool is_member = tw_schedule_task(service, &task, &timer) == 0;
	if (is_member)
		count_member(&task);
	int answer = tw_group_cancel_wait(service, group, TW_FOREVER);
	if (answer == -ENOENT)
		return;
	wanted("a group's cancel_wait", answer, TW_CANCELLED);
	if (is_member)
		wanted("the cancel of a member that was waited for", tw_cancel(service, timer),
		       TW_GONE);
}

static void replace(int i)
{
	tw_group fresh, old;
	wanted("a group's birth", tw_group_create(&fresh, service), 0);
	old.id = atomic_exchange(&groups[i], fresh.id);
	wanted("a group's end", tw_group_destroy(service, old), 0);
	atomic_fetch_add_explicit(&group_ends, 1, memory_order_relaxed);
}

static void *break_up(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	while (!atomic_load(&stop)) {
		const struct timespec span = {.tv_nsec = (long)random_below(&seed, 200000)};
		nanosleep(&span, NULL);
		switch (random_below(&seed, 4)) {
		case 0:
			/* or it has been replaced */
			(void)tw_group_cancel(service, any_group(&seed));
			break;
		case 1:
			cancel_and_wait(any_group(&seed), &seed);
			break;
		default:
			replace((int)random_below(&seed, GROUPS));
		}
	}
	return NULL;
}

/* ------------------------------------------------------------ rounds */

/*
 * Members of cancelled groups count as cancelled immediately, and their releases report their end.
 */
static uint64_t left(void)
{
	struct tw_service_stats s = {.size = sizeof s};
	wanted("statistics", tw_service_stats(service, &s), 0);
	return s.scheduled - s.fired - s.cancelled - s.dropped + atomic_load(&to_release) -
	       atomic_load(&released);
}

static void expect_none_left(void)
{
	uint64_t until_ns = tw_clock_now(tw_clock_monotonic()) + WATCHDOG_NS;
	while (left()) {
		const struct timespec span = {.tv_nsec = 1000000};
		nanosleep(&span, NULL);
		if (tw_clock_now(tw_clock_monotonic()) > until_ns)
			violation("members of destroyed groups that do not end", (long long)left());
	}
}

static void one_round(uint64_t *seed)
{
	struct tw_service_config cfg = {.size = sizeof cfg,
					.workers = 1 + (unsigned)random_below(seed, 2)};
	pthread_t threads[OWNERS + BREAKERS];
	uint64_t seeds[OWNERS + BREAKERS];
	char why[256] = "";
	wanted("a service", tw_service_create(&service, &cfg), 0);
	atomic_store(&stop, false);
	for (int i = 0; i < GROUPS; i++) {
		tw_group group;
		wanted("a group's birth", tw_group_create(&group, service), 0);
		atomic_store(&groups[i], group.id);
	}
	for (int i = 0; i < OWNERS + BREAKERS; i++) {
		seeds[i] = random_next(seed);
		wanted("a thread",
		       pthread_create(&threads[i], NULL, i < OWNERS ? keep : break_up, &seeds[i]),
		       0);
	}
	nanosleep(&(struct timespec){.tv_nsec = ROUND_NS}, NULL);
	atomic_store(&stop, true);
	for (int i = 0; i < OWNERS + BREAKERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < GROUPS; i++)
		wanted("a group's end",
		       tw_group_destroy(service, (tw_group){atomic_load(&groups[i])}), 0);
	expect_none_left();
	if (tw_service_validate(service, why, sizeof why) != 0)
		violation(why, 0);
	wanted("the service's end", tw_service_destroy(service), 0);
}

int main(int argc, char **argv)
{
	uint64_t seed = stress_begin(argc, argv);
	for (; stress_goes_on(); atomic_fetch_add(&stress_rounds, 1))
		one_round(&seed);
	printf("ok: %lu rounds, %llu members, %llu timers in no group, %llu groups replaced\n",
	       atomic_load(&stress_rounds), atomic_load(&members), atomic_load(&outsiders),
	       atomic_load(&group_ends));
	return 0;
}
