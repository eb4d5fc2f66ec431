/*
 * Scheduling: a slot, a record, a word, an entry in this thread's lane, a look at the gate. Calls
 * the magazine, the lane and the gate; for a task schedule_task.c, for a member group.h.
 *
 * The short way knows what is usual. All its checks happen before the first store. If one fails,
 * the slow one handles the call from the start. Usual means that
 *   - the kernel has membarrier, and this thread has used this service last: not in a child;
 *   - its magazine and its lane's segment have room; the deadline lies within the wheel's reach;
 *   - for a delay: the gate is open, and its word is that of the lane's epoch (open_short_way).
 *       Where nobody publishes an instant to count from, a delay is a deadline (schedule_counted);
 *   - for a deadline: it lies ahead, and the gate accepts. A driver that sleeps (GATE4) is woken if
 *       its plan is later.
 * Both ways are wait-free, except for growing, and for the lock of a group. Linearisation: the
 * store of the control word.
 *
 * Against close: the push is published, then the gate is looked at (GATE2). If that says closed,
 * the call takes its timer back: if it can, nothing has happened (-ESHUTDOWN); if not, close has
 * dealt with the timer, and it was accepted.
 */
#include "wheel/timer/schedule.h"

#include <errno.h>

#include "mpsc/base/probes.h"
#include "wheel/core/frame.h"
#include "wheel/core/wake.h"
#include "wheel/timer/cancel.h"
#include "wheel/timer/group.h"

enum { SCHEDULE_ENTRIES = 2 }; /* the longest push: a base and the entry */

#define NO_SHORT_WORD UINT64_MAX /* no word of an open gate */

/* Bases of the short way are below this: no delay of short_most_ns leads to 2^62. */
#define SHORT_BASES_NS (UINT64_C(1) << 61)

/* ---------------------------------------------------------------- the timer */

/*
 * The magazine's first slot becomes a timer, which has entered its group. state: of the word,
 * without EXT. Returns the entry.
 */
static inline __attribute__((always_inline)) uint64_t
make_timer(tw_service *service, struct tw__local *local, uint64_t state, tw_fn *fn, void *arg,
	   uint32_t ext, uint64_t group, tw_timer *out)
{
	const struct tw__slots *slots = &service->slots;
	uint64_t entry = tw__magazine_schedule(slots, &local->magazine), slot = (uint32_t)entry;
	if (out)
		*out = tw__handle_of(slots, entry);
	struct tw__record *record = &slots->records[slot];
	tw_store_relaxed(&record->fn, fn); /* published by WORD1 */
	tw_store_relaxed(&record->arg, arg);
	if (ext || group) {
		state |= TW__EXT;
		tw_store_release(&record->ext, ext); /* WORD5 */
		tw_store_release(&record->group, (uint32_t)group & TW__GROUP_INDEX_MASK);
	}
	/* WORD1: pairs with claim */
	tw__word_arm_release(&slots->words[slot], (entry - slot) | (uint32_t)state);
	if (group)
		tw__group_entered(service, group);
	return entry;
}

/*
 * For a new timer's entry. The border also lies ahead of the instant that delays count from, since
 * a late driver moves earlier delays up to there (drain.c).
 */
static inline struct tw__lane *lane_for(const tw_service *service, struct tw__local *local,
					uint64_t tick, uint64_t cursor)
{
	struct tw__lane *lane = &local->lane;
	if (!service->time.has_young)
		return lane;
	uint64_t counted = tw__tick_of(service, local->counted_ns),
		 border = (counted > cursor ? counted : cursor) + TW__YOUNG_TICKS;
	if (border > local->young_tick)
		local->young_tick = border;
	if (tick >= local->young_tick) {
		lane = &local->young;
		tw__lane_bring(lane, tick);
	}
	uint64_t soonest = local->young.soonest_new;
	local->young_from = soonest > local->young_tick ? soonest : local->young_tick;
	return lane;
}

/* Counted, and *out is no timer. */
static int refused(struct tw__local *local, tw_timer *out, int error)
{
	if (local) {
		/* the lane may hold a base or padding */
		tw__lane_publish(&local->lane);
		tw__lane_publish(&local->young);
		tw_bump(&local->rejected, 1);
	}
	if (out)
		*out = (tw_timer){0};
	return error;
}

