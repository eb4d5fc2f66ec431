/*
 * What the ledger stress does to timers and groups: it schedules them, cancels, waits, moves and
 * looks at them, and their callbacks do the same. ledger.c has the threads and the rounds.
 */
#ifndef TEST_STRESS_LEDGER_H
#define TEST_STRESS_LEDGER_H

#include "test/stress/groups.h"

enum {
	SHARED_RECORDS = 30000, /* for timers that callbacks schedule */
	STRANGERS = 256
};

/* What all threads of a round share. */
static struct {
	tw_service *service;
	bool inline_callbacks; /* a slow one would hold up the driver */
	tw_executor *other;    /* for timers to name; or NULL */
	uint64_t delay_most_ns;
	struct record *shared_records;
	atomic_size_t shared_used;
	tw_timer strangers[STRANGERS]; /* pending in another service */
	atomic_bool stop;
} shared;

static void fire(void *arg);
static void released(void *arg, enum tw_fate fate);

static tw_group group_of(const struct record *r)
{
	return r->life ? r->life->group : (tw_group){0};
}

static uint64_t random_delay(uint64_t *seed)
{
	if (random_percent(seed, 3))
		return random_below(seed, TW_MAX_DELAY_NS / 2);
	if (random_percent(seed, 10))
		return 0;
	if (random_percent(seed, 50))
		return random_below(seed, shared.delay_most_ns / 16 + 1);
	return random_below(seed, shared.delay_most_ns);
}

/* Whatever a task may have beside its instant. None of it may make a run come earlier. */
static void add_options(struct tw_task *task, struct record *r, uint64_t *seed)
{
	if (random_percent(seed, 30))
		task->executor = r->named = shared.other;
}

static int schedule_series(struct record *r, uint64_t delay_ns, bool absolute, uint64_t *seed)
{
	struct tw_period period = {
	    .size = sizeof(period),
	    .first_ns = absolute ? 0 : delay_ns,
	    .period_ns = r->period_ns,
	    .mode = r->kind == FIXED_RATE ? TW_FIXED_RATE : TW_FIXED_DELAY,
	    .count = r->runs_wanted,
	    .missed = (enum tw_missed_policy)random_below(seed, 3),
	};
	struct tw_task task = {
	    .size = sizeof(task),
	    .fn = fire,
	    .arg = r,
	    .when_ns = absolute ? atomic_load(&r->floor_ns) : 0,
	    .flags = absolute ? TW_TASK_AT : 0,
	    .period = &period,
	    .release = released,
	    .group = group_of(r),
	};
	if (random_percent(seed, 50))
		add_options(&task, r, seed);
	return tw_schedule_task(r->service, &task, &r->timer);
}

static int schedule_once(struct record *r, uint64_t delay_ns, bool absolute, uint64_t *seed)
{
	struct tw_task task = {
	    .size = sizeof(task),
	    .fn = fire,
	    .arg = r,
	    .when_ns = absolute ? atomic_load(&r->floor_ns) : delay_ns,
	    .flags = absolute ? TW_TASK_AT : 0,
	    .release = r->has_release ? released : NULL,
	    .group = group_of(r),
	};
	if (r->has_release && random_percent(seed, 50))
		add_options(&task, r, seed);
	if (r->has_release || r->life)
		return tw_schedule_task(r->service, &task, &r->timer);
	if (absolute)
		return tw_schedule_at(r->service, task.when_ns, fire, r, &r->timer);
	return tw_schedule(r->service, delay_ns, fire, r, &r->timer);
}

static void schedule(struct record *r, uint64_t *seed)
{
	enum record_kind kind = ONE_SHOT;
	if (random_percent(seed, 25))
		kind = (enum record_kind)(1 + random_below(seed, 3));
	record_prepare(r, shared.service, kind, kind != ONE_SHOT || random_percent(seed, 40));
	r->seed = random_next(seed);
	if (random_percent(seed, 35))
		r->life = atomic_load(&groups.now[random_below(seed, GROUPS)]);
	if (kind != ONE_SHOT)
		r->runs_wanted = 1 + (uint32_t)random_below(seed, 6);
	r->period_ns = 1 + random_below(seed, shared.delay_most_ns / 8);
	uint64_t delay_ns = random_delay(seed);
	bool absolute = random_percent(seed, 25);
	atomic_store(&r->floor_ns, stress_now_ns() + delay_ns);
	bool series = kind == FIXED_RATE || kind == FIXED_DELAY;
	int answer = series ? schedule_series(r, delay_ns, absolute, seed)
			    : schedule_once(r, delay_ns, absolute, seed);
	if (answer == 0) {
		atomic_store(&r->accepted, true);
		atomic_store(&table[random_below(seed, TABLE_SIZE)], r);
		return;
	}
	atomic_fetch_add(&round_now.rejected, 1);
	if (answer != -EAGAIN && (answer != -ENOENT || !r->life) &&
	    (answer != -ESHUTDOWN || !(r->life || atomic_load(&round_now.closing))))
		violation_by(r, "scheduling answers %d", answer);
	if (r->timer.id != 0)
		violation_by(r, "a refused schedule left a handle");
}

