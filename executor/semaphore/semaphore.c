/*
 * The semaphore: one word for permits, a lock for the line of waiters.
 *
 * acquire and release while nobody waits: lock-free, one compare-and-swap. All else takes the lock.
 *
 * The word holds how many permits are out (held, 31 bits), how many there should be (capacity, 31
 * bits), and whether anybody waits. All else follows: available = capacity - held, debt = held -
 * capacity, whichever is not negative. While WAITERS is set only the owner of the lock changes the
 * word, and somebody is in line. n: the permits that a caller takes, gives back or waits for.
 *
 *   transition    from                         to         by whom
 *   take          no WAITERS, held + n <= cap  held + n   any thread
 *   give back     no WAITERS, held >= n        held - n   any thread
 *   announce      no WAITERS, held + n > cap   WAITERS    a waiter that joins the line, locked
 *   give to line  WAITERS, held >= n           held - n   a releaser, locked; then start
 *   start         WAITERS, held + n <= cap     held + n   locked; n of the oldest, while it fits
 *   last leaves   WAITERS                      none       who empties the line, locked
 *   resize        any                          cap        set_capacity, locked; then start
 *
 * Whatever may let the oldest waiter fit is followed by start: permits that return, a capacity that
 * grows, a waiter that leaves.
 *
 * Invariants: 1. WAITERS if and only if the line is not empty, 2. then held + n > cap for the n of
 * the oldest; both whenever the lock is free. 3. Permits that come back make held smaller, and
 * start counts those that it hands out: no permit is lost or doubled.
 * 4. Nobody is started before one who came earlier. So a waiter for many permits is served as soon
 * as those before it have given back enough, whatever comes later. Only a function that the
 * executor refuses is overtaken, by threads.
 *
 * The line is two queues, of threads and of functions, each with a number that gives the order of
 * arrival. If the executor refuses functions, the oldest thread is found immediately.
 *
 * A function's node: IDLE -> WAITING -> HANDED -> RUNNING -> IDLE, with the lock. From HANDED on
 * its work is with the executor, and comes back through semaphore_run(). A cancel in HANDED makes
 * it CANCELLED: semaphore_run() finds that, and calls nothing. If the executor refuses such work,
 * the driver runs it. Whenever the executor refuses a function, its node goes back to WAITING,
 * first in line, if a thread waits for which its permits would do. Else it keeps its permits, and
 * the driver offers it again.
 *
 * Pairing table
 *   SEM1  held: CAS acq_rel (give back) -> CAS acq_rel (take): what holders of the permits did. A
 *         start goes by the lock, then SEM2 or the executor.
 *   SEM2  waiter.granted: store-release (grant) -> load-acquire (the thread that waits). Nothing of
 *         the waiter is touched after the store; the wake-up goes to its address only, which may be
 *         another's by then: a wake-up too many.
 *
 * Model: test/model/sem.pml.
 */

#include <string.h>

#include "executor/semaphore/permits.h"
#include "mpsc/base/tsan.h"

/* Checks an acquire. A capacity of 0 may grow, so one permit can always be asked for. */
static inline int semaphore_check(const char *call, tw_semaphore *s, int32_t n)
{
	int r = tw__base_check(call, s ? &s->base : NULL, "semaphore");
	if (tw_unlikely(r) || tw_likely(n == 1))
		return r;
	uint64_t capacity = capacity_of(tw_load_relaxed(&s->word));
	return n < 1 || (uint64_t)n > capacity ? tw__bad(-EINVAL, call, "n") : 0;
}

/* ---------------------------------------------------------------- functions */

/* The lock is held. */
static void put(tw_semaphore *s, struct function *function)
{
	function->state = IDLE;
	s->out--;
	tw__node_put(&s->nodes, &function->node);
}

static void semaphore_run(struct tw__work *work)
{
	struct function *function = TW__OWNER(struct function, work, work);
	tw_semaphore *s = function->semaphore;
	if (tw_unlikely(tw__work_was_refused())) {
		tw__permits_refused(s, function);
		return;
	}
	pthread_mutex_lock(&s->lock);
	bool runs = function->state == HANDED;
	void *context = function->context;
	if (runs)
		function->state = RUNNING;
	else
		put(s, function);
	pthread_mutex_unlock(&s->lock);
	if (!runs)
		return;
	struct tw__run_record *shown =
	    tw__user_begin(s->base.service, function->fn, function->arg, NULL, 0);
	void *former = tw__context_enter(context);
	function->fn(function->arg);
	tw__context_leave(former);
	tw__user_end(shown);
	pthread_mutex_lock(&s->lock);
	put(s, function);
	pthread_mutex_unlock(&s->lock);
}

