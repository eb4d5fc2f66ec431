/*
 * The workers: threads that take batches from services' rings, plain tasks from the pool's, and work of the layers above from its queues
 * (work_queue.h); they claim runs one at a time.
 *
 * A worker that has taken a batch shows it as **open**: others that find nothing else join it, so a slow callback holds up
 * nothing but itself (G8). The claim is the batch's cursor (run.h); a batch goes home when all who joined have left.
 *
 * Nobody looks at a batch that may have gone home, since with it its service may go: who takes a batch claims its first run before
 * showing it, and finishes it only when it is hidden again and no joiner is in the middle of looking at it; a joiner that has left off
 * looking has a claimed run, or nothing.
 *
 * Who wakes whom (the scheme of D. Vyukov's Go scheduler): at most one worker at a time is being woken to **search**. Whoever brings
 * work, and whoever is about to run something and leaves work behind, wakes one sleeper unless one is searching
 * already; a searcher that finds work stops searching, and by the same rule wakes the next if there is more.
 *
 * Each worker sleeps on an event count of its own (Concurrency Kit), so that one wake-up wakes one worker.
 *
 * Pairing table
 *   E1  sources: CK's enqueue -> CK's dequeue (its own fences): a batch's address. A batch's contents: run.h, R1.
 *   E2  "work is there" -> load of searching, sleepers (seq_cst) against searching-1, idle bit (seq_cst) -> look for work: of a
 *       bringer that wakes nobody, and a worker about to sleep, one sees the other. Without it a batch waits until the next
 *       one comes. What stands between the two, on either side: for a source a full fence (CK); for an open batch its seq_cst store
 *       and load; for a task nothing, its cell's seq_cst store and load do (of several tasks being
 *       pushed, a worker sees none beyond the first unfinished one, whose pusher then sees the worker); for work its seq_cst push
 *       (work_queue.h, Q2).
 *   E3  event count: read before the idle bit is set; bit cleared, then incremented (waker): a wake-up between the two
 *       makes the wait return at once. A worker that finds work after its bit was taken waits for the increment that must follow:
 *       else it would be woken by it later, with nobody counting it as searching.
 *   E4  open_sequence: store-release before open; a joiner that mixes two batches' words claims nothing (run.h: the cursor
 *       holds the sequence).
 *   S1  joiners: add seq_cst, then load of open (a joiner), against open := NULL seq_cst, then load of joiners (who shows the batch): either
 *       the joiner sees that nothing is shown any more, or it is waited for.
 *   S2  joiners: sub seq_cst -> load seq_cst (hide): all looks at the batch came before.
 *   E5  room: head moved (seq_cst), then load of waiting_for_room (seq_cst), against its increment, then load of head (both seq_cst):
 *       of a submitter that found the ring full, and a worker that has made room, one sees the other.
 *   E6  work for one worker: push (seq_cst), then load of its idle bit (seq_cst), against the bit set (seq_cst), then its look at
 *       its own queue: one of the two sees the other. Whoever calls it raises `searching` first, as for any other call.
 *
 * Not good at: very many workers on one service; they look at each other's open batches in turn. Fine for tens.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "executor/pool/parts.h"
#include "mpsc/base/futex.h"
#include "wheel/timer/context.h"
#include "wheel/run/watchdog.h"
#include "wheel/run/work.h"
#include "wheel/run/user_code.h"

_Thread_local struct tw__worker *tw__this_worker;

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

void tw__worker_init(struct tw__worker *worker, tw_pool *pool, unsigned index, const struct tw_executor_ops *pinned)
{
	*worker = (struct tw__worker){.pool = pool, .index = index, .pinned = {pinned}};
	ck_ec32_init(&worker->wakes, 0);
}

/* --------------------------------------------------------------------- waking */

static bool take_idle(tw_pool *pool, unsigned index)
{
	uint64_t bit = UINT64_C(1) << index % 64;
	if (!(tw_and_seq_cst(&pool->idle[index / 64], ~bit) & bit))
		return false;
	tw_sub_seq_cst(&pool->sleepers, 1);
	return true;
}

/* Calls a sleeper, in whose name `searching` was raised already. */
static bool call_one(tw_pool *pool)
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

static bool any_idle(tw_pool *pool)
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
static void wake_one(tw_pool *pool)
{
	do {
		uint32_t none = 0;
		if (!tw_cas_seq_cst(&pool->searching, &none, 1) || call_one(pool))
			return;
		tw_sub_seq_cst(&pool->searching, 1);
	} while (any_idle(pool));
}

