/* From a task's submit to its turn, or to its end without one. Calls run.c and executor/base. */

#include "executor/scheduler/internal.h"
#include "mpsc/base/reserve.h"

#define MOST_NS (INT64_C(1) << 62)

/* -------------------------------------------------------------------- creation */

static const int64_t usual_timeout_ns[TW_PRIORITIES] = {
    [TW_PRIORITY_IMMEDIATE] = -INT64_C(1000000),
    [TW_PRIORITY_USER_BLOCKING] = INT64_C(250000000),
    [TW_PRIORITY_NORMAL] = INT64_C(5000000000),
    [TW_PRIORITY_LOW] = INT64_C(10000000000),
    [TW_PRIORITY_IDLE] = INT64_C(1073741823000000),
};

static bool timeouts_are_good(const struct tw_scheduler_config *config)
{
	for (int i = 0; i < TW_PRIORITIES; i++)
		if (config->timeout_ns[i] > MOST_NS || config->timeout_ns[i] < -MOST_NS)
			return false;
	return config->timeout_ns[TW_PRIORITY_NONE] == 0;
}

/* Copies a caller's config, checks it and fills in the defaults. cfg may be NULL. */
static int read_config(struct tw_scheduler_config *config, const struct tw_scheduler_config *cfg)
{
	int r = TW__CONFIG_READ(tw_scheduler_config, config, executor, cfg);
	if (r)
		return r;
	const char *bad = NULL;
	bool is_manual = config->host == TW_HOST_MANUAL;
	tw__need(&bad, config->max_tasks <= TW__NODES_MAX, "max_tasks");
	tw__need(&bad, config->slice_ns <= (uint64_t)MOST_NS, "slice_ns");
	tw__need(&bad, timeouts_are_good(config), "timeout_ns");
	tw__need(&bad, (unsigned)config->host <= TW_HOST_MANUAL, "host");
	tw__need(&bad, is_manual ? !config->executor : tw__executor_is_sound(config->executor),
		 "executor");
	tw__need(&bad, is_manual || !(config->wanted || config->wanted_arg), "wanted");
	if (!config->max_tasks)
		config->max_tasks = 1 << 20;
	if (!config->slice_ns)
		config->slice_ns = 5000000;
	for (int i = 0; i < TW_PRIORITIES; i++)
		if (!config->timeout_ns[i])
			config->timeout_ns[i] = usual_timeout_ns[i];
	return tw__bad_member(-EINVAL, "tw_scheduler_create", "tw_scheduler_config", bad);
}

static void scheduler_fini(struct tw__object *object)
{
	tw__free(TW__OWNER(tw_scheduler, object, object)->tasks.nodes);
}

static bool scheduler_look(struct tw__object *object, struct tw__figures *out)
{
	tw_scheduler *scheduler = TW__OWNER(tw_scheduler, object, object);
	out->running = scheduler->current != NULL;
	out->waiting = scheduler->tasks.count;
	out->delayed = object->delays;
	out->rejected = scheduler->stats.rejected;
	return false;
}

static const struct tw__object_kind scheduler_kind = {"scheduler", sizeof(tw_scheduler),
						      offsetof(tw_scheduler, object),
						      scheduler_fini, scheduler_look};

int tw_scheduler_create(tw_scheduler **out, tw_service *service,
			const struct tw_scheduler_config *cfg)
{
	struct tw_scheduler_config config;
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	int r = read_config(&config, cfg);
	if (r)
		return r;
	struct tw__object *object;
	r = tw__object_create(&object, service, config.executor, tw__scheduler_host_called,
			      &scheduler_kind);
	if (r)
		return r;
	tw_scheduler *scheduler = TW__OWNER(tw_scheduler, object, object);
	scheduler->config = config;
	tw__object_set_name(&scheduler->object, config.name);
	*out = scheduler;
	return 0;
}

/* ---------------------------------------------------------------------- submit */

/* Clocks may stand anywhere below 2^63. */
static int64_t add(int64_t instant_ns, int64_t span_ns)
{
	int64_t sum;
	return __builtin_add_overflow(instant_ns, span_ns, &sum) ? INT64_MAX : sum;
}

/* On the tick thread. */
static void on_due(void *arg)
{
	struct tw__task *task = arg;
	tw_scheduler *scheduler = tw__task_owner(task);
	tw__object_lock(&scheduler->object);
	TW_ASSERT(task->node.state == TW__TASK_DELAYED || task->node.state == TW__TASK_ENDED);
	if (task->node.state == TW__TASK_ENDED) {
		tw__node_put(tw__scheduler_nodes(scheduler), &task->node);
	} else {
		tw__object_delayed_leave(&scheduler->object, &task->place);
		task->node.state = TW__TASK_READY;
		/* planted: delayed_by_start */
		tw__heap_push(&scheduler->tasks, task);
	}
	tw__scheduler_unlock(scheduler, 1);
}

