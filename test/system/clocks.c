/*
 * clocks: a service driven by hand, whose clock leaps ahead by a day and by a century, as on a
 * machine that was stopped: its process enters time namespaces (man time_namespaces). It has one
 * thread, because the kernel lets no others move. A timer within the leap is due immediately, and
 * no timer is due behind it. Status 77: the system does not allow it here, and nothing was tested.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/stress/stress.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

enum { TIMERS = 6, LEFT_OUT = 77 };
#define DAY_S INT64_C(86400)
#define YEAR_S (365 * DAY_S)

static tw_service *service;
static struct leaping {
	uint64_t delay_s, due_ns;
	tw_timer timer;
	int runs;
} timers[TIMERS];
static const uint64_t delays_s[TIMERS] = {1, 3600, 86399, 86400 + 3600, 90 * YEAR_S, 140 * YEAR_S};

static void run(void *arg)
{
	struct leaping *timer = arg;
	if (stress_now_ns() < timer->due_ns)
		violation("a timer came early, s", (long long)timer->delay_s);
	timer->runs++;
}

static int enter_namespace(int64_t offset_s)
{
	if (unshare(CLONE_NEWTIME) != 0)
		return -1;
	FILE *offsets = fopen("/proc/self/timens_offsets", "w");
	if (!offsets)
		return -1;
	fprintf(offsets, "monotonic %lld 0\nboottime %lld 0\n", (long long)offset_s,
		(long long)offset_s);
	int at = fclose(offsets) == 0
		     ? open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC)
		     : -1;
	return at < 0 ? -1 : setns(at, CLONE_NEWTIME);
}

static void leap(int64_t offset_s)
{
	uint64_t before_ns = stress_now_ns(), offset_ns = (uint64_t)offset_s * TW_SECOND;
	if (enter_namespace(offset_s) != 0) {
		printf("clocks: leap: left out: a time namespace: %s\n", strerror(errno));
		exit(LEFT_OUT);
	}
	if (stress_now_ns() - before_ns + 2 * (uint64_t)DAY_S * TW_SECOND < offset_ns)
		violation("the clock has not leapt, s", offset_s);
}

static void check(int due)
{
	struct leaping *last = &timers[TIMERS - 1];
	uint64_t left_ns = 0;
	if (tw_service_advance(service, TW_NO_LIMIT) < 0)
		violation("advance", 0);
	for (int i = 0; i < TIMERS; i++)
		wanted("runs", timers[i].runs, i < due);
	wanted("remaining", tw_remaining(service, last->timer, &left_ns), 0);
	if (left_ns + stress_now_ns() + TW_SECOND < last->due_ns)
		violation("what remains is too short after a leap", (long long)left_ns);
}

int main(void)
{
	service = open_service(
	    (struct tw_service_config){.drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()});
	for (int i = 0; i < TIMERS; i++) {
		struct leaping *t = &timers[i];
		t->delay_s = delays_s[i];
		t->due_ns = stress_now_ns() + t->delay_s * TW_SECOND;
		wanted("schedule", tw_schedule(service, t->delay_s * TW_SECOND, run, t, &t->timer),
		       0);
	}
	check(0);
	leap(DAY_S);
	check(3);
	leap(100 * YEAR_S);
	check(5);
	wanted("a cancel", tw_cancel(service, timers[TIMERS - 1].timer), TW_CANCELLED);
	close_service(service);
	end_service(service, (struct stress_ledger){
				 .scheduled = TIMERS, .fired = 5, .cancelled = 1, .runs = 5});
	printf("clocks: leap: ok, by a day, then by a century\n");
	return 0;
}