void tw__pool_call_for_help(tw_pool *pool)
{
	if (tw_load_seq_cst(&pool->searching) == 0 && tw_load_seq_cst(&pool->sleepers) != 0) /* E2 */
		wake_one(pool);
}

/*
 * Work that one worker alone may run. If it sleeps it is called as any searcher is, so `searching` is raised in its name first; and if it
 * has woken by itself meanwhile, whoever trusted in the raised `searching` is looked after, as in wake_one.
 */
void tw__pool_call(tw_pool *pool, unsigned worker)
{
	if (!(tw_load_seq_cst(&pool->idle[worker / 64]) & UINT64_C(1) << worker % 64)) /* E6 */
		return;
	tw_add_seq_cst(&pool->searching, 1);
	if (take_idle(pool, worker)) {
		ck_ec32_inc(&pool->workers[worker].wakes, &ec_mode); /* E3 */
		return;
	}
	tw_sub_seq_cst(&pool->searching, 1);
	tw__pool_call_for_help(pool);
}

/* They are in nobody's count: `searching` means nothing from here on, and need not, since no worker sleeps again. */
void tw__pool_wake_all(tw_pool *pool, unsigned started)
{
	for (unsigned i = 0; i < started; i++)
		ck_ec32_inc(&pool->workers[i].wakes, &ec_mode);
}

/* -------------------------------------------------------------------- finding */

struct find {
	struct tw__work *work; /* NULL: one of the others */
	tw_batch *batch;       /* NULL: a plain task */
	uint64_t sequence;
	int claimed; /* the run claimed already, by joining; -1: the batch was taken, it is ours to show */
	struct tw__pool_task task;
};

static bool taken(struct find *find, tw_batch *batch)
{
	*find = (struct find){.batch = batch, .sequence = tw__batch_sequence(batch), .claimed = -1};
	return true;
}

static bool take_batch(struct tw__worker *self, struct find *find)
{
	tw_batch *batch = tw__sources_take(self->pool);
	return batch && taken(find, batch);
}

static void tell_of_room(tw_pool *pool)
{
	if (tw_likely(tw_load_seq_cst(&pool->waiting_for_room) == 0)) /* E5 */
		return;
	tw_add_seq_cst(&pool->room, 1);
	tw__futex_wake(&pool->room, INT_MAX);
}

static bool take_task(struct tw__worker *self, struct find *find)
{
	tw_pool *pool = self->pool;
	if (!tw__task_ring_pop(&pool->tasks, &find->task)) /* E1 */
		return false;
	tell_of_room(pool);
	if (!find->task.fn)
		return taken(find, find->task.arg);
	find->work = NULL;
	find->batch = NULL;
	return true;
}

/* What may run here only, and what may run anywhere, in turn. */
static bool take_work(struct tw__worker *self, struct find *find)
{
	struct tw__work_queue *own = &self->own, *works = &self->pool->works;
	bool own_first = self->turn & 1;
	find->work = tw__work_queue_pop(own_first ? own : works); /* E2, E6 */
	if (!find->work)
		find->work = tw__work_queue_pop(own_first ? works : own);
	return find->work != NULL;
}

/* Room for what must not fail; none can be had for the moment: the driver frees some as it drains. */
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
	if (worker->pool->owned) /* what it pushes outside of runs is nothing: batches_out says all (close.c) */
		tw_store_relaxed(&local->of_service, 1);
	return local;
}

/* Claims a run of the batch that another worker shows; counted in its joiners, which keeps the batch from going home. */
static bool claim_shown(struct tw__worker *other, struct find *find)
{
	find->work = NULL;
	find->batch = tw_load_seq_cst(&other->open); /* S1, E2, E4 */
	find->sequence = tw_load_seq_cst(&other->open_sequence);
	if (!find->batch || !tw__batch_left(find->batch, find->sequence))
		return false;
	tw_service *service = tw__batch_service(find->batch);
	await_room(service, attach(other, service));
	find->claimed = tw__batch_claim(find->batch, find->sequence);
	return find->claimed >= 0;
}

