/*
 * The strand's runner: runs the queue, one thing at a time, while its work is out. The protocol is
 * in internal.h.
 */

#include "executor/pool/parts.h"
#include "executor/strand/run.h"
#include "wheel/core/frame.h"
#include "executor/pool/worker.h"
#include "executor/strand/time.h"

/* A strand goes to the end of its executor's queue after this many runs, or after this time. */
enum { BUDGET = 64, SLICE_NS = 5000000 };

_Thread_local struct tw__strand_run *tw__strand_runs;

/* A release that a cancel or a close calls from elsewhere is not on the strand. */
tw_strand *tw_strand_current(void)
{
	for (struct tw__strand_run *run = tw__strand_runs; run; run = run->outer)
		if (!run->releasing)
			return run->strand;
	return NULL;
}

/* ----------------------------------------------------------------- the queue */

/* The inbox is linked with the newest first. */
static tw__link reverse(tw__link inbox)
{
	tw__link oldest = 0;
	for (tw__link next; inbox; inbox = next) {
		tw__link link = inbox | TW__LINK_BATCH;
		next = *tw__strand_link(link);
		*tw__strand_link(link) = oldest;
		oldest = link;
	}
	return oldest;
}

/* Ends the timers among these batches. What is left is work of other layers, up to *last. */
static tw__link end_timers(tw__link link, tw__link *last)
{
	tw__link first = 0;
	*last = 0;
	for (tw__link next; link; link = next) {
		tw_batch *batch = (tw_batch *)(link - TW__LINK_BATCH);
		next = *tw__strand_link(link);
		if (!tw__batch_is_work(batch)) {
			for (uint32_t n = tw__batch_chunk(batch)->count; n > 0; n--)
				tw__batch_end_one(batch);
			continue;
		}
		*tw__strand_link(link) = 0;
		*(*last ? tw__strand_link(*last) : &first) = link;
		*last = link;
	}
	return first;
}

/*
 * Appends the inbox that this thread has taken to the queue. No other thread has the inbox. This
 * thread reverses it without the lock, because it may be long. A close waits for `releasing`
 * meanwhile. If the strand is closed, the timers in the inbox end.
 */
static void append_inbox(tw_strand *strand, tw__link inbox)
{
	tw__link last = inbox | TW__LINK_BATCH;
	strand->releasing++;
	tw__tiny_unlock(&strand->lock);
	tw__link first = reverse(inbox);
	tw__tiny_lock(&strand->lock);
	if (tw_unlikely(tw__strand_closed(strand))) {
		tw__tiny_unlock(&strand->lock);
		first = end_timers(first, &last);
		tw__tiny_lock(&strand->lock);
	}
	if (first)
		tw__strand_append_all(strand, first, last);
	strand->releasing--;
	tw__strand_ring(strand);
}

void tw__strand_gather(tw_strand *strand)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	const uint64_t stay = TW__STRAND_ACTIVE | TW__STRAND_CLOSED;
	if (tw_unlikely(strand->flags & TW__STRAND_OVERDUE))
		tw__strand_move_due(strand);
	if (tw_likely(
		/* what is missed here keeps it from becoming idle: STRAND3 */
		!(tw_load_relaxed(&strand->word) & ~stay)))
		return;
	uint64_t word = tw_and_seq_cst(&strand->word, stay); /* STRAND1 */
	tw__link inbox = (tw__link)(word & ~(uint64_t)TW__STRAND_BITS);
	if (inbox)
		append_inbox(strand, inbox);
	if (word & TW__STRAND_DUE && strand->delays) { /* else: it was gone */
		strand->delays->timer = (tw_timer){0};
		tw__strand_move_due(strand);
	}
}

static void strand_pop(tw_strand *strand)
{
	strand->first = *tw__strand_link(strand->first);
	strand->head_left = 0;
}

/* Takes the next task, or ticket, out of the queue. 0: there is none. */
static tw__link strand_take(tw_strand *strand)
{
	tw__link link = strand->first;
	if (link & TW__LINK_BATCH) {
		struct tw__chunk *chunk = (struct tw__chunk *)(link - TW__LINK_BATCH);
		uint32_t left = strand->head_left ? strand->head_left : chunk->count;
		if (left == 1)
			/* before the last ticket: after it the batch is not ours */
			strand_pop(strand);
		else
			strand->head_left = (uint8_t)(left - 1);
	} else if (link) {
		strand_pop(strand);
		strand->queued--;
	}
	return link;
}

