/* The strand's runner. Calls the base, and batches of timers; see internal.h. */
#include "executor/strand/run.h"
#include "wheel/timer/schedule.h"

/* A strand goes to the end of its executor's queue after this many runs, or after this time. */
enum { BUDGET = 64, SLICE_NS = 5000000 };

bool tw__strand_gather(tw_strand *strand)
{
	unsigned steps = TW__STRAND_PIECE;
	for (tw__link link; (link = tw__object_take(&strand->object, &steps));) {
		if (link & TW__FOREIGN) {
			tw__line_append(&strand->line, link);
			continue;
		}
		struct tw__item *task = tw__item_that_came(link);
		if (!tw__item_arrives(tw__strand_tasks(strand), task))
			continue;
		tw__line_append(&strand->line, tw__in_line_link(&task->place));
		strand->queued++;
	}
	return tw__object_has_mail(&strand->object);
}

void tw__strand_end(tw_strand *strand, struct tw__item *task, enum tw_fate fate,
		    struct tw__node_batch *batch)
{
	strand->cancelled += fate == TW_FATE_CANCELLED;
	tw__item_end(tw__strand_tasks(strand), task, fate, batch);
}

/*
 * The run of a series is over, or it is early: the series waits for its next run. False: it ends.
 * *refused: its timer was refused.
 */
static bool goes_on(struct tw__item *task, bool *refused)
{
	bool now = false;
	if (!(task->node.flags & TW__ITEM_UNTIMED) && !tw__item_next(task, &now))
		return false;
	task->node.flags &= (uint8_t)~TW__ITEM_UNTIMED;
	if (!now && tw__item_delay(task, TW_TASK_AT, task->due_ns) == 0)
		return true;
	*refused = !now;
	task->node.flags |= now ? 0 : TW__ITEM_UNTIMED;
	task->node.state = TW__ITEM_COMING; /* behind what has come; the strand is ACTIVE */
	return tw__item_push(task, tw__item_owner(task));
}

static void call_task(tw_strand *strand, struct tw__item *task, struct tw__inside *runner)
{
	task->node.state = TW__ITEM_RUNNING;
	task->node.flags &= (uint8_t)~TW__ITEM_UNTIMED;
	strand->running = true;
	tw__object_unlock(&strand->object);
	tw__item_call(task, runner);
	tw__object_lock(&strand->object);
	strand->running = false;
	strand->runs++;
}

/* A series that waits in the line for a timer, and is not due. */
static bool is_early(tw_strand *strand, const struct tw__item *task)
{
	return tw_unlikely(task->node.flags & TW__ITEM_UNTIMED) &&
	       task->due_ns > tw_service_now(tw__object_service(&strand->object));
}

/* A turn of the runner. */
struct turn {
	struct tw__inside inside;
	struct tw__node_batch ended; /* nodes are put together */
	uint64_t begun_ns;           /* 0: nothing has waited behind a run yet */
	/* NULL: the time is always read; else only while a worker is missed elsewhere */
	const _Atomic uint32_t *shortage;
	bool refused; /* a series' timer was: the strand comes again in the next tick */
};

/* The task is in no line. The lock is held. */
static void run_task(tw_strand *strand, struct tw__item *task, struct turn *turn)
{
	bool runs = !tw__strand_closed(strand);
	if (runs && !is_early(strand, task))
		call_task(strand, task, &turn->inside);
	if (tw_likely(runs && !(task->node.flags & TW__ITEM_OPTIONS))) {
		tw__item_put(tw__strand_tasks(strand), task, &turn->ended);
		return;
	}
	bool series = tw__item_is_series(task);
	bool cancelled =
	    !runs ||
	    (series && (task->node.state == TW__ITEM_STOPPED || tw__strand_closed(strand)));
	if (cancelled || !series || !goes_on(task, &turn->refused))
		tw__strand_end(strand, task, cancelled ? TW_FATE_CANCELLED : TW_FATE_FIRED,
			       &turn->ended);
}

