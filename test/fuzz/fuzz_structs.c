/*
 * Structs that begin with their size, with anything in them: configs, tasks, periods, options of a
 * close, strands, statistics. Whatever lies behind the size that is given must not be touched (each
 * ends with its own block, which AddressSanitizer guards), what is too short or says what the
 * library does not know is refused by name, what is refused gives nothing, and what is accepted
 * works and ends. Pointers in the structs are left out: a caller's bad pointer is a caller's crash.
 */
#include <errno.h>

#include "test/fuzz/input.h"

#include "tickwheel/layers.h"

static uint64_t seed = 1;

static uint64_t below(uint64_t bound)
{
	return random_below(&seed, bound);
}

struct any {
	unsigned char *at;
	size_t size, known;
	bool unknown; /* something is set behind what the library knows */
};

static uint64_t any_number(void)
{
	switch (below(5)) {
	case 0:
		return below(5);
	case 1:
		return below(5) << 32; /* the other half of two small fields */
	case 2:
		return below(240) << below(56);
	case 3:
		return UINT64_MAX - below(3);
	default:
		return UINT64_C(1) << below(64);
	}
}

/*
 * A block with as many bytes as its first word says. Most of it is 0, because a block full of noise
 * is always refused.
 */
static struct any any_struct(size_t known)
{
	/* no half pointers */
	struct any any = {.known = known, .size = below(3) ? known : 8 * (1 + below(known / 4))};
	any.at = calloc(1, any.size);
	for (uint64_t n = below(4); n > 0 && any.size > 8; n--) {
		size_t at = 8 * (1 + below(any.size / 8 - 1));
		uint64_t number = any_number();
		memcpy(any.at + at, &number, sizeof number);
	}
	if (any.size > known && below(4) == 0) /* a single byte: the last one, too */
		any.at[known + below(any.size - known)] |= 1;
	for (size_t i = known; i < any.size; i++)
		any.unknown |= any.at[i];
	memcpy(any.at, &any.size, sizeof any.size);
	return any;
}

static void set(struct any *any, size_t at, const void *value, size_t bytes)
{
	if (at + bytes <= any->size)
		memcpy(any->at + at, value, bytes);
}
#define SET(any, type, field, ...)                                                 \
	do {                                                                       \
		__typeof__(((struct type *)0)->field) value_ = __VA_ARGS__;        \
		set(&(any), offsetof(struct type, field), &value_, sizeof value_); \
	} while (0)

/* Too short: -EINVAL. More than is known: -E2BIG, before anything else is looked at. */
static void expect_read(const struct any *any, size_t least, int r)
{
	cr_assert(any->size >= least || r == -EINVAL, "%zu bytes were taken for enough: %d",
		  any->size, r);
	cr_assert(any->unknown == (r == -E2BIG), "unknown: %d, answer %d", any->unknown, r);
}

static unsigned runs;

static void count(void *arg)
{
	++*(unsigned *)arg;
}

static struct any any_period(void)
{
	struct any period = any_struct(sizeof(struct tw_period));
	uint64_t period_ns;
	memcpy(&period_ns, period.at + 8, period.size >= 16 ? 8 : 0);
	/* else millions of runs to catch up with */
	if (period.size >= 16 && period_ns < 1u << 16) {
		period_ns <<= 16;
		memcpy(period.at + 8, &period_ns, 8);
	}
	return period;
}

static struct any any_task(void)
{
	struct any task = any_struct(sizeof(struct tw_task));
	SET(task, tw_task, fn, below(8) ? count : NULL);
	SET(task, tw_task, arg, &runs);
	SET(task, tw_task, release, NULL);
	SET(task, tw_task, executor, NULL);
	SET(task, tw_task, context, NULL);
	SET(task, tw_task, group, (tw_group){0});
	return task;
}

static void schedule(tw_service *service)
{
	struct any period = any_period(), task = any_task();
	bool with_period = below(3) == 0, bare = below(3) == 0;
	SET(task, tw_task, period,
	    with_period ? (const struct tw_period *)(void *)period.at : NULL);
	tw_timer timer = {0};
	int r;
	if (bare) {
		r = tw_schedule_every(service, (const struct tw_period *)(void *)period.at, count,
				      &runs, &timer);
		expect_read(&period, offsetof(struct tw_period, mode), r);
	} else {
		r = tw_schedule_task(service, (const struct tw_task *)(void *)task.at, &timer);
		if (!with_period || r != -E2BIG || task.unknown)
			expect_read(&task, offsetof(struct tw_task, when_ns), r);
		if (r == 0 && with_period &&
		    task.size >= offsetof(struct tw_task, period) + sizeof(void *))
			expect_read(&period, offsetof(struct tw_period, mode), r);
	}
	cr_assert(r <= 0, "%d", r);
	cr_assert((r == 0) == (timer.id != 0), "answer %d, handle %llx", r,
		  (unsigned long long)timer.id);
	free(period.at);
	free(task.at);
}

