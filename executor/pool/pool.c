/*
 * The pool's creation, what submits to it, who uses it, and its end. What is behind the queue:
 * parts.h.
 *
 * The end: a bit in the ring's tail, and `closed`, refuse all submits. Close waits for the
 * submitters that are on their way (rule 5). From then on the queue only empties.
 */
#include <string.h>

#include "executor/pool/parts.h"
#include "mpsc/base/reserve.h"

bool tw__pool_is_worker(const tw_pool *pool)
{
	return pool && tw__is_worker_of(pool);
}

/* -------------------------------------------------------------------- submit */

/* Rule 5: until bringing_ends the pool stays. Returns NULL if memory is short. */
static inline struct tw__run_record *bringing_begins(tw_pool *pool)
{
	struct tw__run_record *record = tw__my_run_record;
	if (tw_unlikely(!record) && !(record = tw__run_record_make()))
		return NULL;
	tw_store_relaxed(&record->bringing, pool); /* BRINGING */
	return record;
}

static inline void bringing_ends(struct tw__run_record *record)
{
	if (tw_likely(record != NULL))
		tw_store_release(&record->bringing, NULL); /* BRINGING */
}

static int wait_and_push(tw_pool *pool, struct tw__pool_task *task, uint64_t timeout_ns)
{
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	bool in_time = true;
	int r;
	if (tw__is_worker_of(pool))
		return tw__waits_inside("tw_pool_submit_wait");
	task->queued_ns = tw_clock_now(tw_clock_monotonic());
	tw_add_seq_cst(&pool->waiting, 1); /* ROOM */
	for (;;) {
		uint32_t room = tw_load_acquire(&pool->room); /* ROOM */
		r = tw__pool_push(pool, task);
		if (r != -EAGAIN || !in_time)
			break;
		in_time = tw__futex_wait(&pool->room, room, deadline_ns);
	}
	tw_sub_relaxed(&pool->waiting, 1);
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

int tw_pool_submit(tw_pool *pool, tw_fn *fn, void *arg)
{
	if (tw_unlikely(!pool || !fn))
		return tw__invalid("%s is NULL", pool ? "fn" : "pool");
	return tw_pool_submit_wait(pool, fn, arg, 0);
}

int tw_pool_submit_wait(tw_pool *pool, tw_fn *fn, void *arg, uint64_t timeout_ns)
{
	int r = fn ? tw__pool_check(pool) : tw__invalid("fn is NULL");
	if (tw_unlikely(r))
		return r;
	struct tw__pool_task task = {.fn = fn, .arg = arg, .context = tw__context_capture()};
	struct tw__run_record *record = bringing_begins(pool);
	r = tw_likely(record != NULL) ? tw__pool_push(pool, &task) : -ENOMEM;
	if (tw_unlikely(r == -EAGAIN) && timeout_ns > 0)
		r = wait_and_push(pool, &task, timeout_ns);
	if (tw_unlikely(r) && r != -ESHUTDOWN)
		tw_add_relaxed(&pool->rejected, 1);
	bringing_ends(record);
	return r;
}

/* Batches and work. */
static int pool_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_pool *pool = (tw_pool *)self;
	(void)n;
	struct tw__run_record *record = bringing_begins(pool);
	int r = tw_likely(record != NULL) ? tw__pool_push_item(pool, batch) : -EAGAIN;
	bringing_ends(record);
	return r;
}

static const struct tw_executor_ops pool_ops = {sizeof pool_ops, pool_submit};

tw_executor *tw_pool_executor(tw_pool *pool)
{
	return pool ? &pool->executor : NULL;
}

tw_pool *tw__pool_of(tw_executor *executor)
{
	return executor && executor->ops == &pool_ops ? (tw_pool *)executor : NULL;
}

/* ---------------------------------------------------------------------- users */

int tw__pool_join(tw_pool *pool, bool service)
{
	int r = tw__pool_check(pool);
	if (r)
		return r;
	tw__tiny_lock(&pool->lock);
	bool closed = pool->closed;
	pool->users += !closed;
	pool->services += !closed && service;
	tw__tiny_unlock(&pool->lock);
	return closed ? -ESHUTDOWN : 0;
}

