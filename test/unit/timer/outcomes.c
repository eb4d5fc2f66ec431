/*
 * What each call on a handle answers at each moment of a timer's life, as a table; and what becomes
 * of the timer afterwards.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "test/support/persistent_suite.h"
#include "test/support/rig_suite.h"

TestSuite(timer_outcomes, .init = open_rig, .fini = close_rig, .timeout = 60);

enum kind { PLAIN, RELEASED, SERIES, PERSISTENT, PERSISTENT_RELEASED, KINDS };

enum call {
	LOOK, /* whether all that tell of timers agree */
	REMAINING,
	CANCEL,
	CANCEL_WAIT,
	CANCEL_GROUP,
	RESET,
	RESET_AT,
	EARLIER,
	DISARM,
	CALLS
};

/* What a look finds. */
enum { ENDED, IS_ARMED, IS_DISARMED, RUNS };

enum moment {
	IN_LANE,
	IN_WHEEL,
	FAR,
	BETWEEN_RUNS,
	QUEUED,
	RUNNING,
	INSIDE,
	CANCELLED_RUNNING,
	CANCELLED_INSIDE,
	GROUP_CANCELLED_RUNNING,
	GROUP_CANCELLED_INSIDE,
	RELEASING,
	INSIDE_RELEASE,
	FIRED,
	CANCEL_RELEASES,
	CANCELLED,
	DROPPED,
	GROUP_CANCELLED,
	NEVER_ARMED,
	DISARMED,
	HAS_RUN,
	MOMENTS
};

static struct probe probe;
static enum call call;
static int answer;
static uint64_t left_ns;
static bool is_member;
static tw_group group;

static int visit(void *visits, tw_timer timer, tw_fn *fn, void *arg, uint64_t unused)
{
	(void)unused;
	*(int *)visits += timer.id == probe.timer.id && fn == probe_run && arg == &probe;
	return 0;
}

static bool is_listed(const char *word)
{
	static char text[4096];
	FILE *out = fmemopen(text, sizeof text, "w");
	expect_eq(tw_service_dump(rig.service, out), 0);
	fclose(out);
	return strstr(text, word) != NULL;
}

static int look(void)
{
	struct tw_service_stats stats = stats_of(rig.service);
	int visits = 0;
	expect_eq(tw_service_foreach(rig.service, visit, &visits), 0);
	bool pending = tw_is_pending(rig.service, probe.timer);
	if (visits != pending || stats.pending != pending ||
	    is_listed(" pending, due in ") != pending ||
	    is_listed(" disarmed, \"idle\", fn ") != stats.disarmed || (pending && stats.disarmed))
		return -1;
	uint64_t ended = stats.fired + stats.cancelled + stats.dropped;
	if (stats.scheduled == ended + pending + stats.disarmed)
		return pending ? IS_ARMED : stats.disarmed ? IS_DISARMED : ENDED;
	return RUNS;
}

static int make_call(void)
{
	tw_service *service = rig.service;
	switch (call) {
	case LOOK:
		return look();
	case CANCEL_GROUP:
		return tw_group_cancel(service, group);
	case REMAINING:
		return tw_remaining(service, probe.timer, &left_ns);
	case CANCEL:
		return tw_cancel(service, probe.timer);
	case CANCEL_WAIT:
		return tw_cancel_wait(service, probe.timer, 0);
	case RESET:
		return tw_reset(service, probe.timer, HOUR);
	case RESET_AT:
		return tw_reset_at(service, probe.timer, rig_now(&rig) + HOUR);
	case EARLIER:
		return tw_reset_earlier(service, probe.timer, HOUR);
	default:
		return tw_disarm(service, probe.timer);
	}
}

static void call_here(struct probe *unused)
{
	(void)unused;
	answer = make_call();
	probe.act = NULL;
}

static void *call_on_thread(void *unused)
{
	call_here(unused);
	return NULL;
}

static void call_elsewhere(struct probe *unused)
{
	pthread_t thread;
	(void)unused;
	if (pthread_create(&thread, NULL, call_on_thread, NULL) == 0)
		pthread_join(thread, NULL);
}

static void cancel_and_call_here(struct probe *unused)
{
	tw_cancel(rig.service, probe.timer);
	call_here(unused);
}

static void cancel_and_call_elsewhere(struct probe *unused)
{
	tw_cancel(rig.service, probe.timer);
	call_elsewhere(unused);
}

