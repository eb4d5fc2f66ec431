/*
 * The whole service on the manual clock against a naive twin: an array of deadlines, searched from
 * end to end.
 *
 * Random programs schedule, cancel, move and drive; the callbacks do the same. Each run must be one
 * that the twin expects, at its instant, in the promised order; each answer, and the ledger, must
 * be the twin's.
 *
 * The seed is printed with a failure; MODEL_SEED=n in the environment of the test runs that program
 * alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/rig.h"
#include "test/support/rounds.h"
#include "twin.h"

/* Each takes six seconds of a processor, of which it may get a small share. */
TestSuite(service_model, .timeout = 300);

enum { STEPS = 1500 };

/* ------------------------------------------------------------ steps */

static void run_twin(void *arg);

/* Beyond the range of any wheel, several times over. */
static uint64_t far_span(void)
{
	uint64_t span_ns = m.rig.tick_ns << 30;
	return span_ns < 800 * DAY ? span_ns : 800 * DAY;
}

static uint64_t random_span(void)
{
	uint64_t tick_ns = m.rig.tick_ns;
	switch (below(10)) {
	case 0:
		return 0;
	case 1:
		return below(2 * tick_ns);
	case 2:
	case 3:
		return below(20) * tick_ns;
	case 4:
	case 5:
		return below(300 * tick_ns);
	case 6:
	case 7:
		return below(9000 * tick_ns);
	case 8:
		return below(3000000 * tick_ns);
	default:
		return below(far_span());
	}
}

static struct twin *free_twin(void)
{
	for (int i = 0; i < TWINS; i++)
		if (!m.twins[i].alive)
			return &m.twins[i];
	return NULL;
}

static struct tw_task task_of(struct twin *t)
{
	t->has_release = true;
	return (struct tw_task){
	    .size = sizeof(struct tw_task), .fn = run_twin, .arg = t, .release = release_twin};
}

static int schedule_series(struct twin *t, uint64_t *deadline_ns)
{
	uint64_t tick_ns = m.rig.tick_ns;
	struct tw_period period = rate_of(random_span(), 1 + below(300 * tick_ns), 1 + below(40));
	if (below(2)) {
		period.period_ns = (1 + below(300)) * tick_ns;
		*deadline_ns = rig_tick_of(&m.rig, *deadline_ns + period.first_ns);
		period.first_ns = *deadline_ns - rig_now(&m.rig);
	} else {
		*deadline_ns += period.first_ns;
	}
	period.mode = below(2) ? TW_FIXED_RATE : TW_FIXED_DELAY;
	period.missed = t->missed_policy = (enum tw_missed_policy)below(3);
	t->period_ns = period.period_ns;
	t->fixed_delay = period.mode == TW_FIXED_DELAY;
	t->runs_left = period.count;
	if (below(2))
		return tw_schedule_every(m.rig.service, &period, run_twin, t, &t->timer);
	struct tw_task task = task_of(t);
	task.period = &period;
	return tw_schedule_task(m.rig.service, &task, &t->timer);
}

/* It has its place by its delay or deadline, as a plain one (G6). */
static int schedule_with_options(struct twin *t, uint64_t span_ns, uint64_t *deadline_ns)
{
	struct tw_task task = task_of(t);
	bool at = below(3) == 0;
	task.when_ns = at ? *deadline_ns : span_ns;
	task.flags = at ? TW_TASK_AT : 0;
	t->delay_ns = at ? UINT64_MAX : span_ns;
	t->untouched = true;
	return tw_schedule_task(m.rig.service, &task, &t->timer);
}

static int schedule_one_shot(struct twin *t, uint64_t *deadline_ns)
{
	uint64_t span_ns = random_span();
	t->untouched = true;
	t->delay_ns = span_ns;
	*deadline_ns += span_ns;
	if (below(4) == 0)
		return schedule_with_options(t, span_ns, deadline_ns);
	if (below(3))
		return tw_schedule(m.rig.service, span_ns, run_twin, t, &t->timer);
	t->delay_ns = UINT64_MAX;
	if (below(4) == 0)
		*deadline_ns -= below(2 * span_ns + 1) % RIG_START_NS;
	return tw_schedule_at(m.rig.service, *deadline_ns, run_twin, t, &t->timer);
}

