/*
 * Moving a timer: to later by one compare-and-swap of the deadline, which the entry finds when its
 * bucket comes; to earlier by a second entry as well. Room for that entry is made before the word
 * is touched, so that a refused reset has changed nothing. Which of several entries counts is the
 * driver's affair (resolve.c). A far deadline is written with the word, under a lock that only far
 * timers take (word.h, WORD6).
 *
 * Persistent timers that are not armed: persistent.c.
 *
 * Linearisation: the compare-and-swap. Lock-free, except for far timers.
 */
#include <errno.h>
#include <inttypes.h>

#include "mpsc/base/probes.h"
#include "wheel/timer/schedule.h"
#include "wheel/core/frame.h"
#include "wheel/timer/end.h"
#include "wheel/timer/persistent.h"
#include "wheel/timer/reset.h"

int tw__count_reset(tw_service *service, bool eager)
{
	struct tw__local *local = tw__local_of(service);
	if (local) {
		tw_bump(&local->resets, 1);
		if (eager)
			tw_bump(&local->resets_eager, 1);
	}
	return 0;
}

/* From inside its own callback: noted, and done when the callback has returned. */
static int rearm(struct tw__run *run, uint64_t word, uint64_t deadline_ns, bool only_earlier)
{
	if (word & TW__ENDED)
		return -ECANCELED;
	if (only_earlier && run->rearm && deadline_ns >= run->rearm_ns)
		return TW_RESET_KEPT;
	run->rearm_if_earlier = only_earlier && (!run->rearm || run->rearm_if_earlier);
	run->rearm = true;
	run->rearm_ns = deadline_ns;
	return tw__count_reset(run->service, false);
}

/* What tw__persistent_reset answers. */
static int not_armed(tw_service *service, uint32_t slot, uint64_t *word, uint64_t deadline_ns,
		     uint64_t tick, bool only_earlier)
{
	if (tw__word_disarmed(*word) && tw__gate_refuses(tw__gate_look(&service->gate)))
		return -ESHUTDOWN;
	if (tw__word_disarmed(*word) || tw__word_runs_persistent(*word))
		return tw__persistent_reset(service, slot, word, tick, only_earlier);
	if (tw__word_state(*word) != TW__RUNNING)
		return -ENOENT;
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service && run->slot == slot && !run->releasing)
			return rearm(run, *word, deadline_ns, only_earlier);
	return -EBUSY;
}

static inline bool is_series(const tw_service *service, uint32_t slot, uint64_t word)
{
	return tw_unlikely(word & TW__EXT) &&
	       tw__traits_of(&service->slots, slot) & TW__TRAIT_SERIES;
}

int tw__move_with_entry(tw_service *service, uint32_t slot, uint64_t *word, uint64_t was,
			uint64_t moved, uint64_t tick)
{
	bool has_entry = tw__word_armed(*word) || tw__word_filed(*word);
	struct tw__local *local = tw__local_of(service);
	if (!local)
		return -ENOMEM;
	bool grew = false;
	if (!tw__lane_has_room(&local->lane, 1)) {
		int r = tw__lane_grow(&local->lane, 1, &grew);
		if (r)
			return r;
	}
	if (!tw__deadline_move(&service->slots, slot, word, was, moved, tick))
		return 0;
	uint64_t entry = tw__entry_make(slot, tw__word_generation(moved));
	if (has_entry)
		/* planted: reset_not_pushed */
		tw__lane_put(&local->lane, tw__what_make(TW__KIND_FILE, entry), tick);
	else
		tw__put_armed_again(service, local, slot, moved, tick);
	tw__publish(service, local);
	if (grew)
		tw__wake(service);
	return 1;
}

