/*
 * The service on the real clock and the default pool. Bounds are one-sided: never early, never
 * after a cancel, everything ends. How late is the bench's business, not a test's.
 */
#include <errno.h>

#include "test/support/current.h"
#include "test/support/gates.h"

TestSuite(service_real_time, .timeout = 60);

static struct shot shots[20000];

/* ------------------------------------------------------------ G1 */

static void expect_none_early(struct tw_service_config cfg)
{
	enum { COUNT = 3000 };
	tw_service *service;
	cfg.size = sizeof cfg;
	expect_eq(tw_service_create(&service, &cfg), 0);
	sem_t done;
	sem_init(&done, 0, 0);
	uint64_t seed = 43;
	for (int i = 0; i < COUNT; i++) {
		shots[i] = (struct shot){.service = service, .done = &done};
		schedule_shot(&shots[i], random_below(&seed, 150 * MS));
	}
	await(&done, COUNT);
	close_service(service);
	for (int i = 0; i < COUNT; i++) {
		expect_eq(shots[i].runs, 1);
		expect_eq(shots[i].early, 0);
	}
}

Test(service_real_time, runs_all_and_none_early)
{
	const struct tw_service_config configs[] = {
	    {.tick_ns = 0},
	    {.executor = tw_executor_inline()},
	    {.tick_ns = 777777, .buckets = 64},
	    {.tick_ns = 50 * TW_MICROSECOND, .buckets = 64},
	    {.tick_ns = 20 * MS, .buckets = 64},
	    {.clock = tw_clock_boottime()},
	    {.clock = tw_clock_boottime(), .executor = tw_executor_inline()},
	};
	for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
		expect_none_early(configs[i]);
}

/* ------------------------------------------------------------ cancel and reset */

Test(service_real_time, waiting_ends_at_its_timeout)
{
	tw_service *service = open_service(1);
	atomic_int runs = 0;
	tw_timer timer;
	open_gates();
	expect_eq(tw_schedule(service, 0, stand_still, &runs, &timer), 0);
	await(&entered, 1);
	uint64_t before_ns = tw_service_now(service);
	expect_eq(tw_cancel_wait(service, timer, 5 * MS), TW_RUNNING);
	expect_ge(tw_service_now(service), before_ns + 5 * MS);
	before_ns = tw_service_now(service);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, 5 * MS), -ETIMEDOUT);
	expect_ge(tw_service_now(service), before_ns + 5 * MS);
	sem_post(&go_on);
	cr_assert(tw_cancel_wait(service, timer, TW_FOREVER) != TW_RUNNING);
	close_service(service);
}

/* ------------------------------------------------------------ series */

struct beat {
	tw_service *service;
	uint64_t first_ns, period_ns;
	uint64_t instants; /* that are past, run or missed */
	atomic_int inside;
	atomic_int early, overlapping;
	atomic_int runs;
	sem_t done;
};

static void count_beat(void *arg)
{
	struct beat *beat = arg;
	if (atomic_fetch_add(&beat->inside, 1) != 0)
		atomic_fetch_add(&beat->overlapping, 1);
	beat->instants += 1 + current_run().overruns;
	if (tw_service_now(beat->service) < beat->first_ns + (beat->instants - 1) * beat->period_ns)
		atomic_fetch_add(&beat->early, 1);
	atomic_fetch_sub(&beat->inside, 1);
	if (atomic_fetch_add(&beat->runs, 1) == 49)
		sem_post(&beat->done);
}

Test(service_real_time, series_keep_their_instants_and_never_overlap)
{
	enum { BEATS = 20 };
	static struct beat beats[BEATS];
	tw_service *service = open_service(3);
	for (int i = 0; i < BEATS; i++) {
		struct beat *beat = &beats[i];
		*beat = (struct beat){.service = service, .period_ns = (uint64_t)(i + 1) * MS / 4};
		sem_init(&beat->done, 0, 0);
		beat->first_ns = tw_service_now(service) + MS;
		struct tw_period period = rate_of(MS, beat->period_ns, 50);
		expect_eq(tw_schedule_every(service, &period, count_beat, beat, NULL), 0);
	}
	for (int i = 0; i < BEATS; i++)
		await(&beats[i].done, 1);
	close_service(service);
	for (int i = 0; i < BEATS; i++) {
		expect_eq(beats[i].runs, 50);
		expect_eq(beats[i].early, 0);
		expect_eq(beats[i].overlapping, 0);
	}
}
