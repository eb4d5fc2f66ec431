/*
 * The workers, and the starter, which starts more while callbacks block.
 *
 * The starter is one thread of each pool that may grow: the last of the sleepers, called when no
 * worker sleeps. It then looks every 2 ms:
 * 1. The pool is **short** if something waits, and no worker searches or sleeps.
 * 2. A worker that has been inside one run for 20 ms is **blocked**. If all workers have been
 *    inside their runs for 2 ms, all are.
 * 3. A pool that is short needs `permanent` workers that are not blocked. If it has fewer, the
 *    starter starts one, and looks again after 60 us. On a busy machine the new thread waits for a
 *    processor for milliseconds: until it begins, its first run counts as lasting. But no more
 *    threads are started than things wait.
 * 4. While a run lasts for 2 ms, runs_last is set. Workers that run many things in a row then give
 *    the worker back when their time is over.
 * 5. If a thread cannot be started, or the pool is at its maximum, it counts that.
 * 6. After eight looks that found the pool not short it sleeps. The workers of a busy service are
 *    all inside short runs for a moment in each tick: else it would be woken in each tick.
 *
 * A thread that has ended (queue.c) is joined when its slot gets another worker, or at the pool's
 * end. Only the starter creates threads: they inherit what a callback may have changed.
 *
 * Pairing table
 *   GROW1  runs_last: store relaxed (the starter) -> load relaxed (a worker that runs many things
 *       in a row, before each). No data follows. Without it a run waits until the worker has run
 *       its 64 things.
 */
#include "executor/pool/parts.h"

enum { MS = 1000000, QUIET_LOOKS = 8, GROWING_LOOKS = 32 };

struct tw__pool_times tw__pool_times = {
    .look_ns = 2 * MS, .blocked_ns = 20 * MS, .idle_ns = 10000 * UINT64_C(1000000)};

/* -------------------------------------------------------------------- workers */

/* A run begins or ends. Only the worker writes `runs`. */
static void count_changes(struct tw__worker *self, uint64_t changes)
{
	tw_store_relaxed(&self->runs, tw_load_relaxed(&self->runs) + changes);
}

static void run_task(struct tw__worker *self, const struct tw__pool_task *task)
{
	uint64_t begun_ns = tw_unlikely(task->queued_ns) ? tw_clock_now(tw_clock_monotonic()) : 0;
	struct tw__run_record *shown =
	    tw__user_begin(self->pool, task->fn, task->arg, NULL, begun_ns);
	void *former = tw__context_enter(task->context);
	task->fn(task->arg);
	tw__context_leave(former);
	tw__user_end(shown);
	if (tw_unlikely(task->queued_ns)) {
		tw__histogram_add(&self->wait, begun_ns - task->queued_ns, 1);
		tw__histogram_add(&self->run, tw_clock_now(tw_clock_monotonic()) - begun_ns, 1);
	}
	tw_bump(&self->completed, 1);
}

/* If memory is short for the moment, the driver frees some as it drains. */
static void await_room(tw_service *service, struct tw__local *local)
{
	while (!tw__local_ready_to_run(local)) {
		tw__gate_ring(&service->gate);
		sched_yield();
	}
}

static struct tw__local *attach(const struct tw__worker *worker, tw_service *service)
{
	struct tw__local *local;
	while (!(local = tw__local_of(service)))
		sched_yield();
	if (worker->pool->owned) /* it pushes only inside runs: batches_out covers it (close.c) */
		tw_store_relaxed(&local->of_service, 1);
	return local;
}

static void run_batch(struct tw__worker *self, struct tw__taken *taken)
{
	tw_service *service = tw__batch_service(taken->batch);
	struct tw__local *local = attach(self, service);
	struct tw__run_clock clock = {0};
	unsigned ran = 1;
	for (;; ran++, count_changes(self, 2)) {
		await_room(service, local);
		tw__batch_run(taken->batch, local, (unsigned)taken->index, &clock);
		if (!tw__worker_claim(taken))
			break;
	}
	tw__batch_finish(taken->batch, ran);
}

