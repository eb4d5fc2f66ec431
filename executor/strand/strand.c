/* The strand's public functions: creation and end. The protocol is in internal.h. */

#include "wheel/core/frame.h"
#include "executor/strand/cancel.h"
#include "executor/strand/run.h"
#include "executor/pool/source.h"

/* ---------------------------------------------------------------------- birth */

/* The service is about to be freed, or has just been. */
static void strands_free(struct tw__kept *kept)
{
	struct tw__strands *strands = (struct tw__strands *)kept;
	for (tw_strand *strand = tw_load_acquire(&strands->retired), *next; strand; strand = next) {
		next = (tw_strand *)strand->first;
		free(strand);
	}
	tw__nodes_fini(&strands->tasks);
	free(strands);
}

/* The service's table of tasks, created with its first strand. */
static int need_strands(tw_service *service)
{
	struct tw__kept *none = NULL;
	if (tw__strands_of(service))
		return 0;
	struct tw__strands *made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	made->kept.free = strands_free;
	tw__nodes_init(&made->tasks, sizeof(struct tw__task_node));
	if (!tw_cas_acq_rel(&service->layers.strands, &none, &made->kept))
		strands_free(&made->kept);
	return 0;
}

static int submit_batch(tw_executor *self, tw_batch *batch, size_t n);

static const struct tw_executor_ops strand_ops = {sizeof strand_ops, submit_batch};

static int strand_make(tw_strand **out, const struct tw__base *base)
{
	int r = need_strands(base->service);
	tw_strand *strand = r ? NULL : calloc(1, sizeof *strand);
	if (!strand)
		return r ? r : -ENOMEM;
	strand->executor.ops = &strand_ops;
	tw__work_init(&strand->work, base->service, base->executor, tw__strand_run_work);
	*out = strand;
	return 0;
}

int tw_strand_create(tw_strand **out, tw_service *service, tw_executor *executor)
{
	struct tw__base base;
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (!tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, "executor");
	int r = tw__base_hold(&base, service, executor);
	if (r)
		return r;
	r = strand_make(out, &base);
	if (r)
		tw__base_let_go(&base);
	return r;
}

/* --------------------------------------------------------- as an executor */

/*
 * The strand is closed, and perhaps destroyed. The timers end as cancelled. The executor of their
 * own service, whose driver is the caller, calls their releases.
 */
static int pass_on(tw_strand *strand, tw_batch *batch, size_t n)
{
	tw_executor *executor = tw__batch_service(batch)->executor;
	if (executor == &tw__inline_executor || executor == &strand->executor) {
		while (n-- > 0)
			tw__batch_end_one(batch);
		return 0;
	}
	tw__batch_end_all(batch);
	return executor->ops->submit(executor, batch, n);
}

static int submit_batch(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_strand *strand = (tw_strand *)self;
	bool work = tw__batch_is_work(batch);
	tw__link *link = (tw__link *)batch;
	uint64_t word = tw_load_relaxed(&strand->word), inbox;
	do {
		if (!work && word & TW__STRAND_CLOSED)
			return pass_on(strand, batch, n);
		if (tw_unlikely((word & TW__STRAND_BITS) == TW__STRAND_GONE)) {
			/* of a layer that was destroyed before: the driver returns it */
			tw__work_leave_executor((struct tw__work *)(void *)batch);
			tw__work_submit_later((struct tw__work *)(void *)batch);
			return 0;
		}
		*link = (tw__link)(word & ~(uint64_t)TW__STRAND_BITS);
		inbox = (uintptr_t)batch | (word & TW__STRAND_BITS) | TW__STRAND_ACTIVE;
	} while (!tw_cas_acq_rel(&strand->word, &word, inbox)); /* STRAND1 */
	if (!(word & TW__STRAND_ACTIVE))
		tw__work_submit(&strand->work);
	return 0;
}

tw_executor *tw_strand_executor(tw_strand *strand)
{
	if (tw__strand_check(strand))
		return NULL;
	tw__tiny_lock(&strand->lock);
	strand->flags |= TW__STRAND_EXPOSED;
	tw__tiny_unlock(&strand->lock);
	return &strand->executor;
}

/* ------------------------------------------------------------------------ end */

