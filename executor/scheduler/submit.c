/* Submit and cancel, and the two heaps. */

#include "executor/scheduler/submit.h"
#include "executor/scheduler/host.h"
#include "executor/scheduler/run.h"

#define TIMEOUT_MAX_NS (INT64_C(1) << 62)

/* ------------------------------------------------------------------- heaps */

void tw__scheduler_give_back(tw_scheduler *scheduler, struct tw__task *task)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	if (tw_unlikely(scheduler->spares == TW__SCHEDULER_SPARES)) {
		tw__node_put(&scheduler->nodes, &task->node);
		return;
	}
	if (tw_unlikely(!tw__node_end(&scheduler->nodes, &task->node)))
		return;
	scheduler->spares++;
	task->arg = scheduler->spare;
	scheduler->spare = task;
}

void tw__scheduler_forget(tw_scheduler *scheduler, struct tw__task *task)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	scheduler->stats.cleared--;
	scheduler->timers_cleared -= task->delayed;
	tw__scheduler_give_back(scheduler, task);
}

struct tw__task *tw__scheduler_head(tw_scheduler *scheduler, struct tw__heap *heap)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	struct tw__task *task;
	while ((task = tw__task_of(tw__heap_peek(heap))) && tw__task_is_cleared(task)) {
		tw__heap_pop_loose(heap);
		tw__scheduler_forget(scheduler, task);
	}
	return task;
}

void tw__scheduler_promote(tw_scheduler *scheduler, int64_t now_ns, size_t most)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	struct tw__task *task;
	while (most-- && (task = tw__scheduler_head(scheduler, &scheduler->timers)) &&
	       tw__heap_first_key(&scheduler->timers) <= now_ns) {
		tw__heap_pop_loose(&scheduler->timers);
		task->delayed = false;
		/* SCHEDULER4 */
		/* planted: delayed_by_start */
		tw__heap_push_loose(&scheduler->tasks, &task->item, task->expiration_ns);
	}
}

static bool scheduler_keep(struct tw__heap_item *item, void *arg)
{
	struct tw__task *task = tw__task_of(item);
	if (!tw__task_is_cleared(task))
		return true;
	tw__scheduler_forget(arg, task);
	return false;
}

/*
 * Of n submits and cancels each pays for a few entries at most: as many entries are newly cleared
 * as are looked at.
 */
static void sweep_if_many(tw_scheduler *scheduler)
{
	uint64_t all = scheduler->tasks.count + (uint64_t)scheduler->timers.count;
	if (scheduler->stats.cleared <= all - scheduler->stats.cleared)
		return;
	tw__heap_sweep(&scheduler->tasks, scheduler_keep, scheduler);
	tw__heap_sweep(&scheduler->timers, scheduler_keep, scheduler);
	scheduler->stats.sweeps++;
}

static void scheduler_clear(tw_scheduler *scheduler, struct tw__task *task)
{
	task->fn = NULL;
	task->running = false;
	scheduler->stats.cleared++;
	scheduler->timers_cleared += task->delayed;
}

void tw__scheduler_remove_ran(tw_scheduler *scheduler, struct tw__task *task)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	scheduler_clear(scheduler, task);
	if (!tw__heap_has(&task->item)) {
		tw__scheduler_forget(scheduler, task); /* close has taken it out */
	} else if (tw__heap_peek(&scheduler->tasks) == &task->item) {
		tw__heap_pop_loose(&scheduler->tasks);
		tw__scheduler_forget(scheduler, task);
	}
	sweep_if_many(scheduler); /* one less lives */
}

/* -------------------------------------------------------------------- post */

static int scheduler_task_check(const struct tw_scheduler_task *task)
{
	const char *bad = NULL, *beyond = NULL;
	bool has_timeout = task->flags & TW_SCHEDULER_TASK_TIMEOUT;
	tw__need(&bad, task->fn, "fn");
	tw__need(&bad, !(task->flags & ~(uint32_t)TW_SCHEDULER_TASK_TIMEOUT), "flags");
	tw__need(&bad, has_timeout || !task->timeout_ns, "timeout_ns");
	tw__need(&beyond, task->delay_ns <= TW_MAX_DELAY_NS, "delay_ns");
	tw__need(&beyond, task->timeout_ns <= TIMEOUT_MAX_NS && task->timeout_ns >= -TIMEOUT_MAX_NS,
		 "timeout_ns");
	return tw__bad_member(bad ? -EINVAL : -ERANGE, "tw_scheduler_submit_task",
			      "tw_scheduler_task", bad ? bad : beyond);
}

/* Clocks may stand anywhere below 2^63. */
static int64_t add(int64_t instant_ns, int64_t span_ns)
{
	int64_t sum;
	return __builtin_add_overflow(instant_ns, span_ns, &sum) ? INT64_MAX : sum;
}

/* What is computed before the lock is taken. */
struct request {
	const struct tw_scheduler_task *spec;
	int64_t start_ns;
	void *context;
	tw_scheduler_task_id *out;
};

static int scheduler_make_room(tw_scheduler *scheduler, bool delayed)
{
	int r =
	    /* SCHEDULER4 */
	    tw__heap_reserve(&scheduler->tasks,
			     scheduler->tasks.count + scheduler->timers.count + 1);
	if (!r && delayed)
		r = tw__heap_reserve(&scheduler->timers, scheduler->timers.count + 1);
	return r;
}