static void cancel_group_and_call_here(struct probe *unused)
{
	tw_group_cancel(rig.service, group);
	call_here(unused);
}

static void cancel_group_and_call_elsewhere(struct probe *unused)
{
	tw_group_cancel(rig.service, group);
	call_elsewhere(unused);
}

static void schedule(enum kind kind, enum moment moment)
{
	struct tw_period period = rate_of(10 * MS, HOUR, 0);
	struct tw_task task = probe_task(&probe);
	task.release = kind == PLAIN || kind == PERSISTENT ? NULL : probe_release;
	task.name = "idle";
	task.period = kind == SERIES ? &period : NULL;
	task.flags = kind >= PERSISTENT ? TW_TASK_PERSISTENT : 0;
	uint64_t delay_ns = moment == FAR ? 90 * DAY : 10 * MS;
	if (kind == SERIES)
		period.first_ns = delay_ns;
	else
		task.when_ns = moment == NEVER_ARMED ? TW_NEVER : delay_ns;
	if (is_member)
		expect_eq(tw_group_create(&group, rig.service), 0);
	task.group = is_member ? group : (tw_group){0};
	probe_schedule_task(&probe, &task);
}

static void (*const acts[MOMENTS])(struct probe *) = {
    [RUNNING] = call_elsewhere,
    [INSIDE] = call_here,
    [CANCELLED_RUNNING] = cancel_and_call_elsewhere,
    [CANCELLED_INSIDE] = cancel_and_call_here,
    [GROUP_CANCELLED_RUNNING] = cancel_group_and_call_elsewhere,
    [GROUP_CANCELLED_INSIDE] = cancel_group_and_call_here,
};

static bool ran(enum moment moment)
{
	return moment >= RUNNING && moment <= FIRED;
}

/* Makes the call at the moment. */
static void call_at(enum kind kind, enum moment moment)
{
	reopen_on_queue();
	probe = PROBE(&rig, 1);
	probe.act = acts[moment];
	if (moment == RELEASING)
		probe.act_in_release = call_elsewhere;
	if (moment == INSIDE_RELEASE || moment == CANCEL_RELEASES)
		probe.act_in_release = call_here;
	bool runs = moment == BETWEEN_RUNS || moment == HAS_RUN || ran(moment);
	schedule(kind, moment);
	if (moment != IN_LANE)
		rig_advance(&rig, MS);
	if (moment == DISARMED)
		expect_eq(tw_disarm(rig.service, probe.timer), TW_CANCELLED);
	if (moment == CANCELLED || moment == CANCEL_RELEASES)
		expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	if (moment == DROPPED)
		expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	if (moment == GROUP_CANCELLED)
		expect_eq(tw_group_cancel(rig.service, group), 0);
	if (moment == QUEUED || runs)
		rig_advance(&rig, 9 * MS);
	if (runs)
		expect_eq(queue_executor_run_next(&queue), 1);
	if (moment < RUNNING || moment == FIRED || moment > CANCEL_RELEASES)
		answer = make_call();
}

/* ------------------------------------------------------------ what is wanted */

enum {
	TIMERS = 1 << PLAIN | 1 << RELEASED | 1 << SERIES,
	STANDING = 1 << PERSISTENT | 1 << PERSISTENT_RELEASED,
	ALL = TIMERS | STANDING,
	ONCE = 1 << PLAIN | 1 << RELEASED,
	HAS_RELEASE = 1 << RELEASED | 1 << SERIES | 1 << PERSISTENT_RELEASED
};

#define NONE UINT64_MAX

struct row {
	const char *name;
	enum moment moment;
	int kinds;
	uint64_t next_ns; /* to the next run, if the call changes nothing */
	int look, remaining, cancel, cancel_wait, reset, earlier, disarm;
};

#define ARMED IS_ARMED, 0, TW_CANCELLED, TW_CANCELLED, 0
#define GOES_ON RUNS, -ENOENT, TW_RUNNING
#define IN_RELEASE ENDED, -ENOENT, TW_RUNNING
#define STAYS IS_DISARMED, -ENOENT, TW_CANCELLED, TW_CANCELLED
#define OVER ENDED, -ENOENT, TW_GONE, TW_GONE

