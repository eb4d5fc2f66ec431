/* The operations on Redis: each builds the arguments of one script, and reads its answer. */
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "connection.h"

enum { NUMBER_SIZE = 24, PREFIX_SIZE = 32, SERVE_FIELDS = 4 };

static unsigned shards;

void store_configure(const struct store_config *config)
{
	shards = config->shards;
	connection_configure(config->socket, config->timeout_ms);
}

void store_close(void)
{
	connection_close();
}

/* FNV-1a. */
unsigned store_shard_of(const char *id)
{
	uint32_t hash = 2166136261u;
	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return hash % shards;
}

static const char *prefix_of(unsigned shard, char out[PREFIX_SIZE])
{
	snprintf(out, PREFIX_SIZE, "durable:%u:", shard);
	return out;
}

static const char *number(int64_t n, char out[NUMBER_SIZE])
{
	snprintf(out, NUMBER_SIZE, "%" PRId64, n);
	return out;
}

static int64_t integer_of(redisReply *reply)
{
	int64_t n = reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -EIO;
	freeReplyObject(reply);
	return n;
}

int store_submit(const char *id, int64_t deadline_ms, const char *payload)
{
	char prefix[PREFIX_SIZE], at[NUMBER_SIZE];
	const char *arguments[] = {prefix_of(store_shard_of(id), prefix), id, number(deadline_ms, at), payload};
	return (int)integer_of(connection_run(SCRIPT_SUBMIT, 4, arguments));
}

int store_cancel(const char *id)
{
	char prefix[PREFIX_SIZE];
	const char *arguments[] = {prefix_of(store_shard_of(id), prefix), id};
	return (int)integer_of(connection_run(SCRIPT_CANCEL, 2, arguments));
}

int store_join(const char *token, int64_t within_ms)
{
	char within[NUMBER_SIZE];
	const char *arguments[] = {token, number(within_ms, within)};
	return (int)integer_of(connection_run(SCRIPT_JOIN, 2, arguments));
}

static int answer_of(redisReply *reply, struct serve *serve, store_job_fn *fn, void *arg)
{
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < SERVE_FIELDS)
		return -EIO;
	int held = (int)reply->element[0]->integer;
	serve->left_ms = reply->element[1]->integer;
	serve->loaded_ms = reply->element[2]->integer;
	serve->seen = reply->element[3]->integer;
	for (size_t i = SERVE_FIELDS; i + 1 < reply->elements; i += 2)
		fn(arg, reply->element[i]->str, reply->element[i + 1]->integer);
	return held;
}

int store_serve(struct serve *serve, store_job_fn *fn, void *arg)
{
	char prefix[PREFIX_SIZE], lease[NUMBER_SIZE], window[NUMBER_SIZE], loaded[NUMBER_SIZE], seen[NUMBER_SIZE];
	const char *arguments[] = {prefix_of(serve->shard, prefix),  serve->token,
				   number(serve->lease_ms, lease),   number(serve->window_ms, window),
				   number(serve->loaded_ms, loaded), number(serve->seen, seen),
				   serve->may_acquire ? "1" : "0",   serve->gives_up ? "1" : "0"};
	redisReply *reply = connection_run(SCRIPT_SERVE, 8, arguments);
	int held = answer_of(reply, serve, fn, arg);
	freeReplyObject(reply);
	return held;
}

int store_take(unsigned shard, const char *token, uint64_t serial, const char *id, char *payload, int64_t *early_ms)
{
	char prefix[PREFIX_SIZE], who[TOKEN_SIZE + NUMBER_SIZE];
	snprintf(who, sizeof who, "%s:%" PRIu64, token, serial);
	const char *arguments[] = {prefix_of(shard, prefix), token, id, who};
	redisReply *reply = connection_run(SCRIPT_TAKE, 4, arguments);
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
		freeReplyObject(reply);
		return -EIO;
	}
	int taken = (int)reply->element[0]->integer;
	if (taken == JOB_YOURS)
		snprintf(payload, PAYLOAD_SIZE, "%s", reply->element[1]->str);
	if (taken == JOB_EARLY)
		*early_ms = reply->element[1]->integer;
	freeReplyObject(reply);
	return taken;
}

int store_acknowledge(unsigned shard, const char *id)
{
	char prefix[PREFIX_SIZE];
	const char *arguments[] = {prefix_of(shard, prefix), id};
	return (int)integer_of(connection_run(SCRIPT_ACKNOWLEDGE, 2, arguments));
}

int store_touch(void)
{
	return integer_of(connection_command("INCR durable:touched")) < 0 ? -EIO : 0;
}

int64_t store_now_ms(void)
{
	redisReply *reply = connection_command("TIME");
	int64_t now_ms = -EIO;
	if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
		now_ms =
		    strtoll(reply->element[0]->str, NULL, 10) * 1000 + strtoll(reply->element[1]->str, NULL, 10) / 1000;
	freeReplyObject(reply);
	return now_ms;
}

static int64_t count(unsigned shard, const char *set)
{
	char command[2 * PREFIX_SIZE];
	snprintf(command, sizeof command, "ZCARD durable:%u:%s", shard, set);
	return integer_of(connection_command(command));
}

int64_t store_left(void)
{
	int64_t left = 0;
	for (unsigned shard = 0; shard < shards; shard++) {
		int64_t due = count(shard, "due"), taken = count(shard, "taken");
		if (due < 0 || taken < 0)
			return -EIO;
		left += due + taken;
	}
	return left;
}
