/* The pool's queue: who takes what, who wakes whom, and how a worker sleeps. The rules: parts.h. */
#include "executor/pool/queue.h"

enum {
	STREAK = 64,     /* items that a worker takes before it keeps away from submitters */
	AWAY_YIELDS = 10 /* while it does, at most */
};

_Thread_local struct tw__worker *tw__this_worker;

void tw__items_append(struct tw__items *items, struct tw__work *item)
{
	item->next = NULL;
	*(items->first ? &items->last->next : &items->first) = item;
	items->last = item;
	items->count++;
}

struct tw__work *tw__items_pop(struct tw__items *items)
{
	struct tw__work *item = items->first;
	items->first = item->next;
	items->count--;
	return item;
}

/* An opened batch with runs to claim, or NULL. */
static tw_batch *find_opened(tw_pool *pool)
{
	for (struct tw__chunk *chunk = tw_load_relaxed(&pool->opened); chunk; chunk = chunk->next)
		if (tw__batch_left((tw_batch *)(void *)chunk))
			return (tw_batch *)(void *)chunk;
	return NULL;
}

bool tw__pool_waits(tw_pool *pool)
{
	return tw__ring_waits(&pool->ring, 0) || pool->room.overflow.first || find_opened(pool);
}

bool tw__pool_is_short(tw_pool *pool)
{
	return !pool->searching && !pool->idle && tw__pool_waits(pool);
}

/* ------------------------------------------------------------------------ room */

void tw__pool_tell_behind(tw_pool *pool)
{
	uint32_t bits = (pool->room.overflow.first ? TW__BEHIND_OVERFLOW : 0) |
			(pool->room.waiting ? TW__BEHIND_WAITERS : 0);
	tw_store_seq_cst(&pool->behind, bits); /* ROOM, BEHIND */
}

/* There may be room in the ring. Under the lock. */
static void ring_refill(tw_pool *pool)
{
	struct tw__items *overflow = &pool->room.overflow;
	while (overflow->first) {
		struct tw__pool_task task = {.arg = overflow->first};
		struct tw__work *next = overflow->first->next; /* once pushed, it may run */
		if (tw__ring_push(&pool->ring, &task, true))
			break;
		overflow->first = next;
		overflow->count--;
	}
	tw__pool_tell_behind(pool);
	if (pool->room.waiting && !overflow->first) {
		tw_add_relaxed(&pool->room.changes, 1);
		tw__futex_wake(&pool->room.changes, INT_MAX);
	}
}

/* Under the lock. */
static void push_behind(tw_pool *pool, struct tw__work *item)
{
	tw__items_append(&pool->room.overflow, item);
	ring_refill(pool);
}

/* --------------------------------------------------------------------- calling */

void tw__pool_tell_wanted(tw_pool *pool)
{
	bool armed = tw_load_relaxed(&pool->starter.calls) & TW__CALL_ARMED;
	tw_store_seq_cst(&pool->wanted, !pool->searching && (pool->idle || !armed)); /* WANTED */
}

/* Rules 1 and 2. Returns whom to wake. */
static tw__pool_wake *pool_call(tw_pool *pool)
{
	struct tw__worker *worker = pool->idle;
	uint32_t calls = tw_load_relaxed(&pool->starter.calls);
	if (pool->searching || (!worker && calls & TW__CALL_ARMED) || !tw__pool_waits(pool))
		return NULL;
	if (!worker) {
		tw_store_relaxed(&pool->starter.calls, calls | TW__CALL_ARMED);
		tw__pool_tell_wanted(pool);
		return &pool->starter.calls;
	}
	pool->idle = worker->next_idle;
	pool->searching = true;
	tw__pool_tell_wanted(pool);
	tw_store_relaxed(&worker->called, 1); /* CALLED */
	return &worker->called;
}

static void call(tw_pool *pool)
{
	tw__tiny_lock(&pool->lock);
	tw__pool_unlock(pool, pool_call(pool));
}

void tw__pool_call_all(tw_pool *pool)
{
	tw__tiny_lock(&pool->lock);
	pool->stopping = true; /* none sleeps again */
	for (struct tw__worker *worker = pool->idle; worker; worker = worker->next_idle) {
		tw_store_relaxed(&worker->called, 1); /* CALLED */
		tw__futex_wake(&worker->called, 1);
	}
	pool->idle = NULL;
	tw__pool_tell_wanted(pool);
	tw__tiny_unlock(&pool->lock);
}