static const struct row rows[] = {
    {"in its lane", IN_LANE, ALL, 10 * MS, ARMED, TW_RESET_KEPT, TW_CANCELLED},
    {"in the wheel", IN_WHEEL, ALL, 9 * MS, ARMED, TW_RESET_KEPT, TW_CANCELLED},
    {"far away", FAR, ALL, 90 * DAY - MS, ARMED, 0, TW_CANCELLED},
    {"between two runs", BETWEEN_RUNS, 1 << SERIES, HOUR, ARMED, TW_RESET_KEPT, -EINVAL},
    {"at its executor", QUEUED, ALL, 0, ARMED, TW_RESET_KEPT, TW_CANCELLED},
    {"running", RUNNING, ONCE, NONE, GOES_ON, TW_RUNNING, -EBUSY, -EBUSY, -EINVAL},
    {"running", RUNNING, 1 << SERIES, HOUR, GOES_ON, TW_RUNNING, -EBUSY, -EBUSY, -EINVAL},
    {"running", RUNNING, STANDING, NONE, GOES_ON, TW_RUNNING, 0, 0, TW_RUNNING},
    {"in its run", INSIDE, 1 << SERIES, HOUR, GOES_ON, TW_SELF, 0, 0, -EINVAL},
    {"in its run", INSIDE, ONCE | STANDING, NONE, GOES_ON, TW_SELF, 0, 0, TW_RUNNING},
    {"running, cancelled", CANCELLED_RUNNING, TIMERS, NONE, GOES_ON, TW_RUNNING, -EBUSY, -EBUSY,
     -EINVAL},
    {"running, cancelled", CANCELLED_RUNNING, STANDING, NONE, GOES_ON, TW_RUNNING, -ECANCELED,
     -ECANCELED, TW_RUNNING},
    {"in its run, cancelled", CANCELLED_INSIDE, ALL, NONE, GOES_ON, TW_SELF, -ECANCELED, -ECANCELED,
     TW_RUNNING},
    {"running, group cancelled", GROUP_CANCELLED_RUNNING, TIMERS, NONE, GOES_ON, TW_RUNNING, -EBUSY,
     -EBUSY, -EINVAL},
    {"running, group cancelled", GROUP_CANCELLED_RUNNING, STANDING, NONE, GOES_ON, TW_RUNNING,
     -ECANCELED, -ECANCELED, TW_RUNNING},
    {"in its run, group cancelled", GROUP_CANCELLED_INSIDE, ALL, NONE, GOES_ON, TW_SELF, -ECANCELED,
     -ECANCELED, TW_RUNNING},
    {"in its release, cancelled", CANCEL_RELEASES, HAS_RELEASE, NONE, IN_RELEASE, TW_SELF, -ENOENT,
     -ENOENT, TW_RUNNING},
    {"in its release", INSIDE_RELEASE, 1 << RELEASED, NONE, IN_RELEASE, TW_SELF, -ENOENT, -ENOENT,
     TW_RUNNING},
    {"releasing", RELEASING, 1 << RELEASED, NONE, IN_RELEASE, TW_RUNNING, -ENOENT, -ENOENT,
     TW_RUNNING},
    {"fired", FIRED, ONCE, NONE, OVER, -ENOENT, -ENOENT, TW_GONE},
    {"cancelled", CANCELLED, ALL, NONE, OVER, -ENOENT, -ENOENT, TW_GONE},
    {"dropped", DROPPED, ALL, NONE, OVER, -ESHUTDOWN, -ESHUTDOWN, TW_GONE},
    {"in a cancelled group", GROUP_CANCELLED, ALL, NONE, OVER, -ENOENT, -ENOENT, TW_GONE},
    {"never armed", NEVER_ARMED, STANDING, NONE, STAYS, 0, 0, TW_DISARMED},
    {"disarmed", DISARMED, STANDING, NONE, STAYS, 0, 0, TW_DISARMED},
    {"disarmed by its run", HAS_RUN, STANDING, NONE, STAYS, 0, 0, TW_DISARMED},
};

/* A timer that is not persistent is refused, as long as it is armed or runs. */
static int wanted_disarm(const struct row *row, enum kind kind)
{
	bool lives = row->look == IS_ARMED ||
		     (row->moment >= RUNNING && row->moment <= GROUP_CANCELLED_INSIDE);
	return kind < PERSISTENT && lives ? -EINVAL : row->disarm;
}

static bool is_cancel(void)
{
	return call == CANCEL || call == CANCEL_WAIT || call == CANCEL_GROUP;
}

