/*
 * A server that takes over a thousand connections schedules all their idle timeouts in one call:
 * all of them, or none.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "tickwheel.h"

#define CONNECTIONS 1000
#define IDLE_NS (50 * TW_MILLISECOND)

struct connection {
	int number;
	tw_timer idle;
};

static sem_t closed;

static void on_idle(void *arg)
{
	(void)arg; /* a server would close the connection here */
	sem_post(&closed);
}

static bool arm_all(tw_service *service, struct connection *connections)
{
	static struct tw_task tasks[CONNECTIONS];
	static tw_timer timers[CONNECTIONS];
	for (int i = 0; i < CONNECTIONS; i++)
		tasks[i] = (struct tw_task){.size = sizeof(tasks[i]),
					    .fn = on_idle,
					    .arg = &connections[i],
					    .when_ns = IDLE_NS};
	if (tw_schedule_bulk(service, tasks, CONNECTIONS, timers) != 0)
		return false; /* nothing is scheduled: the take-over can be refused */
	for (int i = 0; i < CONNECTIONS; i++)
		connections[i] = (struct connection){i, timers[i]};
	return true;
}

int main(void)
{
	static struct connection connections[CONNECTIONS];
	tw_service *service;
	sem_init(&closed, 0, 0);
	if (tw_service_create(&service, NULL) != 0)
		return 1;
	bool ok = arm_all(service, connections);
	int gone = 0, idle = 0;
	for (int i = 0; ok && i < CONNECTIONS; i += 2) /* every second one closes in time */
		gone += tw_cancel(service, connections[i].idle) == TW_CANCELLED;
	for (; ok && idle < CONNECTIONS - gone; idle++)
		while (sem_wait(&closed) != 0)
			;
	printf("%d connections taken over, %d left by themselves, %d were closed as idle\n",
	       CONNECTIONS, gone, idle);
	tw_service_destroy(service);
	return ok && gone + idle == CONNECTIONS ? 0 : 1;
}
