/* What is badly made is refused with the documented error: nothing changes, nor does the handle. */
#include <errno.h>
#include <stddef.h>

#include "test/support/rig_suite.h"

static struct probe pending, refused;
static struct tw_service_stats before;

#define UNTOUCHED UINT64_C(0x1234567890)
static tw_timer out = {UNTOUCHED};

/* One timer is pending; what is refused must leave it as it was. */
static void open_subject(void)
{
	open_rig();
	pending = PROBE(&rig, 1);
	refused = PROBE(&rig, 2);
	probe_schedule(&pending, SECOND);
	rig_advance(&rig, MS);
	before = stats_of(rig.service);
}

static void close_subject(void)
{
	expect_in_fini();
	struct tw_service_stats after = stats_of(rig.service);
	expect_same_state(&before, &after);
	rig_advance(&rig, SECOND);
	expect_ran_at(&pending, RIG_START_NS + SECOND);
	expect_eq(refused.runs + refused.releases, 0);
	close_rig();
}

TestSuite(timer_bad_input, .init = open_subject, .fini = close_subject, .timeout = 30);

/* Bad arguments are not counted as rejected; what is out of range is, and the handle is zeroed. */
static void expect_refused(const char *name, int answer, int wanted)
{
	cr_assert(answer == wanted, "%s: %d, not %d", name, answer, wanted);
	struct tw_service_stats after = stats_of(rig.service);
	before.rejected += wanted == -ERANGE;
	cr_assert(after.rejected == before.rejected, "%s: rejected", name);
	cr_assert(out.id == (wanted == -ERANGE ? 0 : UNTOUCHED), "%s: the handle", name);
	out.id = UNTOUCHED;
}

#define SIZE sizeof(struct tw_period)
#define PERIOD(...)                                                            \
	{                                                                      \
		.size = sizeof(struct tw_period), .period_ns = MS, __VA_ARGS__ \
	}

Test(timer_bad_input, of_a_period)
{
	static const struct {
		const char *name;
		struct tw_period period;
		int wanted;
	} rows[] = {
	    {"no period", {.size = SIZE}, -EINVAL},
	    {"mode above", PERIOD(.mode = (enum tw_period_mode)2), -EINVAL},
	    {"mode below", PERIOD(.mode = (enum tw_period_mode) - 1), -EINVAL},
	    {"missed above", PERIOD(.missed = (enum tw_missed_policy)3), -EINVAL},
	    {"missed below", PERIOD(.missed = (enum tw_missed_policy) - 1), -EINVAL},
	    {"reserved", PERIOD(.reserved = 1), -EINVAL},
	    {"size 0", {.period_ns = MS}, -EINVAL},
	    {"small", {.size = offsetof(struct tw_period, period_ns), .period_ns = MS}, -EINVAL},
	    {"first too far", PERIOD(.first_ns = TW_MAX_DELAY_NS + 1), -ERANGE},
	    {"first beyond the clock", PERIOD(.first_ns = UINT64_MAX - RIG_START_NS), -ERANGE},
	    {"period too long", {.size = SIZE, .period_ns = TW_MAX_DELAY_NS + 1}, -ERANGE},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tw_task task = probe_task(&refused);
		task.period = &rows[i].period;
		expect_refused(
		    rows[i].name,
		    tw_schedule_every(rig.service, &rows[i].period, probe_run, &refused, &out),
		    rows[i].wanted);
		expect_refused(rows[i].name, tw_schedule_task(rig.service, &task, &out),
			       rows[i].wanted);
	}
}

static int never_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	(void)self, (void)batch, (void)n;
	return -EAGAIN;
}

#define TASK(...)                                                                 \
	{                                                                         \
		.size = sizeof(struct tw_task), .fn = probe_run, .arg = &refused, \
		.release = probe_release, __VA_ARGS__                             \
	}