static void use_strand(tw_service *service)
{
	struct any spec = any_struct(sizeof(struct tw_strand_task));
	SET(spec, tw_strand_task, fn, below(8) ? count : NULL);
	SET(spec, tw_strand_task, arg, &runs);
	SET(spec, tw_strand_task, release, NULL);
	SET(spec, tw_strand_task, context, NULL);
	struct any period = any_period();
	bool with_period = below(3) == 0;
	SET(spec, tw_strand_task, period,
	    with_period ? (const struct tw_period *)(void *)period.at : NULL);
	tw_strand *strand = NULL;
	int r = tw_strand_create(&strand, service, NULL);
	if (r == 0) {
		tw_strand_task_id task = {0};
		r = tw_strand_submit_task(strand, (const struct tw_strand_task *)(void *)spec.at,
					  &task);
		if (!with_period || r != -E2BIG || spec.unknown)
			expect_read(&spec, offsetof(struct tw_strand_task, flags), r);
		cr_assert((r == 0) == (task.id != 0), "%d", r);
		cr_assert_eq(tw_strand_destroy(strand), 0);
		/* hands the task over: else close would wait for it */
		cr_assert(tw_service_advance(service, TW_NO_LIMIT) >= 0);
	}
	free(spec.at);
	free(period.at);
}

static void look(tw_service *service)
{
	struct any stats = any_struct(sizeof(struct tw_service_stats));
	size_t size = stats.size;
	int r = tw_service_stats(service, (struct tw_service_stats *)(void *)stats.at);
	cr_assert((r == 0) == (size >= offsetof(struct tw_service_stats, fired)), "%zu bytes: %d",
		  size, r);
	for (size_t i = stats.known; r == 0 && i < size; i++)
		cr_assert(stats.at[i] == 0, "a counter that the library does not know");
	free(stats.at);
}

static void use(tw_service *service, tw_clock *clock)
{
	for (int i = 0; i < 8 && !random_runs_out(); i++) {
		switch (below(5)) {
		case 0:
			use_strand(service);
			break;
		case 1:
			look(service);
			break;
		default:
			schedule(service);
		}
		if (below(4) == 0)
			tw_clock_manual_advance_by(clock, below(1u << 24));
	}
	char why[128] = "";
	cr_assert(tw_service_validate(service, why, sizeof why) == 0, "%s", why);
}

static void end(tw_service *service)
{
	int r = tw_service_close(service, (enum tw_close_mode)below(4), below(1000));
	cr_assert(r <= 0, "%d", r);
	cr_assert_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	cr_assert_eq(tw_service_destroy(service), 0);
}

static void a_service(void)
{
	tw_clock *clock;
	tw_service *service = NULL;
	cr_assert_eq(tw_clock_manual_create(&clock, 1), 0);
	struct any config = any_struct(sizeof(struct tw_service_config));
	SET(config, tw_service_config, clock, clock);
	SET(config, tw_service_config, executor, tw_executor_inline());
	SET(config, tw_service_config, affinity, NULL);
	SET(config, tw_service_config, thread_name, NULL);
	SET(config, tw_service_config, drive, TW_DRIVE_MANUAL);
	SET(config, tw_service_config, max_timers, (uint32_t)below(5000));
	/* One that is too short to name this clock and executor would start threads. */
	bool whole = config.size >= offsetof(struct tw_service_config, executor) + sizeof(void *) &&
		     config.size >= offsetof(struct tw_service_config, clock) + sizeof(void *);
	whole |= config.size < offsetof(struct tw_service_config, buckets);
	if (whole) {
		int r = tw_service_create(&service,
					  (const struct tw_service_config *)(void *)config.at);
		expect_read(&config, offsetof(struct tw_service_config, buckets), r);
		cr_assert((r == 0) == (service != NULL), "%d", r);
	}
	free(config.at);
	if (service) {
		use(service, clock);
		end(service);
	}
	cr_assert_eq(tw_clock_manual_destroy(clock), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	random_feed(data, size);
	seed = 1;
	a_service();
	return 0;
}
