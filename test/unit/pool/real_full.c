/* tw_service_liveness tells of a full pool, whatever kind of run waits for it. */
#include "pools.h"
#include "test/support/liveness.h"
#include "test/support/rig.h"

TestSuite(pool_real_full, .timeout = 60);

static tw_clock *manual_clock;
static tw_service *service;

static void open_service(uint32_t workers, uint32_t max_workers, bool manual)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.workers = workers;
	config.max_workers = max_workers;
	expect_eq(tw_clock_manual_create(&manual_clock, 0), 0);
	if (manual) {
		config.clock = manual_clock;
		config.drive = TW_DRIVE_MANUAL;
	}
	expect_eq(tw_service_create(&service, &config), 0);
}

static void close_service(void)
{
	expect_eq(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(liveness_of(service).pool_max_workers, 0);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_clock_manual_destroy(manual_clock), 0);
}

static void await_at_max(uint32_t wanted)
{
	while (liveness_of(service).pool_at_max != wanted)
		sched_yield();
}

/* The pool is full of timers, or of tasks of strands, and one more comes. */
struct row {
	uint32_t workers, max_workers; /* max_workers 0: the default, 64 */
	bool manual, strands;
	bool at_once; /* the one more is in the batch of those that block */
};

static const struct row rows[] = {
    {1, 1, true, false, false},  {1, 1, true, false, true},  {1, 2, true, false, false},
    {2, 0, false, false, false}, {1, 2, false, true, false},
};

static tw_strand *strands[65];
static int brought;

static void bring(const struct row *row, tw_fn *fn, void *arg)
{
	if (row->strands) {
		expect_eq(tw_strand_create(&strands[brought], service, NULL), 0);
		expect_eq(tw_strand_submit(strands[brought], fn, arg), 0);
	} else {
		expect_eq(tw_schedule(service, 0, fn, arg, NULL), 0);
	}
	brought++;
}

static void advance(const struct row *row)
{
	if (row->manual)
		tw_service_advance(service, TW_NO_LIMIT);
}

static void expect_told(const struct row *row)
{
	struct gate gate = {0};
	atomic_int behind = 0;
	int most = row->max_workers ? (int)row->max_workers : 64;
	open_service(row->workers, row->max_workers, row->manual);
	for (brought = 0; brought < most;)
		bring(row, pass, &gate);
	if (row->at_once)
		bring(row, count, &behind);
	advance(row);
	await_value(&gate.inside, most);
	if (!row->at_once) {
		expect_eq(liveness_of(service).pool_at_max, 0); /* nothing waits */
		bring(row, count, &behind);
		advance(row);
	}
	await_at_max(1);
	struct tw_service_liveness seen = liveness_of(service);
	expect_eq(seen.pool_max_workers, most);
	expect_eq(seen.running, most);
	cr_assert(seen.longest_fn == pass);
	expect_eq(behind, 0);
	let_go(&gate, 1);
	await_value(&behind, 1);
	await_at_max(0);
	let_go(&gate, most - 1);
	for (int i = 0; row->strands && i < brought; i++)
		expect_eq(tw_strand_destroy(strands[i]), 0);
	close_service();
}

Test(pool_real_full, is_told_while_a_run_waits_and_no_longer)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		expect_told(&rows[i]);
}

/* -------------------------------------------------------------------------- jobs */

static struct gate jobs;

static int pass_job(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	pass(&jobs);
	return 0;
}

static void beat(void *arg)
{
	(void)arg;
}

/*
 * Of two workers one is kept free of jobs; with a heartbeat it runs other things all the time. One
 * job for each limiter, and no worker for two of them.
 */
static void expect_jobs_told(bool manual, bool heartbeat)
{
	enum { LIMITERS = 3 };
	tw_limiter *limiters[LIMITERS];
	struct tw_period period = {.size = sizeof period, .period_ns = TW_MILLISECOND};
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	jobs = (struct gate){0};
	open_service(1, 2, manual);
	if (heartbeat)
		expect_eq(tw_schedule_every(service, &period, beat, NULL, NULL), 0);
	for (int i = 0; i < LIMITERS; i++) {
		expect_eq(tw_limiter_create(&limiters[i], service, &config), 0);
		expect_eq(tw_limiter_submit(limiters[i], pass_job, NULL, NULL), 0);
	}
	await_value(&jobs.inside, 1); /* its worker counts as full before it calls the job */
	await_at_max(1);
	expect_eq(atomic_load(&jobs.inside), 1);
	let_go(&jobs, LIMITERS);
	for (int i = 0; i < LIMITERS; i++) {
		expect_eq(tw_limiter_wait_idle(limiters[i], TW_FOREVER), 0);
		expect_eq(tw_limiter_destroy(limiters[i]), 0);
	}
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_clock_manual_destroy(manual_clock), 0);
}

Test(pool_real_full, is_told_when_jobs_of_limiters_wait)
{
	expect_jobs_told(false, false);
	expect_jobs_told(false, true);
	expect_jobs_told(true, false);
}