/* One run of a batch, or the work of another object. */
static void run_ticket(tw_strand *strand, tw_batch *batch)
{
	bool work = tw__batch_is_work(batch), runs = work || !tw__strand_closed(strand);
	uint32_t left = strand->head_left ? strand->head_left : tw__batch_tickets(batch);
	strand->head_left = (uint16_t)(left - 1);
	if (left == 1)
		tw__line_pop(&strand->line); /* now: after its last ticket it is not ours */
	strand->running = !work;
	tw__object_unlock(&strand->object);
	int r = 0;
	if (!runs)
		tw__batch_end_all(batch);
	if ((r = tw_run_one(batch)) == -ENOMEM)
		tw_run_return(batch);
	tw__object_lock(&strand->object);
	strand->running = false;
	strand->runs += r == 1 && !work;
}

/*
 * Tells whether the strand has had its time on its thread, from the first run on that something
 * waits behind. The lock is held.
 */
static bool slice_is_over(tw_strand *strand, const struct turn *turn)
{
	if (!turn->begun_ns || (turn->shortage && tw_likely(!tw_load_relaxed(turn->shortage))))
		return false;
	return tw_service_now(tw__object_service(&strand->object)) >= turn->begun_ns + SLICE_NS;
}

static void slice_begin(tw_strand *strand, struct turn *turn)
{
	if (tw_likely(turn->begun_ns) ||
	    !(strand->line.first || tw__object_has_mail(&strand->object)))
		return;
	if (strand->object.pooled)
		turn->shortage = tw__pool_limits(strand->object.executor)->shortage;
	turn->begun_ns = tw_service_now(tw__object_service(&strand->object));
}

/*
 * What is next: a task, which has left the line; or a batch or work, which is first in it. 0:
 * nothing, or there is more to take.
 */
static tw__link strand_next(tw_strand *strand)
{
	unsigned steps = TW__STRAND_PIECE;
	while (!strand->line.first) {
		tw__link link = tw__object_take(&strand->object, &steps);
		if (!link)
			return 0;
		if (link & TW__FOREIGN)
			tw__line_append(&strand->line, link);
		else if (tw__item_arrives(tw__strand_tasks(strand), tw__item_that_came(link)))
			return tw__in_line_link(&tw__item_that_came(link)->place);
	}
	if (strand->line.first & TW__FOREIGN)
		return strand->line.first;
	strand->queued--;
	return tw__line_pop(&strand->line);
}

/* Runs what is there, until the turn is over. The lock is held. */
static void run_some(tw_strand *strand, struct turn *turn)
{
	for (unsigned budget = BUDGET; budget && !turn->refused && !slice_is_over(strand, turn);) {
		tw__link link = strand_next(strand);
		if (!link) {
			if (!tw__object_has_mail(&strand->object))
				return;
			tw__object_unlock(&strand->object); /* others come in between */
			tw__object_lock(&strand->object);
			continue;
		}
		slice_begin(strand, turn);
		if (link & TW__FOREIGN)
			run_ticket(strand, (tw_batch *)tw__link_at(link));
		else
			run_task(strand, tw__item_in_line(link), turn);
		tw__object_ring(&strand->object);
		budget--;
	}
}

void tw__strand_run_work(struct tw__work *work)
{
	tw_strand *strand = TW__OWNER(tw_strand, object.work, work);
	struct tw__object *object = &strand->object;
	struct turn turn = {.inside = {.object = object, .outer = tw__innermost_inside}};
	tw__innermost_inside = &turn.inside;
	tw__object_lock(object);
	object->later = false;
	run_some(strand, &turn);
	tw__innermost_inside = turn.inside.outer;
	tw__node_put_batch(tw__strand_tasks(strand), &turn.ended);
	if (!strand->line.first && tw__object_rest(object)) {
		tw__object_drop(object, 0);
		return;
	}
	object->later = turn.refused;
	tw__object_unlock(object);
	if (turn.refused)
		tw__work_submit_later(work);
	else
		tw__work_submit(work);
}