static void *worker_main(void *arg)
{
	struct tw__worker *self = tw__this_worker = arg;
	struct tw__taken taken = {0};
	while (tw__worker_next(self, &taken)) {
		count_changes(self, 1);
		if (taken.batch) {
			run_batch(self, &taken);
		} else if (taken.task.fn) {
			run_task(self, &taken.task);
		} else {
			struct tw__work *work = taken.task.arg;
			bool is_job = work->is_job; /* first: the work may be gone */
			tw__work_run(work);
			if (is_job)
				tw__pool_job_ends(self->pool);
		}
		count_changes(self, 1);
	}
	return NULL;
}

/* A retired thread that is still inside an exit handler of the user keeps its slot. */
static bool has_thread(struct tw__worker *worker)
{
	uint32_t state = tw_load_relaxed(&worker->state);
	return state != TW__WORKER_NONE &&
	       (state != TW__WORKER_RETIRED || pthread_tryjoin_np(worker->thread, NULL));
}

/* Returns a slot without a thread, or NULL. */
static struct tw__worker *free_slot(tw_pool *pool)
{
	unsigned i = 0, slots = tw_load_seq_cst(&pool->slots);
	while (i < slots && has_thread(&pool->workers[i]))
		i++;
	if (i == pool->limits.capacity)
		return NULL;
	if (i == slots) {
		pool->workers[i] = (struct tw__worker){.pool = pool};
		tw_store_seq_cst(&pool->slots, slots + 1); /* it is complete */
	}
	return &pool->workers[i];
}

static void count_alive(struct tw__worker *worker, int change, enum tw__worker_state state)
{
	tw__tiny_lock(&worker->pool->lock);
	worker->pool->alive += (unsigned)change;
	tw_store_relaxed(&worker->state, state);
	tw__tiny_unlock(&worker->pool->lock);
}

int tw__worker_start(tw_pool *pool, const struct tw_service_config *config, uint64_t fresh_ns)
{
	char suffix[16];
	struct tw__worker *worker = free_slot(pool);
	if (!worker)
		return -EAGAIN;
	snprintf(suffix, sizeof suffix, "-%u", (unsigned)(worker - pool->workers));
	worker->seen_runs = fresh_ns ? tw_load_relaxed(&worker->runs) + 1 : 0;
	worker->seen_ns = fresh_ns;
	count_alive(worker, 1, TW__WORKER_ALIVE);
	int r = tw__spawn(&worker->thread, config, suffix, false, worker_main, worker);
	if (r)
		count_alive(worker, -1, TW__WORKER_NONE);
	return r;
}

/* -------------------------------------------------------------------- looking */

/* Workers as a look finds them. Fresh ones have not begun their first run yet. */
struct look {
	unsigned alive, fresh, able;
};

static struct look look_at_workers(tw_pool *pool, bool is_short, uint64_t now_ns)
{
	struct look look = {0};
	unsigned lasting = 0, blocked = 0;
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++) {
		struct tw__worker *worker = &pool->workers[i];
		if (tw_load_relaxed(&worker->state) != TW__WORKER_ALIVE)
			continue;
		look.alive++;
		uint64_t runs = tw_load_relaxed(&worker->runs);
		if (!(runs & 1)) {
			if (!is_short)
				worker->seen_runs = 0; /* it has looked, too */
			look.fresh += worker->seen_runs == runs + 1;
			continue;
		}
		if (runs != worker->seen_runs) {
			worker->seen_runs = runs;
			worker->seen_ns = now_ns;
		}
		lasting += now_ns - worker->seen_ns >= pool->times.look_ns;
		blocked += now_ns - worker->seen_ns >= pool->times.blocked_ns;
	}
	tw_store_relaxed(&pool->starter.runs_last, lasting > 0); /* GROW1 */
	look.able = lasting + look.fresh == look.alive ? 0 : look.alive - blocked;
	return look;
}

