/*
 * The short way of scheduling: what arm() of schedule.c does for a plain timer, if nothing is out
 * of the ordinary, in as few steps as possible.
 *
 * All checks happen before the first store. If one fails, schedule.c handles the call from the
 * start. Calls are only at the ends, so that no register has to be saved.
 *
 * Ordinary means:
 *   - the kernel has membarrier;
 *   - this thread has used this service last: never so in a forked child (mpsc/base/fork.h);
 *   - its magazine and its lane's segment have room;
 *   - the deadline lies within the wheel's reach;
 *   - nobody has to be woken. For a delay: the gate is open, and its word is that of the lane's
 *     epoch (open_short_way of schedule.c). For a deadline: the deadline lies ahead, and the gate
 *     accepts and says nothing of a sleeping driver.
 */
#include "mpsc/base/probes.h"
#include "wheel/timer/schedule.h"
#include "wheel/timer/schedule_short.h"
#include "wheel/core/local.h"
#include "wheel/timer/member.h"

static inline bool has_room(const struct tw__local *local)
{
	return tw__magazine_has_one(&local->magazine) && tw__lane_can_push(&local->lane);
}

static inline bool nobody_sleeps(uint64_t gate_word)
{
	return (gate_word & (TW__GATE_ACCEPTING | TW__GATE_PARKED)) == TW__GATE_ACCEPTING;
}

/* Ticks from the last one that was turned through. */
static inline uint64_t ticks_ahead(const tw_service *service, uint64_t tick)
{
	return tick - tw_load_relaxed(&service->gate.cursor);
}

/*
 * Arms the timer and pushes its entry. Returns the entry, without the kind. group: a handle, which
 * the timer has entered; or 0.
 */
static inline __attribute__((always_inline)) uint64_t
push(tw_service *service, struct tw__local *local, enum tw__kind kind, uint64_t value,
     uint64_t tick, tw_fn *fn, void *arg, uint64_t group, tw_timer *out)
{
	const struct tw__slots *slots = &service->slots;
	uint64_t entry = tw__magazine_schedule(slots, &local->magazine), slot = (uint32_t)entry;
	if (out)
		*out = tw__handle_of(slots, entry);
	struct tw__record *record = &slots->records[slot];
	tw_store_relaxed(&record->fn, fn); /* published by WORD1 */
	tw_store_relaxed(&record->arg, arg);
	uint32_t low = (uint32_t)(TW__ARMED | (group ? TW__EXT : 0) | (tick & TW__DEADLINE_MASK));
	if (group) {
		tw_store_release(&record->ext, 0); /* WORD5 */
		tw_store_release(&record->group, (uint32_t)group & TW__GROUP_INDEX_MASK);
	}
	tw__word_arm_release(&slots->words[slot], (entry - slot) | low); /* WORD1 */
	if (group)
		tw__group_entered(service, group);
	tw__lane_push(&local->lane, tw__what_make(kind, entry), value);
	tw_compiler_barrier(); /* gate.h, GATE2, where there is membarrier */
	return entry;
}

int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	struct tw__local *local;
	uint64_t span_ns, tick;
	if (tw_likely(service && fn && !tw__context_is_on() &&
		      (local = tw__local_at_hand(service)) &&
		      tw__gate_look(&service->gate) == local->short_word &&
		      !__builtin_add_overflow(local->short_base_ns, delay_ns, &span_ns))) {
		tick = tw__ticks_in_range(service, span_ns);
		if (tw_likely(ticks_ahead(service, tick) < TW__NEAR_TICKS && has_room(local))) {
			uint64_t entry =
			    push(service, local, TW__KIND_DELAY, delay_ns, tick, fn, arg, 0, out);
			TW_PROBE4(arm, service, tw__entry_slot(entry), tw__entry_generation(entry),
				  local->counted_ns + delay_ns);
			/* GATE2 */
			if (tw_likely(tw__gate_look(&service->gate) == local->short_word))
				return 0;
			return tw__after_short_push(service, local, entry, out);
		}
	}
	return tw__schedule_in(service, delay_ns, fn, arg, out);
}

/* The magazine's first slot enters before it is taken: a group may refuse. */
bool tw__schedule_member_shortly(tw_service *service, uint64_t group, uint64_t delay_ns, tw_fn *fn,
				 void *arg, tw_timer *out, int *r)
{
	struct tw__local *local = tw__local_at_hand(service);
	uint64_t span_ns;
	if (tw_unlikely(!local || tw__gate_look(&service->gate) != local->short_word ||
			__builtin_add_overflow(local->short_base_ns, delay_ns, &span_ns)))
		return false;
	uint64_t tick = tw__ticks_in_range(service, span_ns);
	if (tw_unlikely(ticks_ahead(service, tick) >= TW__NEAR_TICKS || !has_room(local)))
		return false;
	uint32_t slot = (uint32_t)tw__magazine_peek(&local->magazine, 0);
	if (tw_unlikely(tw__group_enter(service, slot, group)))
		return false;
	uint64_t entry = push(service, local, TW__KIND_DELAY, delay_ns, tick, fn, arg, group, out);
	TW_PROBE4(arm, service, tw__entry_slot(entry), tw__entry_generation(entry),
		  local->counted_ns + delay_ns);
	*r = tw_likely(tw__gate_look(&service->gate) == local->short_word) /* GATE2 */
		 ? 0
		 : tw__after_short_push(service, local, entry, out);
	return true;
}

int tw_schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	struct tw__local *local;
	if (tw_likely(service && fn && !tw__context_is_on() &&
		      (local = tw__local_at_hand(service)) && service->gate.asymmetric &&
		      nobody_sleeps(tw__gate_look(&service->gate)))) {
		uint64_t span_ns =
		    /* one in the past is a very long one here */
		    deadline_ns + service->time.round_up_ns;
		uint64_t tick = tw__ticks_in_range(service, span_ns);
		if (tw_likely(tw__is_in_range(span_ns) &&
			      ticks_ahead(service, tick) - 1 < TW__NEAR_TICKS - 1 &&
			      has_room(local))) {
			uint64_t entry = push(service, local, TW__KIND_DEADLINE, deadline_ns, tick,
					      fn, arg, 0, out);
			TW_PROBE4(arm, service, tw__entry_slot(entry), tw__entry_generation(entry),
				  deadline_ns);
			if (tw_likely(nobody_sleeps(tw__gate_look(&service->gate)))) /* GATE2 */
				return 0;
			return tw__after_short_push(service, local, entry, out);
		}
	}
	return tw__schedule_at(service, deadline_ns, fn, arg, out);
}
