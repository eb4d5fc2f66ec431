/*
 * What a closed group calls when its last member has left: a piece of work (work.h). The pairs:
 * wheel/timer/group.h.
 */
#include <errno.h>

#include "mpsc/base/misuse.h"
#include "wheel/core/frame.h"
#include "wheel/timer/group.h"
#include "wheel/run/run.h"
#include "wheel/run/work.h"

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

int tw_group_close_then(tw_service *service, tw_group handle, tw_fn *fn, void *arg)
{
	if (!service || !fn)
		return tw__invalid("%s is NULL", service ? "fn" : "service");
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
