/*
 * The limiter's lock, how jobs come into line (the inbox, the line, the rate's tokens), and which
 * start.
 *
 * Inbox. Where a submit has nothing to decide (no bound, no results, no refusal while paused), a
 * plain job comes in without the lock. The thread that takes the lock takes over the inbox, in the
 * order of the submits: so each job whose submit has returned is known under the lock.
 *
 * ACTIVE in the object's word means that somebody will take the lock and look: `run` is out; or all
 * permits are out, the limiter is paused, or no token is there, and the thread that ends that state
 * looks. A submit that finds ACTIVE not raised raises it, and submits `run`. A thread that gives up
 * the lock
 *   - submits `run` if a job may start and it is not out. If ACTIVE is not raised, it is raised
 *     first; if a submit was faster, that submits `run`;
 *   - rests if ACTIVE is raised and nobody will look. That fails if a job has come, which is taken
 *     over then.
 * Who takes the lock and finds ACTIVE raised by a submit notes that `run` is out.
 *
 * Line. Only the first job starts, when all its permits are free. Weak at: many priorities at a
 * time, since a job that joins or leaves walks over the higher ones.
 *
 * Rate. A token is taken when an attempt leaves the line, and comes back one interval after its
 * function was called. If it came back after the taking, the event STARTED, which is called in
 * between, could let starts move together.
 *
 * Model: test/model/inbox.pml.
 */
#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"
#include "wheel/timer/schedule.h"

/* --------------------------------------------------------------------- line */

/* The link to the ring of that priority, or to where it would be. */
static struct tw__job **ring_of(struct tw__job_line *line, int16_t priority)
{
	struct tw__job **at = &line->first;
	while (*at && (*at)->priority > priority) /* planted: low_first */
		at = &(*at)->lower;
	return at;
}

void tw__job_line_add(struct tw__job_line *line, struct tw__job *job)
{
	struct tw__job **at = ring_of(line, job->priority), *first = *at;
	line->count++;
	line->extra += job->options->task.permits - 1;
	if (first && first->priority == job->priority) {
		job->next = first;
		job->previous = first->previous;
		job->previous->next = first->previous = job;
	} else {
		job->next = job->previous = job;
		job->lower = first;
		*at = job;
	}
}

void tw__job_line_remove(struct tw__job_line *line, struct tw__job *job)
{
	struct tw__job **at = ring_of(line, job->priority), *next = job->next;
	TW_ASSERT(line->count > 0);
	line->count--;
	line->extra -= job->options->task.permits - 1;
	next->previous = job->previous;
	job->previous->next = next;
	if (*at != job)
		return;
	*at = next == job ? job->lower : next;
	next->lower = job->lower;
}

/* -------------------------------------------------------------------- times */

static void on_time(void *arg)
{
	struct tw__due *due = arg;
	struct tw_limiter *l = due->limiter;
	tw__limiter_lock(l);
	due->is_out = false;
	if (due->ring)
		due->ring(due);
	tw__limiter_leave(l, 1);
}

static void look(struct tw__work *work)
{
	on_time(TW__OWNER(struct tw__due, look, work));
}

void tw__due_stop(struct tw__due *due)
{
	if (due->is_out && tw__object_undelay(&due->limiter->object, due->timer))
		due->is_out = false;
}

void tw__due_set(struct tw__due *due, uint64_t at_ns)
{
	struct tw_limiter *l = due->limiter;
	bool is_never = at_ns > INT64_MAX || tw__beyond_range(l->service, at_ns);
	if (!is_never && due->is_out && tw_reset_at(l->service, due->timer, at_ns) == 0)
		return;
	tw__due_stop(due);
	if (is_never || due->is_out) /* it is on its way, and looks */
		return;
	due->is_out = true;
	if (tw_likely(!tw__object_delay(&l->object, TW_TASK_AT, at_ns, on_time, due, &due->timer)))
		return;
	due->timer = (tw_timer){0};
	tw__object_use(&l->object);
	tw__work_init(&due->look, l->service, tw_executor_inline(), look);
	tw__work_submit_later(&due->look);
}

/* --------------------------------------------------------------------- rate */

static uint64_t *start_at(struct tw__rate *rate, uint32_t place)
{
	return &rate->starts_ns[((uint64_t)rate->first + place) % rate->room];
}

/* Returns how many are there. If none is, the limiter looks again when the next one comes back. */
static uint64_t tokens(struct tw_limiter *l)
{
	struct tw__rate *rate = &l->rate;
	if (tw_likely(!rate->most))
		return UINT64_MAX;
	uint64_t now_ns = tw_service_now(l->service);
	while (rate->used && *start_at(rate, 0) + rate->interval_ns <= now_ns) {
		rate->first = (rate->first + 1) % rate->room;
		rate->used--;
	}
	uint64_t taken = (uint64_t)rate->used + rate->out; /* above `most` after it has shrunk */
	if (taken < rate->most)
		return rate->most - taken;
	if (rate->used && !rate->due.is_out) /* else an attempt that begins looks again */
		tw__due_set(&rate->due, *start_at(rate, 0) + rate->interval_ns);
	return 0;
}

void tw__rate_begin(struct tw_limiter *l)
{
	struct tw__rate *rate = &l->rate;
	TW_ASSERT(rate->used < rate->room);
	rate->out--;
	uint64_t now_ns = tw_service_now(l->service); /* planted: token_early */
	if (rate->most)
		*start_at(rate, rate->used++) = now_ns;
}