/* ---------------------------------------------------------------------- pushing */

/* Counts a job that a worker has taken. False: it is beyond the limit, and set aside. */
static bool enter_job(tw_pool *pool, struct tw__work *job, bool taken)
{
	tw__tiny_lock(&pool->lock);
	uint32_t inside = tw_load_relaxed(&pool->jobs.inside);
	bool enters = inside < pool->jobs.limit;
	if (!enters)
		tw__items_append(&pool->jobs.held, job);
	else if (taken)
		tw_store_relaxed(&pool->jobs.inside, inside + 1);
	tw__tiny_unlock(&pool->lock);
	return enters;
}

static int push_item(tw_pool *pool, struct tw__work *item)
{
	tw__tiny_lock(&pool->lock);
	bool closed = pool->closed;
	if (!closed)
		push_behind(pool, item);
	tw__tiny_unlock(&pool->lock);
	return closed ? -ESHUTDOWN : 0;
}

static bool is_job(struct tw__work *item)
{
	return tw__batch_is_work((tw_batch *)(void *)item) && item->is_job;
}

int tw__pool_push(tw_pool *pool, const struct tw__pool_task *task)
{
	struct tw__work *item = task->fn ? NULL : task->arg;
	if (item && is_job(item) && tw_load_relaxed(&pool->jobs.inside) >= pool->jobs.limit &&
	    !enter_job(pool, item, false))
		return 0;
	int r = -EAGAIN;
	if (tw_likely(!(tw_load_acquire(&pool->behind) & TW__BEHIND_OVERFLOW))) /* BEHIND */
		r = tw__ring_push(&pool->ring, task, false);
	if (r == -EAGAIN && item)
		r = push_item(pool, item);
	if (r == 0 && tw_load_seq_cst(&pool->wanted)) /* WANTED */
		call(pool);
	return r;
}

/* ---------------------------------------------------------------------- taking */

/* The first run is the worker's: nobody else can claim yet. */
static void take_batch(tw_pool *pool, tw_batch *batch, struct tw__taken *taken)
{
	struct tw__chunk *chunk = tw__batch_chunk(batch);
	taken->batch = batch;
	taken->claimed = tw__batch_claim(batch, true);
	taken->opened = chunk->count > 1;
	if (!taken->opened)
		return;
	chunk->next = NULL;
	tw__tiny_lock(&pool->lock);
	struct tw__chunk *last = tw_load_relaxed(&pool->opened);
	while (last && last->next)
		last = last->next;
	if (last)
		last->next = chunk;
	else
		tw_store_relaxed(&pool->opened, chunk);
	tw__tiny_unlock(&pool->lock);
}

/* The owner of the batch is done with it. */
static void unlist(tw_pool *pool, tw_batch *batch)
{
	struct tw__chunk *chunk = tw__batch_chunk(batch), *before = tw_load_relaxed(&pool->opened);
	if (before == chunk) {
		tw_store_relaxed(&pool->opened, chunk->next);
		return;
	}
	while (before->next != chunk)
		before = before->next;
	before->next = chunk->next;
}

static bool join_opened(tw_pool *pool, struct tw__taken *taken)
{
	tw_batch *batch = NULL;
	if (!tw_load_relaxed(&pool->opened)) /* a hint: a sleeper looks again under the lock */
		return false;
	tw__tiny_lock(&pool->lock);
	taken->claimed = -1;
	while (taken->claimed < 0 && (batch = find_opened(pool)))
		taken->claimed = tw__batch_claim(batch, false); /* <0: its owner was faster */
	taken->batch = batch;
	tw__tiny_unlock(&pool->lock);
	return batch != NULL;
}

static bool pop(tw_pool *pool, struct tw__pool_task *task)
{
	bool popped = tw__ring_pop(&pool->ring, task);
	if (tw_likely(!tw_load_seq_cst(&pool->behind))) /* ROOM */
		return popped;
	tw__tiny_lock(&pool->lock);
	ring_refill(pool);
	tw__tiny_unlock(&pool->lock);
	return popped || tw__ring_pop(&pool->ring, task);
}

