/* Runs tasks: asks the host for a turn, and spends it. Calls the heap and executor/base. */

#include "executor/scheduler/internal.h"
#include "mpsc/base/process.h"

/* -------------------------------------------------------------------- the thread */

static _Thread_local enum tw_priority current_priority = TW_PRIORITY_NORMAL;

enum tw_priority tw_priority_current(void)
{
	return current_priority;
}

/* In a turn the item of the thread's inside is the scheduler. */
static bool is_in_turn(const tw_scheduler *scheduler)
{
	return tw__inside_object(&scheduler->object, scheduler);
}

void tw__scheduler_tell(tw_scheduler *scheduler, const struct tw__told *told, const void *item,
			enum tw_fate fate, int result)
{
	struct tw__inside inside;
	if (!told->done)
		return;
	tw__inside_begin(&inside, &scheduler->object, item, TW__NAMED_BY(told->done), told->arg,
			 told->name, told->context);
	told->done(told->arg, fate, result);
	tw__inside_end(&inside);
}

/* ---------------------------------------------------------------------- the host */

void tw__scheduler_unlock(tw_scheduler *scheduler, uint32_t n)
{
	struct tw__object *object = &scheduler->object;
	const struct tw_scheduler_config *config = &scheduler->config;
	TW_ASSERT_TINY_LOCKED(&object->lock);
	TW_ASSERT(!scheduler->tasks.count || !tw__scheduler_closed(scheduler) ||
		  object->releasing); /* a close drops all tasks */
	if (scheduler->host != TW__HOST_IDLE || !scheduler->tasks.count ||
	    tw__scheduler_closed(scheduler)) {
		tw__object_drop(object, n);
		return;
	}
	scheduler->host = TW__HOST_REQUESTED;
	scheduler->stats.host_requests++;
	object->users -= n; /* not the last one: what is not closed has its creator */
	if (config->host == TW_HOST_EXECUTOR) {
		object->users++;
		tw__object_unlock(object);
		tw__work_submit(&object->work);
	} else if (config->wanted) {
		struct tw__inside inside;
		scheduler->object.releasing++;
		tw__object_unlock(object);
		tw__inside_begin(&inside, object, NULL, TW__NAMED_BY(config->wanted),
				 config->wanted_arg, NULL, NULL);
		config->wanted(config->wanted_arg);
		tw__inside_end(&inside);
		tw__object_lock(object);
		scheduler->object.releasing--;
		tw__object_drop(object, 0);
	} else {
		tw__object_unlock(object);
	}
}

/* ------------------------------------------------------------------------- turns */

/* The most turns in one slice, if the clock does not move; and beyond it, for expired tasks. */
enum { MOST_TURNS = 1024, MOST_TURNS_BEYOND = 32 };

static bool is_over(const tw_scheduler *scheduler, int64_t begin_ns, int64_t now_ns)
{
	return now_ns - begin_ns >= (int64_t)scheduler->config.slice_ns;
}

/* The turn's result: AGAIN only with a continuation. */
static int call(tw_scheduler *scheduler, struct tw__task *task, struct tw_turn *turn)
{
	struct tw__inside inside;
	enum tw_priority former = current_priority;
	current_priority = turn->priority;
	tw__inside_begin(&inside, &scheduler->object, scheduler, TW__NAMED_BY(turn->next),
			 task->told.arg, task->told.name, task->told.context);
	int result = turn->next(turn, task->told.arg);
	tw__inside_end(&inside);
	if (result == TW_TURN_AGAIN && !turn->next)
		result = TW_TURN_DONE;
	if (result != TW_TURN_AGAIN && task->told.done)
		tw__scheduler_tell(scheduler, &task->told, scheduler, TW_FATE_FIRED, result);
	/* planted: priority_stays */
	current_priority = former;
	return result;
}

/* The lock is held; it is released meanwhile. */
static void end(tw_scheduler *scheduler, struct tw__task *task, int result)
{
	struct tw_scheduler_stats *stats = &scheduler->stats;
	if (result == TW_TURN_AGAIN) {
		/* no further turn; while its done function is called it counts as running */
		bool cancelled = task->node.flags;
		task->node.flags = true;
		tw__object_unlock(&scheduler->object);
		tw__scheduler_tell(scheduler, &task->told, NULL,
				   cancelled ? TW_FATE_CANCELLED : TW_FATE_DROPPED,
				   cancelled ? -ECANCELED : -ESHUTDOWN);
		tw__object_lock(&scheduler->object);
		*(cancelled ? &stats->cancelled : &stats->dropped) += 1;
	} else if (result == TW_TURN_DONE) {
		stats->completed++;
	} else {
		stats->failed++;
		stats->last_failure = result;
		stats->last_failure_task = tw__node_handle(&task->node);
	}
}

/*
 * The lock is held; it is released meanwhile. The clock is read only if another task waits. True:
 * the task goes on.
 */