static void free_parts(tw_strand *strand)
{
	if (strand->delays)
		tw__heap_free(&strand->delays->heap);
	free(strand->delays);
	strand->delays = NULL;
}

/* The driver may still offer to it: it stays until the service ends. */
static void strand_retire(tw_strand *strand, struct tw__strands *strands)
{
	tw_strand *first = tw_load_relaxed(&strands->retired);
	do {
		strand->first = (tw__link)first;
	} while (!tw_cas_acq_rel(&strands->retired, &first, strand));
}

static struct tw__base base_of(tw_strand *strand)
{
	return (struct tw__base){.service = tw__strand_service(strand),
				 .executor = tw_load_relaxed(&strand->work.executor),
				 .left = strand->flags & TW__STRAND_DESTROYED};
}

void tw__strand_free(tw_strand *strand)
{
	struct tw__base base = base_of(strand);
	free_parts(strand);
	if (strand->flags & TW__STRAND_EXPOSED)
		strand_retire(strand, tw__strands_of(base.service));
	else
		free(strand);
	/* last: the service may be closed from here on. */
	tw__base_let_go(&base);
}

/* Only the driver reads it, now and later, unless something is still to come. The lock is held. */
static bool strand_is_quiet(tw_strand *strand)
{
	bool timer = strand->delays && strand->delays->timer.id;
	return !(tw_load_relaxed(&strand->word) & TW__STRAND_ACTIVE) && !timer;
}

/*
 * Tells whether other threads will run what is out: not the calling thread, nor one that waits for
 * it.
 */
static bool may_wait(tw_strand *strand)
{
	struct tw__base base = base_of(strand);
	if (strand->flags & TW__STRAND_REARM && !base.service->threaded)
		return false; /* its work may wait for a tick, which may be the caller's to drive */
	return tw__pool_of(base.executor) && !tw__strand_runs && tw__base_may_wait(&base);
}

static int strand_destroy_forked(tw_strand *strand)
{
	struct tw__base base = base_of(strand);
	free_parts(strand);
	if (!(strand->flags & TW__STRAND_EXPOSED))
		free(strand);
	tw__base_let_go_forked(&base);
	return 0;
}

/*
 * Its work is out, or its timer is about to bring some: the last run frees it. No task is left, so
 * the driver may carry out that run where the executor is not a pool, which never refuses work. The
 * lock is held.
 */
static void strand_leave(tw_strand *strand)
{
	struct tw__base base = base_of(strand);
	strand->flags |= TW__STRAND_DESTROYED;
	tw__base_leave_work(&base, &strand->work);
	tw__base_leave(&base);
}

int tw_strand_destroy(tw_strand *strand)
{
	if (!strand)
		return 0;
	if (tw__forked(tw__strand_service(strand)))
		return strand_destroy_forked(strand);
	tw__tiny_lock(&strand->lock);
	tw__strand_begin_close(strand); /* not DESTROYED: it stays */
	while (!strand_is_quiet(strand) && may_wait(strand))
		tw__strand_await_bell(strand, UINT64_MAX);
	uint64_t closed = TW__STRAND_CLOSED;
	bool gone =
	    strand_is_quiet(strand) && tw_cas_acq_rel(&strand->word, &closed, TW__STRAND_GONE);
	bool frees = gone && tw__strand_frees(strand);
	if (!gone)
		strand_leave(strand);
	tw__tiny_unlock(&strand->lock);
	if (frees)
		tw__strand_free(strand);
	return 0;
}

/* ---------------------------------------------------------------------- stats */

int tw_strand_stats(tw_strand *strand, struct tw_strand_stats *out)
{
	int r = TW__OUT_CHECK(tw_strand_stats, out, delayed);
	if (!r)
		r = tw__strand_check(strand);
	if (r)
		return r;
	tw__tiny_lock(&strand->lock);
	struct tw_strand_stats stats = {.queued = strand->queued,
					.delayed = strand->delays ? strand->delays->heap.count : 0,
					.running = (strand->flags & TW__STRAND_RUNNING) != 0,
					.runs = strand->runs,
					.cancelled = strand->cancelled,
					.closed = tw__strand_closed(strand)};
	tw__tiny_unlock(&strand->lock);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
