/*
 * Tasks: the full form of what is to be scheduled. Reading them from older and newer callers, checking them, making their side records.
 */
#include <errno.h>
#include <inttypes.h>

#include "wheel/timer/member.h"
#include "wheel/timer/schedule_task.h"
#include "wheel/timer/timing.h"
#include "wheel/base/struct_read.h"
#include "wheel/base/misuse.h"

/* -------------------------------------------------------------------- check */

int tw__period_read(struct tw_period *period, const struct tw_period *in)
{
	int r = tw__struct_read(period, sizeof *period, offsetof(struct tw_period, mode), in);
	if (r)
		return r;
	if (period->period_ns == 0 || (unsigned)period->mode > TW_FIXED_DELAY ||
	    (unsigned)period->missed > TW_MISSED_BURST || period->reserved)
		return -EINVAL;
	return period->period_ns > TW_MAX_DELAY_NS || period->first_ns > TW_MAX_DELAY_NS ? -ERANGE : 0;
}

/* The delay or deadline that a task or its period names. */
static uint64_t first_of(const struct tw_task *task, const struct tw_period *period)
{
	return period && !(task->flags & TW_TASK_AT) ? period->first_ns : task->when_ns;
}

static int check_range(const tw_service *service, const struct tw_task *task, const struct tw_period *period)
{
	bool at = task->flags & TW_TASK_AT;
	if (task->slack_ns > TW_MAX_DELAY_NS || task->jitter_ns > TW_MAX_DELAY_NS - task->slack_ns)
		return -ERANGE;
	if (at ? tw__beyond_range(service, task->when_ns) : task->when_ns > TW_MAX_DELAY_NS)
		return -ERANGE;
	uint64_t latest_ns = first_of(task, period) + task->slack_ns + task->jitter_ns;
	if (at ? tw__beyond_range(service, latest_ns) : latest_ns > TW_MAX_DELAY_NS)
		return -ERANGE;
	return 0;
}

/* Whether a drain, which waits for no background timer, would cut a series short that has a count. */
static bool has_end_in_background(const struct tw_task *task, const struct tw_period *period)
{
	return period && period->count && task->flags & TW_TASK_BACKGROUND;
}

static int check(const tw_service *service, const struct tw_task *task, const struct tw_period *period)
{
	bool at = task->flags & TW_TASK_AT;
	if (!task->fn || task->flags & ~(uint32_t)(TW_TASK_AT | TW_TASK_CONTEXT | TW_TASK_BACKGROUND) ||
	    task->reserved || task->reserved_late)
		return -EINVAL;
	if (has_end_in_background(task, period))
		return -EINVAL;
	if (period && (at ? period->first_ns : task->when_ns))
		return -EINVAL;
	if (task->context && !(task->flags & TW_TASK_CONTEXT))
		return -EINVAL;
	if ((unsigned)task->late > TW_LATE_DROP || (task->late && !task->max_lateness_ns))
		return -EINVAL;
	if (task->executor && !tw__executor_is_sound(task->executor))
		return -EINVAL;
	return check_range(service, task, period);
}

int tw__task_read(const tw_service *service, const struct tw_task **task, struct tw_task *other,
		  struct tw_period *period)
{
	int r = 0;
	if (tw_unlikely((*task)->size != sizeof **task)) {
		r = tw__struct_read(other, sizeof *other, offsetof(struct tw_task, when_ns), *task);
		*task = other;
	}
	if (!r && (*task)->period)
		r = tw__period_read(period, (*task)->period);
	return r ? r : check(service, *task, (*task)->period ? period : NULL);
}

int tw__task_misuse(const struct tw_task *task, const struct tw_period *period, int error)
{
	if (error == -EINVAL && has_end_in_background(task, period))
		return tw__misuse(error, "struct tw_task: TW_TASK_BACKGROUND with period.count %" PRIu64 ": must be 0",
				  period->count);
	return error;
}

/* -------------------------------------------------------------- side records */

/* Whether the instant itself is wanted, and not only what the lane's base makes of a delay. */
static bool wants_instant(const struct tw_task *task)
{
	return task->period || task->slack_ns || task->max_lateness_ns;
}

static uint32_t traits_of(const struct tw_task *task, const void *context)
{
	bool releases = task->release || tw__context_has_release(context);
	return (releases ? TW__TRAIT_RELEASE : 0u) | (wants_instant(task) ? TW__TRAIT_MOVES : 0u) |
	       (task->flags & TW_TASK_BACKGROUND ? TW__TRAIT_BACKGROUND : 0u);
}

