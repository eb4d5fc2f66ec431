/* The slow parts of objects: birth, waits, the end. Calls the base's holds and the timers. */
#include "executor/base/object.h"

#include <sched.h>
#include <string.h>

#include "wheel/timer/schedule.h"

_Thread_local struct tw__inside *tw__innermost_inside;

bool tw__inside_object(const struct tw__object *object, const void *item)
{
	for (const struct tw__inside *in = tw__innermost_inside; in; in = in->outer)
		if (in->object == object && (!item || in->item == item))
			return true;
	return false;
}

/* -------------------------------------------------------------------- an executor */

/*
 * The timers end as cancelled. The executor of their own service, whose driver is the caller, calls
 * their releases.
 */
static int pass_on(const tw_executor *self, tw_batch *batch, size_t n)
{
	tw_executor *executor = tw__batch_service(batch)->executor;
	tw__batch_end_all(batch);
	if (executor == tw_executor_inline() || executor == self) {
		tw__batch_use_up(batch, (unsigned)n);
		return 0;
	}
	return executor->ops->submit(executor, batch, n);
}

static int submit_batch(tw_executor *self, tw_batch *batch, size_t n)
{
	struct tw__object *object = (struct tw__object *)(self + 1);
	bool taken =
	    tw__object_push(object, (tw__link)batch | TW__FOREIGN, tw__batch_is_work(batch));
	return taken ? 0 : pass_on(self, batch, n);
}

const struct tw_executor_ops tw__object_ops = {sizeof tw__object_ops, submit_batch};

static struct tw__object *object_behind(tw_executor *executor)
{
	return executor && executor->ops == &tw__object_ops ? (struct tw__object *)(executor + 1)
							    : NULL;
}

bool tw__executor_is_closed(tw_executor *executor)
{
	struct tw__object *object = object_behind(executor);
	return object && tw_load_relaxed(&object->word) & TW__CLOSED;
}

/* ------------------------------------------------------------------ birth and death */

int tw__object_create(struct tw__object **out, tw_service *service, tw_executor *executor,
		      tw__work_fn *run, const struct tw__object_kind *kind)
{
	struct tw__base base = {0};
	size_t bytes = (kind->size + TW__CACHE_LINE - 1) / TW__CACHE_LINE * TW__CACHE_LINE;
	char *memory = tw__alloc_aligned(TW__CACHE_LINE, bytes);
	if (!memory)
		return -ENOMEM;
	int r = service ? tw__base_hold(&base, service, executor) : 0;
	if (!r && service && (r = tw__living_need(service)))
		tw__base_leave(&base, TW__BASE_OVER);
	if (r) {
		tw__free(memory);
		return r;
	}
	struct tw__object *below = object_behind(base.executor);
	if (below) {
		tw__object_lock(below);
		below->uppers++;
		below->users++;
		tw__object_unlock(below);
	}
	memset(memory, 0, bytes);
	struct tw__object *object = *out = (struct tw__object *)(void *)(memory + kind->offset);
	object->executor = base.executor;
	object->users = 1;
	object->pooled = base.pooled;
	object->listed.kind = kind;
	tw__work_init(&object->work, service, base.executor, run);
	if (service && kind->name) {
		struct tw__living *living = tw__living_of(service);
		tw__tiny_lock(&living->lock);
		tw__line_append(&living->objects, tw__in_line_link(&object->listed.place));
		tw__tiny_unlock(&living->lock);
	}
	return 0;
}

int tw__object_set_name(struct tw__object *object, const char *name)
{
	tw__object_lock(object);
	object->listed.name = name;
	tw__object_unlock(object);
	return 0;
}

void tw__object_dispose(struct tw__object *object)
{
	const struct tw__object_kind *kind = object->listed.kind;
	if (kind->fini)
		kind->fini(object);
	tw__free((char *)object - kind->offset);
}

