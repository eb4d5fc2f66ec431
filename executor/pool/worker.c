/*
 * The workers: threads that take batches from services' rings, plain tasks from the pool's ring,
 * and work of the layers above from its queues (work_queue.h). They claim runs one at a time. Who
 * wakes whom, and how a worker sleeps, is in wake.c.
 *
 * A worker that has taken a batch shows it as **open**. Workers that find nothing else join it, so
 * a slow callback holds up only itself (G8). The claim is the batch's cursor (run.h). A batch is
 * returned when all who joined have left.
 *
 * No thread reads a batch that may have been returned, since its service may end with it:
 * 1. The worker that takes a batch claims its first run before it shows the batch.
 * 2. It finishes the batch only when the batch is hidden again, and no joiner is reading it.
 * 3. A joiner that no longer reads has a claimed run, or nothing.
 *
 * `runs` of a worker is odd while it is inside a run, and changes with each run. By it the starter
 * tells which workers are blocked (grow.c).
 *
 * Pairing table
 *   POOL1  sources: tail: store (push) -> load (pop): a batch's address (batch_ring.h). Release and
 *       acquire would do; they are seq_cst for POOL2. A batch's contents: batch.h, RUN1.
 *   POOL4  open_sequence: store-release before open; a joiner that mixes two batches' words claims
 *       nothing (run.h: the cursor holds the sequence).
 *   SHOW1  joiners: add seq_cst, then load of open (a joiner, the starter), against open := NULL
 *       seq_cst, then load of joiners (the worker that shows the batch): either the joiner sees
 *       that nothing is shown any more, or the worker waits for it.
 *   SHOW2  joiners: sub seq_cst -> load seq_cst (hide): all reads of the batch came before.
 *   POOL5  room: head moved (seq_cst), then load of waiting_for_room (seq_cst), against its
 *       increment, then load of head (both seq_cst): of a submitter that found the ring full, and a
 *       worker that has made room, one sees the other.
 *
 * Weak at: very many workers on one service, since each looks at the others' open batches. Fine for
 * tens.
 */
#include "executor/pool/worker.h"
#include "wheel/core/context.h"
#include "executor/pool/grow.h"
#include "executor/pool/source.h"
#include "executor/pool/wake.h"
#include "executor/pool/jobs.h"

_Thread_local struct tw__worker *tw__this_worker;

/* -------------------------------------------------------------------- finding */

static bool taken(struct tw__find *find, tw_batch *batch)
{
	*find =
	    (struct tw__find){.batch = batch, .sequence = tw__batch_sequence(batch), .claimed = -1};
	return true;
}

static bool take_batch(struct tw__worker *self, struct tw__find *find)
{
	tw_batch *batch = tw__sources_take(self->pool);
	return batch && taken(find, batch);
}

static void tell_of_room(tw_pool *pool)
{
	if (tw_likely(tw_load_seq_cst(&pool->waiting_for_room) == 0)) /* POOL5 */
		return;
	tw_add_seq_cst(&pool->room, 1);
	tw__futex_wake(&pool->room, INT_MAX);
}

static bool take_task(struct tw__worker *self, struct tw__find *find)
{
	tw_pool *pool = self->pool;
	if (!tw__task_ring_pop(&pool->tasks, &find->task)) /* POOL1 */
		return false;
	tell_of_room(pool);
	if (!find->task.fn)
		return taken(find, find->task.arg);
	find->work = NULL;
	find->batch = NULL;
	return true;
}

/* Work and jobs: each comes first in one turn of two. */
static bool take_work(struct tw__worker *self, struct tw__find *find)
{
	unsigned first = self->turn / 3; /* tw__worker_find uses the remainder */
	find->work = NULL;
	for (unsigned i = 0; i < 2 && !find->work; i++) {
		find->job = (first + i) % 2;
		find->work = find->job ? tw__jobs_take(self->pool)               /* POOL2 */
				       : tw__work_queue_pop(&self->pool->works); /* POOL2 */
	}
	return find->work != NULL;
}

/*
 * Room for what must not fail. If there is none for the moment, the driver frees some as it drains.
 */
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

/*
 * Claims a run of the batch that another worker shows. It is counted in that worker's joiners, so
 * the batch is not returned.
 */
