/* Scheduling many timers in one call. */
#ifndef TW_WHEEL_TIMER_SCHEDULE_BULK_H
#define TW_WHEEL_TIMER_SCHEDULE_BULK_H

#include "wheel/timer/schedule.h"

/*
 * Close's: no batch call that saw the gate open is under way any more. False: not by the deadline.
 */
bool tw__await_batch_calls(tw_service *service, uint64_t deadline_ns);

#endif
