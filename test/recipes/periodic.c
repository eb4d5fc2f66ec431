/* A series is cancelled while one of its runs is under way, and what it works on is freed. */
#include "periodic.h"
#include "support.h"

enum { ROUNDS = 300 };

static tw_clock *hand;
static atomic_int runs;

static void beat(void *arg)
{
	runs += *(int *)arg;
}

static void *move_clock(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		tw_clock_manual_advance_by(hand, TW_SECOND);
	return NULL;
}

int main(void)
{
	tw_service *service = service_by_hand(&hand);
	unsigned seed = 1;
	for (int i = 0; i < ROUNDS; i++) {
		tw_timer timer;
		int *one = zeroed(sizeof *one);
		*one = 1;
		CHECK(every_second(service, beat, one, &timer) == 0);
		pthread_t mover;
		CHECK(pthread_create(&mover, NULL, move_clock, NULL) == 0);
		jitter(&seed, 400);
		int r = tw_cancel_wait(service, timer, TW_FOREVER);
		CHECK(r == TW_CANCELLED || r == TW_FINISHED);
		free(one);
		pthread_join(mover, NULL);
	}
	CHECK(runs > 0);
	CHECK(tw_service_destroy(service) == 0);
	return tw_clock_manual_destroy(hand);
}
