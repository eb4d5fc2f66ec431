/*
 * The jobs in Redis. Each operation is one Lua script, so it happens as a whole or not at all.
 * An operation that fails returns -EIO, -ENOSPC or -EREMOTEIO (connection_run in store.c).
 *
 * Keys of shard N, all with the prefix "durable:N:":
 *
 *   due     sorted set: jobs that wait, by deadline
 *   taken   sorted set: jobs that run, by deadline, until they are acknowledged
 *   by      hash: who has taken a job
 *   job     hash: payloads
 *   new     sorted set: jobs submitted for a time that the holder has loaded already, by number
 *   number  of the last of these
 *   until   how far the holder has loaded
 *   lease   the holder of the shard; expires
 *
 * Beside them: "durable:nodes".
 *
 * All times are those of Redis, in milliseconds since 1970.
 *
 * Each thread has a connection of its own, which is made again after an error. A call that fails
 * may have been carried out: only the answer is missing. So each one can be repeated.
 */
#ifndef DURABLE_STORE_H
#define DURABLE_STORE_H

#include <stdbool.h>
#include <stdint.h>

enum { ID_SIZE = 40, TOKEN_SIZE = 64, PAYLOAD_SIZE = 256 };

struct store_config {
	const char *socket; /* of the redis-server */
	unsigned shards;
	int timeout_ms; /* for one answer: well below the lease */
};

void store_configure(const struct store_config *config);

/* The calling thread's connection is closed. Other threads' close when they end. */
void store_close(void);

unsigned store_shard_of(const char *id);

struct submission {
	char id[ID_SIZE];
	int64_t deadline_ms;
	const char *payload;
};

/* Adds jobs, or moves jobs that wait, in one go. 0: all are safe. An error: perhaps some are. */
int store_submit(const struct submission *jobs, int count);

/* Takes back a job that does not run. 1: done. 0: it runs, has run, or never was. */
int store_cancel(const char *id);

/* Says that a node lives. Returns how many have said so within that time. */
int store_join(const char *token, int64_t within_ms);

enum held {
	SHARD_FREE,     /* nobody holds it, and may_acquire was false; or it was given up */
	SHARD_OTHERS,   /* another node holds it */
	SHARD_ACQUIRED, /* held from now on; all jobs of the window are reported */
	SHARD_HELD      /* held as before; what is new in the window is reported */
};

/* What a node asks about a shard. */
struct serve {
	unsigned shard;
	const char *token; /* the node's name, unlike any other's, also of its former lives */
	int64_t lease_ms, window_ms;
	bool may_acquire;  /* if nobody holds it */
	bool gives_up;     /* gives the shard to another node, if no job of it runs */
	int64_t loaded_ms; /* in and out: how far its jobs are in the wheel; 0: none is */
	int64_t seen;      /* in and out: the number of the last new job */
	int64_t left_ms;   /* out: how long the lease lasts, counted from the call */
};

/* Called for each job that is to go into the wheel. */
typedef void store_job_fn(void *arg, const char *id, int64_t delay_ms);

/*
 * Renews or acquires a shard's lease, and reports jobs, after `serve` has its new values. A new
 * holder also gets the jobs that the old one had taken and not acknowledged. An enum held, or an
 * error: then `serve` is as it was.
 */
int store_serve(struct serve *serve, store_job_fn *fn, void *arg);

enum taken {
	JOB_YOURS, /* run it, then acknowledge it */
	JOB_GONE,  /* another one has it, or it was cancelled or moved */
	JOB_EARLY, /* *early_ms from now, by Redis's clock */
	JOB_LOST   /* the shard is held by another node */
};

/* One attempt to take and run a job. */
struct attempt {
	unsigned shard;
	const char *token, *id;
	uint64_t serial; /* tells this attempt from others of the node */
};

/* Takes a due job. Returns an enum taken, or an error. */
int store_take(const struct attempt *attempt, char *payload, int64_t *early_ms);

/* The job has run. */
int store_acknowledge(const struct attempt *attempt);

/* Redis's time. */
int64_t store_now_ms(void);

/* Jobs that wait or run. */
int64_t store_left(void);

#endif