static struct record *somebody(uint64_t *seed)
{
	return atomic_load(&table[random_below(seed, TABLE_SIZE)]);
}

/*
 * Anything that may be done to a timer by someone else than its own callback. may_wait: without
 * bound.
 */
static void meddle(struct record *r, uint64_t *seed, bool may_wait)
{
	uint64_t left_ns;
	switch (random_below(seed, 10)) {
	case 0:
	case 1:
	case 2:
		record_cancel(r);
		break;
	case 3:
		record_cancel_wait(r, may_wait ? TW_FOREVER
					       : random_below(seed, 2) * TW_MICROSECOND * 50);
		break;
	case 4:
	case 5:
	case 6:
		record_reset(r, random_delay(seed), false);
		break;
	case 7:
		record_reset(r, random_delay(seed), true);
		break;
	case 8:
		tw_is_pending(r->service, r->timer);
		break;
	default:
		tw_remaining(r->service, r->timer, &left_ns);
		break;
	}
}

/* A random number, or a handle of another service: to each call there is no such timer. */
static void meddle_with_nobody(uint64_t *seed)
{
	uint64_t left_ns, delay_ns = random_delay(seed), now_ns = tw_service_now(shared.service);
	tw_timer timer = {random_percent(seed, 50)
			      ? random_next(seed)
			      : shared.strangers[random_below(seed, STRANGERS)].id};
	int answers[] = {tw_reset(shared.service, timer, delay_ns),
			 tw_reset_at(shared.service, timer, now_ns + delay_ns),
			 tw_reset_earlier(shared.service, timer, delay_ns),
			 tw_remaining(shared.service, timer, &left_ns)};
	if (tw_cancel(shared.service, timer) != TW_GONE ||
	    tw_cancel_wait(shared.service, timer, TW_FOREVER) != TW_GONE ||
	    tw_is_pending(shared.service, timer))
		violation_of("a handle of nobody", timer.id, 0);
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
		if (answers[i] != -ENOENT &&
		    (answers[i] != -ESHUTDOWN || !atomic_load(&round_now.closing)))
			violation_of("a handle of nobody", timer.id, answers[i]);
}

static void schedule_from_callback(uint64_t *seed)
{
	size_t place = atomic_fetch_add(&shared.shared_used, 1);
	if (place < SHARED_RECORDS)
		schedule(&shared.shared_records[place], seed);
}

static void cancel_self(struct record *r, bool wait)
{
	int answer = wait ? tw_cancel_wait(r->service, r->timer, TW_FOREVER)
			  : tw_cancel(r->service, r->timer);
	if (answer != (wait ? TW_SELF : TW_RUNNING))
		violation_by(r, "a cancel from its own callback answers %d", answer);
	note_running(r);
	answer = tw_reset(r->service, r->timer, 0);
	if (answer != -ECANCELED && answer != -ESHUTDOWN)
		violation_by(r, "a re-arm after a cancel answers %d", answer);
}

static void fire(void *arg)
{
	struct record *r = arg;
	touch(r, 1);
	record_enter(r);
	uint64_t seed = r->seed + r->runs;
	unsigned dice = (unsigned)random_below(&seed, 100);
	if (dice < 2)
		stress_sleep(random_below(&seed, shared.inline_callbacks ? 200000 : 3000000));
	else if (dice < 5)
		cancel_self(r, dice == 2);
	else if (dice < 15)
		schedule_from_callback(&seed);
	else if (dice < 25) {
		struct record *other = somebody(&seed);
		if (other && other != r)
			meddle(other, &seed, false);
	} else if (dice < 27)
		meddle_with_group(&seed, false);
	if (r->kind == RE_ARMING && r->runs < r->runs_wanted && !(dice >= 2 && dice < 5))
		record_re_arm(r, random_below(&seed, shared.delay_most_ns / 4 + 1));
	record_leave(r);
	touch(r, -1);
}

static void released(void *arg, enum tw_fate fate)
{
	struct record *r = arg;
	uint64_t seed = r->seed;
	touch(r, 1);
	if (random_percent(&seed, 2))
		meddle_with_group(&seed, false);
	record_released(arg, fate);
	touch(r, -1);
}

#endif
