/*
 * Events from several threads race with the runs. The first one runs without delay, no two runs
 * begin within an interval, and the last event is followed by a run.
 */
#include "throttle.h"
#include "support.h"

enum { ROUNDS = 100, THREADS = 3, EVENTS = 50 };

#define INTERVAL_NS TW_SECOND

static atomic_int announced, drawn, runs;
static _Atomic uint64_t last_run_ns;
static atomic_bool too_soon;

static void draw(void *arg)
{
	struct throttle *t = arg;
	uint64_t now_ns = tw_service_now(t->service);
	if (last_run_ns && now_ns < last_run_ns + INTERVAL_NS)
		too_soon = true;
	last_run_ns = now_ns;
	drawn = announced;
	runs++;
}

static void *announce(void *arg)
{
	for (int i = 0; i < EVENTS; i++) {
		announced++;
		CHECK(throttle_event(arg) == 0);
	}
	return NULL;
}

static struct throttle *begin(tw_service *service)
{
	struct throttle *t = zeroed(sizeof *t);
	*t =
	    (struct throttle){.service = service, .interval_ns = INTERVAL_NS, .fn = draw, .arg = t};
	CHECK(tw_group_create(&t->group, t->service) == 0);
	runs = announced = drawn = 0;
	last_run_ns = 0;
	return t;
}

static void end(struct throttle *t)
{
	CHECK(tw_group_close(t->service, t->group, NULL, NULL) == 0);
	CHECK(tw_group_cancel_wait(t->service, t->group, TW_FOREVER) == TW_CANCELLED);
	CHECK(tw_group_destroy(t->service, t->group) == 0);
	free(t);
}

/* One event: one run. Three events: the first edge and the last. */
static void both_edges(tw_service *service)
{
	struct throttle *t = begin(service);
	CHECK(throttle_event(t) == 0);
	advance(2 * TW_MILLISECOND);
	await_at_least(&runs, 1);
	advance(3 * INTERVAL_NS);
	while (t->state != THROTTLE_IDLE)
		usleep(100);
	CHECK(runs == 1);

	for (int i = 0; i < 3; i++) {
		CHECK(throttle_event(t) == 0);
		advance(INTERVAL_NS / 8);
		await_at_least(&runs,
			       2); /* the leading edge has run before the second event comes */
	}
	CHECK(runs == 2);
	advance(INTERVAL_NS);
	await_at_least(&runs, 3);
	advance(3 * INTERVAL_NS);
	while (t->state != THROTTLE_IDLE)
		usleep(100);
	CHECK(runs == 3);
	end(t);
}

static void race(tw_service *service)
{
	struct throttle *t = begin(service);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, announce, t) == 0);
	for (int i = 0; i < 4; i++)
		advance(INTERVAL_NS / 3);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (drawn < THREADS * EVENTS) { /* the last event is never lost */
		advance(INTERVAL_NS + 2 * TW_MILLISECOND);
		usleep(100);
	}
	end(t);
}

int main(void)
{
	tw_service *service = service_by_hand();
	both_edges(service);
	for (int i = 0; i < ROUNDS; i++)
		race(service);
	CHECK(!too_soon);

	struct throttle *t = begin(service); /* closed with a run outstanding */
	CHECK(throttle_event(t) == 0);
	end(t);
	return end_of(service);
}
