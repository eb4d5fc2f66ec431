/* Leases, timers and jobs of a node. */
#include "node.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store.h"
#include "tickwheel.h"

struct shard {
	struct node *node;
	struct serve serve; /* the polling thread's */
	tw_group group;
	atomic_uint_least64_t held_until_ns; /* on the service's clock; 0: not held */
	bool overflows;                      /* a job did not find room in the wheel */
};

struct node {
	struct node_config config;
	tw_service *service;
	char token[TOKEN_SIZE];
	tw_timer poll;
	unsigned living; /* nodes */
	uint64_t join_ns;
	uint64_t asked_ns; /* when the shard was asked about that is being answered */
	atomic_bool stopping;
	atomic_uint held;
	atomic_uint_least64_t serial;
	struct shard shards[];
};

struct job {
	struct shard *shard;
	uint64_t serial;
	char id[ID_SIZE];
};

/* -------------------------------------------------------------------- leases */

static bool is_held(struct shard *shard)
{
	return tw_service_now(shard->node->service) < atomic_load(&shard->held_until_ns);
}

static void hold(struct shard *shard, uint64_t until_ns)
{
	if (atomic_exchange(&shard->held_until_ns, until_ns) == 0)
		atomic_fetch_add(&shard->node->held, 1);
}

/* Its timers go. Those that run find out that it is not held. */
static void give_up(struct shard *shard)
{
	shard->serve.loaded_ms = 0;
	shard->overflows = false;
	if (atomic_exchange(&shard->held_until_ns, 0) == 0)
		return;
	atomic_fetch_sub(&shard->node->held, 1);
	tw_group_cancel(shard->node->service, shard->group);
}

/* ---------------------------------------------------------------------- jobs */

static void release(void *arg, enum tw_fate fate)
{
	(void)fate;
	free(arg);
}

static int schedule(const struct job *job, tw_fn *fn, uint64_t at_ns, bool with_shard)
{
	struct job *copy = malloc(sizeof *copy);
	if (!copy)
		return -ENOMEM;
	*copy = *job;
	const struct tw_task task = {.size = sizeof task,
				     .fn = fn,
				     .arg = copy,
				     .when_ns = at_ns,
				     .flags = TW_TASK_AT,
				     .release = release,
				     .group = with_shard ? job->shard->group : (tw_group){0}};
	int r = tw_schedule_task(job->shard->node->service, &task, NULL);
	if (r)
		free(copy);
	return r;
}

static uint64_t after_ms(const struct node *node, int64_t ms)
{
	return tw_service_now(node->service) + (uint64_t)ms * TW_MILLISECOND;
}

static struct attempt attempt_of(const struct job *job)
{
	const struct node *node = job->shard->node;
	return (struct attempt){.shard = (unsigned)(job->shard - node->shards),
				.token = node->token,
				.id = job->id,
				.serial = job->serial};
}

/* Acknowledges until it succeeds, also if the shard is no longer held. */
static void acknowledge(void *arg)
{
	const struct job *job = arg;
	const struct node *node = job->shard->node;
	const struct attempt attempt = attempt_of(job);
	if (store_acknowledge(&attempt) < 0)
		schedule(job, acknowledge, after_ms(node, node->config.tick_ms), false);
}

static void run(struct job *job, const char *payload)
{
	const struct node *node = job->shard->node;
	if (!is_held(job->shard))
		return; /* the next holder runs it */
	node->config.job(node->config.arg, job->id, payload);
	acknowledge(job);
}

static void due(void *arg)
{
	struct job *job = arg;
	const struct node *node = job->shard->node;
	const struct attempt attempt = attempt_of(job);
	char payload[PAYLOAD_SIZE];
	int64_t early_ms = 0;
	if (!is_held(job->shard))
		return;
	int r = store_take(&attempt, payload, &early_ms);
	if (r == JOB_YOURS)
		run(job, payload);
	else if (r == JOB_EARLY)
		tw_reset_at(node->service, tw_self(), after_ms(node, early_ms));
	else if (r < 0) /* perhaps it has been taken: asked again, the store says so */
		tw_reset_at(node->service, tw_self(), after_ms(node, node->config.tick_ms));
	/* else another node has it, or will have it */
}

