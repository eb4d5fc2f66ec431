/*
 * Moving a timer, and disarming a persistent one. Calls the lane, the gate and the far deadlines.
 *
 * To later: one compare-and-swap of the deadline, which the entry finds when its bucket comes. To
 * earlier: a second entry as well (resolve.c), whose room is made before the word is touched, so
 * that a refused reset has changed nothing. A disarmed timer whose entry is promised (word.h) is
 * armed as an armed one is moved.
 *
 * Linearisation: the compare-and-swap. Lock-free, except for far timers, and for an arming during
 * the run, which holds the slot's far lock for a few stores.
 */
#include "wheel/timer/schedule.h"

#include <errno.h>

#include "mpsc/base/probes.h"
#include "wheel/core/frame.h"
#include "wheel/core/wake.h"

/* ------------------------------------------------------------- the short way */

/*
 * A plain timer, armed or disarmed, gets a near deadline that is not before that of its entry.
 * False: nothing was written.
 */
static inline __attribute__((always_inline)) bool reset_shortly(tw_service *service, tw_timer timer,
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
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor), ahead = tick - cursor;
	if (tw_unlikely(ahead - 1 >= TW__NEAR_TICKS - 1 ||
			(int64_t)ahead < tw__word_ahead(word, cursor) ||
			!tw__word_is_plain_and_filed(word, entry)))
		return false;
	uint64_t moved = tw__word_arm(word, tick & TW__DEADLINE_MASK);
	/* armed for this tick: nothing is written */
	if (moved != word && tw_unlikely(!tw__word_cas_acq_rel(at, &word, moved))) /* WORD4 */
		return false;
	TW_PROBE5(reset, service, (uint32_t)entry, tw__entry_generation(entry), deadline_ns, 0);
	tw_bump(&local->resets, 1);
	return true;
}

/* -------------------------------------------------------------- the slow way */

/* eager: it needed an entry. 0. */
static int count_reset(tw_service *service, bool eager)
{
	struct tw__local *local = tw__local_of(service);
	if (local) {
		tw_bump(&local->resets, 1);
		if (eager)
			tw_bump(&local->resets_eager, 1);
	}
	return 0;
}

/*
 * Writes a deadline, and an entry. The promised one, if there is one, is then one too many
 * (RELOCATED). moved: as for tw__deadline_move.
 */
static int move_with_entry(tw_service *service, uint64_t entry, uint64_t *word, bool promised,
			   uint64_t was, uint64_t moved, uint64_t tick)
{
	struct tw__local *local = tw__local_of(service);
	bool grew = false;
	if (!local)
		return -ENOMEM;
	if (!tw__lane_has_room(&local->lane, 1)) {
		int r = tw__lane_grow(&local->lane, 1, &grew);
		if (r)
			return r;
	}
	moved |= promised ? TW__RELOCATED : 0;
	if (!tw__deadline_move(&service->slots, (uint32_t)entry, word, was, moved, tick))
		return TW__RESET_AGAIN;
	if (promised)
		/* planted: reset_not_pushed */
		tw__lane_put(&local->lane, tw__what_make(TW__KIND_FILE, entry), tick);
	else
		tw__put_armed_again(service, local, (uint32_t)entry, moved, tick);
	tw__publish(service, local);
	if (tw_unlikely(grew))
		tw__wake(service);
	tw__wake_for_back(service, entry, tick);
	return count_reset(service, true);
}

/* Armed or disarmed. */
static int reset_waiting(tw_service *service, uint64_t entry, uint64_t *word, uint64_t tick,
			 bool only_earlier)
{
	struct tw__slots *slots = &service->slots;
	uint32_t slot = (uint32_t)entry;
	bool armed = tw__word_armed(*word), promised = armed || tw__word_filed(*word);
	/* any past value will do: it only grows */
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor), met = UINT64_MAX;
	if (promised && !tw__deadline_read(slots, slot, word, cursor, &met))
		return TW__RESET_AGAIN;
	if (armed && only_earlier && tick >= met)
		return TW_RESET_KEPT;
	if (tw_unlikely(*word & TW__EXT) && tw__traits_of(slots, slot) & TW__TRAIT_SERIES)
		tw_store_relaxed(&slots->series[slot].is_moved, 1); /* WORD7 */
	else if (armed && tick == met)
		return count_reset(service, false);
	uint64_t moved = tw__word_arm(*word, tw__tick_bits(tick, cursor));
	if (tick < met || !promised) /* planted: promise_too_late */
		return move_with_entry(service, entry, word, promised, met, moved, tick);
	return tw__deadline_move(slots, slot, word, met, moved, tick) ? count_reset(service, false)
								      : TW__RESET_AGAIN;
}

/* A persistent one that runs is armed when its callback has returned (run/series.c). */
static int rearm_persistent(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick,
			    bool only_earlier)
{
	struct tw__slots *slots = &service->slots;
	uint64_t was = UINT64_MAX;
	if (*word & TW__ENDED)
		return -ECANCELED;
	if (*word & TW__BARRED)
		return -ESHUTDOWN;
	if (*word & TW__REARMED && !tw__far_read(slots, slot, word, &was))
		return TW__RESET_AGAIN;
	if (only_earlier && tick >= was)
		return TW_RESET_KEPT;
	return tw__far_move(slots, slot, word, was, *word | TW__REARMED, tick)
		   ? count_reset(service, false)
		   : TW__RESET_AGAIN;
}

/* A reset from inside its own callback takes effect when that has returned. */
static int rearm(struct tw__run *run, uint64_t word, uint64_t deadline_ns, bool only_earlier)
{
	if (word & TW__ENDED)
		return -ECANCELED;
	if (only_earlier && run->rearm && deadline_ns >= run->rearm_ns)
		return TW_RESET_KEPT;
	run->rearm_if_earlier = only_earlier && (!run->rearm || run->rearm_if_earlier);
	run->rearm = true;
	run->rearm_ns = deadline_ns;
	return count_reset(run->service, false);
}

