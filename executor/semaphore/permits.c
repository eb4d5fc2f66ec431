/*
 * The line of waiters, and who gets permits that come back. The word, its transitions and the
 * pairs: semaphore.c.
 */
#include "executor/semaphore/permits.h"

/* -------------------------------------------------------------------- line */

/*
 * In the order of sequences: last, except for a function that comes back from an executor that has
 * refused it, whose place is near the front.
 */
static void line_add(struct line *line, struct waiter *waiter, bool comes_back)
{
	struct waiter *next = comes_back ? line->first : NULL;
	while (next && next->sequence < waiter->sequence)
		next = next->next;
	/* planted: last_come_first */
	waiter->next = next;
	waiter->previous = next ? next->previous : line->last;
	*(waiter->next ? &waiter->next->previous : &line->last) = waiter;
	*(waiter->previous ? &waiter->previous->next : &line->first) = waiter;
}

static void line_remove(struct line *line, struct waiter *waiter)
{
	*(waiter->next ? &waiter->next->previous : &line->last) = waiter->previous;
	*(waiter->previous ? &waiter->previous->next : &line->first) = waiter->next;
}

static struct line *line_of(tw_semaphore *s, const struct waiter *waiter)
{
	return waiter->is_function ? &s->functions : &s->threads;
}

/* WAITERS is set, or is being set, by the caller. */
void tw__waiter_join(tw_semaphore *s, struct waiter *waiter, bool comes_back)
{
	TW_ASSERT_LOCKED(&s->lock);
	if (!comes_back)
		waiter->sequence = s->sequence++;
	waiter->queued = true;
	line_add(line_of(s, waiter), waiter, comes_back);
	s->waiting++;
	s->waiting_threads += !waiter->is_function;
}

void tw__waiter_leave(tw_semaphore *s, struct waiter *waiter)
{
	TW_ASSERT_LOCKED(&s->lock);
	waiter->queued = false;
	line_remove(line_of(s, waiter), waiter);
	s->waiting_threads -= !waiter->is_function;
	if (--s->waiting == 0)
		tw__permits_set(s, tw_load_relaxed(&s->word) & ~WAITERS);
}

/* The oldest, or NULL. */
struct waiter *tw__waiter_oldest(tw_semaphore *s)
{
	TW_ASSERT_LOCKED(&s->lock);
	struct waiter *thread = s->threads.first, *function = s->functions.first;
	if (thread && function)
		return thread->sequence < function->sequence ? thread : function;
	return thread ? thread : function;
}

bool tw__permits_take_or_announce(tw_semaphore *s, uint32_t n)
{
	TW_ASSERT_LOCKED(&s->lock);
	uint64_t word = tw_load_relaxed(&s->word), next;
	bool takes;
	do {
		if (word & WAITERS)
			return false;
		takes = has_room(word, n);
		next = takes ? word + n : word | WAITERS;
	} while (!tw_cas_acq_rel(&s->word, &word, next)); /* SEM1 */
	return takes;
}

/* ---------------------------------------------------------------- hand over */

static struct function *function_of(struct waiter *waiter)
{
	return TW__OWNER(struct function, waiter, waiter);
}

/* Out of line, with permits that count as held. */
static void semaphore_choose(tw_semaphore *s, struct waiter *waiter)
{
	tw__permits_set(s, tw_load_relaxed(&s->word) + waiter->n);
	tw__waiter_leave(s, waiter);
	if (waiter->is_function) {
		function_of(waiter)->state = HANDED;
		s->out++;
	}
}

/*
 * Those that fit are chosen, in the order of the line, and appended to the list. The first that
 * does not fit ends this, so that one that waits for many permits gets its turn.
 */
static void choose_fitting(tw_semaphore *s, bool threads_only, struct waiter ***end)
{
	struct waiter *waiter;
	while ((waiter = threads_only ? s->threads.first : tw__waiter_oldest(s)) &&
	       has_room(tw_load_relaxed(&s->word), waiter->n)) {
		semaphore_choose(s, waiter);
		waiter->next = NULL;
		**end = waiter;
		*end = &waiter->next;
	}
}

struct waiter *tw__waiters_start(tw_semaphore *s)
{
	TW_ASSERT_LOCKED(&s->lock);
	struct waiter *first = NULL, **end = &first;
	choose_fitting(s, false, &end);
	return first;
}

bool tw__permits_pass_on(tw_semaphore *s, uint32_t n, struct waiter **chosen)
{
	TW_ASSERT_LOCKED(&s->lock);
	uint64_t word = tw_load_relaxed(&s->word);
	*chosen = NULL;
	while (!(word & WAITERS)) {
		if (held_of(word) < n)
			return false;
		if (tw_cas_acq_rel(&s->word, &word, word - n)) /* SEM1 */
			return true;
	}
	if (held_of(word) < n)
		return false;
	tw__permits_set(s, word - n);
	*chosen = tw__waiters_start(s);
	return true;
}

static void grant_thread(struct waiter *waiter)
{
	_Atomic uint32_t *granted = &waiter->granted;
	tw_store_release(granted, 1); /* SEM2: the thread may be gone from here on */
	tw__futex_wake(granted, 1);
}

/* Whether the oldest thread would have enough with the permits of this function. */
static bool would_do_for_thread(const tw_semaphore *s, const struct function *function)
{
	const struct waiter *thread = s->threads.first;
	return thread && has_room(tw_load_relaxed(&s->word) - function->waiter.n, thread->n);
}

/*
 * The executor has refused a function. Threads that wait get its permits instead, the function is
 * first in line again, and those who got permits are returned; the function may be among them.
 * NULL: no thread can use its permits, or it was cancelled: its work has to make its way all the
 * same.
 */
static struct waiter *instead_of(tw_semaphore *s, struct function *function)
{
	struct waiter *first = NULL, **end = &first;
	pthread_mutex_lock(&s->lock);
	s->refused++;
	if (function->state == HANDED && would_do_for_thread(s, function)) {
		function->state = WAITING;
		s->out--;
		tw__waiter_join(s, &function->waiter, true);
		/* WAITERS is set: a thread waits */
		tw__permits_set(s, tw_load_relaxed(&s->word) - function->waiter.n);
		choose_fitting(s, true, &end);
		choose_fitting(s, false, &end);
	}
	pthread_mutex_unlock(&s->lock);
	return first;
}

void tw__permits_refused(tw_semaphore *s, struct function *function)
{
	struct waiter *others = instead_of(s, function);
	if (others)
		/* each round serves a thread, so the depth is bounded */
		tw__permits_grant(s, others);
	else
		tw__work_submit_later(&function->work);
}

void tw__permits_grant_function(tw_semaphore *s, struct function *function)
{
	if (tw__work_try_submit(&function->work) < 0)
		tw__permits_refused(s, function);
}

void tw__permits_grant(tw_semaphore *s, struct waiter *waiter)
{
	for (struct waiter *after; waiter; waiter = after) {
		after = waiter->next; /* first: it may be gone */
		if (waiter->is_function)
			tw__permits_grant_function(s, function_of(waiter));
		else
			grant_thread(waiter);
	}
}