static void step_schedule(void)
{
	struct twin *t = free_twin();
	if (!t)
		return;
	*t = (struct twin){.turn = m.turns++};
	uint64_t deadline_ns = rig_now(&m.rig);
	int answer =
	    below(6) ? schedule_one_shot(t, &deadline_ns) : schedule_series(t, &deadline_ns);
	model_assert(answer == 0, "schedule");
	t->alive = true;
	m.wanted.scheduled++;
	twin_arm(t, deadline_ns);
}

static void step_cancel(struct twin *t)
{
	int answer = below(4) ? tw_cancel(m.rig.service, t->timer)
			      : tw_cancel_wait(m.rig.service, t->timer, 0);
	if (!t->alive) {
		timer_assert(t, answer == TW_GONE, "cancel of what is gone");
	} else if (t->running) {
		timer_assert(t, answer == TW_RUNNING || answer == TW_SELF, "cancel of oneself");
		t->cancelled = true;
	} else {
		timer_assert(t, answer == TW_CANCELLED, "cancel");
		twin_end(t, &m.wanted.cancelled);
	}
}

/* The instant of a series is the tick that it is moved to. */
static void move(struct twin *t, uint64_t deadline_ns)
{
	twin_arm(t, t->period_ns ? rig_tick_of(&m.rig, deadline_ns) : deadline_ns);
}

static void step_reset(struct twin *t)
{
	uint64_t now_ns = rig_now(&m.rig), deadline_ns = now_ns + random_span();
	if (t->period_ns && t->running && t->runs_left == 1)
		return;
	int answer = below(2) ? tw_reset(m.rig.service, t->timer, deadline_ns - now_ns)
			      : tw_reset_at(m.rig.service, t->timer, deadline_ns);
	if (!t->alive) {
		timer_assert(t, answer == -ENOENT, "reset of what is gone");
		return;
	}
	if (t->running && t->cancelled) {
		timer_assert(t, answer == -ECANCELED, "re-arm after a cancel");
		return;
	}
	timer_assert(t, answer == 0, "reset");
	m.wanted.resets++;
	t->untouched = false;
	if (t->running) {
		t->re_armed = true;
		t->re_armed_ns = deadline_ns;
	} else {
		move(t, deadline_ns);
	}
}

static void step_look(struct twin *t)
{
	bool pending = t->alive && !t->running;
	uint64_t left_ns;
	timer_assert(t, tw_is_pending(m.rig.service, t->timer) == pending, "is_pending");
	timer_assert(t, tw_remaining(m.rig.service, t->timer, &left_ns) == (pending ? 0 : -ENOENT),
		     "remaining");
	tw_timer stale = m.stale[below(STALE)];
	model_assert(tw_cancel(m.rig.service, stale) == TW_GONE, "cancel of a stale handle");
	model_assert(tw_reset(m.rig.service, stale, 0) == -ENOENT, "reset of a stale handle");
}

/* What may happen to timers at any moment, in a callback too. */
static void step_on_timers(void)
{
	struct twin *t = &m.twins[below(TWINS)];
	switch (below(8)) {
	case 0:
	case 1:
	case 2:
		step_schedule();
		break;
	case 3:
		step_cancel(t);
		break;
	case 4:
	case 5:
		step_reset(t);
		break;
	default:
		step_look(t);
		break;
	}
}

static void run_twin(void *arg)
{
	struct twin *t = arg;
	twin_begin(t);
	check_run(t);
	t->running = true;
	t->cancelled = t->re_armed = false;
	t->missed = 0;
	for (uint64_t i = below(3); i > 0; i--)
		step_on_timers();
	if (below(5) == 0)
		step_reset(t);
	if (below(12) == 0)
		step_cancel(t);
	twin_finish(t);
}

/* ------------------------------------------------------------ driving */

static void expect_nothing_overdue(void)
{
	uint64_t now_ns = rig_now(&m.rig);
	for (int i = 0; i < TWINS; i++)
		timer_assert(&m.twins[i], !m.twins[i].alive || m.twins[i].latest_ns > now_ns,
			     "not run");
}

