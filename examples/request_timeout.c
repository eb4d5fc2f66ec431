/*
 * A request timeout: one request is answered in time and its timer is cancelled; another one is not
 * answered and times out.
 */
#include <semaphore.h>
#include <stdio.h>

#include "tickwheel.h"

struct request {
	const char *name;
	bool timed_out;
	uint64_t cut_ns;
	sem_t cut;
	tw_service *service;
};

static void on_timeout(void *arg)
{
	struct request *r = arg;
	r->timed_out = true;
	r->cut_ns = tw_service_now(r->service);
	sem_post(&r->cut);
}

/* The answer has come. If the cancel wins, this thread owns the request. */
static bool answer(tw_service *service, tw_timer timeout, const struct request *r)
{
	int outcome = tw_cancel(service, timeout);
	printf("%s: answered, its timeout is %s\n", r->name,
	       outcome == TW_CANCELLED ? "cancelled" : "too late to cancel");
	return outcome == TW_CANCELLED && !r->timed_out;
}

int main(void)
{
	tw_service *service;
	if (tw_service_create(&service, NULL) != 0)
		return 1;
	struct request quick = {.name = "quick", .service = service},
		       slow = {.name = "slow", .service = service};
	sem_init(&quick.cut, 0, 0);
	sem_init(&slow.cut, 0, 0);

	tw_timer timeout;
	bool ok = tw_schedule(service, 30 * TW_SECOND, on_timeout, &quick, &timeout) == 0;
	ok = ok && answer(service, timeout, &quick);

	uint64_t asked_ns = tw_service_now(service);
	ok = ok && tw_schedule(service, 100 * TW_MILLISECOND, on_timeout, &slow, &timeout) == 0;
	while (ok && sem_wait(&slow.cut) != 0)
		;
	uint64_t took_ns = slow.cut_ns - asked_ns;
	printf("%s: cut off after %.3f ms\n", slow.name, (double)took_ns / 1e6);
	ok = ok && slow.timed_out && took_ns >= 100 * TW_MILLISECOND;

	tw_service_destroy(service);
	return ok ? 0 : 1;
}
