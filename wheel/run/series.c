/*
 * What follows on a run: the next one of a series, a re-arm that the callback asked for, or a
 * persistent timer that is disarmed.
 *
 * The nominal instants of a fixed-rate series are first + n * period. Each gets a run, or counts as
 * an overrun. The missed policy is applied when a run begins, and when it has returned.
 */
#include "wheel/timer/schedule.h"
#include "wheel/core/wake.h"
#include "wheel/run/run.h"

static void count_missed(struct tw__local *local, struct tw__series *series, uint64_t missed)
{
	series->overruns += missed;
	tw_bump(&local->overruns, missed);
}

void tw__series_begins(tw_service *service, struct tw__local *local, struct tw__run *run,
		       uint64_t now_ns)
{
	struct tw__series *series = &service->slots.series[run->slot];
	/* WORD7 */
	if (tw_load_relaxed(&series->is_moved)) { /* planted: phase_kept */
		series->nominal_ns = run->due_ns;
		tw_store_relaxed(&series->is_moved, 0);
	}
	if (series->mode == TW_FIXED_RATE && series->missed != TW_MISSED_BURST &&
	    now_ns > series->nominal_ns) {
		uint64_t period_ns = tw_load_relaxed(&series->period_ns); /* WORD8 */
		uint64_t missed = (now_ns - series->nominal_ns) / period_ns;
		series->nominal_ns += missed * period_ns; /* planted: begins_early */
		count_missed(local, series, missed);
	}
	run->due_ns = series->nominal_ns;
	run->overruns = series->overruns;
	series->overruns = 0;
}

/* When a series runs next. False: it is at its end. */
static bool next_of_series(tw_service *service, struct tw__local *local, struct tw__series *series,
			   uint64_t now_ns)
{
	uint64_t period_ns = tw_load_relaxed(&series->period_ns); /* WORD8 */
	if (series->runs_left && --series->runs_left == 0)
		return false;
	if (series->mode == TW_FIXED_DELAY) {
		/* planted: delay_from_instant */
		series->nominal_ns = now_ns + period_ns;
	} else {
		series->nominal_ns += period_ns;
		if (series->nominal_ns <= now_ns) {
			uint64_t missed = tw__instants_missed(series->missed, period_ns,
							      now_ns - series->nominal_ns);
			series->nominal_ns += missed * period_ns;
			count_missed(local, series, missed);
		}
	}
	return !tw__beyond_range(service, series->nominal_ns);
}

/* Takes the entry from the reserve of this thread's lane. */
static void push_again(tw_service *service, struct tw__local *local, const struct tw__run *run,
		       uint64_t armed, uint64_t tick)
{
	tw__lane_grow_reserved(&local->lane, 1);
	tw__put_armed_again(service, local, run->slot, armed, tick);
	tw__publish(service, local);
	tw__wake_for_back(service, tw__entry_make(run->slot, run->generation), tick);
}

/*
 * With `arms`, arms the timer for `tick`. Else the timer is persistent: it is armed for what a
 * reset asked for during the run, or disarmed. False: cancelled meanwhile, or closed.
 */
static bool after_run(tw_service *service, struct tw__local *local, const struct tw__run *run,
		      uint64_t word, bool arms, uint64_t tick)
{
	struct tw__slots *slots = &service->slots;
	for (;;) {
		bool rearmed = word & TW__REARMED; /* planted: rearm_lost */
		uint64_t after = tw__word_after_run(word);
		if (word & (TW__ENDED | TW__BARRED))
			return false;
		if (rearmed && !tw__far_read(slots, run->slot, &word, &tick))
			continue;
		if (arms || rearmed)
			after = tw__word_arm(
			    after, tw__tick_bits(tick, tw_load_relaxed(&service->gate.cursor)));
		/* planted: rearm_blind */
		if (!tw__deadline_move(slots, run->slot, &word, tick, after, tick))
			continue;
		if (arms || rearmed)
			push_again(service, local, run, after, tick);
		return true;
	}
}

static bool arm_again(tw_service *service, struct tw__local *local, const struct tw__run *run,
		      uint64_t word, uint64_t deadline_ns)
{
	return after_run(service, local, run, word, true, tw__tick_of(service, deadline_ns));
}

static uint32_t run_traits(const tw_service *service, const struct tw__run *run, uint64_t word)
{
	return word & TW__HAS_EXT ? tw_load_relaxed(&tw__ext_of(&service->slots, run->slot)->traits)
				  : 0;
}

bool tw__continues(tw_service *service, struct tw__local *local, struct tw__run *run, uint64_t word,
		   uint64_t now_ns)
{
	bool closed = tw__gate_refuses(tw__gate_look(&service->gate));
	if (tw_unlikely(closed) && !tw__draining(service))
		return false;
	if (word & TW__HAS_PERSISTENT)
		return after_run(service, local, run, word, false, 0);
	uint32_t traits = run_traits(service, run, word);
	if (!(traits & TW__TRAIT_SERIES))
		return run->rearm && arm_again(service, local, run, word, run->rearm_ns);
	struct tw__series *series = &service->slots.series[run->slot];
	/* In a drain a series without a count ends; one in the background is dropped by it. */
	bool ends = closed && !series->runs_left && !(traits & TW__TRAIT_BACKGROUND);
	bool more = !ends && next_of_series(service, local, series, now_ns);
	if (!more && !run->rearm)
		return false;
	if (!more)
		series->runs_left = 1; /* reset in its last run: one more */
	if (more && run->rearm_if_earlier && series->nominal_ns <= run->rearm_ns)
		run->rearm = false;
	if (run->rearm)
		series->nominal_ns = run->rearm_ns;
	/* read while the series is still this thread's */
	bool catches_up = !run->rearm && series->nominal_ns <= now_ns;
	if (!arm_again(service, local, run, word, series->nominal_ns))
		return false;
	if (catches_up) {
		tw_store_relaxed(&service->catching_up, 1); /* read by the driver after the lane */
		tw__gate_ring(&service->gate);
	}
	return true;
}

bool tw__ended_as_cancelled(tw_service *service, struct tw__run *run, uint64_t word)
{
	if (!(word & TW__ENDED))
		return false;
	return run->rearm || word & TW__HAS_PERSISTENT ||
	       run_traits(service, run, word) & TW__TRAIT_SERIES;
}