void tw__pool_leave(tw_pool *pool, bool service)
{
	/* read now: after the unlock another thread may free a shared pool */
	bool ends = service && pool->owned, locks = !tw__origin_inherited(&pool->origin);
	if (locks)
		tw__tiny_lock(&pool->lock);
	pool->users--;
	pool->services -= service;
	if (locks)
		tw__tiny_unlock(&pool->lock);
	if (ends)
		tw_pool_destroy(pool);
}

void tw__pool_look(tw_pool *pool, struct tw_service_liveness *out)
{
	unsigned running = 0;
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++)
		running += tw_load_relaxed(&pool->workers[i].runs) & 1;
	out->pool_max_workers = pool->limits.capacity;
	tw__tiny_lock(&pool->lock);
	out->pool_at_max =
	    pool->aside.held.first || (running == pool->limits.capacity && tw__pool_waits(pool));
	tw__tiny_unlock(&pool->lock);
}

/* --------------------------------------------------------------------- birth */

static int pool_start(tw_pool *pool, const struct tw_service_config *config)
{
	int r = 0;
	bool grows = pool->limits.capacity > pool->permanent;
	if (grows) {
		pool->idle = &pool->starter.sleeper;
		tw_store_relaxed(&pool->wanted, true);
		if ((r = tw__starter_start(pool, config)))
			return r;
	}
	for (unsigned i = 0; i < pool->permanent && !r; i++)
		r = tw__worker_start(pool, config, 0);
	if (r)
		tw__pool_stop(pool);
	return r;
}

/* The default number of workers respects a maximum. */
static void set_sizes(tw_pool *pool, const struct tw_service_config *config)
{
	unsigned most = config->max_workers, cpus = tw__usable_cpus();
	pool->permanent = config->workers ? config->workers : most && most < cpus ? most : cpus;
	if (!most)
		most = TW__MAX_WORKERS_DEFAULT;
	pool->limits.capacity = most > pool->permanent ? most : pool->permanent;
	if (pool->limits.capacity > pool->permanent)
		pool->limits.shortage = &pool->starter.runs_last; /* GROW1 */
	pool->aside.limit = pool->limits.capacity > 1 ? pool->limits.capacity - 1 : 1;
}

/* No thread is left. */
static void pool_free(tw_pool *pool)
{
	if (tw__is_worker_of(pool)) /* of the parent: this is a forked child */
		tw__this_worker = NULL;
	tw__free(pool->workers);
	tw__free(pool->ring.memory);
	tw__free(pool);
	tw__unload_drop();
}

tw_cold int tw__pool_create(tw_pool **out, uint32_t queue, const struct tw_service_config *config)
{
	tw_pool *pool = tw__alloc_aligned(alignof(tw_pool), sizeof *pool);
	if (!pool)
		return -ENOMEM;
	memset(pool, 0, sizeof *pool);
	if (!tw__origin_init(&pool->origin)) {
		tw__free(pool);
		return -ENOMEM;
	}
	tw__unload_hold();
	pool->executor.ops = &pool_ops;
	pool->owned = queue == 0;
	set_sizes(pool, config);
	pool->times = tw__pool_times;
	pool->workers = tw__alloc_aligned(alignof(struct tw__worker),
					  pool->limits.capacity * sizeof *pool->workers);
	bool has_ring = tw__ring_init(&pool->ring, queue);
	int r = pool->workers && has_ring ? pool_start(pool, config) : -ENOMEM;
	if (r) {
		pool_free(pool);
		return r;
	}
	*out = pool;
	return 0;
}

static int pool_config_check(const struct tw_pool_config *c)
{
	const char *bad = NULL;
	uint32_t most = c->max_workers ? c->max_workers : TW__WORKERS_MAX;
	tw__need(&bad, c->workers <= TW__WORKERS_MAX, "workers");
	tw__need(&bad, c->workers <= most && most <= TW__WORKERS_MAX, "max_workers");
	tw__need(&bad, !c->reserved, "reserved");
	tw__need(&bad, c->queue >= 16 && c->queue <= 1u << 24 && !(c->queue & (c->queue - 1)),
		 "queue");
	tw__need(&bad, (c->affinity == NULL) == (c->affinity_size == 0), "affinity");
	return tw__bad_member(-EINVAL, "tw_pool_create", "tw_pool_config", bad);
}

