/*
 * The semaphore: one word for permits, and a line of waiters. Calls the base.
 *
 * While nobody waits, acquire and release are one compare-and-swap. All else takes the lock.
 *
 * The word: permits that are out (held, 31 bits), the capacity (31 bits), WAITERS. While WAITERS is
 * set only the owner of the lock changes the word. n: the permits of a caller.
 *
 *   transition    from                         to         by whom
 *   take          no WAITERS, held + n <= cap  held + n   any thread
 *   give back     no WAITERS, held >= n        held - n   any thread
 *   announce      no WAITERS                   WAITERS    a waiter that joins the line, locked
 *   give to line  WAITERS, held >= n           held - n   a releaser, locked
 *   start         WAITERS, held + n <= cap     held + n   the first in line, at each unlock
 *   last leaves   WAITERS                      none       the last waiter, locked
 *   rejoin        any                          WAITERS    the driver, locked
 *   resize        any                          cap        set_capacity, locked
 *
 * Invariants, whenever the lock is free: 1. WAITERS if and only if the line is not empty, 2. then
 * held + n > cap for the n of the first. 3. No permit is lost or doubled. 4. No waiter starts
 * before an earlier one in line.
 *
 * A waiter, under the lock: QUEUED (in line) -> COMING (it has permits; a function's work is with
 * the executor). A function: -> RUNNING -> its node is put. A cancel of one that is COMING makes it
 * ENDED, and its permits go on; the executor's call of its work puts the node.
 *
 * A function that the executor refuses is REFUSED: its permits go on to threads at the front of the
 * line. It joins the line again in the next tick, as the first; until then no function is tried.
 *
 * Pairing table
 *   SEM1  held: CAS acq_rel (give back) -> CAS acq_rel (take): what holders of the permits did. A
 *       start goes by the lock, then SEM2 or the executor.
 *   SEM2  granted: store-release (grant) -> load-acquire (the thread that sleeps). Then nothing of
 *       the waiter, on the thread's stack, is touched: the wake-up goes to its address alone.
 *
 * Model: test/model/sem.pml.
 */
#include "tickwheel/semaphore.h"
#include "executor/base/object.h"

#define HELD UINT64_C(0x7fffffff)
#define CAPACITY_SHIFT 31
#define WAITERS (UINT64_C(1) << 63)

enum { QUEUED, COMING, RUNNING, REFUSED, ENDED };

struct waiter {
	struct tw__in_line place; /* QUEUED: in the line; REFUSED: among those */
	uint32_t n;
	_Atomic uint32_t granted; /* SEM2 */
	uint8_t state;
	bool is_thread;
};

struct function {
	struct tw__node node;
	tw_fn *fn;
	void *arg, *context;
	struct waiter waiter;
	struct tw__work work;
};

_Static_assert(sizeof(struct function) <= TW__SMALL_NODE, "two cache lines");

struct tw_semaphore {
	struct tw__object object; /* first; its work brings refused functions back */
	_Atomic uint64_t word;
	/* What follows is under the object's lock. */
	struct tw__line line;
	struct tw__line refused;           /* until the next tick */
	uint64_t waiting, waiting_threads; /* in line, or refused */
	uint64_t out;                      /* functions that have permits, and are not over */
	uint64_t refusals, over_releases;
};

static uint64_t capacity_of(uint64_t word)
{
	return word >> CAPACITY_SHIFT & HELD;
}

static bool has_room(uint64_t word, uint32_t n)
{
	return (word & HELD) + n <= capacity_of(word);
}

static struct function *function_at(tw__link link)
{
	return TW__OWNER(struct function, waiter.place, link);
}

/* False: there are not n permits, or somebody waits. */
static inline bool take(tw_semaphore *s, uint32_t n)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely(word & WAITERS || !has_room(word, n)))
			return false;
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word + n))); /* SEM1 */
	return true;
}

/* False: fewer were held; or, without the lock, somebody waits. */
static inline bool give_back(tw_semaphore *s, uint32_t n, bool locked)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely((word & WAITERS && !locked) || (word & HELD) < n))
			return false;
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word - n))); /* SEM1 */
	return true;
}

/* ------------------------------------------------------------- the line, locked */

/* The unlock that is next starts it if it is the first, and fits. */
static void semaphore_join(tw_semaphore *s, struct waiter *waiter)
{
	if (!(tw_load_relaxed(&s->word) & WAITERS))
		tw_or_seq_cst(&s->word, WAITERS); /* from here on only this thread changes it */
	tw__line_append(&s->line, tw__in_line_link(&waiter->place)); /* planted: last_come_first */
	s->waiting++;
	s->waiting_threads += waiter->is_thread;
}

static void semaphore_leave(tw_semaphore *s, struct waiter *waiter)
{
	uint64_t word = tw_load_relaxed(&s->word);
	tw__line_leave(waiter->state == REFUSED ? &s->refused : &s->line, &waiter->place);
	s->waiting--;
	s->waiting_threads -= waiter->is_thread;
	if (!s->line.first && word & WAITERS)
		tw_store_release(&s->word, word & ~WAITERS); /* SEM1 */
}

