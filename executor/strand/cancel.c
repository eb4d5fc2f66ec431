/* Taking back what was submitted to a strand: one task, or all; and waiting for what runs. See strand.h. */
#include <errno.h>

#include "executor/strand/internal.h"

/* --------------------------------------------------------------------- cancel */

/* Dead places are taken out of the queue when they outnumber the living. The lock is held. */
static void sweep_some(tw_strand *strand)
{
	enum { FEW = 64 };
	if (tw_likely(strand->work.spare <= FEW || strand->work.spare <= strand->queued))
		return;
	struct tw__nodes *nodes = &tw__strands_of(tw__strand_service(strand))->tasks;
	tw__link place = strand->first, next;
	uint8_t head_left = strand->head_left; /* of the head, if that is a batch */
	strand->first = strand->last = 0;
	for (; place; place = next) {
		next = *tw__strand_link(place);
		struct tw__task_node *task = (struct tw__task_node *)place;
		if (place & TW__LINK_CARGO || !task->dead) {
			tw__strand_append(strand, place);
			continue;
		}
		task->linked = false;
		strand->work.spare--;
		if (task->state != TW__TASK_SETTLING)
			tw__node_put(nodes, &task->node);
	}
	strand->head_left = head_left;
}

/* The task of a handle, if it is one of the strand's and lives. The lock is held: then it stays so. */
static struct tw__task_node *find(tw_strand *strand, tw_strand_task handle)
{
	struct tw__node *node = tw__node_find(&tw__strands_of(tw__strand_service(strand))->tasks, handle.id);
	struct tw__task_node *task = (struct tw__task_node *)node;
	return node && tw_load_relaxed(&task->strand) == strand && tw__node_is(node, handle.id) ? task : NULL;
}

/* An enum tw_outcome. The lock is held; false in *here: it was given up in a forked child. */
static int cancel(tw_strand *strand, struct tw__task_node *task, bool *here)
{
	*here = true;
	if (!task)
		return TW_GONE;
	switch ((enum tw__strand_state)task->state) {
	case TW__TASK_RUNNING:
		task->ended = true;
		return TW_RUNNING;
	case TW__TASK_SETTLING:
		return TW_RUNNING;
	case TW__TASK_DELAYED:
		tw__heap_remove(&strand->delays->heap, &task->item);
		break;
	case TW__TASK_QUEUED:
		if (task->dead)
			return TW_GONE;
		task->dead = true;
		strand->queued--;
		strand->work.spare++;
	}
	*here = tw__strand_end(strand, task, TW_FATE_CANCELLED);
	if (*here)
		sweep_some(strand);
	return TW_CANCELLED;
}

/* The lock is held, and given up. */
static void unlock_and_ring(tw_strand *strand)
{
	bool ring = tw__strand_ring(strand);
	_Atomic uint32_t *bell = &strand->bell;
	tw__tiny_unlock(&strand->lock);
	if (ring)
		tw__strand_wake(bell);
}

int tw_strand_cancel(tw_strand *strand, tw_strand_task handle)
{
	bool here;
	if (!strand)
		return -EINVAL;
	if (tw__forked(tw__strand_service(strand)))
		return -EPERM;
	tw__tiny_lock(&strand->lock);
	int r = cancel(strand, find(strand, handle), &here);
	if (here)
		unlock_and_ring(strand);
	return here ? r : -EPERM;
}

/* -------------------------------------------------------------------- waiting */

static uint64_t deadline_in(uint64_t timeout_ns)
{
	uint64_t now_ns = tw_clock_now(tw_clock_monotonic());
	return timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;
}

