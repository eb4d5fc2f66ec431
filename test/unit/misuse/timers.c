/* Misuses of services, timers, groups, clocks and contexts. */
#include <errno.h>
#include <limits.h>
#include <sched.h>

#include "rows.h"

TestSuite(misuse_timers, .init = misuse_open, .fini = misuse_close, .timeout = 60);

#define TOO_LONG (TW_MAX_DELAY_NS + 1)

static int visit(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg, uint64_t remaining_ns)
{
	return 0;
}

Test(misuse_timers, null_services)
{
	tw_timer timer = {0};
	tw_group group = {0};
	uint64_t ns;
	NULL_ROW(tw_service_close, "service", NULL, TW_CLOSE_DROP, 0);
	NULL_ROW(tw_service_advance, "service", NULL, 1);
	NULL_ROW(tw_service_next_expiry, "service", NULL, &ns);
	NULL_ROW(tw_service_fd, "service", NULL);
	NULL_ROW(tw_service_stats, "service", NULL, STRUCT(tw_service_stats));
	NULL_ROW(tw_service_histograms, "service", NULL, STRUCT(tw_service_histograms));
	NULL_ROW(tw_service_liveness, "service", NULL, STRUCT(tw_service_liveness));
	NULL_ROW(tw_service_pool_stats, "service", NULL, STRUCT(tw_pool_stats));
	NULL_ROW(tw_service_foreach, "service", NULL, visit, NULL);
	NULL_ROW(tw_service_dump, "service", NULL, stderr);
	NULL_ROW(tw_service_stats_prometheus, "service", NULL, stderr);
	NULL_ROW(tw_service_validate, "service", NULL, NULL, 0);
	TOLD("tw_service_now: service is NULL", tw_service_now(NULL));
	NULL_ROW(tw_schedule, "service", NULL, 0, misuse_fn, NULL, NULL);
	NULL_ROW(tw_schedule_at, "service", NULL, 0, misuse_fn, NULL, NULL);
	NULL_ROW(tw_schedule_every, "service", NULL, STRUCT(tw_period, .period_ns = 1), misuse_fn,
		 NULL, NULL);
	NULL_ROW(tw_schedule_task, "service", NULL, STRUCT(tw_task, .fn = misuse_fn), NULL);
	NULL_ROW(tw_reset, "service", NULL, timer, 0);
	NULL_ROW(tw_reset_at, "service", NULL, timer, 0);
	NULL_ROW(tw_reset_earlier, "service", NULL, timer, 0);
	NULL_ROW(tw_set_period, "service", NULL, timer, 0);
	NULL_ROW(tw_disarm, "service", NULL, timer);
	NULL_ROW(tw_cancel, "service", NULL, timer);
	NULL_ROW(tw_cancel_wait, "service", NULL, timer, 0);
	NULL_ROW(tw_remaining, "service", NULL, timer, &ns);
	TOLD("tw_is_pending: service is NULL", tw_is_pending(NULL, timer));
	NULL_ROW(tw_group_create, "service", &group, NULL);
	NULL_ROW(tw_group_cancel, "service", NULL, group);
	NULL_ROW(tw_group_cancel_wait, "service", NULL, group, 0);
	NULL_ROW(tw_group_close, "service", NULL, group, misuse_fn, NULL);
	NULL_ROW(tw_group_destroy, "service", NULL, group);
	NULL_ROW(tw_group_stats, "service", NULL, group, STRUCT(tw_group_stats));
}

Test(misuse_timers, null_arguments)
{
	tw_timer timer = {0};
	tw_group group = {0};
	NULL_ROW(tw_service_create, "out", NULL, NULL);
	NULL_ROW(tw_service_next_expiry, "out_ns", manual, NULL);
	NULL_ROW(tw_service_stats, "out", manual, NULL);
	NULL_ROW(tw_service_liveness, "out", manual, NULL);
	NULL_ROW(tw_service_pool_stats, "out", manual, NULL);
	NULL_ROW(tw_service_foreach, "visit", manual, NULL, NULL);
	NULL_ROW(tw_service_dump, "out", manual, NULL);
	NULL_ROW(tw_service_stats_prometheus, "out", manual, NULL);
	NULL_ROW(tw_schedule, "fn", manual, 0, NULL, NULL, NULL);
	NULL_ROW(tw_schedule_at, "fn", manual, 0, NULL, NULL, NULL);
	NULL_ROW(tw_schedule_every, "period", manual, NULL, misuse_fn, NULL, NULL);
	NULL_ROW(tw_schedule_every, "fn", manual, STRUCT(tw_period, .period_ns = 1), NULL, NULL,
		 NULL);
	NULL_ROW(tw_schedule_task, "task", manual, NULL, NULL);
	NULL_ROW(tw_remaining, "out_ns", manual, timer, NULL);
	NULL_ROW(tw_current, "out", NULL);
	NULL_ROW(tw_group_create, "out", NULL, manual);
	NULL_ROW(tw_group_stats, "out", manual, group, NULL);
	NULL_ROW(tw_run_one, "batch", NULL);
	NULL_ROW(tw_clock_manual_create, "out", NULL, 0);
}