static void name_executor(tw_service *service, struct tw__option *option, tw_executor *executor)
{
	tw_store_release(&option->executor, executor);         /* WORD5: pairs with outbox.c */
	if (!tw_load_relaxed(&service->ever.routed))           /* else its line stays unwritten */
		tw_store_relaxed(&service->ever.routed, true); /* published with the word: WORD1 */
}

static void fill_option(tw_service *service, struct tw__option *option, const struct tw_task *task,
			const struct tw_period *period, void *context)
{
	if (tw_likely(!tw_load_relaxed(&option->linked)))
		tw_store_relaxed(&option->tag, task->group.id);      /* until it has entered */
	tw_store_release(&option->traits, traits_of(task, context)); /* WORD5 */
	option->release = task->release;
	option->context = context;
	option->context_is_callers = (task->flags & TW_TASK_CONTEXT) != 0;
	option->max_lateness_ns = task->max_lateness_ns;
	option->late_drop = task->late == TW_LATE_DROP;
	option->slack_ns = task->slack_ns;
	option->bare = tw__task_is_short(task) && !context;
	if (tw_unlikely(task->flags & TW_TASK_BACKGROUND) && !tw_load_relaxed(&service->ever.has_background))
		tw_store_relaxed(&service->ever.has_background, true); /* published with the word: WORD1 */
	if (task->executor && task->executor != service->executor)
		name_executor(service, option, task->executor);
	if (period) {
		option->period_ns = period->period_ns;
		option->runs_left = period->count;
		option->fixed_delay = period->mode == TW_FIXED_DELAY;
		option->missed = (uint8_t)period->missed;
	}
}

/* The timer was refused, perhaps after others could see it (retract). */
void tw__task_discard(tw_service *service, struct tw__local *local, uint32_t index)
{
	if (tw_load_relaxed(&service->slots.options[index].traits) & TW__TRAIT_MOVES)
		tw__option_await_all_resets(&service->slots);
	struct tw__option *option = &service->slots.options[index];
	if (!option->context_is_callers)
		tw__context_release(option->context);
	if (!tw_load_relaxed(&option->linked))
		tw_store_relaxed(&option->tag, 0); /* it has not entered its group */
	tw__option_give_back(service, local, index, false);
}

/*
 * Where its instant is wanted the clock is read: nominal instants are exact from the first on. It is armed for that instant only if slack
 * or period need it, or else takes its place by its delay, as a plain one does (G6).
 */
static void set_instants(tw_service *service, struct tw__option *option, const struct tw_task *task, uint64_t *now_ns,
			 struct tw__arming *arming)
{
	if (!wants_instant(task))
		return;
	if (arming->is_delay && !*now_ns)
		*now_ns = tw__clock_read(service);
	option->nominal_ns = arming->is_delay ? *now_ns + arming->value : arming->value;
	if (!task->period && !task->slack_ns)
		return;
	arming->is_delay = false;
	arming->value = tw__within_slack(service, option->nominal_ns, task->slack_ns);
}

/* The context it names, or else the thread's. */
static void *context_of(const struct tw_task *task)
{
	if (tw_likely(!(task->flags & TW_TASK_CONTEXT)))
		return tw__context_capture();
	if (task->context)
		tw__context_turn_on();
	return task->context;
}

static int refused(const struct tw_task *task, void *context, int error)
{
	if (!(task->flags & TW_TASK_CONTEXT))
		tw__context_release(context);
	return error;
}

int tw__task_prepare(tw_service *service, struct tw__local *local, const struct tw_task *task,
		     const struct tw_period *period, uint64_t *random, uint64_t *now_ns, struct tw__arming *arming)
{
	uint64_t jitter_ns =
	    task->jitter_ns ? tw__random_upto(random, task->jitter_ns) : 0; /* leaves no trace in the timer */
	arming->is_delay = !(task->flags & TW_TASK_AT);
	arming->value = first_of(task, period) + jitter_ns;
	void *context = context_of(task);
	if (!context && !tw__task_needs_option(service, task))
		return 0;
	if (!arming->option && task->group.id && !tw__group_of(&service->groups, task->group.id))
		return refused(task, context, -ENOENT); /* before it becomes a tag, which others index by */
	if (!arming->option)
		arming->option = tw__option_get(&service->slots, &local->options);
	else
		tw__option_wipe(&service->slots.options[arming->option]);
	if (!arming->option)
		return refused(task, context, -ENOMEM);
	struct tw__option *option = &service->slots.options[arming->option];
	fill_option(service, option, task, period, context);
	set_instants(service, option, task, now_ns, arming);
	return 0;
}