static void function_is_over(tw_semaphore *s, struct function *function)
{
	s->out--;
	tw__node_put(tw__object_small_nodes(&s->object), &function->node);
}

/* Refused: others may have its permits until the next tick. True: bring_back is to be submitted. */
static bool put_aside(tw_semaphore *s, struct function *function)
{
	s->refusals++;
	if (function->waiter.state == ENDED) {
		function_is_over(s, function);
		return false;
	}
	function->waiter.state = REFUSED;
	tw__line_append(&s->refused, tw__in_line_link(&function->waiter.place));
	s->waiting++;
	s->out--;
	give_back(s, function->waiter.n, true);
	bool later = !s->object.later;
	s->object.later = true;
	s->object.users += later; /* until the driver has looked */
	return later;
}

/*
 * Starts those that fit, in order, and unlocks. The first that does not fit ends this, and so gets
 * its turn; so does a function while another one is refused. No function runs in here.
 */
static void semaphore_unlock(tw_semaphore *s)
{
	struct tw__line functions;
	bool later = false, refused = false;
	tw__line_init(&functions); /* that have permits */
	do {
		while (s->line.first) {
			struct waiter *first = TW__OWNER(struct waiter, place, s->line.first);
			uint64_t word = tw_load_relaxed(&s->word);
			if (!has_room(word, first->n) || (!first->is_thread && s->object.later))
				break;
			tw_store_release(&s->word, word + first->n); /* SEM1 */
			semaphore_leave(s, first);
			if (first->is_thread) {
				tw_store_release(&first->granted, 1); /* SEM2: it may be gone */
				tw__futex_wake(&first->granted, 1);
				continue;
			}
			first->state = COMING;
			s->out++;
			tw__line_append(&functions, tw__in_line_link(&first->place));
		}
		tw__object_unlock(&s->object);
		for (refused = false; functions.first && !refused;) {
			struct function *function = function_at(tw__line_pop(&functions));
			refused = tw__work_try_submit(&function->work) < 0;
			if (tw_likely(!refused))
				continue;
			tw__object_lock(&s->object);
			later |= put_aside(s, function);
		}
	} while (tw_unlikely(refused));
	if (tw_unlikely(later))
		tw__work_submit_later(&s->object.work);
}

/* On the driver, in the tick after. They come before those that came later. */
static void bring_back(struct tw__work *work)
{
	tw_semaphore *s = TW__OWNER(tw_semaphore, object.work, work);
	tw__object_lock(&s->object);
	s->object.later = false;
	for (tw__link *where = &s->line.first; s->refused.first;) {
		struct waiter *waiter = &function_at(tw__line_pop(&s->refused))->waiter;
		waiter->state = QUEUED;
		tw__line_insert(&s->line, where, &waiter->place);
		where = &waiter->place.next;
		tw_or_seq_cst(&s->word, WAITERS); /* from here on only this thread changes it */
	}
	semaphore_unlock(s);
	tw__object_lock(&s->object);
	tw__object_drop(&s->object, 1);
}

/* -------------------------------------------------------------------- functions */

/* A capacity of 0 may grow, so one permit can always be asked for. */
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
	bool runs = function->waiter.state != ENDED;
	if (runs)
		function->waiter.state = RUNNING;
	tw__object_unlock(&s->object);
	if (runs) {
		tw__inside_begin(&inside, &s->object, function, function->fn, function->arg, NULL,
				 function->context);
		function->fn(function->arg);
		tw__inside_end(&inside);
	}
	tw__object_lock(&s->object);
	function_is_over(s, function);
	tw__object_unlock(&s->object);
}

int tw_semaphore_acquire_async(tw_semaphore *s, int32_t n, tw_fn *fn, void *arg, tw_waiter *out)
{
	struct tw__node *node;
	int r = semaphore_check(__func__, s, n);
	if (!r && !fn)
		r = tw__invalid("fn is NULL");
	if (!r)
		r = tw__node_get(tw__object_small_nodes(&s->object), &s->object, &node);
	if (r)
		return r;
	struct function *function = (struct function *)(void *)node;
	function->fn = fn;
	function->arg = arg;
	function->context = tw__context_capture();
	function->waiter = (struct waiter){.n = (uint32_t)n};
	tw__work_init(&function->work, tw__object_service(&s->object), s->object.executor,
		      run_function);
	if (out)
		*out = (tw_waiter){tw__node_handle(node)};
	tw__object_lock(&s->object);
	semaphore_join(s, &function->waiter);
	semaphore_unlock(s);
	return 0;
}