Test(misuse_timers, small_structs)
{
	tw_timer timer;
	tw_group group = {0};
	tw_service *other;
	SMALL_ROW(tw_service_config, tw_service_create(&other, SMALL(tw_service_config)));
	SMALL_ROW(tw_service_stats, tw_service_stats(manual, SMALL(tw_service_stats)));
	SMALL_ROW(tw_service_histograms,
		  tw_service_histograms(manual, SMALL(tw_service_histograms)));
	SMALL_ROW(tw_service_liveness, tw_service_liveness(manual, SMALL(tw_service_liveness)));
	SMALL_ROW(tw_pool_stats, tw_service_pool_stats(threaded, SMALL(tw_pool_stats)));
	SMALL_ROW(tw_group_stats, tw_group_stats(manual, group, SMALL(tw_group_stats)));
	SMALL_ROW(tw_run_info, tw_current(SMALL(tw_run_info)));
	SMALL_ROW(tw_task, tw_schedule_task(manual, SMALL(tw_task), &timer));
	SMALL_ROW(tw_period, tw_schedule_every(manual, SMALL(tw_period), misuse_fn, NULL, &timer));
	ROW(-EINVAL, "tw_service_config: size 0 is too small: use TW_INIT(tw_service_config)",
	    tw_service_create(&other, &(struct tw_service_config){.buckets = 64}));
}

struct newer_task {
	struct tw_task task;
	uint64_t unknown;
};

Test(misuse_timers, newer_structs)
{
	struct newer_task newer = {.task = {.size = sizeof newer, .fn = misuse_fn}, .unknown = 1};
	struct {
		struct tw_service_config config;
		uint64_t unknown;
	} config = {.config = {.size = sizeof config}, .unknown = 1};
	char text[128];
	tw_service *other;
	snprintf(text, sizeof text, "tw_task: bytes beyond the %zu known ones are not 0",
		 sizeof newer.task);
	ROW(-E2BIG, text, tw_schedule_task(manual, &newer.task, NULL));
	snprintf(text, sizeof text, "tw_service_config: bytes beyond the %zu known ones are not 0",
		 sizeof config.config);
	ROW(-E2BIG, text, tw_service_create(&other, &config.config));
}

#define CONFIG_ROW(member, ...)                        \
	ROW(-EINVAL, "tw_service_create: " member BAD, \
	    tw_service_create(&other, STRUCT(tw_service_config, __VA_ARGS__)))

Test(misuse_timers, configs)
{
	tw_service *other;
	tw_executor *inlined = tw_executor_inline();
	_Alignas(16) static char no_clock[64];
	CONFIG_ROW("tw_service_config.workers", .executor = inlined, .workers = 1);
	CONFIG_ROW("tw_service_config.workers", .workers = 1025);
	CONFIG_ROW("tw_service_config.max_workers", .workers = 2, .max_workers = 1);
	CONFIG_ROW("tw_service_config.max_workers", .max_workers = 1025);
	CONFIG_ROW("tw_service_config.max_workers", .executor = inlined, .max_workers = 4);
	CONFIG_ROW("tw_service_config.tick_ns", .tick_ns = 49999);
	CONFIG_ROW("tw_service_config.tick_ns", .tick_ns = 1000000001);
	CONFIG_ROW("tw_service_config.buckets", .buckets = 65);
	CONFIG_ROW("tw_service_config.max_timers", .max_timers = (1u << 28) + 1);
	CONFIG_ROW("tw_service_config.lane_entries", .lane_entries = 1023);
	CONFIG_ROW("tw_service_config.drive", .drive = (enum tw_drive)2);
	CONFIG_ROW("tw_service_config.executor", .executor = &unsound);
	CONFIG_ROW("tw_service_config.clock", .clock = (tw_clock *)no_clock);
	CONFIG_ROW("tw_service_config.affinity", .affinity_size = 8);
	CONFIG_ROW("tw_service_config.sched_policy", .sched_policy = 99, .sched_priority = 1);
	CONFIG_ROW("tw_service_config.sched_priority", .sched_priority = 1);
	CONFIG_ROW("tw_service_config.sched_priority", .sched_policy = SCHED_FIFO);
}

