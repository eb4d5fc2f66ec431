/*
 * A process for tickwheel-top to look at: two services, a series, three groups, and named jobs that
 * block until the process ends. One group is closed, and waits for its timer. It says "ready" when
 * all that is in place, and ends when it reads a byte, or the end, of its standard input.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tickwheel.h"

static sem_t to_end, begun;

static void check(int r)
{
	if (r < 0) {
		fprintf(stderr, "stage: %s\n", tw_strerror(r));
		exit(1);
	}
}

static void beat(void *arg)
{
	(void)arg;
}

static int hold(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	while (sem_wait(&to_end))
		continue;
	sem_post(&to_end); /* for the next one */
	return 0;
}

static void hold_timer(void *arg)
{
	sem_post(&begun);
	hold(arg, NULL);
}

static void schedule_in_closed_group(tw_service *service)
{
	tw_group group;
	struct tw_task task = TW_INIT(tw_task);
	check(tw_group_create(&group, service));
	task.fn = hold_timer;
	task.group = group;
	task.name = "last words";
	check(tw_schedule_task(service, &task, NULL));
	while (sem_wait(&begun))
		continue;
	check(tw_group_close(service, group));
}

static void submit_job(tw_limiter *limiter, const char *name)
{
	struct tw_limiter_task task = TW_INIT(tw_limiter_task);
	task.fn = hold;
	task.name = name;
	check(tw_limiter_submit_task(limiter, &task, NULL));
}

static void schedule_members(tw_service *service, tw_group group, const char *name, int n)
{
	struct tw_task task = TW_INIT(tw_task);
	task.fn = beat;
	task.when_ns = 3600 * TW_SECOND;
	task.group = group;
	task.name = name;
	for (int i = 0; i < n; i++)
		check(tw_schedule_task(service, &task, NULL));
}

int main(void)
{
	tw_service *service, *other;
	tw_limiter *limiter;
	tw_group group, ending;
	char byte;
	sem_init(&to_end, 0, 0);
	sem_init(&begun, 0, 0);
	const struct tw_service_config config = {
	    .size = sizeof config, .workers = 4, .max_workers = 8};
	const struct tw_limiter_config limits = {
	    .size = sizeof limits, .max_concurrency = 4, .max_pending = 4};
	const struct tw_period often = {.size = sizeof often, .period_ns = 10 * TW_MILLISECOND};
	check(tw_service_create(&service, &config));
	check(tw_service_create(&other, NULL));
	check(tw_limiter_create(&limiter, service, &limits));
	check(tw_group_create(&group, service));
	check(tw_group_create(&ending, service));
	schedule_members(service, group, "idle timeout", 1234);
	schedule_members(service, ending, "a \"second\" group", 2);
	schedule_in_closed_group(service);
	check(tw_schedule_every(service, &often, beat, NULL, NULL));
	submit_job(limiter, "lookup of example.org");
	submit_job(limiter, "say \"hi\"\033[31m \xff");
	check(tw_service_publish(service, "stage"));
	check(tw_service_publish(other, "other \"one\""));
	puts("ready");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) < 0)
		return 1;
	sem_post(&to_end);
	check(tw_limiter_close(limiter, TW_CLOSE_DRAIN, TW_FOREVER));
	check(tw_limiter_destroy(limiter));
	check(tw_service_destroy(other));
	check(tw_service_destroy(service));
	return 0;
}
