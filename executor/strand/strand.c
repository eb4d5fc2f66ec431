/* All calls on strands. Calls the runner and the base; see internal.h. */
#include "executor/strand/internal.h"

#include "mpsc/base/entry.h"
#include "wheel/timer/schedule.h"

#define strand_check(strand) TW__OBJECT_CHECK(strand, "strand")

/* ------------------------------------------------------------------ birth and end */

static bool strand_look(struct tw__object *object, struct tw__figures *out)
{
	tw_strand *strand = tw__strand_of(object);
	bool more = tw__strand_gather(strand);
	out->running = strand->running;
	out->waiting = strand->queued;
	out->delayed = object->delays;
	return more;
}

static const struct tw__object_kind strand_kind = {"strand", sizeof(tw_strand),
						   offsetof(tw_strand, object), NULL, strand_look};

int tw_strand_create(tw_strand **out, tw_service *service, tw_executor *executor)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (!tw__executor_is_sound(executor))
		return tw__bad(-EINVAL, __func__, "executor");
	struct tw__object *object;
	int r = tw__object_create(&object, service, executor, tw__strand_run_work, &strand_kind);
	if (r)
		return r;
	tw_strand *strand = tw__strand_of(object);
	strand->executor.ops = &tw__object_ops;
	tw__line_init(&strand->line);
	*out = strand;
	return 0;
}

/* --------------------------------------------------------------------- submit */

static int push_or_delay(tw_strand *strand, struct tw__item *task, bool delayed, uint32_t at,
			 uint64_t when_ns)
{
	if (tw_likely(!delayed))
		return tw__item_push(strand, task) ? 0 : -ESHUTDOWN;
	/* reads the clock only for a delay of more than a year: a shorter one is in range */
	tw_service *service = tw__object_service(&strand->object);
	bool is_far = at || when_ns > TW_MAX_DELAY_NS / 128;
	if (is_far && tw__beyond_range(service, when_ns + (at ? 0 : tw_service_now(service))))
		return -ERANGE;           /* the caller tells the misuse hook */
	tw__object_lock(&strand->object); /* planted: strand_unlocked */
	int r = tw__strand_closed(strand) ? -ESHUTDOWN : tw__item_delay(task, at, when_ns);
	tw__object_unlock(&strand->object);
	return r;
}

/* Of a task that has none. */
static const struct tw_strand_task no_options;

static void set_options(struct tw__item *task, const struct tw_strand_task *spec, void *context,
			const struct tw_period *period)
{
	task->node.flags = TW__ITEM_OPTIONS;
	task->context = context;
	task->release = spec->release;
	task->name = spec->name;
	task->period_ns = 0;
	if (!period)
		return;
	task->period_ns = period->period_ns;
	task->runs_left = period->count;
	task->overruns = 0;
	task->node.mode = (uint8_t)period->mode;
	task->node.missed = (uint8_t)period->missed;
}

/* period NULL: it runs once. *out is written before the task can run. */
static int submit(tw_strand *strand, tw_fn *fn, void *arg, const struct tw_strand_task *spec,
		  const struct tw_period *period, uint64_t when_ns, tw_strand_task_id *out)
{
	struct tw__node *node;
	uint32_t flags = spec->flags, at = flags & TW_TASK_AT;
	bool delayed = when_ns || at;
	if (tw_unlikely(!at && when_ns > TW_MAX_DELAY_NS))
		return -ERANGE; /* the caller tells the misuse hook */
	int r = tw__node_get(tw__strand_tasks(strand), &strand->object, &node);
	if (tw_unlikely(r))
		return r;
	struct tw__item *task = (struct tw__item *)(void *)node;
	void *context = flags & TW_TASK_CONTEXT ? spec->context : tw__context_capture();
	node->state = TW__ITEM_COMING;
	node->flags = 0;
	task->fn = fn;
	task->arg = arg;
	if (tw_unlikely(spec != &no_options || context))
		set_options(task, spec, context, period);
	if (period) { /* its instants are counted from one reading of the clock */
		when_ns += at ? 0 : tw_service_now(tw__object_service(&strand->object));
		task->due_ns = when_ns;
		at = TW_TASK_AT;
	}
	if (out)
		out->id = tw__node_handle(node);
	r = push_or_delay(strand, task, delayed, at, when_ns);
	if (tw_unlikely(r))
		tw__node_put(tw__strand_tasks(strand), node);
	return r;
}

/* What a refused call returns. *out, which may be NULL, is no task. */
static int refused(const char *call, int error, tw_strand_task_id *out)
{
	if (out && error != -EINVAL && error != -E2BIG)
		*out = (tw_strand_task_id){0};
	return call && error == -ERANGE ? tw__bad(error, call, "delay_ns") : error;
}

int tw_strand_submit(tw_strand *strand, tw_fn *fn, void *arg)
{
	int r = strand && !fn ? tw__invalid("fn is NULL") : strand_check(strand);
	return tw_unlikely(r) ? r : submit(strand, fn, arg, &no_options, NULL, 0, NULL);
}

