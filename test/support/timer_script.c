/* The verbs of timers' scripts. */
#include "timer_script.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "current.h"

enum { TIMERS = 64, GROUPS = 8 };

struct timer {
	tw_timer id;
	uint64_t stays_ns;
	const char *in_run, *in_release;
	int64_t times; /* runs in which the calls are made */
	bool has_release, is_silent;
	atomic_int returned, releases;
};

struct group {
	tw_group id;
	const char *at_end;
};

static struct {
	struct rig rig;
	struct queue_executor queue;
	struct timer timers[TIMERS];
	struct group groups[GROUPS];
} all;

static void open_timers(const struct words *given)
{
	memset(&all, 0, sizeof all);
	queue_executor_open(&all.queue);
	struct tw_service_config service = script_service(given);
	uint32_t workers = (uint32_t)option_of(given, "workers", 0);
	if (workers) {
		service.executor = NULL;
		service.workers = service.max_workers = workers;
	}
	if (!has_word(given, "real")) {
		rig_open(&all.rig, &service);
		return;
	}
	service.drive = has_word(given, "by_hand") ? TW_DRIVE_MANUAL : TW_DRIVE_THREAD;
	rig_open_real(&all.rig, service);
}

static void close_timers(void)
{
	rig_close(&all.rig);
	queue_executor_close(&all.queue);
	for (int i = 0; i < TIMERS; i++)
		expect_eq(all.timers[i].releases, all.timers[i].has_release);
}

static void run(void *arg)
{
	struct timer *timer = arg;
	struct tw_run_info info = current_run();
	char more[64] = "";
	int n = 0;
	if (info.late_ns >= MS && !all.rig.is_real)
		n += snprintf(more + n, sizeof more - (size_t)n, " late=%lld",
			      (long long)(info.late_ns / MS));
	if (info.overruns && !all.rig.is_real)
		n +=
		    snprintf(more + n, sizeof more - (size_t)n, " overruns=%d", (int)info.overruns);
	if (!timer->is_silent)
		say("run %d%s%s", (int)(timer - all.timers), more, info.closing ? " closing" : "");
	if (timer->stays_ns)
		tw_clock_manual_set(all.rig.clock, rig_now(&all.rig) + timer->stays_ns);
	if (timer->in_run && timer->times-- > 0)
		play_calls(timer->in_run);
	timer->returned++;
}

static void release(void *arg, enum tw_fate fate)
{
	static const char *const fates[] = {[TW_FATE_FIRED] = "fired",
					    [TW_FATE_CANCELLED] = "cancelled",
					    [TW_FATE_DROPPED] = "dropped"};
	struct timer *timer = arg;
	if (!timer->is_silent)
		say("%d %s", (int)(timer - all.timers), fates[fate]);
	play_calls(timer->in_release);
	timer->releases++;
}

static uint64_t instant_of(const struct words *words)
{
	return RIG_START_NS + (uint64_t)option_of(words, "at", 0) * MS;
}

static bool has_option(const struct words *words, const char *name)
{
	return option_of(words, name, INT64_MIN) != INT64_MIN;
}

static uint32_t flags_of(const struct words *words)
{
	return (has_option(words, "at") ? TW_TASK_AT : 0u) |
	       (has_word(words, "persistent") ? TW_TASK_PERSISTENT : 0u) |
	       (has_word(words, "background") ? TW_TASK_BACKGROUND : 0u) |
	       (has_option(words, "named") ? TW_TASK_CONTEXT : 0u);
}

