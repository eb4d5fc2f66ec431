/* What scheduling and looking at timers share. */
#ifndef TW_WHEEL_SCHEDULE_H
#define TW_WHEEL_SCHEDULE_H

#include "wheel/core.h"

/*
 * An UNFILED word's deadline bits, for tw_remaining: the upper bits of its deadline's tick. How many ticks one step of them is, is chosen
 * so that the longest delay fits: half a minute at ticks of 1 ms, for timers that are hours away.
 */
static inline unsigned tw__hint_shift(const tw_service *service)
{
	uint64_t longest = TW_MAX_DELAY_NS / service->tick_ns;
	return 65 - (unsigned)__builtin_clzll(longest) - TW__DEADLINE_BITS;
}

/* What a new timer's word says of its deadline: the tick, or if that is far, a hint and that its entry knows. */
static inline uint64_t tw__deadline_bits(const tw_service *service, uint64_t deadline_ns)
{
	uint64_t tick = tw__tick_to_write(service, deadline_ns), cursor = tw_load_relaxed(&service->gate.cursor);
	if (tw_likely(tick < cursor + TW__WHEEL_REACH))
		return tick & TW__DEADLINE_MASK;
	return TW__UNFILED | tick >> tw__hint_shift(service);
}

/* ---------------------------------------- what a task and a batch of them share */

/* A task made ready to be armed. */
struct tw__arming {
	enum tw__kind kind;
	uint64_t value;
	uint32_t option; /* side record; 0: a plain timer */
};

/* No more than a timer's own record can hold: no side record. A field of struct tw_task that needs one is named here. */
static inline bool tw__task_is_plain(const struct tw_task *task)
{
	return !task->period && !task->release;
}

/* Copies a task of an older or newer caller, and its period, and checks them. 0, -EINVAL, -E2BIG, -ERANGE. */
int tw__task_read(const tw_service *service, struct tw_task *known, struct tw_period *period,
		  const struct tw_task *task);

/* The check alone. */
int tw__task_check(const tw_service *service, const struct tw_task *known, const struct tw_period *period);

/*
 * Says how to arm it; makes a side record if it needs one. *now_ns: a reading of the clock taken within this call, or 0; read if needed.
 * 0, or -ENOMEM. A side record of a task that is not armed after all is given back with tw__option_put_unslotted.
 */
int tw__task_prepare(tw_service *service, const struct tw_task *known, const struct tw_period *period, uint64_t *now_ns,
		     struct tw__arming *arming);

/* Puts the lane's base, as of a look at the gate; the instant to count delays from. Needs room for one entry. */
uint64_t tw__schedule_base(tw_service *service, struct tw__local *local, uint64_t word, uint64_t *now_ns);

/* After a push and its look at the gate: wakes a driver that sleeps too long for it. */
void tw__wake_after_push(tw_service *service, uint64_t word, uint64_t deadline_ns, bool grew);

/* Close's: no batch call that saw the gate open is under way any more. False: not by the deadline. */
bool tw__await_batch_calls(tw_service *service, uint64_t deadline_ns);

#endif