static bool join(struct tw__worker *self, struct find *find)
{
	tw_pool *pool = self->pool;
	bool joined = false;
	for (unsigned i = 1; i < pool->worker_count && !joined; i++) {
		struct tw__worker *other = &pool->workers[(self->index + i) % pool->worker_count];
		if (!tw_load_seq_cst(&other->open)) /* E2 */
			continue;
		tw_add_seq_cst(&other->joiners, 1); /* S1 */
		joined = claim_shown(other, find);
		tw_sub_seq_cst(&other->joiners, 1); /* S2 */
	}
	return joined;
}

/* Timers, plain tasks and work take turns at being looked at first. */
static bool find_work(struct tw__worker *self, struct find *find)
{
	switch (self->turn++ % 3) {
	case 0:
		if (take_batch(self, find) || take_task(self, find) || take_work(self, find))
			return true;
		break;
	case 1:
		if (take_task(self, find) || take_work(self, find) || take_batch(self, find))
			return true;
		break;
	default:
		if (take_work(self, find) || take_batch(self, find) || take_task(self, find))
			return true;
	}
	return join(self, find);
}

/* For others: what waits for this worker alone is no reason to wake one. */
static bool more_waits(tw_pool *pool)
{
	return tw__task_ring_waits(&pool->tasks) || !tw__sources_empty(pool) || !tw__work_queue_empty(&pool->works);
}

/* -------------------------------------------------------------------- working */

/* There is nobody to call for help, or to share a batch with. */
static bool is_the_only_one(const struct tw__worker *self)
{
	return self->pool->worker_count == 1;
}

static uint64_t clock_now(void)
{
	return tw_clock_now(tw_clock_monotonic());
}

static void run_in_context(const struct tw__worker *self, const struct tw__pool_task *task)
{
	struct tw__context_saved saved;
	tw__context_enter(task->context, &saved);
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): one without fn is a batch, and never comes here */
	task->fn(task->arg);
	tw__context_leave(&saved);
	if (!tw__pool_forked(self->pool))
		tw__context_release(task->context);
}

/* For services that look at what runs (wheel/run/user_code.h). */
static struct tw__run_level *show_task(tw_pool *pool, tw_fn *fn, uint64_t begun_ns)
{
	struct tw__run_level *level = tw__user_enter();
	bool watched = tw_load_relaxed(&pool->watchers);
	if (tw_unlikely(!level))
		return NULL;
	tw__user_name(level, pool, fn, watched && !begun_ns ? clock_now() : begun_ns);
	uint64_t word = tw__user_word(level, TW_RUN_KIND_POOL_TASK);
	if (tw_likely(!watched)) {
		tw_store_release(&level->word, word); /* user_code.h, U1 */
		return level;
	}
	tw_store_seq_cst(&level->word, word); /* user_code.h, U1, U3 */
	tw__sources_wake_watchers(pool);
	return level;
}

static void run_task(struct tw__worker *self, const struct tw__pool_task *task)
{
	if (!is_the_only_one(self) && more_waits(self->pool))
		tw__pool_call_for_help(self->pool);
	uint64_t begun_ns = tw_unlikely(task->queued_ns) ? clock_now() : 0;
	tw_store_relaxed(&self->busy, 1); /* a gauge */
	struct tw__run_level *level = show_task(self->pool, task->fn, begun_ns);
	run_in_context(self, task);
	tw__user_end(level);
	tw_store_relaxed(&self->busy, 0);
	if (tw_unlikely(task->queued_ns)) {
		tw__histogram_add(&self->wait, begun_ns - task->queued_ns, 1);
		tw__histogram_add(&self->run, clock_now() - begun_ns, 1);
	}
	tw_bump(&self->completed, 1);
}

static void run_work(struct tw__worker *self, struct tw__work *work)
{
	if (!is_the_only_one(self) && more_waits(self->pool))
		tw__pool_call_for_help(self->pool);
	tw_store_relaxed(&self->busy, 1); /* a gauge */
	tw__work_run(work);
	tw_store_relaxed(&self->busy, 0);
}

static int claim_next(const struct tw__worker *self, tw_service *service, struct tw__local *local,
		      const struct find *find)
{
	await_room(service, local);
	return is_the_only_one(self) ? tw__batch_claim_alone(find->batch)
				     : tw__batch_claim(find->batch, find->sequence);
}

