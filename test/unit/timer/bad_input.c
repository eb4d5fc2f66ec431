/* Every function with each argument wrong: the documented error, and nothing changed. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "test/support/rig.h"

TestSuite(timer_bad_input, .timeout = 30);

/* A service with one timer pending; what is refused must leave it as it was. */
struct subject {
	struct rig rig;
	struct probe pending;
	struct probe probe; /* for calls that must fail */
	struct tw_service_stats before;
};

static void open_subject(struct subject *subject)
{
	rig_open(&subject->rig, NULL);
	subject->pending = PROBE(&subject->rig, 1);
	subject->probe = PROBE(&subject->rig, 2);
	probe_schedule(&subject->pending, SECOND);
	rig_advance(&subject->rig, MS);
	subject->before = stats_of(subject->rig.service);
}

static void close_subject(struct subject *subject)
{
	expect_untouched(&subject->before, subject->rig.service);
	rig_advance(&subject->rig, SECOND);
	expect_ran_at(&subject->pending, RIG_START_NS + SECOND);
	expect_eq(subject->probe.runs, 0);
	expect_eq(subject->probe.releases, 0);
	rig_close(&subject->rig);
}

#define UNTOUCHED UINT64_C(0x1234567890)

Test(timer_bad_input, of_schedule)
{
	struct subject s;
	open_subject(&s);
	tw_timer out = {UNTOUCHED};
	expect_eq(tw_schedule(NULL, MS, probe_run, &s.probe, &out), -EINVAL);
	expect_eq(tw_schedule(s.rig.service, MS, NULL, &s.probe, &out), -EINVAL);
	expect_eq(tw_schedule_at(NULL, 0, probe_run, &s.probe, &out), -EINVAL);
	expect_eq(tw_schedule_at(s.rig.service, 0, NULL, &s.probe, &out), -EINVAL);
	expect_eq(out.id, UNTOUCHED);
	close_subject(&s);
}

static int every(struct subject *s, tw_timer *out, const struct tw_period *period)
{
	return tw_schedule_every(s->rig.service, period, probe_run, &s->probe, out);
}

