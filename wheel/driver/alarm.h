/*
 * An alarm: one descriptor that is readable from an instant on, or once the gate's bell has been
 * rung: an epoll descriptor over a timerfd, which the driver sets, and the bell's eventfd, which
 * producers write (gate.h, GATE3). For the user's loops, and for clocks that a futex does not know.
 */
#ifndef TW_DRIVER_ALARM_H
#define TW_DRIVER_ALARM_H

#include "mpsc/gate.h"

/* All the driver's. */
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

#endif