/* What only the system can check, when a thread is made. */
Test(misuse_timers, configs_that_the_system_refuses)
{
	static const cpu_set_t none;
	tw_service *other;
	ROW(-EINVAL, "tw_service_create: " SYSTEM_REFUSES,
	    tw_service_create(&other, STRUCT(tw_service_config, .stack_size = 1)));
	ROW(-EINVAL, "tw_service_create: " SYSTEM_REFUSES,
	    tw_service_create(&other, STRUCT(tw_service_config, .affinity = &none,
					     .affinity_size = sizeof none)));
	ROW(-EINVAL, "tw_service_create: " SYSTEM_REFUSES,
	    tw_service_create(&other, STRUCT(tw_service_config, .sched_policy = SCHED_FIFO,
					     .sched_priority = 1000)));
}

#define UNTOUCHED UINT64_C(0x1234567890)
static tw_timer out = {UNTOUCHED};

/*
 * Nothing has changed. Of what is out of range the service knows: it is counted, and the handle is
 * zeroed.
 */
static void expect_refused(const struct tw_service_stats *before, int error)
{
	bool is_counted = error == -ERANGE;
	struct tw_service_stats after = stats_of(manual);
	expect_same_state(before, &after);
	expect_eq(after.rejected, before->rejected + is_counted);
	expect_eq(out.id, is_counted ? 0 : UNTOUCHED);
	out.id = UNTOUCHED;
}

#define REFUSED_ROW(error, text, call)                             \
	do {                                                       \
		struct tw_service_stats before = stats_of(manual); \
		ROW(error, text, call);                            \
		expect_refused(&before, error);                    \
	} while (0)
#define TASK_ROW(error, member, ...)                        \
	REFUSED_ROW(error, "tw_schedule_task: " member BAD, \
		    tw_schedule_task(manual, STRUCT(tw_task, __VA_ARGS__), &out))
#define OF(...) .fn = misuse_fn, __VA_ARGS__
#define AT(...) OF(.flags = TW_TASK_AT, __VA_ARGS__)

static int never_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	return -EAGAIN;
}

Test(misuse_timers, tasks)
{
	static const struct tw_executor_ops no_submit = {.size = sizeof no_submit},
					    small = {.size = sizeof small - 1,
						     .submit = never_submit};
	static tw_executor without = {&no_submit}, older = {&small};
	struct tw_period period = {.size = sizeof period, .period_ns = 1, .count = 1};
	struct tw_period first = {.size = sizeof first, .period_ns = 1, .first_ns = 1};
	int context;
	TASK_ROW(-EINVAL, "tw_task.fn", .arg = NULL);
	TASK_ROW(-EINVAL, "tw_task.flags", OF(.flags = TW_TASK_PERSISTENT << 1));
	TASK_ROW(-EINVAL, "tw_task.flags", OF(.flags = UINT32_MAX));
	TASK_ROW(-EINVAL, "tw_task.reserved", OF(.reserved = 1));
	TASK_ROW(-EINVAL, "tw_task.period", OF(.flags = TW_TASK_BACKGROUND, .period = &period));
	TASK_ROW(-EINVAL, "tw_task.period", OF(.flags = TW_TASK_PERSISTENT, .period = &period));
	TASK_ROW(-EINVAL, "tw_task.period", AT(.period = &first));
	TASK_ROW(-EINVAL, "tw_task.when_ns", OF(.when_ns = 1, .period = &period));
	TASK_ROW(-EINVAL, "tw_task.context", OF(.context = &context));
	TASK_ROW(-EINVAL, "tw_task.executor", OF(.executor = &unsound));
	TASK_ROW(-EINVAL, "tw_task.executor", OF(.executor = &without));
	TASK_ROW(-EINVAL, "tw_task.executor", OF(.executor = &older));
	TASK_ROW(-ERANGE, "tw_task.when_ns", OF(.when_ns = TOO_LONG));
	TASK_ROW(-ERANGE, "tw_task.when_ns", OF(.when_ns = UINT64_MAX - TW_SECOND));
	TASK_ROW(-ERANGE, "tw_task.when_ns", OF(.when_ns = TW_NEVER)); /* not persistent */
	TASK_ROW(-ERANGE, "tw_task.when_ns",
		 OF(.when_ns = TW_NEVER - 1, .flags = TW_TASK_PERSISTENT));
	TASK_ROW(-ERANGE, "tw_task.when_ns", AT(.when_ns = TW_SECOND + TOO_LONG));
	TASK_ROW(-ERANGE, "tw_task.when_ns", AT(.when_ns = UINT64_MAX));
	period.period_ns = TOO_LONG;
	TASK_ROW(-ERANGE, "tw_period.period_ns", OF(.period = &period));
	first.first_ns = TOO_LONG;
	TASK_ROW(-ERANGE, "tw_period.first_ns", OF(.period = &first));
	first.first_ns = UINT64_MAX - TW_SECOND;
	TASK_ROW(-ERANGE, "tw_period.first_ns", OF(.period = &first));
	first.mode = (enum tw_period_mode)2;
	TASK_ROW(-EINVAL, "tw_period.mode", OF(.period = &first));
}