static bool run_turn(tw_scheduler *scheduler, struct tw__task *task, int64_t *now_ns,
		     struct tw__node_batch *ended)
{
	struct tw_turn turn = {
	    .scheduler = scheduler,
	    .task = {tw__node_handle(&task->node)},
	    .priority = (enum tw_priority)task->node.mode,
	    /* planted: expires_late */
	    .did_timeout = task->expiration_ns <= *now_ns,
	    .next = task->fn,
	};
	bool others = scheduler->tasks.count;
	task->node.state = TW__TASK_RUNNING;
	scheduler->current = task;
	scheduler->turn_begin_ns = *now_ns;
	scheduler->stats.turns++;
	scheduler->stats.timed_out += turn.did_timeout;
	tw__object_unlock(&scheduler->object);
	int result = call(scheduler, task, &turn);
	if (others)
		*now_ns = tw__scheduler_now(scheduler);
	tw__object_lock(&scheduler->object);
	if (!others && scheduler->tasks.count)
		*now_ns = tw__scheduler_now(scheduler);
	bool goes_on =
	    result == TW_TURN_AGAIN && !task->node.flags && !tw__scheduler_closed(scheduler);
	if (goes_on) {
		task->fn = turn.next;
		task->node.state = TW__TASK_READY;
		tw__heap_push(&scheduler->tasks, task);
		scheduler->stats.continued++;
	} else {
		end(scheduler, task, result);
		tw__node_put_later(tw__scheduler_nodes(scheduler), ended, &task->node);
	}
	scheduler->current = NULL;
	return goes_on;
}

/*
 * Beyond the slice only expired tasks begin, and none that was submitted in this slice: a chain of
 * tasks, each of which submits the next, would keep the host's thread.
 */
static bool may_begin(const tw_scheduler *scheduler, const struct tw__task *task, size_t turns,
		      int64_t now_ns, uint64_t last_number)
{
	if (!is_over(scheduler, scheduler->slice_begin_ns, now_ns))
		return turns < MOST_TURNS;
	return turns < MOST_TURNS_BEYOND && task->expiration_ns <= now_ns &&
	       task->number <= last_number;
}

/* A task that goes on ends the slice: the host's other work comes first. The lock is held. */
static void run_slice(tw_scheduler *scheduler, size_t budget, int64_t now_ns)
{
	struct tw__node_batch ended = {0};
	uint64_t last_number = scheduler->last_number;
	bool goes_on = false;
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	scheduler->host = TW__HOST_RUNNING;
	scheduler->slice_begin_ns = now_ns;
	scheduler->stats.slices++;
	for (size_t turns = 0; turns < budget && !goes_on; turns++) {
		struct tw__task *task = tw__scheduler_first(scheduler);
		if (!task || tw__scheduler_closed(scheduler) ||
		    !may_begin(scheduler, task, turns, now_ns, last_number))
			break;
		tw__heap_remove(&scheduler->tasks, task);
		goes_on = run_turn(scheduler, task, &now_ns, &ended);
	}
	tw__node_put_batch(tw__scheduler_nodes(scheduler), &ended);
	scheduler->host = TW__HOST_IDLE;
}

void tw__scheduler_host_called(struct tw__work *work)
{
	tw_scheduler *scheduler = TW__OWNER(tw_scheduler, object.work, work);
	int64_t now_ns = tw__scheduler_now(scheduler);
	tw__object_lock(&scheduler->object);
	run_slice(scheduler, tw__scheduler_closed(scheduler) ? 0 : SIZE_MAX, now_ns);
	tw__scheduler_unlock(scheduler, 1);
}

int tw_scheduler_run(tw_scheduler *scheduler, size_t budget)
{
	TW__UNCANCELLED;
	int r = TW__OBJECT_CHECK(scheduler, "scheduler");
	if (r)
		return r;
	if (budget == 0)
		return tw__bad(-EINVAL, __func__, "budget");
	if (scheduler->config.host != TW_HOST_MANUAL)
		return tw__invalid("an executor runs the tasks: set host to TW_HOST_MANUAL");
	int64_t now_ns = tw__scheduler_now(scheduler);
	tw__object_lock(&scheduler->object);
	if (scheduler->host == TW__HOST_RUNNING) {
		r = -EBUSY;
	} else if (tw__scheduler_closed(scheduler)) {
		r = -ESHUTDOWN;
	} else {
		run_slice(scheduler, budget, now_ns);
		r = TW_SCHEDULER_RUN_IDLE;
		if (scheduler->tasks.count && !tw__scheduler_closed(scheduler)) {
			r = TW_SCHEDULER_RUN_MORE;
			scheduler->host = TW__HOST_REQUESTED; /* by the answer, not by `wanted` */
			scheduler->stats.host_requests++;
		}
	}
	tw__object_drop(&scheduler->object, 0);
	return r;
}

/*
 * A turn that begins expired has a full slice of its own: the host's is often over by then, and the
 * task would make no progress.
 */
bool tw_scheduler_should_yield(tw_scheduler *scheduler)
{
	if (TW__OBJECT_CHECK(scheduler, "scheduler") || !is_in_turn(scheduler))
		return false;
	int64_t now_ns = tw__scheduler_now(scheduler);
	tw__object_lock(&scheduler->object);
	const struct tw__task *current = scheduler->current,
			      *first = tw__scheduler_first(scheduler);
	bool yield;
	if (current->expiration_ns <= scheduler->turn_begin_ns)
		yield = is_over(scheduler, scheduler->turn_begin_ns, now_ns);
	else
		yield = is_over(scheduler, scheduler->slice_begin_ns, now_ns) ||
			(first && (first->expiration_ns < current->expiration_ns ||
				   (first->expiration_ns == current->expiration_ns &&
				    first->number < current->number)));
	yield |= tw__scheduler_closed(scheduler);
	tw__object_unlock(&scheduler->object);
	return yield;
}