/* From the list. True: it stays with the service. */
static bool object_retire(struct tw__object *object, struct tw__living *living)
{
	struct tw__in_line *place = &object->listed.place;
	bool stays = object->exposed;
	tw__tiny_lock(&living->lock);
	tw__line_leave(&living->objects, place);
	if (stays) {
		place->next = 0; /* a fork may come before the append is complete */
		tw__line_append(&living->retired, tw__in_line_link(place));
	}
	tw__tiny_unlock(&living->lock);
	return stays;
}

void tw__object_free(struct tw__object *object)
{
	struct tw__base base = tw__object_base(object);
	struct tw__object *below = object_behind(base.executor);
	bool listed = base.service && object->listed.kind->name;
	if (!listed || !object_retire(object, tw__living_of(base.service)))
		tw__object_dispose(object);
	if (below) {
		tw__object_lock(below);
		below->uppers--;
		tw__object_drop(below, 1);
	}
	if (base.service) /* last: the service may be closed from here on */
		tw__base_leave(&base, TW__BASE_OVER);
}

bool tw__object_await(struct tw__object *object, uint64_t deadline_ns)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	uint32_t rings = tw_load_relaxed(&object->rings); /* OBJECT3 */
	object->sleepers++;
	tw__object_unlock(object);
	bool in_time = tw__futex_wait(&object->rings, rings, deadline_ns);
	tw__object_lock(object);
	object->sleepers--;
	return in_time;
}

void tw__object_breathe(struct tw__object *object, unsigned *steps)
{
	enum { PIECE = 64 };
	if (++*steps < PIECE)
		return;
	*steps = 0;
	tw__object_unlock(object);
	sched_yield();
	tw__object_lock(object);
}

bool tw__object_close(struct tw__object *object)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	if (tw_load_relaxed(&object->closed))
		return false;
	tw_store_relaxed(&object->closed, true);
	tw_or_seq_cst(&object->word, TW__CLOSED);
	return true;
}

/* By others than its creator, and those above it. */
static bool object_is_used(struct tw__object *object)
{
	return object->users - object->uppers > 1 || tw_load_relaxed(&object->word) & TW__ACTIVE;
}

void tw__object_destroy(struct tw__object *object)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	struct tw__base base = tw__object_base(object);
	object->listed.name = NULL; /* the user may free it */
	bool may_wait = base.service && tw__base_leave(&base, TW__BASE_MAY_WAIT) &&
			!tw__innermost_inside && !(object->later && !base.service->threaded);
	while (may_wait && object_is_used(object))
		tw__object_await(object, UINT64_MAX);
	if (base.service && (object->users > 1 || object_is_used(object))) {
		tw__base_leave_work(&base, &object->work);
		tw__base_leave(&base, TW__BASE_LEFT);
		object->left = true;
	}
	tw__object_drop(object, 1);
}

bool tw__object_destroy_forked(struct tw__object *object)
{
	struct tw__base base = tw__object_base(object);
	if (!tw__forked(base.service))
		return false;
	tw__object_dispose(object);
	tw__base_leave(&base, TW__BASE_OVER);
	return true;
}

int tw__object_delay(struct tw__object *object, uint32_t flags, uint64_t when_ns, tw_fn *fn,
		     void *arg, tw_timer *out)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	struct tw_task task = {.size = sizeof task,
			       .fn = fn,
			       .arg = arg,
			       .when_ns = when_ns,
			       .flags = flags | TW_TASK_CONTEXT,
			       .executor = tw_executor_inline()};
	if (tw_unlikely(!tw__when_is_in_range(tw__object_service(object), flags, when_ns))) {
		/* as far as the service can express */
		task.flags = TW_TASK_CONTEXT;
		task.when_ns = TW_MAX_DELAY_NS;
	}
	int r = tw_schedule_task(tw__object_service(object), &task, out);
	object->users += r == 0;
	return r;
}

bool tw__object_undelay(struct tw__object *object, tw_timer timer)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	bool taken_back = tw_cancel(tw__object_service(object), timer) == TW_CANCELLED;
	object->users -= taken_back;
	return taken_back;
}
