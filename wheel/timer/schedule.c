/*
 * Scheduling, the long way, which knows all cases (schedule_short.c is for the usual one): a slot,
 * a record, a word, an entry in this thread's lane, a look at the gate. Wait-free, except for
 * growing.
 *
 * Linearisation: the store of the control word. From then on a cancel through *out works, though
 * the entry that makes it fire is published a moment later, by the same thread.
 *
 * Against close: the push is published, then the gate is looked at (gate.h, GATE2). If that says
 * closed, the call cancels its own timer: if it wins, nothing has happened (-ESHUTDOWN); if it
 * loses, close has dealt with the timer, and it was accepted.
 */
#include "wheel/timer/schedule.h"

#include <errno.h>
#include <inttypes.h>

#include "wheel/timer/member.h"
#include "mpsc/base/probes.h"
#include "wheel/core/wake.h"
#include "wheel/timer/schedule_short.h"
#include "wheel/timer/schedule_task.h"

/* Longest push of a schedule: a base and the entry. */
enum { SCHEDULE_ENTRIES = 2 };

/* A base or padding that the call has put is published: the next push needs nothing unpublished. */
static int schedule_refused(struct tw__local *local, tw_timer *out, int error)
{
	if (local && local->lane.unpublished)
		tw__lane_publish(&local->lane);
	if (local)
		tw_bump(&local->rejected, 1);
	if (out)
		*out = (tw_timer){0};
	return error;
}

/* The thread's part of the service, which it has not used last. NULL: *error says why. */
static __attribute__((noinline)) struct tw__local *find_local(tw_service *service, int *error)
{
	bool forked = tw__forked(service);
	*error = forked ? -EPERM : -ENOMEM;
	return forked ? NULL : tw__local_of(service);
}

static __attribute__((noinline)) int schedule_out_of_range(tw_service *service, tw_timer *out)
{
	if (tw__forked(service))
		return schedule_refused(NULL, out, -EPERM);
	return schedule_refused(tw__local_of(service), out, -ERANGE); /* the caller tells */
}

/* Of the public function `call`, whose argument `what` is a time beyond the range. */
static __attribute__((noinline)) int time_out_of_range(tw_service *service, tw_timer *out,
						       const char *call, const char *what)
{
	int r = schedule_out_of_range(service, out);
	return r == -ERANGE ? tw__bad(r, call, what) : r;
}

/*
 * Delays may go the short way while the gate's word is the one of this epoch. Not so far from the
 * start that a sum with a delay could be taken for a near deadline: short_base_ns and any deadline
 * within the wheel's reach stay below 2^62.
 */
static void open_short_way(const tw_service *service, struct tw__local *local)
{
	uint64_t base_ns = local->counted_ns - service->time.start_ns + (service->time.tick_ns - 1);
	bool is_near = base_ns < TW__SHORT_BASES_NS && local->counted_ns > service->time.start_ns;
	local->short_base_ns = base_ns;
	local->short_word =
	    service->gate.asymmetric && is_near ? local->epoch_word : TW__NO_SHORT_WORD;
}

/*
 * The lane's base for delays that follow. While the driver ticks it is the published sequence
 * number, pushed only when it has changed, else a reading of the clock. Returns the instant to
 * count from: that reading, or what the driver has published for this tick, which it will correct
 * if it comes late (drain.c).
 */
static inline uint64_t put_base(tw_service *service, struct tw__local *local, uint64_t word)
{
	if (tw_likely(tw__gate_is_open(word))) {
		uint64_t sequence = tw__gate_sequence(word);
		if (tw_unlikely(local->epoch_word != word)) {
			local->epoch_word = word;
			/* its own or a later one's */
			local->counted_ns = tw_load_relaxed(&service->gate.base_ns);
			uint64_t counted = tw__entry_make(0, (uint32_t)local->counted_ns);
			tw__lane_put(&local->lane, tw__what_make(TW__KIND_EPOCH, counted),
				     sequence);
			open_short_way(service, local);
		}
		return local->counted_ns;
	}
	uint64_t now_ns = tw__clock_read(service);
	if (now_ns < local->counted_ns)
		/* the driver fell asleep in the tick whose end was counted from: G6 */
		now_ns = local->counted_ns;
	local->epoch_word = 0;
	local->short_word = TW__NO_SHORT_WORD;
	tw__lane_put(&local->lane, tw__what_make(TW__KIND_NOW, 0), now_ns);
	return now_ns;
}