Test(timer_bad_input, of_a_task)
{
	static const struct tw_executor_ops no_submit = {.size = sizeof no_submit},
					    small = {.size = sizeof small - 1,
						     .submit = never_submit};
	static tw_executor no_ops = {NULL}, without = {&no_submit}, older = {&small};
	static const struct tw_period every = PERIOD(.first_ns = MS), once = PERIOD(.count = 1);
	static const uint64_t beyond_ns = RIG_START_NS + TW_MAX_DELAY_NS + 1;
	const struct {
		const char *name;
		struct tw_task task;
		int wanted;
	} rows[] = {
	    {"size 0", {.fn = probe_run}, -EINVAL},
	    {"small", {.size = sizeof(size_t), .fn = probe_run}, -EINVAL},
	    {"no function", {.size = sizeof(struct tw_task)}, -EINVAL},
	    {"a flag", TASK(.flags = TW_TASK_PERSISTENT << 1), -EINVAL},
	    {"all flags", TASK(.flags = UINT32_MAX), -EINVAL},
	    {"reserved", TASK(.reserved = 1), -EINVAL},
	    {"executor without ops", TASK(.executor = &no_ops), -EINVAL},
	    {"executor without submit", TASK(.executor = &without), -EINVAL},
	    {"executor too small", TASK(.executor = &older), -EINVAL},
	    {"series with a delay", TASK(.period = &every, .when_ns = MS), -EINVAL},
	    {"series with two beginnings",
	     TASK(.period = &every, .when_ns = RIG_START_NS + SECOND, .flags = TW_TASK_AT),
	     -EINVAL},
	    {"background series with an end", TASK(.period = &once, .flags = TW_TASK_BACKGROUND),
	     -EINVAL},
	    {"persistent series", TASK(.period = &every, .flags = TW_TASK_PERSISTENT), -EINVAL},
	    {"delay too long", TASK(.when_ns = TW_MAX_DELAY_NS + 1), -ERANGE},
	    {"delay beyond the clock", TASK(.when_ns = UINT64_MAX - RIG_START_NS), -ERANGE},
	    {"never, but not persistent", TASK(.when_ns = TW_NEVER), -ERANGE},
	    {"persistent, and nearly never",
	     TASK(.when_ns = TW_NEVER - 1, .flags = TW_TASK_PERSISTENT), -ERANGE},
	    {"instant too far", TASK(.when_ns = beyond_ns, .flags = TW_TASK_AT), -ERANGE},
	    {"last instant of the clock", TASK(.when_ns = UINT64_MAX, .flags = TW_TASK_AT),
	     -ERANGE},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		expect_refused(rows[i].name, tw_schedule_task(rig.service, &rows[i].task, &out),
			       rows[i].wanted);
}

Test(timer_bad_input, of_a_task_with_options_that_the_library_does_not_know)
{
	struct {
		struct tw_task known;
		unsigned char tail[64];
	} newer = {.known = TASK(.when_ns = MS), .tail = {[63] = 1}};
	newer.known.size = sizeof newer;
	expect_refused("last byte", tw_schedule_task(rig.service, &newer.known, &out), -E2BIG);
	newer.tail[63] = 0;
	newer.tail[0] = 1;
	expect_refused("first byte", tw_schedule_task(rig.service, &newer.known, &out), -E2BIG);
	newer.tail[0] = 0;
	newer.known.release = NULL;
	expect_eq(tw_schedule_task(rig.service, &newer.known, &out), 0);
	expect_eq(tw_cancel(rig.service, out), TW_CANCELLED);
	before = stats_of(rig.service);
}

#define REFUSED(call) expect_refused(#call, call, -EINVAL)

/* test/unit/misuse has a row for each call with a bad argument; here are more values. */
Test(timer_bad_input, of_other_calls)
{
	REFUSED(tw_disarm(rig.service, pending.timer)); /* which is not persistent */
	REFUSED(tw_service_advance(rig.service, (size_t)INT32_MAX + 1));
	REFUSED(tw_service_advance(rig.service, SIZE_MAX - 1));
	REFUSED(tw_service_close(rig.service, (enum tw_close_mode)17, 0));
	REFUSED(tw_service_close(rig.service, (enum tw_close_mode) - 1, 0));
	tw_service *service = rig.service;
	expect_refused("delay too long",
		       tw_schedule(service, TW_MAX_DELAY_NS + 1, probe_run, &refused, &out),
		       -ERANGE);
	expect_refused("deadline too far",
		       tw_schedule_at(service, UINT64_MAX, probe_run, &refused, &out), -ERANGE);
	expect_eq(tw_reset(rig.service, pending.timer, UINT64_MAX), -ERANGE);
	expect_eq(tw_reset_at(rig.service, pending.timer, UINT64_MAX), -ERANGE);
	expect_eq(tw_reset_earlier(rig.service, pending.timer, TW_MAX_DELAY_NS + 1), -ERANGE);
	expect_eq(tw_reset_earlier_at(rig.service, pending.timer, UINT64_MAX), -ERANGE);
}
