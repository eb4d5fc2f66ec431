/*
 * Moving a timer: to later by one compare-and-swap of the deadline bits, which the entry finds when its bucket comes; to earlier by a
 * new entry as well, which takes the place of the one before by its seq (word.h). Room for that entry is made before the word is
 * touched, so that a refused reset has changed nothing.
 *
 * Linearisation: the compare-and-swap. Lock-free.
 */
#include <errno.h>

#include "wheel/base/probes.h"
#include "wheel/timer/schedule.h"
#include "wheel/timer/timing.h"
#include "wheel/timer/whole.h"
#include "wheel/core/frame.h"
#include "wheel/timer/end.h"

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

/* From inside its own callback: noted, and done when the callback has returned. */
static int rearm(struct tw__run *run, uint64_t word, uint64_t deadline_ns)
{
	if (word & TW__ENDED || tw__tag_is_stale(&run->service->groups, run->tag))
		return -ECANCELED;
	run->rearm = true;
	run->rearm_ns = deadline_ns;
	return count_reset(run->service, false);
}

static int not_armed(tw_service *service, uint32_t slot, uint64_t word, uint64_t deadline_ns)
{
	if (tw__word_state(word) != TW__RUNNING)
		return -ENOENT;
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service && run->slot == slot && !run->releasing)
			return rearm(run, word, deadline_ns);
	return -EBUSY;
}

/* Room for one entry in this thread's lane. 0, or negative: refused. *grew: a new segment was begun. */
static int make_room(struct tw__local *local, bool *grew)
{
	if (!local)
		return -ENOMEM;
	return tw__lane_has_room(&local->lane, 1) ? 0 : tw__lane_grow(&local->lane, 1, grew);
}

static void push(tw_service *service, struct tw__local *local, uint64_t entry, uint64_t tick, bool grew)
{
	tw__lane_put(&local->lane, entry, TW__VALUE_TICK | tick);
	tw__publish(service, local);
	if (grew)
		tw__wake(service);
}

/* Writes a later deadline, for which the timer's entry will do. */
static bool move_later(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick, uint64_t look)
{
	uint64_t moved = tw__word_move(*word, tick);
	if (!tw__word_cas_seq_cst(&service->slots.words[slot], word, moved)) /* WORD4 */
		return false;
	if (tw__is_overtaken(service, look)) /* LEAP1 */
		tw__write_whole(service, slot, moved, tick);
	return true;
}

/* Writes an earlier deadline with the next seq, and pushes its entry. 1: done; 0: the word has changed; negative: refused. */
static int move_earlier(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick, uint64_t look)
{
	struct tw__local *local = tw__local_of(service);
	bool grew = false;
	int r = make_room(local, &grew);
	if (r)
		return r;
	uint64_t moved = tw__word_with_seq(tw__word_move(*word, tick), tw__word_next_seq(*word));
	if (!tw__word_cas_acq_rel(&service->slots.words[slot], word, moved)) /* WORD4 */
		return 0;
	push(service, local, tw__entry_of(moved, slot), tick, grew);
	if (tw__is_overtaken(service, look)) /* LEAP1 */
		tw__write_whole(service, slot, moved, tick);
	return 1;
}

/*
 * The same where the old deadline or the new one is far: under the lock of far deadlines, later or earlier. 2: later; 1: earlier.
 */
