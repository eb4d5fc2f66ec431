/* The workers: how they run what they take from the pool's queue (queue.c). */
#include "executor/pool/parts.h"
#include "wheel/core/frame.h"

/* A run begins or ends. Only the worker writes `runs`, so plain stores will do. */
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

/* Runs the claimed run, and what else of the batch it can claim. */
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
		} else if (taken.work) {
			bool is_job = taken.work->is_job; /* first: the work may be gone */
			tw__work_run(taken.work);
			if (is_job)
				tw__pool_job_ends(self->pool);
		} else {
			run_task(self, &taken.task);
		}
		count_changes(self, 1);
	}
	return NULL;
}

/* -------------------------------------------------------------------- threads */

void tw__worker_init(tw_pool *pool, unsigned index)
{
	struct tw__worker *worker = &pool->workers[index];
	*worker = (struct tw__worker){.pool = pool, .index = index};
}

static void count_alive(struct tw__worker *worker, int change, enum tw__worker_state state)
{
	tw__tiny_lock(&worker->pool->lock);
	worker->pool->alive += (unsigned)change;
	tw_store_relaxed(&worker->state, state);
	tw__tiny_unlock(&worker->pool->lock);
}

int tw__worker_start(struct tw__worker *worker, const struct tw_service_config *config)
{
	char suffix[16];
	snprintf(suffix, sizeof suffix, "-%u", worker->index);
	count_alive(worker, 1, TW__WORKER_ALIVE);
	int r = tw__spawn(&worker->thread, config, suffix, false, worker_main, worker);
	if (r)
		count_alive(worker, -1, TW__WORKER_NONE);
	return r;
}