Test(misuse_timers, timers_of_another_kind)
{
	tw_timer timer;
	cr_assert(tw_schedule(manual, 0, misuse_fn, NULL, &timer) == 0);
	ROW(-EINVAL, "tw_disarm: the timer is not persistent: schedule it with TW_TASK_PERSISTENT",
	    tw_disarm(manual, timer));
	ROW(-EINVAL, "tw_set_period: the timer is no series", tw_set_period(manual, timer, 1));
	BAD_ROW(-EINVAL, tw_set_period, "period_ns", manual, timer, 0);
	BAD_ROW(-ERANGE, tw_set_period, "period_ns", manual, timer, TOO_LONG);
	cr_assert(tw_cancel(manual, timer) == TW_CANCELLED);
}

#define PERIOD_ROW(error, member, ...)               \
	REFUSED_ROW(                                 \
	    error, "tw_schedule_every: " member BAD, \
	    tw_schedule_every(manual, STRUCT(tw_period, __VA_ARGS__), misuse_fn, NULL, &out))
#define EVERY(...) .period_ns = 1, __VA_ARGS__

Test(misuse_timers, periods)
{
	PERIOD_ROW(-EINVAL, "tw_period.period_ns", .first_ns = 1);
	PERIOD_ROW(-EINVAL, "tw_period.mode", EVERY(.mode = (enum tw_period_mode)2));
	PERIOD_ROW(-EINVAL, "tw_period.mode", EVERY(.mode = (enum tw_period_mode) - 1));
	PERIOD_ROW(-EINVAL, "tw_period.missed", EVERY(.missed = (enum tw_missed_policy)3));
	PERIOD_ROW(-EINVAL, "tw_period.missed", EVERY(.missed = (enum tw_missed_policy) - 1));
	PERIOD_ROW(-EINVAL, "tw_period.reserved", EVERY(.reserved = 1));
	PERIOD_ROW(-ERANGE, "tw_period.first_ns", EVERY(.first_ns = TOO_LONG));
	PERIOD_ROW(-ERANGE, "tw_period.first_ns", EVERY(.first_ns = UINT64_MAX - TW_SECOND));
	PERIOD_ROW(-ERANGE, "tw_period.period_ns", .period_ns = TOO_LONG);
}

Test(misuse_timers, times_beyond_the_range)
{
	tw_timer armed;
	expect_eq(tw_schedule(manual, 0, misuse_fn, NULL, &armed), 0);
	REFUSED_ROW(-ERANGE, "tw_schedule: delay_ns" BAD,
		    tw_schedule(manual, TOO_LONG, misuse_fn, NULL, &out));
	BAD_ROW(-ERANGE, tw_reset, "delay_ns", manual, armed, TOO_LONG);
	BAD_ROW(-ERANGE, tw_reset_earlier, "delay_ns", manual, armed, TOO_LONG);
	REFUSED_ROW(-ERANGE, "tw_schedule_at: deadline_ns" BAD,
		    tw_schedule_at(manual, UINT64_MAX, misuse_fn, NULL, &out));
	BAD_ROW(-ERANGE, tw_reset_at, "deadline_ns", manual, armed, UINT64_MAX);
}

