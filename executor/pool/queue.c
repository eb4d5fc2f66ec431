/*
 * How workers take items from the pool's queue, how pushes wake workers, and how a worker sleeps.
 * The rules: parts.h.
 */
#include "executor/pool/parts.h"

enum {
	STREAK = 64,     /* items that a worker takes before it keeps away from submitters */
	AWAY_YIELDS = 10 /* while it does, at most */
};

_Thread_local struct tw__worker *tw__this_worker;

/* ------------------------------------------------------------------------ open */

/* The low bits of `open`: runs left to claim. Chunks lie at multiples of it. */
enum { OPEN_LEFT = 63 };

_Static_assert((int)TW__CHUNK_ENTRIES <= (int)OPEN_LEFT &&
		   sizeof(struct tw__chunk) % (OPEN_LEFT + 1) == 0,
	       "fits into `open`");

/* Returns the index of a run, or -1. *batch: the only one, or NULL. */
static inline int open_claim(struct tw__worker *of, tw_batch **batch)
{
	uintptr_t open = tw_load_acquire(&of->open), at; /* OPEN */
	do {
		at = open & ~(uintptr_t)OPEN_LEFT;
		if (open == at || (*batch && at != (uintptr_t)*batch))
			return -1;
		if (of->pool->limits.capacity == 1) {
			tw_store_relaxed(&of->open, open - 1); /* OPEN */
			break;
		}
	} while (!tw_cas_acq_rel(&of->open, &open, open - 1)); /* OPEN */
	uintptr_t left = open - at;
	*batch = (tw_batch *)at;
	return (int)(tw__batch_chunk(*batch)->count - left); /* planted: claim_beyond */
}

bool tw__worker_claim(struct tw__taken *taken)
{
	taken->index = open_claim(taken->of, &taken->batch);
	return taken->index >= 0;
}

/* The first run is the worker's own. */
static void open_begin(struct tw__worker *self, tw_batch *batch, struct tw__taken *taken)
{
	unsigned left = tw__batch_left(batch);
	TW_ASSERT(((uintptr_t)batch & OPEN_LEFT) == 0 && left > 0);
	taken->batch = batch;
	taken->of = self;
	taken->index = (int)(tw__batch_chunk(batch)->count - left);
	if (left > 1)
		tw_store_seq_cst(&self->open, (uintptr_t)batch | (left - 1)); /* OPEN, WANTED */
}

static struct tw__worker *open_find(tw_pool *pool)
{
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++)
		if (tw_load_seq_cst(&pool->workers[i].open) & OPEN_LEFT) /* WANTED */
			return &pool->workers[i];
	return NULL;
}

bool tw__pool_waits(tw_pool *pool)
{
	return tw__ring_waits(&pool->ring, 0) || open_find(pool);
}

uint64_t tw__pool_count(tw_pool *pool)
{
	uint64_t count = tw__ring_count(&pool->ring);
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++)
		count += tw_load_relaxed(&pool->workers[i].open) & OPEN_LEFT;
	return count;
}

/* --------------------------------------------------------------------- calling */

static void tell_wanted(tw_pool *pool)
{
	tw_store_seq_cst(&pool->wanted, pool->idle && !pool->searching); /* WANTED */
}

/* Rules 1, 2 and 6, under the lock. Returns the futex to wake after the unlock, or NULL. */
static _Atomic uint32_t *pool_call(tw_pool *pool)
{
	struct tw__sleeper *first = pool->idle;
	if (!first || pool->searching || !(pool->stopping || tw__pool_waits(pool)))
		return NULL;
	pool->idle = first->next;
	pool->searching = first != &pool->starter.sleeper;
	tell_wanted(pool);
	tw_store_relaxed(&first->called, 1); /* CALLED */
	return &first->called;
}

static void unlock_and_wake(tw_pool *pool, _Atomic uint32_t *called)
{
	tw__tiny_unlock(&pool->lock);
	if (called)
		tw__futex_wake(called, 1);
}

