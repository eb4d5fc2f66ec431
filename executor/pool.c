/*
 * The pool: worker threads that take batches from a service's ring and claim runs one at a time.
 *
 * A worker that has taken a batch shows it as **open**: others that find the ring empty join it, so a slow callback holds up
 * nothing but itself (G8). The claim is the batch's cursor (run.h); a batch goes home when all who joined have left.
 *
 * Who wakes whom (the scheme of D. Vyukov's Go scheduler): at most one worker at a time is being woken to **search**. Whoever brings
 * work, and whoever is about to run a callback and leaves work behind, wakes one sleeper unless one is searching
 * already; a searcher that finds work stops searching, and by the same rule wakes the next if there is more.
 *
 * Each worker sleeps on an event count of its own (Concurrency Kit), so that one wake-up wakes one worker.
 *
 * Pairing table
 *   E1  ring: CK's enqueue -> CK's dequeue (its own fences): a batch's address. Its contents: run.h, R1.
 *   E2  "work is there" (enqueue and full fence, or open: store seq_cst) -> load of searching, sleepers (seq_cst)
 *       against searching-1, idle bit (seq_cst) -> full fence -> look for work: of a bringer that wakes nobody, and a worker about
 *       to sleep, one sees the other. Without it a batch waits until the next one comes.
 *   E3  event count: read before the idle bit is set; bit cleared, then incremented (waker): a wake-up between the two
 *       makes the wait return at once. A worker that finds work after its bit was taken waits for the increment that must follow:
 *       else it would be woken by it later, with nobody counting it as searching.
 *   E4  open_sequence: store-release before open; a joiner that mixes two batches' words claims nothing (run.h: the cursor
 *       holds the sequence).
 *
 * Not good at: very many workers on one service; they look at each other's open batches in turn. Fine for tens.
 */
#include "executor/pool.h"

#include <ck_ec.h>
#include <ck_ring.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mpsc/futex.h"
#include "wheel/run.h"
#include "wheel/spawn.h"

enum { RING_BATCHES = 4096, WORKERS_MAX = 1024 };

struct worker {
	alignas(TW__CACHE_LINE) _Atomic(tw_batch *) open; /* by its thread */
	_Atomic uint64_t open_sequence;
	struct ck_ec32 wakes;
	struct tw__pool *pool;
	unsigned index;
	pthread_t thread;
};

struct tw__pool {
	tw_executor executor; /* first: the executor is the pool */
	unsigned worker_count;
	struct worker *workers;
	ck_ring_buffer_t *slots;
	ck_ring_t ring;
	alignas(TW__CACHE_LINE) _Atomic uint32_t searching; /* workers that look for work, or are being woken to */
	_Atomic uint32_t sleepers;                          /* bits set in idle */
	_Atomic uint32_t stopping;
	_Atomic uint64_t idle[WORKERS_MAX / 64]; /* asleep, or about to */
};

/* ---------------------------------------------------- Concurrency Kit's side */

static int ec_gettime(const struct ck_ec_ops *ops, struct timespec *out)
{
	(void)ops;
	return clock_gettime(CLOCK_MONOTONIC, out);
}

/* Event counts in multi-producer mode lose no wake-up, so the periodic look that CK asks for by a deadline is left out. */
static void ec_wait(const struct ck_ec_wait_state *state, const uint32_t *word, uint32_t expected,
		    const struct timespec *deadline)
{
	(void)state;
	(void)deadline;
	tw__futex_wait((_Atomic uint32_t *)(uintptr_t)word, expected, UINT64_MAX);
}

static void ec_wake(const struct ck_ec_ops *ops, const uint32_t *word)
{
	(void)ops;
	tw__futex_wake((_Atomic uint32_t *)(uintptr_t)word, INT_MAX);
}

static const struct ck_ec_ops ec_ops = {
    .gettime = ec_gettime, .wait32 = ec_wait, .wake32 = ec_wake, .busy_loop_iter = 1};
static const struct ck_ec_mode ec_mode = {.ops = &ec_ops, .single_producer = false};

/* --------------------------------------------------------------------- waking */

static bool take_idle(struct tw__pool *pool, unsigned index)
{
	uint64_t bit = UINT64_C(1) << index % 64;
	if (!(tw_and_seq_cst(&pool->idle[index / 64], ~bit) & bit))
		return false;
	tw_sub_seq_cst(&pool->sleepers, 1);
	return true;
}

