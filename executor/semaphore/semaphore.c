/*
 * The semaphore: one word for permits, and a line of those who wait. Calls permits.c and the base.
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
 *   start         WAITERS, held + n <= cap     held + n   locked; n of the first, while it fits
 *   last leaves   WAITERS                      none       who empties the line, locked
 *   resize        any                          cap        set_capacity, locked; then start
 *
 * Whatever may let the first waiter fit is followed by start: permits that return, a capacity that
 * grows, a waiter that leaves.
 *
 * Invariants: 1. WAITERS if and only if the line is not empty, 2. then held + n > cap for the n of
 * the first; both whenever the lock is free. 3. Permits that come back make held smaller, and start
 * counts those that it hands out: no permit is lost or doubled. 4. Nobody is started before one who
 * came earlier, except threads before a function that the executor refuses.
 *
 * A function, under the lock: QUEUED (in line) -> COMING (it has permits; its work is with the
 * executor, or `refused`) -> RUNNING -> its node is put. A cancel of one that is COMING makes it
 * ENDED, and its permits go on; who gets its work next puts it.
 *
 * Refused. A function that the executor refuses goes back to the head of the line, if a thread
 * waits for which its permits would do. Else it keeps its permits, and the driver offers it again
 * in the next tick.
 *
 * Pairing table
 *   SEM1  held: CAS acq_rel (give back) -> CAS acq_rel (take): what holders of the permits did. A
 *         start goes by the lock, then WAITER1 or the executor.
 *
 * Model: test/model/sem.pml.
 */
#include "executor/semaphore/permits.h"

#include "mpsc/base/tsan.h"

/* ---------------------------------------------------------------------- functions */

/* Checks an acquire. A capacity of 0 may grow, so one permit can always be asked for. */
static inline int semaphore_check(const char *call, tw_semaphore *s, int32_t n)
{
	int r = TW__OBJECT_CHECK_IN(call, s, "semaphore");
	if (tw_unlikely(r) || tw_likely(n == 1))
		return r;
	uint64_t capacity = capacity_of(tw_load_relaxed(&s->word));
	return n < 1 || (uint64_t)n > capacity ? tw__bad(-EINVAL, call, "n") : 0;
}

static void run_function(struct tw__work *work)
{
	struct function *function = TW__OWNER(struct function, work, work);
	tw_semaphore *s = TW__OWNER(tw_semaphore, object, tw_load_relaxed(&function->node.owner));
	struct tw__inside inside;
	tw__object_lock(&s->object);
	if (function->node.state != TW__ITEM_ENDED) {
		function->node.state = TW__ITEM_RUNNING;
		tw__object_unlock(&s->object);
		tw__inside_begin(&inside, &s->object, function, function->fn, function->arg, NULL,
				 function->context);
		function->fn(function->arg);
		tw__inside_end(&inside);
		tw__object_lock(&s->object);
	}
	tw__function_put(s, function);
	tw__object_unlock(&s->object);
}

int tw_semaphore_acquire_async(tw_semaphore *s, int32_t n, tw_fn *fn, void *arg, tw_waiter *out)
{
	struct tw__node *node;
	struct tw__line chosen;
	int r = semaphore_check(__func__, s, n);
	if (!r && !fn)
		r = tw__invalid("fn is NULL");
	if (!r)
		r = tw__node_get(&s->nodes, &s->object, &node);
	if (r)
		return r;
	struct function *function = (struct function *)(void *)node;
	function->fn = fn;
	function->arg = arg;
	function->context = tw__context_capture();
	function->order = 0;
	function->waiter = (struct tw__waiter){.n = (uint32_t)n, .work = &function->work};
	tw__work_init(&function->work, tw__object_service(&s->object), s->object.executor,
		      run_function);
	if (out)
		*out = (tw_waiter){tw__node_handle(node)};
	tw__line_init(&chosen);
	tw__object_lock(&s->object);
	node->state = TW__ITEM_QUEUED;
	if (tw__permits_take_or_announce(s, (uint32_t)n)) {
		node->state = TW__ITEM_COMING;
		function->order = ++s->order;
		s->out++;
		tw__waiter_join(&chosen, &function->waiter);
	} else {
		tw__semaphore_join(s, &function->waiter);
	}
	tw__object_unlock(&s->object);
	tw__semaphore_grant(s, &chosen);
	return 0;
}

/* The lock is held. */
static int semaphore_cancel(tw_semaphore *s, struct function *function, struct tw__line *chosen)
{
	struct tw__base base = tw__object_base(&s->object);
	switch ((enum tw__item_state)function->node.state) {
	case TW__ITEM_QUEUED:
		tw__semaphore_leave(s, &function->waiter, NULL);
		s->out++; /* put takes it down */
		tw__function_put(s, function);
		tw__semaphore_start(s, chosen);
		return TW_CANCELLED;
	case TW__ITEM_COMING:
		function->node.state = TW__ITEM_ENDED;
		tw__base_leave_work(&base, &function->work);
		(void)tw__permits_pass_on(s, function->waiter.n, chosen);
		return TW_CANCELLED;
	case TW__ITEM_RUNNING:
		return TW_RUNNING;
	default:
		return TW_GONE;
	}
}

