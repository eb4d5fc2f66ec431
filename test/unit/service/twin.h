/*
 * The naive twin of a service (model.c): each timer's deadline, when it must run, and how it ends.
 */
#ifndef TEST_UNIT_SERVICE_TWIN_H
#define TEST_UNIT_SERVICE_TWIN_H

#include "test/support/current.h"
#include "test/support/rig.h"

enum { TWINS = 192, STALE = 64 };

struct twin {
	bool alive, running;
	tw_timer timer;
	uint64_t turn; /* of scheduling, counted over all */
	/* a one-shot that was never moved: has a place in the order (G6) */
	bool untouched;
	uint64_t delay_ns;               /* it was scheduled with; UINT64_MAX: by deadline */
	uint64_t nominal_ns;             /* its deadline */
	uint64_t earliest_ns, latest_ns; /* of its next run, while the driver keeps up */

	uint64_t period_ns; /* 0: a one-shot */
	bool fixed_delay;
	enum tw_missed_policy missed_policy;
	uint64_t runs_left; /* 0: no end */
	uint64_t missed;    /* that the next run must report */

	bool has_release, released;
	enum tw_fate fate; /* once it is not alive */

	bool cancelled, re_armed; /* in its run */
	uint64_t re_armed_ns;
};

static struct {
	struct rig rig;
	uint64_t seed, first_seed;
	struct twin twins[TWINS];
	tw_timer stale[STALE];
	uint64_t turns;
	uint64_t driven_from_ns; /* the clock when the present drive began */
	bool in_deadline_order;  /* the present drive is an advance of the clock */
	struct tw_service_stats wanted;
	/* instants that series missed in runs in which they were cancelled: counted or not */
	uint64_t missed_at_end;
} m;

#define model_assert(condition, what) \
	cr_assert(condition, "MODEL_SEED=%llu: %s", (unsigned long long)m.first_seed, what)

/* Instants in seconds since the clock's start. */
static inline double since_start(uint64_t ns)
{
	return ((double)ns - (double)RIG_START_NS) / 1e9;
}

#define timer_assert(t, condition, what)                                                        \
	cr_assert(condition,                                                                    \
		  "MODEL_SEED=%llu: %s: timer %llu, nominal %.9f, to run %.9f to %.9f, period " \
		  "%.9f, %s; now %.9f,"                                                         \
		  " driven from %.9f, tick %.9f",                                               \
		  (unsigned long long)m.first_seed, what, (unsigned long long)(t)->turn,        \
		  since_start((t)->nominal_ns), since_start((t)->earliest_ns),                  \
		  since_start((t)->latest_ns), (double)(t)->period_ns / 1e9,                    \
		  (t)->untouched ? "untouched" : "moved or a series",                           \
		  since_start(rig_now(&m.rig)), since_start(m.driven_from_ns),                  \
		  (double)m.rig.tick_ns / 1e9)

static inline uint64_t below(uint64_t bound)
{
	return random_below(&m.seed, bound);
}

/* ------------------------------------------------------------ the twin's time */

static inline void twin_arm(struct twin *t, uint64_t deadline_ns)
{
	uint64_t now_ns = rig_now(&m.rig), due_ns = rig_tick_of(&m.rig, deadline_ns);
	t->nominal_ns = deadline_ns;
	t->earliest_ns = due_ns > now_ns ? due_ns : now_ns;
	/* due immediately: in the next poll */
	t->latest_ns = due_ns > now_ns ? due_ns : now_ns + m.rig.tick_ns;
}

static inline bool for_one_tick(const struct twin *a, const struct twin *b)
{
	return rig_tick_of(&m.rig, a->nominal_ns) == rig_tick_of(&m.rig, b->nominal_ns);
}

/* No other timer should have run before this one. */
static inline void check_order(const struct twin *t)
{
	for (int i = 0; i < TWINS; i++) {
		const struct twin *other = &m.twins[i];
		if (!other->alive || other == t)
			continue;
		if (m.in_deadline_order)
			timer_assert(other,
				     other->latest_ns >= t->earliest_ns ||
					 other->latest_ns < m.driven_from_ns ||
					 t->latest_ns < m.driven_from_ns,
				     "overtaken, against the order of deadlines");
		if (!t->untouched || !other->untouched || other->turn > t->turn)
			continue;
		timer_assert(other, !for_one_tick(t, other),
			     "overtaken by a later one for its tick");
		timer_assert(other, t->delay_ns != other->delay_ns || t->delay_ns == UINT64_MAX,
			     "overtaken by a later one with its delay");
	}
}

