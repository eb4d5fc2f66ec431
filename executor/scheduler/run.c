/* The loop, and what a turn may ask. */

#include "mpsc/base/cancel.h"
#include "executor/scheduler/host.h"
#include "executor/scheduler/run.h"
#include "wheel/core/frame.h"
#include "executor/scheduler/submit.h"

/* -------------------------------------------------------- a thread's priority */

static _Thread_local enum tw_priority current_priority = TW_PRIORITY_NORMAL;

/* Sets the thread's priority. Returns the former one. */
static enum tw_priority priority_swap(enum tw_priority priority)
{
	enum tw_priority former = current_priority;
	current_priority = priority;
	return former;
}

enum tw_priority tw_priority_current(void)
{
	return current_priority;
}

/* Inside a done function of a task that did not run to its end, the thread is within `nodes`. */
static bool in_turn(const tw_scheduler *scheduler)
{
	return tw__is_within(scheduler);
}

bool tw__scheduler_is_inside(const tw_scheduler *scheduler)
{
	return in_turn(scheduler) || tw__is_within(&scheduler->nodes);
}

/* -------------------------------------------------------------- under the lock */

static bool is_slice_over(const tw_scheduler *scheduler, int64_t begin_ns, int64_t now_ns)
{
	return now_ns - begin_ns >= (int64_t)scheduler->config.slice_ns;
}

/*
 * Bounds of one turn of the host, in turns of tasks: in its slice, also on a clock that stands
 * still; and if it goes beyond its slice for expired tasks.
 */
enum { MOST_TURNS = 1024, MOST_TURNS_BEYOND = 32 };

/*
 * Beyond the slice only expired tasks begin, and of these none that was submitted in this turn of
 * the host: else a chain of tasks, each of which submits the next, would keep the host's thread.
 */
static bool may_begin(const tw_scheduler *scheduler, const struct tw__task *task, size_t turns,
		      int64_t now_ns)
{
	if (!is_slice_over(scheduler, scheduler->slice_begin_ns, now_ns))
		return turns < MOST_TURNS;
	return turns < MOST_TURNS_BEYOND && task->expiration_ns <= now_ns &&
	       task->item.id <= scheduler->slice_last_number;
}

static struct tw__task *next_task(tw_scheduler *scheduler, size_t turns, int64_t now_ns)
{
	struct tw__task *task = tw__scheduler_head(scheduler, &scheduler->tasks);
	if (!task || scheduler->closed)
		return NULL;
	return may_begin(scheduler, task, turns, now_ns) ? task : NULL;
}

static void note_end(tw_scheduler *scheduler, struct tw__task *task, int result)
{
	if (result == TW_TURN_DONE) {
		scheduler->stats.completed++;
		return;
	}
	scheduler->stats.failed++;
	scheduler->stats.last_failure = result;
	scheduler->stats.last_failure_task = tw__node_handle(&task->node);
}

/*
 * It wants another turn and gets none. Its done function is called without the lock, while the task
 * still counts as running.
 */
static void end_unfinished(tw_scheduler *scheduler, struct tw__task *task)
{
	bool cancelled = task->cancelled;
	task->cancelled = true;
	pthread_mutex_unlock(&scheduler->lock);
	tw__scheduler_tell(scheduler, tw__deferred_done_of(task),
			   cancelled ? TW_FATE_CANCELLED : TW_FATE_DROPPED,
			   cancelled ? -ECANCELED : -ESHUTDOWN);
	pthread_mutex_lock(&scheduler->lock);
	*(cancelled ? &scheduler->stats.cancelled : &scheduler->stats.dropped) += 1;
	tw__scheduler_remove_ran(scheduler, task);
}

/* True: it goes on in another turn. */
static bool scheduler_finish(tw_scheduler *scheduler, struct tw__task *task,
			     const struct tw_turn *turn, int result)
{
	if (result != TW_TURN_AGAIN) {
		note_end(scheduler, task, result);
		tw__scheduler_remove_ran(scheduler, task);
	} else if (task->cancelled || scheduler->closed) {
		end_unfinished(scheduler, task);
	} else {
		task->fn = turn->next;
		task->running = false;
		scheduler->stats.continued++;
		return true;
	}
	return false;
}

