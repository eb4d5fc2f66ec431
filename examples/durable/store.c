/* The operations on Redis: each builds the arguments of one script, and reads its answer. */
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"

enum { NUMBER_SIZE = 24, PREFIX_SIZE = 32, WHO_SIZE = TOKEN_SIZE + NUMBER_SIZE, SERVE_FIELDS = 4 };

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

/* ------------------------------------------------------- arguments and answers */

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

static const char *who_of(const struct attempt *attempt, char out[WHO_SIZE])
{
	snprintf(out, WHO_SIZE, "%s:%" PRIu64, attempt->token, attempt->serial);
	return out;
}

/* The integer that the script answers, or its error. */
static int64_t integer_of(int r, redisReply *reply)
{
	int64_t n = r;
	if (!r)
		n = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -EIO;
	freeReplyObject(reply);
	return n;
}

static int64_t run(enum script script, int count, const char **arguments)
{
	redisReply *reply;
	int r = connection_run(script, count, arguments, &reply);
	return integer_of(r, reply);
}

static int64_t command(const char *text)
{
	redisReply *reply;
	int r = connection_command(text, &reply);
	return integer_of(r, reply);
}

/* -------------------------------------------------------------------- clients */

int store_submit(const struct submission *jobs, int count)
{
	char prefix[PREFIX_SIZE], at[NUMBER_SIZE];
	int r = 0, appended = 0;
	for (; appended < count && !r; appended++) {
		const struct submission *job = &jobs[appended];
		const char *arguments[] = {prefix_of(store_shard_of(job->id), prefix), job->id,
					   number(job->deadline_ms, at), job->payload};
		r = connection_append(SCRIPT_SUBMIT, 4, arguments);
	}
	for (int i = 0; i < appended; i++) { /* each call has an answer, also after an error */
		redisReply *reply;
		int one = connection_reply(&reply);
		freeReplyObject(reply);
		r = r ? r : one;
	}
	return r;
}

int store_cancel(const char *id)
{
	char prefix[PREFIX_SIZE];
	const char *arguments[] = {prefix_of(store_shard_of(id), prefix), id};
	return (int)run(SCRIPT_CANCEL, 2, arguments);
}

int64_t store_now_ms(void)
{
	redisReply *reply;
	int r = connection_command("TIME", &reply);
	int64_t now_ms = r ? r : -EIO;
	if (!r && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
		now_ms = strtoll(reply->element[0]->str, NULL, 10) * 1000 +
			 strtoll(reply->element[1]->str, NULL, 10) / 1000;
	freeReplyObject(reply);
	return now_ms;
}

int64_t store_left(void)
{
	int64_t left = 0;
	char text[2 * PREFIX_SIZE];
	for (unsigned i = 0; i < 2 * shards; i++) {
		snprintf(text, sizeof text, "ZCARD durable:%u:%s", i / 2, i % 2 ? "taken" : "due");
		int64_t n = command(text);
		if (n < 0)
			return n;
		left += n;
	}
	return left;
}

/* ---------------------------------------------------------------------- nodes */

int store_join(const char *token, int64_t within_ms)
{
	char within[NUMBER_SIZE];
	const char *arguments[] = {token, number(within_ms, within)};
	return (int)run(SCRIPT_JOIN, 2, arguments);
}

static int answer_of(const redisReply *reply, struct serve *serve, store_job_fn *fn, void *arg)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < SERVE_FIELDS)
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
	char prefix[PREFIX_SIZE], lease[NUMBER_SIZE], window[NUMBER_SIZE], loaded[NUMBER_SIZE],
	    seen[NUMBER_SIZE];
	const char *arguments[] = {
	    prefix_of(serve->shard, prefix),  serve->token,
	    number(serve->lease_ms, lease),   number(serve->window_ms, window),
	    number(serve->loaded_ms, loaded), number(serve->seen, seen),
	    serve->may_acquire ? "1" : "0",   serve->gives_up ? "1" : "0"};
	redisReply *reply;
	int r = connection_run(SCRIPT_SERVE, 8, arguments, &reply);
	if (!r)
		r = answer_of(reply, serve, fn, arg);
	freeReplyObject(reply);
	return r;
}

int store_take(const struct attempt *attempt, char *payload, int64_t *early_ms)
{
	char prefix[PREFIX_SIZE], who[WHO_SIZE];
	const char *arguments[] = {prefix_of(attempt->shard, prefix), attempt->token, attempt->id,
				   who_of(attempt, who)};
	redisReply *reply;
	int r = connection_run(SCRIPT_TAKE, 4, arguments, &reply);
	if (!r && (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0))
		r = -EIO;
	if (!r)
		r = (int)reply->element[0]->integer;
	if (r == JOB_YOURS)
		snprintf(payload, PAYLOAD_SIZE, "%s", reply->element[1]->str);
	if (r == JOB_EARLY)
		*early_ms = reply->element[1]->integer;
	freeReplyObject(reply);
	return r;
}

int store_acknowledge(const struct attempt *attempt)
{
	char prefix[PREFIX_SIZE];
	const char *arguments[] = {prefix_of(attempt->shard, prefix), attempt->id};
	return (int)run(SCRIPT_ACKNOWLEDGE, 2, arguments);
}