/* The driver is asleep, or the service is closed. Returns what the call returns. */
static __attribute__((noinline)) int after_push(tw_service *service, struct tw__local *local,
						uint64_t entry, tw_timer *out)
{
	bool closed = tw__gate_refuses(tw__gate_look_after_push(&service->gate));
	/* else it has ended otherwise, or is close's */
	int r = closed && tw__retract(service, entry) ? refused(local, out, -ESHUTDOWN) : 0;
	/* also if closed: the entry must be met if the timer is close's */
	tw__wake(service);
	return r;
}

/* ------------------------------------------------------------- the short way */

static inline bool nobody_sleeps(uint64_t gate_word)
{
	return (gate_word & (TW__GATE_ACCEPTING | TW__GATE_PARKED)) == TW__GATE_ACCEPTING;
}

/*
 * kind: of the entry, and of `value`; at_ns: the deadline, unless the driver reckons it (DELAY).
 * task: instead of fn and arg, or NULL; `plain`: it needs no extension record. False: it is out of
 * the ordinary, or its group refuses. Else *r is what the call returns.
 */
static inline __attribute__((always_inline)) bool
schedule_shortly(tw_service *service, enum tw__kind kind, uint64_t value, uint64_t at_ns, tw_fn *fn,
		 void *arg, const struct tw_task *task, bool plain, tw_timer *out, int *r)
{
	struct tw__local *local = tw__local_at_hand(service);
	uint64_t span_ns, gate_word;
	bool names_context = task && task->flags & TW_TASK_CONTEXT;
	if (tw_unlikely((!names_context && tw__context_capture()) || !local))
		return false;
	gate_word = tw__gate_look(&service->gate);
	if (kind == TW__KIND_DELAY) {
		if (tw_unlikely(gate_word != local->short_word ||
				value > service->time.short_most_ns))
			return false;
		span_ns = local->short_base_ns + value;
	} else {
		span_ns =
		    at_ns + service->time.round_up_ns; /* one in the past is a very long one */
		if (tw_unlikely(!service->gate.asymmetric || tw__gate_refuses(gate_word) ||
				!tw__is_in_range(span_ns)))
			return false;
	}
	uint64_t tick = tw__ticks_in_range(service, span_ns);
	if (kind != TW__KIND_DELAY &&
	    tw_unlikely(tick - tw_load_relaxed(&service->gate.cursor) - 1 >= TW__NEAR_TICKS - 1))
		return false;
	struct tw__lane *lane = &local->young;
	if (kind != TW__KIND_DELAY || tw_unlikely(tick < local->young_from))
		lane = lane_for(service, local, tick, tw_load_relaxed(&service->gate.cursor));
	if (tw_unlikely(!tw__magazine_has_some(&local->magazine) || !tw__lane_can_push(lane)))
		return false;
	uint64_t state = TW__ARMED | (tick & TW__DEADLINE_MASK), group = 0;
	uint32_t ext = TW__EXT_NONE;
	if (task) {
		group = task->group.id;
		state |= tw__task_persistent(task);
		uint32_t slot = (uint32_t)tw__magazine_peek(&local->magazine, 0);
		ext = plain ? tw__task_shared_ext(service, task)
			    : tw__task_ext(service, slot, task, NULL);
		if (group && tw_unlikely(tw__group_enter(service, slot, group)))
			return false;
	}
	uint64_t entry = make_timer(service, local, state, task ? task->fn : fn,
				    task ? task->arg : arg, ext, group, out);
	tw__lane_push(lane, tw__what_make(kind, entry), value);
	TW_PROBE4(arm, service, (uint32_t)entry, tw__entry_generation(entry),
		  kind == TW__KIND_DELAY ? local->counted_ns + value : at_ns);
	tw_compiler_barrier(); /* GATE2, where there is membarrier */
	gate_word = tw__gate_look(&service->gate);
	bool is_met = tw_likely(nobody_sleeps(gate_word)) ||
		      (kind != TW__KIND_DELAY && !tw__gate_refuses(gate_word) &&
		       !tw__is_before_plan(service, tick));
	*r = is_met ? 0 : after_push(service, local, entry, out);
	return true;
}