static uint64_t random_step(void)
{
	uint64_t tick_ns = m.rig.tick_ns;
	switch (below(16)) {
	case 0:
		return 0;
	case 1:
		return below(9000 * tick_ns);
	case 2:
		return below(8) ? below(100000 * tick_ns) : below(far_span());
	case 3:
	case 4:
	case 5:
		return below(4) * tick_ns;
	default:
		return below(40 * tick_ns);
	}
}

static void step_advance(void)
{
	m.driven_from_ns = rig_now(&m.rig);
	m.in_deadline_order = true;
	uint64_t to_ns = m.driven_from_ns + random_step();
	rig_advance_to(&m.rig, to_ns);
	model_assert(rig_now(&m.rig) == to_ns, "clock");
	expect_nothing_overdue();
}

/* The driver is held up for a while, then told to go on, perhaps bit by bit. */
static void step_stall(void)
{
	expect_eq(tw_clock_manual_set(m.rig.clock, rig_now(&m.rig) + random_step()), 0);
	for (uint64_t i = below(4); i > 0; i--)
		step_on_timers();
	m.driven_from_ns = rig_now(&m.rig);
	m.in_deadline_order = false;
	for (uint64_t i = below(3); i > 0; i--) {
		size_t budget = 1 + below(5);
		model_assert((size_t)tw_service_advance(m.rig.service, budget) <= budget, "budget");
	}
	model_assert(tw_service_advance(m.rig.service, TW_NO_LIMIT) >= 0, "advance");
	expect_nothing_overdue();
}

static void check_ledger(void)
{
	struct tw_service_stats stats = stats_of(m.rig.service);
	uint64_t pending = 0;
	for (int i = 0; i < TWINS; i++) {
		const struct twin *t = &m.twins[i];
		pending += t->alive;
		timer_assert(t, t->released == (t->has_release && !t->alive), "not released");
	}
	model_assert(stats.scheduled == m.wanted.scheduled, "scheduled");
	model_assert(stats.fired == m.wanted.fired, "fired");
	model_assert(stats.cancelled == m.wanted.cancelled, "cancelled");
	model_assert(stats.pending == pending, "pending");
	model_assert(stats.runs == m.wanted.runs, "runs");
	model_assert(stats.overruns >= m.wanted.overruns, "overruns");
	model_assert(stats.overruns <= m.wanted.overruns + m.missed_at_end, "overruns");
	model_assert(stats.resets == m.wanted.resets, "resets");
	model_assert(stats.dropped == 0 && stats.rejected == 0, "dropped, rejected");
	char why[200] = "";
	model_assert(tw_service_validate(m.rig.service, why, sizeof(why)) == 0, "validate");
}

static void run_program(uint64_t seed)
{
	static const uint64_t ticks_ns[] = {50000, 250000, 1000000, 1000000, 8000000, 1000000000};
	static const uint32_t buckets[] = {64, 64, 256, 4096};
	m.seed = m.first_seed = seed;
	m.turns = 0;
	for (int i = 0; i < TWINS; i++)
		m.twins[i] = (struct twin){0};
	for (int i = 0; i < STALE; i++)
		m.stale[i] = (tw_timer){0};
	m.wanted = (struct tw_service_stats){0};
	m.missed_at_end = 0;
	struct tw_service_config cfg = rig_config();
	cfg.tick_ns = ticks_ns[below(6)];
	cfg.buckets = buckets[below(4)];
	rig_open(&m.rig, &cfg);
	for (int i = 0; i < STEPS && !random_runs_out(); i++) {
		uint64_t dice = below(12);
		if (dice == 0)
			step_stall();
		else if (dice < 4)
			step_advance();
		else
			step_on_timers();
		if (i % 50 == 0)
			check_ledger();
	}
	check_ledger();
	rig_close(&m.rig);
}

static void run_programs(uint64_t first, uint64_t count)
{
	const char *one = getenv("MODEL_SEED");
	if (one) {
		run_program(strtoull(one, NULL, 0));
		return;
	}
	for (uint64_t seed = first; seed < first + count; seed++)
		run_program(seed);
}

Test(service_model, agrees_with_the_service_in_the_same_programs_each_time)
{
	run_programs(1, rounds(400));
}

Test(service_model, agrees_with_the_service_in_new_programs_each_time)
{
	run_programs(tw_clock_now(tw_clock_monotonic()), rounds(400));
}
