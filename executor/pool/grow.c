/*
 * Growth: a pool starts more workers while callbacks block.
 *
 * The starter is one thread of each pool that may grow. It sleeps until something waits and no
 * worker is idle (`armed`). Then it looks every 2 ms:
 * 1. The pool is **short** if something waits, and no worker searches or sleeps.
 * 2. A worker that has been inside one run for 20 ms is **blocked**. If no worker has begun a run
 *    since the last look, all are.
 * 3. While the pool is short it needs `permanent` workers that are not blocked. The starter starts
 *    those that are missing, or, if all are blocked, twice as many as there are. A new worker
 *    counts as inside its first run from its start on: else each round would take two looks. Until
 *    the pool is not short any more, looks are 1 ms apart.
 * 4. If a run has lasted since the last look, it sets runs_last. Workers that run many things in a
 *    row then give the worker back when their time is over.
 * 5. If a thread cannot be started, or the pool is at its maximum, it counts that, and looks less
 *    often while the need lasts.
 * 6. After eight looks that found the pool not short it sleeps. The workers of a busy service are
 *    all inside short runs for a moment in each tick: else it would be woken in each tick.
 *
 * A worker that has been idle for 10 s while there are more than the permanent ones ends (queue.c).
 * Its thread is joined when the slot gets another worker, or when the pool ends.
 *
 * A submitter only wakes the starter, which alone creates threads and allocates memory.
 *
 * Pairing table
 *   GROW1  runs_last: store relaxed (the starter) -> load relaxed (a worker that runs many things
 *       in a row, before each). No data follows. Without it a run waits until the worker has run
 *       its 64 things.
 */
#include "executor/pool/parts.h"

enum { MS = 1000000, QUIET_LOOKS = 8, RARE_LOOKS = 8 };

struct tw__pool_times tw__pool_times = {
    .look_ns = 2 * MS, .blocked_ns = 20 * MS, .idle_ns = 10000 * UINT64_C(1000000)};

/* -------------------------------------------------------------------- looking */

/* How many workers there are, and how many of them are not blocked. */
static unsigned count_able(tw_pool *pool, bool pool_is_short, uint64_t now_ns, unsigned *alive)
{
	unsigned lasting = 0, blocked = 0;
	*alive = 0;
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++) {
		struct tw__worker *worker = &pool->workers[i];
		if (tw_load_relaxed(&worker->state) != TW__WORKER_ALIVE)
			continue;
		++*alive;
		uint64_t runs = tw_load_relaxed(&worker->runs);
		if (!(runs & 1)) {
			if (!pool_is_short)
				worker->seen_runs = 0; /* it is no new one any more */
			continue;
		}
		lasting += runs == worker->seen_runs;
		if (runs != worker->seen_runs) {
			worker->seen_runs = runs;
			worker->seen_ns = now_ns;
		}
		blocked += now_ns - worker->seen_ns >= pool->times.blocked_ns;
	}
	tw_store_relaxed(&pool->starter.runs_last, lasting > 0); /* GROW1 */
	return lasting == *alive ? 0 : *alive - blocked;
}

/* -------------------------------------------------------------------- growing */

/* A retired thread that is still inside an exit handler of the user keeps its slot. */
static bool has_thread(struct tw__worker *worker)
{
	uint32_t state = tw_load_relaxed(&worker->state);
	return state != TW__WORKER_NONE &&
	       (state != TW__WORKER_RETIRED || pthread_tryjoin_np(worker->thread, NULL));
}

/* A slot without a thread, or NULL: all are in use. */
static struct tw__worker *free_slot(tw_pool *pool)
{
	unsigned slots = tw_load_seq_cst(&pool->slots);
	for (unsigned i = 0; i < slots; i++)
		if (!has_thread(&pool->workers[i]))
			return &pool->workers[i];
	if (slots == pool->limits.capacity)
		return NULL;
	tw__worker_init(pool, slots);
	tw_store_seq_cst(&pool->slots, slots + 1); /* it is complete */
	return &pool->workers[slots];
}