static void scheduler_fill(const tw_scheduler *scheduler, struct tw__task *task,
			   const struct request *request)
{
	const struct tw_scheduler_task *spec = request->spec;
	enum tw_priority priority = tw__priority_known(spec->priority);
	int64_t timeout_ns = spec->flags & TW_SCHEDULER_TASK_TIMEOUT
				 ? spec->timeout_ns
				 : scheduler->config.timeout_ns[priority];
	task->fn = spec->fn;
	task->arg = spec->arg;
	task->done = spec->done;
	task->context = request->context;
	task->name = spec->name;
	task->expiration_ns = add(request->start_ns, timeout_ns);
	task->priority = (uint8_t)priority;
	task->running = task->cancelled = false;
	task->delayed = spec->delay_ns != 0;
}

static void scheduler_push(tw_scheduler *scheduler, struct tw__task *task, int64_t start_ns)
{
	tw__heap_item_init(&task->item, ++scheduler->last_number);
	if (task->delayed)
		tw__heap_push_loose(&scheduler->timers, &task->item, start_ns);
	else
		tw__heap_push_loose(&scheduler->tasks, &task->item, task->expiration_ns);
	scheduler->stats.submitted++;
}

/* Tasks that have not ended. Cancelled ones that still take room in a heap do not count. */
static uint64_t living(const struct tw_scheduler_stats *stats)
{
	return stats->submitted - stats->completed - stats->failed - stats->cancelled -
	       stats->dropped;
}

/* The lock is held. */
static int accept(tw_scheduler *scheduler, struct tw__task *task, const struct request *request)
{
	if (scheduler->closed)
		return -ESHUTDOWN;
	if (living(&scheduler->stats) >= scheduler->config.max_tasks)
		return -EAGAIN;
	int r = scheduler_make_room(scheduler, request->spec->delay_ns != 0);
	if (r)
		return r;
	scheduler_fill(scheduler, task, request);
	if (request->out)
		*request->out = (tw_scheduler_task_id){tw__node_handle(&task->node)};
	scheduler_push(scheduler, task, request->start_ns);
	return 0;
}

/* The lock is held; it is released while memory is allocated. */
static int take_node(tw_scheduler *scheduler, struct tw__task **out)
{
	struct tw__node *node = NULL;
	*out = scheduler->spare;
	if (tw_likely(*out != NULL)) {
		scheduler->spare = (*out)->arg;
		scheduler->spares--;
		return 0;
	}
	pthread_mutex_unlock(&scheduler->lock);
	int r = tw__node_get(&scheduler->nodes, &node);
	pthread_mutex_lock(&scheduler->lock);
	*out = (struct tw__task *)node;
	return r;
}

static int submit_checked(tw_scheduler *scheduler, const struct tw_scheduler_task *spec,
			  tw_scheduler_task_id *out)
{
	struct tw__task *task;
	struct request request = {.spec = spec, .out = out, .context = tw__context_capture()};
	request.start_ns = add(tw__scheduler_now(scheduler), (int64_t)spec->delay_ns);
	pthread_mutex_lock(&scheduler->lock); /* planted: submit_unlocked */
	int r = take_node(scheduler, &task);
	if (!r) {
		r = accept(scheduler, task, &request);
		if (r)
			tw__scheduler_give_back(scheduler, task);
	}
	scheduler->stats.rejected += r != 0;
	tw__scheduler_unlock(scheduler);
	return r;
}

int tw_scheduler_submit(tw_scheduler *scheduler, enum tw_priority priority, tw_turn_fn *fn,
			void *arg, tw_scheduler_task_id *out)
{
	const struct tw_scheduler_task spec = {.fn = fn, .arg = arg, .priority = priority};
	int r = fn ? TW__CHECK(scheduler, "scheduler") : tw__invalid("fn is NULL");
	return r ? r : submit_checked(scheduler, &spec, out);
}

int tw_scheduler_submit_task(tw_scheduler *scheduler, const struct tw_scheduler_task *spec,
			     tw_scheduler_task_id *out)
{
	struct tw_scheduler_task known;
	int r = spec ? TW__CHECK(scheduler, "scheduler") : tw__invalid("task is NULL");
	if (!r)
		r = TW__STRUCT_READ(tw_scheduler_task, &known, delay_ns, spec);
	if (!r)
		r = scheduler_task_check(&known);
	return r ? r : submit_checked(scheduler, &known, out);
}

/* ------------------------------------------------------------------ cancel */

/* The lock is held. TW_CANCELLED: call the done function of *ending. */
static int scheduler_cancel(tw_scheduler *scheduler, struct tw__task *task,
			    struct tw__deferred_done *deferred)
{
	if (tw__task_is_cleared(task))
		return TW_GONE;
	if (task->running) {
		task->cancelled = true;
		return TW_RUNNING;
	}
	*deferred = tw__deferred_done_of(task);
	scheduler_clear(scheduler, task);
	scheduler->stats.cancelled++;
	sweep_if_many(scheduler);
	return TW_CANCELLED;
}

int tw_scheduler_cancel(tw_scheduler *scheduler, tw_scheduler_task_id handle)
{
	struct tw__deferred_done deferred;
	int r = TW__CHECK(scheduler, "scheduler");
	if (r)
		return r;
	struct tw__node *node = tw__node_find(&scheduler->nodes, handle.id);
	if (!node)
		return TW_GONE;
	pthread_mutex_lock(&scheduler->lock);
	int outcome = tw__node_is(node, handle.id)
			  ? scheduler_cancel(scheduler, (struct tw__task *)node, &deferred)
			  : TW_GONE;
	/* close and destroy wait for the done function */
	bool held = outcome == TW_CANCELLED && deferred.done;
	scheduler->host.out += held;
	pthread_mutex_unlock(&scheduler->lock);
	if (outcome == TW_CANCELLED)
		tw__scheduler_tell(scheduler, deferred, TW_FATE_CANCELLED, -ECANCELED);
	if (held) {
		pthread_mutex_lock(&scheduler->lock);
		scheduler->host.out--;
		tw__scheduler_unlock_returned(scheduler);
	}
	return outcome;
}