/* Calls a sleeper, in whose name `searching` was raised already. */
static bool call_one(struct tw__pool *pool)
{
	for (unsigned w = 0; w <= (pool->worker_count - 1) / 64; w++) {
		uint64_t bits;
		while ((bits = tw_load_seq_cst(&pool->idle[w]))) {
			unsigned index = w * 64 + (unsigned)__builtin_ctzll(bits);
			if (!take_idle(pool, index))
				continue;
			ck_ec32_inc(&pool->workers[index].wakes, &ec_mode); /* E3 */
			return true;
		}
	}
	return false;
}

static bool any_idle(struct tw__pool *pool)
{
	for (unsigned w = 0; w <= (pool->worker_count - 1) / 64; w++)
		if (tw_load_seq_cst(&pool->idle[w]))
			return true;
	return false;
}

/*
 * Wakes one sleeper to search, unless somebody searches. If it found none, another who has brought work may have trusted in the
 * raised `searching` meanwhile, and a worker may have gone to sleep: so it looks again after it has taken it back (E2).
 */
static void wake_one(struct tw__pool *pool)
{
	do {
		uint32_t none = 0;
		if (!tw_cas_seq_cst(&pool->searching, &none, 1) || call_one(pool))
			return;
		tw_sub_seq_cst(&pool->searching, 1);
	} while (any_idle(pool));
}

static inline void call_for_help(struct tw__pool *pool)
{
	if (tw_load_seq_cst(&pool->searching) == 0 && tw_load_seq_cst(&pool->sleepers) != 0) /* E2 */
		wake_one(pool);
}

/* -------------------------------------------------------------------- working */

struct find {
	tw_batch *batch;
	uint64_t sequence;
	bool taken; /* from the ring: it is ours to show */
};

static bool joinable(struct worker *other, struct find *find)
{
	find->batch = tw_load_seq_cst(&other->open); /* E2, E4 */
	find->sequence = tw_load_seq_cst(&other->open_sequence);
	find->taken = false;
	return find->batch && tw__batch_left(find->batch, find->sequence);
}

static bool find_work(struct worker *self, struct find *find)
{
	struct tw__pool *pool = self->pool;
	void *batch;
	if (ck_ring_dequeue_spmc(&pool->ring, pool->slots, &batch)) { /* E1 */
		*find = (struct find){batch, tw__batch_sequence(batch), true};
		return true;
	}
	for (unsigned i = 1; i < pool->worker_count; i++)
		if (joinable(&pool->workers[(self->index + i) % pool->worker_count], find))
			return true;
	return false;
}

/* Room for what must not fail; none can be had for the moment: the driver frees some as it drains. */
static void await_room(tw_service *service, struct tw__local *local)
{
	while (!tw__local_ready_to_run(local)) {
		tw__gate_ring(&service->gate);
		sched_yield();
	}
}

static struct tw__local *attach(tw_service *service)
{
	struct tw__local *local;
	while (!(local = tw__local_of(service)))
		sched_yield();
	tw_store_relaxed(&local->of_service,
			 1); /* what it pushes outside of runs is nothing: batches_out says all (close.c) */
	return local;
}

/* False: this is a forked child, made by a callback that has returned here; nothing is left to work on. */
static bool work_on(struct worker *self, const struct find *find)
{
	struct tw__pool *pool = self->pool;
	tw_service *service = tw__batch_service(find->batch);
	struct tw__local *local = attach(service);
	if (find->taken) {
		tw_store_release(&self->open_sequence, find->sequence); /* E4 */
		tw_store_seq_cst(&self->open, find->batch);             /* E2 */
	}
	uint64_t now_ns = 0;
	unsigned claimed = 0;
	int index;
	while (await_room(service, local), (index = tw__batch_claim(find->batch, find->sequence)) >= 0) {
		claimed++;
		if (tw__batch_left(find->batch, find->sequence) || ck_ring_size(&pool->ring) > 0)
			call_for_help(pool);
		tw__batch_run(find->batch, local, (unsigned)index, &now_ns);
		if (tw__forked(service))
			return false;
	}
	if (find->taken)
		tw_store_relaxed(&self->open, NULL); /* it is spent: whoever still sees it claims nothing */
	if (claimed)
		tw__batch_finish(find->batch, claimed);
	return true;
}

/* ------------------------------------------------------------------- sleeping */

