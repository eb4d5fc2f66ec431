/* Work: handing it over, running it, the driver's part, holds; and the completion of a group. */
#include "wheel/run/work.h"

#include <errno.h>

#include "mpsc/base/misuse.h"
#include "wheel/core/frame.h"
#include "wheel/timer/group.h"

static void work_defer(struct tw__works *works, struct tw__work *work)
{
	work->next = NULL;
	*works->deferred_end = work;
	works->deferred_end = &work->next;
}

/* What the driver runs here again and again would keep it from sleeping on the stack. */
static void bring_later(struct tw__work *work)
{
	/* first: once pushed it may be run, and gone */
	tw_service *service = tw__work_service(work);
	if (tw__inside_poll(service))
		work_defer(service->works, work);
	else
		tw__work_push_and_ring(service, work);
}

/* This thread is inside an executor's submit that tw__work_bring has called. */
static _Thread_local bool submitting;

static int work_hand_over(struct tw__work *work, tw_executor *executor, bool runs_nothing)
{
	bool outer = submitting;
	submitting = runs_nothing;
	int r = executor->ops->submit(executor, (tw_batch *)(void *)work, 1);
	submitting = outer;
	if (tw_unlikely(r < 0)) /* the work is still here, and so is its service */
		tw_add_relaxed(&tw__work_service(work)->submitted->refused, 1);
	return r;
}

int tw__work_bring(struct tw__work *work, enum tw__work_way way)
{
	tw_executor *executor = tw_load_relaxed(&work->executor);
	if (way != TW__WORK_LATER && executor == &tw__inline_executor) {
		tw__work_push_and_ring(tw__work_service(work), work);
		return 0;
	}
	int r = way == TW__WORK_LATER ? -EAGAIN : work_hand_over(work, executor, true);
	if (tw_likely(r >= 0) || way == TW__WORK_TRY)
		return r;
	bring_later(work);
	return 0;
}

bool tw__inside_work(const tw_service *service)
{
	return tw__is_within(service);
}

bool tw__inside_poll(const tw_service *service)
{
	return tw__is_within(service->works);
}

static void work_run(tw_service *service, struct tw__work *work)
{
	struct tw__run frame = {.within = service, .hides = true};
	tw__frame_begin(&frame);
	work->run(work);
	tw__frame_end(&frame);
}

int tw__work_run(struct tw__work *work)
{
	tw_service *service = tw__work_service(work);
	if (tw_unlikely(submitting)) {
		tw__work_push_and_ring(service, work);
		return 0;
	}
	work_run(service, work);
	return 1; /* the service may be gone with the last hold: no look at it */
}

/* ---------------------------------------------------------------- the driver */

/* Returns the works in the order of their pushes. */
static struct tw__work *take_all(_Atomic(struct tw__work *) *stack)
{
	struct tw__work *work = tw_exchange_acquire(stack, NULL), *first = NULL;
	while (work) {
		struct tw__work *next = work->next;
		work->next = first;
		first = work;
		work = next;
	}
	return first;
}

/* Returns true if the work was run here, and counts. */
static bool work_offer(tw_service *service, struct tw__work *work)
{
	tw_executor *executor = tw_load_relaxed(&work->executor);
	if (executor != &tw__inline_executor) {
		if (work_hand_over(work, executor, false) < 0)
			work_defer(service->works, work);
		return false;
	}
	bool counts = !work->uncounted; /* first: it may be gone */
	work_run(service, work);
	return counts;
}

static size_t offer_all(tw_service *service, struct tw__work *work)
{
	size_t ran = 0;
	for (struct tw__work *next; work; work = next) {
		next = work->next; /* first: it may be gone */
		ran += work_offer(service, work);
	}
	return ran;
}

size_t tw__works_offer(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	struct tw__works *works = service->works;
	struct tw__work *deferred = works->deferred;
	if (tw_likely(!deferred &&
		      /* one that is missed here is seen before sleeping */
		      !tw_load_relaxed(&works->stack)))
		return 0;
	works->deferred = NULL;
	works->deferred_end = &works->deferred;
	size_t ran = offer_all(service, deferred);
	return ran + offer_all(service, take_all(&works->stack)); /* WORK1 */
}

/* --------------------------------------------------------------------- holds */