static void call_if_wanted(tw_pool *pool)
{
	if (tw_likely(!tw_load_seq_cst(&pool->wanted))) /* WANTED */
		return;
	tw__tiny_lock(&pool->lock);
	unlock_and_wake(pool, pool_call(pool));
}

void tw__pool_let_end(tw_pool *pool)
{
	struct tw__sleeper *starter = &pool->starter.sleeper;
	tw__tiny_lock(&pool->lock);
	pool->stopping = true;               /* none sleeps again */
	tw_add_relaxed(&starter->called, 1); /* it may be between two looks */
	unlock_and_wake(pool, pool_call(pool));
	tw__futex_wake(&starter->called, 1);
}

/* ------------------------------------------------------------ pushing, and room */

int tw__pool_push(tw_pool *pool, const struct tw__pool_task *task)
{
	int r = tw__ring_push(&pool->ring, task);
	if (r == 0)
		call_if_wanted(pool);
	return r;
}

static void set_aside(tw_pool *pool, struct tw__chunk_list *list, tw_batch *work)
{
	tw__chunk_append(list, tw__batch_chunk(work));
	pool->aside.count++;
}

/* Pushes kept work while the ring has room. */
static void push_kept_and_unlock(tw_pool *pool)
{
	struct tw__chunk_list *kept = &pool->aside.kept;
	while (kept->first) {
		struct tw__chunk *first = kept->first, *next = first->next; /* it may run */
		if (tw__ring_push(&pool->ring, &(struct tw__pool_task){.arg = first}))
			break;
		kept->first = next;
		kept->last = next ? kept->last : NULL;
		pool->aside.count--;
		tw_sub_relaxed(&pool->waiting, 1);
	}
	unlock_and_wake(pool, pool_call(pool));
}

int tw__pool_push_item(tw_pool *pool, tw_batch *item)
{
	int r = tw__pool_push(pool, &(struct tw__pool_task){.arg = item});
	if (tw_likely(r != -EAGAIN) || !tw__batch_is_work(item))
		return r;
	tw__tiny_lock(&pool->lock);
	set_aside(pool, &pool->aside.kept, item);
	tw_add_seq_cst(&pool->waiting, 1); /* ROOM */
	push_kept_and_unlock(pool);
	return 0;
}

void tw__pool_tell_room(tw_pool *pool)
{
	tw__tiny_lock(&pool->lock);
	push_kept_and_unlock(pool);
	tw_add_release(&pool->room, 1); /* ROOM */
	tw__futex_wake(&pool->room, INT_MAX);
}

static bool pop(tw_pool *pool, struct tw__pool_task *task)
{
	bool popped = tw__ring_pop(&pool->ring, task);
	if (tw_unlikely(tw_load_seq_cst(&pool->waiting) && popped)) /* ROOM */
		tw__pool_tell_room(pool);
	return popped;
}

/* ------------------------------------------------------------------------ jobs */

/* Returns false if the job is beyond the limit, and held. */
static bool job_begins(tw_pool *pool, tw_batch *job)
{
	tw__tiny_lock(&pool->lock);
	bool begins = pool->aside.inside < pool->aside.limit;
	pool->aside.inside += begins;
	if (!begins)
		set_aside(pool, &pool->aside.held, job);
	tw__tiny_unlock(&pool->lock);
	return begins;
}

void tw__pool_job_ends(tw_pool *pool)
{
	tw__tiny_lock(&pool->lock);
	pool->aside.inside--;
	struct tw__chunk *held = tw__chunk_pop(&pool->aside.held);
	pool->aside.count -= held != NULL;
	tw__tiny_unlock(&pool->lock);
	if (held)
		(void)tw__pool_push_item(pool, (tw_batch *)(void *)held);
}

/* ---------------------------------------------------------------------- taking */

static bool steal(tw_pool *pool, struct tw__taken *taken)
{
	while ((taken->of = open_find(pool)))
		if (tw__worker_claim(taken))
			return true;
	return false;
}