static bool claim_shown(struct tw__worker *other, struct tw__find *find)
{
	find->work = NULL;
	find->batch = tw_load_seq_cst(&other->open); /* SHOW1, POOL2, POOL4 */
	find->sequence = tw_load_seq_cst(&other->open_sequence);
	if (!find->batch || !tw__batch_left(find->batch, find->sequence))
		return false;
	tw_service *service = tw__batch_service(find->batch);
	await_room(service, attach(other, service));
	find->claimed = tw__batch_claim(find->batch, find->sequence);
	return find->claimed >= 0;
}

static bool join(struct tw__worker *self, struct tw__find *find)
{
	tw_pool *pool = self->pool;
	bool joined = false;
	unsigned slots = tw_load_seq_cst(&pool->slots);
	for (unsigned i = 1; i < slots && !joined; i++) {
		struct tw__worker *other = &pool->workers[(self->index + i) % slots];
		if (!tw_load_seq_cst(&other->open)) /* POOL2 */
			continue;
		tw_add_seq_cst(&other->joiners, 1); /* SHOW1 */
		joined = claim_shown(other, find);
		tw_sub_seq_cst(&other->joiners, 1); /* SHOW2 */
	}
	return joined;
}

/*
 * Timers, plain tasks and work take turns. A kind that has run goes behind the others, so each
 * waits for at most one run of each other kind.
 */
bool tw__worker_find(struct tw__worker *self, struct tw__find *find)
{
	for (unsigned i = 0; i < 3; i++) {
		switch (self->turn++ % 3) {
		case 0:
			if (take_batch(self, find))
				return true;
			break;
		case 1:
			if (take_task(self, find))
				return true;
			break;
		default:
			if (take_work(self, find))
				return true;
		}
	}
	return join(self, find);
}

bool tw__pool_more_waits(tw_pool *pool)
{
	return tw__task_ring_waits(&pool->tasks) || !tw__sources_empty(pool) ||
	       !tw__work_queue_empty(&pool->works) || tw__jobs_wait(pool);
}

/* -------------------------------------------------------------------- working */

/* It has no other worker to call for help, or to share a batch with. */
static bool is_the_only_one(const struct tw__worker *self)
{
	return self->pool->max_workers == 1;
}

/*
 * Tells whether to look for what is left behind, and to call a worker for it. A worker without
 * others has none to call: once the starter is armed there is nothing to do.
 */
static bool may_need_help(struct tw__worker *self)
{
	tw_pool *pool = self->pool;
	return pool->max_workers > 1 &&
	       (tw_load_relaxed(&pool->slots) > 1 || !tw__starter_is_armed(pool));
}

struct tw__worker *tw__worker_that_knows(tw_executor *executor)
{
	struct tw__worker *self = tw__this_worker;
	if (!self || tw__pool_of(executor) != self->pool ||
	    self->pool->max_workers == self->pool->permanent)
		return NULL;
	return self;
}

/* A run begins or ends. Only the worker writes `runs`, so plain stores will do. */
static void count_changes(struct tw__worker *self, uint64_t changes)
{
	tw_store_relaxed(&self->runs, tw_load_relaxed(&self->runs) + changes);
}

static void run_in_context(const struct tw__pool_task *task)
{
	void *former = tw__context_enter(task->context);
	/*
	 * NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): one without fn is a batch, and never
	 * comes here
	 */
	task->fn(task->arg);
	tw__context_leave(former);
}

static void pool_run_task(struct tw__worker *self, const struct tw__pool_task *task)
{
	if (may_need_help(self) && tw__pool_more_waits(self->pool))
		tw__pool_call_for_help(self->pool);
	uint64_t begun_ns = tw_unlikely(task->queued_ns) ? tw_clock_now(tw_clock_monotonic()) : 0;
	count_changes(self, 1);
	struct tw__run_record *shown =
	    tw__user_begin(self->pool, task->fn, task->arg, NULL, begun_ns);
	run_in_context(task);
	tw__user_end(shown);
	count_changes(self, 1);
	if (tw_unlikely(task->queued_ns)) {
		tw__histogram_add(&self->wait, begun_ns - task->queued_ns, 1);
		tw__histogram_add(&self->run, tw_clock_now(tw_clock_monotonic()) - begun_ns, 1);
	}
	tw_bump(&self->completed, 1);
}

