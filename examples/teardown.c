/*
 * Teardown: frees what a timer uses while its callback may be running. If tw_cancel answers
 * TW_RUNNING, the memory is still in use. After tw_cancel_wait it is the caller's, and all that the
 * callback wrote is visible. A visitor sees the timers that are still pending when the service
 * closes.
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

static int on_dropped(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg,
		      uint64_t remaining_ns)
{
	(void)visitor_arg, (void)timer, (void)fn;
	printf("dropped %d s before its time\n", (int)((remaining_ns + TW_SECOND / 2) / TW_SECOND));
	left_over++;
	free(arg);
	return 0;
}

static bool shut_down(tw_service *service)
{
	struct tw_close_options options = {.size = sizeof(options),
					   .mode = TW_CLOSE_DROP,
					   .timeout_ns = TW_FOREVER,
					   .dropped = on_dropped};
	return tw_service_close_with(service, &options) == 0 && left_over == 1;
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

	ok = ok &&
	     tw_schedule(service, 60 * TW_SECOND, on_save, calloc(1, sizeof(*waiting)), NULL) == 0;
	ok = ok && shut_down(service);
	tw_service_destroy(service);
	return ok ? 0 : 1;
}