Test(timer_bad_input, of_schedule_every)
{
	struct subject s;
	open_subject(&s);
	tw_timer out = {UNTOUCHED};
	struct tw_period good = rate_of(0, MS, 0), bad;
	expect_eq(tw_schedule_every(NULL, &good, probe_run, &s.probe, &out), -EINVAL);
	expect_eq(tw_schedule_every(s.rig.service, &good, NULL, &s.probe, &out), -EINVAL);
	expect_eq(every(&s, &out, NULL), -EINVAL);
	bad = good;
	bad.period_ns = 0;
	expect_eq(every(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.mode = (enum tw_period_mode)2;
	expect_eq(every(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.mode = (enum tw_period_mode) - 1;
	expect_eq(every(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.missed = (enum tw_missed_policy)3;
	expect_eq(every(&s, &out, &bad), -EINVAL);
	bad.missed = (enum tw_missed_policy) - 1;
	expect_eq(every(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.reserved = 1;
	expect_eq(every(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.size = 0;
	expect_eq(every(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.size = offsetof(struct tw_period, period_ns);
	expect_eq(every(&s, &out, &bad), -EINVAL);
	expect_eq(out.id, UNTOUCHED);
	close_subject(&s);
}

Test(timer_bad_input, of_schedule_every_out_of_range)
{
	struct subject s;
	open_subject(&s);
	tw_timer out = {UNTOUCHED};
	struct tw_period bad = rate_of(TW_MAX_DELAY_NS + 1, MS, 0);
	expect_eq(every(&s, &out, &bad), -ERANGE);
	bad = rate_of(0, TW_MAX_DELAY_NS + 1, 0);
	expect_eq(every(&s, &out, &bad), -ERANGE);
	struct tw_service_stats after = stats_of(s.rig.service);
	expect_same_state(&s.before, &after);
	s.before = after;
	close_subject(&s);
}

static int task(struct subject *s, tw_timer *out, const struct tw_task *bad)
{
	return tw_schedule_task(s->rig.service, bad, out);
}

Test(timer_bad_input, of_schedule_task)
{
	struct subject s;
	open_subject(&s);
	tw_timer out = {UNTOUCHED};
	const struct tw_task good = {
	    .size = sizeof(good),
	    .fn = probe_run,
	    .arg = &s.probe,
	    .when_ns = MS,
	    .release = probe_release,
	};
	struct tw_task bad = good;
	expect_eq(tw_schedule_task(NULL, &good, &out), -EINVAL);
	expect_eq(task(&s, &out, NULL), -EINVAL);
	bad.size = 0;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad.size = sizeof(size_t);
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.fn = NULL;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.flags = TW_TASK_PERSISTENT << 1;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad.flags = UINT32_MAX;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.reserved = 1;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	expect_eq(out.id, UNTOUCHED);
	close_subject(&s);
}

static int never_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	(void)self, (void)batch, (void)n;
	return -EAGAIN;
}

Test(timer_bad_input, of_the_options_of_a_task)
{
	struct subject s;
	open_subject(&s);
	tw_timer out = {UNTOUCHED};
	const struct tw_task good = {
	    .size = sizeof(good), .fn = probe_run, .arg = &s.probe, .release = probe_release};
	struct tw_task bad = good;
	bad.max_lateness_ns = MS;
	bad.late = (enum tw_late_policy)2;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad.late = (enum tw_late_policy) - 1;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.late = TW_LATE_DROP; /* late by how much? */
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad = good;
	bad.reserved_late = 1;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	const struct tw_executor_ops no_submit = {.size = sizeof(no_submit)};
	const struct tw_executor_ops small = {.size = sizeof(small) - 1, .submit = never_submit};
	tw_executor no_ops = {NULL}, without = {&no_submit}, older = {&small};
	tw_executor *const unsound[] = {&no_ops, &without, &older};
	for (int i = 0; i < 3; i++) {
		bad = good;
		bad.executor = unsound[i];
		expect_eq(task(&s, &out, &bad), -EINVAL);
	}
	expect_eq(out.id, UNTOUCHED);
	close_subject(&s);
}

Test(timer_bad_input, of_the_time_of_a_task_out_of_range)
{
	const uint64_t bad[] = {TW_MAX_DELAY_NS + 1, UINT64_MAX - RIG_START_NS, UINT64_MAX};
	struct subject s;
	open_subject(&s);
	struct tw_period period = rate_of(0, MS, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct tw_task t = {
		    .size = sizeof(t), .fn = probe_run, .arg = &s.probe, .release = probe_release};
		tw_timer out = {UNTOUCHED};
		t.when_ns = bad[i];
		expect_eq(task(&s, &out, &t), -ERANGE);
		expect_eq(out.id, 0);
		t.flags = TW_TASK_AT;
		t.when_ns = bad[i] < UINT64_MAX - RIG_START_NS ? RIG_START_NS + bad[i] : UINT64_MAX;
		expect_eq(task(&s, &out, &t), -ERANGE);
		t.flags = 0;
		t.when_ns = 0;
		t.period = &period;
		period.first_ns = bad[i];
		expect_eq(task(&s, &out, &t), -ERANGE);
	}
	struct tw_task longest = {.size = sizeof(longest), .fn = probe_run, .arg = &s.probe};
	longest.when_ns = TW_MAX_DELAY_NS;
	tw_timer out;
	struct tw_service_stats after = stats_of(s.rig.service);
	expect_same_state(&s.before, &after);
	expect_eq(task(&s, &out, &longest), 0);
	expect_eq(tw_cancel(s.rig.service, out), TW_CANCELLED);
	s.before = stats_of(s.rig.service);
	close_subject(&s);
}

Test(timer_bad_input, of_a_task_that_is_a_series)
{
	struct subject s;
	open_subject(&s);
	tw_timer out = {UNTOUCHED};
	struct tw_period period = rate_of(MS, MS, 0);
	struct tw_task bad = {
	    .size = sizeof(bad), .fn = probe_run, .arg = &s.probe, .period = &period};
	bad.when_ns = MS; /* a series takes its first delay from the period */
	expect_eq(task(&s, &out, &bad), -EINVAL);
	bad.when_ns = RIG_START_NS + SECOND;
	bad.flags = TW_TASK_AT; /* and its first deadline from the task, but not both */
	expect_eq(task(&s, &out, &bad), -EINVAL);
	period = rate_of(0, 0, 0);
	expect_eq(task(&s, &out, &bad), -EINVAL);
	period = rate_of(0, MS, 0);
	period.mode = (enum tw_period_mode)7;
	expect_eq(task(&s, &out, &bad), -EINVAL);
	expect_eq(out.id, UNTOUCHED);
	close_subject(&s);
}

struct newer_task {
	struct tw_task known;
	unsigned char tail[64];
};

Test(timer_bad_input, of_a_task_with_options_that_the_library_does_not_know)
{
	struct subject s;
	open_subject(&s);
	tw_timer out = {UNTOUCHED};
	struct newer_task newer;
	memset(&newer, 0, sizeof(newer));
	newer.known.size = sizeof(newer);
	newer.known.fn = probe_run;
	newer.known.arg = &s.probe;
	newer.tail[63] = 1;
	expect_eq(task(&s, &out, &newer.known), -E2BIG);
	newer.tail[63] = 0;
	newer.tail[0] = 1;
	expect_eq(task(&s, &out, &newer.known), -E2BIG);
	expect_eq(out.id, UNTOUCHED);
	expect_untouched(&s.before, s.rig.service);
	newer.tail[0] = 0;
	expect_eq(task(&s, &out, &newer.known), 0);
	expect_eq(tw_cancel(s.rig.service, out), TW_CANCELLED);
	s.before = stats_of(s.rig.service);
	close_subject(&s);
}

Test(timer_bad_input, of_the_calls_on_handles)
{
	struct subject s;
	open_subject(&s);
	uint64_t left_ns = UNTOUCHED;
	tw_timer timer = s.pending.timer;
	expect_eq(tw_reset(NULL, timer, MS), -EINVAL);
	expect_eq(tw_reset_at(NULL, timer, MS), -EINVAL);
	expect_eq(tw_cancel(NULL, timer), -EINVAL);
	expect_eq(tw_cancel_wait(NULL, timer, 0), -EINVAL);
	expect_eq(tw_is_pending(NULL, timer), false);
	expect_eq(tw_remaining(NULL, timer, &left_ns), -EINVAL);
	expect_eq(left_ns, UNTOUCHED);
	expect_eq(tw_remaining(s.rig.service, timer, NULL), -EINVAL);
	close_subject(&s);
}

Test(timer_bad_input, of_the_calls_on_the_service)
{
	struct subject s;
	open_subject(&s);
	expect_eq(tw_service_close(NULL, TW_CLOSE_DROP, 0), -EINVAL);
	expect_eq(tw_service_close(s.rig.service, (enum tw_close_mode)17, 0), -EINVAL);
	expect_eq(tw_service_now(NULL), 0);
	expect_eq(tw_service_advance(NULL, 1), -EINVAL);
	expect_eq(tw_service_advance(s.rig.service, 0), -EINVAL);
	expect_eq(tw_service_advance(s.rig.service, (size_t)INT32_MAX + 1), -EINVAL);
	expect_eq(tw_service_advance(s.rig.service, SIZE_MAX - 1), -EINVAL);
	close_subject(&s);
}

static int visit_nothing(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg,
			 uint64_t remaining_ns)
{
	(void)arg, (void)timer, (void)fn, (void)timer_arg, (void)remaining_ns;
	return 0;
}

Test(timer_bad_input, of_the_calls_that_look_inside)
{
	struct subject s;
	open_subject(&s);
	struct tw_service_stats stats = {.size = sizeof(stats)};
	char why[8] = "";
	expect_eq(tw_service_stats(NULL, &stats), -EINVAL);
	expect_eq(tw_service_stats(s.rig.service, NULL), -EINVAL);
	expect_eq(tw_service_stats_print(NULL, stderr), -EINVAL);
	expect_eq(tw_service_stats_print(&stats, NULL), -EINVAL);
	expect_eq(tw_service_foreach(NULL, visit_nothing, NULL), -EINVAL);
	expect_eq(tw_service_foreach(s.rig.service, NULL, NULL), -EINVAL);
	expect_eq(tw_service_dump(NULL, stderr), -EINVAL);
	expect_eq(tw_service_dump(s.rig.service, NULL), -EINVAL);
	expect_eq(tw_service_validate(NULL, why, sizeof(why)), -EINVAL);
	close_subject(&s);
}

/* A service with a tick thread is not driven by hand. */
Test(timer_bad_input, of_advance_where_there_is_a_tick_thread)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	struct rig rig;
	rig_open(&rig, &cfg);
	expect_eq(tw_service_advance(rig.service, 1), -EINVAL);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), -EINVAL);
	rig_close(&rig);
}