int tw_strand_schedule(tw_strand *strand, uint64_t delay_ns, tw_fn *fn, void *arg,
		       tw_strand_task_id *out)
{
	int r = strand && !fn ? tw__invalid("fn is NULL") : strand_check(strand);
	if (tw_likely(!r))
		r = submit(strand, fn, arg, &no_options, NULL, delay_ns, out);
	return tw_likely(!r) ? 0 : refused(__func__, r, out);
}

/* ---------------------------------------------------------------------- full form */

static int strand_task_check(const char *call, const struct tw_strand_task *spec,
			     const struct tw_period *period)
{
	const char *bad = NULL;
	bool at = spec->flags & TW_TASK_AT;
	tw__need(&bad, spec->fn, "fn");
	tw__need(&bad, !(spec->flags & ~(uint32_t)(TW_TASK_AT | TW_TASK_CONTEXT)), "flags");
	tw__need(&bad, !spec->period || at || !spec->delay_ns, "delay_ns");
	tw__need(&bad, !spec->context || spec->flags & TW_TASK_CONTEXT, "context");
	tw__need(&bad, !spec->reserved, "reserved");
	tw__need(&bad, !at || !period->first_ns, "period");
	return tw__bad_member(-EINVAL, call, "tw_strand_task", bad);
}

int tw_strand_submit_task(tw_strand *strand, const struct tw_strand_task *in,
			  tw_strand_task_id *out)
{
	struct tw_strand_task spec;
	struct tw_period period = {0};
	int r = strand && !in ? tw__invalid("task is NULL") : strand_check(strand);
	if (r)
		return refused(NULL, r, out);
	r = TW__STRUCT_READ(tw_strand_task, &spec, flags, in);
	if (!r && spec.period)
		r = tw__period_read(__func__, &period, spec.period);
	if (!r)
		r = strand_task_check(__func__, &spec, &period);
	if (r)
		return refused(NULL, r, out); /* told */
	bool by_period = spec.period && !(spec.flags & TW_TASK_AT);
	uint64_t when_ns = by_period ? period.first_ns : spec.delay_ns;
	r = submit(strand, spec.fn, spec.arg, &spec, spec.period ? &period : NULL, when_ns, out);
	return r ? refused(__func__, r, out) : 0;
}

/* --------------------------------------------------------------------- cancel */

/* The task of the handle; NULL: it has ended, or never was. The lock is held. */
static struct tw__item *strand_find(tw_strand *strand, tw_strand_task_id handle)
{
	TW_ASSERT_TINY_LOCKED(&strand->object.lock);
	struct tw__node *node = tw__node_find(tw__strand_tasks(strand), &strand->object, handle.id);
	return node && node->state != TW__ITEM_ENDED ? (struct tw__item *)(void *)node : NULL;
}

/* An enum tw_outcome. The lock is held; the caller is a user. */
static int strand_cancel(tw_strand *strand, struct tw__item *task)
{
	if (!task)
		return TW_GONE;
	if (task->node.state == TW__ITEM_COMING)
		(void)tw__strand_gather(strand); /* its node is put now, if the inbox is short */
	switch ((enum tw__item_state)task->node.state) {
	case TW__ITEM_RUNNING:
		task->node.state = TW__ITEM_STOPPED;
		return TW_RUNNING;
	case TW__ITEM_STOPPED:
	case TW__ITEM_RELEASING:
		return TW_RUNNING;
	case TW__ITEM_DELAYED:
		tw__object_delayed_leave(&strand->object, &task->place);
		if (tw__object_undelay(&strand->object, task->timer)) /* else the inbox gets it */
			task->node.flags &= (uint8_t) ~(TW__ITEM_AWAY | TW__ITEM_TIMED);
		break;
	case TW__ITEM_QUEUED:
		tw__line_leave(&strand->line, &task->place);
		strand->queued--;
		break;
	default: /* COMING: the inbox is long */
		break;
	}
	tw__strand_end(strand, task, TW_FATE_CANCELLED, NULL);
	return TW_CANCELLED;
}

static int cancel_and_wait(tw_strand *strand, tw_strand_task_id handle, bool waits,
			   uint64_t deadline_ns)
{
	tw__object_lock(&strand->object);
	tw__object_use(&strand->object);
	struct tw__item *task = strand_find(strand, handle);
	int r = strand_cancel(strand, task);
	if (waits && r == TW_RUNNING && tw__inside_object(&strand->object, task))
		r = TW_SELF;
	for (bool in_time = true; waits && r == TW_RUNNING && in_time;) {
		in_time = tw__object_await(&strand->object, deadline_ns);
		if (!strand_find(strand, handle))
			r = TW_FINISHED;
	}
	tw__object_drop(&strand->object, 1);
	return r;
}

