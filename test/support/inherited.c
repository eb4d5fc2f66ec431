#include "test/support/inherited.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "mpsc/base/process.h"
#include "test/support/child.h"
#include "test/support/rig.h"
#include "wheel/core/service.h"

static void run_nothing(void *arg)
{
	_exit(3);
}

static void count(void *arg)
{
	++*(atomic_int *)arg;
}

/* A call for each lock that the parent may hold. test/contract has the answers of all. */
void check_calls(tw_service *service, tw_timer timer)
{
	struct tw_task task = {.size = sizeof(task), .fn = run_nothing};
	struct tw_service_stats stats = {.size = sizeof(stats)};
	struct tw_service_liveness liveness = {.size = sizeof(liveness)};
	tw_timer out = {7};
	tw_group group = {7};
	child_eq(tw_schedule(service, 0, run_nothing, NULL, &out), -EPERM);
	child_eq(out.id, 0);
	child_eq(tw_schedule_task(service, &task, NULL), -EPERM);
	child_eq(tw_reset(service, timer, MS), -EPERM);
	child_eq(tw_set_period(service, timer, MS), -EPERM);
	child_eq(tw_disarm(service, timer), -EPERM);
	child_eq(tw_cancel(service, timer), -EPERM);
	child_eq(tw_cancel_wait(service, timer, TW_FOREVER), -EPERM);
	child_eq(tw_is_pending(service, timer), false);
	child_eq(tw_service_now(service), 0);
	child_eq(tw_service_advance(service, TW_NO_LIMIT), -EPERM);
	child_eq(tw_service_stats(service, &stats), -EPERM);
	child_eq(tw_service_dump(service, stderr), -EPERM);
	child_eq(tw_service_liveness(service, &liveness), -EPERM);
	child_eq(tw_service_validate(service, NULL, 0), -EPERM);
	child_eq(tw_group_create(&group, service), -EPERM);
	child_eq(group.id, 7);
	child_eq(tw_group_cancel_wait(service, group, TW_FOREVER), -EPERM);
	child_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), -EPERM);
}

void check_own_service(void)
{
	tw_service *service;
	atomic_int runs = 0;
	child_eq(tw_service_create(
		     &service, &(struct tw_service_config){.size = sizeof(struct tw_service_config),
							   .workers = 2}),
		 0);
	for (int i = 0; i < 500; i++)
		child_eq(tw_schedule(service, (uint64_t)(i % 3) * MS, count, &runs, NULL), 0);
	child_eq(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	child_eq(runs, 500);
	child_eq(tw_service_destroy(service), 0);
}

void check_own_clock(void)
{
	tw_clock *clock;
	tw_service *service;
	atomic_int runs = 0;
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	child_eq(tw_clock_manual_create(&clock, 0), 0);
	cfg.clock = clock;
	child_eq(tw_service_create(&service, &cfg), 0);
	child_eq(tw_schedule(service, MS, count, &runs, NULL), 0);
	child_eq(tw_clock_manual_advance_by(clock, MS), 0);
	child_eq(runs, 1);
	child_eq(tw_service_destroy(service), 0);
	child_eq(tw_clock_manual_destroy(clock), 0);
}

pid_t fork_amid_locks(tw_service *service)
{
	struct tw__slots *slots = &service->slots;
	/* not so if this thread drives */
	bool driving = pthread_mutex_trylock(&service->driving) == 0;
	pthread_mutex_lock(&tw__registry);
	pthread_mutex_lock(&slots->lock);
	pid_t child = child_fork();
	if (child == 0)
		return 0;
	pthread_mutex_unlock(&slots->lock);
	pthread_mutex_unlock(&tw__registry);
	if (driving)
		pthread_mutex_unlock(&service->driving);
	return child;
}

void expect_amid_locks(tw_service *service, void (*body)(void *arg), void *arg)
{
	pid_t child = fork_amid_locks(service);
	if (child == 0) {
		body(arg);
		_exit(0);
	}
	expect_child_well(child);
}