/* -------------------------------------------------------------- the slow way */

/*
 * Delays may go the short way while the gate's word is the one of this epoch, if sums with the base
 * stay below 2^62, and lead to ticks that a word can say itself. A turn that changes this first
 * publishes another word (poll.c).
 */
static void open_short_way(const tw_service *service, struct tw__local *local)
{
	uint64_t base_ns = local->counted_ns - service->time.start_ns + (service->time.tick_ns - 1);
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
	bool is_near =
	    base_ns < SHORT_BASES_NS && local->counted_ns > service->time.start_ns &&
	    tw__ticks_in_range(service, base_ns) - cursor + TW__SHORT_TICKS < 2 * TW__SHORT_TICKS;
	local->short_base_ns = base_ns;
	local->short_word = service->gate.asymmetric && is_near ? local->epoch_word : NO_SHORT_WORD;
}

/*
 * The instant to count from where nobody publishes one: the driver sleeps, a manual drive, a manual
 * clock. It never falls within a lane (G6).
 */
static inline uint64_t own_instant(tw_service *service, struct tw__local *local)
{
	uint64_t now_ns = tw__clock_read_fast(service);
	if (tw_unlikely(now_ns < local->counted_ns))
		now_ns = local->counted_ns;
	return local->counted_ns = now_ns;
}

/* An entry that counts from what was published has to be kept in order with it. */
static inline enum tw__kind own_kind(const tw_service *service)
{
	return service->time.published ? TW__KIND_OWN : TW__KIND_DEADLINE;
}

/*
 * Returns the instant that a delay counts from: what the driver has published while it ticks, else
 * the thread's own reading of the clock. A new sequence number goes into both lanes first. *kind:
 * of the entry.
 */
static uint64_t count_from(tw_service *service, struct tw__local *local, uint64_t gate_word,
			   enum tw__kind *kind)
{
	if (tw_unlikely(!tw__gate_is_open(gate_word))) {
		*kind = own_kind(service);
		return own_instant(service, local);
	}
	if (local->epoch_word != gate_word) {
		local->epoch_word = gate_word;
		/* its own or a later one's */
		uint64_t base_ns = tw_load_relaxed(&service->gate.base_ns);
		local->counted_ns = base_ns > local->counted_ns ? base_ns : local->counted_ns;
		uint64_t counted = tw__entry_make(0, (uint32_t)local->counted_ns);
		uint64_t epoch = tw__what_make(TW__KIND_EPOCH, counted);
		tw__lane_put(&local->lane, epoch, tw__gate_sequence(gate_word));
		tw__lane_put(&local->young, epoch, tw__gate_sequence(gate_word));
		open_short_way(service, local);
	}
	return local->counted_ns;
}

/* A segment is full. Tells whether the driver, which sleeps, had better publish its time. */
static bool fills_fast(const tw_service *service, struct tw__local *local)
{
	enum { SEGMENTS = 8, TICKS = SEGMENTS * TW__SEGMENT_ENTRIES / TW__BUSY_PUSHES - 1 };
	if (++local->filled % SEGMENTS)
		return false;
	uint64_t span_ns = local->counted_ns - local->looked_ns;
	local->looked_ns = local->counted_ns;
	return span_ns < TICKS * service->time.tick_ns;
}

static void make_series(struct tw__slots *slots, uint32_t slot, const struct tw_period *period,
			uint64_t first_ns)
{
	struct tw__series *series = &slots->series[slot];
	tw__slots_write(slots, TW__SERIES);
	tw_store_relaxed(&series->is_moved, 0); /* WORD7 */
	series->nominal_ns = first_ns;
	series->runs_left = period->count;
	series->overruns = 0;
	series->mode = (uint8_t)period->mode;
	series->missed = (uint8_t)period->missed;
	_Atomic uint32_t *lock = tw__far_lock(slots, slot);
	tw_store_relaxed(&series->period_ns, period->period_ns); /* WORD8 */
	tw__tiny_unlock(lock);
}