bool tw__strand_await_bell(tw_strand *strand, uint64_t deadline_ns)
{
	strand->flags |= TW__STRAND_WAITED;
	uint32_t bell = tw_load_relaxed(&strand->bell); /* S4 */
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

int tw_strand_cancel_wait(tw_strand *strand, tw_strand_task handle, uint64_t timeout_ns)
{
	bool here, in_time = true;
	if (!strand)
		return -EINVAL;
	if (tw__forked(tw__strand_service(strand)))
		return -EPERM;
	uint64_t deadline_ns = deadline_in(timeout_ns);
	tw__tiny_lock(&strand->lock);
	struct tw__task_node *task = find(strand, handle);
	int r = cancel(strand, task, &here);
	if (!here)
		return -EPERM;
	if (r == TW_RUNNING && tw__strand_inside(strand, task))
		r = TW_SELF;
	while (r == TW_RUNNING && in_time) {
		in_time = tw__strand_await_bell(strand, deadline_ns);
		if (!find(strand, handle))
			r = TW_FINISHED;
	}
	unlock_and_ring(strand);
	return r;
}

/* -------------------------------------------------------------------- dispose */

/* Work of other layers stays: for them the strand is an executor until it is destroyed. The lock is held. */
static bool dispose_of(tw_strand *strand, tw__link place, uint8_t tickets, bool *work)
{
	if (!(place & TW__LINK_CARGO)) {
		struct tw__task_node *task = (struct tw__task_node *)place;
		task->linked = false;
		if (!task->dead) {
			strand->queued--;
			return tw__strand_end(strand, task, TW_FATE_CANCELLED);
		}
		strand->work.spare--;
		if (task->state != TW__TASK_SETTLING)
			tw__node_put(&tw__strands_of(tw__strand_service(strand))->tasks, &task->node);
		return true;
	}
	tw_batch *batch = (tw_batch *)(place - TW__LINK_CARGO);
	if (tw__batch_is_work(batch)) {
		tw__strand_append(strand, place);
		*work |= tw__strand_activate(strand);
		return true;
	}
	tw_service *service = tw__strand_service(strand);
	uint32_t left = tickets ? tickets : tw__batch_chunk(batch)->count;
	tw__tiny_unlock(&strand->lock);
	while (left-- > 0)
		tw__batch_end_one(batch);
	if (tw__forked(service))
		return false;
	tw__tiny_lock(&strand->lock);
	return true;
}

/* The lock is held. False: in a forked child. */
static bool dispose_of_queue(tw_strand *strand, bool *work)
{
	tw__strand_gather(strand);
	tw__link place = strand->first, next;
	uint8_t tickets = strand->head_left;
	strand->first = strand->last = 0;
	strand->head_left = 0;
	for (; place; place = next, tickets = 0) {
		next = *tw__strand_link(place);
		if (!dispose_of(strand, place, tickets, work))
			return false;
	}
	return true;
}

static bool dispose_of_delayed(tw_strand *strand)
{
	struct tw__heap_item *item;
	while (strand->delays && (item = tw__heap_pop(&strand->delays->heap))) {
		void *task = (char *)item - offsetof(struct tw__task_node, item);
		if (!tw__strand_end(strand, task, TW_FATE_CANCELLED))
			return false;
	}
	return true;
}

bool tw__strand_dispose(tw_strand *strand)
{
	bool work = false;
	if (tw_or_seq_cst(&strand->word, TW__STRAND_DISPOSED) & TW__STRAND_DISPOSED)
		return true;
	strand->settling++;
	tw__strand_disarm(strand);
	if (!dispose_of_queue(strand, &work) || !dispose_of_delayed(strand))
		return false;
	strand->settling--;
	if (work)
		tw__work_submit(&strand->work);
	return true;
}

int tw_strand_dispose(tw_strand *strand)
{
	if (!strand)
		return -EINVAL;
	if (tw__forked(tw__strand_service(strand)))
		return -EPERM;
	tw__tiny_lock(&strand->lock);
	if (!tw__strand_dispose(strand))
		return -EPERM;
	unlock_and_ring(strand);
	return 0;
}

int tw_strand_dispose_wait(tw_strand *strand, uint64_t timeout_ns)
{
	bool in_time = true;
	if (!strand)
		return -EINVAL;
	if (tw__forked(tw__strand_service(strand)))
		return -EPERM;
	if (tw__strand_inside(strand, NULL))
		return -EDEADLK;
	uint64_t deadline_ns = deadline_in(timeout_ns);
	tw__tiny_lock(&strand->lock);
	if (!tw__strand_dispose(strand))
		return -EPERM;
	while ((strand->running || strand->settling) && in_time)
		in_time = tw__strand_await_bell(strand, deadline_ns);
	bool quiet = !strand->running && !strand->settling;
	unlock_and_ring(strand);
	return quiet ? 0 : -ETIMEDOUT;
}
