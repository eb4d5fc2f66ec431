/* What scheduling shares with all that arms timers, and with the layers above. */
#ifndef TW_WHEEL_SCHEDULE_H
#define TW_WHEEL_SCHEDULE_H

#include "mpsc/base/atomics.h"
#include "wheel/core/service.h"

/* A deadline that the service cannot express. */
static inline bool tw__beyond_range(const tw_service *service, uint64_t deadline_ns)
{
	return deadline_ns > service->time.start_ns &&
	       deadline_ns - service->time.start_ns > TW_MAX_DELAY_NS;
}

/* Whether the service can express a task's delay, or its deadline. */
static inline bool tw__when_is_in_range(const tw_service *service, uint32_t flags, uint64_t when_ns)
{
	return flags & TW_TASK_AT ? !tw__beyond_range(service, when_ns)
				  : when_ns <= TW_MAX_DELAY_NS;
}

/*
 * Schedules a plain timer that the driver runs, without a context. For the delays of the layers: fn
 * calls no user function, and waits for nothing but a lock that is held for some stores.
 *
 * flags: TW_TASK_AT: when_ns is a deadline, else a delay. The caller has checked its range, and
 * that this is no forked child. Returns 0, -ENOMEM, -EAGAIN or -ESHUTDOWN.
 */
TW_PRIVATE int tw__schedule_inline(tw_service *service, uint32_t flags, uint64_t when_ns, tw_fn *fn,
				   void *arg, tw_timer *out);

#endif