/* -------------------------------------------------------------------- endings */

static void strand_call_release(tw_strand *strand, struct tw__task_node *task, enum tw_fate fate)
{
	struct tw__strand_run run = {
	    .strand = strand, .task = task, .releasing = true, .outer = tw__strand_runs};
	struct tw__run_record *shown = tw__user_begin(
	    tw__strand_service(strand), TW__NAMED_BY(task->release), task->arg, task->name, 0);
	tw__strand_runs = &run;
	void *former = tw__context_enter(task->context);
	task->release(task->arg, fate);
	tw__context_leave(former);
	tw__user_end(shown);
	tw__strand_runs = run.outer;
}

/* Calls its release, with the lock released. */
static void strand_release(tw_strand *strand, struct tw__task_node *task, enum tw_fate fate)
{
	task->state = TW__TASK_RELEASING;
	strand->releasing++;
	tw__tiny_unlock(&strand->lock);
	strand_call_release(strand, task, fate);
	tw__tiny_lock(&strand->lock);
	strand->releasing--;
}

void tw__strand_end(tw_strand *strand, struct tw__task_node *task, enum tw_fate fate,
		    struct tw__node_batch *batch)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	struct tw__nodes *nodes = &tw__strands_of(tw__strand_service(strand))->tasks;
	tw__strand_forget_series(strand, task);
	strand->cancelled += fate == TW_FATE_CANCELLED;
	if (task->release)
		strand_release(strand, task, fate);
	if (tw_unlikely(task->series)) {
		free(task->series);
		task->series = NULL;
	}
	tw_store_relaxed(&task->strand, NULL);
	if (batch)
		tw__node_put_later(nodes, batch, &task->node);
	else
		tw__node_put(nodes, &task->node);
	/* now: the caller may wait for something else next */
	tw__strand_ring(strand);
}

/* ----------------------------------------------------------------------- runs */

static void strand_call(struct tw__task_node *task)
{
	void *former = tw__context_enter(task->context);
	task->fn(task->arg);
	tw__context_leave(former);
}

/* tw_current tells the run what the series has missed. */
static void call_in_series(tw_service *service, struct tw__task_node *task)
{
	struct tw__run run = {.outer = tw__current_run};
	tw__strand_series_begins(service, task);
	run.overruns = task->series->overruns;
	task->series->overruns = 0;
	tw__current_run = &run;
	strand_call(task);
	tw__current_run = run.outer;
}

/* Each of these is called with the lock held, and returns with it. */

static void strand_run_task(tw_strand *strand, struct tw__strand_run *run,
			    struct tw__task_node *task)
{
	struct tw__node_batch *ended = &run->ended;
	tw_service *service = tw__strand_service(strand);
	TW_ASSERT(!tw__strand_closed(strand));
	task->state = TW__TASK_RUNNING;
	run->task = task;
	strand->flags |= TW__STRAND_RUNNING;
	tw__tiny_unlock(&strand->lock);
	struct tw__run_record *shown = tw__user_begin(service, task->fn, task->arg, task->name, 0);
	if (tw_likely(!task->series))
		strand_call(task);
	else
		call_in_series(service, task);
	tw__user_end(shown);
	tw__tiny_lock(&strand->lock);
	run->task = NULL;
	strand->flags &= (uint8_t)~TW__STRAND_RUNNING;
	strand->runs++;
	if (tw_likely(!task->series))
		tw__strand_end(strand, task, TW_FATE_FIRED, ended);
	else if (task->ended || tw__strand_closed(strand))
		tw__strand_end(strand, task, TW_FATE_CANCELLED, ended);
	else if (!tw__strand_continue(strand, task))
		tw__strand_end(strand, task, TW_FATE_FIRED, ended);
}