/* Tasks that have not ended. */
static uint32_t living(const tw_scheduler *scheduler)
{
	return scheduler->tasks.count + (uint32_t)scheduler->object.delays +
	       (scheduler->current != NULL);
}

/* The lock is held. */
static int accept(tw_scheduler *scheduler, struct tw__task *task, uint64_t start_ns, bool delayed)
{
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	if (tw__scheduler_closed(scheduler))
		return -ESHUTDOWN;
	if (living(scheduler) >= scheduler->config.max_tasks)
		return -EAGAIN;
	int r = tw__heap_reserve(&scheduler->tasks, living(scheduler) + 1);
	if (!r && delayed)
		r = tw__object_delay(&scheduler->object, TW_TASK_AT, start_ns, on_due, task,
				     &task->timer);
	if (r)
		return r;
	task->number = ++scheduler->last_number;
	scheduler->stats.submitted++;
	if (delayed) {
		task->node.state = TW__TASK_DELAYED;
		tw__object_delayed_join(&scheduler->object, &task->place);
		scheduler->stats.timers_armed++;
	} else {
		task->node.state = TW__TASK_READY;
		tw__heap_push(&scheduler->tasks, task);
	}
	return 0;
}

static int submit(tw_scheduler *scheduler, const struct tw_scheduler_task *spec,
		  tw_scheduler_task_id *out)
{
	struct tw__node *node;
	enum tw_priority priority = spec->priority;
	if ((unsigned)priority < TW_PRIORITY_IMMEDIATE || (unsigned)priority > TW_PRIORITY_IDLE)
		priority = TW_PRIORITY_NORMAL;
	int64_t start_ns = add(tw__scheduler_now(scheduler), (int64_t)spec->delay_ns);
	int64_t timeout_ns = spec->flags & TW_SCHEDULER_TASK_TIMEOUT
				 ? spec->timeout_ns
				 : scheduler->config.timeout_ns[priority];
	int r = tw__node_get(tw__scheduler_nodes(scheduler), &scheduler->object, &node);
	struct tw__task *task = (struct tw__task *)node;
	if (!r) {
		task->fn = spec->fn;
		task->told =
		    (struct tw__told){spec->done, spec->arg, tw__context_capture(), spec->name};
		task->expiration_ns = add(start_ns, timeout_ns);
		task->node.mode = (uint8_t)priority;
		task->node.flags = false;
	}
	tw__object_lock(&scheduler->object); /* planted: submit_unlocked */
	if (!r) {
		r = accept(scheduler, task, (uint64_t)start_ns, spec->delay_ns != 0);
		if (r)
			tw__node_put(tw__scheduler_nodes(scheduler), node);
		else if (out)
			*out = (tw_scheduler_task_id){tw__node_handle(node)};
	}
	scheduler->stats.rejected += r != 0;
	tw__scheduler_unlock(scheduler, 0);
	return r;
}

int tw_scheduler_submit(tw_scheduler *scheduler, enum tw_priority priority, tw_turn_fn *fn,
			void *arg, tw_scheduler_task_id *out)
{
	const struct tw_scheduler_task spec = {.fn = fn, .arg = arg, .priority = priority};
	int r = fn ? TW__OBJECT_CHECK(scheduler, "scheduler") : tw__invalid("fn is NULL");
	return r ? r : submit(scheduler, &spec, out);
}

int tw_scheduler_submit_task(tw_scheduler *scheduler, const struct tw_scheduler_task *spec,
			     tw_scheduler_task_id *out)
{
	struct tw_scheduler_task known;
	const char *bad = NULL, *beyond = NULL;
	int r = spec ? TW__OBJECT_CHECK(scheduler, "scheduler") : tw__invalid("task is NULL");
	if (!r)
		r = TW__STRUCT_READ(tw_scheduler_task, &known, delay_ns, spec);
	if (r)
		return r;
	tw__need(&bad, known.fn, "fn");
	tw__need(&bad, !(known.flags & ~(uint32_t)TW_SCHEDULER_TASK_TIMEOUT), "flags");
	tw__need(&bad, known.flags & TW_SCHEDULER_TASK_TIMEOUT || !known.timeout_ns, "timeout_ns");
	tw__need(&beyond, known.delay_ns <= TW_MAX_DELAY_NS, "delay_ns");
	tw__need(&beyond, known.timeout_ns <= MOST_NS && known.timeout_ns >= -MOST_NS,
		 "timeout_ns");
	r = tw__bad_member(bad ? -EINVAL : -ERANGE, "tw_scheduler_submit_task", "tw_scheduler_task",
			   bad ? bad : beyond);
	return r ? r : submit(scheduler, &known, out);
}

/* ------------------------------------------------------------------------ ends */