int tw_semaphore_cancel(tw_semaphore *s, tw_waiter handle)
{
	int r = TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	struct tw__base base = tw__object_base(&s->object);
	struct tw__nodes *nodes = tw__object_small_nodes(&s->object);
	tw__object_lock(&s->object);
	struct function *function =
	    (struct function *)(void *)tw__node_find(nodes, &s->object, handle.id);
	uint8_t state = function ? function->waiter.state : ENDED;
	if (state == QUEUED || state == REFUSED) {
		semaphore_leave(s, &function->waiter);
		tw__node_put(nodes, &function->node);
	} else if (state == COMING) {
		function->waiter.state = ENDED;
		tw__base_leave_work(&base, &function->work);
		give_back(s, function->waiter.n, true);
	}
	semaphore_unlock(s);
	return state == ENDED ? TW_GONE : state == RUNNING ? TW_RUNNING : TW_CANCELLED;
}

static int wait_in_line(tw_semaphore *s, uint32_t n, uint64_t deadline_ns)
{
	struct waiter self = {.n = n, .is_thread = true};
	bool in_time = true;
	tw__object_lock(&s->object);
	semaphore_join(s, &self);
	semaphore_unlock(s);
	while (!tw_load_acquire(&self.granted) && in_time) /* SEM2 */
		in_time = tw__futex_wait(&self.granted, 0, deadline_ns);
	if (in_time)
		return 0;
	tw__object_lock(&s->object);
	bool gives_up = !tw_load_relaxed(&self.granted);
	if (gives_up)
		semaphore_leave(s, &self);
	semaphore_unlock(s);
	return gives_up ? -ETIMEDOUT : 0;
}

int tw_semaphore_acquire(tw_semaphore *s, int32_t n, uint64_t timeout_ns)
{
	int r = semaphore_check(__func__, s, n);
	if (tw_unlikely(r))
		return r;
	if (tw_unlikely(!take(s, (uint32_t)n)))
		r = timeout_ns ? wait_in_line(s, (uint32_t)n, tw__deadline_in(timeout_ns))
			       : -EAGAIN;
	tw_tsan_acquire(s);
	return r;
}

int tw_semaphore_release(tw_semaphore *s, int32_t n)
{
	int r = TW__OBJECT_CHECK(s, "semaphore");
	if (tw_unlikely(r))
		return r;
	if (tw_unlikely(n < 1))
		return tw__bad(-EINVAL, __func__, "n");
	tw_tsan_release(s);
	if (tw_likely(give_back(s, (uint32_t)n, false)))
		return 0;
	tw__object_lock(&s->object);
	bool were_held = give_back(s, (uint32_t)n, true);
	s->over_releases += !were_held;
	semaphore_unlock(s);
	return were_held ? 0 : -EOVERFLOW;
}

int tw_semaphore_set_capacity(tw_semaphore *s, int32_t capacity)
{
	int r = capacity < 0 ? tw__bad(-EINVAL, __func__, "capacity")
			     : TW__OBJECT_CHECK(s, "semaphore");
	if (r)
		return r;
	tw__object_lock(&s->object);
	uint64_t former = capacity_of(tw_load_relaxed(&s->word));
	tw_add_acq_rel(&s->word, ((uint64_t)capacity - former) << CAPACITY_SHIFT);
	semaphore_unlock(s);
	return 0;
}

/* --------------------------------------------------------------------- life, stats */

static bool semaphore_look(struct tw__object *object, struct tw__figures *out)
{
	const tw_semaphore *s = TW__OWNER(tw_semaphore, object, object);
	out->running = (tw_load_relaxed(&s->word) & HELD);
	out->waiting = s->waiting;
	return false;
}

static const struct tw__object_kind semaphore_kind = {
    "semaphore", sizeof(tw_semaphore), offsetof(tw_semaphore, object), NULL, semaphore_look};

int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor,
			int32_t capacity)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (capacity < 0 || !tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, capacity < 0 ? "capacity" : "executor");
	struct tw__object *object;
	int r = tw__object_create(&object, service, executor, bring_back, &semaphore_kind);
	if (r)
		return r;
	tw_semaphore *s = *out = TW__OWNER(tw_semaphore, object, object);
	tw__work_leave_executor(&s->object.work);                         /* the driver runs it */
	tw_store_release(&s->word, (uint64_t)capacity << CAPACITY_SHIFT); /* SEM1 */
	tw__line_init(&s->line);
	tw__line_init(&s->refused);
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
	tw__object_lock(&s->object);
	uint64_t word = tw_load_relaxed(&s->word), held = (word & HELD),
		 capacity = capacity_of(word);
	struct tw_semaphore_stats stats = {.capacity = capacity,
					   .available = held < capacity ? capacity - held : 0,
					   .held = held,
					   .debt = held > capacity ? held - capacity : 0,
					   .waiters = s->waiting,
					   .waiting_threads = s->waiting_threads,
					   .handed = s->out,
					   .over_releases = s->over_releases,
					   .refused = s->refusals};
	tw__object_unlock(&s->object);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}

int tw_semaphore_set_name(tw_semaphore *s, const char *name)
{
	int r = TW__OBJECT_CHECK(s, "semaphore");
	return r ? r : tw__object_set_name(&s->object, name);
}