static __attribute__((noinline)) int schedule_slowly(tw_service *service,
						     const struct tw__arming *a, tw_timer *out)
{
	enum tw__kind kind = a->kind;
	const struct tw_task *task = a->task;
	struct tw__local *local = tw__local_of(service);
	uint64_t word = tw__gate_look(&service->gate), deadline_ns = a->value;
	bool grew = false, young_grew = false, full = false;
	int r = tw__gate_refuses(word) ? -ESHUTDOWN : 0;
	if (!local)
		return refused(NULL, out, -ENOMEM);
	full = !tw__lane_has_room(&local->lane, SCHEDULE_ENTRIES) ||
	       !tw__lane_has_room(&local->young, SCHEDULE_ENTRIES);
	if (!r && !tw__lane_has_room(&local->lane, SCHEDULE_ENTRIES))
		r = tw__lane_grow(&local->lane, SCHEDULE_ENTRIES, &grew);
	local->young_from = UINT64_MAX; /* until lane_for has looked at what a packing leaves */
	if (!r && !tw__lane_has_room(&local->young, SCHEDULE_ENTRIES))
		r = tw__lane_grow(&local->young, SCHEDULE_ENTRIES, &young_grew);
	/* a driver that sleeps is not to find too much */
	grew |= young_grew && tw__young_is_long(local);
	if (!r && !tw__magazine_has_some(&local->magazine))
		r = tw__magazine_refill(&service->slots, &local->magazine);
	if (tw_unlikely(r))
		return refused(local, out, r);

	if (kind == TW__KIND_DELAY)
		deadline_ns += count_from(service, local, word, &kind);
	if (tw_unlikely(full) && kind == TW__KIND_OWN)
		grew |= fills_fast(service, local);
	uint64_t tick = tw__tick_of(service, deadline_ns),
		 state = tw__task_persistent(task) | TW__UNFILED;
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
	uint32_t slot = tw__entry_slot(tw__magazine_peek(&local->magazine, 0));
	if (kind != TW__KIND_PADDING) {
		state = tw__task_persistent(task) | TW__ARMED | tw__tick_bits(tick, cursor);
		if (tw_unlikely(state & TW__BEYOND_RANGE))
			tw__far_set(&service->slots, slot, tick); /* WORD6 */
	}
	uint32_t ext = a->has_ext ? tw__task_ext(service, slot, task, a) : a->ext;
	if (a->period)
		make_series(&service->slots, slot, a->period, a->value);
	uint64_t group = task->group.id;
	r = group ? tw__group_enter(service, slot, group) : 0;
	if (tw_unlikely(r))
		return refused(local, out, r);
	uint64_t entry = make_timer(service, local, state, task->fn, task->arg, ext, group, out);
	if (kind != TW__KIND_PADDING) {
		struct tw__lane *lane = lane_for(service, local, tick, cursor);
		bool counts = kind == TW__KIND_DELAY || kind == TW__KIND_OWN;
		tw__lane_put(lane, tw__what_make(kind, entry), counts ? a->value : deadline_ns);
	}
	/* a driver that is called, perhaps many times a tick, needs to know of what is due now */
	if (tw_likely(service->time.published || tick > cursor))
		tw__publish_later(service, local);
	else
		tw__publish(service, local);
	TW_PROBE4(arm, service, slot, tw__entry_generation(entry), deadline_ns);

	uint64_t now = tw__gate_look_after_push(&service->gate);
	/* a driver that fell asleep since the first look knows nothing of this */
	bool wanted = tw__gate_is_open(word) || grew || tw__is_before_plan(service, tick);
	if (tw__gate_refuses(now) || (now & TW__GATE_PARKED && wanted))
		return after_push(service, local, entry, out);
	return 0;
}

/* ------------------------------------------------------------------ the calls */

/* what: the argument that is out of range; NULL: the hook knows already. */
static __attribute__((noinline)) int out_of_range(tw_service *service, tw_timer *out,
						  const char *call, const char *what)
{
	if (tw__forked(service))
		return refused(NULL, out, -EPERM);
	int r = refused(tw__local_of(service), out, -ERANGE); /* told, or below */
	return what ? tw__bad(r, call, what) : r;
}

static int schedule_full(tw_service *service, const struct tw_task *task,
			 const struct tw_period *period, tw_timer *out)
{
	struct tw__arming arming = tw__task_prepare(service, task, period);
	return schedule_slowly(service, &arming, out);
}