/*
 * The instant to count from where nobody publishes one: a manual drive, or a clock that moves by
 * hand. Such a lane's entries all bring deadlines, and need no base; as with a base, the instant
 * never falls within a lane (G6).
 */
static inline uint64_t own_instant(tw_service *service, struct tw__local *local)
{
	uint64_t now_ns = tw__clock_read_fast(service);
	if (tw_unlikely(now_ns < local->counted_ns))
		now_ns = local->counted_ns;
	return local->counted_ns = now_ns;
}

/*
 * Takes back a timer that was pushed into a service that has closed; its extension record stays the
 * caller's.
 */
static int retract(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		   tw_timer *out)
{
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	while (tw__word_generation(word) == generation && tw__word_waits(word)) {
		bool has_record = tw__word_has_record(word);
		if (!tw__word_cas_acq_rel(&service->slots.words[slot], &word,
					  tw__word_next_free(word)))
			continue;
		const struct tw__record *record = &service->slots.records[slot];
		tw__group_leave(service, has_record ? tw_load_relaxed(&record->group) : 0, slot);
		tw__slot_put(&service->slots, &local->magazine, slot, generation + 1);
		tw__magazine_count_scheduled(&local->magazine, -1);
		return schedule_refused(local, out, -ESHUTDOWN);
	}
	return 0;
}

/* Whether a driver that sleeps must hear of a push. */
static inline bool wanted_now(tw_service *service, uint64_t tick, bool grew)
{
	return grew || tw__is_before_plan(service, tick);
}

/* The rare ends of a push: the driver sleeps, and is wanted, or has closed. */
static int after_push(tw_service *service, struct tw__local *local, uint64_t word, uint32_t slot,
		      uint32_t generation, tw_timer *out)
{
	if (tw__gate_refuses(word)) {
		int r = retract(service, local, slot, generation, out);
		/* the lane holds an entry: if the timer is close's, it must be met */
		tw__wake(service);
		return r;
	}
	tw__gate_ring(&service->gate);
	return 0;
}

/*
 * A tick that has not been turned through. Of interest to a driver that is called, perhaps many
 * times a tick.
 */
static inline bool comes_later(const tw_service *service, uint64_t tick)
{
	return tick > tw_load_relaxed(&service->gate.cursor);
}

/* Negative: refused. Else whether a new segment was begun. */
static __attribute__((noinline)) int schedule_make_room(struct tw__lane *lane)
{
	bool grew = false;
	int r = tw__lane_grow(lane, SCHEDULE_ENTRIES, &grew);
	return r ? r : grew;
}

/*
 * Inlined into each of the short calls, where `kind`, `persistent`, `ext` and perhaps `group` are
 * constants. local: NULL if it is not known yet. KIND_PADDING: not armed, without an entry.
 * persistent: TW__PERSISTENT, or 0. group: a handle, or 0.
 */
