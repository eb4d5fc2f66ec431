/*
 * Taking back what was submitted to a strand: one task, or all; and waiting for what runs. The
 * protocol is in internal.h.
 */
#include <sched.h>

#include "executor/strand/cancel.h"
#include "executor/strand/run.h"
#include "executor/strand/time.h"

/* --------------------------------------------------------------------- cancel */

/* Takes a task that waits out of the queue. The lock is held. */
static void leave_queue(tw_strand *strand, struct tw__task_node *task)
{
	tw__link link = (tw__link)task;
	if (strand->first == link)
		strand->first = task->next;
	else if (strand->dropped == link)
		strand->dropped = task->next;
	else
		*tw__strand_link(task->previous) = task->next;
	if (strand->last == link)
		strand->last = task->previous;
	else if (task->next && !(task->next & TW__LINK_BATCH))
		((struct tw__task_node *)task->next)->previous = task->previous;
	strand->queued--;
}

/*
 * The task of a handle, if it is one of the strand's and alive. The lock is held, so it stays
 * alive.
 */
static struct tw__task_node *strand_find(tw_strand *strand, tw_strand_task_id handle)
{
	struct tw__node *node =
	    tw__node_find(&tw__strands_of(tw__strand_service(strand))->tasks, handle.id);
	struct tw__task_node *task = (struct tw__task_node *)node;
	return node && tw_load_relaxed(&task->strand) == strand && tw__node_is(node, handle.id)
		   ? task
		   : NULL;
}

/* An enum tw_outcome. The lock is held. */
static int strand_cancel(tw_strand *strand, struct tw__task_node *task)
{
	if (!task)
		return TW_GONE;
	switch ((enum tw__strand_state)task->state) {
	case TW__TASK_RUNNING:
		task->ended = true;
		return TW_RUNNING;
	case TW__TASK_RELEASING:
		return TW_RUNNING;
	case TW__TASK_DELAYED:
		tw__heap_remove(&strand->delays->heap, &task->item);
		tw__strand_shrink_heap(strand->delays);
		break;
	case TW__TASK_QUEUED:
		leave_queue(strand, task);
	}
	tw__strand_end(strand, task, TW_FATE_CANCELLED, NULL);
	return TW_CANCELLED;
}

/* A call begins that unlocks on its way. The strand stays until end_call. */
static void begin_call(tw_strand *strand)
{
	tw__tiny_lock(&strand->lock);
	strand->calls++;
}

/*
 * The lock is held, and released here. Frees the strand if one of its tasks has destroyed it
 * meanwhile.
 */
static void end_call(tw_strand *strand)
{
	strand->calls--;
	bool frees = tw__strand_frees(strand);
	tw__strand_ring(strand);
	tw__tiny_unlock(&strand->lock);
	if (frees)
		tw__strand_free(strand);
}

int tw_strand_cancel(tw_strand *strand, tw_strand_task_id handle)
{
	int r = tw__strand_check(strand);
	if (r)
		return r;
	begin_call(strand);
	r = strand_cancel(strand, strand_find(strand, handle));
	end_call(strand);
	return r;
}

/* -------------------------------------------------------------------- waiting */

bool tw__strand_await_bell(tw_strand *strand, uint64_t deadline_ns)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	strand->flags |= TW__STRAND_WAITED;
	uint32_t bell = tw_load_relaxed(&strand->bell); /* STRAND4 */
	tw__tiny_unlock(&strand->lock);
	bool in_time = tw__futex_wait(&strand->bell, bell, deadline_ns);
	tw__tiny_lock(&strand->lock);
	return in_time;
}

bool tw__strand_inside(const tw_strand *strand, const struct tw__task_node *task)
{
	for (struct tw__strand_run *run = tw__strand_runs; run; run = run->outer)
		if (run->strand == strand && (!task || run->task == task))
			return true;
	return false;
}

int tw_strand_cancel_wait(tw_strand *strand, tw_strand_task_id handle, uint64_t timeout_ns)
{
	bool in_time = true;
	int r = tw__strand_check(strand);
	if (r)
		return r;
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	begin_call(strand);
	struct tw__task_node *task = strand_find(strand, handle);
	r = strand_cancel(strand, task);
	if (r == TW_RUNNING && tw__strand_inside(strand, task))
		r = TW_SELF;
	while (r == TW_RUNNING && in_time) {
		in_time = tw__strand_await_bell(strand, deadline_ns);
		if (!strand_find(strand, handle))
			r = TW_FINISHED;
	}
	end_call(strand);
	return r;
}