int tw__service_hold(tw_service *service)
{
	int r = tw__service_check(service);
	if (r)
		return r;
	uint64_t holders = tw_load_relaxed(&service->works->holders);
	do {
		if (holders & TW__HOLDERS_CLOSED)
			return -ESHUTDOWN;
	} while (!tw_cas_acq_rel(&service->works->holders, &holders, holders + 1)); /* WORK3 */
	return 0;
}

void tw__service_let_go(tw_service *service)
{
	tw_sub_seq_cst(&service->works->holders, 1); /* WORK3; the last look at the service */
}

void tw__service_leave(tw_service *service)
{
	tw_add_relaxed(&service->phase.end, 1); /* CLOSE1: comes before, by WORK3 */
	tw__service_let_go(service);
}

bool tw__service_forbid_holds(tw_service *service)
{
	uint64_t holders = 0;
	return tw_cas_acq_rel(&service->works->holders, &holders, TW__HOLDERS_CLOSED) || /* WORK3 */
	       holders & TW__HOLDERS_CLOSED;
}

/* --------------------------------------------------------------- completion */

/* What a closed group calls when its last member has left. The pairs: wheel/timer/group.h. */
static tw_cold void completion_call(tw_service *service, tw_fn *fn, void *arg)
{
	struct tw__run run = {.service = service};
	tw__frame_begin(&run);
	void *former = tw__context_enter(NULL);
	struct tw__run_record *shown = tw__user_begin(service, fn, arg, NULL, 0);
	fn(arg);
	tw__user_end(shown);
	tw__context_leave(former);
	tw__frame_end(&run);
	tw__end_may_come(service);
}

static void completion_run(struct tw__work *work)
{
	tw_service *service = tw__work_service(work);
	const struct tw__completion *completion = (struct tw__completion *)(void *)work;
	uint32_t index = (uint32_t)(completion - service->groups.at_end);
	struct tw__group *group = tw__group_at(&service->groups, index);
	tw_fn *fn = completion->fn;
	void *arg = completion->arg;
	tw__group_lock(group); /* GROUP3 */
	bool called = group->completion == TW__COMPLETION_CALLED;
	group->completion = TW__COMPLETION_OVER;
	tw__group_left(service, group, index, group->serial);
	if (called)
		tw__end_may_come(service);
	else
		completion_call(service, fn, arg);
}

int tw_group_close(tw_service *service, tw_group handle, tw_fn *fn, void *arg)
{
	if (!fn)
		return tw__group_end(__func__, service, handle, TW__GROUP_CLOSES);
	int r = tw__service_check(service);
	if (r)
		return r;
	if (!tw__end_put_off(service))
		return -ESHUTDOWN;
	/* once given it may be called, and the service ended meanwhile */
	tw_add_relaxed(&service->phase.end, 1);
	struct tw__completion then = {.fn = fn, .arg = arg};
	tw__work_init(&then.work, service, service->executor, completion_run);
	then.work.uncounted = true;
	int64_t serial = tw__group_cancel(__func__, service, handle, TW__GROUP_CLOSES, &then);
	if (serial < 0)
		tw__end_may_come(service);
	tw__end_may_come(service);
	if (serial == -EALREADY)
		return tw__refuse(-EALREADY, __func__, "the group has a completion already");
	return serial < 0 ? (int)serial : 0;
}

/* Calls the completion if it is due. Its work comes later. */
static void complete_here(tw_service *service, uint32_t index)
{
	struct tw__group *group = tw__group_at(&service->groups, index);
	struct tw__completion *completion = &service->groups.at_end[index];
	tw__group_lock(group); /* GROUP3 */
	bool due = group->completion == TW__COMPLETION_DUE;
	tw_fn *fn = completion->fn;
	void *arg = completion->arg;
	if (due) {
		group->completion = TW__COMPLETION_CALLED;
		tw_add_relaxed(&service->phase.end, 1); /* the work has one of its own */
		tw__work_leave_executor(&completion->work);
	}
	tw__group_unlock(group);
	if (due)
		completion_call(service, fn, arg);
}

tw_cold void tw__groups_complete(tw_service *service)
{
	uint32_t end = tw_load_acquire(&service->groups.fresh);
	for (uint32_t index = 1; index < end; index++)
		complete_here(service, index);
}