/* Ends a task that waits. The lock is held; it is released while the done function is called. */
static void end_waiting(tw_scheduler *scheduler, struct tw__task *task, enum tw_fate fate)
{
	struct tw__object *object = &scheduler->object;
	struct tw__told told = task->told; /* the node may be gone */
	bool comes = false;                /* its timer's callback */
	TW_ASSERT_TINY_LOCKED(&object->lock);
	TW_ASSERT(task->node.state == TW__TASK_READY || task->node.state == TW__TASK_DELAYED);
	if (task->node.state == TW__TASK_READY) {
		tw__heap_remove(&scheduler->tasks, task);
	} else {
		tw__object_delayed_leave(&scheduler->object, &task->place);
		comes = !tw__object_undelay(object, task->timer);
	}
	*(fate == TW_FATE_CANCELLED ? &scheduler->stats.cancelled : &scheduler->stats.dropped) += 1;
	task->node.state = TW__TASK_ENDED;
	if (!comes)
		tw__node_put(tw__scheduler_nodes(scheduler), &task->node);
	if (!told.done)
		return;
	object->releasing++;
	tw__object_unlock(object);
	tw__scheduler_tell(scheduler, &told, NULL, fate,
			   fate == TW_FATE_CANCELLED ? -ECANCELED : -ESHUTDOWN);
	tw__object_lock(object);
	object->releasing--;
	tw__object_ring(object);
}

int tw_scheduler_cancel(tw_scheduler *scheduler, tw_scheduler_task_id handle)
{
	int r = TW__OBJECT_CHECK(scheduler, "scheduler");
	if (r)
		return r;
	r = TW_GONE;
	tw__object_lock(&scheduler->object);
	struct tw__task *task = (struct tw__task *)(void *)tw__node_find(
	    tw__scheduler_nodes(scheduler), &scheduler->object, handle.id);
	if (task && task->node.state == TW__TASK_RUNNING) {
		task->node.flags = true;
		r = TW_RUNNING;
	} else if (task && task->node.state != TW__TASK_ENDED) {
		end_waiting(scheduler, task, TW_FATE_CANCELLED);
		r = TW_CANCELLED;
	}
	tw__object_unlock(&scheduler->object);
	return r;
}

/*
 * The lock is held; it is released while done functions are called. Work that is out runs nothing
 * from now on. It is waited for, except that of a manual host and of the driver, which may be this
 * thread.
 */
static void shut(tw_scheduler *scheduler)
{
	struct tw__object *object = &scheduler->object;
	struct tw__base base = tw__object_base(object);
	struct tw__task *task;
	tw__object_close(object);
	if (scheduler->host == TW__HOST_REQUESTED &&
	    (scheduler->config.host == TW_HOST_MANUAL || base.executor == tw_executor_inline()))
		scheduler->host = TW__HOST_IDLE;
	else
		tw__base_leave_work(&base, &object->work);
	while ((task = object->delayed ? TW__OWNER(struct tw__task, place, object->delayed)
				       : tw__scheduler_first(scheduler)))
		end_waiting(scheduler, task, TW_FATE_DROPPED);
}

static bool is_busy(const tw_scheduler *scheduler)
{
	return scheduler->host != TW__HOST_IDLE || scheduler->object.releasing;
}

int tw_scheduler_close(tw_scheduler *scheduler, uint64_t timeout_ns)
{
	int r = TW__OBJECT_CHECK(scheduler, "scheduler");
	if (r)
		return r;
	if (tw__inside_object(&scheduler->object, NULL))
		return tw__waits_inside(__func__);
	tw__object_lock(&scheduler->object);
	shut(scheduler);
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	while (is_busy(scheduler) && tw__object_await(&scheduler->object, deadline_ns))
		continue;
	r = is_busy(scheduler) ? -ETIMEDOUT : 0;
	tw__object_unlock(&scheduler->object);
	return r;
}

int tw_scheduler_destroy(tw_scheduler *scheduler)
{
	if (!scheduler)
		return 0;
	if (tw__inside_object(&scheduler->object, NULL))
		return tw__waits_inside(__func__);
	if (tw__object_destroy_forked(&scheduler->object))
		return 0;
	tw__object_lock(&scheduler->object);
	shut(scheduler);
	while (scheduler->host == TW__HOST_RUNNING || scheduler->object.releasing)
		tw__object_await(&scheduler->object, UINT64_MAX);
	tw__object_destroy(&scheduler->object);
	return 0;
}

/* ------------------------------------------------------------------ statistics */

int tw_scheduler_stats(tw_scheduler *scheduler, struct tw_scheduler_stats *out)
{
	int r = TW__OUT_CHECK(tw_scheduler_stats, out, completed);
	if (!r)
		r = TW__OBJECT_CHECK(scheduler, "scheduler");
	if (r)
		return r;
	tw__object_lock(&scheduler->object);
	struct tw_scheduler_stats stats = scheduler->stats;
	stats.delayed = scheduler->object.delays;
	stats.host_timer = stats.delayed != 0;
	stats.ready = living(scheduler) - stats.delayed;
	stats.host_requested = scheduler->host == TW__HOST_REQUESTED;
	tw__object_unlock(&scheduler->object);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