/* Runs the claimed one and what else it can claim. False: this is a forked child, made by a callback that has returned here. */
static bool run_claimed(struct tw__worker *self, const struct find *find, struct tw__local *local, int index,
			unsigned *count)
{
	tw_service *service = tw__batch_service(find->batch);
	struct tw__run_clock clock = {0};
	for (; index >= 0; index = claim_next(self, service, local, find), ++*count) {
		if (!is_the_only_one(self) && (tw__batch_left(find->batch, find->sequence) || more_waits(self->pool)))
			tw__pool_call_for_help(self->pool);
		tw__batch_run(find->batch, local, (unsigned)index, &clock);
		if (tw__forked(service))
			return false;
	}
	tw__running_none(local);
	return true;
}

static void show(struct tw__worker *self, const struct find *find)
{
	tw_store_release(&self->open_sequence, find->sequence); /* E4 */
	tw_store_seq_cst(&self->open, find->batch);             /* E2, S1 */
}

/* Joiners are about to have a run of the batch, or to find that none is left: no user's code, so a moment. */
static void hide(struct tw__worker *self)
{
	tw_store_seq_cst(&self->open, NULL);    /* S1 */
	while (tw_load_seq_cst(&self->joiners)) /* S1, S2 */
		sched_yield();
}

static bool run_batch(struct tw__worker *self, const struct find *find)
{
	bool taken_here = find->claimed < 0;
	tw_service *service = tw__batch_service(find->batch);
	struct tw__local *local = attach(self, service);
	int index =
	    taken_here ? claim_next(self, service, local, find) : find->claimed; /* before others know of the batch */
	unsigned count = 0;
	bool shown = taken_here && !is_the_only_one(self);
	if (shown)
		show(self, find);
	tw_store_relaxed(&self->busy, 1); /* a gauge */
	if (!run_claimed(self, find, local, index, &count))
		return false;
	tw_store_relaxed(&self->busy, 0);
	if (shown)
		hide(self);
	tw__batch_finish(find->batch, count);
	return true;
}

/* False: in a forked child, where nothing is left to work on. */
static bool work_on(struct tw__worker *self, const struct find *find)
{
	if (find->work)
		run_work(self, find->work);
	else if (find->batch)
		return run_batch(self, find);
	else
		run_task(self, &find->task);
	return !tw__pool_forked(self->pool);
}

/* ------------------------------------------------------------------- sleeping */

/*
 * Until the worker has been called since `before`. Again and again: Concurrency Kit's wait also returns when a caller of an earlier
 * round, who was slow, takes down the flag that this wait has just put up.
 */
static void await_call(struct tw__worker *self, uint32_t before)
{
	while (ck_ec32_value(&self->wakes) == before)
		ck_ec32_wait(&self->wakes, &ec_mode, before, NULL);
}

/* Called while counted as searching; returns counted as searching, or when the pool stops. */
static bool sleep_until_called(struct tw__worker *self, struct find *find)
{
	tw_pool *pool = self->pool;
	uint32_t before = ck_ec32_value(&self->wakes); /* E3 */
	tw_sub_seq_cst(&pool->searching, 1);
	sched_yield(); /* who brings work may want this processor, and then need wake nobody; others are woken as usual meanwhile */
	tw_add_seq_cst(&pool->sleepers, 1);
	tw_or_seq_cst(&pool->idle[self->index / 64], UINT64_C(1) << self->index % 64);
	ck_pr_fence_memory(); /* E2: sources */
	bool found = find_work(self, find);
	if (found || tw_load_seq_cst(&pool->stopping)) {
		if (take_idle(pool, self->index))
			tw_add_seq_cst(&pool->searching, 1);
		else if (found)
			await_call(self, before); /* E3: called already; the call must not wake us later */
		return found;
	}
	await_call(self, before);
	return false;
}

void *tw__worker_main(void *arg)
{
	struct tw__worker *self = tw__this_worker = arg;
	tw_pool *pool = self->pool;
	struct find find;
	tw_add_seq_cst(&pool->searching, 1);
	for (;;) {
		bool stopping = tw_load_seq_cst(&pool->stopping); /* first: what was there before the stop is found */
		if (!find_work(self, &find)) {
			if (stopping)
				return NULL;
			if (!sleep_until_called(self, &find))
				continue;
		}
		tw_sub_seq_cst(&pool->searching, 1);
		do {
			if (!work_on(self, &find))
				return NULL;
		} while (find_work(self, &find));
		tw_add_seq_cst(&pool->searching, 1);
	}
}