static void run_work(struct tw__worker *self, const struct tw__find *find)
{
	if (may_need_help(self) && tw__pool_more_waits(self->pool))
		tw__pool_call_for_help(self->pool);
	self->work = find->work;
	count_changes(self, 1);
	tw__work_run(find->work);
	count_changes(self, 1);
	self->work = NULL;
	if (find->job)
		tw__jobs_leave(self->pool);
}

static int claim_next(const struct tw__worker *self, tw_service *service, struct tw__local *local,
		      const struct tw__find *find)
{
	await_room(service, local);
	return is_the_only_one(self) ? tw__batch_claim_alone(find->batch)
				     : tw__batch_claim(find->batch, find->sequence);
}

/* Runs the claimed run, and what else it can claim. */
static void run_claimed(struct tw__worker *self, const struct tw__find *find,
			struct tw__local *local, int index, unsigned *count)
{
	tw_service *service = tw__batch_service(find->batch);
	struct tw__run_clock clock = {0};
	for (; index >= 0;
	     index = claim_next(self, service, local, find), ++*count, count_changes(self, 2)) {
		if (may_need_help(self) && (tw__batch_left(find->batch, find->sequence) ||
					    tw__pool_more_waits(self->pool)))
			tw__pool_call_for_help(self->pool);
		tw__batch_run(find->batch, local, (unsigned)index, &clock);
	}
}

static void show(struct tw__worker *self, const struct tw__find *find)
{
	tw_store_release(&self->open_sequence, find->sequence); /* POOL4 */
	tw_store_seq_cst(&self->open, find->batch);             /* POOL2, SHOW1 */
}

/*
 * Joiners are about to have a run of the batch, or to find that none is left. No user code runs
 * there, so it takes a moment.
 */
static void hide(struct tw__worker *self)
{
	tw_store_seq_cst(&self->open, NULL);    /* SHOW1 */
	while (tw_load_seq_cst(&self->joiners)) /* SHOW1, SHOW2 */
		sched_yield();
}

static void run_batch(struct tw__worker *self, const struct tw__find *find)
{
	bool taken_here = find->claimed < 0;
	tw_service *service = tw__batch_service(find->batch);
	struct tw__local *local = attach(self, service);
	int index =
	    /* before others see the batch */
	    taken_here ? claim_next(self, service, local, find) : find->claimed;
	unsigned count = 0;
	/* nobody joins the only worker; tw_service_liveness looks whether runs wait for it */
	bool shown =
	    taken_here && (!is_the_only_one(self) || tw__batch_left(find->batch, find->sequence));
	if (shown)
		show(self, find);
	count_changes(self, 1);
	run_claimed(self, find, local, index, &count);
	count_changes(self, 1);
	if (shown)
		hide(self);
	tw__batch_finish(find->batch, count);
}

static void work_on(struct tw__worker *self, const struct tw__find *find)
{
	if (find->work)
		run_work(self, find);
	else if (find->batch)
		run_batch(self, find);
	else
		pool_run_task(self, &find->task);
}

/*
 * Others have relied on this searcher, also one that shows a batch and called nobody (POOL2). This
 * worker has found something else, and may block in it. So it looks at all that waits, shown
 * batches included, and calls for help.
 */
static void stop_searching(struct tw__worker *self)
{
	tw_sub_seq_cst(&self->pool->asleep.searching, 1); /* POOL2 */
	if (may_need_help(self) && tw__pool_runs_wait(self->pool))
		tw__pool_call_for_help(self->pool);
}

void *tw__worker_main(void *arg)
{
	struct tw__worker *self = tw__this_worker = arg;
	tw_pool *pool = self->pool;
	struct tw__find find;
	tw_add_seq_cst(&pool->asleep.searching, 1);
	for (;;) {
		/* first: what was there before the stop is found */
		bool stopping = tw_load_seq_cst(&pool->stopping);
		if (!tw__worker_find(self, &find)) {
			if (stopping)
				break;
			if (!tw__worker_sleep(self, &find)) {
				if (!self->retired)
					continue;
				tw_store_release(&self->state, TW__WORKER_RETIRED); /* GROW1 */
				return NULL;
			}
		}
		stop_searching(self);
		do {
			work_on(self, &find);
		} while (tw__worker_find(self, &find));
		tw_add_seq_cst(&pool->asleep.searching, 1);
	}
	tw_sub_seq_cst(&pool->asleep.searching, 1);
	return NULL;
}