/* A one-shot counts from its tick, and a series from its instant. The first tick is 0. */
static inline uint64_t lateness(const struct twin *t)
{
	uint64_t now_ns = rig_now(&m.rig);
	uint64_t due_ns = t->period_ns ? t->nominal_ns : rig_tick_of(&m.rig, t->nominal_ns);
	if (due_ns < RIG_START_NS)
		due_ns = RIG_START_NS;
	return now_ns > due_ns ? now_ns - due_ns : 0;
}

/* A run that begins late stands for the latest instant that has passed. */
static inline void twin_begin(struct twin *t)
{
	uint64_t now_ns = rig_now(&m.rig);
	if (!t->period_ns || t->fixed_delay || t->missed_policy == TW_MISSED_BURST ||
	    now_ns < t->nominal_ns)
		return;
	uint64_t missed = (now_ns - t->nominal_ns) / t->period_ns;
	t->nominal_ns += missed * t->period_ns;
	t->missed += missed;
	m.wanted.overruns += missed;
}

static inline void check_run(const struct twin *t)
{
	uint64_t now_ns = rig_now(&m.rig);
	timer_assert(t, t->alive && !t->running, "a run that nobody expects");
	timer_assert(t, now_ns >= t->earliest_ns, "early");
	timer_assert(t, now_ns <= t->latest_ns || now_ns == m.driven_from_ns, "late");
	timer_assert(t, current_run().overruns == t->missed, "missed instants");
	timer_assert(t, tw_self().id == t->timer.id, "self");
	timer_assert(t, !current_run().closing, "closing");
	timer_assert(t, current_run().late_ns == lateness(t), "told to be late");
	check_order(t);
}

/* ------------------------------------------------------------ the twin's fates */

static inline void twin_end(struct twin *t, uint64_t *wanted)
{
	t->alive = false;
	t->fate = wanted == &m.wanted.fired ? TW_FATE_FIRED : TW_FATE_CANCELLED;
	m.stale[below(STALE)] = t->timer;
	++*wanted;
}

/* A timer that the driver does not run is released by its cancel, or by the close at the end. */
static inline void release_twin(void *arg, enum tw_fate fate)
{
	struct twin *t = arg;
	timer_assert(t, t->has_release && !t->released && !t->running, "released");
	timer_assert(t, t->alive ? fate != TW_FATE_FIRED : fate == t->fate, "fate");
	t->released = true;
}

/* Of `past` instants in the past, the number that get no run. */
static inline uint64_t passed_over(const struct twin *t, uint64_t past)
{
	if (t->missed_policy == TW_MISSED_BURST)
		return 0;
	return t->missed_policy == TW_MISSED_COALESCE ? past - 1 : past;
}

static inline void twin_next_of_series(struct twin *t, uint64_t now_ns)
{
	uint64_t next_ns = t->fixed_delay ? now_ns + t->period_ns : t->nominal_ns + t->period_ns;
	if (next_ns <= now_ns) {
		t->missed = passed_over(t, (now_ns - next_ns) / t->period_ns + 1);
		next_ns += t->missed * t->period_ns;
		*(t->cancelled ? &m.missed_at_end : &m.wanted.overruns) += t->missed;
	}
	twin_arm(t, t->re_armed ? t->re_armed_ns : next_ns);
}

static inline void twin_finish(struct twin *t)
{
	t->running = false;
	m.wanted.runs++;
	bool last = t->period_ns ? t->runs_left == 1 : !t->re_armed;
	if (t->period_ns && !last)
		twin_next_of_series(t, rig_now(&m.rig));
	else if (!last)
		twin_arm(t, t->re_armed_ns);
	if (t->cancelled)
		twin_end(t, t->re_armed || t->period_ns ? &m.wanted.cancelled : &m.wanted.fired);
	else if (last)
		twin_end(t, &m.wanted.fired);
	if (t->runs_left)
		t->runs_left--;
}

#endif
