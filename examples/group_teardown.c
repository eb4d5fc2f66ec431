/*
 * A connection with a timer for each thing that it waits for. When it closes, one call ends all of
 * them and waits for those whose callbacks run. Then the memory that they use is freed. No handle
 * of a single timer is kept.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tickwheel.h"

enum { REQUESTS = 1000 };

struct connection {
	tw_group timers;
	atomic_int pings, timeouts;
};

static atomic_int requests_freed;

struct request {
	struct connection *connection;
};

static void on_ping(void *arg)
{
	struct connection *c = arg;
	c->pings++;
}

static void on_timeout(void *arg)
{
	struct request *r = arg;
	r->connection->timeouts++;
}

/* Called once for each request, with any fate of its timer. */
static void free_request(void *arg, enum tw_fate fate)
{
	(void)fate;
	free(arg);
	requests_freed++;
}

static bool start_ping(tw_service *service, struct connection *c)
{
	struct tw_period period = {.size = sizeof(period), .period_ns = TW_MILLISECOND};
	struct tw_task ping = {
	    .size = sizeof(ping), .fn = on_ping, .arg = c, .period = &period, .group = c->timers};
	return tw_schedule_task(service, &ping, NULL) == 0;
}

static bool start_request(tw_service *service, struct connection *c, uint64_t timeout_ns)
{
	struct request *r = malloc(sizeof(*r));
	if (r == NULL)
		return false;
	r->connection = c;
	struct tw_task timeout = {.size = sizeof(timeout),
				  .fn = on_timeout,
				  .arg = r,
				  .when_ns = timeout_ns,
				  .release = free_request,
				  .group = c->timers};
	if (tw_schedule_task(service, &timeout, NULL) == 0)
		return true;
	free(r);
	return false;
}

static bool tear_down(tw_service *service, struct connection *c)
{
	/* a request that comes now is refused */
	bool ok = tw_group_close(service, c->timers, NULL, NULL) == 0;
	ok = ok && !start_request(service, c, TW_SECOND);
	ok = ok && tw_group_cancel_wait(service, c->timers, TW_FOREVER) == TW_CANCELLED;
	ok = ok && tw_group_destroy(service, c->timers) == 0;
	printf("%d pings, %d timeouts, %d requests freed\n", c->pings, c->timeouts, requests_freed);
	free(c); /* nothing refers to it any more */
	return ok && requests_freed == REQUESTS;
}

int main(void)
{
	tw_service *service;
	struct connection *c = calloc(1, sizeof(*c));
	if (c == NULL || tw_service_create(&service, NULL) != 0)
		return 1;
	bool ok = tw_group_create(&c->timers, service) == 0 && start_ping(service, c);
	for (int i = 0; ok && i < REQUESTS; i++)
		ok = start_request(service, c, i % 10 == 0 ? TW_MILLISECOND : 30 * TW_SECOND);
	while (ok && (c->timeouts < REQUESTS / 10 || c->pings == 0))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	ok = ok && tear_down(service, c);
	tw_service_destroy(service);
	return ok ? 0 : 1;
}