int tw__rate_set(struct tw_limiter *l, uint32_t starts, uint64_t interval_ns)
{
	struct tw__rate *rate = &l->rate;
	(void)tokens(l); /* those that are back, by the old interval */
	if (starts > rate->room) {
		uint64_t *starts_ns = tw__alloc(starts * sizeof *starts_ns);
		if (!starts_ns)
			return -ENOMEM;
		for (uint32_t i = 0; i < rate->used; i++)
			starts_ns[i] = *start_at(rate, i);
		tw__free(rate->starts_ns);
		rate->starts_ns = starts_ns;
		rate->room = starts;
		rate->first = 0;
	}
	if (!starts || interval_ns == TW_FOREVER)
		rate->used = 0;
	rate->most = starts;
	rate->interval_ns = tw__lesser(interval_ns, INT64_MAX);
	rate->due.limiter = l;
	tw__due_stop(&rate->due); /* who needs a token says so again */
	return 0;
}

/* ------------------------------------------------------------ coming and going */

void tw__job_enqueue(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	job->state = TW__JOB_QUEUED;
	job->since_ns = now_ns;
	tw__job_line_add(&l->line, job);
}

void tw__job_accept(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	job->id = ++l->counters.added;
	l->unfinished++;
	tw__job_enqueue(l, job, now_ns);
}

void tw__job_leave_line(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	bool is_queued = job->state == TW__JOB_QUEUED;
	tw__job_line_remove(is_queued ? &l->line : &l->delayed, job);
	if (is_queued)
		job->queued_ns += tw__elapsed(job->since_ns, now_ns);
}

void tw__inbox_look(struct tw_limiter *l, unsigned steps)
{
	tw__link link;
	if (!l->active && tw_load_relaxed(&l->object.word) & TW__ACTIVE)
		l->active = l->run_out = true; /* by a submit */
	while ((link = tw__object_take(&l->object, &steps))) {
		struct tw__job *job = TW__OWNER(struct tw__job, place, link);
		tw__job_accept(l, job, job->since_ns);
	}
}

void tw__limiter_lock(struct tw_limiter *l)
{
	tw__object_lock(&l->object); /* planted: limiter_unlocked */
	tw__inbox_look(l, UINT_MAX);
}

int tw__limiter_enter(const char *call, struct tw_limiter *l)
{
	int r = TW__OBJECT_CHECK_IN(call, l, "limiter");
	if (r)
		return r;
	tw__limiter_lock(l);
	tw__object_use(&l->object);
	return 0;
}

/* ------------------------------------------------------------- what may start */

bool tw__limiter_may_start(struct tw_limiter *l)
{
	const struct tw__job *first = l->line.first;
	if (!first || l->paused || l->ended)
		return false;
	/* planted: permit_less */
	if (l->permits.out + tw__job_needs(l, first) > l->permits.limit)
		return false;
	return tokens(l) > 0;
}

/* Jobs in line that could start now, by permits and tokens. */
static uint64_t startable(struct tw_limiter *l)
{
	if (l->ended || l->paused || l->permits.out >= l->permits.limit)
		return 0;
	uint64_t permits = l->permits.limit - l->permits.out;
	return tw__lesser(permits - tw__lesser(permits, l->line.extra), tokens(l));
}

bool tw__limiter_has_room(struct tw_limiter *l)
{
	uint64_t in_line = l->line.count, waiting = in_line + l->delayed.count;
	uint64_t most = l->config.max_pending;
	if (tw_likely(waiting < most))
		return true;
	uint64_t able = startable(l);
	if (!most)
		return able > in_line;
	/* planted: room_for_one_more */
	return waiting - tw__lesser(able, in_line) < most;
}

/* A submit need not call anybody. */
static bool somebody_will_look(const struct tw_limiter *l)
{
	return l->run_out ||
	       (!tw_load_relaxed(&l->object.closed) &&
		(l->paused || l->permits.out >= l->permits.limit || l->rate.due.is_out));
}

/* Keeps the rules of ACTIVE. True: the caller submits `run`. */
static bool attend_to_inbox(struct tw_limiter *l)
{
	bool submits = false;
	for (;;) {
		if (!l->run_out && tw__limiter_may_start(l)) {
			submits = l->active || tw__object_raise(&l->object);
			l->active = l->run_out = true;
		}
		if (!l->active || somebody_will_look(l))
			return submits;
		if (tw__object_rest(&l->object)) {
			l->active = false;
			return false;
		}
		tw__inbox_look(l, UINT_MAX);
	}
}

void tw__limiter_leave(struct tw_limiter *l, uint32_t n)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	bool tell = l->tells.first || tw__idle_is_due(l);
	if (tw_unlikely(l->room_sleepers && tw__limiter_has_room(l)))
		tw__object_ring(&l->object);
	if (tw_unlikely(tell)) {
		if (l->ended) /* a close that drops calls what the executor may refuse */
			tw__object_ring(&l->object);
		tell = !l->tell_out;
		l->tell_out = true;
		l->object.users += tell;
	}
	bool was_active = l->active, run = attend_to_inbox(l);
	if (n || (was_active && !l->active))
		tw__object_drop(&l->object, n);
	else
		tw__object_unlock(&l->object);
	if (run)
		tw__work_submit(&l->run);
	if (tell)
		tw__work_submit(&l->object.work);
}
