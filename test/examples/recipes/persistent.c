/*
 * A client that comes back races with its idle timeout: either the timer is disarmed, and the
 * callback does not run, or the callback runs once.
 */
#include "persistent.h"
#include "support.h"

enum { ROUNDS = 300 };

static tw_clock *hand;

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
	int back = 0;
	struct client *c = zeroed(sizeof *c);
	c->service = service;
	CHECK(client_open(c) == 0);
	for (int i = 1; i <= ROUNDS; i++) {
		int idles = c->idles;
		pthread_t mover;
		CHECK(client_waits(c) == 0);
		CHECK(pthread_create(&mover, NULL, move_clock, &seed) == 0);
		jitter(&seed, 400);
		int is_back = client_is_back(c);
		pthread_join(mover, NULL);
		while (tw_disarm(service, c->idle) == TW_RUNNING)
			usleep(100);
		CHECK(c->idles == idles + !is_back);
		back += is_back;
	}
	CHECK(back > 0);
	client_close(c);
	free(c);
	CHECK(tw_service_destroy(service) == 0);
	return tw_clock_manual_destroy(hand);
}
