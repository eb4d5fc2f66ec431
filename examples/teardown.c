/*
 * Teardown: free what a timer works on while its callback may be running. After tw_cancel the answer may be TW_RUNNING,
 * and the memory is still in use; after tw_cancel_wait it is the caller's again, and all that the callback wrote is
 * visible.
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
	printf("outcome %s, %d pages written\n", outcome == TW_CANCELLED ? "cancelled" : "finished", s->pages_written);
	bool whole = s->pages_written == (outcome == TW_CANCELLED ? 0 : 5);
	sem_destroy(&s->started);
	free(s);
	return whole;
}

int main(void)
{
	tw_service *service;
	struct session *waiting = calloc(1, sizeof(*waiting)), *running = calloc(1, sizeof(*running));
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

	tw_service_destroy(service);
	return ok ? 0 : 1;
}
