/*
 * The backend's answer races with the timeout: one side answers, and the request is freed once.
 * WRONG: tw_cancel without a wait.
 */
#include "request_timeout.h"
#include "support.h"

enum { ROUNDS = 3000 };

static atomic_int answers, by_timeout;

static void answer(struct request *r, int status)
{
	by_timeout += status == 504;
	answers += r->service != NULL;
}

static void slow_timeout(void *arg)
{
	outlast_the_free();
	on_timeout(arg);
}

static void wrong_on_backend(struct request *r)
{
	if (tw_cancel(r->service, r->timeout) == TW_CANCELLED)
		r->answer(r, 200);
	free(r);
}

static struct request *begin(tw_service *service, tw_fn *fn, uint64_t delay_ns)
{
	struct request *r = zeroed(sizeof *r);
	*r = (struct request){.service = service, .answer = answer};
	CHECK(tw_schedule(service, delay_ns, fn, r, &r->timeout) == 0);
	return r;
}

int main(int argc, char **argv)
{
	read_way(argc, argv);
	tw_service *service = service_of_four();
	unsigned seed = 1;
	for (int i = 1; i <= ROUNDS; i++) {
		struct request *r = begin(service, on_timeout, 100000);
		jitter(&seed, 300);
		on_backend(r);
		CHECK(answers == i);
	}
	struct request *r = begin(service, slow_timeout, 0);
	await_at_least(&entered, 1);
	(wrong ? wrong_on_backend : on_backend)(r); /* while the callback runs */
	freed_early = true;
	CHECK(tw_service_destroy(service) == 0);
	CHECK(answers == ROUNDS + 1);
	CHECK(by_timeout >= 1);
	return 0;
}
