/* A close that runs nothing, on the real clock. Beside schedules and other closes: test/stress. */
#include <errno.h>

#include "test/support/shot.h"

TestSuite(close_real, .timeout = 60);

static void never(void *arg)
{
}

/*
 * No callback runs, so only the service's own threads are waited for, and these are given a tenth
 * of a second at least. An answer that they did not come must have taken that long: they had no
 * processor, and are asked again.
 */
Test(close_real, drop_needs_no_patience)
{
	for (int round = 0; round < 200; round++) {
		tw_service *service = open_service(1);
		for (int i = 0; i < 3; i++)
			expect_eq(tw_schedule(service, HOUR, never, NULL, NULL), 0);
		uint64_t begun_ns = tw_service_now(service);
		int answer;
		while ((answer = tw_service_close(service, TW_CLOSE_DROP, 0)) != 0) {
			expect_eq(answer, -ETIMEDOUT);
			expect_ge(tw_service_now(service) - begun_ns, 100 * MS);
			begun_ns = tw_service_now(service);
		}
		expect_eq(stats_of(service).pending, 0);
		expect_eq(tw_service_destroy(service), 0);
	}
}
