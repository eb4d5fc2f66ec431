/*
 * Submitting to a strand: the short forms, and the full one with its checks. The protocol is in
 * internal.h.
 */

#include "wheel/timer/schedule.h"
#include "executor/strand/time.h"
#include "wheel/timer/schedule_task.h"

/* A task to submit. All checks have passed. */
struct request {
	tw_fn *fn;
	void *arg;
	const struct tw_strand_task *spec; /* NULL: a short form */
	const struct tw_period *period;    /* NULL: it runs once */
	uint64_t when_ns;                  /* delay, or deadline with TW_TASK_AT */
};

static bool is_at(const struct request *request)
{
	return request->spec && request->spec->flags & TW_TASK_AT;
}

static bool names_context(const struct request *request)
{
	return request->spec && request->spec->flags & TW_TASK_CONTEXT;
}

/* --------------------------------------------------------------------- the task */

static void strand_fill(struct tw__task_node *task, const struct request *request)
{
	task->fn = request->fn;
	task->arg = request->arg;
	task->release = request->spec ? request->spec->release : NULL;
	task->name = request->spec ? request->spec->name : NULL;
	task->series = NULL;
	task->ended = false;
	task->state = request->when_ns || is_at(request) ? TW__TASK_DELAYED : TW__TASK_QUEUED;
}

/*
 * The instant when the task is due. A series needs it without a delay, too. The clock is read
 * before the lock is taken, so the readings of a thread that submits one task after another
 * are in order. It is the clock itself: the counter register is not in order to the microsecond.
 */
static int set_instant(tw_service *service, struct tw__task_node *task,
		       const struct request *request)
{
	if (tw_likely(task->state == TW__TASK_QUEUED && !task->series))
		return 0;
	task->due_ns = request->when_ns + (is_at(request) ? 0 : tw__clock_read(service));
	return tw__beyond_range(service, task->due_ns) ? -ERANGE : 0; /* check_and_submit tells */
}

static int add_series(struct tw__task_node *task, const struct tw_period *period)
{
	if (tw_likely(!period))
		return 0;
	struct tw__strand_series *series = task->series = malloc(sizeof *series);
	if (!series)
		return -ENOMEM;
	*series = (struct tw__strand_series){.period_ns = period->period_ns,
					     .runs_left = period->count,
					     .missed = period->missed,
					     .fixed_delay = period->mode == TW_FIXED_DELAY};
	return 0;
}

static void *strand_context_of(const struct request *request)
{
	if (tw_likely(!names_context(request)))
		return tw__context_capture();
	if (request->spec->context)
		tw__context_turn_on();
	return request->spec->context;
}

/* The lock is held. *work: the caller submits the work. */
static int strand_enter(tw_strand *strand, struct tw__task_node *task, bool *work)
{
	if (tw_unlikely(tw__strand_closed(strand)))
		return -ESHUTDOWN;
	tw_store_relaxed(&task->strand, strand);
	if (task->state == TW__TASK_DELAYED || task->series) {
		int r = tw__strand_delay(strand, task);
		if (r)
			return r;
	} else {
		tw__strand_queue_task(strand, task);
	}
	*work = task->state == TW__TASK_QUEUED && tw__strand_activate(strand);
	return 0;
}

static int give_up(struct tw__nodes *nodes, struct tw__task_node *task, int error)
{
	free(task->series);
	task->series = NULL;
	tw_store_relaxed(&task->strand, NULL);
	tw__node_put(nodes, &task->node);
	return error;
}

static int strand_submit(tw_strand *strand, const struct request *request, tw_strand_task_id *out)
{
	tw_service *service = tw__strand_service(strand);
	struct tw__nodes *nodes = &tw__strands_of(service)->tasks;
	struct tw__node *node;
	bool work = false;
	int r = tw__node_get(nodes, &node);
	if (tw_unlikely(r))
		return r;
	struct tw__task_node *task = (struct tw__task_node *)node;
	strand_fill(task, request);
	task->context = strand_context_of(request);
	r = add_series(task, request->period);
	if (!r)
		r = set_instant(service, task, request);
	if (tw_unlikely(r))
		return give_up(nodes, task, r);
	tw__tiny_lock(&strand->lock); /* planted: strand_unlocked */
	if (out)
		out->id = tw__node_handle(node); /* before a runner can see it */
	r = strand_enter(strand, task, &work);
	tw__tiny_unlock(&strand->lock);
	if (tw_unlikely(r))
		return give_up(nodes, task, r);
	if (work) /* the strand is ACTIVE until its work has run */
		tw__work_submit(&strand->work);
	return 0;
}

/* -------------------------------------------------------------------- short forms */

static int check_and_submit(const char *call, tw_strand *strand, const struct request *request,
			    tw_strand_task_id *out)
{
	int r = tw__strand_check_in(call, strand);
	if (!r && !is_at(request) && request->when_ns > TW_MAX_DELAY_NS)
		r = -ERANGE; /* told below */
	if (!r)
		r = strand_submit(strand, request, out);
	if (tw_unlikely(r) && out)
		*out = (tw_strand_task_id){0};
	return tw_unlikely(r == -ERANGE) ? tw__bad(r, call, "delay_ns") : r;
}

int tw_strand_submit(tw_strand *strand, tw_fn *fn, void *arg)
{
	if (!strand || !fn)
		return tw__invalid("%s is NULL", strand ? "fn" : "strand");
	return tw_strand_schedule(strand, 0, fn, arg, NULL);
}

int tw_strand_schedule(tw_strand *strand, uint64_t delay_ns, tw_fn *fn, void *arg,
		       tw_strand_task_id *out)
{
	if (!strand || !fn)
		return tw__invalid("%s is NULL", strand ? "fn" : "strand");
	const struct request request = {.fn = fn, .arg = arg, .when_ns = delay_ns};
	return check_and_submit(__func__, strand, &request, out);
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
	if (!strand || !in)
		return tw__invalid("%s is NULL", strand ? "task" : "strand");
	int r = TW__STRUCT_READ(tw_strand_task, &spec, flags, in);
	if (!r && spec.period)
		r = tw__period_read(__func__, &period, spec.period);
	if (!r)
		r = strand_task_check(__func__, &spec, &period);
	if (r == -ERANGE && out)
		*out = (tw_strand_task_id){0};
	if (r)
		return r;
	bool by_period = spec.period && !(spec.flags & TW_TASK_AT);
	const struct request request = {.fn = spec.fn,
					.arg = spec.arg,
					.spec = &spec,
					.period = spec.period ? &period : NULL,
					.when_ns = by_period ? period.first_ns : spec.delay_ns};
	return check_and_submit(__func__, strand, &request, out);
}