static inline __attribute__((always_inline)) int arm(tw_service *service, struct tw__local *local,
						     enum tw__kind kind, uint64_t value, tw_fn *fn,
						     void *arg, uint64_t persistent, uint32_t ext,
						     uint64_t group, tw_timer *out)
{
	int error;
	if (tw_unlikely(!local) && !(local = find_local(service, &error)))
		return schedule_refused(NULL, out, error);
	uint64_t word = tw__gate_look(&service->gate);
	if (tw_unlikely(tw__gate_refuses(word)))
		return schedule_refused(local, out, -ESHUTDOWN);
	int grew = 0;
	if (tw_unlikely(!tw__lane_has_room(&local->lane, SCHEDULE_ENTRIES))) {
		grew = schedule_make_room(&local->lane);
		if (grew < 0)
			return schedule_refused(local, out, grew);
	}
	uint64_t entry = tw__slot_get(&service->slots, &local->magazine);
	if (tw_unlikely(!entry))
		return schedule_refused(local, out, tw__slots_refusal(&service->slots));

	uint32_t slot = tw__entry_slot(entry), generation = tw__entry_generation(entry);
	if (out)
		*out = tw__handle_make(&service->slots, slot, generation);
	struct tw__record *record = &service->slots.records[slot];
	tw_store_relaxed(&record->fn, fn); /* published by WORD1 */
	tw_store_relaxed(&record->arg, arg);
	bool more = ext || group;
	if (more) {
		tw_store_release(&record->ext, ext); /* WORD5 */
		tw_store_release(&record->group, (uint32_t)group & TW__GROUP_INDEX_MASK);
	}

	uint64_t deadline_ns = value;
	if (kind == TW__KIND_DELAY && tw_likely(service->time.published)) {
		deadline_ns += put_base(service, local, word);
	} else if (kind == TW__KIND_DELAY) {
		kind = TW__KIND_DEADLINE;
		value = deadline_ns += own_instant(service, local);
	}
	uint64_t tick = tw__tick_of(service, deadline_ns);
	bool disarmed = kind == TW__KIND_PADDING;
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
	uint64_t state = (more ? TW__EXT : 0) | persistent |
			 (disarmed ? TW__UNFILED : TW__ARMED | tw__tick_bits(tick, cursor));
	if (!disarmed && tw_unlikely(state & TW__BEYOND_RANGE))
		tw__far_set(&service->slots, slot, tick); /* WORD6 */
	int entered = group ? tw__group_enter(service, slot, group) : 0;
	if (tw_unlikely(entered)) {
		tw__slot_put(&service->slots, &local->magazine, slot, generation);
		return schedule_refused(local, out, entered);
	}
	tw__magazine_count_scheduled(&local->magazine, 1);
	tw__word_arm_release(&service->slots.words[slot],
			     tw__word_make(generation, state, 0)); /* WORD1: pairs with claim */
	if (group)
		tw__group_entered(service, group);
	if (!disarmed)
		tw__lane_put(&local->lane, tw__what_make(kind, entry), value);
	if (tw_likely(service->time.published || comes_later(service, tick)))
		tw__publish_later(service, local);
	else
		tw__publish(service, local);
	TW_PROBE4(arm, service, slot, generation, deadline_ns);

	uint64_t before = word;
	word = tw__gate_look_after_push(&service->gate);
	if (tw_likely(tw__gate_is_open(word)))
		return 0;
	if (tw__gate_is_open(before))
		tick = 0; /* the driver fell asleep meanwhile, and knows nothing of this */
	if (tw_likely(!tw__gate_refuses(word) &&
		      !(word & TW__GATE_PARKED && wanted_now(service, tick, grew))))
		return 0;
	return after_push(service, local, word, slot, generation, out);
}

/* A timer in full. */
static int arm_task(tw_service *service, struct tw__local *local, const struct tw_task *task,
		    const struct tw_period *period, tw_timer *out)
{
	struct tw__arming arming = {.ext = 0};
	uint64_t now_ns = 0;
	int r = tw__task_prepare(service, local, task, period, &now_ns, &arming);
	if (r)
		return schedule_refused(local, out, r);
	uint64_t persistent = task->flags & TW_TASK_PERSISTENT ? TW__PERSISTENT : 0;
	r = arm(service, local, arming.kind, arming.value, task->fn, task->arg, persistent,
		arming.ext, task->group.id, out);
	if (tw_unlikely(r) && arming.ext)
		tw__task_discard(service, local, arming.ext);
	return r;
}

/* The short calls where contexts are in use: the thread may have one. */
static __attribute__((noinline)) int arm_with_context(tw_service *service, uint32_t flags,
						      uint64_t when_ns, tw_fn *fn, void *arg,
						      tw_timer *out)
{
	struct tw_task task = {
	    .size = sizeof task, .fn = fn, .arg = arg, .when_ns = when_ns, .flags = flags};
	if (tw__forked(service))
		return schedule_refused(NULL, out, -EPERM);
	struct tw__local *local = tw__local_of(service);
	return local ? arm_task(service, local, &task, NULL, out)
		     : schedule_refused(NULL, out, -ENOMEM);
}

