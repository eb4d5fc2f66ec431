/*
 * Structs that begin with their size, filled with anything: configs, tasks, periods, options of a close, pools. Whatever lies behind
 * the size that is given must not be read (each lies at the end of its own block), what is refused gives nothing, and what is
 * accepted works and ends. Pointers in the structs are left out: a caller's bad pointer is a caller's crash.
 */
#include <errno.h>

#include "test/fuzz/input.h"

#include "tickwheel.h"

static uint64_t seed = 1;

static uint64_t below(uint64_t bound)
{
	return random_below(&seed, bound);
}

/* A block of just `size` bytes whose first word says so, more or less; the rest are the fuzzer's. */
static void *any_struct(size_t whole)
{
	size_t size = below(4) ? whole : 8 * (1 + below(whole / 4)); /* no half pointers */
	unsigned char *block = calloc(1, size);
	for (size_t i = sizeof size; i < size; i++)
		block[i] = below(3) ? 0 : (unsigned char)below(256);
	memcpy(block, &size, sizeof size);
	return block;
}

static void set_pointer(void *block, size_t at, const void *pointer)
{
	size_t size;
	memcpy(&size, block, sizeof size);
	if (at + sizeof pointer <= size)
		memcpy((char *)block + at, &pointer, sizeof pointer);
}
#define SET_POINTER(block, type, field, value) set_pointer(block, offsetof(struct type, field), value)

static void set_number(void *block, size_t at, uint32_t number)
{
	size_t size;
	memcpy(&size, block, sizeof size);
	if (at + sizeof number <= size)
		memcpy((char *)block + at, &number, sizeof number);
}

static void count(void *arg)
{
	++*(unsigned *)arg;
}

static void use(tw_service *service, tw_clock *clock)
{
	static unsigned runs;
	for (int i = 0; i < 8; i++) {
		tw_timer timer = {0};
		int r;
		if (below(3) == 0) {
			struct tw_period *period = any_struct(sizeof(struct tw_period));
			r = tw_schedule_every(service, period, count, &runs, &timer);
			free(period);
		} else {
			struct tw_task *task = any_struct(sizeof(struct tw_task));
			SET_POINTER(task, tw_task, fn, below(8) ? (const void *)(uintptr_t)count : NULL);
			SET_POINTER(task, tw_task, arg, &runs);
			SET_POINTER(task, tw_task, release, NULL);
			SET_POINTER(task, tw_task, executor, NULL);
			SET_POINTER(task, tw_task, period, NULL);
			r = tw_schedule_task(service, task, &timer);
			free(task);
		}
		cr_assert(r <= 0, "%d", r);
		cr_assert((r == 0) == (timer.id != 0), "answer %d, handle %llx", r, (unsigned long long)timer.id);
		if (below(4) == 0)
			tw_clock_manual_advance_by(clock, below(1u << 24));
	}
	char why[128] = "";
	cr_assert(tw_validate(service, why, sizeof why) == 0, "%s", why);
}

static void a_service(void)
{
	tw_clock *clock;
	tw_service *service = NULL;
	cr_assert_eq(tw_clock_manual_create(&clock, 1), 0);
	struct tw_service_config *config = any_struct(sizeof(struct tw_service_config));
	SET_POINTER(config, tw_service_config, clock, clock);
	SET_POINTER(config, tw_service_config, executor, tw_executor_inline());
	SET_POINTER(config, tw_service_config, affinity, NULL);
	SET_POINTER(config, tw_service_config, thread_name, NULL);
	SET_POINTER(config, tw_service_config, on_stuck, NULL);
	set_number(config, offsetof(struct tw_service_config, drive), TW_DRIVE_MANUAL);
	set_number(config, offsetof(struct tw_service_config, max_timers), (uint32_t)below(5000));
	size_t size;
	memcpy(&size, config, sizeof size);
	bool whole = size >= offsetof(struct tw_service_config, executor) + sizeof(void *) &&
		     size >= offsetof(struct tw_service_config, clock) + sizeof(void *);
	int r = whole ? tw_service_create(&service, config) : -EINVAL;
	cr_assert((r == 0) == (service != NULL), "%d", r);
	free(config);
	if (service) {
		use(service, clock);
		struct tw_close_options *options = any_struct(sizeof(struct tw_close_options));
		SET_POINTER(options, tw_close_options, dropped, NULL);
		SET_POINTER(options, tw_close_options, timeout_ns, (const void *)(uintptr_t)below(1000));
		cr_assert(tw_service_close_with(service, options) <= 0);
		free(options);
		cr_assert_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
		cr_assert_eq(tw_service_destroy(service), 0);
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
