/*
 * A request's id travels with the timers that the request schedules. A log line deep inside names
 * the request, and no function passes the id on.
 *
 * Each request takes three steps, with a pause before each. The steps of all requests run on the
 * same few workers.
 */
#include <inttypes.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>

#include "tickwheel.h"

enum { REQUESTS = 3, STEPS = 3 };

struct request {
	unsigned id;
	unsigned steps;
	unsigned strangers; /* steps that saw another request's id */
};

static tw_service *service;
static uint64_t started_ns;
static sem_t done;

/* The library keeps a pointer for each thread. What it points to belongs to the program. */
static void say(const char *what, unsigned step)
{
	const struct request *request = tw_context_get();
	printf("%5.1f ms  [request %u] %s %u\n",
	       (double)(tw_service_now(service) - started_ns) / 1e6, request ? request->id : 0,
	       what, step);
}

static void take_step(void *arg)
{
	struct request *request = arg;
	request->strangers += tw_context_get() != request;
	say("step", ++request->steps);
	if (request->steps == STEPS ||
	    tw_schedule(service, 7 * TW_MILLISECOND, take_step, request, NULL) != 0)
		sem_post(&done);
}

static void accept_request(struct request *request)
{
	tw_context_set(request);
	say("accepted, steps wanted:", STEPS);
	if (tw_schedule(service, request->id * TW_MILLISECOND, take_step, request, NULL) != 0)
		sem_post(&done);
	tw_context_set(NULL); /* this thread goes on to the next request */
}

int main(void)
{
	struct request requests[REQUESTS] = {{0}};
	unsigned well = 0;
	sem_init(&done, 0, 0);
	if (tw_service_create(&service, NULL) != 0)
		return 1;
	started_ns = tw_service_now(service);
	for (unsigned i = 0; i < REQUESTS; i++) {
		requests[i].id = i + 1;
		accept_request(&requests[i]);
	}
	for (int i = 0; i < REQUESTS; i++)
		while (sem_wait(&done) != 0)
			;
	tw_service_destroy(service);
	for (int i = 0; i < REQUESTS; i++)
		well += requests[i].steps == STEPS && requests[i].strangers == 0;
	printf("%u of %d requests saw their own id in each step\n", well, REQUESTS);
	return well == REQUESTS ? 0 : 1;
}
