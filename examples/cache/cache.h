/* What all parts of the program share: the timer service, time, and settings. */
#ifndef EXAMPLES_CACHE_CACHE_H
#define EXAMPLES_CACHE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tickwheel.h"

#define REDIS_VERSION "7.0.15" /* clients choose features by it */

struct loop;

struct cache {
	tw_service *service;
	uint64_t unix_offset_ns; /* Unix time less the service's time, as it was at the start */
	uint64_t started_ns;     /* the service's time */
	struct loop *loops;
	unsigned loop_count;

	_Atomic unsigned notify; /* enum notify_flags; CONFIG SET changes it */

	/* Settings of the command line. */
	unsigned port;
	unsigned max_clients;
	const char *bind, *unix_path;

	_Atomic unsigned clients; /* connected now */
	_Atomic uint64_t next_client_id;
};

extern struct cache cache;

/*
 * Unix time in milliseconds, the scale of deadlines. It goes on with the service's clock: a step
 * of the system's time of day moves no deadline.
 */
static inline uint64_t unix_ms(void)
{
	return (tw_service_now(cache.service) + cache.unix_offset_ns) / TW_MILLISECOND;
}

/*
 * The same rounded up: what times to live count from. So a key lives for its whole time to live,
 * and never reports more time than it was given.
 */
static inline uint64_t unix_ms_up(void)
{
	return (tw_service_now(cache.service) + cache.unix_offset_ns + TW_MILLISECOND - 1) /
	       TW_MILLISECOND;
}

/* Asks the process to end, as SIGTERM does. Any thread. */
void cache_shut_down(void);

#endif
