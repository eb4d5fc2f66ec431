/*
 * Driving by a loop of the user's: until when it may sleep, and a descriptor that wakes it.
 *
 * Without a descriptor, producers never look whether the loop sleeps, and an advance pays nothing
 * for them. With one, the gate is always PARKED, and each advance ends by planning (gate.h, GATE4).
 */
#ifndef TW_WHEEL_LOOP_H
#define TW_WHEEL_LOOP_H

#include "wheel/driver/alarm.h"
#include "tickwheel/service.h"

struct tw__local;

/* The driver's, except for `open`; with a tick thread, only the alarm is used. */
struct tw__loop {
	struct tw__alarm alarm;
	/* tw_service_fd was called: the alarm is complete; by a driver, once */
	_Atomic bool open;
	bool at_once; /* the last poll has left something that is due */
	bool soon;    /* it has left something that may be done in the next tick */
	/* since the last plan, an entry was dropped since the timer is in a batch (resolve.c) */
	bool left_to_batch;
};

/* tw_service_advance's poll, `driving` held. The callbacks run or handed over. */
size_t tw__loop_advance(tw_service *service, struct tw__local *local, size_t budget);

/* The next tick in which there is something to do; UINT64_MAX: none. `driving` held. */
uint64_t tw__loop_next_tick_ns(tw_service *service);

#endif
