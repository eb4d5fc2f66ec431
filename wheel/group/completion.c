/*
 * Completion: what a closed group calls when its last member has ended. The rule and the pairing
 * are in group.h (GROUP9 to GROUP11).
 */
#include <errno.h>

#include "wheel/core/context.h"
#include "wheel/core/frame.h"
#include "wheel/core/user_code.h"
#include "wheel/group/completion.h"
#include "wheel/group/group.h"
#include "wheel/group/reap.h"
#include "wheel/timer/member.h"
#include "wheel/timer/reap_queue.h"
#include "wheel/base/misuse.h"

/*
 * One more completion, and the call that gives it: once given it may be called, and a thread that
 * learns of that may end the service, while the call still wakes the driver. False: a close has
 * answered, or is about to.
 */
static bool count_in(struct tw__groups *groups)
{
	uint32_t count = tw_load_relaxed(&groups->completions);
	do {
		if (count & TW__COMPLETIONS_CLOSED)
			return false;
	} while (!tw_cas_acq_rel(&groups->completions, &count, count + 2)); /* GROUP11 */
	return true;
}

static void count_down(struct tw__groups *groups)
{
	/* GROUP11; the last access to the service */
	tw_add_release(&groups->completions, (uint32_t)-1);
}

/* Closes the group and stores its completion, or changes nothing. */
static int completion_give(tw_service *service, struct tw__group *group, tw_group handle,
			   const struct tw__completion *completion)
{
	int r = -EALREADY;
	tw__group_lock(group); /* GROUP10 */
	uint64_t word = tw_load_acquire(&group->word);
	if (!tw__group_is(group, word, handle.id)) {
		r = -ENOENT;
	} else if (tw_load_relaxed(&group->completion) == TW__COMPLETION_NONE) {
		bool closed = tw__group_shift(service, group, handle.id, TW__GROUP_CLOSED) != 0;
		r = closed ? 0 : -ENOENT; /* destroyed meanwhile */
	}
	if (r == 0) {
		service->groups.at_end[handle.id & TW__GROUP_INDEX_MASK] = *completion;
		tw_store_relaxed(&group->completion, TW__COMPLETION_PENDING);
		tw_add_seq_cst(&group->waiters, 1); /* GROUP9 */
	}
	tw__group_unlock(group);
	return r;
}

int tw_group_close_then(tw_service *service, tw_group handle, tw_fn *fn, void *arg)
{
	if (!service || !fn)
		return tw__invalid("%s is NULL", service ? "fn" : "service");
	int r = tw__service_check(service);
	if (r)
		return r;
	struct tw__group *group = tw__group_of(&service->groups, handle.id);
	if (!group)
		return -ENOENT;
	if (!count_in(&service->groups))
		return -ESHUTDOWN;
	r = completion_give(service, group, handle, &(struct tw__completion){fn, arg});
	if (r == 0)
		tw__group_reap_soon(service, group, handle.id & TW__GROUP_INDEX_MASK);
	else
		count_down(&service->groups);
	count_down(&service->groups); /* the call's own */
	if (r == -EALREADY)
		return tw__refuse(r, __func__, "the group has a completion already");
	return r;
}

/* The thread that gets true calls the completion. The index may be another group's by then. */
static bool completion_take(tw_service *service, struct tw__group *group, uint32_t index,
			    struct tw__completion *taken)
{
	tw__group_lock(group); /* GROUP10 */
	bool is_due = tw__group_is_complete(service, group);
	if (is_due) {
		*taken = service->groups.at_end[index];
		tw_store_relaxed(&group->completion, TW__COMPLETION_TAKEN);
		tw_sub_seq_cst(&group->waiters, 1);
	}
	tw__group_unlock_and_vacate(&service->groups, group, index);
	return is_due;
}

/* As a callback that is no timer's. */
static void completion_call(tw_service *service, const struct tw__completion *completion)
{
	struct tw__run run = {.outer = tw__current_run, .service = service};
	tw__current_run = &run;
	void *former = tw__context_enter(NULL);
	struct tw__run_record *shown =
	    tw__user_begin(service, completion->fn, completion->arg, NULL, 0);
	completion->fn(completion->arg);
	tw__user_end(shown);
	tw__context_leave(former);
	tw__current_run = run.outer;
	count_down(&service->groups);
}

void tw__group_complete(tw_service *service, struct tw__group *group, uint32_t index)
{
	struct tw__completion taken;
	if (tw_unlikely(tw_load_relaxed(&group->completion) ==
			TW__COMPLETION_PENDING) && /* GROUP10 */
	    completion_take(service, group, index, &taken))
		completion_call(service, &taken);
}

bool tw__groups_complete(tw_service *service)
{
	struct tw__groups *groups = &service->groups;
	if (!(tw_load_acquire(&groups->completions) & ~TW__COMPLETIONS_CLOSED)) /* GROUP11 */
		return true;
	uint32_t end = tw_load_acquire(&groups->fresh);
	for (uint32_t index = 1; index < end; index++) {
		struct tw__group *group = tw__group_at(groups, index);
		if (tw_load_relaxed(&group->completion) != TW__COMPLETION_PENDING)
			continue;
		/* GROUP8: perhaps no reap has followed yet */
		tw__group_make_certain(service, group);
		tw__group_complete(service, group, index);
	}
	return !(tw_load_acquire(&groups->completions) & ~TW__COMPLETIONS_CLOSED); /* GROUP11 */
}

bool tw__groups_forbid_completions(tw_service *service)
{
	uint32_t none = 0;
	return tw_cas_acq_rel(&service->groups.completions, &none,
			      TW__COMPLETIONS_CLOSED) || /* GROUP11 */
	       none == TW__COMPLETIONS_CLOSED;
}
