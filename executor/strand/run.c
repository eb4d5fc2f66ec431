/* The strand's runner, series, and ends of tasks. Calls the base and the timers; see internal.h. */
#include "executor/strand/internal.h"
#include "wheel/core/frame.h"
#include "wheel/timer/schedule.h"

/* A strand goes to the end of its executor's queue after this many runs, or after this time. */
enum { BUDGET = 64, SLICE_NS = 5000000 };

/* ------------------------------------------------------------------ delays, the inbox */

/* On the driver. The task is TIMED, so it and its strand are there. */
static void is_due(void *arg)
{
	struct tw__item *task = arg;
	tw__object_push(&tw__item_owner(task)->object, (tw__link)&task->came, true);
}

int tw__item_delay(struct tw__item *task, uint32_t flags, uint64_t when_ns)
{
	struct tw__object *object = &tw__item_owner(task)->object;
	uint8_t was = task->node.state;
	/* first: the driver may push it before this call goes on */
	task->node.state = TW__ITEM_DELAYED;
	task->node.flags |= TW__ITEM_AWAY | TW__ITEM_TIMED;
	int r = tw__object_delay(object, flags, when_ns, is_due, task, &task->timer);
	if (tw_unlikely(r)) {
		task->node.state = was;
		task->node.flags &= (uint8_t) ~(TW__ITEM_AWAY | TW__ITEM_TIMED);
		return r;
	}
	tw__object_delayed_join(object, &task->place);
	return 0;
}

static __attribute__((noinline)) bool arrives_slowly(tw_strand *strand, struct tw__item *task)
{
	TW_ASSERT_TINY_LOCKED(&strand->object.lock);
	strand->object.users -= (task->node.flags & TW__ITEM_TIMED) != 0;
	task->node.flags &= (uint8_t) ~(TW__ITEM_AWAY | TW__ITEM_TIMED);
	if (task->node.state == TW__ITEM_DELAYED) {
		tw__object_delayed_leave(&strand->object, &task->place);
		task->node.state = TW__ITEM_QUEUED;
		return true;
	}
	if (task->node.state == TW__ITEM_ENDED)
		tw__node_put(tw__strand_tasks(strand), &task->node);
	return false; /* or its release is being called: that thread puts it */
}

/* The task was taken from the inbox. True: it is QUEUED. False: it has ended meanwhile. */
static inline bool arrives(tw_strand *strand, struct tw__item *task)
{
	if (tw_unlikely(task->node.state != TW__ITEM_COMING))
		return arrives_slowly(strand, task);
	task->node.state = TW__ITEM_QUEUED;
	task->node.flags &= (uint8_t)~TW__ITEM_AWAY;
	return true;
}

/* As tw__object_take, for the line. */
static inline tw__link take(tw_strand *strand, unsigned *steps)
{
	for (tw__link link; (link = tw__object_take(&strand->object, steps));) {
		if (link & TW__FOREIGN)
			return link;
		struct tw__item *task = TW__OWNER(struct tw__item, came, link);
		if (arrives(strand, task))
			return tw__in_line_link(&task->place);
	}
	return 0;
}

bool tw__strand_gather(tw_strand *strand)
{
	unsigned steps = TW__STRAND_PIECE;
	for (tw__link link; (link = take(strand, &steps));) {
		tw__line_append(&strand->line, link);
		strand->queued += !(link & TW__FOREIGN);
	}
	return tw__object_has_mail(&strand->object);
}

/* ------------------------------------------------------------------------ series */

/* Chooses the next instant, due_ns. False: there is none. */
static bool series_next(tw_service *service, struct tw__item *task)
{
	uint64_t now_ns = tw_service_now(service);
	if (task->runs_left && --task->runs_left == 0)
		return false;
	bool by_end = task->node.mode == TW_FIXED_DELAY;
	task->due_ns = (by_end ? now_ns : task->due_ns) + task->period_ns;
	if (task->due_ns <= now_ns) {
		uint64_t missed = tw__instants_missed((enum tw_missed_policy)task->node.missed,
						      task->period_ns, now_ns - task->due_ns);
		task->due_ns += missed * task->period_ns;
		task->overruns += missed;
	}
	return !tw__beyond_range(service, task->due_ns);
}

/* Until due_ns, or in the line. False: the strand is closed. *refused: its timer was refused. */
static bool series_waits(tw_strand *strand, struct tw__item *task, bool *refused)
{
	bool now = task->due_ns <= tw_service_now(tw__object_service(&strand->object));
	if (!now && tw__item_delay(task, TW_TASK_AT, task->due_ns) == 0)
		return true;
	*refused = !now;
	task->node.state = TW__ITEM_COMING; /* behind what has come; the strand is ACTIVE */
	return tw__item_push(strand, task);
}

/* -------------------------------------------------------------------------- ends */

