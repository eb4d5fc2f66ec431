/*
 * Who wakes whom, and how a worker sleeps (the scheme of D. Vyukov's Go scheduler).
 *
 * - At most one worker at a time is being woken to **search**.
 * - A submitter wakes one sleeper, unless a worker searches already. So does a worker that is about
 *   to run something and leaves work behind.
 * - A searcher that finds work stops searching, and wakes the next one by the same rule if there is
 *   more.
 * - If no worker searches and none sleeps, the starter is armed: it is the last sleeper (grow.c).
 * - A worker that submits again the work it has just run wakes nobody: it looks for work next
 *   (pool.c). If it then takes something else, it leaves that work behind, and wakes a sleeper by
 *   the rule above.
 *
 * Each worker sleeps on an event count of its own (Concurrency Kit), so one wake-up wakes one
 * worker. Workers beyond the permanent ones sleep for a limited time, and then end.
 *
 * Pairing table
 *   POOL2  "work is there" -> load of searching, sleepers (seq_cst) against searching-1, idle bit
 *       (seq_cst) -> look for work: of a submitter that wakes nobody, and a worker about to sleep,
 *       one sees the other. Without it a batch waits until the next one comes. A worker that ends
 *       takes its idle bit back first, and then looks once more: the same two sides. Between the
 *       two steps there is: for a source the seq_cst stores and loads of the list of sources and of
 *       its tail; for an open batch its seq_cst store and load; for a task its cell's seq_cst
 *       store and load (of several tasks being pushed, a worker sees none beyond the first
 *       unfinished one, whose submitter then sees the worker); for work its seq_cst push
 *       (work_queue.h, QUEUED2).
 *   POOL3  event count: read before the idle bit is set; bit cleared, then incremented (waker): a
 *       wake-up between the two makes the wait return immediately. A worker that finds work after
 *       its bit was taken waits for the increment that must follow. Otherwise it would be woken by
 *       it later, while nobody counts it as searching.
 *   POOL6  the stop: stopping (seq_cst), then load of a worker's idle bit (seq_cst), against the
 *       bit set (seq_cst), then the worker's look at stopping: one of the two sees the other.
 *       Without it a worker sleeps on when the pool is closed.
 *   POOL7  "work is there" -> load of calls (seq_cst) against ARMED cleared (seq_cst) -> look for
 *       work (the starter): of a submitter that finds the starter armed, and a starter about to
 *       sleep, one sees the other. Without it runs wait behind blocked workers until the next
 *       submit.
 */
#include <time.h>

#include "executor/pool/wake.h"
#include "executor/pool/grow.h"
#include "executor/pool/worker.h"

/* ---------------------------------------------------- Concurrency Kit's side */

static int ec_gettime(const struct ck_ec_ops *ops, struct timespec *out)
{
	(void)ops;
	return clock_gettime(CLOCK_MONOTONIC, out);
}

/*
 * Event counts in multi-producer mode lose no wake-up, so the periodic looks that CK asks for are
 * left out.
 */