/* Called while counted as searching; returns counted as searching, or when the pool stops. */
static bool sleep_until_called(struct worker *self, struct find *find)
{
	struct tw__pool *pool = self->pool;
	uint32_t before = ck_ec32_value(&self->wakes); /* E3 */
	tw_sub_seq_cst(&pool->searching, 1);
	tw_add_seq_cst(&pool->sleepers, 1);
	tw_or_seq_cst(&pool->idle[self->index / 64], UINT64_C(1) << self->index % 64);
	ck_pr_fence_memory(); /* E2 */
	bool found = find_work(self, find);
	if (found || tw_load_seq_cst(&pool->stopping)) {
		if (take_idle(pool, self->index))
			tw_add_seq_cst(&pool->searching, 1);
		else if (found)
			ck_ec32_wait(&self->wakes, &ec_mode, before,
				     NULL); /* E3: called already; the call must not wake us later */
		return found;
	}
	ck_ec32_wait(&self->wakes, &ec_mode, before, NULL);
	return false;
}

static void *worker_main(void *arg)
{
	struct worker *self = arg;
	struct tw__pool *pool = self->pool;
	tw_add_seq_cst(&pool->searching, 1);
	while (!tw_load_seq_cst(&pool->stopping)) {
		struct find find;
		if (!find_work(self, &find) && !sleep_until_called(self, &find))
			continue;
		tw_sub_seq_cst(&pool->searching, 1);
		do {
			if (!work_on(self, &find))
				return NULL;
		} while (find_work(self, &find));
		tw_add_seq_cst(&pool->searching, 1);
	}
	return NULL;
}

/* ------------------------------------------------------------------- the pool */

static int pool_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	struct tw__pool *pool = (struct tw__pool *)self;
	(void)n;
	if (!ck_ring_enqueue_spmc(&pool->ring, pool->slots, batch)) /* E1 */
		return -EAGAIN;
	ck_pr_fence_memory(); /* E2 */
	call_for_help(pool);
	return 0;
}

static const struct tw_executor_ops pool_ops = {sizeof pool_ops, pool_submit};

tw_executor *tw__pool_executor(struct tw__pool *pool)
{
	return &pool->executor;
}

static void stop(struct tw__pool *pool, unsigned started)
{
	tw_store_seq_cst(&pool->stopping, 1);
	for (unsigned i = 0; i < started; i++)
		ck_ec32_inc(&pool->workers[i].wakes, &ec_mode);
	for (unsigned i = 0; i < started; i++)
		pthread_join(pool->workers[i].thread, NULL);
}

static void release(struct tw__pool *pool)
{
	free(pool->workers);
	free(pool->slots);
	free(pool);
}

static int start(struct tw__pool *pool, const struct tw_service_config *config)
{
	for (unsigned i = 0; i < pool->worker_count; i++) {
		struct worker *worker = &pool->workers[i];
		*worker = (struct worker){.pool = pool, .index = i};
		ck_ec32_init(&worker->wakes, 0);
	}
	for (unsigned i = 0; i < pool->worker_count; i++) {
		char suffix[16];
		snprintf(suffix, sizeof suffix, "-%u", i);
		int r = tw__spawn(&pool->workers[i].thread, config, suffix, false, worker_main, &pool->workers[i]);
		if (r) {
			stop(pool, i);
			return r;
		}
	}
	return 0;
}

int tw__pool_create(struct tw__pool **out, unsigned workers, const struct tw_service_config *config)
{
	struct tw__pool *pool = aligned_alloc(alignof(struct tw__pool), sizeof *pool);
	if (!pool)
		return -ENOMEM;
	*pool = (struct tw__pool){.executor.ops = &pool_ops, .worker_count = workers};
	pool->workers = aligned_alloc(alignof(struct worker), workers * sizeof *pool->workers);
	pool->slots = calloc(RING_BATCHES, sizeof *pool->slots);
	int r = -ENOMEM;
	if (pool->workers && pool->slots) {
		ck_ring_init(&pool->ring, RING_BATCHES);
		r = start(pool, config);
	}
	if (r) {
		release(pool);
		return r;
	}
	*out = pool;
	return 0;
}

void tw__pool_destroy(struct tw__pool *pool)
{
	if (!pool)
		return;
	stop(pool, pool->worker_count);
	release(pool);
}

void tw__pool_free_forked(struct tw__pool *pool)
{
	if (pool)
		release(pool);
}
