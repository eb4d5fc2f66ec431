/*
 * Driving by a loop of the user's: until when it may sleep, and a descriptor that wakes it. Without
 * a descriptor, producers never look whether the loop sleeps. With one, the gate is always PARKED,
 * and each advance ends by planning (gate.h, GATE4).
 */
#ifndef TW_WHEEL_LOOP_H
#define TW_WHEEL_LOOP_H

#include "wheel/driver/alarm.h"
#include "tickwheel/service.h"

struct tw__local;

/* The driver's, except for `open`; a tick thread uses only the alarm. */
struct tw__loop {
	struct tw__alarm alarm;
	/* the alarm is complete; set once, by a driver */
	_Atomic bool open;
	bool at_once; /* something is due */
	bool soon;    /* something may be done in the next tick */
	/* since the last plan, an entry was dropped whose timer is in a batch (resolve.c) */
	bool left_to_batch;
};

/* tw_service_advance's poll, `driving` held. How many callbacks were run or handed over. */
size_t tw__loop_advance(tw_service *service, struct tw__local *local, size_t budget);

/* The instant of the next tick with something to do; UINT64_MAX: none. `driving` held. */
uint64_t tw__loop_next_tick_ns(tw_service *service);

#endif
