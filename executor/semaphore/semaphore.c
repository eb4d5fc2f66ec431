/*
 * The semaphore: one word for permits, a lock for the line of waiters.
 *
 * try_acquire, and acquire and release while nobody waits: lock-free, one compare-and-swap. Everything else takes the lock.
 *
 * The word holds how many permits are out (held, 31 bits), how many there should be (capacity, 31 bits), and whether anybody waits.
 * All else follows: available = capacity - held, debt = held - capacity, whichever is not negative. While WAITERS is set only the
 * owner of the lock changes the word, and somebody is in line.
 *
 *   transition             from                     to             by whom
 *   take                   no WAITERS, held < cap   held + 1       any thread
 *   give back              no WAITERS, held > 0     held - 1       any thread
 *   announce               no WAITERS, held >= cap  WAITERS        a waiter, with the lock, as it joins the line
 *   hand over              WAITERS, held <= cap     the same       a releaser, with the lock: the permit goes to the oldest
 *   pay a debt             WAITERS, held > cap      held - 1       a releaser, with the lock
 *   start                  WAITERS, held < cap      held + 1       set_capacity, with the lock, as often as it can
 *   last leaves            WAITERS                  none           whoever takes the last one out of the line, with the lock
 *   resize                 any                      cap            set_capacity, with the lock
 *
 * Invariants: 1. WAITERS if and only if the line is not empty, 2. then held >= cap; both whenever the lock is free. 3. A permit that
 * comes back is given to one waiter, or makes held smaller: the two are different branches of one function (pass_on).
 *
 * The line is two queues, of threads and of functions, each with a number that says who came first: where the executor refuses
 * functions, the
 * oldest thread is found at once.
 *
 * A function's node: IDLE -> WAITING -> HANDED -> RUNNING -> IDLE, with the lock. From HANDED on its work is with the executor,
 * and comes back through run(). A cancel in HANDED makes it CANCELLED: run() finds that, and calls nothing. An executor that refuses
 * gives the node back to WAITING, first in line, if a thread waits that takes the permit instead.
 *
 * Pairing table
 *   SEM1  held: CAS acq_rel (give back) -> CAS acq_rel (take): what holders of the permit did. A hand-over goes by the lock, then
 *   SEM2 or the executor.
 *   SEM2  waiter.granted: store-release (grant) -> load-acquire (the thread that waits). Nothing of the waiter is touched after the
 *   store;
 *       the wake-up goes to its address only, which may be another's by then: a wake-up too many.
 */
#include <errno.h>

#include "executor/semaphore/permits.h"
#include "mpsc/base/futex.h"
#include "wheel/core/context.h"
#include "wheel/core/user_code.h"

/* ---------------------------------------------------------------- functions */

/* The lock is held. */
static void put(tw_semaphore *s, struct function *function)
{
	function->state = IDLE;
	s->out--;
	tw__node_put(&s->nodes, &function->node);
}

static void run(struct tw__work *work)
{
	struct function *function = (struct function *)(void *)((char *)work - offsetof(struct function, work));
	tw_semaphore *s = function->semaphore;
	pthread_mutex_lock(&s->lock);
	bool runs = function->state == HANDED;
	void *context = function->context;
	if (runs)
		function->state = RUNNING;
	else
		put(s, function);
	pthread_mutex_unlock(&s->lock);
	if (!runs) {
		tw__context_release(context);
		return;
	}
	struct tw__context_saved saved;
	struct tw__run_level *level = tw__user_begin(s->service, TW_RUN_KIND_SEMAPHORE, function->fn, 0);
	tw__context_enter(context, &saved);
	function->fn(function->arg);
	tw__context_leave(&saved);
	tw__user_end(level);
	tw__context_release(context);
	pthread_mutex_lock(&s->lock);
	put(s, function);
	pthread_mutex_unlock(&s->lock);
}

int tw_semaphore_acquire_async(tw_semaphore *s, tw_fn *fn, void *arg, tw_waiter *out)
{
	struct tw__node *node;
	int r = fn ? TW__CHECK(s) : -EINVAL;
	if (!r)
		r = tw__node_get(&s->nodes, &node);
	if (r)
		return r;
	struct function *function = (struct function *)(void *)node;
	function->semaphore = s;
	function->fn = fn;
	function->arg = arg;
	function->context = tw__context_capture();
	function->waiter = (struct waiter){.is_function = true};
	tw__work_init(&function->work, s->service, s->base.executor, run);
	if (out)
		*out = (tw_waiter){tw__node_handle(node)};
	pthread_mutex_lock(&s->lock);
	bool has = tw__permit_take_or_announce(s);
	function->state = has ? HANDED : WAITING;
	if (has) {
		function->waiter.sequence = s->sequence++;
		s->out++;
	} else {
		tw__waiter_join(s, &function->waiter, false);
	}
	pthread_mutex_unlock(&s->lock);
	if (has)
		tw__permit_grant_function(s, function);
	return 0;
}

/* The lock is held. *next: who gets the permit that had been handed to it; *context: to be released. */
static int cancel(tw_semaphore *s, struct function *function, struct waiter **next, void **context)
{
	switch (function->state) {
	case WAITING:
		tw__waiter_leave(s, &function->waiter);
		*context = function->context;
		s->out++; /* put takes it down */
		put(s, function);
		return TW_CANCELLED;
	case HANDED:
		function->state = CANCELLED;
		tw__permit_pass_on(s, next);
		return TW_CANCELLED;
	case RUNNING:
		return TW_RUNNING;
	default:
		return TW_GONE;
	}
}