static int move_far(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick, uint64_t look)
{
	struct tw__slots *slots = &service->slots;
	struct tw__local *local = tw__local_of(service);
	bool grew = false;
	int r = make_room(local, &grew);
	if (r)
		return r;
	uint64_t seen = *word, old = tw__word_deadline(seen, tw__cursor_of(look));
	bool far = !tw__is_near(look, tick), done = false, later = true;
	uint64_t moved = far ? tw__word_move_beyond(seen) : tw__word_move(seen, tick);
	_Atomic uint32_t *lock = tw__far_lock(slots, slot);
	*word = tw_load_acquire(&slots->words[slot]);
	if (*word == seen) {
		if (tw__word_beyond(seen))
			old = tw_load_relaxed(&slots->far_ticks[slot]); /* WORD6 */
		later = tick >= old;
		if (!later)
			moved = tw__word_with_seq(moved, tw__word_next_seq(seen));
		done = tw__word_cas_seq_cst(&slots->words[slot], word, moved); /* WORD4 */
		if (done && far)
			tw__far_write(slots, slot, tick); /* WORD6 */
	}
	tw__tiny_unlock(lock);
	if (!done)
		return 0;
	if (!later)
		push(service, local, tw__entry_of(moved, slot), tick, grew);
	if (!far && tw__is_overtaken(service, look)) /* LEAP1 */
		tw__write_whole(service, slot, moved, tick);
	return later ? 2 : 1;
}

static int reset_with_option(tw_service *service, uint32_t slot, uint64_t word, uint64_t deadline_ns);

/* looked: a side record has been looked at, and is locked if it must be. */
static inline __attribute__((always_inline)) int reset_word(tw_service *service, uint32_t slot, uint32_t generation,
							    uint64_t deadline_ns, bool looked)
{
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	for (;;) {
		if (tw_unlikely(tw__word_generation(word) != generation))
			return -ENOENT;
		if (tw_unlikely(!tw__word_armed(word)))
			return not_armed(service, slot, word, deadline_ns);
		if (tw_unlikely(!looked && word & TW__OPTION))
			return reset_with_option(service, slot, word, deadline_ns);
		uint64_t look = tw__cursor_look(service); /* WORD7 */
		uint64_t tick = tw__tick_to_write(service, look, deadline_ns);
		int r;
		if (tw_likely(tw__is_near(look, tick) && !(word & TW__BEYOND_RANGE))) {
			uint64_t old = tw__word_deadline(word, look);
			if (tick == old)
				return count_reset(service, false);
			if (tw_likely(tick > old)) { /* planted: reset_not_pushed */
				if (tw_likely(move_later(service, slot, &word, tick, look)))
					return count_reset(service, false);
				continue;
			}
			r = move_earlier(service, slot, &word, tick, look);
		} else {
			r = move_far(service, slot, &word, tick, look);
		}
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (r == 1)
			tw__wake_for(service, deadline_ns);
		return count_reset(service, r == 1);
	}
}

/*
 * The same deadline, moved within the timer's slack if the timer is the one that is meant. Option
 * lock.
 */
static uint64_t within_slack_of(tw_service *service, uint32_t slot, uint32_t generation, uint64_t deadline_ns)
{
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	if (tw__word_generation(word) != generation || !tw__word_armed(word))
		return deadline_ns;
	return tw__within_slack(service, deadline_ns, tw__option_of(&service->slots, slot)->slack_ns);
}

static __attribute__((noinline)) int reset_looked(tw_service *service, uint32_t slot, uint32_t generation,
						  uint64_t deadline_ns)
{
	return reset_word(service, slot, generation, deadline_ns, true);
}

/* The phase of a series moves with the timer: word and instant under one lock (slots.h). */
static int reset_instants(tw_service *service, uint32_t slot, uint32_t generation, uint64_t deadline_ns)
{
	pthread_mutex_t *lock = tw__option_lock(&service->slots, slot);
	uint64_t armed_ns = within_slack_of(service, slot, generation, deadline_ns);
	int r = reset_looked(service, slot, generation, armed_ns);
	if (r == 0)
		tw__option_of(&service->slots, slot)->nominal_ns = deadline_ns;
	pthread_mutex_unlock(lock);
	return r;
}

/*
 * A member of a cancelled group is gone; but that may be said only when no claim can win any more
 * (group.h, GROUP1).
 */
static __attribute__((noinline)) int reset_with_option(tw_service *service, uint32_t slot, uint64_t word,
						       uint64_t deadline_ns)
{
	uint32_t generation = tw__word_generation(word);
	while (tw__word_generation(word) == generation && tw__is_unsettled(service, slot, word))
		if (tw__cancel_option(service, slot, &word, false) == TW_GONE)
			return -ENOENT;
	if (tw__traits_of(&service->slots, slot) & TW__TRAIT_MOVES)
		return reset_instants(service, slot, generation, deadline_ns);
	return reset_looked(service, slot, generation, deadline_ns);
}