/* -------------------------------------------------------------------- growing */

/* Returns false if no thread can be started. Its first run counts as if it had lasted. */
static bool start_one(tw_pool *pool, uint64_t now_ns)
{
	struct tw__starter *starter = &pool->starter;
	int r = tw__worker_start(pool, &starter->threads, now_ns - pool->times.look_ns);
	tw_bump(r ? &starter->start_failures : &starter->grown, 1);
	return r == 0;
}

/* Returns when to look again. */
static uint64_t grow_look(tw_pool *pool, uint64_t now_ns)
{
	struct tw__starter *starter = &pool->starter;
	uint64_t look_ns = pool->times.look_ns;
	tw__tiny_lock(&pool->lock);
	bool is_short = !pool->searching && !pool->idle && tw__pool_waits(pool);
	starter->quiet_looks = is_short ? 0 : starter->quiet_looks + 1;
	if (starter->quiet_looks >= QUIET_LOOKS && !pool->stopping) {
		starter->quiet_looks = 0;
		tw__starter_sleeps(pool);
	} else {
		tw__tiny_unlock(&pool->lock);
	}
	struct look look = look_at_workers(pool, is_short, now_ns);
	bool need = is_short && look.able < pool->permanent;
	starter->full &= need;
	if (!need || look.fresh >= tw__pool_count(pool))
		return now_ns + (need ? look_ns / GROWING_LOOKS : look_ns);
	bool at_max = look.alive == pool->limits.capacity;
	if (!at_max && start_one(pool, now_ns))
		return now_ns + look_ns / GROWING_LOOKS;
	if (at_max && !look.able && !starter->full) {
		starter->full = true;
		tw_bump(&starter->at_max, 1);
	}
	return now_ns + look_ns;
}

/* Returns false if it is to end, and nothing waits. */
static bool starter_goes_on(tw_pool *pool)
{
	tw__tiny_lock(&pool->lock);
	bool goes_on = !pool->stopping || tw__pool_waits(pool);
	tw__tiny_unlock(&pool->lock);
	return goes_on;
}

static tw_cold void *starter_main(void *arg)
{
	tw_pool *pool = arg;
	struct tw__sleeper *self = &pool->starter.sleeper;
	uint64_t look_at_ns = 0;
	while (starter_goes_on(pool)) {
		uint32_t called = tw_load_relaxed(&self->called);
		if (!called) {
			tw_store_relaxed(&pool->starter.runs_last, 0); /* GROW1 */
			(void)tw__sleeper_waits(self, UINT64_MAX);
			/* workers that have been woken begin their runs first */
			look_at_ns = tw__deadline_in(pool->times.look_ns / 4);
		} else if (!tw__futex_wait(&self->called, called, look_at_ns)) {
			look_at_ns = grow_look(pool, tw_clock_now(tw_clock_monotonic()));
		}
	}
	return NULL;
}

int tw__starter_start(tw_pool *pool, const struct tw_service_config *config)
{
	struct tw__starter *starter = &pool->starter;
	/* threads have the affinity of the one that creates them */
	starter->threads.stack_size = config->stack_size;
	starter->threads.thread_name = starter->name;
	snprintf(starter->name, sizeof starter->name, "%.9s", config->thread_name);
	return tw__spawn(&starter->thread, config, "-grow", false, starter_main, pool);
}

void tw__pool_stop(tw_pool *pool)
{
	tw__pool_let_end(pool);
	if (pool->limits.capacity > pool->permanent)
		pthread_join(pool->starter.thread, NULL);
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++) {
		struct tw__worker *worker = &pool->workers[i];
		if (tw_load_relaxed(&worker->state) == TW__WORKER_NONE)
			continue;
		pthread_join(worker->thread, NULL);
		tw_store_relaxed(&worker->state, TW__WORKER_NONE); /* statistics still read it */
	}
}
