/*
 * The limiter's lock, and what whoever gives it up sees to: who may start, and who is called for
 * it. The line, and the rate's tokens.
 *
 * Line. Only the first job starts, and only when all its permits are free. So a job that takes many
 * permits waits for those before it, and for no more. A job joins behind those of its priority, and
 * leaves from anywhere. Weak at: many priorities in line at a time, since each walks over the
 * higher ones.
 *
 * Rate. A bucket of tokens, each of which comes back one interval after its attempt has started. A
 * token is taken when an attempt leaves the line, and counts from just before the function is
 * called: the event STARTED is called between the two, and may take long.
 */
#include "executor/limiter/line.h"
#include "wheel/timer/schedule.h"

/* --------------------------------------------------------------------- line */

/* The link to the first job that is not above the job's priority. */
static struct tw__job **ring_of(struct tw__job_line *line, const struct tw__job *job)
{
	struct tw__job **at = &line->first;
	while (*at && (*at)->priority > job->priority) /* planted: low_first */
		at = &(*at)->lower;
	return at;
}

void tw__job_line_add(struct tw__job_line *line, struct tw__job *job)
{
	struct tw__job **at = ring_of(line, job), *first = *at;
	line->count++;
	line->extra += job->options->permits - 1;
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
	struct tw__job **at = ring_of(line, job), *heir = job->next;
	TW_ASSERT(line->count > 0);
	line->count--;
	line->extra -= job->options->permits - 1;
	heir->previous = job->previous;
	job->previous->next = heir;
	if (*at != job)
		return;
	*at = heir == job ? job->lower : heir;
	heir->lower = job->lower;
}

/* -------------------------------------------------------------------- times */

/* On the tick thread. */
static void on_time(void *arg)
{
	struct tw__due *due = arg;
	struct tw_limiter *l = due->limiter;
	tw__limiter_lock(l, NULL);
	due->ring(due);
	tw__limiter_leave(l, 1);
}

static void look(struct tw__work *work)
{
	on_time(TW__OWNER(struct tw__due, look, work));
}

bool tw__due_stop(struct tw__due *due)
{
	if (due->is_out && tw__object_undelay(&due->limiter->object, due->timer))
		due->is_out = false;
	return !due->is_out;
}

void tw__due_set(struct tw__due *due, uint64_t at_ns)
{
	struct tw_limiter *l = due->limiter;
	bool comes = at_ns <= INT64_MAX && !tw__beyond_range(l->service, at_ns);
	if (comes && due->is_out && tw_reset_at(l->service, due->timer, at_ns) == 0)
		return;
	/* one that can be neither moved nor taken back is on its way, and looks */
	if (!tw__due_stop(due) || !comes)
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

/*
 * Tokens that are there; UINT64_MAX without a rate. If there is none, the limiter looks again when
 * the next one comes back.
 */
static uint64_t tokens(struct tw_limiter *l)
{
	struct tw__rate *rate = &l->rate;
	if (tw_likely(!rate->starts_ns))
		return UINT64_MAX;
	while (rate->used && *start_at(rate, 0) + rate->interval_ns <= tw__limiter_now(l)) {
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

/* Who needs a token looks as the lock is given up. */
static void on_token(struct tw__due *due)
{
	due->is_out = false;
}

void tw__rate_begin(struct tw_limiter *l)
{
	tw__limiter_lock(l, NULL);
	TW_ASSERT(l->rate.used < l->rate.room);
	l->rate.out--;
	/* planted: token_early */
	*start_at(&l->rate, l->rate.used++) = tw__limiter_now(l);
	tw__limiter_leave(l, 0);
}

int tw__rate_set(struct tw_limiter *l, uint32_t starts, uint64_t interval_ns)
{
	struct tw__rate *rate = &l->rate;
	(void)tokens(l); /* those that are back, by the old interval */
	if (starts > rate->room) {
		uint64_t *starts_ns = malloc(starts * sizeof *starts_ns);
		if (!starts_ns)
			return -ENOMEM;
		for (uint32_t i = 0; i < rate->used; i++)
			starts_ns[i] = *start_at(rate, i);
		free(rate->starts_ns);
		rate->starts_ns = starts_ns;
		rate->room = starts;
		rate->first = 0;
	}
	rate->most = starts;
	rate->interval_ns = interval_ns;
	rate->due.limiter = l;
	rate->due.ring = on_token;
	tw__due_stop(&rate->due); /* who needs a token says so again */
	return 0;
}

/* ------------------------------------------------------------- what may start */

bool tw__limiter_may_start(struct tw_limiter *l)
{
	const struct tw__job *first = l->line.first;
	if (!first || l->paused || l->ended)
		return false;
	/* planted: permit_less */
	if (l->stats.permits + tw__job_needs(l, first) > l->stats.max_concurrency)
		return false;
	return tokens(l) > 0;
}

bool tw__limiter_has_room(struct tw_limiter *l, uint32_t permits)
{
	uint64_t in_line = l->line.count, waiting = in_line + l->delayed.count;
	uint64_t most = l->config.max_pending, limit = l->stats.max_concurrency;
	if (tw_likely(waiting < most))
		return true;
	/* of the jobs in line, those that could start now; with this one, if none may wait */
	uint64_t taken = l->stats.permits + l->line.extra + (most ? 0 : permits - 1);
	uint64_t free = taken < limit && !l->ended && !l->paused ? limit - taken : 0;
	uint64_t able = free ? tokens(l) : 0;
	if (able > free)
		able = free;
	if (!most)
		return able > in_line;
	/* planted: room_for_one_more */
	return waiting - (able < in_line ? able : in_line) < most;
}

/* --------------------------------------------------------------------- lock */

/* Threads that wait for room are called if they are to look. */
static void look_for_room(struct tw_limiter *l)
{
	if (tw_load_relaxed(&l->object.closed) || tw__limiter_has_room(l, 1) ||
	    (l->paused && l->config.flags & TW_LIMITER_PAUSED_REFUSES))
		tw__object_ring(&l->object);
}

static void has_lock(struct tw_limiter *l, struct tw__tells *tells)
{
	l->mine = tells ? tells : &l->tells;
	l->now_ns = 0;
}

void tw__limiter_lock(struct tw_limiter *l, struct tw__tells *tells)
{
	tw__object_lock(&l->object); /* planted: limiter_unlocked */
	has_lock(l, tells);
}

int tw__limiter_enter(const char *call, struct tw_limiter *l, struct tw__tells *tells)
{
	int r = TW__OBJECT_CHECK_IN(call, l, "limiter");
	if (!r)
		tw__limiter_lock(l, tells);
	return r;
}

bool tw__limiter_await(struct tw_limiter *l, uint64_t deadline_ns)
{
	bool in_time = tw__object_await(&l->object, deadline_ns);
	has_lock(l, NULL);
	return in_time;
}

void tw__limiter_leave(struct tw_limiter *l, uint32_t n)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	if (tw_unlikely(l->room_sleepers))
		look_for_room(l);
	bool run = !l->run_out && tw__limiter_may_start(l);
	bool tell = !l->tell_out && (l->tells.first || l->tells.idle);
	l->run_out |= run;
	l->tell_out |= tell;
	if (tell && l->tells.first) /* the executor's, also after a close (drop_all) */
		tw_store_relaxed(&l->object.work.executor, l->object.executor);
	l->object.users += (uint32_t)run + tell;
	if (n)
		tw__object_drop(&l->object, n);
	else
		tw__object_unlock(&l->object);
	if (run)
		tw__work_submit(&l->run);
	if (tell)
		tw__work_submit(&l->object.work);
}