static int schedule_one(const struct words *words, struct timer *timer)
{
	struct tw_period period = {.size = sizeof period,
				   .period_ns = ms_of(words, "every"),
				   .first_ns = ms_of(words, "first"),
				   .count = (uint64_t)option_of(words, "count", 0),
				   .mode =
				       has_word(words, "delayed") ? TW_FIXED_DELAY : TW_FIXED_RATE,
				   .missed = has_word(words, "coalesce") ? TW_MISSED_COALESCE
					     : has_word(words, "burst")  ? TW_MISSED_BURST
									 : TW_MISSED_SKIP};
	struct tw_task task = {.size = sizeof task,
			       .fn = run,
			       .arg = timer,
			       .when_ns = has_word(words, "never")  ? TW_NEVER
					  : has_option(words, "at") ? instant_of(words)
								    : ms_of(words, "in"),
			       .flags = flags_of(words),
			       .context = script_context(option_of(words, "named", 0)),
			       .period = period.period_ns ? &period : NULL,
			       .release = has_word(words, "plain") ? NULL : release,
			       .executor = has_word(words, "other") ? &all.queue.base : NULL};
	if (has_option(words, "group"))
		task.group = all.groups[option_of(words, "group", 0)].id;
	int r = tw_schedule_task(all.rig.service, &task, &timer->id);
	timer->has_release = !r && task.release;
	return r;
}

static void timer(const struct words *words)
{
	EACH_NUMBER (words, n) {
		all.timers[n] = (struct timer){.stays_ns = ms_of(words, "stays"),
					       .times = option_of(words, "times", 1),
					       .is_silent = has_word(words, "silent"),
					       .in_run = words->in_run,
					       .in_release = words->in_release};
		say_answer(schedule_one(words, &all.timers[n]));
	}
}

static void say_reset(int answer)
{
	if (answer == TW_RESET_KEPT)
		say("KEPT");
	else
		say_answer(answer);
}

static void reset(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_reset(has_option(words, "at")
			      ? tw_reset_at(all.rig.service, all.timers[n].id, instant_of(words))
			      : tw_reset(all.rig.service, all.timers[n].id, ms_of(words, "by")));
}

static void earlier(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_reset(tw_reset_earlier(all.rig.service, all.timers[n].id, ms_of(words, "by")));
}

static void set_period(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_answer(tw_set_period(all.rig.service, all.timers[n].id, ms_of(words, "to")));
}

static void cancel(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_cancel(all.rig.service, all.timers[n].id));
}

static uint64_t within(const struct words *words)
{
	return has_option(words, "within") ? ms_of(words, "within") : TW_FOREVER;
}

static void cancel_wait(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_cancel_wait(all.rig.service, all.timers[n].id, within(words)));
}

static void disarm(const struct words *words)
{
	EACH_NUMBER (words, n) {
		int outcome = tw_disarm(all.rig.service, all.timers[n].id);
		if (outcome == TW_DISARMED)
			say("DISARMED");
		else
			say_outcome(outcome);
	}
}

static void left(const struct words *words)
{
	EACH_NUMBER (words, n) {
		uint64_t ns;
		int r = tw_remaining(all.rig.service, all.timers[n].id, &ns);
		expect_eq(tw_is_pending(all.rig.service, all.timers[n].id), r == 0);
		if (r)
			say_answer(r);
		else
			say("left %lld", (long long)(ns / MS));
	}
}

static void self(const struct words *words)
{
	tw_timer is = tw_self();
	for (int n = 0; n < TIMERS && is.id; n++)
		if (all.timers[n].id.id == is.id) {
			say("self %d", n);
			return;
		}
	say("self none");
}

static void group(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_answer(tw_group_create(&all.groups[n].id, all.rig.service));
}

static void group_cancel(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_answer(tw_group_cancel(all.rig.service, all.groups[n].id));
}

static void group_wait(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_group_cancel_wait(all.rig.service, all.groups[n].id, within(words)));
}

static void group_close(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_answer(tw_group_close(all.rig.service, all.groups[n].id, NULL, NULL));
}

static void group_destroy(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_answer(tw_group_destroy(all.rig.service, all.groups[n].id));
}

static void end_group(void *arg)
{
	struct group *ended = arg;
	struct tw_run_info info = {.size = sizeof info};
	expect_eq(tw_current(&info), 0);
	expect_eq(tw_self().id, 0);
	say("done %d", (int)(ended - all.groups));
	play_calls(ended->at_end);
}

static void then(const struct words *words)
{
	struct group *ended = &all.groups[words->number[0]];
	ended->at_end = words->in_run;
	say_answer(tw_group_close(all.rig.service, ended->id, end_group, ended));
}