static void begin(tw_scheduler *scheduler, struct tw__task *task, struct tw_turn *turn,
		  int64_t now_ns)
{
	*turn = (struct tw_turn){
	    .scheduler = scheduler,
	    .task = {tw__node_handle(&task->node)},
	    .priority = (enum tw_priority)task->priority,
	    /* planted: expires_late */
	    .did_timeout = task->expiration_ns <= now_ns,
	    .next = task->fn,
	};
	task->fn = NULL;
	task->running = true;
	scheduler->current = task;
	scheduler->turn_begin_ns = now_ns;
	scheduler->stats.turns++;
	scheduler->stats.timed_out += turn->did_timeout;
}

/* ---------------------------------------------------------- without the lock */

/* The caller sees to it that the scheduler stays: `out`, or it runs. */
void tw__scheduler_tell(const tw_scheduler *scheduler, struct tw__deferred_done deferred,
			enum tw_fate fate, int result)
{
	if (deferred.done) {
		struct tw__within within;
		tw__within_begin(&within, &scheduler->nodes);
		struct tw__run_record *shown = tw__user_begin(
		    scheduler->base.service, TW__NAMED_BY(deferred.done), deferred.arg, NULL, 0);
		void *former = tw__context_enter(deferred.context);
		deferred.done(deferred.arg, fate, result);
		tw__context_leave(former);
		tw__user_end(shown);
		tw__within_end(&within);
	}
}

/*
 * Calls the user's functions, and restores the thread's state. Returns the turn's result: AGAIN
 * only with a continuation.
 */
static int scheduler_call(struct tw__task *task, struct tw_turn *turn, int64_t now_ns)
{
	tw_service *service = turn->scheduler->base.service;
	struct tw__within within;
	tw__within_begin(&within, turn->scheduler);
	enum tw_priority former_priority = priority_swap(turn->priority);
	void *former = tw__context_enter(task->context);
	struct tw__run_record *shown = tw__user_begin(service, TW__NAMED_BY(turn->next), task->arg,
						      task->name, (uint64_t)now_ns);
	int result = turn->next(turn, task->arg);
	tw__user_end(shown);
	if (result == TW_TURN_AGAIN && !turn->next)
		result = TW_TURN_DONE; /* nothing to go on with: the task is done */
	bool ended = result != TW_TURN_AGAIN;
	if (ended && task->done) {
		shown = tw__user_begin(service, TW__NAMED_BY(task->done), task->arg, task->name, 0);
		task->done(task->arg, TW_FATE_FIRED, result);
		tw__user_end(shown);
	}
	tw__context_leave(former);
	/* planted: priority_stays */
	priority_swap(former_priority);
	tw__within_end(&within);
	return result;
}

/* No other task waits, so nobody needs the time when it ends. */
static bool is_alone(const tw_scheduler *scheduler)
{
	return scheduler->tasks.count <= 1 && !scheduler->timers.count;
}

/* The lock is held; it is released meanwhile. True: the task goes on in another turn. */
static bool run_turn(tw_scheduler *scheduler, struct tw__task *task, int64_t *now_ns)
{
	struct tw_turn turn;
	begin(scheduler, task, &turn, *now_ns);
	bool alone = is_alone(scheduler);
	pthread_mutex_unlock(&scheduler->lock);
	int result = scheduler_call(task, &turn, *now_ns);
	if (!alone)
		*now_ns = tw__scheduler_now(scheduler);
	pthread_mutex_lock(&scheduler->lock);
	if (alone && (result == TW_TURN_AGAIN || !is_alone(scheduler)))
		*now_ns = tw__scheduler_now(scheduler);
	bool goes_on = scheduler_finish(scheduler, task, &turn, result);
	scheduler->current = NULL;
	return goes_on;
}

