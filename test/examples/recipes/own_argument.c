/*
 * Threads schedule while the service closes: each argument is freed once, by the release or by the
 * caller that was refused.
 */
#include <errno.h>

#include "own_argument.h"
#include "support.h"

enum { ROUNDS = 20, THREADS = 3 };

static atomic_int runs, refused;

static void use(void *arg)
{
	runs += *(int *)arg;
}

static void *schedule_until_refused(void *arg)
{
	tw_service *service = arg;
	for (;;) {
		int *one = zeroed(sizeof *one);
		*one = 1;
		int r = run_later(service, (uint64_t)(runs % 3) * 100000, use, one);
		CHECK(r == 0 || r == -ESHUTDOWN);
		if (r)
			break;
		usleep(1);
	}
	refused++;
	return NULL;
}

int main(void)
{
	unsigned seed = 1;
	for (int round = 1; round <= ROUNDS; round++) {
		tw_service *service = service_of_four();
		pthread_t threads[THREADS];
		for (int i = 0; i < THREADS; i++)
			CHECK(pthread_create(&threads[i], NULL, schedule_until_refused, service) ==
			      0);
		jitter(&seed, 10000);
		CHECK(tw_service_close(service, (enum tw_close_mode)(round % 3), TW_FOREVER) == 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		CHECK(tw_service_destroy(service) == 0);
		CHECK(refused == round * THREADS);
	}
	CHECK(runs > 0);
	return 0;
}
