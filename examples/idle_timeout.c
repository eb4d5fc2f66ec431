/*
 * An idle timeout: each use of a connection moves it, with the time that the loop has read anyway.
 * tw_reset_at reads no clock, and a move to later costs one compare-and-swap. The handle stays the
 * same.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */

#include <semaphore.h>
#include <stdio.h>
#include <time.h>

#include "tickwheel.h"

#define IDLE_NS (100 * TW_MILLISECOND)

struct connection {
	tw_service *service;
	uint64_t closed_ns;
	sem_t closed;
};

static void on_idle(void *arg)
{
	struct connection *c = arg;
	c->closed_ns = tw_service_now(c->service);
	sem_post(&c->closed);
}

static void wait_for_traffic(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

int main(void)
{
	struct connection c = {0};
	if (tw_service_create(&c.service, NULL) != 0 || sem_init(&c.closed, 0, 0) != 0)
		return 1;

	tw_timer idle;
	uint64_t opened_ns = tw_service_now(c.service), touched_ns = opened_ns;
	if (tw_schedule_at(c.service, opened_ns + IDLE_NS, on_idle, &c, &idle) != 0)
		return 1;
	for (int use = 0; use < 20; use++) {
		wait_for_traffic();
		uint64_t loop_ns = tw_service_now(c.service); /* a loop reads it once a turn */
		if (tw_reset_at(c.service, idle, loop_ns + IDLE_NS) != 0)
			break; /* the machine stalled until the connection was idle */
		touched_ns = loop_ns;
	}
	while (sem_wait(&c.closed) != 0)
		;
	printf("open for %.1f ms, closed %.3f ms after its last use\n",
	       (double)(c.closed_ns - opened_ns) / 1e6, (double)(c.closed_ns - touched_ns) / 1e6);

	tw_service_destroy(c.service);
	return c.closed_ns >= touched_ns + IDLE_NS ? 0 : 1;
}
