/*
 * A circuit breaker in front of a limiter: a policy of some 50 lines on the public calls.
 *
 *   closed      calls pass; after FAILURES failures in a row the breaker opens
 *   open        calls are refused immediately, so the backend has time to recover
 *   half open   after COOL_DOWN_NS: one call passes; if it succeeds, the breaker closes
 *
 * The limiter's event SETTLED shows each result, and a timer ends the cool-down. Played on a
 * virtual clock: ten seconds with a call each 10 ms; from 2 s to 5 s the backend is down.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <tickwheel/layers.h>

enum { FAILURES = 5 };

#define COOL_DOWN_NS (500 * TW_MILLISECOND)

enum breaker_state { CLOSED, OPEN, HALF_OPEN };

struct breaker {
	tw_service *service;
	tw_limiter *limiter;
	pthread_mutex_t lock;
	enum breaker_state state;
	unsigned failures; /* in a row */
	bool probing;      /* half open: the one call is under way */
};

static void breaker_half_open(void *arg)
{
	struct breaker *b = arg;
	pthread_mutex_lock(&b->lock);
	b->state = HALF_OPEN;
	b->probing = false;
	pthread_mutex_unlock(&b->lock);
}

/* The limiter's hook. Results of calls that began before the breaker opened do not matter. */
static void breaker_event(void *arg, const struct tw_limiter_event *event)
{
	struct breaker *b = arg;
	if (event->kind != TW_LIMITER_EVENT_SETTLED)
		return;
	enum tw_job_status status = event->result->status;
	bool failed = status == TW_JOB_STATUS_FAILED || status == TW_JOB_STATUS_TIMED_OUT;
	pthread_mutex_lock(&b->lock);
	if (b->state != OPEN && status == TW_JOB_STATUS_SUCCEEDED) {
		b->state = CLOSED;
		b->failures = 0;
	}
	bool opens =
	    b->state != OPEN && failed && (b->state == HALF_OPEN || ++b->failures == FAILURES);
	if (opens)
		b->state = OPEN;
	pthread_mutex_unlock(&b->lock);
	if (opens && tw_schedule(b->service, COOL_DOWN_NS, breaker_half_open, b, NULL) < 0)
		breaker_half_open(b);
}

/* -ECONNREFUSED: the breaker is open. Else as tw_limiter_submit. */
static int breaker_submit(struct breaker *b, tw_job_fn *fn, void *arg)
{
	pthread_mutex_lock(&b->lock);
	bool passes = b->state == CLOSED || (b->state == HALF_OPEN && !b->probing);
	bool probes = passes && b->state == HALF_OPEN;
	b->probing |= probes;
	pthread_mutex_unlock(&b->lock);
	int r = passes ? tw_limiter_submit(b->limiter, fn, arg, NULL) : -ECONNREFUSED;
	if (r < 0 && probes)
		breaker_half_open(b);
	return r;
}

/* ------------------------------------------------------------------ the play */

static tw_sim *sim;
static struct breaker breaker = {.lock = PTHREAD_MUTEX_INITIALIZER};
static unsigned refused, calls_when_down, served;
static uint64_t back_ns; /* the first success after the outage */

static uint64_t now(void)
{
	static uint64_t begun_ns;
	if (!begun_ns)
		begun_ns = tw_service_now(tw_sim_service(sim));
	return tw_service_now(tw_sim_service(sim)) - begun_ns;
}

static int ask_backend(void *arg, struct tw_job_run *run)
{
	(void)arg;
	(void)run;
	bool down = now() >= 2 * TW_SECOND && now() < 5 * TW_SECOND;
	calls_when_down += down;
	served += !down;
	if (!down && calls_when_down && !back_ns)
		back_ns = now();
	return down ? -EIO : 0;
}

static void on_request(void *arg)
{
	(void)arg;
	refused += breaker_submit(&breaker, ask_backend, NULL) == -ECONNREFUSED;
}

int main(void)
{
	struct tw_sim_config play = TW_INIT(tw_sim_config);
	struct tw_limiter_config config = TW_INIT(tw_limiter_config);
	config.max_concurrency = 4;
	config.flags = TW_LIMITER_NONBLOCKING;
	config.event = breaker_event;
	config.event_arg = &breaker;
	if (tw_sim_create(&sim, &play) < 0)
		return 1;
	breaker.service = tw_sim_service(sim);
	if (tw_limiter_create(&breaker.limiter, breaker.service, &config) < 0)
		return 1;
	now();
	for (unsigned i = 0; i < 1000; i++)
		if (tw_schedule(breaker.service, i * 10 * TW_MILLISECOND, on_request, NULL, NULL) <
		    0)
			return 1;
	tw_sim_run_for(sim, 11 * TW_SECOND);
	printf("%u served, %u refused, %u calls while the backend was down, back after %.2f s\n",
	       served, refused, calls_when_down, (double)back_ns / 1e9);
	bool spared = calls_when_down <= FAILURES + 6 && refused > 250;
	bool recovers = back_ns >= 5 * TW_SECOND &&
			back_ns <= 5 * TW_SECOND + COOL_DOWN_NS + 20 * TW_MILLISECOND;
	tw_limiter_destroy(breaker.limiter);
	tw_sim_destroy(sim);
	return spared && recovers && served + refused + calls_when_down == 1000 ? 0 : 1;
}