Test(misuse_timers, drives_and_closes)
{
	uint64_t ns;
	static const char has_thread[] =
	    "the service has a tick thread: set drive to TW_DRIVE_MANUAL";
	char text[128];
	BAD_ROW(-EINVAL, tw_service_advance, "budget", manual, 0);
	BAD_ROW(-EINVAL, tw_service_advance, "budget", manual, (size_t)INT32_MAX + 1);
	BAD_ROW(-EINVAL, tw_service_advance, "budget", manual, SIZE_MAX - 1);
	snprintf(text, sizeof text, "tw_service_advance: %s", has_thread);
	ROW(-EINVAL, text, tw_service_advance(threaded, 1));
	snprintf(text, sizeof text, "tw_service_next_expiry: %s", has_thread);
	ROW(-EINVAL, text, tw_service_next_expiry(threaded, &ns));
	snprintf(text, sizeof text, "tw_service_fd: %s", has_thread);
	ROW(-EINVAL, text, tw_service_fd(threaded));
	ROW(-EINVAL,
	    "tw_service_fd: the service has a manual clock, which no descriptor can wait for",
	    tw_service_fd(manual));
	BAD_ROW(-EINVAL, tw_service_close, "mode", manual, (enum tw_close_mode)3, 0);
	BAD_ROW(-EINVAL, tw_service_close, "mode", manual, (enum tw_close_mode) - 1, 0);
	expect_eq(tw_schedule(manual, 1, misuse_fn, NULL, NULL), 0);
	ROW(-EDEADLK,
	    "tw_service_close: TW_CLOSE_DRAIN would wait for timers on a clock that only the "
	    "caller advances; advance it first",
	    tw_service_close(manual, TW_CLOSE_DRAIN, TW_FOREVER));
}

Test(misuse_timers, completions)
{
	tw_group group;
	expect_eq(tw_group_create(&group, manual), 0);
	expect_eq(tw_group_close(manual, group, misuse_fn, NULL), 0);
	ROW(-EALREADY, "tw_group_close: the group has a completion already",
	    tw_group_close(manual, group, misuse_fn, NULL));
	expect_eq(tw_service_advance(manual, TW_NO_LIMIT), 0);
}

Test(misuse_timers, clocks)
{
	tw_clock *other, *real = tw_clock_monotonic();
	_Alignas(16) static char no_clock[64];
	BAD_ROW(-EINVAL, tw_clock_set_default, "clock", (tw_clock *)no_clock);
	BAD_ROW(-EINVAL, tw_clock_manual_create, "start_ns", &other, (uint64_t)INT64_MAX + 1);
	expect_eq(tw_clock_manual_create(&other, INT64_MAX), 0);
	expect_eq(tw_clock_manual_destroy(other), 0);
	BAD_ROW(-EINVAL, tw_clock_manual_destroy, "clock", real);
	BAD_ROW(-EINVAL, tw_clock_manual_set, "clock", NULL, 0);
	BAD_ROW(-EINVAL, tw_clock_manual_advance_by, "clock", real, 0);
	BAD_ROW(-EINVAL, tw_clock_manual_set, "ns", manual_clock, UINT64_MAX);
	BAD_ROW(-EINVAL, tw_clock_manual_advance_by, "ns", manual_clock, INT64_MAX);
}

static void *no_malloc(void *user, size_t bytes)
{
	return NULL;
}

static void *no_calloc(void *user, size_t n, size_t bytes)
{
	return NULL;
}

Test(misuse_timers, allocators)
{
	SMALL_ROW(tw_allocator, tw_set_allocator(SMALL(tw_allocator)));
	BAD_ROW(-EINVAL, tw_set_allocator, "tw_allocator.malloc",
		STRUCT(tw_allocator, .calloc = no_calloc));
	BAD_ROW(-EINVAL, tw_set_allocator, "tw_allocator.calloc",
		STRUCT(tw_allocator, .malloc = no_malloc));
	BAD_ROW(-EINVAL, tw_set_allocator, "tw_allocator.free",
		STRUCT(tw_allocator, .malloc = no_malloc, .calloc = no_calloc));
}

Test(misuse_timers, histograms)
{
	NULL_ROW(tw_service_histograms, "out", manual, NULL);
}