static void members(const struct words *words)
{
	EACH_NUMBER (words, n) {
		struct tw_group_stats stats = {.size = sizeof stats};
		int r = tw_group_stats(all.rig.service, all.groups[n].id, &stats);
		if (r)
			say_answer(r);
		else if (stats.running)
			say("members=%d running=%d", (int)stats.members, (int)stats.running);
		else
			say("members=%d", (int)stats.members);
	}
}

static void close_now(const struct words *words)
{
	enum tw_close_mode mode = has_word(words, "run")     ? TW_CLOSE_RUN
				  : has_word(words, "drain") ? TW_CLOSE_DRAIN
							     : TW_CLOSE_DROP;
	uint64_t timeout_ns = words->numbers ? (uint64_t)words->number[0] * MS : TW_FOREVER;
	say_answer(tw_service_close(all.rig.service, mode, timeout_ns));
}

static void over(const struct words *words)
{
	EACH_NUMBER (words, n)
		while (!all.timers[n].returned ||
		       all.timers[n].releases < all.timers[n].has_release)
			sched_yield();
}

static void ran(const struct words *words)
{
	while (all.timers[words->number[0]].returned < words->number[1])
		sched_yield();
}

static void nothing(void *arg)
{
}

static void until_closed(const struct words *words)
{
	tw_timer timer;
	while (tw_schedule(all.rig.service, DAY, nothing, NULL, &timer) == 0) {
		tw_cancel(all.rig.service, timer);
		sched_yield();
	}
}

static void destroy(const struct words *words)
{
	say_answer(tw_service_destroy(all.rig.service));
}

static void move_clock(const struct words *words)
{
	say_answer(tw_clock_manual_advance_by(all.rig.clock, MS));
}

static void poll_once(const struct words *words)
{
	size_t budget = words->numbers ? (size_t)words->number[0] : TW_NO_LIMIT;
	say_answer(tw_service_advance(all.rig.service, budget));
}

static void say_expiry(const struct words *words)
{
	uint64_t at_ns;
	int r = tw_service_next_expiry(all.rig.service, &at_ns);
	if (r)
		say_answer(r);
	else if (at_ns == UINT64_MAX)
		say("never");
	else if (at_ns <= tw_service_now(all.rig.service))
		say("now");
	else
		say("next %lld", (long long)((at_ns - RIG_START_NS) / MS));
}

static void validate(const struct words *words)
{
	say_answer(tw_service_validate(all.rig.service, NULL, 0));
}

#define GAUGE(name) GAUGE_OF(tw_service_stats, name)

static const struct gauge gauges_of_service[] = {
    GAUGE(scheduled),    GAUGE(pending),  GAUGE(disarmed),     GAUGE(fired),    GAUGE(cancelled),
    GAUGE(dropped),      GAUGE(rejected), GAUGE(runs),         GAUGE(overruns), GAUGE(resets),
    GAUGE(resets_eager), GAUGE(entries),  GAUGE(dead_entries), GAUGE(threads),  {NULL, 0},
};

static void say_stats(const struct words *words)
{
	struct tw_service_stats stats = stats_of(all.rig.service);
	say_gauges(words, gauges_of_service, &stats);
}

static const struct verb verbs[] = {
    {"timer", timer},
    {"reset", reset},
    {"earlier", earlier},
    {"period", set_period},
    {"cancel", cancel},
    {"cancel_wait", cancel_wait},
    {"disarm", disarm},
    {"left", left},
    {"self", self},
    {"group", group},
    {"group_cancel", group_cancel},
    {"group_wait", group_wait},
    {"group_close", group_close},
    {"group_destroy", group_destroy},
    {"then", then},
    {"members", members},
    {"close", close_now},
    {"over", over},
    {"ran", ran},
    {"until_closed", until_closed},
    {"destroy", destroy},
    {"move_clock", move_clock},
    {"poll", poll_once},
    {"expiry", say_expiry},
    {"validate", validate},
    {"stats", say_stats},
    {NULL, NULL},
};

const struct stage timer_stage = {
    .open = open_timers,
    .close = close_timers,
    .rig = &all.rig,
    .queue = &all.queue,
    .verbs = verbs,
};