static bool pool_take(tw_pool *pool, struct tw__taken *taken)
{
	taken->batch = NULL;
	taken->work = NULL;
	taken->ran = 0;
	taken->opened = taken->is_job = false;
	while (pop(pool, &taken->task)) {
		struct tw__work *item = taken->task.arg;
		if (taken->task.fn)
			return true;
		if (!tw__batch_is_work((tw_batch *)(void *)item)) {
			take_batch(pool, (tw_batch *)(void *)item, taken);
			return true;
		}
		if (item->is_job && !enter_job(pool, item, true))
			continue;
		taken->work = item;
		taken->is_job = item->is_job;
		return true;
	}
	return join_opened(pool, taken);
}

/* What it had taken is over. A job that was set aside for it goes to the end of the queue. */
static void leave_taken(tw_pool *pool, const struct tw__taken *taken)
{
	tw__tiny_lock(&pool->lock);
	if (taken->opened)
		unlist(pool, taken->batch);
	if (taken->is_job) {
		tw_store_relaxed(&pool->jobs.inside, tw_load_relaxed(&pool->jobs.inside) - 1);
		if (pool->jobs.held.first)
			push_behind(pool, tw__items_pop(&pool->jobs.held));
	}
	tw__tiny_unlock(&pool->lock);
}

/* -------------------------------------------------------------------- sleeping */

static void take_off_idle(tw_pool *pool, struct tw__worker *self)
{
	struct tw__worker **link = &pool->idle;
	while (*link != self)
		link = &(*link)->next_idle;
	*link = self->next_idle;
}

/* False: the time is over. */
static bool await_call(struct tw__worker *self, uint64_t until_ns)
{
	while (!tw_load_relaxed(&self->called)) /* CALLED */
		if (!tw__futex_wait(&self->called, 0, until_ns))
			return false;
	return true;
}

/*
 * The worker has found nothing. If it sleeps for too long, and is one of more than the permanent
 * ones, it ends.
 */
static bool worker_sleep(struct tw__worker *self, struct tw__taken *taken)
{
	tw_pool *pool = self->pool;
	bool in_time = true, listed = false;
	self->streak = 0;
	sched_yield(); /* a submitter may want this processor, and then need wake nobody */
	for (;;) {
		bool found = pool_take(pool, taken);
		tw__tiny_lock(&pool->lock);
		bool beyond = pool->alive > pool->permanent;
		bool ends = !found && (pool->stopping || (beyond && !in_time));
		if (tw_load_relaxed(&self->called))
			pool->searching = false;
		else if (listed)
			take_off_idle(pool, self);
		tw_store_relaxed(&self->called, 0);
		listed = !found && !ends;
		if (listed) {
			self->next_idle = pool->idle;
			pool->idle = self;
		}
		tw__pool_tell_wanted(pool);
		bool waits = tw__pool_waits(pool); /* WANTED */
		if (ends && !waits) {
			pool->alive--;
			tw_store_relaxed(&self->state, TW__WORKER_RETIRED);
			tw__tiny_unlock(&pool->lock); /* the slot may get another worker */
			return false;
		}
		tw__pool_unlock(pool, found && waits ? pool_call(pool) : NULL);
		if (found)
			return true;
		if (waits)
			sched_yield(); /* it may be inside the ring still */
		else
			in_time = await_call(self, beyond ? tw__deadline_in(pool->times.idle_ns)
							  : UINT64_MAX);
	}
}

/* A hint, without the lock. */
static bool may_wait(tw_pool *pool)
{
	return tw__ring_waits(&pool->ring, 0) || tw_load_relaxed(&pool->opened) ||
	       tw_load_relaxed(&pool->behind) & TW__BEHIND_OVERFLOW;
}

/*
 * A worker that takes item after item close behind a submitter costs both a move of each cache line
 * between their processors. So now and then it lets the submitter go ahead.
 */
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
	tw_batch *batch = taken->batch;
	unsigned ran = taken->ran;
	if (taken->opened || taken->is_job)
		leave_taken(pool, taken);
	if (batch)
		tw__batch_finish(batch, ran);
	keep_away(self);
	if (!pool_take(pool, taken))
		return worker_sleep(self, taken);
	if (tw_load_relaxed(&pool->wanted) && may_wait(pool))
		call(pool);
	return true;
}
