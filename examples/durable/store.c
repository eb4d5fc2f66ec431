/*
 * The operations on Redis: each builds the arguments of one script, and reads its answer. A
 * thread's connection is closed when the thread ends.
 */
#include "store.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "scripts.h"

enum { ARGUMENTS = 8, TEXT_SIZE = 160 };
enum { NUMBER_SIZE = 24, PREFIX_SIZE = 32, WHO_SIZE = TOKEN_SIZE + NUMBER_SIZE, SERVE_FIELDS = 4 };

enum script {
	SCRIPT_SUBMIT,
	SCRIPT_CANCEL,
	SCRIPT_JOIN,
	SCRIPT_SERVE,
	SCRIPT_TAKE,
	SCRIPT_ACKNOWLEDGE,
	SCRIPTS
};

static unsigned shards;

/* ---------------------------------------------------------------- connections */

static const char *const texts[SCRIPTS] = {SUBMIT, CANCEL, JOIN, SERVE, TAKE, ACKNOWLEDGE};

static const char *socket_path;
static struct timeval patience;
static pthread_key_t key; /* a redisContext */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void drop(void *arg)
{
	redisFree(arg);
}

static void make_key(void)
{
	pthread_key_create(&key, drop);
}

void store_configure(const struct store_config *config)
{
	shards = config->shards;
	socket_path = config->socket;
	patience = (struct timeval){.tv_sec = config->timeout_ms / 1000,
				    .tv_usec = config->timeout_ms % 1000 * 1000};
	pthread_once(&once, make_key);
}

void store_close(void)
{
	redisFree(pthread_getspecific(key));
	pthread_setspecific(key, NULL);
}

/* Prints an error. The same one again within a second is left out. */
static void complain(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char last[TEXT_SIZE];
	static time_t last_s;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&lock);
	if (now.tv_sec > last_s || strncmp(text, last, sizeof last - 1) != 0) {
		fprintf(stderr, "durable: %s\n", text);
		snprintf(last, sizeof last, "%s", text);
		last_s = now.tv_sec;
	}
	pthread_mutex_unlock(&lock);
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* The answer's code. A server that is starting has not read its jobs yet: that is no answer. */
static int code_of(const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ERROR)
		return 0;
	if (starts_with(reply->str, "LOADING"))
		return -EIO;
	complain(reply->str);
	return starts_with(reply->str, "OOM") ? -ENOSPC : -EREMOTEIO;
}

static redisContext *connection(void)
{
	redisContext *redis = pthread_getspecific(key);
	if (redis)
		return redis;
	redis = redisConnectUnixWithTimeout(socket_path, patience);
	if (redis && redis->err)
		complain(redis->errstr);
	if (!redis || redis->err || redisSetTimeout(redis, patience)) {
		redisFree(redis);
		return NULL;
	}
	pthread_setspecific(key, redis);
	return redis;
}

/* Without an answer the connection is made again: a late answer would be taken for the next one. */
static int answered(redisReply *reply, redisReply **out)
{
	int r = reply ? code_of(reply) : -EIO;
	*out = r ? NULL : reply;
	if (r)
		freeReplyObject(reply);
	if (r == -EIO)
		store_close();
	return r;
}

/* The two halves of connection_run, for many calls in one go. 0, or -EIO. */
static int connection_append(enum script script, int count, const char **arguments)
{
	redisContext *redis = connection();
	const char *words[3 + ARGUMENTS] = {"EVAL", texts[script], "0"};
	if (!redis)
		return -EIO;
	for (int i = 0; i < count && i < ARGUMENTS; i++)
		words[3 + i] = arguments[i];
	return redisAppendCommandArgv(redis, 3 + count, words, NULL) == REDIS_OK ? 0 : -EIO;
}

static int connection_reply(redisReply **out)
{
	redisContext *redis = pthread_getspecific(key);
	void *reply = NULL;
	*out = NULL;
	if (!redis) /* closed after an earlier answer was missing */
		return -EIO;
	if (redisGetReply(redis, &reply) != REDIS_OK) {
		complain(redis->errstr);
		reply = NULL;
	}
	return answered(reply, out);
}

/*
 * Calls a script. Errors are printed, each at most once a second. Returns:
 *   0         the reply is the caller's
 *   -EIO      no answer: the call may have been carried out
 *   -ENOSPC   the server is full
 *   -EREMOTEIO  another error of the server: nothing was done
 */
static int connection_run(enum script script, int count, const char **arguments, redisReply **out)
{
	int r = connection_append(script, count, arguments);
	*out = NULL;
	return r ? r : connection_reply(out);
}

static int connection_command(const char *command, redisReply **out)
{
	redisContext *redis = connection();
	*out = NULL;
	return redis ? answered(redisCommand(redis, command), out) : -EIO;
}

/* ----------------------------------------------------------------------- shards */

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