static __attribute__((noinline)) int reset_at(tw_service *service, tw_timer timer, uint64_t deadline_ns)
{
	uint32_t slot, generation;
	if (tw_unlikely(tw__gate_refuses(tw__gate_look(&service->gate))))
		return tw__refused_by_gate(service);
	if (tw_unlikely(!tw__handle_split(&service->slots, timer, &slot, &generation)))
		return -ENOENT;
	int r = reset_word(service, slot, generation, deadline_ns, false);
	TW_PROBE5(reset, service, slot, generation, deadline_ns, r);
	return r;
}

/*
 * The short way: a plain timer is moved to a later deadline or the same tick, both near, by a thread that has used this service last. False: it is out of the ordinary, or
 * has just changed; nothing was written.
 */
static inline __attribute__((always_inline)) bool move_shortly(tw_service *service, tw_timer timer,
							       uint64_t deadline_ns)
{
	struct tw__local *local = tw__local_at_hand(service);
	uint64_t entry, span_ns = deadline_ns + service->time.round_up_ns; /* one in the past is a very long one here */
	if (tw_unlikely(!local || tw__gate_refuses(tw__gate_look(&service->gate)) ||
			!tw__handle_entry(&service->slots, timer, &entry) || !tw__is_in_range(span_ns)))
		return false;
	_Atomic uint64_t *at = &service->slots.words[(uint32_t)entry];
	uint64_t word = tw_load_acquire(at), tick = tw__ticks_in_range(service, span_ns);
	uint64_t look = tw__cursor_look(service); /* WORD7; while the driver leaps nothing is near */
	uint64_t ahead = tick - look;
	int64_t by = (int64_t)ahead - tw__word_ahead(word, look); /* 0: the same tick; nothing is written */
	if (tw_unlikely(!tw__word_is_plain_and_near(word, entry) || ahead - 1 >= TW__NEAR - 1 || by < 0))
		return false;
	if (by > 0) {
		uint64_t moved = tw__word_move(word, tick);
		if (tw_unlikely(!tw__word_cas_seq_cst(at, &word, moved))) /* WORD4 */
			return false;
		if (tw__is_overtaken(service, look)) /* LEAP1 */
			tw__write_whole(service, (uint32_t)entry, moved, tick);
	}
	TW_PROBE5(reset, service, (uint32_t)entry, tw__entry_generation(entry), deadline_ns, 0);
	tw_bump(&local->resets, 1);
	return true;
}

int tw_reset_at(tw_service *service, tw_timer timer, uint64_t deadline_ns)
{
	if (tw_unlikely(!service))
		return -EINVAL;
	if (tw_likely(move_shortly(service, timer, deadline_ns)))
		return 0;
	if (tw_unlikely(deadline_ns > service->time.start_ns && deadline_ns - service->time.start_ns > TW_MAX_DELAY_NS))
		return tw__forked(service) ? -EPERM : -ERANGE;
	return reset_at(service, timer, deadline_ns);
}

int tw_reset(tw_service *service, tw_timer timer, uint64_t delay_ns)
{
	uint64_t entry;
	if (tw_unlikely(!service))
		return -EINVAL;
	if (tw_unlikely(delay_ns > TW_MAX_DELAY_NS))
		return tw__forked(service) ? -EPERM : -ERANGE;
	if (tw_likely(tw__handle_entry(&service->slots, timer, &entry)))
		__builtin_prefetch((const void *)&service->slots.words[(uint32_t)entry],
				   1); /* while the clock is read */
	uint64_t deadline_ns = tw__clock_read_fast(service) + delay_ns;
	if (tw_likely(move_shortly(service, timer, deadline_ns)))
		return 0;
	return reset_at(service, timer, deadline_ns);
}
