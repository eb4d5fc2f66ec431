/*
 * The pool's creation, and plain tasks. Its end is in close.c; what the workers do is in worker.c;
 * what services hand over is in source.c.
 */

#include <string.h>

#include "executor/pool/bringing.h"
#include "executor/pool/close.h"
#include "wheel/core/context.h"
#include "mpsc/base/struct_read.h"
#include "mpsc/base/thread.h"
#include "executor/pool/grow.h"
#include "executor/pool/wake.h"
#include "executor/pool/worker.h"
#include "executor/pool/jobs.h"
#include "mpsc/base/cancel.h"
#include "mpsc/base/process.h"

enum { TIMED_ONE_IN = 16 };

/* -------------------------------------------------------------------- submit */

static int try_enqueue(tw_pool *pool, const struct tw__pool_task *task)
{
	int r = tw__task_ring_push(&pool->tasks, task); /* POOL2 */
	if (tw_likely(r == 0))
		tw__pool_call_for_help(pool);
	return r;
}

/* Tries to push, and sleeps until there may be room. The caller is counted. False: *r answers. */
static bool try_or_sleep(tw_pool *pool, const struct tw__pool_task *task, uint64_t deadline_ns,
			 int *r)
{
	uint32_t room = tw_load_seq_cst(&pool->room);
	*r = try_enqueue(pool, task);
	if (*r != -EAGAIN)
		return false;
	if (tw__task_ring_full(&pool->tasks)) /* POOL5 */
		return tw__futex_wait(&pool->room, room, deadline_ns);
	sched_yield(); /* a worker is taking one out */
	return true;
}

static int wait_and_enqueue(tw_pool *pool, const struct tw__pool_task *task, uint64_t timeout_ns)
{
	int r;
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	tw_add_seq_cst(&pool->waiting_for_room, 1); /* POOL5 */
	while (try_or_sleep(pool, task, deadline_ns, &r)) {
	}
	tw_sub_seq_cst(&pool->waiting_for_room, 1);
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

/* The first try was refused, with r. */
static int enqueue_later(tw_pool *pool, const struct tw__pool_task *task, uint64_t timeout_ns,
			 int r)
{
	if (r != -ESHUTDOWN && timeout_ns > 0)
		r = tw__pool_is_worker(pool) ? tw__waits_inside("tw_pool_submit_wait")
					     : wait_and_enqueue(pool, task, timeout_ns);
	if (r && r != -ESHUTDOWN)
		tw_add_relaxed(&pool->counters.rejected, 1);
	return r;
}

int tw_pool_submit(tw_pool *pool, tw_fn *fn, void *arg)
{
	if (tw_unlikely(!pool || !fn))
		return tw__invalid("%s is NULL", pool ? "fn" : "pool");
	return tw_pool_submit_wait(pool, fn, arg, 0);
}

int tw_pool_submit_wait(tw_pool *pool, tw_fn *fn, void *arg, uint64_t timeout_ns)
{
	static _Thread_local unsigned submits;
	int r = fn ? tw__pool_check(pool) : tw__invalid("fn is NULL");
	if (tw_unlikely(r))
		return r;
	bool timed = tw_unlikely(submits++ % TIMED_ONE_IN == 0);
	struct tw__pool_task task = {fn, arg, timed ? tw_clock_now(tw_clock_monotonic()) : 0,
				     tw__context_capture()};
	struct tw__bringer bringer = tw__bringing_begins(pool);
	r = try_enqueue(pool, &task);
	if (tw_unlikely(r))
		r = enqueue_later(pool, &task, timeout_ns, r);
	tw__bringing_ends(pool, bringer);
	return r;
}

bool tw__pool_is_worker(const tw_pool *pool)
{
	return pool && tw__this_worker && tw__this_worker->pool == pool;
}

static void pool_submit_work(tw_pool *pool, struct tw__work_queue *queue, struct tw__work *work)
{
	/* a worker that submits what it runs looks for work next, and calls for help itself */
	bool again = tw__work_is_coming_again() && tw__this_worker && tw__this_worker->work == work;
	struct tw__bringer bringer = tw__bringing_begins(pool);
	tw__work_queue_push(queue, work); /* POOL2, JOBS1 */
	if (!again && (queue != &pool->jobs.queue || tw__jobs_wait(pool)))
		tw__pool_call_for_help(pool);
	tw__bringing_ends(pool, bringer);
}

/* Batches for the public face, from services whose own executor is another one. */
static int pool_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_pool *pool = (tw_pool *)self;
	(void)n;
	if (!tw__batch_is_work(batch))
		return try_enqueue(pool, &(struct tw__pool_task){NULL, batch, 0, NULL});
	pool_submit_work(pool, &pool->works, (struct tw__work *)(void *)batch);
	return 0;
}

