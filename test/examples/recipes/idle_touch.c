/*
 * A touch races with the timeout: either the touch succeeds, and the timeout comes 60 s after it,
 * or the timeout has won.
 */
#include "idle_touch.h"
#include "support.h"

enum { ROUNDS = 300 };

static atomic_int idles;
static _Atomic uint64_t idle_at_ns;
static tw_clock *hand;

static void on_idle(void *arg)
{
	struct peer *p = arg;
	idle_at_ns = tw_service_now(p->service);
	idles++;
}

static void *move_clock(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	jitter(&seed, 200);
	tw_clock_manual_advance_by(hand, 61 * TW_SECOND);
	return NULL;
}

int main(void)
{
	tw_service *service = service_by_hand(&hand);
	unsigned seed = 1;
	int touched = 0;
	for (int i = 1; i <= ROUNDS; i++) {
		struct peer *p = zeroed(sizeof *p);
		p->service = service;
		uint64_t opened_ns = tw_service_now(service);
		CHECK(peer_open(p, on_idle, opened_ns) == 0);
		pthread_t mover;
		CHECK(pthread_create(&mover, NULL, move_clock, &seed) == 0);
		jitter(&seed, 200);
		uint64_t touched_ns = opened_ns + 30 * TW_SECOND;
		int r = peer_touch(p, touched_ns);
		pthread_join(mover, NULL);
		if (r == 0) {
			touched++;
			tw_clock_manual_advance_by(hand, touched_ns + 61 * TW_SECOND -
							     tw_clock_now(hand));
		}
		while (idles < i)
			usleep(100);
		CHECK(idle_at_ns >= (r == 0 ? touched_ns : opened_ns) + 60 * TW_SECOND);
		tw_cancel_wait(service, p->idle, TW_FOREVER);
		free(p);
	}
	CHECK(touched > 0);
	CHECK(tw_service_destroy(service) == 0);
	return tw_clock_manual_destroy(hand);
}
