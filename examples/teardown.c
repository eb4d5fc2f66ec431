/*
 * Teardown: frees what a timer uses while its callback may be running. If tw_cancel answers
 * TW_RUNNING, the memory is still in use. After tw_cancel_wait it is the caller's, and all that the
 * callback wrote is visible. What a timer uses that is still pending when the service closes, its
 * release frees.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tickwheel.h"

struct session {
	sem_t started;
	int pages_written;
};

static void on_save(void *arg)
{
	struct session *s = arg;
	sem_post(&s->started);
	for (int page = 0; page < 5; page++) {
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		s->pages_written++;
	}
}

static bool tear_down(tw_service *service, tw_timer timer, struct session *s)
{
	int outcome = tw_cancel_wait(service, timer, TW_FOREVER);
	printf("outcome %s, %d pages written\n", outcome == TW_CANCELLED ? "cancelled" : "finished",
	       s->pages_written);
	bool whole = s->pages_written == (outcome == TW_CANCELLED ? 0 : 5);
	sem_destroy(&s->started);
	free(s);
	return whole;
}

static int left_over;

static void on_released(void *arg, enum tw_fate fate)
{
	left_over += fate == TW_FATE_DROPPED;
	free(arg);
}

static int on_pending(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg,
		      uint64_t remaining_ns)
{
	(void)visitor_arg, (void)timer, (void)fn, (void)arg;
	printf("dropped %d s before its time\n", (int)((remaining_ns + TW_SECOND / 2) / TW_SECOND));
	return 0;
}

static bool shut_down(tw_service *service)
{
	struct tw_task task = {.size = sizeof(task),
			       .fn = on_save,
			       .arg = calloc(1, sizeof(struct session)),
			       .when_ns = 60 * TW_SECOND,
			       .release = on_released};
	if (tw_schedule_task(service, &task, NULL) != 0)
		return false;
	tw_service_foreach(service, on_pending, NULL);
	return tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER) == 0 && left_over == 1;
}

int main(void)
{
	tw_service *service;
	struct session *waiting = calloc(1, sizeof(*waiting)),
		       *running = calloc(1, sizeof(*running));
	if (waiting == NULL || running == NULL || tw_service_create(&service, NULL) != 0)
		return 1;
	sem_init(&waiting->started, 0, 0);
	sem_init(&running->started, 0, 0);

	tw_timer in_an_hour, now;
	bool ok = tw_schedule(service, 3600 * TW_SECOND, on_save, waiting, &in_an_hour) == 0;
	ok = ok && tw_schedule(service, 0, on_save, running, &now) == 0;
	while (ok && sem_wait(&running->started) != 0)
		;
	ok = ok && tear_down(service, in_an_hour, waiting) && tear_down(service, now, running);

	ok = ok && shut_down(service);
	tw_service_destroy(service);
	return ok ? 0 : 1;
}
