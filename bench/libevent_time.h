/*
 * Times as libevent wants them. By default it reads the coarse clock, "the fastest available timing
 * mechanism", which stands still between the kernel's ticks: a timeout counted from there would end
 * up to such a tick early, or by more where the kernel sets it late. To keep the promise that none
 * is early, what it lags at most is measured and added to each delay (and a microsecond, to which
 * libevent rounds down). The flag EVENT_BASE_FLAG_PRECISE_TIMER would instead cost an exact reading
 * for each operation, and a timerfd_settime a turn.
 *
 * For timeouts of equal length libevent has queues instead of its heap
 * (event_base_init_common_timeout), in which adding and moving are O(1). A server knows its
 * timeouts: here those of the workloads that have fixed ones.
 */
#ifndef BENCH_LIBEVENT_TIME_H
#define BENCH_LIBEVENT_TIME_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { FIXED_TIMEOUTS = 4 };

static const uint64_t fixed_timeouts_ns[FIXED_TIMEOUTS] = {200000000, 1000000000, 30000000000,
							   60000000000};

struct libevent_time {
	uint64_t lag_ns; /* of the coarse clock, at most */
	uint64_t pad_ns; /* added to each delay */
	const struct timeval *common[FIXED_TIMEOUTS];
};

static inline struct timeval timeval_of(uint64_t ns)
{
	return (struct timeval){.tv_sec = (time_t)(ns / 1000000000),
				.tv_usec = (suseconds_t)(ns % 1000000000 / 1000)};
}

static inline uint64_t libevent_now_ns(clockid_t clock)
{
	struct timespec now = {0};
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* At least its resolution; watched over several of its ticks. */
static inline uint64_t libevent_lag_ns(uint64_t resolution_ns)
{
	uint64_t lag_ns = resolution_ns,
		 until_ns = libevent_now_ns(CLOCK_MONOTONIC) + 8 * resolution_ns, now_ns;
	do { /* in this order: a pause between the two readings does not count as a lag */
		now_ns = libevent_now_ns(CLOCK_MONOTONIC);
		uint64_t coarse_ns = libevent_now_ns(CLOCK_MONOTONIC_COARSE);
		if (coarse_ns + lag_ns < now_ns)
			lag_ns = now_ns - coarse_ns;
	} while (now_ns < until_ns);
	return lag_ns;
}

static inline bool libevent_time_init(struct libevent_time *time, struct event_base *base)
{
	struct timespec resolution;
	bool ok = clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) == 0;
	time->lag_ns = libevent_lag_ns((uint64_t)resolution.tv_nsec);
	time->pad_ns = time->lag_ns + 1000;
	for (unsigned i = 0; i < FIXED_TIMEOUTS; i++) {
		struct timeval padded = timeval_of(fixed_timeouts_ns[i] + time->pad_ns);
		time->common[i] = event_base_init_common_timeout(base, &padded);
		ok = ok && time->common[i];
	}
	return ok;
}

/* Either one of the common ones, or *own, filled in. */
static inline const struct timeval *libevent_timeout(const struct libevent_time *time,
						     uint64_t delay_ns, struct timeval *own)
{
	for (unsigned i = 0; i < FIXED_TIMEOUTS; i++)
		if (delay_ns == fixed_timeouts_ns[i])
			return time->common[i];
	*own = timeval_of(delay_ns + 999 + time->pad_ns);
	return own;
}

#endif