int tw_pool_create(tw_pool **out, const struct tw_pool_config *cfg)
{
	TW__UNCANCELLED;
	struct tw_pool_config config;
	if (!out)
		return tw__invalid("out is NULL");
	int r = TW__CONFIG_READ(tw_pool_config, &config, queue, cfg);
	if (r)
		return r;
	if (!config.queue)
		config.queue = 65536;
	r = pool_config_check(&config);
	struct tw_service_config threads = {.workers = config.workers,
					    .max_workers = config.max_workers,
					    .thread_name =
						config.thread_name ? config.thread_name : "tw",
					    .stack_size = config.stack_size,
					    .affinity = config.affinity,
					    .affinity_size = config.affinity_size};
	return r ? r
		 : tw__system_refused("tw_pool_create",
				      tw__pool_create(out, config.queue, &threads));
}

/* ----------------------------------------------------------------------- end */

/*
 * A batch that is still here is of a service with an executor of its own, which names the pool for
 * single timers: the service offers its runs again. Work keeps the pool from being closed.
 */
static void pool_drop(tw_pool *pool, tw_pool_dropped_fn *told, void *told_arg)
{
	struct tw__run frame = {.within = pool};
	struct tw__pool_task task;
	tw__frame_begin(&frame);
	while (tw__ring_pop(&pool->ring, &task)) {
		if (!task.fn) {
			tw_batch *batch = task.arg;
			for (uint64_t n = tw__batch_left(batch); n > 0; n--)
				tw_run_return(batch);
			continue;
		}
		tw_add_relaxed(&pool->dropped, 1);
		if (told)
			told(told_arg, task.fn, task.arg);
	}
	tw__frame_end(&frame);
}

static void await_bringers(tw_pool *pool)
{
	/* QUEUE3 */
	for (struct tw__run_record *record = tw_load_acquire(&tw__run_records); record;
	     record = record->next)
		while (tw_load_acquire(&record->bringing) == pool) /* BRINGING */
			sched_yield();
}

static tw_cold int close_pool(tw_pool *pool, enum tw_close_mode mode, tw_pool_dropped_fn *told,
			      void *told_arg, const char *call)
{
	TW__UNCANCELLED;
	int r = TW__ORIGIN_CHECK(call, pool, "pool");
	if (!r && (unsigned)mode > TW_CLOSE_DRAIN)
		r = tw__bad(-EINVAL, call, "mode");
	if (r)
		return r;
	if (tw__is_worker_of(pool) || tw__is_within(pool))
		return tw__waits_inside(call);
	uint64_t end = 0;
	tw__tiny_lock(&pool->lock);
	bool busy = pool->users > 0, closes = !busy && !pool->closed;
	if (closes) {
		pool->closed = true;
		end = tw__ring_close(&pool->ring);
	}
	tw__tiny_unlock(&pool->lock);
	if (closes) {
		tw__pool_tell_room(pool);
		tw__ring_await(&pool->ring, end);
		await_bringers(pool); /* no thread submits any more */
		if (mode == TW_CLOSE_DROP)
			pool_drop(pool, told, told_arg);
		tw__pool_stop(pool);
		tw_store_release(&pool->ended, 1); /* pairs with a second close */
		tw__futex_wake(&pool->ended, INT_MAX);
	}
	while (!busy && !tw_load_acquire(&pool->ended))
		tw__futex_wait(&pool->ended, 0, UINT64_MAX);
	return busy ? -EBUSY : 0;
}

int tw_pool_close(tw_pool *pool, enum tw_close_mode mode, tw_pool_dropped_fn *told, void *told_arg)
{
	return close_pool(pool, mode, told, told_arg, "tw_pool_close");
}

static int pool_end(tw_pool *pool)
{
	int r = close_pool(pool, TW_CLOSE_DRAIN, NULL, NULL, "tw_pool_destroy");
	if (r == 0)
		pool_free(pool);
	return r;
}

static int pool_end_forked(tw_pool *pool)
{
	if (pool->users)
		return -EBUSY;
	pool_free(pool);
	return 0;
}

tw_cold int tw_pool_destroy(tw_pool *pool)
{
	return TW__ORIGIN_DESTROY(pool, pool_end_forked, pool_end);
}