/* The slow way, which knows all cases. */
static int reset_slot(tw_service *service, uint32_t slot, uint32_t generation, uint64_t deadline_ns,
		      bool only_earlier)
{
	uint64_t tick = tw__tick_of(service, deadline_ns);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	for (;;) {
		if (tw_unlikely(tw__word_generation(word) != generation))
			return -ENOENT;
		if (tw_unlikely(!tw__word_armed(word))) {
			int r = not_armed(service, slot, &word, deadline_ns, tick, only_earlier);
			if (r == TW__RESET_AGAIN)
				continue;
			return r;
		}
		/* any past value will do: it only grows */
		uint64_t cursor = tw_load_relaxed(&service->gate.cursor), filed_for;
		if (!tw__deadline_read(&service->slots, slot, &word, cursor, &filed_for))
			continue;
		if (only_earlier && tick >= filed_for) {
			uint64_t seen = word;
			word = tw_load_acquire(&service->slots.words[slot]);
			if (word == seen)
				return TW_RESET_KEPT;
			continue;
		}
		/* the run of a series learns from its record that it was moved */
		bool series = is_series(service, slot, word);
		if (tick == filed_for && !series)
			return tw__count_reset(service, false);
		if (tw_unlikely(series))
			tw_store_relaxed(&tw__ext_of(&service->slots, slot)->is_moved,
					 1); /* WORD8 */
		uint64_t moved = tw__word_move(word, tw__tick_bits(tick, cursor));
		if (tw_likely(tick >= filed_for)) {
			if (tw_likely(tw__deadline_move(&service->slots, slot, &word, filed_for,
							moved, tick)))
				return tw__count_reset(service, false);
			continue;
		}
		int r = tw__move_with_entry(service, slot, &word, filed_for, moved | TW__RELOCATED,
					    tick);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		tw__wake_for(service, tick);
		return tw__count_reset(service, true);
	}
}

static __attribute__((noinline)) int reset_slowly(tw_service *service, tw_timer timer,
						  uint64_t deadline_ns, bool only_earlier)
{
	uint64_t entry;
	if (tw__forked(service))
		return -EPERM;
	if (tw_unlikely(tw__gate_refuses(tw__gate_look(&service->gate))) && !tw__draining(service))
		return -ESHUTDOWN;
	if (tw_unlikely(!tw__handle_entry(&service->slots, timer, &entry)))
		return -ENOENT;
	uint32_t slot = (uint32_t)entry, generation = tw__entry_generation(entry);
	int r = reset_slot(service, slot, generation, deadline_ns, only_earlier);
	TW_PROBE5(reset, service, slot, generation, deadline_ns, r);
	return r;
}

/* The short way of arming a disarmed timer: its entry is promised, and is not too late. */
static inline bool arm_shortly(_Atomic uint64_t *at, uint64_t word, uint64_t entry, uint64_t tick)
{
	return tw__word_is_plain_and_filed(word, entry) &&
	       tw__word_cas_acq_rel(at, &word, tw__word_arm_plain(word, tick)); /* WORD4 */
}

/*
 * The short way with an entry, where the lane has room for it: a plain timer is moved to an earlier
 * tick, or a disarmed one is armed for a tick before that of its entry.
 */
static __attribute__((noinline)) bool move_earlier_shortly(tw_service *service,
							   struct tw__local *local, uint64_t word,
							   uint64_t entry, uint64_t tick,
							   uint64_t deadline_ns)
{
	bool armed = tw__word_is_plain_and_near(word, entry);
	if ((!armed && !tw__word_is_plain_and_filed(word, entry)) ||
	    !tw__lane_has_room(&local->lane, 1))
		return false;
	uint64_t moved =
	    armed ? tw__word_move(word, tick & TW__DEADLINE_MASK) : tw__word_arm_plain(word, tick);
	if (tw__move_with_entry(service, (uint32_t)entry, &word, 0, moved | TW__RELOCATED, tick) <=
	    0)
		return false;
	tw__wake_for(service, tick);
	TW_PROBE5(reset, service, (uint32_t)entry, tw__entry_generation(entry), deadline_ns, 0);
	tw__count_reset(service, true);
	return true;
}

/*
 * The short way: a plain timer is moved, or one that is disarmed and plain is armed, near, by a
 * thread that has used this service last. False: it is out of the ordinary, or has just changed;
 * nothing was written.
 */
