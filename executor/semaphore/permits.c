/* The line of waiters, and who gets a permit that comes back. The word, its transitions and the pairs: semaphore.c. */
#include "executor/semaphore/permits.h"

#include "mpsc/base/futex.h"

/* -------------------------------------------------------------------- line */

/*
 * In the order of sequences: last, but for a function that comes back from an executor that has refused it, whose place is near
 * the front.
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

/* Whether there was a permit to take; if not, WAITERS is set, and the caller joins the line. Under the lock. */
bool tw__permit_take_or_announce(tw_semaphore *s)
{
	TW_ASSERT_LOCKED(&s->lock);
	uint64_t word = tw_load_relaxed(&s->word), next;
	bool takes;
	do {
		if (word & WAITERS)
			return false;
		takes = held_of(word) < capacity_of(word);
		next = takes ? word + HELD_ONE : word | WAITERS;
	} while (!tw_cas_acq_rel(&s->word, &word, next)); /* SEM1 */
	return takes;
}

/* ---------------------------------------------------------------- hand over */

static struct function *function_of(struct waiter *waiter)
{
	return (struct function *)(void *)((char *)waiter - offsetof(struct function, waiter));
}

/* Out of line, with a permit that counts as held. The lock is held, and kept. */
struct waiter *tw__waiter_choose(tw_semaphore *s, struct waiter *waiter)
{
	TW_ASSERT_LOCKED(&s->lock);
	tw__waiter_leave(s, waiter);
	if (waiter->is_function) {
		function_of(waiter)->state = HANDED;
		s->out++;
	}
	return waiter;
}

/*
 * A permit that is held has no owner any more: the oldest waiter gets it, and is returned for tw__permit_grant(), or it is held no longer.
 * False: none was
 * held. Under the lock.
 */
bool tw__permit_pass_on(tw_semaphore *s, struct waiter **chosen)
{
	TW_ASSERT_LOCKED(&s->lock);
	uint64_t word = tw_load_relaxed(&s->word);
	*chosen = NULL;
	while (!(word & WAITERS)) {
		if (held_of(word) == 0)
			return false;
		if (tw_cas_acq_rel(&s->word, &word, word - HELD_ONE)) /* SEM1 */
			return true;
	}
	if (held_of(word) == 0)
		return false;
	if (held_of(word) > capacity_of(word))
		tw__permits_set(s, word - HELD_ONE);
	else
		*chosen = tw__waiter_choose(s, tw__waiter_oldest(s));
	return true;
}

static void grant_thread(struct waiter *waiter)
{
	_Atomic uint32_t *granted = &waiter->granted;
	tw_store_release(granted, 1); /* SEM2: the thread may be gone from here on */
	tw__futex_wake(granted, 1);
}

/*
 * The executor has refused a function. A thread that waits gets the permit instead, and the function is first in line again;
 * NULL: there is no such thread, or
 * it was cancelled, and its work has to make its way all the same.
 */
static struct waiter *instead_of(tw_semaphore *s, struct function *function)
{
	struct waiter *thread = NULL;
	pthread_mutex_lock(&s->lock);
	s->refused++;
	if (function->state == HANDED && s->threads.first) {
		thread = s->threads.first;
		function->state = WAITING;
		s->out--;
		tw__waiter_join(s, &function->waiter, true); /* before leave, so that WAITERS stays */
		tw__waiter_leave(s, thread);
	}
	pthread_mutex_unlock(&s->lock);
	return thread;
}

/* No lock is held. The function does not run inside this call, also if the executor runs tickets inside submit. */
void tw__permit_grant_function(tw_semaphore *s, struct function *function)
{
	if (tw__work_try_submit(&function->work) >= 0)
		return;
	struct waiter *thread = instead_of(s, function);
	if (thread)
		grant_thread(thread);
	else
		tw__work_submit_later(&function->work);
}

/* Nothing is done for NULL. Without the lock. */
void tw__permit_grant(tw_semaphore *s, struct waiter *waiter)
{
	if (!waiter)
		return;
	if (waiter->is_function)
		tw__permit_grant_function(s, function_of(waiter));
	else
		grant_thread(waiter);
}