static bool pool_take(struct tw__worker *self, struct tw__taken *taken)
{
	tw_pool *pool = self->pool;
	taken->batch = NULL;
	while (pop(pool, &taken->task)) {
		tw_batch *item = taken->task.arg;
		if (taken->task.fn)
			return true;
		if (!tw__batch_is_work(item)) {
			open_begin(self, item, taken);
			return true;
		}
		const struct tw__work *work = taken->task.arg;
		if (!work->is_job || job_begins(pool, item))
			return true;
	}
	return steal(pool, taken);
}

/* -------------------------------------------------------------------- sleeping */

static void take_off_idle(tw_pool *pool, struct tw__sleeper *self)
{
	struct tw__sleeper **link = &pool->idle;
	while (*link != self)
		link = &(*link)->next;
	*link = self->next;
}

bool tw__sleeper_waits(struct tw__sleeper *self, uint64_t until_ns)
{
	while (!tw_load_relaxed(&self->called)) /* CALLED */
		if (!tw__futex_wait(&self->called, 0, until_ns))
			return false;
	return true;
}

void tw__starter_sleeps(tw_pool *pool)
{
	struct tw__sleeper *self = &pool->starter.sleeper, **link = &pool->idle;
	while (*link)
		link = &(*link)->next;
	*link = self;
	self->next = NULL;
	tw_store_relaxed(&self->called, 0);
	tell_wanted(pool);
	unlock_and_wake(pool, pool_call(pool)); /* WANTED */
}

/* A worker beyond the permanent ones ends if it sleeps for too long. */
static bool worker_sleep(struct tw__worker *self, struct tw__taken *taken)
{
	tw_pool *pool = self->pool;
	struct tw__sleeper *sleeper = &self->sleeper;
	bool in_time = true, listed = false;
	self->streak = 0;
	sched_yield(); /* a submitter on this processor need wake nobody then */
	for (;;) {
		bool found = pool_take(self, taken);
		tw__tiny_lock(&pool->lock);
		bool beyond = pool->alive > pool->permanent;
		bool ends = !found && (pool->stopping || (beyond && !in_time));
		if (tw_load_relaxed(&sleeper->called))
			pool->searching = false;
		else if (listed)
			take_off_idle(pool, sleeper);
		tw_store_relaxed(&sleeper->called, 0);
		listed = !found && !ends;
		if (listed) {
			sleeper->next = pool->idle;
			pool->idle = sleeper;
		}
		tell_wanted(pool);
		bool waits = tw__pool_waits(pool); /* WANTED */
		if (ends && !waits) {
			pool->alive--;
			tw_store_relaxed(&self->state, TW__WORKER_RETIRED);
			/* the slot may get another worker */
			unlock_and_wake(pool, pool->stopping ? pool_call(pool) : NULL);
			return false;
		}
		unlock_and_wake(pool, found && waits ? pool_call(pool) : NULL);
		if (found)
			return true;
		if (waits)
			sched_yield(); /* it may be inside the ring still */
		else
			in_time = tw__sleeper_waits(
			    sleeper, beyond ? tw__deadline_in(pool->times.idle_ns) : UINT64_MAX);
	}
}

/* A worker close behind a submitter shares each cache line with it: now and then it waits. */
static void keep_away(struct tw__worker *self)
{
	struct tw__ring *ring = &self->pool->ring;
	if (++self->streak % STREAK || !tw__ring_waits(ring, 1))
		return;
	for (unsigned i = 0; i < AWAY_YIELDS && !tw__ring_waits(ring, STREAK); i++)
		sched_yield();
}

bool tw__worker_next(struct tw__worker *self, struct tw__taken *taken)
{
	tw_pool *pool = self->pool;
	keep_away(self);
	if (!pool_take(self, taken))
		return worker_sleep(self, taken);
	/* WANTED */
	if (tw_load_seq_cst(&pool->wanted) &&
	    (tw_load_relaxed(&self->open) & OPEN_LEFT || tw__ring_waits(&pool->ring, 0)))
		call_if_wanted(pool);
	return true;
}
