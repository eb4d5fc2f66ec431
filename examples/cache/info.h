/* Figures of the whole program: INFO, and Prometheus text. */
#ifndef EXAMPLES_CACHE_INFO_H
#define EXAMPLES_CACHE_INFO_H

#include <stdint.h>

#include "examples/cache/buffer.h"
#include "examples/cache/loop.h"

#define INFO_TICKCACHE_VERSION "0.1.0"
#define INFO_REDIS_VERSION "7.0.15" /* clients choose features by it */

struct totals {
	uint64_t connections, rejected, commands, hits, misses, errors, input_bytes, output_bytes,
	    protocol_errors;
	uint64_t slow_subscribers;
	uint64_t keys, volatile_keys, key_bytes;
	uint64_t volatile_made, expired, evicted, volatile_ended, met_in_flight, timers_refused;
	uint64_t expired_before_reset, evicted_before_reset; /* CONFIG RESETSTAT */
	uint64_t client_bytes, clients, commands_a_second;
};

void totals_get(struct totals *t);
void totals_reset(void);  /* what CONFIG RESETSTAT sets to zero; the ledgers go on */
void totals_sample(void); /* one thread, about once a second: for commands_a_second */

uint64_t info_resident_bytes(void);

/*
 * --metrics PORT: starts a thread that answers scrapers. Takes the listening socket over. Negative
 * errno: there is no thread.
 */
int metrics_start(int listen_fd);
void metrics_stop(void);

#endif