int tw_semaphore_acquire_async(tw_semaphore *s, int32_t n, tw_fn *fn, void *arg, tw_waiter *out)
{
	struct tw__node *node;
	int r = semaphore_check(__func__, s, n);
	if (!r && !fn)
		r = tw__invalid("fn is NULL");
	if (!r)
		r = tw__node_get(&s->nodes, &node);
	if (r)
		return r;
	struct function *function = (struct function *)(void *)node;
	function->semaphore = s;
	function->fn = fn;
	function->arg = arg;
	function->context = tw__context_capture();
	function->waiter = (struct waiter){.n = (uint32_t)n, .is_function = true};
	tw__work_init(&function->work, s->base.service, s->base.executor, semaphore_run);
	function->work.hears_refusals = true;
	if (out)
		*out = (tw_waiter){tw__node_handle(node)};
	pthread_mutex_lock(&s->lock);
	bool has = tw__permits_take_or_announce(s, (uint32_t)n);
	function->state = has ? HANDED : WAITING;
	if (has) {
		function->waiter.sequence = s->sequence++;
		s->out++;
	} else {
		tw__waiter_join(s, &function->waiter, false);
	}
	pthread_mutex_unlock(&s->lock);
	if (has)
		tw__permits_grant_function(s, function);
	return 0;
}

/* The lock is held. *next: who gets permits now. */
static int semaphore_cancel(tw_semaphore *s, struct function *function, struct waiter **next)
{
	switch (function->state) {
	case WAITING:
		tw__waiter_leave(s, &function->waiter);
		s->out++; /* put takes it down */
		put(s, function);
		*next = tw__waiters_start(s);
		return TW_CANCELLED;
	case HANDED:
		function->state = CANCELLED;
		tw__base_leave_work(&s->base, &function->work);
		(void)tw__permits_pass_on(s, function->waiter.n, next);
		return TW_CANCELLED;
	case RUNNING:
		return TW_RUNNING;
	default:
		return TW_GONE;
	}
}

int tw_semaphore_cancel(tw_semaphore *s, tw_waiter waiter)
{
	int r = TW__CHECK(s, "semaphore");
	if (r)
		return r;
	struct tw__node *node = tw__node_find(&s->nodes, waiter.id);
	if (!node)
		return TW_GONE;
	struct waiter *next = NULL;
	pthread_mutex_lock(&s->lock);
	int outcome = tw__node_is(node, waiter.id)
			  ? semaphore_cancel(s, (struct function *)(void *)node, &next)
			  : TW_GONE;
	pthread_mutex_unlock(&s->lock);
	tw__permits_grant(s, next);
	return outcome;
}

/* ------------------------------------------------------------------ threads */

static inline bool semaphore_take(tw_semaphore *s, uint32_t n)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely(word & WAITERS || !has_room(word, n)))
			return false;
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word + n))); /* SEM1 */
	return true;
}

/*
 * Too late: out of the line, unless permits are on their way, for which the thread then waits a
 * moment longer.
 */
static bool gave_up(tw_semaphore *s, struct waiter *self)
{
	struct waiter *next = NULL;
	pthread_mutex_lock(&s->lock);
	bool was_queued = self->queued;
	if (was_queued) {
		tw__waiter_leave(s, self);
		next = tw__waiters_start(s);
	}
	pthread_mutex_unlock(&s->lock);
	tw__permits_grant(s, next);
	return was_queued;
}