void tw__strand_end(tw_strand *strand, struct tw__item *task, enum tw_fate fate,
		    struct tw__node_batch *batch)
{
	struct tw__object *object = &strand->object;
	struct tw__inside inside;
	TW_ASSERT_TINY_LOCKED(&object->lock);
	strand->cancelled += fate == TW_FATE_CANCELLED;
	if (task->node.flags & TW__ITEM_OPTIONS && task->release) {
		task->node.state = TW__ITEM_RELEASING;
		object->releasing++;
		tw__object_unlock(object);
		tw__inside_begin(&inside, object, task, TW__NAMED_BY(task->release), task->arg,
				 task->name, task->context);
		inside.releasing = true;
		task->release(task->arg, fate);
		tw__inside_end(&inside);
		tw__object_lock(object);
		object->releasing--;
	}
	if (task->node.flags & TW__ITEM_AWAY)
		task->node.state = TW__ITEM_ENDED;
	else if (batch)
		tw__node_put_later(tw__strand_tasks(strand), batch, &task->node);
	else
		tw__node_put(tw__strand_tasks(strand), &task->node);
	tw__object_ring(object);
}

static uint32_t tickets_left(const tw_strand *strand, tw_batch *batch)
{
	return strand->head_left ? strand->head_left : ((struct tw__work *)(void *)batch)->tickets;
}

void tw__strand_end_batch(tw_strand *strand, tw_batch *batch)
{
	uint32_t tickets = tickets_left(strand, batch);
	strand->head_left = 0;
	tw__object_unlock(&strand->object);
	tw__batch_end_all(batch);
	tw__batch_use_up(batch, tickets);
	tw__object_lock(&strand->object);
}

/* ------------------------------------------------------------------------ the runner */

/* A turn of the runner. */
struct turn {
	struct tw__inside inside;
	struct tw__node_batch ended; /* nodes are put together */
	uint64_t begun_ns;           /* 0: nothing has waited behind a run yet */
	/* NULL: the time is always read; else only while a worker is missed elsewhere */
	const _Atomic uint32_t *shortage;
	bool refused; /* a series' timer was: the strand comes again in the next tick */
};

/* tw_current tells a run of a series what the series has missed, unless it is made up for. */
static void call_series(tw_service *service, struct tw__item *task, uint64_t now_ns)
{
	struct tw__run run = {0}, *frame = &run;
	if (task->node.mode != TW_FIXED_DELAY && task->node.missed != TW_MISSED_BURST) {
		uint64_t missed = (now_ns - task->due_ns) / task->period_ns;
		task->due_ns += missed * task->period_ns;
		task->overruns += missed;
	}
	run.overruns = task->overruns;
	task->overruns = 0;
	struct tw__run_record *shown =
	    tw__layer_begin(service, task->fn, task->arg, task->name, &frame);
	run.outer = frame;
	task->fn(task->arg);
	tw__user_end(shown);
	tw__layer_begin(NULL, NULL, NULL, NULL, &frame);
}

/* now_ns: of a series. */
static void call_task(tw_strand *strand, struct tw__item *task, struct turn *turn, uint64_t now_ns)
{
	tw_service *service = tw__object_service(&strand->object);
	bool options = task->node.flags & TW__ITEM_OPTIONS;
	task->node.state = TW__ITEM_RUNNING;
	strand->running = true;
	tw__object_unlock(&strand->object);
	turn->inside.item = task;
	void *former = tw__context_enter(options ? task->context : NULL);
	if (tw_unlikely(options && task->period_ns)) {
		call_series(service, task, now_ns);
	} else {
		struct tw__run_record *shown = tw__layer_begin(service, task->fn, task->arg,
							       options ? task->name : NULL, NULL);
		task->fn(task->arg);
		tw__user_end(shown);
	}
	tw__context_leave(former);
	turn->inside.item = NULL;
	tw__object_lock(&strand->object);
	strand->running = false;
	strand->runs++;
}

/* The task is in no line. The lock is held. A series is early if its timer was refused. */
static void run_task(tw_strand *strand, struct tw__item *task, struct turn *turn)
{
	tw_service *service = tw__object_service(&strand->object);
	bool series = task->node.flags & TW__ITEM_OPTIONS && task->period_ns;
	bool runs = !tw__strand_closed(strand);
	uint64_t now_ns = tw_unlikely(series) ? tw_service_now(service) : 0;
	bool early = series && task->due_ns > now_ns;
	if (runs && !early)
		call_task(strand, task, turn, now_ns);
	if (tw_likely(runs && !(task->node.flags & TW__ITEM_OPTIONS))) {
		tw__node_put_later(tw__strand_tasks(strand), &turn->ended, &task->node);
		return;
	}
	bool cancelled =
	    !runs ||
	    (series && (task->node.state == TW__ITEM_STOPPED || tw__strand_closed(strand)));
	if (!cancelled && series && (early || series_next(service, task)) &&
	    series_waits(strand, task, &turn->refused))
		return;
	tw__strand_end(strand, task, cancelled ? TW_FATE_CANCELLED : TW_FATE_FIRED, &turn->ended);
}

/* One run of a batch, or the work of another object. */
static void run_ticket(tw_strand *strand, tw_batch *batch)
{
	bool work = tw__batch_is_work(batch), runs = work || !tw__strand_closed(strand);
	uint32_t left = tickets_left(strand, batch);
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
	if (!strand->line.first) {
		tw__link link = take(strand, &steps);
		if (link & TW__FOREIGN)
			tw__line_append(&strand->line, link);
		return link;
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