/*
 * One turn of the host. A task that goes on ends it, whatever the task's expiration: the host's
 * other work comes first. The lock is held.
 */
static void run_slice(tw_scheduler *scheduler, size_t budget, int64_t now_ns)
{
	struct tw__task *task;
	bool goes_on = false;
	scheduler->slice_begin_ns = now_ns;
	scheduler->slice_last_number = scheduler->last_number;
	scheduler->stats.slices++;
	tw__scheduler_promote(scheduler, now_ns, SIZE_MAX);
	for (size_t turns = 0; turns < budget && !goes_on; turns++) {
		task = next_task(scheduler, turns, now_ns);
		if (!task)
			return;
		goes_on = run_turn(scheduler, task, &now_ns);
		tw__scheduler_promote(scheduler, now_ns, SIZE_MAX);
	}
}

/* ------------------------------------------------------------------- the hosts */

void tw__scheduler_host_called(struct tw__work *work)
{
	tw_scheduler *scheduler = TW__OWNER(tw_scheduler, work, work);
	int64_t now_ns = tw__scheduler_now(scheduler);
	pthread_mutex_lock(&scheduler->lock);
	scheduler->host.state = TW__HOST_RUNNING;
	run_slice(scheduler, SIZE_MAX, now_ns);
	scheduler->host.state = TW__HOST_IDLE;
	tw__scheduler_unlock(scheduler);
}

/*
 * The lock is held, and released here. More work: the host stays requested, by the answer instead
 * of `wanted`.
 */
static int end_of_run(tw_scheduler *scheduler)
{
	scheduler->host.state = TW__HOST_IDLE;
	int result =
	    tw__scheduler_arm_host(scheduler) ? TW_SCHEDULER_RUN_MORE : TW_SCHEDULER_RUN_IDLE;
	tw__scheduler_unlock(scheduler);
	return result;
}

int tw_scheduler_run(tw_scheduler *scheduler, size_t budget)
{
	TW__UNCANCELLED;
	int result = TW__CHECK(scheduler, "scheduler");
	if (result)
		return result;
	if (budget == 0)
		return tw__bad(-EINVAL, __func__, "budget");
	if (scheduler->config.host != TW_HOST_MANUAL)
		return tw__invalid("an executor runs the tasks: set host to TW_HOST_MANUAL");
	int64_t now_ns = tw__scheduler_now(scheduler);
	pthread_mutex_lock(&scheduler->lock);
	if (scheduler->host.state == TW__HOST_RUNNING)
		result = -EBUSY;
	else if (scheduler->closed)
		result = -ESHUTDOWN;
	if (result) {
		pthread_mutex_unlock(&scheduler->lock);
		return result;
	}
	scheduler->host.state = TW__HOST_RUNNING;
	run_slice(scheduler, budget, now_ns);
	return end_of_run(scheduler);
}

/* -------------------------------------------------------------- what turns ask */

/*
 * A turn that begins expired has a full slice of its own. The host's slice is often over by then,
 * and a task that yields to that would make no progress.
 */
static bool turn_should_yield(tw_scheduler *scheduler, int64_t now_ns)
{
	const struct tw__task *current = scheduler->current;
	if (scheduler->closed)
		return true;
	if (current->expiration_ns <= scheduler->turn_begin_ns)
		return is_slice_over(scheduler, scheduler->turn_begin_ns, now_ns);
	return is_slice_over(scheduler, scheduler->slice_begin_ns, now_ns) ||
	       tw__scheduler_head(scheduler, &scheduler->tasks) != current;
}

bool tw_scheduler_should_yield(tw_scheduler *scheduler)
{
	if (TW__CHECK(scheduler, "scheduler") || !in_turn(scheduler))
		return false;
	int64_t now_ns = tw__scheduler_now(scheduler);
	pthread_mutex_lock(&scheduler->lock);
	tw__scheduler_promote(scheduler, now_ns, SIZE_MAX);
	bool yield = turn_should_yield(scheduler, now_ns);
	pthread_mutex_unlock(&scheduler->lock);
	return yield;
}
