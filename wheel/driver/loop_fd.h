/*
 * Driving by a loop of the user's: until when it may sleep, and a descriptor that wakes it. Without
 * a descriptor, producers never look whether the loop sleeps. With one, the gate is always PARKED,
 * and each advance ends by planning (gate.h, GATE4).
 */
#ifndef TW_WHEEL_LOOP_H
#define TW_WHEEL_LOOP_H

#include "mpsc/gate.h"
#include "tickwheel/service.h"

struct tw__local;

/*
 * An alarm: one descriptor that is readable from an instant on, or once the gate's bell has been
 * rung: an epoll descriptor over a timerfd, which the driver sets, and the bell's eventfd, which
 * producers write (gate.h, GATE3). For the user's loops, and for clocks that a futex does not know.
 * All the driver's.
 */
struct tw__alarm {
	int epoll_fd, timer_fd, bell_fd;
	uint64_t set_ns; /* what timer_fd stands at; UINT64_MAX: at nothing */
};

/* Before anything else: no descriptors yet. */
void tw__alarm_init(struct tw__alarm *alarm);

/*
 * Opens it, set to nothing, and lets the gate ring on it. 0; else a negative errno, and nothing is
 * left.
 */
int tw__alarm_open(struct tw__alarm *alarm, int clock_id, struct tw__gate *gate);

/* Nobody may ring any more. An alarm that was never opened is fine. */
void tw__alarm_close(struct tw__alarm *alarm);

/* Readable from the instant on: 0: now, UINT64_MAX: not by itself. */
void tw__alarm_set(struct tw__alarm *alarm, uint64_t instant_ns);

/* Sleeps until it is readable; may return early. */
void tw__alarm_wait(struct tw__alarm *alarm);

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
