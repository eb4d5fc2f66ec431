/* Misuses of pools, manual executors, strands, limiters, semaphores and simulations. */
#include <errno.h>
#include <sched.h>

#include "rows.h"

static tw_strand *strand;
static tw_limiter *limiter, *rated;
static tw_semaphore *permits;
static tw_sim *sim;

static void open_layers(void)
{
	misuse_open();
	expect_eq(tw_strand_create(&strand, manual, NULL), 0);
	expect_eq(
	    tw_limiter_create(&limiter, manual, STRUCT(tw_limiter_config, .max_concurrency = 1)),
	    0);
	expect_eq(tw_limiter_create(&rated, manual,
				    STRUCT(tw_limiter_config, .max_concurrency = 1,
					   .rate_starts = 1, .rate_interval_ns = 1)),
		  0);
	expect_eq(tw_semaphore_create(&permits, manual, NULL, 1), 0);
	expect_eq(tw_sim_create(&sim, NULL), 0);
}

static void close_layers(void)
{
	expect_in_fini();
	expect_eq(tw_sim_destroy(sim), 0);
	expect_eq(tw_semaphore_destroy(permits), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_limiter_destroy(rated), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	misuse_close();
}

TestSuite(misuse_layers, .init = open_layers, .fini = close_layers, .timeout = 60);

static int job(void *arg, struct tw_job_run *run)
{
	return 0;
}

static void idle(void *arg, const struct tw_job_result *results, size_t n)
{
}

#define TOO_LONG (TW_MAX_DELAY_NS + 1)

/* ---------------------------------------------------------------------- pool */

#define POOL_ROW(member, ...)                       \
	ROW(-EINVAL, "tw_pool_create: " member BAD, \
	    tw_pool_create(&other, STRUCT(tw_pool_config, __VA_ARGS__)))

Test(misuse_layers, pools)
{
	static const cpu_set_t no_processor;
	tw_pool *other;
	NULL_ROW(tw_pool_create, "out", NULL, NULL);
	NULL_ROW(tw_pool_submit, "pool", NULL, misuse_fn, NULL);
	NULL_ROW(tw_pool_submit, "fn", pool, NULL, NULL);
	NULL_ROW(tw_pool_submit_wait, "pool", NULL, misuse_fn, NULL, 0);
	NULL_ROW(tw_pool_submit_wait, "fn", pool, NULL, NULL, 0);
	NULL_ROW(tw_pool_close, "pool", NULL, TW_CLOSE_DROP, NULL, NULL);
	NULL_ROW(tw_pool_stats, "pool", NULL, STRUCT(tw_pool_stats));
	NULL_ROW(tw_pool_stats, "out", pool, NULL);
	BAD_ROW(-EINVAL, tw_pool_close, "mode", pool, (enum tw_close_mode)3, NULL, NULL);
	SMALL_ROW(tw_pool_config, tw_pool_create(&other, SMALL(tw_pool_config)));
	POOL_ROW("tw_pool_config.workers", .workers = 1025);
	POOL_ROW("tw_pool_config.max_workers", .max_workers = 1025);
	POOL_ROW("tw_pool_config.max_workers", .workers = 3, .max_workers = 2);
	POOL_ROW("tw_pool_config.reserved", .reserved = 1);
	POOL_ROW("tw_pool_config.queue", .queue = 8);
	POOL_ROW("tw_pool_config.queue", .queue = 17);
	POOL_ROW("tw_pool_config.queue", .queue = 1u << 25);
	POOL_ROW("tw_pool_config.affinity", .affinity_size = 8);
	POOL_ROW("tw_pool_config.affinity", .affinity = &no_processor);
	ROW(-EINVAL, "tw_pool_create: " SYSTEM_REFUSES,
	    tw_pool_create(&other, STRUCT(tw_pool_config, .stack_size = 1)));
	ROW(-EINVAL, "tw_pool_create: " SYSTEM_REFUSES,
	    tw_pool_create(&other, STRUCT(tw_pool_config, .affinity = &no_processor,
					  .affinity_size = sizeof no_processor)));
	cr_assert_null(tw_pool_executor(NULL));
}

/* -------------------------------------------------------------------- manual */

Test(misuse_layers, manual_executors)
{
	tw_manual *other;
	NULL_ROW(tw_manual_create, "out", NULL, NULL);
	NULL_ROW(tw_manual_fd, "manual", NULL);
	NULL_ROW(tw_manual_pump, "manual", NULL, 1);
	SMALL_ROW(tw_manual_config, tw_manual_create(&other, SMALL(tw_manual_config)));
	BAD_ROW(-EINVAL, tw_manual_create, "tw_manual_config.queue", &other,
		STRUCT(tw_manual_config, .queue = (1u << 24) + 1));
	BAD_ROW(-EINVAL, tw_manual_create, "tw_manual_config.reserved", &other,
		STRUCT(tw_manual_config, .reserved = 1));
}

/* -------------------------------------------------------------------- strand */

Test(misuse_layers, strands)
{
	tw_strand *other;
	tw_strand_task_id id = {0};
	NULL_ROW(tw_strand_create, "out", NULL, manual, NULL);
	NULL_ROW(tw_strand_create, "service", &other, NULL, NULL);
	NULL_ROW(tw_strand_submit, "strand", NULL, misuse_fn, NULL);
	NULL_ROW(tw_strand_submit, "fn", strand, NULL, NULL);
	NULL_ROW(tw_strand_schedule, "strand", NULL, 0, misuse_fn, NULL, NULL);
	NULL_ROW(tw_strand_schedule, "fn", strand, 0, NULL, NULL, NULL);
	NULL_ROW(tw_strand_submit_task, "strand", NULL, STRUCT(tw_strand_task, .fn = misuse_fn),
		 NULL);
	NULL_ROW(tw_strand_submit_task, "task", strand, NULL, NULL);
	NULL_ROW(tw_strand_cancel, "strand", NULL, id);
	NULL_ROW(tw_strand_cancel_wait, "strand", NULL, id, 0);
	NULL_ROW(tw_strand_close, "strand", NULL, 0);
	NULL_ROW(tw_strand_stats, "strand", NULL, STRUCT(tw_strand_stats));
	NULL_ROW(tw_strand_stats, "out", strand, NULL);
	NULL_ROW(tw_strand_set_name, "strand", NULL, NULL);
	SMALL_ROW(tw_strand_stats, tw_strand_stats(strand, SMALL(tw_strand_stats)));
	cr_assert_null(tw_strand_executor(NULL));
	BAD_ROW(-EINVAL, tw_strand_create, "executor", &other, manual, &unsound);
}

#define STRAND_ROW(member, ...)                            \
	ROW(-EINVAL, "tw_strand_submit_task: " member BAD, \
	    tw_strand_submit_task(strand, STRUCT(tw_strand_task, __VA_ARGS__), NULL))
#define OF(...) .fn = misuse_fn, __VA_ARGS__

Test(misuse_layers, tasks_of_strands)
{
	int context;
	struct tw_period period = {.size = sizeof period, .period_ns = 1, .first_ns = 1};
	SMALL_ROW(tw_strand_task, tw_strand_submit_task(strand, SMALL(tw_strand_task), NULL));
	STRAND_ROW("tw_strand_task.fn", .arg = NULL);
	STRAND_ROW("tw_strand_task.flags", OF(.flags = 128));
	STRAND_ROW("tw_strand_task.delay_ns", OF(.delay_ns = 1, .period = &period));
	STRAND_ROW("tw_strand_task.context", OF(.context = &context));
	STRAND_ROW("tw_strand_task.reserved", OF(.reserved = 1));
	STRAND_ROW("tw_strand_task.period", OF(.flags = TW_TASK_AT, .period = &period));
	period.period_ns = 0;
	BAD_ROW(-EINVAL, tw_strand_submit_task, "tw_period.period_ns", strand,
		STRUCT(tw_strand_task, OF(.period = &period)), NULL);
	SMALL_ROW(tw_period,
		  tw_strand_submit_task(
		      strand, STRUCT(tw_strand_task, OF(.period = SMALL(tw_period))), NULL));
}

#define RANGE_ROW(function, what, ...) \
	ROW(-ERANGE, #function ": " what BAD, function(strand, __VA_ARGS__))

Test(misuse_layers, times_of_strands)
{
	struct tw_period period = {.size = sizeof period, .period_ns = TOO_LONG};
	tw_strand_task_id id = {7};
	RANGE_ROW(tw_strand_schedule, "delay_ns", TOO_LONG, misuse_fn, NULL, &id);
	expect_eq(id.id, 0);
	RANGE_ROW(tw_strand_submit_task, "delay_ns",
		  STRUCT(tw_strand_task, OF(.delay_ns = TOO_LONG)), NULL);
	RANGE_ROW(tw_strand_submit_task, "delay_ns",
		  STRUCT(tw_strand_task, OF(.delay_ns = UINT64_MAX, .flags = TW_TASK_AT)), NULL);
	RANGE_ROW(tw_strand_submit_task, "tw_period.period_ns",
		  STRUCT(tw_strand_task, OF(.period = &period)), NULL);
}

/* ------------------------------------------------------------------- limiter */

#define LIMITER_ROW(member, ...)                       \
	ROW(-EINVAL, "tw_limiter_create: " member BAD, \
	    tw_limiter_create(&other, manual, STRUCT(tw_limiter_config, __VA_ARGS__)))
#define ONE(...) .max_concurrency = 1, __VA_ARGS__

Test(misuse_layers, limiters)
{
	tw_limiter *other;
	LIMITER_ROW("tw_limiter_config.max_concurrency", .flags = 0);
	LIMITER_ROW("tw_limiter_config.max_concurrency", .max_concurrency = (1u << 30) + 1);
	LIMITER_ROW("tw_limiter_config.flags", ONE(.flags = 4));
	LIMITER_ROW("tw_limiter_config.executor", ONE(.executor = &unsound));
	LIMITER_ROW("tw_limiter_config.max_pending",
		    ONE(.flags = TW_LIMITER_NO_QUEUE, .max_pending = 1));
	LIMITER_ROW("tw_limiter_config.max_pending", ONE(.max_pending = (1u << 28) + 1));
	LIMITER_ROW("tw_limiter_config.rate_interval_ns", ONE(.rate_starts = 1));
	LIMITER_ROW("tw_limiter_config.rate_interval_ns", ONE(.rate_interval_ns = 1));
	LIMITER_ROW("tw_limiter_config.rate_starts",
		    ONE(.rate_starts = (1u << 20) + 1, .rate_interval_ns = 1));
	LIMITER_ROW("tw_limiter_config.rate_interval_ns",
		    ONE(.rate_starts = 1, .rate_interval_ns = TOO_LONG));
	LIMITER_ROW("tw_limiter_config.max_concurrency", .max_concurrency = 64,
		    .executor = tw_pool_executor(pool));
	SMALL_ROW(tw_limiter_config, tw_limiter_create(&other, manual, SMALL(tw_limiter_config)));
	NULL_ROW(tw_limiter_create, "out", NULL, manual, STRUCT(tw_limiter_config));
	NULL_ROW(tw_limiter_create, "service", &other, NULL, STRUCT(tw_limiter_config));
	NULL_ROW(tw_limiter_create, "config", &other, manual, NULL);
	BAD_ROW(-EINVAL, tw_limiter_set_max_concurrency, "max_concurrency", limiter, 0);
	BAD_ROW(-EINVAL, tw_limiter_set_max_concurrency, "max_concurrency", limiter,
		(1u << 30) + 1);
	BAD_ROW(-EINVAL, tw_limiter_close, "mode", limiter, (enum tw_close_mode)3, 0);
}

Test(misuse_layers, rates)
{
	BAD_ROW(-EINVAL, tw_limiter_set_rate, "starts", rated, 0, 1);
	BAD_ROW(-EINVAL, tw_limiter_set_rate, "starts", rated, (1u << 20) + 1, 1);
	BAD_ROW(-EINVAL, tw_limiter_set_rate, "interval_ns", rated, 1, 0);
	BAD_ROW(-EINVAL, tw_limiter_set_rate, "interval_ns", rated, 1, TOO_LONG);
}

Test(misuse_layers, null_limiters)
{
	tw_job none = {0};
	NULL_ROW(tw_limiter_submit, "limiter", NULL, job, NULL, NULL);
	NULL_ROW(tw_limiter_submit, "fn", limiter, NULL, NULL, NULL);
	NULL_ROW(tw_limiter_submit_task, "limiter", NULL, STRUCT(tw_limiter_task, .fn = job), NULL);
	NULL_ROW(tw_limiter_submit_task, "task", limiter, NULL, NULL);
	NULL_ROW(tw_limiter_set_paused, "limiter", NULL, true);
	NULL_ROW(tw_limiter_close, "limiter", NULL, TW_CLOSE_DROP, 0);
	NULL_ROW(tw_limiter_on_idle, "limiter", NULL, idle, NULL);
	NULL_ROW(tw_limiter_on_idle, "fn", limiter, NULL, NULL);
	NULL_ROW(tw_limiter_wait_idle, "limiter", NULL, 0);
	NULL_ROW(tw_limiter_set_max_concurrency, "limiter", NULL, 1);
	NULL_ROW(tw_limiter_stats, "limiter", NULL, STRUCT(tw_limiter_stats));
	NULL_ROW(tw_limiter_stats, "out", limiter, NULL);
	NULL_ROW(tw_job_complete, "limiter", NULL, none, 0, NULL);
	NULL_ROW(tw_job_set_priority, "limiter", NULL, none, 0);
	NULL_ROW(tw_limiter_set_rate, "limiter", NULL, 1, 1);
	NULL_ROW(tw_job_cancel, "limiter", NULL, none);
	NULL_ROW(tw_job_wait, "limiter", NULL, none, 0, NULL);
	NULL_ROW(tw_job_state, "limiter", NULL, none);
	SMALL_ROW(tw_limiter_stats, tw_limiter_stats(limiter, SMALL(tw_limiter_stats)));
}

#define JOB_ROW(error, member, ...)                       \
	ROW(error, "tw_limiter_submit_task: " member BAD, \
	    tw_limiter_submit_task(limiter, STRUCT(tw_limiter_task, __VA_ARGS__), NULL))
#define DO(...) .fn = job, __VA_ARGS__

Test(misuse_layers, jobs)
{
	tw_job waiting;
	JOB_ROW(-EINVAL, "tw_limiter_task.fn", .arg = NULL);
	JOB_ROW(-EINVAL, "tw_limiter_task.flags", DO(.flags = 128));
	JOB_ROW(-EINVAL, "tw_limiter_task.priority", DO(.priority = 32768));
	JOB_ROW(-EINVAL, "tw_limiter_task.priority", DO(.priority = -32769));
	JOB_ROW(-EINVAL, "tw_limiter_task.retry.count", DO(.retry.count = (1u << 30) + 1));
	JOB_ROW(-EINVAL, "tw_limiter_task.retry.factor_x100", DO(.retry.factor_x100 = 99));
	JOB_ROW(-EINVAL, "tw_limiter_task.retry.factor_x100", DO(.retry.factor_x100 = 100001));
	JOB_ROW(-EINVAL, "tw_limiter_task.retry.jitter", DO(.retry.jitter = 2));
	JOB_ROW(-EINVAL, "tw_limiter_task.retry.reserved", DO(.retry.reserved = 1));
	JOB_ROW(-EINVAL, "tw_limiter_task.reserved", DO(.reserved = 1));
	JOB_ROW(-ERANGE, "tw_limiter_task.timeout_ns", DO(.timeout_ns = TOO_LONG));
	JOB_ROW(-ERANGE, "tw_limiter_task.queue_timeout_ns", DO(.queue_timeout_ns = TOO_LONG));
	JOB_ROW(-ERANGE, "tw_limiter_task.attempt_timeout_ns", DO(.attempt_timeout_ns = TOO_LONG));
	JOB_ROW(-ERANGE, "tw_limiter_task.retry.delay_ns", DO(.retry.delay_ns = TOO_LONG));
	JOB_ROW(-ERANGE, "tw_limiter_task.retry.cap_ns", DO(.retry.cap_ns = TOO_LONG));
	JOB_ROW(-ERANGE, "tw_limiter_task.retry.deadline_ns", DO(.retry.deadline_ns = TOO_LONG));
	SMALL_ROW(tw_limiter_task, tw_limiter_submit_task(limiter, SMALL(tw_limiter_task), NULL));
	expect_eq(tw_limiter_set_paused(limiter, true), 0);
	expect_eq(tw_limiter_submit(limiter, job, NULL, &waiting), 0);
	BAD_ROW(-EINVAL, tw_job_set_priority, "priority", limiter, waiting, 32768);
	BAD_ROW(-EINVAL, tw_job_set_priority, "priority", limiter, waiting, -32769);
	BAD_ROW(-EINVAL, tw_job_complete, "error", limiter, waiting, 1, NULL);
	ROW(-EINVAL, "tw_job_complete: the job is synchronous: set TW_LIMITER_TASK_ASYNC",
	    tw_job_complete(limiter, waiting, 0, NULL));
	expect_eq(tw_limiter_close(limiter, TW_CLOSE_DROP, 0), 0);
}

/* ----------------------------------------------------------------- semaphore */

Test(misuse_layers, semaphores)
{
	tw_semaphore *other;
	tw_waiter none = {0};
	NULL_ROW(tw_semaphore_create, "out", NULL, manual, NULL, 1);
	NULL_ROW(tw_semaphore_create, "service", &other, NULL, NULL, 1);
	NULL_ROW(tw_semaphore_acquire, "semaphore", NULL, 1, 0);
	NULL_ROW(tw_semaphore_acquire_async, "semaphore", NULL, 1, misuse_fn, NULL, NULL);
	NULL_ROW(tw_semaphore_acquire_async, "fn", permits, 1, NULL, NULL, NULL);
	BAD_ROW(-EINVAL, tw_semaphore_acquire, "n", permits, 0, 0);
	BAD_ROW(-EINVAL, tw_semaphore_acquire, "n", permits, 2, 0);
	BAD_ROW(-EINVAL, tw_semaphore_acquire_async, "n", permits, -1, misuse_fn, NULL, NULL);
	BAD_ROW(-EINVAL, tw_semaphore_acquire_async, "n", permits, 2, misuse_fn, NULL, NULL);
	BAD_ROW(-EINVAL, tw_semaphore_release, "n", permits, 0);
	NULL_ROW(tw_semaphore_cancel, "semaphore", NULL, none);
	NULL_ROW(tw_semaphore_release, "semaphore", NULL, 1);
	NULL_ROW(tw_semaphore_set_capacity, "semaphore", NULL, 1);
	NULL_ROW(tw_semaphore_stats, "semaphore", NULL, STRUCT(tw_semaphore_stats));
	NULL_ROW(tw_semaphore_stats, "out", permits, NULL);
	NULL_ROW(tw_semaphore_set_name, "semaphore", NULL, NULL);
	SMALL_ROW(tw_semaphore_stats, tw_semaphore_stats(permits, SMALL(tw_semaphore_stats)));
	BAD_ROW(-EINVAL, tw_semaphore_create, "capacity", &other, manual, NULL, -1);
	BAD_ROW(-EINVAL, tw_semaphore_create, "executor", &other, manual, &unsound, 1);
	BAD_ROW(-EINVAL, tw_semaphore_set_capacity, "capacity", permits, -1);
}

/* ---------------------------------------------------------------- simulation */

#define SIM_ROW(member, ...)                       \
	ROW(-EINVAL, "tw_sim_create: " member BAD, \
	    tw_sim_create(&other, STRUCT(tw_sim_config, __VA_ARGS__)))

Test(misuse_layers, simulations)
{
	tw_sim *other;
#define IN_SERVICE(...) STRUCT(tw_service_config, __VA_ARGS__)
	struct tw_service_config *const services[] = {
	    IN_SERVICE(.clock = manual_clock),    IN_SERVICE(.executor = tw_executor_inline()),
	    IN_SERVICE(.drive = TW_DRIVE_MANUAL), IN_SERVICE(.workers = 1),
	    IN_SERVICE(.max_workers = 1),         IN_SERVICE(.seed = 1)};
	struct tw_service_config bad_tick = {.size = sizeof bad_tick, .tick_ns = 1};
	NULL_ROW(tw_sim_create, "out", NULL, NULL);
	NULL_ROW(tw_sim_close, "sim", NULL, TW_CLOSE_DROP);
	NULL_ROW(tw_sim_step, "sim", NULL);
	NULL_ROW(tw_sim_run, "sim", NULL, 0);
	SIM_ROW("tw_sim_config.workers", .workers = 1025);
	SIM_ROW("tw_sim_config.refuse_percent", .refuse_percent = 91);
	SIM_ROW("tw_sim_config.start_ns", .start_ns = UINT64_MAX);
	SIM_ROW("tw_sim_config.max_late_ns", .max_late_ns = TOO_LONG);
	for (size_t i = 0; i < sizeof services / sizeof *services; i++)
		SIM_ROW("tw_sim_config.service", .service = services[i]);
	SMALL_ROW(tw_sim_config, tw_sim_create(&other, SMALL(tw_sim_config)));
	ROW(-EINVAL, "tw_service_create: tw_service_config.tick_ns" BAD,
	    tw_sim_create(&other, STRUCT(tw_sim_config, .service = &bad_tick)));
	BAD_ROW(-EINVAL, tw_sim_close, "mode", sim, TW_CLOSE_DRAIN);
	BAD_ROW(-ERANGE, tw_sim_run, "ns", sim, UINT64_MAX - 1);
}
