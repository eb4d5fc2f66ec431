/*
 * A node: holds shards of the store by leases, and runs their jobs on time.
 *
 * Each tick it asks the store about each shard. The answer renews the lease, and brings the jobs of
 * the next minute, which go into the node's own wheel. All timers of a shard are one group, so that
 * giving up a shard is one call.
 *
 * When a timer fires, its callback takes the job from the store, runs it, and acknowledges it. The
 * store gives a job only to the node that holds the shard at that instant, and never before its
 * time. So neither a node that was stopped beyond its lease nor a clock that is ahead does harm.
 *
 * A node that has no answer until its lease is over gives up the shard by itself: it does not know
 * the holder. A node that is about to run a job looks at the lease once more, on its own clock,
 * which counts the lease from before the call that renewed it. So the node's lease never ends after
 * Redis's. A stop between that look and the job's end is what makes second runs.
 */
#ifndef DURABLE_NODE_H
#define DURABLE_NODE_H

#include <stdint.h>

struct node;

/* The job. It may be called twice for one id. It runs on a worker of the node, and may block. */
typedef void node_job_fn(void *arg, const char *id, const char *payload);

struct node_config {
	const char *name;
	unsigned shards;
	int64_t lease_ms, tick_ms, window_ms;
	node_job_fn *job;
	void *arg;
};

/* 0, or a negative errno. */
int node_start(struct node **out, const struct node_config *config);

/* Gives up all shards when their jobs have ended, at most for a lease; then frees the node. */
void node_stop(struct node *node);

#endif