int tw__after_short_push(tw_service *service, struct tw__local *local, uint64_t entry,
			 tw_timer *out)
{
	uint64_t word = tw__gate_look_after_push(&service->gate);
	if (tw__gate_is_open(word))
		return 0;
	if (tw_likely(!tw__gate_refuses(word) && !(word & TW__GATE_PARKED)))
		return 0;
	return after_push(service, local, word, tw__entry_slot(entry), tw__entry_generation(entry),
			  out);
}

int tw__schedule_in(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	if (tw_unlikely(!service || !fn))
		return tw__refuse(-EINVAL, "tw_schedule", "%s is NULL", service ? "fn" : "service");
	if (tw_unlikely(delay_ns > TW_MAX_DELAY_NS))
		return time_out_of_range(service, out, "tw_schedule", "delay_ns");
	if (tw__context_is_on())
		return arm_with_context(service, 0, delay_ns, fn, arg, out);
	return arm(service, tw__local_at_hand(service), TW__KIND_DELAY, delay_ns, fn, arg, 0, 0, 0,
		   out);
}

int tw__schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	if (tw_unlikely(!service || !fn))
		return tw__refuse(-EINVAL, "tw_schedule_at", "%s is NULL",
				  service ? "fn" : "service");
	if (tw_unlikely(tw__beyond_range(service, deadline_ns)))
		return time_out_of_range(service, out, "tw_schedule_at", "deadline_ns");
	if (tw__context_is_on())
		return arm_with_context(service, TW_TASK_AT, deadline_ns, fn, arg, out);
	return arm(service, tw__local_at_hand(service), TW__KIND_DEADLINE, deadline_ns, fn, arg, 0,
		   0, 0, out);
}

/* A member that is nothing else. */
static inline int arm_member(tw_service *service, const struct tw_task *task, tw_timer *out)
{
	struct tw__local *local = tw__local_at_hand(service);
	return task->flags & TW_TASK_AT ? arm(service, local, TW__KIND_DEADLINE, task->when_ns,
					      task->fn, task->arg, 0, 0, task->group.id, out)
					: arm(service, local, TW__KIND_DELAY, task->when_ns,
					      task->fn, task->arg, 0, 0, task->group.id, out);
}

static __attribute__((noinline)) int schedule_task(const char *call, tw_service *service,
						   const struct tw_task *task, tw_timer *out)
{
	struct tw_task other;
	struct tw_period period;
	int r = tw__task_read(call, service, &task, &other, &period);
	if (r)
		return r == -ERANGE ? schedule_out_of_range(service, out) : r;
	struct tw__local *local = tw__local_of(service);
	if (!local)
		return schedule_refused(NULL, out, -ENOMEM);
	return arm_task(service, local, task, task->period ? &period : NULL, out);
}

int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out)
{
	if (tw_unlikely(!service || !task))
		return tw__invalid("%s is NULL", service ? "task" : "service");
	int r;
	bool is_short = tw__task_is_short(task) && !tw__context_is_on();
	if (tw_likely(is_short && task->group.id && !task->flags) &&
	    tw_likely(tw__schedule_member_shortly(service, task->group.id, task->when_ns, task->fn,
						  task->arg, out, &r)))
		return r;
	if (tw__forked(service))
		return schedule_refused(NULL, out, -EPERM);
	if (!is_short || !tw__when_is_in_range(service, task->flags, task->when_ns))
		return schedule_task(__func__, service, task, out);
	if (task->group.id)
		return arm_member(service, task, out);
	return task->flags ? tw_schedule_at(service, task->when_ns, task->fn, task->arg, out)
			   : tw_schedule(service, task->when_ns, task->fn, task->arg, out);
}

int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn, void *arg,
		      tw_timer *out)
{
	if (!service || !period || !fn)
		return tw__invalid("%s is NULL", !service ? "service" : period ? "fn" : "period");
	struct tw_task task = {.size = sizeof task, .fn = fn, .arg = arg, .period = period};
	return tw__forked(service) ? schedule_refused(NULL, out, -EPERM)
				   : schedule_task(__func__, service, &task, out);
}
