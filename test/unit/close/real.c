/*
 * Closing on the real clock: what is pending is waited for, run or dropped. Beside schedules and
 * other closes: test/stress/close.c.
 */
#include <errno.h>

#include "test/support/shot.h"

TestSuite(close_real, .timeout = 60);

static struct shot shots[5000];

/*
 * No callback runs, so only the service's own threads are waited for, and these are given so long
 * at least. An answer that they did not come must have taken that long: they had no processor, and
 * are asked again.
 */
static void close_on_threads_alone(tw_service *service, enum tw_close_mode mode,
				   uint64_t timeout_ns, uint64_t given_ns)
{
	uint64_t begun_ns = tw_service_now(service);
	int answer;
	while ((answer = tw_service_close(service, mode, timeout_ns)) != 0) {
		expect_eq(answer, -ETIMEDOUT);
		expect_ge(tw_service_now(service) - begun_ns, given_ns);
		begun_ns = tw_service_now(service);
	}
}

/* A callback that nobody's clock matters to. */
static void count_run(void *arg)
{
	struct probe *probe = arg;
	atomic_fetch_add(&probe->runs, 1);
}

Test(close_real, that_drains_drops_what_is_left_at_its_timeout)
{
	tw_service *service = open_service(2);
	sem_t done;
	sem_init(&done, 0, 0);
	shots[0] = (struct shot){.service = service, .done = &done};
	shots[1] = (struct shot){.service = service};
	schedule_shot(&shots[0], MS);
	schedule_shot(&shots[1], HOUR);
	await(&done, 1); /* a slow machine may take longer for it than the close gives */
	uint64_t before_ns = tw_service_now(service);
	close_on_threads_alone(service, TW_CLOSE_DRAIN, 300 * MS, 300 * MS + SECOND);
	expect_ge(tw_service_now(service), before_ns + 300 * MS);
	expect_eq(shots[0].runs, 1);
	expect_eq(shots[1].runs, 0);
	expect_eq(stats_of(service).dropped, 1);
	close_service(service);
}

Test(close_real, that_runs_runs_all_in_the_pool)
{
	enum { COUNT = 5000 };
	tw_service *service = open_service(3);
	for (int i = 0; i < COUNT; i++) {
		shots[i] = (struct shot){.service = service};
		schedule_shot(&shots[i], HOUR);
	}
	expect_eq(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER), 0);
	for (int i = 0; i < COUNT; i++) {
		expect_eq(shots[i].runs, 1);
		expect_eq(shots[i].early, 0); /* shoot() sees that it is closing */
	}
	close_service(service);
}

/*
 * No callback runs, so there is nothing to be patient for: a tick thread that is slow to answer is
 * no reason.
 */
Test(close_real, drop_needs_no_patience)
{
	for (int round = 0; round < 200; round++) {
		tw_service *service;
		tw_timer timer;
		struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 1};
		static struct probe unused;
		expect_eq(tw_service_create(&service, &cfg), 0);
		for (int i = 0; i < 3; i++)
			expect_eq(tw_schedule(service, HOUR, count_run, &unused, &timer), 0);
		close_on_threads_alone(service, TW_CLOSE_DROP, 0, 100 * MS);
		expect_eq(stats_of(service).pending, 0);
		expect_eq(tw_service_destroy(service), 0);
	}
}