static void ec_wait(const struct ck_ec_wait_state *state, const uint32_t *word, uint32_t expected,
		    const struct timespec *deadline)
{
	(void)state;
	(void)deadline;
	tw__futex_wait((_Atomic uint32_t *)(uintptr_t)word, expected,
		       tw__this_worker->idle_until_ns);
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

static unsigned idle_words(tw_pool *pool)
{
	return (tw_load_seq_cst(&pool->slots) + 63) / 64;
}

static bool take_idle(tw_pool *pool, unsigned index)
{
	uint64_t bit = UINT64_C(1) << index % 64;
	if (!(tw_and_seq_cst(&pool->asleep.idle[index / 64], ~bit) & bit))
		return false;
	tw_sub_seq_cst(&pool->asleep.sleepers, 1);
	return true;
}

/* Calls a sleeper. `searching` has been raised for it already. */
static bool call_one(tw_pool *pool)
{
	for (unsigned w = 0, words = idle_words(pool); w < words; w++) {
		uint64_t bits;
		while ((bits = tw_load_seq_cst(&pool->asleep.idle[w]))) {
			unsigned index = w * 64 + (unsigned)__builtin_ctzll(bits);
			if (!take_idle(pool, index))
				continue;
			ck_ec32_inc(&pool->workers[index].wakes, &ec_mode); /* POOL3 */
			return true;
		}
	}
	return false;
}

static bool any_idle(tw_pool *pool)
{
	for (unsigned w = 0, words = idle_words(pool); w < words; w++)
		if (tw_load_seq_cst(&pool->asleep.idle[w]))
			return true;
	return false;
}

/*
 * Wakes one sleeper to search, unless a worker searches. If it finds none, another submitter may
 * have relied on the raised `searching` meanwhile, and a worker may have gone to sleep. So it looks
 * again after it has lowered it (POOL2). False: no worker searches, and none sleeps.
 */
static bool wake_one(tw_pool *pool)
{
	do {
		uint32_t none = 0;
		if (!tw_cas_seq_cst(&pool->asleep.searching, &none, 1) || call_one(pool))
			return true;
		tw_sub_seq_cst(&pool->asleep.searching, 1);
	} while (any_idle(pool));
	return false;
}

void tw__pool_call_for_help(tw_pool *pool)
{
	if (tw_load_seq_cst(&pool->asleep.searching) != 0) /* POOL2 */
		return;
	if (tw_load_seq_cst(&pool->asleep.sleepers) == 0 || !wake_one(pool)) /* POOL2 */
		tw__starter_arm(pool);
}

/*
 * Each as by any other call. If a worker woke uncounted, the starter would take it for one that
 * searches or sleeps, and would not grow.
 */
void tw__pool_wake_all(tw_pool *pool)
{
	do {
		tw_add_seq_cst(&pool->asleep.searching, 1);
		while (call_one(pool))
			tw_add_seq_cst(&pool->asleep.searching, 1);
		tw_sub_seq_cst(&pool->asleep.searching, 1);
	} while (any_idle(pool)); /* POOL6 */
}

/* ------------------------------------------------------------------- sleeping */

/*
 * Waits until the worker has been called since `before`. It loops, because Concurrency Kit's wait
 * also returns when a slow caller of an earlier round clears the flag that this wait has just set.
 * False: the time is over.
 */
static bool await_call(struct tw__worker *self, uint32_t before, uint64_t until_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
				       .tv_nsec = (long)(until_ns % 1000000000u)};
	const struct timespec *deadline = until_ns == UINT64_MAX ? NULL : &until;
	self->idle_until_ns = until_ns;
	while (ck_ec32_value(&self->wakes) == before)
		if (ck_ec32_wait(&self->wakes, &ec_mode, before, deadline) < 0)
			return false;
	return true;
}

/*
 * The worker has been idle for too long. When its idle bit is taken back no thread can call it, so
 * it looks once more (POOL2). True: it has found work, and is counted as searching.
 */
static bool pool_retire(struct tw__worker *self, struct tw__find *find, uint32_t before)
{
	tw_pool *pool = self->pool;
	if (!take_idle(pool, self->index)) {
		await_call(self, before, UINT64_MAX); /* POOL3: called already */
		return false;
	}
	bool found = tw__worker_find(self, find);
	if (found)
		tw_add_seq_cst(&pool->asleep.searching, 1);
	self->retired = !found;
	return found;
}

bool tw__worker_sleep(struct tw__worker *self, struct tw__find *find)
{
	tw_pool *pool = self->pool;
	uint32_t before = ck_ec32_value(&self->wakes); /* POOL3 */
	tw_sub_seq_cst(&pool->asleep.searching, 1);
	sched_yield(); /* a submitter may want this processor, and then need wake nobody */
	tw_add_seq_cst(&pool->asleep.sleepers, 1);
	tw_or_seq_cst(&pool->asleep.idle[self->index / 64], UINT64_C(1) << self->index % 64);
	bool found = tw__worker_find(self, find);
	if (found || tw_load_seq_cst(&pool->stopping)) { /* POOL6 */
		if (take_idle(pool, self->index))
			tw_add_seq_cst(&pool->asleep.searching, 1);
		else if (found)
			/* POOL3: the call must not wake it later */
			await_call(self, before, UINT64_MAX);
		return found;
	}
	bool is_permanent = self->index < pool->permanent;
	uint64_t until_ns = is_permanent ? UINT64_MAX : tw__deadline_in(pool->times.idle_ns);
	return !await_call(self, before, until_ns) && pool_retire(self, find, before);
}
