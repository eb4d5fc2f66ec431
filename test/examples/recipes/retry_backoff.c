/*
 * An attempt fails until it succeeds, until no attempt is left, or until a cancel that races with
 * it. `done` is called once and frees the retry; the delays double, and none is short.
 */
#include "retry_backoff.h"
#include "support.h"

enum { ROUNDS = 300 };

static tw_clock *hand;
static atomic_int attempts, ends, successes, succeeds_at;
static _Atomic uint64_t last_ns, least_ns;
static atomic_bool too_soon;

static bool attempt(struct retry *r)
{
	uint64_t now_ns = tw_service_now(r->service);
	if (attempts > 0 && now_ns < last_ns + least_ns)
		too_soon = true;
	if (attempts > 0)
		least_ns = least_ns * 2 < r->cap_ns ? least_ns * 2 : r->cap_ns;
	last_ns = now_ns;
	return ++attempts == succeeds_at;
}

static void done(struct retry *r)
{
	successes += r->succeeded;
	free(r);
	ends++;
}

static tw_timer begin(tw_service *service, int success)
{
	struct retry *r = zeroed(sizeof *r);
	tw_timer timer;
	*r = (struct retry){.service = service,
			    .attempt = attempt,
			    .done = done,
			    .delay_ns = 100 * TW_MILLISECOND,
			    .cap_ns = TW_SECOND,
			    .attempts_left = 8};
	attempts = ends = successes = 0;
	succeeds_at = success;
	least_ns = r->delay_ns;
	CHECK(retry_start(r, &timer) == 0);
	return timer;
}

static void await_end(void)
{
	while (ends < 1) {
		tw_clock_manual_advance_by(hand, 100 * TW_MILLISECOND);
		usleep(100);
	}
}

static void *move_clock(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++)
		tw_clock_manual_advance_by(hand, 50 * TW_MILLISECOND);
	return NULL;
}

int main(void)
{
	tw_service *service = service_by_hand(&hand);
	unsigned seed = 1;
	begin(service, 5);
	await_end();
	CHECK(attempts == 5 && successes == 1);
	begin(service, 100);
	await_end();
	CHECK(attempts == 8 && successes == 0);
	CHECK(!too_soon);

	for (int i = 0; i < ROUNDS; i++) {
		tw_timer timer = begin(service, 100);
		pthread_t mover;
		CHECK(pthread_create(&mover, NULL, move_clock, NULL) == 0);
		jitter(&seed, 400);
		tw_cancel_wait(service, timer, TW_FOREVER);
		CHECK(ends == 1);
		pthread_join(mover, NULL);
	}
	begin(service, 100); /* dropped by the close: done is called */
	CHECK(tw_service_destroy(service) == 0);
	CHECK(ends == 1);
	return tw_clock_manual_destroy(hand);
}