static uint64_t wanted_next_ns(const struct row *row)
{
	bool ends = is_cancel() || call == DISARM;
	bool moves = call == RESET || call == RESET_AT || call == EARLIER;
	if (ends && answer != -EINVAL)
		return NONE;
	return moves && answer == 0 ? HOUR : row->next_ns;
}

/* In the end; -1: it lives on. */
static int wanted_fate(const struct row *row, enum kind kind)
{
	bool once = 1 << kind & ONCE;
	if (row->moment == DROPPED)
		return TW_FATE_DROPPED;
	if (row->moment == CANCELLED || row->moment == CANCEL_RELEASES ||
	    row->moment == GROUP_CANCELLED)
		return TW_FATE_CANCELLED;
	bool cancelled = is_cancel() || (row->moment >= CANCELLED_RUNNING &&
					 row->moment <= GROUP_CANCELLED_INSIDE);
	if (cancelled)
		return once && ran(row->moment) ? TW_FATE_FIRED : TW_FATE_CANCELLED;
	return once ? TW_FATE_FIRED : -1;
}

/* The release has been called, if there is one, when the canceller hears of it. */
static void expect_release_by_caller(const struct row *row)
{
	bool called = (answer == TW_CANCELLED && (call == CANCEL || call == CANCEL_WAIT)) ||
		      row->moment == GROUP_CANCELLED;
	if (!called)
		return;
	expect_eq(probe.releases, 1);
	expect_ne(pthread_equal(probe.released_on, pthread_self()), 0);
}

static void advance_and_run(uint64_t ns)
{
	rig_advance(&rig, ns);
	queue_executor_run_all(&queue);
}

static void expect_what_follows(const struct row *row, enum kind kind)
{
	uint64_t next_ns = wanted_next_ns(row);
	int runs = probe.runs, fate = wanted_fate(row, kind);
	if (1 << kind & HAS_RELEASE)
		expect_release_by_caller(row);
	if (next_ns == NONE) {
		advance_and_run(100 * DAY);
		expect_eq(probe.runs, runs);
	} else {
		if (next_ns > 0)
			advance_and_run(next_ns - MS);
		expect_eq(probe.runs, runs);
		advance_and_run(next_ns > 0 ? MS : 0);
		expect_eq(probe.runs, runs + 1);
	}
	if (1 << kind & HAS_RELEASE) {
		expect_eq(probe.releases, fate >= 0);
		if (fate >= 0)
			expect_eq(probe.fate, fate);
	}
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.fired, fate == TW_FATE_FIRED);
	expect_eq(stats.cancelled, fate == TW_FATE_CANCELLED);
	expect_eq(stats.dropped, fate == TW_FATE_DROPPED);
}

static bool needs_group(const struct row *row)
{
	return row->moment == GROUP_CANCELLED || row->moment == GROUP_CANCELLED_RUNNING ||
	       row->moment == GROUP_CANCELLED_INSIDE;
}

static void expect_row(const struct row *row, enum kind kind)
{
	const int wanted[CALLS] = {[LOOK] = row->look,       [REMAINING] = row->remaining,
				   [CANCEL] = row->cancel,   [CANCEL_WAIT] = row->cancel_wait,
				   [RESET] = row->reset,     [RESET_AT] = row->reset,
				   [EARLIER] = row->earlier, [DISARM] = wanted_disarm(row, kind)};
	for (call = 0; call < CALLS; call++) {
		if (call == CANCEL_GROUP && !is_member)
			continue;
		cr_log_info("%s, kind %d, call %d", row->name, kind, call);
		call_at(kind, row->moment);
		cr_assert(answer == wanted[call], "%s, kind %d, call %d: %d, not %d", row->name,
			  kind, call, answer, wanted[call]);
		if (call == REMAINING && answer == 0)
			expect_eq(left_ns, row->next_ns);
		expect_what_follows(row, kind);
	}
}

static void expect_table(bool of_members)
{
	is_member = of_members;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (enum kind kind = PLAIN; kind < KINDS; kind++)
			if (1 << kind & rows[i].kinds && (of_members || !needs_group(&rows[i])))
				expect_row(&rows[i], kind);
}

Test(timer_outcomes, follow_the_table)
{
	expect_table(false);
}

Test(timer_outcomes, of_members_of_a_group_follow_the_table)
{
	expect_table(true);
}