static int wait_in_line(tw_semaphore *s, uint32_t n, uint64_t deadline_ns)
{
	struct waiter self = {.n = n};
	pthread_mutex_lock(&s->lock);
	bool has = tw__permits_take_or_announce(s, n);
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

int tw_semaphore_acquire(tw_semaphore *s, int32_t n, uint64_t timeout_ns)
{
	int r = semaphore_check(__func__, s, n);
	if (tw_unlikely(r))
		return r;
	if (tw_unlikely(!semaphore_take(s, (uint32_t)n)))
		r = timeout_ns ? wait_in_line(s, (uint32_t)n, tw__deadline_in(timeout_ns))
			       : -EAGAIN;
	tw_tsan_acquire(s);
	return r;
}

/* ------------------------------------------------------------------ release */

static int release_slowly(tw_semaphore *s, uint32_t n)
{
	struct waiter *next;
	pthread_mutex_lock(&s->lock);
	bool was_held = tw__permits_pass_on(s, n, &next);
	if (!was_held)
		tw_add_relaxed(&s->over_releases, 1);
	pthread_mutex_unlock(&s->lock);
	tw__permits_grant(s, next);
	return was_held ? 0 : -EOVERFLOW;
}

int tw_semaphore_release(tw_semaphore *s, int32_t n)
{
	int r = TW__CHECK(s, "semaphore");
	if (tw_unlikely(r))
		return r;
	if (tw_unlikely(n < 1))
		return tw__bad(-EINVAL, __func__, "n");
	tw_tsan_release(s);
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely(word & WAITERS || held_of(word) < (uint32_t)n))
			return release_slowly(s, (uint32_t)n);
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word - (uint32_t)n))); /* SEM1 */
	return 0;
}

/* ------------------------------------------------------------------ capacity */

int tw_semaphore_set_capacity(tw_semaphore *s, int32_t capacity)
{
	int r = capacity < 0 ? tw__bad(-EINVAL, __func__, "capacity") : TW__CHECK(s, "semaphore");
	if (r)
		return r;
	pthread_mutex_lock(&s->lock);
	uint64_t word = tw_load_relaxed(&s->word), next;
	do {
		next = (word & ~(COUNT_MASK << CAPACITY_SHIFT)) | (uint64_t)capacity
								      << CAPACITY_SHIFT;
	} while (!tw_cas_acq_rel(&s->word, &word, next));
	struct waiter *next_in_line = tw__waiters_start(s);
	pthread_mutex_unlock(&s->lock);
	tw__permits_grant(s, next_in_line);
	return 0;
}

/* --------------------------------------------------------------- life, stats */

int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor,
			int32_t capacity)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (capacity < 0 || !tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, capacity < 0 ? "capacity" : "executor");
	tw_semaphore *s = aligned_alloc(_Alignof(tw_semaphore), sizeof *s);
	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof *s);
	int r = tw__layer_hold(&s->base, service, executor);
	if (r) {
		free(s);
		return r;
	}
	tw_store_relaxed(&s->word, (uint64_t)capacity << CAPACITY_SHIFT);
	pthread_mutex_init(&s->lock, NULL);
	tw__nodes_init(&s->nodes, sizeof(struct function));
	*out = s;
	return 0;
}

static void semaphore_free_all(tw_semaphore *s)
{
	tw__nodes_fini(&s->nodes);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int semaphore_end(tw_semaphore *s)
{
	pthread_mutex_lock(&s->lock);
	bool busy = s->waiting || s->out;
	pthread_mutex_unlock(&s->lock);
	if (busy)
		return -EBUSY;
	tw__layer_let_go(&s->base);
	semaphore_free_all(s);
	return 0;
}

int tw_semaphore_destroy(tw_semaphore *s)
{
	return TW__BASE_DESTROY(s, semaphore_free_all, semaphore_end);
}

int tw_semaphore_stats(tw_semaphore *s, struct tw_semaphore_stats *out)
{
	int r = TW__OUT_CHECK(tw_semaphore_stats, out, available);
	if (!r)
		r = TW__CHECK(s, "semaphore");
	if (r)
		return r;
	struct tw_semaphore_stats stats = {0};
	pthread_mutex_lock(&s->lock);
	uint64_t word = tw_load_relaxed(&s->word);
	stats.waiters = s->waiting;
	stats.waiting_threads = s->waiting_threads;
	stats.handed = s->out;
	stats.refused = s->refused;
	pthread_mutex_unlock(&s->lock);
	stats.capacity = capacity_of(word);
	stats.held = held_of(word);
	stats.available = stats.held < stats.capacity ? stats.capacity - stats.held : 0;
	stats.debt = stats.held > stats.capacity ? stats.held - stats.capacity : 0;
	stats.over_releases = tw_load_relaxed(&s->over_releases);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
