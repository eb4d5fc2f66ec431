/*
 * What happens at a server, worked out beforehand from a seed, so that every candidate sees the
 * same and no time is spent on chance while it is measured: in each step of a millisecond some
 * requests arrive, and some are answered.
 */
#ifndef BENCH_SERVER_SCRIPT_H
#define BENCH_SERVER_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	REQUESTS_PER_STEP = 100, /* on average; a Poisson process */
	SILENT_SHARE = 100,      /* one in 100 is never answered */
	REQUEST_TIMEOUT_MS = 200,
	/* after a silent one's arrival its slot is used again: it has timed out long ago */
	GIVEN_UP_MS = 500,
	KEEP_ALIVE_MS = 1000
};

#define NO_REQUEST UINT32_MAX

struct request {
	uint32_t connection;
	uint32_t slot : 31; /* among those of requests; free again when it has ended */
	uint32_t silent : 1;
	uint32_t next; /* that ends in the same step; NO_REQUEST: none */
};

struct server_script {
	uint32_t steps, request_slots;
	struct request *requests; /* by arrival */
	/* those of step s: requests[arrivals[s]] up to requests[arrivals[s + 1]] */
	uint32_t *arrivals;
	/* the first that ends in step s: it is answered, or, if silent, given up */
	uint32_t *ends;
};

/* False: no memory. */
bool server_script_make(struct server_script *script, uint32_t steps, uint32_t connections);

#endif