/* A ticket of a batch, or work of another layer, for which the strand is only an executor. */
static void run_ticket(tw_strand *strand, tw_batch *batch)
{
	bool work = tw__batch_is_work(batch);
	TW_ASSERT(work || !tw__strand_closed(strand));
	if (!work)
		strand->flags |= TW__STRAND_RUNNING;
	tw__tiny_unlock(&strand->lock);
	int r = tw__run_one(batch);
	if (r == -ENOMEM)
		tw_run_return(batch);
	tw__tiny_lock(&strand->lock);
	strand->flags &= (uint8_t)~TW__STRAND_RUNNING;
	strand->runs += r == 1 && !work;
}

/*
 * A close takes all tasks and timers out of the queue under the hold that closes, and timers of the
 * inbox end. So only work comes here afterwards.
 */
static void perform(tw_strand *strand, struct tw__strand_run *run, tw__link link)
{
	if (link & TW__LINK_BATCH)
		run_ticket(strand, (tw_batch *)(link - TW__LINK_BATCH));
	else
		strand_run_task(strand, run, (struct tw__task_node *)link);
}

/* Nothing is left to run: makes the strand idle, or gone, if nothing has come meanwhile. */
static bool go_idle(tw_strand *strand, bool last)
{
	uint64_t closed = tw_load_relaxed(&strand->word) & TW__STRAND_CLOSED;
	uint64_t active = closed | TW__STRAND_ACTIVE;
	/* STRAND3 */
	return tw_cas_acq_rel(&strand->word, &active, last ? TW__STRAND_GONE : closed);
}

/* The lock is held, and released here. more: the budget is used up. */
static void strand_run_leave(tw_strand *strand, bool more)
{
	bool again = !more && strand->flags & TW__STRAND_REARM && tw__strand_arm(strand) != 0;
	if (!more && !again) /* else it is tried when the queue is empty */
		strand->flags &= (uint8_t)~TW__STRAND_REARM;
	bool last =
	    strand->flags & TW__STRAND_DESTROYED && !(strand->delays && strand->delays->timer.id);
	bool idle = !more && !again && go_idle(strand, last);
	bool frees = idle && last && tw__strand_frees(strand);
	tw__strand_ring(strand);
	tw__tiny_unlock(&strand->lock);
	if (frees)
		tw__strand_free(strand);
	else if (again)
		tw__work_submit_later(&strand->work);
	else if (!idle)
		tw__work_submit_again(&strand->work);
}

/*
 * How long a strand has been running. On a worker of a pool that may grow, the time is read only
 * while something may wait for the worker.
 */
struct slice {
	uint64_t begun_ns;         /* 0: it has not begun */
	struct tw__worker *worker; /* NULL: the time is always read */
};

/*
 * It begins when something waits behind the first run, so a lone task pays for no clock. The lock
 * is held.
 */
static bool strand_slice_is_over(struct slice *slice, tw_strand *strand, bool first)
{
	tw_service *service = tw__strand_service(strand);
	if (!strand->first || (first && strand->first == strand->last))
		return false;
	if (!slice->begun_ns) {
		slice->worker = tw__worker_that_knows(tw_load_relaxed(&strand->work.executor));
		slice->begun_ns = tw__clock_read_fast(service);
		return false;
	}
	if (slice->worker && tw_likely(!tw__worker_is_awaited(slice->worker)))
		return false;
	return tw__clock_read_fast(service) >= slice->begun_ns + SLICE_NS;
}

void tw__strand_run_work(struct tw__work *work)
{
	tw_strand *strand = TW__OWNER(tw_strand, work, work);
	struct tw__strand_run run = {.strand = strand, .outer = tw__strand_runs};
	tw__link link = 0;
	struct slice slice = {0};
	tw__strand_runs = &run;
	tw__tiny_lock(&strand->lock);
	for (unsigned budget = BUDGET; budget; budget--) {
		tw__strand_gather(strand);
		if (strand_slice_is_over(&slice, strand, budget == BUDGET) ||
		    !(link = strand_take(strand)))
			break;
		perform(strand, &run, link);
		tw__strand_ring(strand);
	}
	tw__strand_runs = run.outer;
	tw__node_put_batch(&tw__strands_of(tw__strand_service(strand))->tasks, &run.ended);
	strand_run_leave(strand, strand->first != 0 || strand->flags & TW__STRAND_OVERDUE);
}