static __attribute__((noinline)) int schedule_any(tw_service *service, uint64_t when_ns, tw_fn *fn,
						  void *arg, tw_timer *out, uint32_t flags)
{
	const char *call = flags ? "tw_schedule_at" : "tw_schedule";
	if (tw_unlikely(!service || !fn))
		return tw__refuse(-EINVAL, call, "%s is NULL", service ? "fn" : "service");
	if (tw_unlikely(!tw__when_is_in_range(service, flags, when_ns)))
		return out_of_range(service, out, call, flags ? "deadline_ns" : "delay_ns");
	if (tw__forked(service))
		return refused(NULL, out, -EPERM);
	struct tw_task task = {
	    .size = sizeof task, .fn = fn, .arg = arg, .when_ns = when_ns, .flags = flags};
	return schedule_full(service, &task, NULL, out);
}

/* Counts from this thread's reading of the clock, on the way of deadlines. */
static __attribute__((noinline)) int schedule_counted(tw_service *service, uint64_t delay_ns,
						      tw_fn *fn, void *arg, tw_timer *out)
{
	struct tw__local *local = tw__local_at_hand(service);
	enum tw__kind kind = own_kind(service);
	uint64_t at_ns;
	int r;
	if (tw_likely(local && !tw__gate_is_open(tw__gate_look(&service->gate)) &&
		      !__builtin_add_overflow(own_instant(service, local), delay_ns, &at_ns)) &&
	    tw_likely(schedule_shortly(service, kind, kind == TW__KIND_OWN ? delay_ns : at_ns,
				       at_ns, fn, arg, NULL, true, out, &r)))
		return r;
	return schedule_any(service, delay_ns, fn, arg, out, 0);
}

int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	int r;
	if (tw_unlikely(!service || !fn))
		return schedule_any(service, delay_ns, fn, arg, out, 0);
	if (tw_likely(service->time.published) &&
	    tw_likely(schedule_shortly(service, TW__KIND_DELAY, delay_ns, 0, fn, arg, NULL, true,
				       out, &r)))
		return r;
	return schedule_counted(service, delay_ns, fn, arg, out);
}

int tw_schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	int r;
	if (tw_likely(service && fn) &&
	    tw_likely(schedule_shortly(service, TW__KIND_DEADLINE, deadline_ns, deadline_ns, fn,
				       arg, NULL, true, out, &r)))
		return r;
	return schedule_any(service, deadline_ns, fn, arg, out, TW_TASK_AT);
}

/* is_sound: the task needs no check except of its range. */
static __attribute__((noinline)) int schedule_task(const char *call, tw_service *service,
						   const struct tw_task *task, bool is_sound,
						   tw_timer *out)
{
	struct tw_task other;
	struct tw_period period;
	int r = 0;
	if (tw__forked(service))
		return refused(NULL, out, -EPERM);
	if (!is_sound || !tw__when_is_in_range(service, task->flags, task->when_ns))
		r = tw__task_read(call, service, &task, &other, &period);
	if (r)
		return r == -ERANGE ? out_of_range(service, out, call, NULL) : r;
	return schedule_full(service, task, task->period ? &period : NULL, out);
}

int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out)
{
	int r;
	if (tw_unlikely(!service || !task))
		return tw__invalid("%s is NULL", service ? "task" : "service");
	/* the size first: an older caller's struct may end before the other members */
	bool usual = task->size == sizeof *task && tw__task_is_usual(task);
	bool plain = usual && tw__task_is_plain(service, task);
	if (tw_likely(usual) &&
	    tw_likely(schedule_shortly(
		service, task->flags & TW_TASK_AT ? TW__KIND_DEADLINE : TW__KIND_DELAY,
		task->when_ns, task->when_ns, NULL, NULL, task, plain, out, &r)))
		return r;
	return schedule_task(__func__, service, task, usual, out);
}

int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn, void *arg,
		      tw_timer *out)
{
	if (!service || !period || !fn)
		return tw__invalid("%s is NULL", !service ? "service" : period ? "fn" : "period");
	struct tw_task task = {.size = sizeof task, .fn = fn, .arg = arg, .period = period};
	return schedule_task(__func__, service, &task, false, out);
}
