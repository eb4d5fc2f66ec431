/*
 * A heart is stopped and freed while one of its beats is under way. A stall leads to one beat that
 * says how many it missed.
 */
#include "heartbeat.h"
#include "support.h"

enum { ROUNDS = 300 };

static tw_clock *hand;
static atomic_ulong beats, missed;

static void beat(struct heart *h, uint64_t missed_beats)
{
	beats += h->service != NULL;
	missed += missed_beats;
}

static void *move_clock(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		tw_clock_manual_advance_by(hand, TW_SECOND);
	return NULL;
}

static struct heart *begin(tw_service *service)
{
	struct heart *h = zeroed(sizeof *h);
	*h = (struct heart){.service = service, .beat = beat};
	CHECK(heart_start(h, TW_SECOND) == 0);
	return h;
}

static void stall(tw_service *service)
{
	struct heart *h = begin(service);
	beats = missed = 0;
	tw_clock_manual_set(hand, tw_clock_now(hand) + 5 * TW_SECOND + TW_SECOND / 2);
	tw_clock_manual_advance_by(hand, TW_MILLISECOND);
	while (beats + missed < 5)
		usleep(100);
	CHECK(beats == 1 && missed == 4);
	heart_stop(h);
	free(h);
}

int main(void)
{
	tw_service *service = service_by_hand(&hand);
	unsigned seed = 1;
	for (int i = 0; i < ROUNDS; i++) {
		struct heart *h = begin(service);
		pthread_t mover;
		CHECK(pthread_create(&mover, NULL, move_clock, NULL) == 0);
		jitter(&seed, 400);
		heart_stop(h);
		free(h);
		pthread_join(mover, NULL);
	}
	CHECK(beats > 0);
	stall(service);

	struct heart *h = begin(service); /* a drain does not wait for it */
	CHECK(tw_service_close(service, TW_CLOSE_DRAIN, TW_SECOND) == 0);
	free(h);
	CHECK(tw_service_destroy(service) == 0);
	return tw_clock_manual_destroy(hand);
}