static const struct tw_executor_ops pool_ops = {sizeof pool_ops, pool_submit};

static int jobs_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_pool *pool = TW__OWNER(tw_pool, jobs.face, self);
	(void)n;
	if (!tw__batch_is_work(batch))
		return -EINVAL; /* told to nobody: only limiters get this executor */
	pool_submit_work(pool, &pool->jobs.queue, (struct tw__work *)(void *)batch);
	return 0;
}

static const struct tw_executor_ops jobs_ops = {sizeof jobs_ops, jobs_submit};

tw_executor *tw_pool_executor(tw_pool *pool)
{
	return pool ? &pool->executor : NULL;
}

tw_pool *tw__pool_of(tw_executor *executor)
{
	return executor && executor->ops == &pool_ops ? (tw_pool *)executor : NULL;
}

/* --------------------------------------------------------------------- birth */

void tw__pool_slot_init(tw_pool *pool, unsigned index)
{
	struct tw__worker *worker = &pool->workers[index];
	*worker = (struct tw__worker){.pool = pool, .index = index};
	ck_ec32_init(&worker->wakes, 0);
}

int tw__worker_start(struct tw__worker *worker, const struct tw_service_config *config)
{
	char suffix[16];
	snprintf(suffix, sizeof suffix, "-%u", worker->index);
	tw_store_relaxed(&worker->state, TW__WORKER_ALIVE);
	int r = tw__spawn(&worker->thread, config, suffix, false, tw__worker_main, worker);
	if (r)
		tw_store_relaxed(&worker->state, TW__WORKER_NONE);
	return r;
}

static int pool_start(tw_pool *pool, const struct tw_service_config *config)
{
	int r = 0;
	for (unsigned i = 0; i < pool->permanent; i++)
		tw__pool_slot_init(pool, i);
	tw_store_seq_cst(&pool->slots, pool->permanent);
	for (unsigned i = 0; i < pool->permanent && !r; i++)
		r = tw__worker_start(&pool->workers[i], config);
	if (!r)
		r = tw__starter_start(pool, config);
	if (r)
		tw__pool_stop(pool);
	return r;
}

/* If only a maximum is given, the default number of workers respects it. */
static void set_sizes(tw_pool *pool, const struct tw_service_config *config)
{
	unsigned most = config->max_workers, cpus = tw__usable_cpus();
	pool->permanent = config->workers ? config->workers : most && most < cpus ? most : cpus;
	if (!most)
		most = TW__MAX_WORKERS_DEFAULT;
	pool->max_workers = most > pool->permanent ? most : pool->permanent;
}

int tw__pool_create(tw_pool **out, uint32_t queue, bool owned,
		    const struct tw_service_config *config)
{
	tw_pool *pool = aligned_alloc(alignof(tw_pool), sizeof *pool);
	if (!pool)
		return -ENOMEM;
	memset(pool, 0, sizeof *pool);
	if (!tw__origin_init(&pool->origin)) {
		free(pool);
		return -ENOMEM;
	}
	tw__unload_hold();
	pool->executor.ops = &pool_ops;
	pool->jobs.face.ops = &jobs_ops;
	pool->owned = owned;
	set_sizes(pool, config);
	pool->times = tw__pool_times;
	pool->workers =
	    aligned_alloc(alignof(struct tw__worker), pool->max_workers * sizeof *pool->workers);
	struct tw__task_cell *cells = calloc(queue, sizeof *cells);
	pthread_mutex_init(&pool->lock, NULL); /* cannot fail with default attributes */
	int r = -ENOMEM;
	if (cells)
		tw__task_ring_init(&pool->tasks, cells, queue);
	if (pool->workers && cells)
		r = pool_start(pool, config);
	if (r) {
		tw__pool_free(pool);
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
				      tw__pool_create(out, config.queue, false, &threads));
}