static inline __attribute__((always_inline)) bool move_shortly(tw_service *service, tw_timer timer,
							       uint64_t deadline_ns)
{
	struct tw__local *local = tw__local_at_hand(service);
	/* one in the past is a very long one here */
	uint64_t entry, span_ns = deadline_ns + service->time.round_up_ns;
	if (tw_unlikely(!local || tw__gate_refuses(tw__gate_look(&service->gate)) ||
			!tw__handle_entry(&service->slots, timer, &entry) ||
			!tw__is_in_range(span_ns)))
		return false;
	_Atomic uint64_t *at = &service->slots.words[(uint32_t)entry];
	uint64_t word = tw_load_acquire(at), tick = tw__ticks_in_range(service, span_ns);
	/* any past value will do: it only grows */
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
	uint64_t ahead = tick - cursor;
	/* 0: the same tick; nothing is written */
	int64_t by = (int64_t)ahead - tw__word_ahead(word, cursor);
	if (tw_unlikely(ahead - 1 >= TW__NEAR_TICKS - 1))
		return false;
	if (by < 0)
		return move_earlier_shortly(service, local, word, entry, tick, deadline_ns);
	if (tw__word_is_plain_and_near(word, entry)) {
		uint64_t moved = tw__word_move(word, tick & TW__DEADLINE_MASK);
		if (by > 0 && tw_unlikely(!tw__word_cas_acq_rel(at, &word, moved))) /* WORD4 */
			return false;
	} else if (!arm_shortly(at, word, entry, tick)) {
		return false;
	}
	TW_PROBE5(reset, service, (uint32_t)entry, tw__entry_generation(entry), deadline_ns, 0);
	tw_bump(&local->resets, 1);
	return true;
}

static __attribute__((noinline)) int reset_out_of_range(const char *call, const tw_service *service,
							const char *what)
{
	return tw__forked(service) ? -EPERM : tw__bad(-ERANGE, call, what);
}

int tw_reset_at(tw_service *service, tw_timer timer, uint64_t deadline_ns)
{
	if (tw_unlikely(!service))
		return tw__invalid("service is NULL");
	if (tw_likely(move_shortly(service, timer, deadline_ns)))
		return 0;
	if (tw_unlikely(tw__beyond_range(service, deadline_ns)))
		return reset_out_of_range(__func__, service, "deadline_ns");
	return reset_slowly(service, timer, deadline_ns, false);
}

int tw_reset(tw_service *service, tw_timer timer, uint64_t delay_ns)
{
	uint64_t entry;
	if (tw_unlikely(!service))
		return tw__invalid("service is NULL");
	if (tw_unlikely(delay_ns > TW_MAX_DELAY_NS))
		return reset_out_of_range(__func__, service, "delay_ns");
	if (tw_likely(tw__handle_entry(&service->slots, timer, &entry)))
		__builtin_prefetch((const void *)&service->slots.words[(uint32_t)entry],
				   1); /* while the clock is read */
	uint64_t deadline_ns = tw__clock_read_fast(service) + delay_ns;
	if (tw_likely(move_shortly(service, timer, deadline_ns)))
		return 0;
	return reset_slowly(service, timer, deadline_ns, false);
}

int tw_reset_earlier_at(tw_service *service, tw_timer timer, uint64_t deadline_ns)
{
	if (tw_unlikely(!service))
		return tw__invalid("service is NULL");
	if (tw_unlikely(tw__beyond_range(service, deadline_ns)))
		return reset_out_of_range(__func__, service, "deadline_ns");
	return reset_slowly(service, timer, deadline_ns, true);
}

int tw_reset_earlier(tw_service *service, tw_timer timer, uint64_t delay_ns)
{
	if (tw_unlikely(!service))
		return tw__invalid("service is NULL");
	if (tw_unlikely(delay_ns > TW_MAX_DELAY_NS))
		return reset_out_of_range(__func__, service, "delay_ns");
	return reset_slowly(service, timer, tw__clock_read_fast(service) + delay_ns, true);
}
