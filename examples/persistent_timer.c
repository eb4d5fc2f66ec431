/*
 * A timer for the life of a connection: made once, armed when the connection falls silent, disarmed
 * when a request comes, ended with the connection. The handle stays the same.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */

#include <semaphore.h>
#include <stdio.h>
#include <time.h>

#include "tickwheel.h"

#define IDLE_NS (50 * TW_MILLISECOND)

enum { REQUESTS = 20 };

struct connection {
	tw_service *service;
	tw_timer idle;
	sem_t is_idle;
};

static void on_idle(void *arg)
{
	struct connection *c = arg;
	sem_post(&c->is_idle);
}

static int open_connection(struct connection *c)
{
	struct tw_task task = TW_INIT(tw_task);
	task.fn = on_idle;
	task.arg = c;
	task.flags = TW_TASK_PERSISTENT;
	task.when_ns = TW_NEVER;
	return tw_schedule_task(c->service, &task, &c->idle);
}

/* Silence, then a request. It tells whether the connection was idle for too long. */
static int await_request(struct connection *c, long silent_ns)
{
	if (tw_reset(c->service, c->idle, IDLE_NS) != 0)
		return -1;
	nanosleep(&(struct timespec){.tv_nsec = silent_ns}, NULL);
	return tw_disarm(c->service, c->idle) != TW_CANCELLED;
}

int main(void)
{
	struct connection c = {0};
	if (tw_service_create(&c.service, NULL) != 0 || sem_init(&c.is_idle, 0, 0) != 0)
		return 1;
	if (open_connection(&c) != 0)
		return 1;

	int late = 0;
	for (int i = 0; i < REQUESTS; i++)
		late += await_request(&c, 2000000);
	late += await_request(&c, 100000000); /* the client has gone */
	for (int i = 0; i < late; i++)
		while (sem_wait(&c.is_idle) != 0)
			;
	tw_cancel_wait(c.service, c.idle, TW_FOREVER); /* from here on c may be freed */
	printf("%d requests, idle for too long %d times\n", REQUESTS, late);

	struct tw_service_stats stats = TW_INIT(tw_service_stats);
	int r = tw_service_stats(c.service, &stats);
	tw_service_destroy(c.service);
	return r == 0 && stats.scheduled == 1 && late >= 1 ? 0 : 1;
}