int tw_semaphore_cancel(tw_semaphore *s, tw_waiter waiter)
{
	struct tw__line chosen;
	int r = TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	tw__line_init(&chosen);
	tw__object_lock(&s->object);
	struct function *function =
	    (struct function *)(void *)tw__node_find(&s->nodes, &s->object, waiter.id);
	r = function ? semaphore_cancel(s, function, &chosen) : TW_GONE;
	tw__object_unlock(&s->object);
	tw__semaphore_grant(s, &chosen);
	return r;
}

/* ------------------------------------------------------------------------ threads */

static inline bool semaphore_take(tw_semaphore *s, uint32_t n)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely(word & WAITERS || !has_room(word, n)))
			return false;
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word + n))); /* SEM1 */
	return true;
}

static int wait_in_line(tw_semaphore *s, uint32_t n, uint64_t deadline_ns)
{
	struct tw__waiter self = {.n = n};
	struct tw__line chosen;
	tw__object_lock(&s->object);
	bool has = tw__permits_take_or_announce(s, n);
	if (!has)
		tw__semaphore_join(s, &self);
	tw__object_unlock(&s->object);
	if (has || tw__waiter_sleep(&self, deadline_ns))
		return 0;
	tw__line_init(&chosen);
	tw__object_lock(&s->object);
	bool gave_up = tw__waiter_in_line(&self);
	if (gave_up) {
		tw__semaphore_leave(s, &self, NULL);
		tw__semaphore_start(s, &chosen);
	}
	tw__object_unlock(&s->object);
	tw__semaphore_grant(s, &chosen);
	if (!gave_up)
		tw__waiter_sleep(&self, UINT64_MAX); /* the permits are on their way */
	return gave_up ? -ETIMEDOUT : 0;
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

static int release_slowly(tw_semaphore *s, uint32_t n)
{
	struct tw__line chosen;
	tw__line_init(&chosen);
	tw__object_lock(&s->object);
	bool was_held = tw__permits_pass_on(s, n, &chosen);
	if (!was_held)
		tw_add_relaxed(&s->over_releases, 1);
	tw__object_unlock(&s->object);
	tw__semaphore_grant(s, &chosen);
	return was_held ? 0 : -EOVERFLOW;
}

int tw_semaphore_release(tw_semaphore *s, int32_t n)
{
	int r = TW__OBJECT_CHECK(s, "semaphore");
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

int tw_semaphore_set_capacity(tw_semaphore *s, int32_t capacity)
{
	struct tw__line chosen;
	int r = capacity < 0 ? tw__bad(-EINVAL, __func__, "capacity")
			     : TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	tw__line_init(&chosen);
	tw__object_lock(&s->object);
	uint64_t word = tw_load_relaxed(&s->word), others = ~(COUNT_MASK << CAPACITY_SHIFT);
	while (!tw_cas_acq_rel(&s->word, &word,
			       (word & others) | (uint64_t)capacity << CAPACITY_SHIFT))
		continue;
	tw__semaphore_start(s, &chosen);
	tw__object_unlock(&s->object);
	tw__semaphore_grant(s, &chosen);
	return 0;
}

/* --------------------------------------------------------------------- life, stats */

static void semaphore_free(struct tw__object *object)
{
	tw_semaphore *s = TW__OWNER(tw_semaphore, object, object);
	tw__nodes_fini(&s->nodes);
	free(s);
}

int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor,
			int32_t capacity)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (capacity < 0 || !tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, capacity < 0 ? "capacity" : "executor");
	tw_semaphore *s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	int r = tw__object_init(&s->object, service, executor, tw__semaphore_offer_again,
				semaphore_free);
	if (r) {
		free(s);
		return r;
	}
	tw__work_leave_executor(&s->object.work); /* the driver runs it */
	tw__permits_set(s, (uint64_t)capacity << CAPACITY_SHIFT);
	tw__line_init(&s->line);
	tw__line_init(&s->refused);
	tw__nodes_init(&s->nodes, sizeof(struct function));
	*out = s;
	return 0;
}

int tw_semaphore_destroy(tw_semaphore *s)
{
	if (!s || tw__object_destroy_forked(&s->object))
		return 0;
	tw__object_lock(&s->object);
	if (s->waiting || s->out) {
		tw__object_unlock(&s->object);
		return -EBUSY;
	}
	tw__object_destroy(&s->object);
	return 0;
}

int tw_semaphore_stats(tw_semaphore *s, struct tw_semaphore_stats *out)
{
	int r = TW__OUT_CHECK(tw_semaphore_stats, out, available);
	if (!r)
		r = TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	struct tw_semaphore_stats stats = {.over_releases = tw_load_relaxed(&s->over_releases)};
	tw__object_lock(&s->object);
	uint64_t word = tw_load_relaxed(&s->word);
	stats.waiters = s->waiting;
	stats.waiting_threads = s->waiting_threads;
	stats.handed = s->out;
	stats.refused = s->refusals;
	tw__object_unlock(&s->object);
	stats.capacity = capacity_of(word);
	stats.held = held_of(word);
	stats.available = stats.held < stats.capacity ? stats.capacity - stats.held : 0;
	stats.debt = stats.held > stats.capacity ? stats.held - stats.capacity : 0;
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
