/* Connections to Redis. A thread's connection is closed when the thread ends. */
#include "connection.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "scripts.h"

enum { ARGUMENTS = 8, TEXT_SIZE = 160 };

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

void connection_configure(const char *socket, int timeout_ms)
{
	socket_path = socket;
	patience =
	    (struct timeval){.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	pthread_once(&once, make_key);
}

void connection_close(void)
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
		connection_close();
	return r;
}

int connection_append(enum script script, int count, const char **arguments)
{
	redisContext *redis = connection();
	const char *words[3 + ARGUMENTS] = {"EVAL", texts[script], "0"};
	if (!redis)
		return -EIO;
	for (int i = 0; i < count && i < ARGUMENTS; i++)
		words[3 + i] = arguments[i];
	return redisAppendCommandArgv(redis, 3 + count, words, NULL) == REDIS_OK ? 0 : -EIO;
}

int connection_reply(redisReply **out)
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

int connection_run(enum script script, int count, const char **arguments, redisReply **out)
{
	int r = connection_append(script, count, arguments);
	*out = NULL;
	return r ? r : connection_reply(out);
}

int connection_command(const char *command, redisReply **out)
{
	redisContext *redis = connection();
	*out = NULL;
	return redis ? answered(redisCommand(redis, command), out) : -EIO;
}