static void load(void *arg, const char *id, int64_t delay_ms)
{
	struct shard *shard = arg;
	struct node *node = shard->node;
	struct job job = {.shard = shard, .serial = atomic_fetch_add(&node->serial, 1)};
	/* Before the first one fires. */
	hold(shard, node->asked_ns + (uint64_t)shard->serve.left_ms * TW_MILLISECOND);
	snprintf(job.id, sizeof job.id, "%s", id);
	if (schedule(&job, due, after_ms(node, delay_ms), true))
		shard->overflows = true;
}

/* ------------------------------------------------------------------- polling */

static void serve(struct node *node, struct shard *shard, unsigned share)
{
	unsigned held = atomic_load(&node->held);
	bool stopping = atomic_load(&node->stopping);
	if (atomic_load(&shard->held_until_ns) && !is_held(shard))
		give_up(shard); /* no answer came in time */
	shard->serve.may_acquire = !stopping && held < share;
	shard->serve.gives_up = stopping || held > share;
	node->asked_ns = tw_service_now(node->service);
	int state = store_serve(&shard->serve, load, shard);
	if (state < 0)
		return;
	if (state == SHARD_ACQUIRED || state == SHARD_HELD)
		hold(shard, node->asked_ns + (uint64_t)shard->serve.left_ms * TW_MILLISECOND);
	else
		give_up(shard);
	if (shard->overflows)
		give_up(shard); /* and load it again */
}

/*
 * The store counts the nodes eight times a lease. One that has missed three times no longer counts.
 * So the others know that their share has grown before its leases are over, and take its shards
 * immediately.
 */
static void join(struct node *node)
{
	uint64_t now_ns = tw_service_now(node->service);
	if (now_ns < node->join_ns)
		return;
	int living = store_join(node->token, node->config.lease_ms * 3 / 8);
	if (living <= 0)
		return;
	node->living = (unsigned)living;
	node->join_ns = now_ns + (uint64_t)node->config.lease_ms * TW_MILLISECOND / 8;
}

/* A series, so never twice at a time. */
static void poll(void *arg)
{
	struct node *node = arg;
	join(node);
	unsigned living = node->living ? node->living : 1;
	unsigned share = (node->config.shards + living - 1) / living;
	for (unsigned i = 0; i < node->config.shards; i++)
		serve(node, &node->shards[i], share);
}

/* -------------------------------------------------------------- start and stop */

static int open_service(struct node *node)
{
	const struct tw_service_config config = {.size = sizeof config,
						 .tick_ns = 10 * TW_MILLISECOND,
						 .workers = 4,
						 .thread_name = "durable"};
	int r = tw_service_create(&node->service, &config);
	for (unsigned i = 0; i < node->config.shards && !r; i++)
		r = tw_group_create(&node->shards[i].group, node->service);
	return r;
}

static int start_polling(struct node *node)
{
	const struct tw_period period = {
	    .size = sizeof period, .period_ns = (uint64_t)node->config.tick_ms * TW_MILLISECOND};
	return tw_schedule_every(node->service, &period, poll, node, &node->poll);
}

int node_start(struct node **out, const struct node_config *config)
{
	struct timespec now;
	struct node *node = calloc(1, sizeof *node + config->shards * sizeof(struct shard));
	if (!node)
		return -ENOMEM;
	node->config = *config;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(node->token, sizeof node->token, "%.16s:%d:%lld.%09ld", config->name,
		 (int)getpid(), (long long)now.tv_sec, now.tv_nsec);
	for (unsigned i = 0; i < config->shards; i++) {
		node->shards[i].node = node;
		node->shards[i].serve = (struct serve){.shard = i,
						       .token = node->token,
						       .lease_ms = config->lease_ms,
						       .window_ms = config->window_ms};
	}
	int r = open_service(node);
	if (!r)
		r = start_polling(node);
	if (r) {
		tw_service_destroy(node->service);
		free(node);
		return r;
	}
	*out = node;
	return 0;
}

void node_stop(struct node *node)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	atomic_store(&node->stopping, true);
	for (uint64_t end_ns = after_ms(node, node->config.lease_ms);
	     atomic_load(&node->held) && tw_service_now(node->service) < end_ns;)
		nanosleep(&pause, NULL);
	tw_service_destroy(node->service);
	free(node);
}
