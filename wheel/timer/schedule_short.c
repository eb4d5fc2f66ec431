/*
 * The short way of scheduling: what arm() of schedule.c comes to for a plain timer where nothing is out of the ordinary, in as few steps as
 * that can be done.
 *
 * All that may be otherwise is found out before anything is written; then the long way is gone from its beginning, and knows what it is. Calls
 * stand only at the ends, so that nothing needs to be kept over them.
 *
 * Ordinary is: there is membarrier (a forked child reads that there is none, as it reads all of the gate); this thread has used this service
 * last; its magazine and its lane's segment have room; the deadline lies ahead, within the wheel's reach; and nobody has to be woken:
 *   a delay      the gate is open, and the lane's base is that of its present word (put_base of schedule.c)
 *   a deadline   the gate accepts, and says nothing of a sleeping driver: it is open, or the driver is one that is called
 */
#include "wheel/base/probes.h"
#include "wheel/timer/schedule.h"
#include "wheel/core/local.h"

struct short_way {
	struct tw__local *local;
	uint64_t gate_word;
	uint64_t entry; /* the slot that will be taken, and its generation */
	uint64_t deadline_ns, tick;
};

static inline bool nobody_sleeps(const struct tw__local *local, enum tw__kind kind, uint64_t gate_word)
{
	if (kind == TW__KIND_DELAY)
		return gate_word == local->stamped;
	return (gate_word & (TW__GATE_ACCEPTING | TW__GATE_PARKED)) == TW__GATE_ACCEPTING;
}

/* Whether it can be gone, and what was found. Nothing is written but that. */
static inline __attribute__((always_inline)) bool is_ordinary(const tw_service *service, enum tw__kind kind,
							      uint64_t value, struct short_way *way)
{
	struct tw__local *local = way->local = tw__local_at_hand(service);
	if (tw_unlikely(!local || !service->gate.asymmetric))
		return false;
	way->gate_word = tw__gate_look(&service->gate);
	if (tw_unlikely(!nobody_sleeps(local, kind, way->gate_word)))
		return false;
	way->deadline_ns = kind == TW__KIND_DELAY ? local->counted_ns + value : value;
	uint64_t span_ns = way->deadline_ns - service->time.start_ns - 1; /* one in the past is a very long one here */
	way->tick = tw__ticks_in_range(service, span_ns) + 1;
	way->entry = local->magazine.next;
	uint64_t ahead = way->tick - tw_load_relaxed(&service->gate.cursor) - 1; /* 0: the next tick */
	return !(value >> 62) && tw__is_in_range(span_ns) && ahead < TW__WHEEL_REACH - 1 && way->entry &&
	       tw__lane_has_room(&local->lane, 1);
}

static inline __attribute__((always_inline)) int go(tw_service *service, const struct short_way *way,
						    enum tw__kind kind, uint64_t value, tw_fn *fn, void *arg,
						    tw_timer *out)
{
	struct tw__local *local = way->local;
	uint64_t entry = way->entry;
	uint32_t slot = tw__entry_slot(entry), generation = tw__entry_generation(entry);
	TW_PROBE4(arm, service, slot, generation, way->deadline_ns); /* now, while the deadline is at hand */
	tw__magazine_advance(&service->slots, &local->magazine);
	if (out)
		*out = tw__handle_make(&service->slots, slot, generation);
	struct tw__record *record = &service->slots.records[slot];
	tw_store_relaxed(&record->fn, fn); /* published by WORD1 */
	tw_store_relaxed(&record->arg, arg);
	tw_bump(&local->scheduled, 1);
	tw__word_arm_release(&service->slots.words[slot], tw__word_make(generation, TW__ARMED, way->tick)); /* WORD1 */
	tw__lane_push(&local->lane, tw__what_make(kind, entry), value);
	tw_compiler_barrier(); /* gate.h, GATE2, where there is membarrier */
	if (tw_likely(tw__gate_look(&service->gate) == way->gate_word))
		return 0;
	return tw__after_short_push(service, local, entry, out);
}

int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	struct short_way way;
	if (tw_likely(service && fn && !tw__context_is_on() && is_ordinary(service, TW__KIND_DELAY, delay_ns, &way)))
		return go(service, &way, TW__KIND_DELAY, delay_ns, fn, arg, out);
	return tw__schedule_in(service, delay_ns, fn, arg, out);
}

int tw_schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	struct short_way way;
	if (tw_likely(service && fn && !tw__context_is_on() &&
		      is_ordinary(service, TW__KIND_DEADLINE, deadline_ns, &way)))
		return go(service, &way, TW__KIND_DEADLINE, deadline_ns, fn, arg, out);
	return tw__schedule_at(service, deadline_ns, fn, arg, out);
}