int tw__reset_seen(tw_service *service, uint64_t entry, uint64_t *word, uint64_t deadline_ns,
		   bool only_earlier, bool closed)
{
	uint32_t slot = (uint32_t)entry;
	uint64_t tick = tw__tick_of(service, deadline_ns);
	if ((*word ^ entry) >> TW__GENERATION_SHIFT)
		return -ENOENT;
	if (tw_unlikely(closed && tw__word_disarmed(*word)))
		return -ESHUTDOWN; /* new work */
	if (tw__word_waits(*word))
		return reset_waiting(service, entry, word, tick, only_earlier);
	if (tw__word_state(*word) != TW__RUNNING)
		return -ENOENT;
	if (*word & TW__HAS_PERSISTENT)
		return rearm_persistent(service, slot, word, tick, only_earlier);
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service && run->slot == slot && !run->releasing)
			return rearm(run, *word, deadline_ns, only_earlier);
	return -EBUSY;
}

static __attribute__((noinline)) int reset_slowly(tw_service *service, tw_timer timer,
						  uint64_t deadline_ns, bool only_earlier)
{
	uint64_t entry;
	int r;
	if (tw_unlikely(!tw__local_at_hand(service)) && tw__forked(service))
		return -EPERM;
	bool closed = tw__gate_refuses(tw__gate_look(&service->gate));
	if (tw_unlikely(closed) && !tw__draining(service))
		return -ESHUTDOWN;
	if (tw_unlikely(!tw__handle_entry(&service->slots, timer, &entry)))
		return -ENOENT;
	uint64_t word = tw_load_acquire(&service->slots.words[(uint32_t)entry]);
	do {
		r = tw__reset_seen(service, entry, &word, deadline_ns, only_earlier, closed);
	} while (tw_unlikely(r == TW__RESET_AGAIN));
	TW_PROBE5(reset, service, (uint32_t)entry, tw__entry_generation(entry), deadline_ns, r);
	return r;
}

/* ------------------------------------------------------------------ the calls */

static __attribute__((noinline)) int reset_out_of_range(const char *call, const tw_service *service,
							const char *what)
{
	return tw__forked(service) ? -EPERM : tw__bad(-ERANGE, call, what);
}

static inline __attribute__((always_inline)) int reset(const char *call, tw_service *service,
						       tw_timer timer, bool at, uint64_t when_ns,
						       bool only_earlier)
{
	uint64_t entry, deadline_ns = when_ns;
	if (tw_unlikely(!service))
		return tw__refuse(-EINVAL, call, "service is NULL");
	if (!at) {
		if (tw_unlikely(when_ns > TW_MAX_DELAY_NS))
			return reset_out_of_range(call, service, "delay_ns");
		if (tw_likely(tw__handle_entry(&service->slots, timer, &entry)))
			__builtin_prefetch((const void *)&service->slots.words[(uint32_t)entry],
					   1); /* while the clock is read */
		deadline_ns += tw__clock_read_fast(service);
	}
	if (!only_earlier && tw_likely(reset_shortly(service, timer, deadline_ns)))
		return 0;
	if (at && tw_unlikely(tw__beyond_range(service, when_ns)))
		return reset_out_of_range(call, service, "deadline_ns");
	return reset_slowly(service, timer, deadline_ns, only_earlier);
}

int tw_reset(tw_service *service, tw_timer timer, uint64_t delay_ns)
{
	return reset(__func__, service, timer, false, delay_ns, false);
}

int tw_reset_at(tw_service *service, tw_timer timer, uint64_t deadline_ns)
{
	return reset(__func__, service, timer, true, deadline_ns, false);
}

int tw_reset_earlier(tw_service *service, tw_timer timer, uint64_t delay_ns)
{
	return reset(__func__, service, timer, false, delay_ns, true);
}

/* ------------------------------------------------------------------- disarm */

int tw_disarm(tw_service *service, tw_timer timer)
{
	const uint64_t waiting = TW__ARMED | TW__PERSISTENT;
	uint64_t entry;
	if (tw_unlikely(!service))
		return tw__invalid("service is NULL");
	if (tw_unlikely(!tw__local_at_hand(service) && tw__forked(service)))
		return -EPERM;
	if (tw_unlikely(!tw__handle_entry(&service->slots, timer, &entry)))
		return TW_GONE;
	_Atomic uint64_t *at = &service->slots.words[(uint32_t)entry];
	uint64_t word = tw_load_acquire(at);
	while (!((word ^ entry) >> TW__GENERATION_SHIFT)) {
		if (tw_likely((word & waiting) == waiting)) {
			uint64_t disarmed = tw__word_disarm(word);
			/* planted: disarm_by_store */
			if (tw_likely(tw__word_cas_acq_rel(at, &word, disarmed))) /* WORD2 */
				return TW_CANCELLED;
		} else if (tw__word_disarmed(word)) {
			return TW_DISARMED;
		} else if (tw__word_state(word) == TW__FREE) {
			return TW_GONE;
		} else if (tw__word_state(word) == TW__RELEASING) {
			return TW_RUNNING;
		} else if (!tw__word_runs_persistent(word)) {
			return tw__refuse(-EINVAL, __func__,
					  "the timer is not persistent: "
					  "schedule it with TW_TASK_PERSISTENT");
		} else if (!(word & TW__REARMED) || /* planted: disarm_lost */
			   tw__word_cas_acq_rel(at, &word, word & ~TW__REARMED)) {
			return TW_RUNNING;
		}
	}
	return TW_GONE;
}