int tw_strand_cancel(tw_strand *strand, tw_strand_task_id handle)
{
	int r = strand_check(strand);
	return r ? r : cancel_and_wait(strand, handle, false, 0);
}

int tw_strand_cancel_wait(tw_strand *strand, tw_strand_task_id handle, uint64_t timeout_ns)
{
	int r = strand_check(strand);
	return r ? r : cancel_and_wait(strand, handle, true, tw__deadline_in(timeout_ns));
}

/* ---------------------------------------------------------------------- close */

/* Ends the first in line, or sets it aside if it is work of others. False: the line is empty. */
static bool end_first(tw_strand *strand, struct tw__line *works)
{
	if (!strand->line.first)
		return false;
	tw__link link = tw__line_pop(&strand->line);
	if (!(link & TW__FOREIGN)) {
		strand->queued--;
		tw__strand_end(strand, tw__item_in_line(link), TW_FATE_CANCELLED, NULL);
	} else if (tw__batch_is_work((tw_batch *)tw__link_at(link))) {
		tw__line_append(works, link);
	} else {
		tw__strand_end_batch(strand, (tw_batch *)tw__link_at(link));
	}
	return true;
}

/*
 * Closes the strand, if it is not, and ends all that waits. The lock is released meanwhile; the
 * caller is a user.
 */
static void close_strand(tw_strand *strand)
{
	struct tw__object *object = &strand->object;
	struct tw__line works;
	unsigned steps = 0;
	if (!tw__object_close(object))
		return;
	object->releasing++; /* others wait */
	tw__line_init(&works);
	for (bool more = true; more;) { /* a task that is due meanwhile enters the line */
		bool mail = !strand->line.first && tw__strand_gather(strand);
		more = end_first(strand, &works) || mail || object->delayed;
		if (!strand->line.first && object->delayed)
			strand_cancel(strand, tw__item_in_line(object->delayed));
		steps += mail ? TW__STRAND_PIECE : 0;
		tw__object_breathe(object, &steps);
	}
	/* the runner may have gone meanwhile */
	bool work = works.first && tw__object_raise(object);
	tw__line_move(&works, &strand->line);
	object->releasing--;
	tw__object_ring(object);
	if (!work)
		return;
	tw__object_unlock(object);
	tw__work_submit(&object->work); /* the strand is ACTIVE until its work has run */
	tw__object_lock(object);
}

int tw_strand_close(tw_strand *strand, uint64_t timeout_ns)
{
	bool in_time = timeout_ns > 0;
	int r = strand_check(strand);
	if (r)
		return r;
	if (in_time && tw__inside_object(&strand->object, NULL))
		return tw__waits_inside(__func__);
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	tw__object_lock(&strand->object);
	tw__object_use(&strand->object);
	close_strand(strand);
	while ((strand->running || strand->object.releasing) && in_time)
		in_time = tw__object_await(&strand->object, deadline_ns);
	r = strand->running || strand->object.releasing ? -ETIMEDOUT : 0;
	tw__object_drop(&strand->object, 1);
	return r;
}

int tw_strand_destroy(tw_strand *strand)
{
	if (!strand || tw__object_destroy_forked(&strand->object))
		return 0;
	tw__object_lock(&strand->object);
	close_strand(strand);
	tw__object_destroy(&strand->object);
	return 0;
}

/* ---------------------------------------------------------------------- looks */

int tw_strand_set_name(tw_strand *strand, const char *name)
{
	int r = strand_check(strand);
	return r ? r : tw__object_set_name(&strand->object, name);
}

tw_executor *tw_strand_executor(tw_strand *strand)
{
	if (TW__OBJECT_CHECK(strand, "strand"))
		return NULL;
	tw__object_lock(&strand->object);
	strand->object.exposed = true;
	tw__object_unlock(&strand->object);
	return &strand->executor;
}

/* A release that a cancel or a close calls from elsewhere is not on the strand. */
tw_strand *tw_strand_current(void)
{
	for (const struct tw__inside *in = tw__innermost_inside; in; in = in->outer)
		if (!in->releasing && in->object->work.run == tw__strand_run_work)
			return tw__strand_of((struct tw__object *)in->object);
	return NULL;
}

int tw_strand_stats(tw_strand *strand, struct tw_strand_stats *out)
{
	int r = TW__OUT_CHECK(tw_strand_stats, out, delayed);
	if (!r)
		r = strand_check(strand);
	if (r)
		return r;
	tw__object_lock(&strand->object);
	while (tw__strand_gather(strand)) {
		tw__object_unlock(&strand->object);
		tw__object_lock(&strand->object);
	}
	struct tw_strand_stats stats = {.queued = strand->queued,
					.delayed = strand->object.delays,
					.running = strand->running,
					.runs = strand->runs,
					.cancelled = strand->cancelled,
					.closed = tw__strand_closed(strand)};
	tw__object_unlock(&strand->object);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
