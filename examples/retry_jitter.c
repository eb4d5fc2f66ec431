/*
 * Retry with backoff and jitter. A server is away for a moment, and a hundred clients notice it at
 * the same time. If they all came back after the same delay, they would come together again and
 * again. Each delay is twice the one before (backoff), plus a random part of up to the same length
 * (jitter): tw_task.jitter_ns, drawn when the timer is scheduled.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tickwheel.h"

enum { CLIENTS = 100, SPAN_MS = 20, SPANS = 40 };

#define FIRST_DELAY_NS (20 * TW_MILLISECOND)
#define AWAY_NS (150 * TW_MILLISECOND)

struct client {
	uint64_t delay_ns;   /* of the next try, without its jitter */
	uint64_t not_before; /* of that try, on tw_service_now()'s scale */
	unsigned tries;
};

static tw_service *service;
static uint64_t started_ns;
static struct client clients[CLIENTS];
static atomic_uint tries_in[SPANS], early;
static sem_t served;

static void try_again(void *arg);

/* A client's try has ended before the next one is scheduled, so a client needs no lock. */
static void wait_and_try_again(struct client *c)
{
	struct tw_task task = {.size = sizeof(task),
			       .fn = try_again,
			       .arg = c,
			       .when_ns = c->delay_ns,
			       .jitter_ns = c->delay_ns};
	c->not_before = tw_service_now(service) + c->delay_ns;
	c->delay_ns *= 2;
	if (tw_schedule_task(service, &task, NULL) != 0)
		sem_post(&served); /* gives up; main sees that it has no answer */
}

static void try_again(void *arg)
{
	struct client *c = arg;
	uint64_t now_ns = tw_service_now(service),
		 span = (now_ns - started_ns) / (SPAN_MS * TW_MILLISECOND);
	atomic_fetch_add(&early, now_ns < c->not_before);
	atomic_fetch_add(&tries_in[span < SPANS ? span : SPANS - 1], 1);
	c->tries++;
	if (now_ns - started_ns < AWAY_NS)
		wait_and_try_again(c);
	else
		sem_post(&served);
}

int main(void)
{
	struct tw_service_config config = {.size =
					       /* .seed = n repeats the draws of each thread */
					   sizeof(config)};
	if (tw_service_create(&service, &config) != 0 || sem_init(&served, 0, 0) != 0)
		return 1;
	started_ns = tw_service_now(service);
	for (int i = 0; i < CLIENTS; i++) {
		clients[i].delay_ns = FIRST_DELAY_NS;
		wait_and_try_again(&clients[i]);
	}
	for (int i = 0; i < CLIENTS; i++)
		while (sem_wait(&served) != 0)
			;
	tw_service_destroy(service);

	unsigned tries = 0, unserved = 0;
	for (int i = 0; i < SPANS; i++)
		if (tries_in[i])
			printf("%3d ms: %u tries\n", i * SPAN_MS, tries_in[i]);
	for (int i = 0; i < CLIENTS; i++) {
		tries += clients[i].tries;
		unserved += clients[i].tries == 0;
	}
	printf("%d clients, %u tries, %u early\n", CLIENTS, tries, early);
	return unserved == 0 && early == 0 ? 0 : 1;
}