int tw_semaphore_cancel(tw_semaphore *s, tw_waiter waiter)
{
	int r = TW__CHECK(s);
	if (r)
		return r;
	struct tw__node *node = tw__node_find(&s->nodes, waiter.id);
	if (!node)
		return TW_GONE;
	struct waiter *next = NULL;
	void *context = NULL;
	pthread_mutex_lock(&s->lock);
	int outcome =
	    tw__node_is(node, waiter.id) ? cancel(s, (struct function *)(void *)node, &next, &context) : TW_GONE;
	pthread_mutex_unlock(&s->lock);
	tw__context_release(context);
	tw__permit_grant(s, next);
	return outcome;
}

/* ------------------------------------------------------------------ threads */

static inline bool take(tw_semaphore *s)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely(word & WAITERS || held_of(word) >= capacity_of(word)))
			return false;
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word + HELD_ONE))); /* SEM1 */
	return true;
}

int tw_semaphore_try_acquire(tw_semaphore *s)
{
	int r = TW__CHECK(s);
	return r || tw_likely(take(s)) ? r : -EAGAIN;
}

/* Too late: out of the line, unless a permit is on its way, for which the thread then waits a moment longer. */
static bool gave_up(tw_semaphore *s, struct waiter *self)
{
	pthread_mutex_lock(&s->lock);
	bool was_queued = self->queued;
	if (was_queued)
		tw__waiter_leave(s, self);
	pthread_mutex_unlock(&s->lock);
	return was_queued;
}

static int wait_in_line(tw_semaphore *s, uint64_t deadline_ns)
{
	struct waiter self = {.is_function = false};
	pthread_mutex_lock(&s->lock);
	bool has = tw__permit_take_or_announce(s);
	if (!has)
		tw__waiter_join(s, &self, false);
	pthread_mutex_unlock(&s->lock);
	while (!has && !(has = tw_load_acquire(&self.granted))) { /* SEM2 */
		if (tw__futex_wait(&self.granted, 0, deadline_ns))
			continue;
		if (gave_up(s, &self))
			return -ETIMEDOUT;
		deadline_ns = UINT64_MAX;
	}
	return 0;
}

int tw_semaphore_acquire_until(tw_semaphore *s, uint64_t deadline_ns)
{
	int r = tw_semaphore_try_acquire(s);
	return tw_likely(r != -EAGAIN) ? r : wait_in_line(s, deadline_ns);
}

int tw_semaphore_acquire(tw_semaphore *s, uint64_t timeout_ns)
{
	int r = tw_semaphore_try_acquire(s);
	if (tw_likely(r != -EAGAIN) || timeout_ns == 0)
		return r;
	uint64_t now_ns = timeout_ns == TW_FOREVER ? 0 : tw_clock_now(tw_clock_monotonic());
	return wait_in_line(s, timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns);
}

/* ------------------------------------------------------------------ release */

static int release_slowly(tw_semaphore *s)
{
	struct waiter *next;
	pthread_mutex_lock(&s->lock);
	bool was_held = tw__permit_pass_on(s, &next);
	if (!was_held)
		tw_add_relaxed(&s->over_releases, 1);
	pthread_mutex_unlock(&s->lock);
	tw__permit_grant(s, next);
	return was_held ? 0 : -EOVERFLOW;
}

int tw_semaphore_release(tw_semaphore *s)
{
	int r = TW__CHECK(s);
	if (tw_unlikely(r))
		return r;
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely(word & WAITERS || held_of(word) == 0))
			return release_slowly(s);
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word - HELD_ONE))); /* SEM1 */
	return 0;
}

/* ------------------------------------------------------------------ capacity */

/* Waiters that get a new permit, oldest first, linked by `next`. The lock is held. */
static struct waiter *start_waiters(tw_semaphore *s)
{
	struct waiter *first = NULL, **end = &first;
	uint64_t word;
	while (s->waiting && (word = tw_load_relaxed(&s->word), held_of(word) < capacity_of(word))) {
		tw__permits_set(s, word + HELD_ONE);
		struct waiter *waiter = tw__waiter_choose(s, tw__waiter_oldest(s));
		waiter->next = NULL;
		*end = waiter;
		end = &waiter->next;
	}
	return first;
}

int tw_semaphore_set_capacity(tw_semaphore *s, int32_t capacity)
{
	int r = capacity < 0 ? -EINVAL : TW__CHECK(s);
	if (r)
		return r;
	pthread_mutex_lock(&s->lock);
	uint64_t word = tw_load_relaxed(&s->word), next;
	do {
		next = (word & ~(COUNT_MASK << CAPACITY_SHIFT)) | (uint64_t)capacity << CAPACITY_SHIFT;
	} while (!tw_cas_acq_rel(&s->word, &word, next));
	struct waiter *waiter = start_waiters(s);
	pthread_mutex_unlock(&s->lock);
	for (struct waiter *after; waiter; waiter = after) {
		after = waiter->next; /* first: it may be gone */
		tw__permit_grant(s, waiter);
	}
	return 0;
}
