/* The tick thread. */
#ifndef TW_WHEEL_PARK_H
#define TW_WHEEL_PARK_H

#include <pthread.h>

#include "wheel/core/service.h"

/* When the tick thread sleeps, and how long; the driver's. */
struct tw__park {
	uint32_t quiet_polls; /* in a row, with little traffic */
	bool woken;           /* slept since the last poll */
	bool slept_a_tick;    /* and no longer than planned */
	bool fires_each_tick; /* so it stays awake */
};

/* The thread, and what others ask of it. */
struct tw__tick_thread {
	pthread_t thread;
	_Atomic uint32_t started;      /* 1: it runs; 2: it could not be set up */
	_Atomic uint32_t stopping;     /* it is asked to end */
	_Atomic uint32_t polls_wanted; /* whole polls that others wait for: asked for, and done */
	_Atomic uint32_t polls_done;
};

/* Starts the tick thread. 0, or a negative errno. */
int tw__driver_start(tw_service *service);

/* Waits for a whole poll that begins after the call. False: not by the deadline. */
bool tw__driver_await_poll(tw_service *service, uint64_t deadline_ns);

/* Ends the tick thread. False: not by the deadline. */
bool tw__driver_stop(tw_service *service, uint64_t deadline_ns);

#endif