/* -------------------------------------------------------------------- close */

/*
 * Works in pieces: after some tasks the lock is released for a moment. The strand is CLOSED
 * already, so nothing is added. A task that another thread cancels meanwhile has left the heap or
 * the queue.
 */
static void breathe(tw_strand *strand, unsigned *piece)
{
	enum { PIECE = 64 };
	if (++*piece % PIECE)
		return;
	tw__tiny_unlock(&strand->lock);
	sched_yield(); /* the lock is not fair */
	tw__tiny_lock(&strand->lock);
}

static void end_batch(tw_strand *strand, tw_batch *batch, uint32_t tickets)
{
	tw__tiny_unlock(&strand->lock);
	while (tickets-- > 0)
		tw__batch_end_one(batch);
	tw__tiny_lock(&strand->lock);
}

/*
 * Work of other layers stays: for them the strand is an executor until it is destroyed. The lock is
 * held.
 */
static bool drop_batch(tw_strand *strand, tw_batch *batch, uint8_t tickets)
{
	if (!tw__batch_is_work(batch)) {
		end_batch(strand, batch, tickets ? tickets : tw__batch_chunk(batch)->count);
		return false;
	}
	tw__strand_append(strand, (tw__link)batch + TW__LINK_BATCH);
	return tw__strand_activate(strand);
}

/* The lock is held. True: the caller submits the strand's work. */
static bool drop_queue(tw_strand *strand)
{
	unsigned piece = 0;
	bool work = false;
	tw__link link;
	uint8_t tickets = strand->head_left;
	strand->dropped = strand->first;
	strand->first = strand->last = 0;
	strand->head_left = 0;
	for (; (link = strand->dropped); tickets = 0) {
		strand->dropped = *tw__strand_link(link);
		if (link & TW__LINK_BATCH) {
			work |= drop_batch(strand, (tw_batch *)(link - TW__LINK_BATCH), tickets);
		} else {
			strand->queued--;
			tw__strand_end(strand, (struct tw__task_node *)link, TW_FATE_CANCELLED,
				       NULL);
		}
		breathe(strand, &piece);
	}
	/* else its task has destroyed it meanwhile: the inbox is empty */
	if ((tw_load_relaxed(&strand->word) & TW__STRAND_BITS) != TW__STRAND_GONE)
		tw__strand_gather(strand);
	/* the runner may have gone idle meanwhile */
	return work | (strand->first && tw__strand_activate(strand));
}

static void drop_delayed(tw_strand *strand)
{
	struct tw__strand_delays *delays = strand->delays;
	struct tw__heap_item *item;
	unsigned piece = 0;
	while (delays && (item = tw__heap_pop_any(&delays->heap))) {
		struct tw__task_node *task = TW__OWNER(struct tw__task_node, item, item);
		tw__strand_end(strand, task, TW_FATE_CANCELLED, NULL);
		tw__strand_shrink_heap(delays);
		breathe(strand, &piece);
	}
}

void tw__strand_begin_close(tw_strand *strand)
{
	TW_ASSERT_TINY_LOCKED(&strand->lock);
	if (tw_or_seq_cst(&strand->word, TW__STRAND_CLOSED) & TW__STRAND_CLOSED)
		return;
	strand->releasing++;
	strand->flags &= (uint8_t)~TW__STRAND_OVERDUE;
	tw__strand_disarm(strand);
	bool work = drop_queue(strand);
	drop_delayed(strand);
	strand->releasing--;
	if (!work)
		return;
	tw__strand_ring(strand);
	tw__tiny_unlock(&strand->lock);
	tw__work_submit(&strand->work); /* the strand is ACTIVE until its work has run */
	tw__tiny_lock(&strand->lock);
}

static bool strand_is_busy(const tw_strand *strand)
{
	return strand->flags & TW__STRAND_RUNNING || strand->releasing;
}

int tw_strand_close(tw_strand *strand, uint64_t timeout_ns)
{
	bool in_time = timeout_ns > 0;
	int r = tw__strand_check(strand);
	if (r)
		return r;
	if (in_time && tw__strand_inside(strand, NULL))
		return tw__waits_inside(__func__);
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	begin_call(strand);
	tw__strand_begin_close(strand);
	while (strand_is_busy(strand) && in_time)
		in_time = tw__strand_await_bell(strand, deadline_ns);
	bool quiet = !strand_is_busy(strand);
	end_call(strand);
	return quiet ? 0 : -ETIMEDOUT;
}