/* Starts up to n workers. False: no thread can be started for now. */
static bool start_more(tw_pool *pool, unsigned n, uint64_t now_ns)
{
	struct tw__worker *worker;
	unsigned started = 0;
	for (; started < n && (worker = free_slot(pool)); started++) {
		worker->seen_runs = tw_load_relaxed(&worker->runs) + 1; /* its first run begins */
		worker->seen_ns = now_ns;
		if (tw__worker_start(worker, &pool->starter.threads)) {
			tw_bump(&pool->starter.start_failures, 1);
			return false;
		}
		tw_bump(&pool->starter.grown, 1);
	}
	return started > 0;
}

/* Returns when to look again. */
static uint64_t grow_look(tw_pool *pool, uint64_t now_ns)
{
	struct tw__starter *starter = &pool->starter;
	uint64_t look_ns = pool->times.look_ns;
	tw__tiny_lock(&pool->lock);
	bool was_short = tw__pool_is_short(pool);
	starter->quiet_looks = was_short ? 0 : starter->quiet_looks + 1;
	if (starter->quiet_looks >= QUIET_LOOKS && !pool->stopping) { /* a stop has armed it */
		tw__pool_arm(pool, false);
		if (tw__pool_is_short(pool)) /* WANTED */
			tw__pool_arm(pool, true);
		else
			starter->quiet_looks = 0; /* it sleeps */
	}
	tw__tiny_unlock(&pool->lock);
	unsigned alive, able = count_able(pool, was_short, now_ns, &alive);
	bool need = was_short && able < pool->permanent;
	starter->full &= need;
	starter->growing = need || (was_short && starter->growing);
	if (need && !start_more(pool, able ? pool->permanent - able : 2 * alive, now_ns)) {
		if (!able && alive == pool->limits.capacity && !starter->full) {
			starter->full = true;
			tw_bump(&starter->at_max, 1);
		}
		return now_ns + RARE_LOOKS * look_ns;
	}
	return now_ns + (starter->growing ? look_ns / 2 : look_ns);
}

/* ---------------------------------------------------------------- the starter */

/* False: it is to end, and nothing waits. */
static bool starter_goes_on(tw_pool *pool)
{
	tw__tiny_lock(&pool->lock);
	bool goes_on = !pool->stopping || tw__pool_waits(pool);
	tw__tiny_unlock(&pool->lock);
	return goes_on;
}

static void *starter_main(void *arg)
{
	tw_pool *pool = arg;
	_Atomic uint32_t *armed = &pool->starter.armed;
	uint64_t look_at_ns = 0;
	while (starter_goes_on(pool)) {
		if (!tw_load_relaxed(armed)) {
			tw_store_relaxed(&pool->starter.runs_last, 0); /* GROW1 */
			tw__futex_wait(armed, 0, UINT64_MAX);
			/* workers that have been woken begin their runs first */
			look_at_ns = tw__deadline_in(pool->times.look_ns / 4);
		} else if (!tw__futex_wait(armed, 1, look_at_ns)) {
			look_at_ns = grow_look(pool, tw_clock_now(tw_clock_monotonic()));
		}
	}
	return NULL;
}

int tw__starter_start(tw_pool *pool, const struct tw_service_config *config)
{
	struct tw__starter *starter = &pool->starter;
	if (pool->limits.capacity == pool->permanent) {
		tw_store_relaxed(&starter->armed, 1); /* nobody is to arm it */
		return 0;
	}
	/* threads have the affinity of the one that creates them */
	starter->threads.stack_size = config->stack_size;
	starter->threads.thread_name = starter->name;
	snprintf(starter->name, sizeof starter->name, "%.9s", config->thread_name);
	int r = tw__spawn(&starter->thread, config, "-grow", false, starter_main, pool);
	starter->started = r == 0;
	return r;
}

void tw__starter_stop(tw_pool *pool)
{
	if (!pool->starter.started)
		return;
	tw__tiny_lock(&pool->lock);
	tw__pool_arm(pool, true); /* it wakes, and sees that the pool stops */
	tw__tiny_unlock(&pool->lock);
	tw__futex_wake(&pool->starter.armed, 1);
	pthread_join(pool->starter.thread, NULL);
}
